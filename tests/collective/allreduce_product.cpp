// SPDX-License-Identifier: Apache-2.0
// not under: thread
// The walks are those of allreduce_sum, which the sanitizers see.
#include <boost/test/unit_test.hpp>

#include <complex>
#include <tuple>

#include "few_ranks.hpp"

namespace {
using integers = std::tuple<signed char, unsigned short, int, std::uint64_t>;
using floating = std::tuple<float, double>;

/// Products of these are exact in `float`.
float small_factor(int rank, std::size_t i) {
    constexpr float factors[] = {1.0F, -2.0F, 0.5F, 3.0F, -0.25F};
    return factors[random_bits(rank, i) % 5];
}
}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(products_of_integers_wrap, Element, integers) {
    const auto value = [](int rank, std::size_t i) { return static_cast<Element>(random_bits(rank, i)); };
    on_few_ranks<Element>(ddl::product{}, value, folded<std::uint64_t>(value, [](auto a, auto b) { return a * b; }));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(floating_values_are_multiplied, Element, floating) {
    on_few_ranks<Element>(ddl::product{}, small_factor,
                          folded<double>(small_factor, [](auto a, auto b) { return a * b; }));
}

BOOST_AUTO_TEST_CASE(complex_numbers_are_multiplied) {
    using element = std::complex<float>;
    const auto value = [](int rank, std::size_t i) {
        return element(static_cast<float>(rank + 1), static_cast<float>(small_value(rank, i) % 3));
    };
    on_few_ranks<element>(ddl::product{}, value, [&](int ranks, std::size_t i) {
        // Gaussian integers, by hand
        int real = 1;
        int imaginary = 0;
        for (int rank = 0; rank < ranks; ++rank) {
            const int c = rank + 1;
            const int d = small_value(rank, i) % 3;
            const int next = real * c - imaginary * d;
            imaginary = real * d + imaginary * c;
            real = next;
        }
        return element(static_cast<float>(real), static_cast<float>(imaginary));
    });
}

BOOST_AUTO_TEST_CASE(averages_are_divided_once_at_the_end) {
    const auto total = folded<std::int64_t>(small_value, [](auto a, auto b) { return a + b; });
    on_few_ranks<float>(ddl::average{}, small_value, [&](int ranks, std::size_t i) {
        return static_cast<float>(total(ranks, i)) / static_cast<float>(ranks);
    });
    on_few_ranks<double>(ddl::average{}, small_value, [&](int ranks, std::size_t i) {
        return static_cast<double>(total(ranks, i)) / static_cast<double>(ranks);
    });
}

BOOST_AUTO_TEST_CASE(averages_of_integers_do_not_overflow_and_are_rounded_toward_zero) {
    const auto narrow = [](int rank, std::size_t i) {
        return static_cast<std::int8_t>(random_bits(rank, i) % 4 + 124);
    };
    const auto sum_of = [](auto value) { return folded<std::int64_t>(value, [](auto a, auto b) { return a + b; }); };
    on_few_ranks<std::int8_t>(ddl::average{}, narrow,
                              [&](int ranks, std::size_t i) { return sum_of(narrow)(ranks, i) / ranks; });
    on_few_ranks<int>(ddl::average{}, small_value,
                      [&](int ranks, std::size_t i) { return sum_of(small_value)(ranks, i) / ranks; });
    const auto large = [](int rank, std::size_t i) { return 0xffff'ffffU - random_bits(rank, i) % 10; };
    on_few_ranks<unsigned>(ddl::average{}, large, [&](int ranks, std::size_t i) {
        return static_cast<unsigned>(sum_of(large)(ranks, i) / ranks);
    });
}
