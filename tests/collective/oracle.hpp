// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "guarded.hpp"
#include "require.hpp"

/// 64 random bits for element `i` of `rank`: the same in every run, others on every rank.
constexpr std::uint64_t random_bits(int rank, std::size_t i) noexcept {
    std::uint64_t x = (static_cast<std::uint64_t>(rank) + 1) * 0x9e37'79b9'7f4a'7c15U + i * 0xbf58'476d'1ce4'e5b9U;
    x = (x ^ (x >> 30)) * 0xbf58'476d'1ce4'e5b9U;
    x = (x ^ (x >> 27)) * 0x94d0'49bb'1331'11ebU;
    return x ^ (x >> 31);
}

/// A small whole number, from -100 to 100: sums of those are exact in `float` and in 64 bits, whatever their order.
constexpr int small_value(int rank, std::size_t i) noexcept {
    return static_cast<int>(random_bits(rank, i) % 201) - 100;
}

/// A number from -1 to 1 with all of its fraction bits in use.
template <class Float>
Float random_value(int rank, std::size_t i) noexcept {
    return static_cast<Float>(static_cast<double>(random_bits(rank, i) >> 11) / static_cast<double>(1ULL << 52) - 1);
}

/// A number from -1 to 1 of any floating type, and the sum of those of all ranks: in rank order, in `float`; and rounded once.
template <class Element>
Element random_element(int rank, std::size_t i) noexcept {
    return static_cast<Element>(random_value<float>(rank, i));
}
template <class Element>
float float_sum_in_rank_order(int ranks, std::size_t i) noexcept {
    float sum = static_cast<float>(random_element<Element>(0, i));
    for (int rank = 1; rank < ranks; ++rank) sum += static_cast<float>(random_element<Element>(rank, i));
    return sum;
}
template <class Element>
Element sum_in_rank_order(int ranks, std::size_t i) noexcept {
    return static_cast<Element>(float_sum_in_rank_order<Element>(ranks, i));
}

/// What rank after rank would make of the small values: the sum of each element, in 64 bits.
inline std::vector<std::int64_t> sums_of_small_values(int ranks, std::size_t count) {
    std::vector<std::int64_t> sums(count);
    for (int rank = 0; rank < ranks; ++rank)
        for (std::size_t i = 0; i < count; ++i) sums[i] += small_value(rank, i);
    return sums;
}

template <class Element>
guarded<Element> small_values(int rank, std::size_t count) {
    return {count, [rank](std::size_t i) { return small_value(rank, i); }};
}

/// What an all-to-all of `each` small values for every rank gives to `rank`.
inline auto exchanged_values(int rank, std::size_t each) {
    return [first = static_cast<std::size_t>(rank) * each, each](std::size_t i) {
        return small_value(static_cast<int>(i / each), first + i % each);
    };
}

/// `got[i]` must have the bits of `wanted(i)` for all `i`.
template <class Element, class Wanted>
void require_bits(const guarded<Element>& got, Wanted wanted, const std::string& otherwise) {
    for (std::size_t i = 0; i < got.size(); ++i) {
        const Element value = wanted(i);
        require(std::memcmp(&got[i], &value, sizeof value) == 0, otherwise + ": element " + std::to_string(i));
    }
}

/// `got[i]` must be `wanted(i)` for all `i`, and nothing around `got` may have changed.
template <class Element, class Wanted>
void require_values(const guarded<Element>& got, Wanted wanted, const std::string& otherwise) {
    for (std::size_t i = 0; i < got.size(); ++i)
        if (!(got[i] == static_cast<Element>(wanted(i)))) {
            std::string words = otherwise + ": element " + std::to_string(i) + " of " + std::to_string(got.size());
            using number = ddl::wide_t<Element>;  // there are no words for a half
            if constexpr (std::is_arithmetic_v<Element>)
                words += " is " + std::to_string(number(got[i])) + ", not " + std::to_string(number(wanted(i)));
            throw std::runtime_error(words);
        }
    require(got.intact(), otherwise + ": something was written outside of the buffer");
}
