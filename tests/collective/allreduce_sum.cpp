// SPDX-License-Identifier: Apache-2.0
#include <boost/test/unit_test.hpp>

#include <complex>
#include <tuple>

#include "few_ranks.hpp"

namespace {
using floating = std::tuple<float, double, long double, std::complex<float>>;
using integers = std::tuple<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, std::uint32_t,
                            std::int64_t, std::uint64_t>;
}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(integers_wrap, Element, integers) {
    const auto value = [](int rank, std::size_t i) { return static_cast<Element>(random_bits(rank, i)); };
    on_few_ranks<Element>(ddl::sum{}, value, folded<std::uint64_t>(value, [](auto a, auto b) { return a + b; }));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(floating_values_are_added, Element, floating) {
    const auto value = [](int rank, std::size_t i) {
        return static_cast<Element>(static_cast<float>(small_value(rank, i)));
    };
    on_few_ranks<Element>(ddl::sum{}, value, [](int ranks, std::size_t i) {
        float all = 0;
        for (int rank = 0; rank < ranks; ++rank) all += static_cast<float>(small_value(rank, i));
        return Element(all);
    });
}

BOOST_AUTO_TEST_CASE(both_parts_of_a_complex_number_are_added) {
    using element = std::complex<double>;
    on_few_ranks<element>(
        ddl::sum{}, [](int rank, std::size_t i) { return element(small_value(rank, i), rank); },
        [](int ranks, std::size_t i) {
            element all;
            for (int rank = 0; rank < ranks; ++rank) all += element(small_value(rank, i), rank);
            return all;
        });
}

BOOST_AUTO_TEST_CASE(a_sum_of_any_doubles_is_near_the_exact_one) {
    const auto value = [](int rank, std::size_t i) { return random_value<double>(rank, i); };
    const auto near = [&](auto& ranks) {
        constexpr std::size_t count = 3000;
        guarded<double> data{count, [&](std::size_t i) { return value(ranks.rank(), i); }};
        ddl::allreduce(ranks, data);
        for (std::size_t i = 0; i < count; ++i) {
            long double exact = 0;
            long double magnitude = 0;
            for (int rank = 0; rank < ranks.size(); ++rank) {
                exact += value(rank, i);
                magnitude += value(rank, i) < 0 ? -value(rank, i) : value(rank, i);
            }
            // each of the p - 1 additions is off by half a unit in the last place of what it makes
            const long double bound = static_cast<long double>(ranks.size() - 1) * 0x1p-53L * magnitude;
            const long double off = static_cast<long double>(data[i]) - exact;
            require(-bound <= off && off <= bound, "further than p - 1 roundings from the exact sum");
        }
    };
    places::threads::run(7, near);
    places::messages<1>::run(7, near);
}
