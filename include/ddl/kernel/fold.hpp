// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/kernel/both.hpp>
#include <ddl/kernel/combine.hpp>
#include <ddl/kernel/copy.hpp>
#include <ddl/kernel/hand_back.hpp>
#include <ddl/kernel/packed.hpp>
#include <ddl/op/op.hpp>

#include <utility>

namespace ddl::kernel {

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

/// The same in blocks, on the widest vectors. Of packed elements what is wide lies in each whole block as `How` says. `value`
/// is no reference: where the op has no state g++ 12 leaves what it refers to unwritten, and warns of that.
template <class Narrow, bool Contracts, lie How = lie::in_order, target Target = target::overwritten, class Places,
          class Value, class... From>
constexpr void map_blocks(Places to, stretch all, Value value, const From*... from) {
    const std::size_t count = all.count;
    constexpr bool packed = packs<Narrow, float> && !std::is_same_v<Narrow, float>;
    if constexpr (packed && Target == target::first_operand) {
        map_blocks<Narrow, Contracts, How>(to, all, value, operand_at(to), from...);
    } else if constexpr (packed && Target == target::last_operand) {
        map_blocks<Narrow, Contracts, How>(to, all, value, from..., operand_at(to));
    } else if constexpr (packed && Target == target::operands) {
        map_blocks<Narrow, Contracts, How>(to, all, value, operand_at(to), operand_at(to.second));
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

/// What a loop calls for two values: the op, here and below as a type that all folds of one op and element share.
template <class Op, class Accumulator>
struct combining {
    const Op& op;
    constexpr Accumulator operator()(const Accumulator& l, const Accumulator& r) const { return op(l, r); }
};

/// The same for the last two of `ranks` contributions.
template <class Op, class Accumulator>
struct combining_last {
    const Op& op;
    int ranks;
    constexpr auto operator()(const Accumulator& l, const Accumulator& r) const {
        return ddl::finish(op, op(l, r), ranks);
    }
};

/// And what it calls for one that all are in.
template <class Op, class Accumulator>
struct finishing {
    const Op& op;
    int ranks;
    constexpr auto operator()(const Accumulator& all) const { return ddl::finish(op, all, ranks); }
};

/// Folds `count` arrived elements into those `before`, which stay: to `ours`. The three ranges do not overlap.
template <side Side, class Op, class Element>
constexpr void combine(const Element* arrived, const Element* before, Element* ours, std::size_t count, const Op& op) {
    constexpr bool from_left = Side == side::left;
    map_blocks<float, contracts<Op, Element>>(ours, count, combining<Op, Element>{op}, from_left ? arrived : before,
                                              from_left ? before : arrived);
}

/// Whether what is accumulated is finished and rounded by a loop of its own.
template <class Op, class Element>
inline constexpr bool finishes_apart =
    !std::is_same_v<Element, accumulator_t<Op, Element>> && !packs<Element, accumulator_t<Op, Element>>;

/// What a fold calls for the last two values: it finishes the op, unless that is done apart.
template <class Op, class Element>
constexpr auto combining_at_last(const Op& op, int ranks) {
    using accumulator = accumulator_t<Op, Element>;
    if constexpr (finishes<Op, Element> && !finishes_apart<Op, Element>)
        return combining_last<Op, accumulator>{op, ranks};
    else return combining<Op, accumulator>{op};  // the same as before the last, so that there are fewer loops
}

/// Converts `count` elements to the type that they are accumulated in. The ranges do not overlap, unless they are the same.
template <class From, class To>
constexpr void convert(const From* from, To* to, std::size_t count) {
    if constexpr (std::is_same_v<From, To>)
        if (!std::is_constant_evaluated()) return copy(from, to, count);
    using narrow = std::conditional_t<packs<From, To>, From, packed_as<To, From>>;
    map_blocks<narrow, false>(
        to, count, [](const auto& value) { return static_cast<To>(value); }, from);
}

/// Ends an accumulation of `ranks` contributions: what the op has left to do, then the one rounding. `out` is `accumulated`
/// itself or does not overlap it.
template <class Element, class Accumulator, class Op>
constexpr void finish(const Accumulator* accumulated, Element* out, std::size_t count, const Op& op, int ranks) {
    if constexpr (std::is_same_v<Element, Accumulator> && !finishes<Op, Element>)
        if (!std::is_constant_evaluated()) return copy(accumulated, out, count);
    const finishing<Op, Accumulator> last_step{op, ranks};
    constexpr bool fuses = contracts<Op, Accumulator>;
    if constexpr (std::is_same_v<Element, Accumulator>)
        if (out == accumulated)
            return map_blocks<float, fuses, lie::in_order, target::first_operand>(out, count, last_step);
    map_blocks<packed_as<Element, Accumulator>, fuses>(out, count, last_step, accumulated);
}

/// Elements that a fold keeps between its operands: what the first-level cache holds beside them.
template <class Accumulator>
inline constexpr std::size_t tile = sizeof(Accumulator) < 64     ? 4096 / sizeof(Accumulator) / block * block
                                    : sizeof(Accumulator) < 4096 ? 4096 / sizeof(Accumulator)
                                                                 : 1;

/// Whether many results that take no operand's place are best made where they go. On AMD's processors that takes 0.6 to 0.9 of
/// the time; those of others need not load lines that they overwrite if they copy to them, out of a tile.
inline bool makes_in_place() noexcept { return readers_hold_up_writers(); }

/// Folds two sources in one pass, into a place or into two, `to` and `also`, which are the same if there is one. False if
/// nothing has been done, for tiles are faster.
template <class Element, class Op>
bool fold_at_once(const Element* first, const Element* last, Element* to, Element* also, std::size_t count,
                  const Op& op, int ranks) {
    using narrow = packed_as<Element, accumulator_t<Op, Element>>;
    constexpr bool fuses = contracts<Op, accumulator_t<Op, Element>>;
    constexpr lie How = lie::in_planes;
    const auto combine = combining_at_last<Op, Element>(op, ranks);
    const bool is_one = to == also;
    if (to != first && !is_one && also != last) std::swap(to, also);  // places that are sources in their order
    const both<Element> two{to, also};
    if (to == first && is_one) map_blocks<narrow, fuses, How, target::first_operand>(to, count, combine, last);
    else if (to == last && is_one) map_blocks<narrow, fuses, How, target::last_operand>(to, count, combine, first);
    else if (to == first && also == last) map_blocks<narrow, fuses, How, target::operands>(two, count, combine);
    else if (to == first) map_blocks<narrow, fuses, How, target::first_operand>(two, count, combine, last);
    else if (also == last)
        map_blocks<narrow, fuses, How, target::last_operand>(both<Element>{also, to}, count, combine, first);
    else if (count > tile<accumulator_t<Op, Element>> && !makes_in_place()) return false;
    else if (is_one) map_blocks<narrow, fuses, How>(to, count, combine, first, last);
    else map_blocks<narrow, fuses, How>(two, count, combine, first, last);
    return true;
}

/// Room for elements that need no default constructor.
template <class Element, std::size_t Length>
union tile_storage {
    std::byte nothing;
    Element values[Length];
    tile_storage() noexcept : nothing{} {}
};

/// Elements between the beginning of a cache line and `place`.
template <class Element>
std::size_t past_line(const Element* place) noexcept {
    if constexpr (64 % sizeof(Element) != 0) return 0;
    else return reinterpret_cast<std::uintptr_t>(place) % 64 / sizeof(Element);
}

/// Folds `count` elements of each of `operands` sources, from the first source to the last, into `results` targets, one or
/// more.
///
/// `from(s)` is source `s`, `to(t)` target `t`; they are asked once a tile and some times before. Accumulates in
/// `accumulator_t<Op, Element>`, finishes the op for `ranks` contributions and rounds once. A target may be one of the
/// sources. Reads each source once and writes each target once.
///
/// Two sources go to one or two targets in one pass where that is best: see `fold_at_once`. Otherwise what is between stays
/// in tiles that the first-level cache holds. Results are made in the first or the last target if that is a source, whose
/// lines have come already; else in a tile. From there they are copied: a processor that copies need not load the lines
/// that it overwrites, if it overwrites the whole of each. So tiles end where lines of the first target do.
template <class Element, class From, class To, class Op>
void fold(const From& from, int operands, const To& to, int results, std::size_t count, const Op& op, int ranks,
          stores how = stores::cached) {
    using accumulator = accumulator_t<Op, Element>;
    using narrow = packed_as<Element, accumulator>;
    constexpr bool fuses = contracts<Op, accumulator>;
    constexpr std::size_t length =
        tile<accumulator> * (packs<Element, accumulator> ? 2 : 1);  // narrow ones are shorter
    constexpr lie How = lie::in_planes;
    const combining<Op, accumulator> add{op};
    const auto add_last = combining_at_last<Op, Element>(op, ranks);

    if constexpr (!finishes_apart<Op, Element>)
        if (operands == 2 && results <= 2 && how != stores::streamed &&
            fold_at_once(static_cast<const Element*>(from(0)), static_cast<const Element*>(from(1)), to(0),
                         to(results - 1), count, op, ranks))
            return;

    tile_storage<accumulator, length> kept;
    tile_storage<Element, length> folded;
    accumulator* const sum = kept.values;
    const int last = operands - 1;
    const auto source_at = [&](const Element* place) {
        int s = operands > 1 && how != stores::streamed ? last : -1;
        while (s >= 0 && from(s) != place) --s;
        return s;
    };
    const int first_is = source_at(to(0)), last_is = source_at(to(results - 1));
    const int made_in = first_is >= 0 ? 0 : last_is >= 0 ? results - 1 : -1;  // a target
    const int made_of = first_is >= 0 ? first_is : last_is;                   // a source
    std::size_t here = count <= length ? count : length - past_line(to(0));
    for (std::size_t at = 0; at < count; at += here, here = count - at < length ? count - at : length) {
        const auto source = [&](int s) { return static_cast<const Element*>(from(s)) + at; };
        const stretch all{here, count - at - here};
        Element* const result = made_in >= 0 ? to(made_in) + at : folded.values;
        const auto finish_with = [&]<class Left>(const Left* left) {  // and the last source
            if (made_of == last) map_blocks<narrow, fuses, How, target::last_operand>(result, all, add_last, left);
            else map_blocks<narrow, fuses, How>(result, all, add_last, left, source(last));
        };
        if constexpr (finishes_apart<Op, Element>) {
            convert(source(0), sum, here);
            for (int s = 1; s < operands; ++s) combine<side::right>(source(s), sum, here, op);
            finish(sum, result, here, op, ranks);
        } else if (operands == 1) {
            if constexpr (!finishes<Op, Element>) copy(source(0), result, here);
            else map_blocks<narrow, fuses, How>(result, all, finishing<Op, accumulator>{op, ranks}, source(0));
        } else if (operands == 2 && made_of == 0) {
            map_blocks<narrow, fuses, How, target::first_operand>(result, all, add_last, source(1));
        } else if (operands == 2) {
            finish_with(source(0));
        } else {
            map_blocks<narrow, fuses, How>(sum, all, add, source(0), source(1));
            for (int s = 2; s < last; ++s)
                map_blocks<narrow, fuses, How, target::first_operand>(sum, all, add, source(s));
            finish_with(static_cast<const accumulator*>(sum));
        }
        for (int t = 0; t < results; ++t)  // but not to itself
            copy<Element>(result, to(t) + at, here, made_in >= 0 ? stores::held : how);
    }
    settle(how);
}

/// So few elements of two sources that loops over blocks and tiles would take longer than they do. Not of those that are large
/// themselves.
template <class Element, class Accumulator>
inline constexpr std::size_t few = sizeof(Accumulator) > 16               ? 0
                                   : std::is_same_v<Element, Accumulator> ? block
                                                                          : 4;

/// Folds a few elements of two sources into a target, which may be one of them.
template <class Element, class Op>
void fold_few(const Element* first, const Element* last, Element* out, std::size_t count, const Op& op, int ranks) {
    using accumulator = accumulator_t<Op, Element>;
    const auto combine = combining_at_last<Op, Element>(op, ranks);
    if constexpr (std::is_same_v<Element, accumulator>) {
        if (out == first) map_few<target::first_operand>(out, count, combine, last);
        else if (out == last) map_few<target::last_operand>(out, count, combine, first);
        else map_few<target::overwritten>(out, count, combine, first, last);
    } else {
        for (std::size_t i = 0; i < count; ++i) {
            const auto left = static_cast<accumulator>(first[i]), right = static_cast<accumulator>(last[i]);
            if constexpr (finishes_apart<Op, Element>)
                out[i] = static_cast<Element>(finishing<Op, accumulator>{op, ranks}(combine(left, right)));
            else out[i] = static_cast<Element>(combine(left, right));
        }
    }
}

/// The same into one target.
template <class From, class Element, class Op>
void fold(const From& from, int operands, Element* out, std::size_t count, const Op& op, int ranks,
          stores how = stores::cached) {
    if (operands == 2 && count <= few<Element, accumulator_t<Op, Element>>)
        return fold_few<Element>(from(0), from(1), out, count, op, ranks);
    fold<Element>(
        from, operands, [out](int) { return out; }, 1, count, op, ranks, how);
}

}  // namespace ddl::kernel
