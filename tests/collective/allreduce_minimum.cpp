// SPDX-License-Identifier: Apache-2.0
// not under: address thread
// The walks are those of allreduce_sum, which the sanitizers see.
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "few_ranks.hpp"

namespace {
using elements = std::tuple<float, double, std::int8_t, std::uint16_t, std::int32_t, std::uint64_t>;

/// Every value of a type, often equal ones.
template <class Element>
Element any_value(int rank, std::size_t i) {
    if (i % 3 == 0) return static_cast<Element>(random_bits(rank, i) % 5);
    if constexpr (std::is_floating_point_v<Element>) return random_value<Element>(rank, i);
    else return static_cast<Element>(random_bits(rank, i));
}
}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(the_smallest_and_the_largest_are_found, Element, elements) {
    const auto value = any_value<Element>;
    on_few_ranks<Element>(ddl::minimum{}, value, folded<Element>(value, [](auto a, auto b) { return std::min(a, b); }));
    on_few_ranks<Element>(ddl::maximum{}, value, folded<Element>(value, [](auto a, auto b) { return std::max(a, b); }));
}

BOOST_AUTO_TEST_CASE(a_nan_wins_whichever_rank_holds_it) {
    const auto check = [](auto op, auto& ranks) {
        for (const std::size_t count : {std::size_t{5}, std::size_t{3000}})
            for (int holder = 0; holder < ranks.size(); ++holder) {
                std::vector<float> data(count, static_cast<float>(ranks.rank()));
                if (ranks.rank() == holder) data[count - 2] = std::numeric_limits<float>::quiet_NaN();
                ddl::allreduce(ranks, data, op);
                require(std::isnan(data[count - 2]), "the NaN of rank " + std::to_string(holder) + " was lost");
                require(!std::isnan(data[count - 1]), "it spread to where it was not");
            }
    };
    const auto body = [&](auto& ranks) {
        check(ddl::minimum{}, ranks);
        check(ddl::maximum{}, ranks);
    };
    places::threads::run(3, body);
    places::processes::run(3, body);
    places::messages<1>::run(4, body);
}

BOOST_AUTO_TEST_CASE(the_place_of_the_extreme_is_found) {
    using element = ddl::located<float>;
    const auto value = [](int rank, std::size_t i) {
        return element{static_cast<float>(random_bits(rank, i) % 4), 100 * rank + static_cast<int>(i % 100)};
    };
    const auto search = [&](auto better) {
        return [=](int ranks, std::size_t i) {
            element best = value(0, i);
            for (int rank = 1; rank < ranks; ++rank)  // equal values: the lowest index, which is the lowest rank's
                if (better(value(rank, i).value, best.value)) best = value(rank, i);
            return best;
        };
    };
    on_few_ranks<element>(ddl::minimum_location{}, value, search([](float a, float b) { return a < b; }));
    on_few_ranks<element>(ddl::maximum_location{}, value, search([](float a, float b) { return a > b; }));
}
