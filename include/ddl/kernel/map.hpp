// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/kernel/both.hpp>
#include <ddl/kernel/copy.hpp>
#include <ddl/kernel/packed.hpp>
#include <ddl/kernel/widest.hpp>

#include <cstddef>
#include <cstring>
#include <type_traits>

namespace ddl::kernel {

/// Elements that a host loop takes at a time: a count known to the compiler is what `-O2` vectorises.
inline constexpr std::size_t block = 64;

/// Below as many elements a choice of vectors costs more than it brings.
inline constexpr std::size_t worth_a_choice = 2 * block;

/// Whether a result takes the place of a value that nobody asked, or of an operand of what makes it. Of two places one can be
/// an operand, or each.
enum class target : unsigned char { overwritten, first_operand, last_operand, operands };

/// Sets element `i` of `to` to `value(from[i]...)`, with `to[i]` as the first or the last operand if it is one, for `count`
/// elements of ranges that do not overlap.
template <target Target, class To, class Value, class... From>
constexpr void map(To* __restrict to, std::size_t count, const Value& value, const From* __restrict... from) {
    for (std::size_t i = 0; i < count; ++i)
        if constexpr (Target == target::overwritten) to[i] = static_cast<To>(value(from[i]...));
        else if constexpr (Target == target::first_operand) to[i] = static_cast<To>(value(to[i], from[i]...));
        else to[i] = static_cast<To>(value(from[i]..., to[i]));
}

/// The same with the result at `also`, too: any other range, or that of the last operand.
template <target Target, class To, class Value, class... From>
constexpr void map_both(To* __restrict to, To* __restrict also, std::size_t count, const Value& value,
                        const From* __restrict... from) {
    for (std::size_t i = 0; i < count; ++i) {
        if constexpr (Target == target::overwritten) to[i] = static_cast<To>(value(from[i]...));
        else if constexpr (Target == target::first_operand) to[i] = static_cast<To>(value(to[i], from[i]...));
        else if constexpr (Target == target::last_operand) to[i] = static_cast<To>(value(from[i]..., to[i]));
        else to[i] = static_cast<To>(value(to[i], also[i]));
        also[i] = to[i];
    }
}
template <target Target, class To, class Value, class... From>
constexpr void map(both<To> to, std::size_t count, const Value& value, const From*... from) {
    if constexpr (std::is_arithmetic_v<To>) {
        map_both<Target>(to.first, to.second, count, value, from...);
    } else {  // compilers find vectors in a loop over objects only if it stores to one place
        if constexpr (Target == target::operands)
            map<target::first_operand>(to.first, count, value, operand_at(to.second));
        else map<Target>(to.first, count, value, from...);
        if (!std::is_constant_evaluated()) std::memcpy(static_cast<void*>(to.second), to.first, count * sizeof(To));
        else
            for (std::size_t i = 0; i < count; ++i) put(to.first[i], to.second + i);
    }
}

/// The same for fewer elements than a block. `g++ -O2` vectorises no count that it does not know.
template <target Target, class Places, class Value, class... From>
constexpr void map_few(Places to, std::size_t count, const Value& value, const From*... from) {
#ifndef __clang__
    constexpr std::size_t step = 16;
    if (count >= step) {
        const std::size_t whole = count / step * step;
        for (std::size_t i = 0; i < whole; i += step) map<Target>(to + i, step, value, from + i...);
        return map<Target>(to + whole, count - whole, value, from + whole...);
    }
#endif
    map<Target>(to, count, value, from...);
}

/// What is packed where values of `Element` meet as `Accumulator`; `float`, which stands for nothing, if they meet as they are.
template <class Element, class Accumulator>
using packed_as = std::conditional_t<packs<Element, Accumulator>, Element, float>;

/// Whether a loop becomes part of its caller, or is called.
enum class code : bool { anywhere, out_of_line };

/// `map_blocks` of what a compiler may fuse: no copy of its code is made, so that an operand gives the same bits whoever calls. `to`
/// is no operand's place, unless it is on every rank.
template <class Narrow, lie How, target Target, class To, class Value, class... From>
#if defined(__clang__)
[[gnu::noinline]]
#else
[[gnu::noipa]]
#endif
void map_out_of_line(To* to, stretch all, Value value, const From*... from);

/// The same in blocks, on the widest vectors. Of packed elements what is wide lies in each whole block as `How` says. `value`
/// is no reference: where the op has no state g++ 12 leaves what it refers to unwritten, and warns of that.
template <class Narrow, bool Contracts, lie How = lie::in_order, target Target = target::overwritten,
          code Code = code::anywhere, class Places, class Value, class... From>
constexpr void map_blocks(Places to, stretch all, Value value, const From*... from) {
    if constexpr (Contracts && compiled_to_round_freely && Code == code::anywhere)
        if (!std::is_constant_evaluated()) return map_out_of_line<Narrow, How, Target>(to, all, value, from...);
    const std::size_t count = all.count;
    constexpr bool packed = packs<Narrow, float> && !std::is_same_v<Narrow, float>;
    if constexpr (packed && Target == target::first_operand) {
        map_blocks<Narrow, Contracts, How, target::overwritten, Code>(to, all, value, operand_at(to), from...);
    } else if constexpr (packed && Target == target::last_operand) {
        map_blocks<Narrow, Contracts, How, target::overwritten, Code>(to, all, value, from..., operand_at(to));
    } else if constexpr (packed && Target == target::operands) {
        map_blocks<Narrow, Contracts, How, target::overwritten, Code>(to, all, value, operand_at(to),
                                                                      operand_at(to.second));
    } else {
        // elements behind the last whole block fill one that is made of them, unless something wide lies there
        constexpr bool fills = packed && few_packed<Narrow> < packed_block<Narrow> &&
                               std::is_same_v<result_t<Places>, Narrow> && (std::is_same_v<From, Narrow> && ...);
        const std::size_t length = packed ? packed_block<Narrow> : block;
        std::size_t whole = count / length * length;
        bool filled = fills && count - whole > few_packed<Narrow>;
        if (packed && std::is_constant_evaluated()) whole = 0, filled = false;
        const auto blocks = [=, &value]<vectors Which>() {
            if constexpr (packed) {
                map_packed<Narrow, How, Which>(to, stretch{whole, count - whole + all.next}, value, from...);
                if constexpr (fills)
                    if (filled) map_filled<How, Which>(to + whole, count - whole, value, from + whole...);
            } else {
                for (std::size_t left = whole / block, i = 0; left > 0; --left, i += block)
                    map<Target>(to + i, block, value, from + i...);
            }
        };
        const bool chooses = packed ? whole > 0 || filled : whole >= worth_a_choice;
        if (std::is_constant_evaluated() || !chooses) blocks.template operator()<vectors::compiled>();
        else widest<Contracts>(blocks);
        if constexpr (!packed) map_few<Target>(to + whole, count - whole, value, from + whole...);
        else  // `to` may be one of the sources
            for (std::size_t i = filled ? count : whole; i < count; ++i) {
                const auto result = static_cast<result_t<Places>>(value(from[i]...));
                put(result, to + i);
            }
    }
}

template <class Narrow, lie How, target Target, class To, class Value, class... From>
void map_out_of_line(To* to, stretch all, Value value, const From*... from) {
    map_blocks<Narrow, true, How, Target, code::out_of_line>(to, all, value, from...);
}

/// Elements that a fold keeps between its operands: what the first-level cache holds beside them.
template <class Accumulator>
inline constexpr std::size_t tile = sizeof(Accumulator) < 64     ? 4096 / sizeof(Accumulator) / block * block
                                    : sizeof(Accumulator) < 4096 ? 4096 / sizeof(Accumulator)
                                                                 : 1;

/// Room for elements that need no default constructor.
template <class Element, std::size_t Length>
union tile_storage {
    std::byte nothing;
    Element values[Length];
    tile_storage() noexcept : nothing{} {}
};

/// The same by way of a tile: `to` may be any of the sources, and its elements have the same bits if it is none.
template <class Narrow, class To, class Value, class... From>
void map_by_tiles(To* to, std::size_t count, Value value, const From*... from) {
    alignas(To) alignas(64) tile_storage<To, tile<To>> made;
    for (std::size_t at = 0; at < count; at += tile<To>) {
        const std::size_t here = count - at < tile<To> ? count - at : tile<To>;
        map_out_of_line<Narrow, lie::in_order, target::overwritten>(made.values, stretch{here, count - at - here},
                                                                    value, from + at...);
        copy<To>(made.values, to + at, here);
    }
}

}  // namespace ddl::kernel
