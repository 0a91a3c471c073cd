// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/element/half.hpp>
#include <ddl/kernel/bfloat16_vectors.hpp>
#include <ddl/kernel/both.hpp>
#include <ddl/kernel/half_vectors.hpp>
#include <ddl/kernel/widest.hpp>

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace ddl::kernel {

/// Several values of `Narrow` fill a word of 32 bits, and each is widened to the `Wide` of a word: an element of ours of 8 or
/// 16 bits and `float`. A user's element that has `code_of` and `value_of` is such a one too.
template <class Narrow, class Wide>
concept packs = std::is_same_v<Wide, float> && sizeof(Narrow) < sizeof(float) &&
                std::endian::native == std::endian::little && requires {
                    { Narrow::code_of(Wide{}) } -> std::same_as<std::uint32_t>;
                    { Narrow::value_of(std::uint32_t{}) } -> std::same_as<Wide>;
                };

/// Words that a loop over packed elements takes at a time: the widest vector, or two where a word holds two elements, for a
/// loop of 16 is unrolled before compilers look for vectors in it.
template <class Narrow>
inline constexpr std::size_t packed_words = sizeof(Narrow) == 2 && !std::is_same_v<Narrow, half> ? 32 : 16;

/// Elements in a word.
template <class Narrow>
inline constexpr std::size_t places = sizeof(float) / sizeof(Narrow);

/// Elements in a block.
template <class Narrow>
inline constexpr std::size_t packed_block = packed_words<Narrow> * places<Narrow>;

/// How the wide values of a block lie in memory: as their elements do, or those of a word's first element before those of
/// its second. The latter needs no shuffle, and is for what stays inside a loop.
enum class lie : bool { in_order, in_planes };

/// Calls `act(0)` to `act(Count - 1)`, each with a constant, as `unrolled` does, but inlined before all else: of the arrays of
/// grids g++ would then warn that they may be uninitialized.
template <std::size_t Count, class Act>
[[gnu::always_inline]] inline void for_each_of(const Act& act) noexcept {
    const auto all = [&act]<std::size_t... Step>(std::index_sequence<Step...>) __attribute__((always_inline)) {
        (act(std::integral_constant<std::size_t, Step>{}), ...);
    };
    all(std::make_index_sequence<Count>{});
}

/// The wide values of one block. A loop over words, not over elements: all that it holds has 32 bits, so that compilers find
/// vectors in it, and no lane has to change its place.
template <class Narrow, lie How>
[[gnu::always_inline]] inline void widen_block(const Narrow* from, float* to) noexcept {
    constexpr std::size_t bits = 8 * sizeof(Narrow);
    constexpr std::uint32_t mask = (std::uint32_t{1} << bits) - 1;
    std::uint32_t words[packed_words<Narrow>];
    std::memcpy(words, from, sizeof words);
    float planes[packed_block<Narrow>];
    for_each_of<places<Narrow>>([&](auto place) {
        for (std::size_t word = 0; word < packed_words<Narrow>; ++word)
            planes[place * packed_words<Narrow> + word] = Narrow::value_of((words[word] >> (place * bits)) & mask);
    });
    if constexpr (How == lie::in_planes) std::memcpy(to, planes, sizeof planes);
    else
        for (std::size_t word = 0; word < packed_words<Narrow>; ++word)
            for_each_of<places<Narrow>>(
                [&](auto place) { to[word * places<Narrow> + place] = planes[place * packed_words<Narrow> + word]; });
}

/// And back, rounded, to one place or to both.
template <class Narrow, lie How, class Places>
[[gnu::always_inline]] inline void round_block(const float* from, Places to) noexcept {
    constexpr std::size_t bits = 8 * sizeof(Narrow);
    float planes[packed_block<Narrow>];
    if constexpr (How == lie::in_planes) std::memcpy(planes, from, sizeof planes);
    else
        for (std::size_t word = 0; word < packed_words<Narrow>; ++word)
            for_each_of<places<Narrow>>(
                [&](auto place) { planes[place * packed_words<Narrow> + word] = from[word * places<Narrow> + place]; });
    std::uint32_t words[packed_words<Narrow>] = {};
    for_each_of<places<Narrow>>([&](auto place) {
        for (std::size_t word = 0; word < packed_words<Narrow>; ++word)
            words[word] |= Narrow::code_of(planes[place * packed_words<Narrow> + word]) << (place * bits);
    });
    put_bytes(words, to);
}

/// Fetches the wide values of a block from where they lie, packed or wide, and puts them there.
template <class Narrow, lie How>
struct packed_values {
    float values[packed_block<Narrow>];

    packed_values() noexcept {}
    [[gnu::always_inline]] explicit packed_values(const float* from) noexcept {
        std::memcpy(values, from, sizeof values);
    }
    [[gnu::always_inline]] explicit packed_values(const Narrow* from) noexcept {
        widen_block<Narrow, How>(from, values);
    }
    template <class Places>
    [[gnu::always_inline]] void put(Places to) const noexcept {
        if constexpr (std::is_same_v<result_t<Places>, float>) put_bytes(values, to);
        else round_block<Narrow, How>(values, to);
    }
};

/// Halves that a loop takes at a time: as many as an instruction converts, for they stay in registers. Not so where clang compiles
/// for machines that it does not know: it unrolls so short a loop before it looks for vectors in it.
template <vectors Which>
inline constexpr std::size_t halves_at_once =
#if defined(__clang__) && !defined(__AVX2__)
    packed_block<half>;
#else
    half_lanes<Which>;
#endif

/// So many halves, or as many wide values.
template <vectors Which>
struct half_values {
    float values[halves_at_once<Which>];

    [[gnu::always_inline]] explicit half_values(const float* from) noexcept {
        std::memcpy(values, from, sizeof values);
    }
    [[gnu::always_inline]] explicit half_values(const half* from) noexcept {
        for (std::size_t i = 0; i < halves_at_once<Which>; i += half_lanes<Which>)
            half_vectors<half_lanes<Which>>::widen(from + i, values + i);
    }
};

/// Sets so many elements of `to` to `value(from...)`, converted by instructions. What is wide lies in order.
template <vectors Which, class Places, class Value, class... From>
[[gnu::always_inline]] inline void map_halves(Places to, const Value& value, const From*... from) {
    alignas(64) float results[halves_at_once<Which>];
    const auto set = [&results, &value](const auto&... wide) {
        for (std::size_t i = 0; i < halves_at_once<Which>; ++i) results[i] = value(wide.values[i]...);
    };
    set(half_values<Which>(from)...);
    if constexpr (std::is_same_v<result_t<Places>, half>) {
        for (std::size_t i = 0; i < halves_at_once<Which>; i += half_lanes<Which>) {
            typename half_vectors<half_lanes<Which>>::narrow codes;
            half_vectors<half_lanes<Which>>::round(results + i, codes);
            put_bytes(codes, to + i);
        }
    } else {
        put_bytes(results, to);
    }
}

/// A block of elements of 16 bits, two a word, where it lies. It is read a word at a time, and never copied: a copy may be
/// made of narrower vectors than the loop loads, which then waits for its stores.
template <class Narrow>
struct pairs {
    const Narrow* from;

    [[gnu::always_inline]] std::uint32_t word(std::size_t at) const noexcept {
        std::uint32_t bits;
        std::memcpy(&bits, from + 2 * at, sizeof bits);
        return bits;
    }
    [[gnu::always_inline]] float first(std::size_t at) const noexcept { return Narrow::value_of(word(at) & 0xffffu); }
    [[gnu::always_inline]] float second(std::size_t at) const noexcept { return Narrow::value_of(word(at) >> 16); }
};

/// The same of a block of wide values.
template <class Narrow, lie How>
struct wide_pairs {
    const float* from;

    [[gnu::always_inline]] float first(std::size_t at) const noexcept {
        return from[How == lie::in_planes ? at : 2 * at];
    }
    [[gnu::always_inline]] float second(std::size_t at) const noexcept {
        return from[How == lie::in_planes ? packed_words<Narrow> + at : 2 * at + 1];
    }
};

/// Sets a block of `to` to `value(from...)`, in one loop over words. `to` may be one of the sources, or both of two.
template <class Narrow, lie How, class Places, class Value, class... From>
[[gnu::always_inline]] inline void map_pairs(Places to, const Value& value, const From*... from) {
    using To = result_t<Places>;
    std::conditional_t<std::is_same_v<To, Narrow>, std::uint32_t, float>
        results[2 * packed_words<Narrow> * sizeof(To) / 4];
    [&](const auto... operands) {
        for (std::size_t at = 0; at < packed_words<Narrow>; ++at) {
            const float first = value(operands.first(at)...), second = value(operands.second(at)...);
            if constexpr (std::is_same_v<To, Narrow>)
                results[at] = Narrow::code_of(first) | Narrow::code_of(second) << 16;
            else {
                results[How == lie::in_planes ? at : 2 * at] = first;
                results[How == lie::in_planes ? packed_words<Narrow> + at : 2 * at + 1] = second;
            }
        }
    }(std::conditional_t<std::is_same_v<From, Narrow>, pairs<Narrow>, wide_pairs<Narrow, How>>{from}...);
    put_bytes(results, to);
}

/// The same by the instruction of `Vectors` that rounds to bfloat16.
template <class Vectors, lie How, class Places, class Value, class... From>
[[gnu::always_inline]] inline void round_pairs(Places to, const Value& value, const From*... from) {
    constexpr std::size_t vectors = packed_words<bfloat16> / Vectors::words;
    typename Vectors::codes results[vectors];
    // inlined early: g++ looks but once whether a function for other processors may be inlined, where it is called
    const auto set = [&](const auto... operands) __attribute__((always_inline)) {
        bool right = true;
        for_each_of<vectors>([&](auto nth) __attribute__((always_inline)) {
            const std::size_t at = nth * Vectors::words;
            alignas(64) float firsts[Vectors::words], seconds[Vectors::words];
#ifndef __CUDACC__
#pragma GCC unroll 1  // before there are vectors in it
#endif
            for (std::size_t i = 0; i < Vectors::words; ++i) {
                firsts[i] = value(operands.first(at + i)...);
                seconds[i] = value(operands.second(at + i)...);
            }
            typename Vectors::codes words;
            right &= Vectors::set_words(firsts, seconds, words);
            results[nth] = words;
        });
        return right;
    };
    const bool are_right =
        set(std::conditional_t<std::is_same_v<From, bfloat16>, pairs<bfloat16>, wide_pairs<bfloat16, How>>{from}...);
    if (!are_right) return map_pairs<bfloat16, How>(to, value, from...);
    for_each_of<vectors>([&](auto nth) { put_bytes(results[nth], to + nth * places<bfloat16> * Vectors::words); });
}

/// Elements that a loop takes, and those behind them that its caller takes next. What lies beyond may be another core's to write.
struct stretch {
    std::size_t count;
    std::size_t next;
    constexpr stretch(std::size_t elements, std::size_t then = 0) noexcept : count{elements}, next{then} {}
};

/// Asks for the block that a loop reads a kilobyte after that of `length` elements at element `at`. Blocks take so many operations
/// that a processor which looks ahead by itself sees few of the lines to come.
template <class From>
[[gnu::always_inline]] inline void ask_ahead(const From* from, std::size_t at, std::size_t length,
                                             const stretch& all) noexcept {
    constexpr std::size_t ahead = 1024 / sizeof(From);
    if (at + ahead + length > all.count + all.next) return;
    const auto first = reinterpret_cast<std::uintptr_t>(from + at) + 1024;  // of a tile it is beyond the end
    for (std::size_t line = 0; line < length * sizeof(From); line += 64)
        __builtin_prefetch(reinterpret_cast<const void*>(first + line));
}

/// Sets the values of `to`, a place or both of two, to `value(from...)` in whole blocks. All are packed or wide; `to` may be one
/// of the sources.
template <class Narrow, lie How, vectors Which, class Places, class Value, class... From>
[[gnu::always_inline]] inline void map_packed(Places to, stretch length, const Value& value, const From*... from) {
    using To = result_t<Places>;
    using block_of = packed_values<Narrow, How>;
    if constexpr (std::is_same_v<To, bfloat16> && bfloat16_vectors<Which>::round)
        if (bfloat16_vectors<Which>::are_here()) {
            for (std::size_t i = 0; i < length.count; i += packed_block<bfloat16>) {
                (ask_ahead(from, i, packed_block<bfloat16>, length), ...);
                round_pairs<bfloat16_vectors<Which>, How>(to + i, value, from + i...);
            }
            return;
        }
    for (std::size_t i = 0; i < length.count; i += packed_block<Narrow>) {
        (ask_ahead(from, i, packed_block<Narrow>, length), ...);
        if constexpr (std::is_same_v<Narrow, half> && half_lanes<Which> > 0) {
            for (std::size_t at = i; at < i + packed_block<half>; at += halves_at_once<Which>)
                map_halves<Which>(to + at, value, from + at...);
        } else if constexpr (places<Narrow> == 2) {
            map_pairs<Narrow, How>(to + i, value, from + i...);
        } else {
            block_of results;
            const auto set = [&results, &value](const auto&... wide) {
                for (std::size_t at = 0; at < packed_block<Narrow>; ++at)
                    results.values[at] = value(wide.values[at]...);
            };
            set(block_of(from + i)...);
            results.put(to + i);
        }
    }
}

/// So few elements are mapped one by one as soon as a block that they fill, which waits for what was copied to it.
template <class Narrow>
inline constexpr std::size_t few_packed =
#if defined(__F16C__) || defined(__aarch64__)
    std::is_same_v<Narrow, half> ? packed_block<half> :
#endif
    std::is_same_v<Narrow, bfloat16> ? 24
                                     : 6;

/// A block that `count` elements begin. The first stands for those that are missing, for an op may not be meant for others.
template <class Narrow>
struct filled_block {
    Narrow values[packed_block<Narrow>];
    [[gnu::always_inline]] filled_block(const Narrow* from, std::size_t count) noexcept {
        for (Narrow& value : values) value = *from;
        std::memcpy(values, from, count * sizeof(Narrow));
    }
};

/// Sets `count` values of `to`, fewer than a block, to `value(from...)`.
template <lie How, vectors Which, class Places, class Value, class Narrow, class... More>
[[gnu::always_inline]] inline void map_filled(Places to, std::size_t count, const Value& value, const Narrow* from,
                                              const More*... more) {
    Narrow results[packed_block<Narrow>];
    map_packed<Narrow, How, Which>(results, packed_block<Narrow>, value, filled_block<Narrow>{from, count}.values,
                                   filled_block<More>{more, count}.values...);
    put_bytes(results, to, count * sizeof(Narrow));
}

}  // namespace ddl::kernel
