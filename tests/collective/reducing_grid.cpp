// SPDX-License-Identifier: Apache-2.0
// Reductions over grids whose results do not go everywhere, and those of many tensors.
#include <ddl/allreduce.hpp>
#include <ddl/reduce.hpp>
#include <ddl/reduce_scatter.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <list>
#include <span>

#include "grid_of_threads.hpp"
#include "oracle.hpp"

namespace data = boost::unit_test::data;

namespace {

constexpr std::size_t counts[] = {0, 1, 5, 1000, 16'385};

struct first_of_both {  // not commutative
    constexpr int operator()(int left, int) const { return left; }
};

/// Tensors of these lengths, from element 0 of a long vector on.
std::vector<guarded<float>> tensors_of(int rank, const std::vector<std::size_t>& lengths) {
    std::vector<guarded<float>> tensors;
    std::size_t at = 0;
    for (const std::size_t length : lengths) {
        tensors.emplace_back(length, [&](std::size_t i) { return random_value<float>(rank, at + i); });
        at += length;
    }
    return tensors;
}

/// One call for all of them gives the bits of a call for each, in so many launches.
template <class Op>
void together_as_alone(grid_of_threads& team, const std::vector<std::size_t>& lengths, int launches, Op op) {
    auto together = tensors_of(team.rank(), lengths);
    auto alone = tensors_of(team.rank(), lengths);
    const int before = team.launches();
    ddl::allreduce_n(team, together, op);
    require(team.launches() - before == launches, "launches: " + std::to_string(team.launches() - before));
    for (std::size_t t = 0; t < lengths.size(); ++t) {
        ddl::allreduce(team, alone[t], op);
        require_values(
            together[t], [&](std::size_t i) { return alone[t][i]; }, "tensor " + std::to_string(t));
    }
}

}  // namespace

BOOST_DATA_TEST_CASE(reduce, data::make({1, 2, 3, 5}), ranks) {
    grid_of_threads::run(ranks, [](grid_of_threads& team) {
        for (const std::size_t count : counts)
            for (int root = 0; root < team.size(); ++root) {
                const auto expected = sums_of_small_values(team.size(), count);
                const auto sum = [&](std::size_t i) { return expected[i]; };
                const auto ours = [&](std::size_t i) { return small_value(team.rank(), i); };
                const int before = team.launches();
                auto in = small_values<float>(team.rank(), count);
                guarded<float> out{count};
                ddl::reduce(team, in, out, ddl::sum{}, root);
                if (team.rank() == root) require_values(out, sum, "beside");
                else require(out.untouched(), "what is not the root's was written");
                require_values(in, ours, "the input");
                ddl::reduce<ddl::direct>(team, in, ddl::sum{}, root);
                if (team.rank() == root) require_values(in, sum, "in place");
                else require_values(in, ours, "in place, elsewhere");
                require(team.launches() - before == (count == 0 ? 0 : 2), "one launch a call, none for nothing");
            }
    });
}

BOOST_DATA_TEST_CASE(reduce_scatter, data::make({1, 2, 3, 5}), ranks) {
    grid_of_threads::run(ranks, [](grid_of_threads& team) {
        for (const std::size_t count : counts) {
            const auto expected = sums_of_small_values(team.size(), count);
            const auto own = ddl::block(count, team.size(), team.rank());
            auto in = small_values<int>(team.rank(), count);
            guarded<int> out{own.count};
            ddl::reduce_scatter(team, in, out);
            require_values(
                out, [&](std::size_t i) { return expected[own.first + i]; }, "beside");
            ddl::reduce_scatter<ddl::direct>(team, in, first_of_both{});
            for (std::size_t i = 0; i < own.count; ++i)
                require(in[own.first + i] == small_value(0, own.first + i), "in place, in rank order");
            require(in.intact(), "in place, outside of the buffer");
        }
    });
}

BOOST_DATA_TEST_CASE(many_tensors_in_few_launches_have_the_bits_of_a_call_for_each, data::make({1, 2, 3, 5}), ranks) {
    grid_of_threads::run(ranks, [](grid_of_threads& team) {
        together_as_alone(team, {}, 0, ddl::sum{});
        together_as_alone(team, {0, 0}, 0, ddl::sum{});
        together_as_alone(team, {1}, 1, ddl::sum{});
        together_as_alone(team, {0, 5, 0, 20'000, 7, 1}, 1, ddl::average{});
        std::vector<std::size_t> lengths;
        for (std::size_t t = 0; t < 161; ++t) lengths.push_back(t % 7 == 0 ? 0 : 1 + t * t % 301);
        together_as_alone(team, lengths, 1, ddl::maximum{});
        const auto rows = ((std::size_t{24} << 10) / 8 - 1) / (2 + static_cast<std::size_t>(team.size()));
        lengths.assign(2 * rows, 3);
        together_as_alone(team, lengths, 2, ddl::sum{});
        lengths.push_back(2);
        together_as_alone(team, lengths, 3, ddl::sum{});
    });
}

BOOST_AUTO_TEST_CASE(any_range_of_ranges_will_do_and_so_will_a_request) {
    grid_of_threads::run(2, [](grid_of_threads& team) {
        std::list<std::vector<int>> list{{1}, {2, 3}};
        ddl::allreduce_n(team, list, ddl::product{});
        require(list == std::list<std::vector<int>>{{1}, {4, 9}}, "a list of vectors");
        std::vector<int> flat{1, 2, 3, 4};
        ddl::allreduce_n_async(team, std::vector<std::span<int>>{std::span{flat}.first(2), std::span{flat}.last(1)})
            .wait();
        require(flat == std::vector<int>{2, 4, 3, 8}, "views, later");
    });
}

BOOST_AUTO_TEST_CASE(tensors_that_differ_or_are_out_of_reach_are_refused) {
    grid_of_threads::run(2, [](grid_of_threads& team) {
        std::vector<std::vector<int>> tensors{std::vector<int>(50), std::vector<int>(3)};
        tensors[1].resize(team.rank() == 0 ? 3 : 4);
        require_error(ddl::errc::mismatch, "brings tensors of other sizes", [&] { ddl::allreduce_n(team, tensors); });
        std::vector<int> good(3, 1);
        std::vector<std::span<int>> views{good, good};
        if (team.rank() == 1) views[1] = {reinterpret_cast<int*>(std::uintptr_t{64}), 3};
        const auto call = [&] { ddl::allreduce_n(team, views); };
        if (team.rank() == 1) require_error(ddl::errc::invalid_argument, "a tensor is out of reach", call);
        else require_error(ddl::errc::mismatch, "see its own error", call);
        require(team.launches() == 0, "nothing was launched");
        ddl::allreduce_n(team, std::vector<std::span<int>>{good});
        require(good == std::vector<int>(3, 2), "the communicator is as good as before");
    });
}
