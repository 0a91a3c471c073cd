// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/all_gather.hpp>
#include <ddl/all_to_all.hpp>
#include <ddl/allreduce.hpp>
#include <ddl/broadcast.hpp>
#include <ddl/gather.hpp>
#include <ddl/reduce.hpp>
#include <ddl/reduce_scatter.hpp>
#include <ddl/scatter.hpp>
#include <ddl/transport/cuda_peer.cuh>

#include <thrust/device_vector.h>
#include <thrust/host_vector.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <tuple>

#include "../collective/require.hpp"
#include "gpu_test.cuh"

/// A hang ends sooner than ctest gives up, so that we hear who waits for whom.
template <class Body>
void run_peers(int ranks, Body body) {
    ddl::cuda_peer::run(ranks, body, ddl::timeout{20});
}

struct first_of_both {  // a user's op that depends on the order of its operands
    template <class Type>
    constexpr Type operator()(const Type& left, const Type&) const {
        return left;
    }
};

template <class Element>
concept has_index = requires(Element element) { element.index; };
template <class Element>
concept has_two_parts = requires(Element element) { element.imag(); };

/// From -4 to 4, an integer from 0 to 99: the hash of SplitMix64, for a generator for each value would take minutes to seed.
template <class Element>
Element value_of(int rank, std::size_t i, std::uint64_t seed) {
    std::uint64_t x = (seed * 1'000'003 + i * 131 + static_cast<std::size_t>(rank)) * 0x9e37'79b9'7f4a'7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58'476d'1ce4'e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d0'49bb'1331'11ebULL;
    x ^= x >> 31;
    const double value = static_cast<double>(x >> 11) / 1'125'899'906'842'624.0 - 4;
    if constexpr (std::is_same_v<Element, bool>) return x % 2 != 0;
    else if constexpr (std::is_same_v<Element, std::byte>) return static_cast<std::byte>(x);
    else if constexpr (has_index<Element>) return {static_cast<decltype(Element{}.value)>(value), rank};
    else if constexpr (has_two_parts<Element>) {
        using part = typename Element::value_type;
        return {static_cast<part>(value), static_cast<part>(static_cast<double>(x % 1000) / 7)};
    } else if constexpr (std::is_integral_v<Element>) return static_cast<Element>(x % 100);
    else return static_cast<Element>(static_cast<float>(value));
}

template <class Op, class Element>
void check(ddl::cuda_peer& team, std::size_t count, std::size_t offset, std::uint64_t seed) {
    using ours = typename ddl::alias_of<Element>::type;
    using accumulator = ddl::accumulator_t<Op, ours>;
    const Op op{};
    thrust::host_vector<Element> mine(count + offset);
    thrust::host_vector<ours> wanted(count);
    for (std::size_t i = 0; i < count; ++i) {
        const auto value = [&](int rank) { return value_of<ours>(rank, i, seed); };
        accumulator sum = static_cast<accumulator>(value(0));
        for (int rank = 1; rank < team.size(); ++rank) sum = op(sum, static_cast<accumulator>(value(rank)));
        wanted[i] = static_cast<ours>(ddl::finish(op, sum, team.size()));
        mine[offset + i] = std::bit_cast<Element>(value(team.rank()));
    }
    thrust::device_vector<Element> in = mine;
    thrust::device_vector<Element> out(count + offset);
    ddl::require_cuda(cudaMemset(thrust::raw_pointer_cast(out.data()), 0xff, out.size() * sizeof(Element)),
                      "cudaMemset", team.rank(), team.device());  // padding too: tools look at all of it
    const auto part = [&](auto& vector) {
        return std::span<Element>{thrust::raw_pointer_cast(vector.data()) + offset, count};
    };
    const auto same = [&](const thrust::device_vector<Element>& got) {
        const thrust::host_vector<Element> here = got;
        if constexpr (has_index<Element>)  // not its bits: there is padding
            return std::equal(wanted.begin(), wanted.end(), here.begin() + static_cast<std::ptrdiff_t>(offset));
        else return count == 0 || std::memcmp(here.data() + offset, wanted.data(), count * sizeof(Element)) == 0;
    };
    ddl::allreduce<ddl::direct>(team, part(in), part(out), op);
    require(same(out), "beside: other bits than on the host");
    ddl::allreduce(team, part(in), op);
    require(same(in), "in place: other bits than on the host");
}

