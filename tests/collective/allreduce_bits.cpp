// SPDX-License-Identifier: Apache-2.0
#include <boost/test/unit_test.hpp>

#include <tuple>

#include "few_ranks.hpp"

namespace {
using patterns = std::tuple<std::uint8_t, std::int64_t, std::byte>;

/// Mostly ones, so that "and" leaves some.
template <class Element>
Element bits(int rank, std::size_t i) {
    return static_cast<Element>(static_cast<unsigned char>(random_bits(rank, i) | random_bits(rank + 20, i)) * 0x101 &
                                0x7fff);
}
}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(bits_are_combined_one_by_one, Element, patterns) {
    const auto value = bits<Element>;
    on_few_ranks<Element>(ddl::bit_and{}, value, folded<std::uint32_t>(value, [](auto a, auto b) { return a & b; }));
    on_few_ranks<Element>(ddl::bit_or{}, value, folded<std::uint32_t>(value, [](auto a, auto b) { return a | b; }));
    on_few_ranks<Element>(ddl::bit_xor{}, value, folded<std::uint32_t>(value, [](auto a, auto b) { return a ^ b; }));
}
