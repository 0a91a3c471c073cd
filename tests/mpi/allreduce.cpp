// SPDX-License-Identifier: Apache-2.0
// ranks: 1 2 3 4 5 7 8
#include <ddl/allreduce.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "world.hpp"

// Random calls, the same on every rank and in every run of as many ranks, against MPI_Allreduce.

using mpi_for_all_cases = mpi_with_threads<MPI_THREAD_MULTIPLE>;
BOOST_TEST_GLOBAL_FIXTURE(mpi_for_all_cases);

namespace {
struct shot {
    std::size_t count;
    std::size_t offset;  // elements between the start of an allocation and the first that takes part
    bool in_place;
};

template <class Op>
MPI_Op counterpart() {
    if constexpr (std::is_same_v<Op, ddl::sum>) return MPI_SUM;
    else if constexpr (std::is_same_v<Op, ddl::maximum>) return MPI_MAX;
    else if constexpr (std::is_same_v<Op, ddl::bit_xor>) return MPI_BXOR;
    else if constexpr (std::is_same_v<Op, ddl::product>) return MPI_PROD;
}
template <class Element>
MPI_Datatype type_of() {
    if constexpr (std::is_same_v<Element, std::uint32_t>) return MPI_UINT32_T;
    else if constexpr (std::is_same_v<Element, std::uint8_t>) return MPI_UINT8_T;
    else if constexpr (std::is_same_v<Element, std::uint64_t>) return MPI_UINT64_T;
    else return MPI_DOUBLE;
}

/// Whether `got` is what MPI makes of the same values. Sums of `float` may differ from it, which sums `double`, by what
/// `size` roundings of the largest partial sum can do.
template <class Op, class Element>
bool matches(const std::vector<Element>& in, std::span<const Element> got, int size) {
    using exact = std::conditional_t<std::is_floating_point_v<Element>, double, Element>;
    const std::vector<exact> values(in.begin(), in.end());
    std::vector<exact> expected(in.size());
    const auto count = static_cast<int>(in.size());
    MPI_Allreduce(values.data(), expected.data(), count, type_of<exact>(), counterpart<Op>(), MPI_COMM_WORLD);
    if constexpr (std::is_same_v<Element, float> && std::is_same_v<Op, ddl::sum>) {
        std::vector<double> magnitudes(in.size());
        for (std::size_t i = 0; i < in.size(); ++i) magnitudes[i] = std::abs(values[i]);
        MPI_Allreduce(MPI_IN_PLACE, magnitudes.data(), count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        const double bound = static_cast<double>(std::numeric_limits<float>::epsilon()) * size;
        for (std::size_t i = 0; i < in.size(); ++i)
            if (!(std::abs(static_cast<double>(got[i]) - expected[i]) <= bound * magnitudes[i])) return false;
        return true;
    } else {
        return std::equal(got.begin(), got.end(), expected.begin(),
                          [](Element a, exact b) { return static_cast<exact>(a) == b; });
    }
}

/// One call, with a guard on either side of the result.
template <class Schedule, class Op, class Element, class Transport>
void fire(Transport& ranks, const shot& what, const std::string& words) {
    const std::vector<Element> in = values_of<Element>(ranks.rank() + static_cast<int>(what.count), what.count);
    const auto guard = static_cast<Element>(77);
    std::vector<Element> from(what.count + what.offset, guard);
    std::copy(in.begin(), in.end(), from.begin() + static_cast<std::ptrdiff_t>(what.offset));
    std::vector<Element> to(what.count + what.offset + 1, guard);
    if (what.in_place) std::copy(from.begin(), from.end(), to.begin());
    const std::span<const Element> source{from.data() + what.offset, what.count};
    const std::span<Element> result{to.data() + what.offset, what.count};
    if (what.in_place) ddl::allreduce<Schedule>(ranks, result, Op{});
    else ddl::allreduce<Schedule>(ranks, source, result, Op{});
    BOOST_TEST((matches<Op, Element>(in, result, ranks.size())), words);
    BOOST_TEST(same_bits_everywhere<Element>(MPI_COMM_WORLD, result), words);
    BOOST_TEST(std::equal(source.begin(), source.end(), in.begin()), "the input of " << words);
    BOOST_TEST((to.back() == guard && std::all_of(to.begin(), to.begin() + static_cast<std::ptrdiff_t>(what.offset),
                                                  [&](Element each) { return each == guard; })),
               words);
}

template <class Transport>
struct way {
    const char* name;
    void (*go)(Transport&, const shot&, const std::string&);
};
template <class Transport, class Schedule, class Op, class Element>
constexpr way<Transport> as(const char* name) {
    return {name, fire<Schedule, Op, Element, Transport>};
}

template <class T>
constexpr way<T> every_transport[] = {
    as<T, ddl::tuned, ddl::sum, float>("tuned sum of float"),
    as<T, ddl::tuned, ddl::sum, std::uint32_t>("tuned sum of uint32"),
    as<T, ddl::tuned, ddl::maximum, double>("tuned maximum of double"),
    as<T, ddl::tuned, ddl::bit_xor, std::uint8_t>("tuned bit_xor of uint8"),
    as<T, ddl::direct, ddl::sum, float>("direct sum of float"),
    as<T, ddl::ring, ddl::sum, float>("ring sum of float"),
    as<T, ddl::multi_ring<2>, ddl::sum, std::uint32_t>("multi_ring<2> sum of uint32"),
    as<T, ddl::recursive_doubling, ddl::sum, float>("recursive_doubling sum of float"),
    as<T, ddl::recursive_halving, ddl::sum, std::uint32_t>("recursive_halving sum of uint32"),
    as<T, ddl::tree, ddl::product, std::uint64_t>("tree product of uint64"),
    as<T, ddl::hierarchical<ddl::direct, ddl::ring>, ddl::sum, float>("hierarchical<direct, ring> sum of float"),
    as<T, ddl::hierarchical<ddl::ring, ddl::recursive_halving>, ddl::sum, std::uint32_t>(
        "hierarchical<ring, recursive_halving> sum of uint32"),
};

/// Lengths at which something changes are as likely as any others.
std::size_t random_count(std::mt19937& random, int size) {
    const auto below = [&](std::size_t end) { return random() % end; };
    const auto ranks = static_cast<std::size_t>(size);
    switch (random() % 8) {
        case 0: return below(3);
        case 1: return ranks - 1 + below(3);
        case 2: return ranks * below(40) + below(2);
        case 3: return below(2048);
        case 4: return (std::size_t{1024} << below(6)) - 1 + below(3);  // of 1, 4 or 8 bytes: slots, segments, windows
        case 5: return below(20'000);
        case 6: return below(200'000);
        default: return 65'536 * (1 + below(5)) - 1 + below(3);
    }
}

template <class Transport, std::size_t Ways>
void fire_at_random(std::vector<Transport>& transports, const way<Transport> (&ways)[Ways], int shots) {
    std::mt19937 random{static_cast<unsigned>(1000 + world_size())};
    for (int i = 0; i < shots; ++i) {
        const std::size_t target = random() % transports.size();
        const auto& chosen = ways[random() % Ways];
        const shot what{random_count(random, world_size()), random() % 4, random() % 2 == 0};
        const std::string words = std::string(Transport::name) + " " + std::to_string(target) + ": " + chosen.name +
                                  ", " + std::to_string(what.count) + " elements, offset " +
                                  std::to_string(what.offset) + (what.in_place ? ", in place" : "");
        chosen.go(transports[target], what, words);
    }
}
int shots_for(int size) { return size <= 4 ? 400 : 150; }
}  // namespace

BOOST_AUTO_TEST_CASE(over_mpi_it_is_what_mpi_computes) {
    std::vector<ddl::mpi> transports;
    transports.emplace_back(MPI_COMM_WORLD, patient);
    fire_at_random(transports, every_transport<ddl::mpi>, shots_for(world_size()));
}

BOOST_AUTO_TEST_CASE(over_a_cluster_of_nodes_of_any_size_too) {
    std::vector<ddl::cluster> transports;
    for (const int most : {1, 2, 3, 0}) transports.emplace_back(MPI_COMM_WORLD, ddl::ranks_per_node{most}, patient);
    fire_at_random(transports, every_transport<ddl::cluster>, shots_for(world_size()));
}