template <class Op, class Element>
void sweep(ddl::cuda_peer& team) {
    if (team.rank() == 0)
        std::fprintf(stderr, "%s of %s, %d ranks\n", ddl::op_name<Op>(),
                     ddl::element_name<typename ddl::alias_of<Element>::type>(), team.size());
    std::uint64_t seed = 0;
    static const bool few = std::getenv("DDL_TEST_FEW_LENGTHS") != nullptr;  // for tools that take their time
    const std::vector<std::size_t> lengths =
        few ? std::vector<std::size_t>{3, 16'385} : std::vector<std::size_t>{0, 1, 3, 127, 4096, 16'385, 300'001};
    for (const std::size_t count : lengths)
        for (const std::size_t offset : {0, 1}) check<Op, Element>(team, count, offset, ++seed);
}

template <class Op, class... Elements>
void sweep_op(ddl::cuda_peer& team, std::tuple<Elements...>) {
    const auto if_it_means_something = [&]<class Element>() {
        if constexpr (ddl::combines<Op, typename ddl::alias_of<Element>::type>) sweep<Op, Element>(team);
    };
    (if_it_means_something.template operator()<Elements>(), ...);
}

/// A vector on the device, element `i` being `value(i)`.
template <class Element, class Value>
thrust::device_vector<Element> filled(std::size_t count, Value value) {
    thrust::host_vector<Element> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<Element>(static_cast<float>(value(i)));
    return values;
}
template <class Element, class Value>
void require_filled(const thrust::device_vector<Element>& got, Value value, const char* otherwise) {
    const thrust::host_vector<Element> here = got;
    for (std::size_t i = 0; i < here.size(); ++i)
        require(static_cast<float>(here[i]) == static_cast<float>(static_cast<Element>(static_cast<float>(value(i)))),
                otherwise);
}

/// What is not folded into all outputs. Small numbers, as an element holds them, so that accumulated sums are exact.
template <class Element, class Team>
void others(Team& team) {
    const int rank = team.rank();
    const int size = team.size();
    const auto ranks = static_cast<std::size_t>(size);
    const auto value = [](int of, std::size_t i) {
        const auto whole = static_cast<float>((of * 7 + static_cast<int>(i % 11)) % 13);
        return static_cast<float>(static_cast<Element>(whole));
    };
    const auto sum = [&](std::size_t i) {
        float all = 0;
        for (int of = 0; of < size; ++of) all += value(of, i);
        return all;
    };
    const auto ours = [&](std::size_t i) { return value(rank, i); };
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, ranks * 64, std::size_t{300'001}}) {
        const auto own = ddl::block(count, size, rank);
        const int root = size / 2;
        const bool is_root = rank == root;
        const auto vector = filled<Element>(count, ours);
        thrust::device_vector<Element> whole(count);
        thrust::device_vector<Element> part(own.count);

        ddl::reduce(team, vector, whole, ddl::sum{}, root);
        if (is_root) require_filled(whole, sum, "reduce");
        ddl::reduce_scatter(team, vector, part);
        require_filled(
            part, [&](std::size_t i) { return sum(own.first + i); }, "reduce_scatter");
        ddl::all_gather(team, part, whole);
        require_filled(whole, sum, "all_gather");
        whole = vector;
        ddl::broadcast(team, whole, root);
        require_filled(
            whole, [&](std::size_t i) { return value(root, i); }, "broadcast");

        thrust::device_vector<Element> all(is_root ? count * ranks : 0);
        ddl::gather(team, vector, all, root);
        require_filled(
            all, [&](std::size_t i) { return value(static_cast<int>(i / count), i % count); }, "gather");
        thrust::device_vector<Element> back(count);
        ddl::scatter(team, all, back, root);
        require_filled(back, ours, "scatter");

        auto pairs = filled<Element>(count * ranks, ours);
        thrust::device_vector<Element> exchanged(count * ranks);
        const auto from_all = [&](std::size_t i) {
            return value(static_cast<int>(i / count), static_cast<std::size_t>(rank) * count + i % count);
        };
        ddl::all_to_all(team, pairs, exchanged);
        require_filled(exchanged, from_all, "all_to_all");
        ddl::all_to_all(team, pairs);
        require_filled(pairs, from_all, "all_to_all in place");
        if constexpr (requires { team.forget(); }) team.forget();  // before the memory goes
    }
}

/// A program of every op with each of these elements, of the other collectives with them, and of `more(team)`.
template <class... Elements, class More>
int whole_matrix(const char* name, std::tuple<Elements...> elements, More more) {
    return on_a_gpu(name, [&] {
        for (const int ranks : {2, 5})
            run_peers(ranks, [&](ddl::cuda_peer& team) {
                const auto each_op = [&]<class... Ops>(std::tuple<Ops...>) { (sweep_op<Ops>(team, elements), ...); };
                each_op(std::tuple<ddl::sum, ddl::product, ddl::minimum, ddl::maximum, ddl::average, ddl::bit_and,
                                   ddl::bit_or, ddl::bit_xor, ddl::logical_and, ddl::logical_or, ddl::logical_xor,
                                   ddl::minimum_location, ddl::maximum_location, first_of_both>{});
                const auto moved_too = [&]<class Element>() {
                    if constexpr (ddl::combines<ddl::sum, typename ddl::alias_of<Element>::type>) others<Element>(team);
                };
                (moved_too.template operator()<Elements>(), ...);
                more(team);
            });
    });
}
