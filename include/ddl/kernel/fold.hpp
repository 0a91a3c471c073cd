// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/kernel/combine.hpp>
#include <ddl/kernel/hand_back.hpp>
#include <ddl/kernel/map.hpp>
#include <ddl/op/op.hpp>

#include <utility>

namespace ddl::kernel {

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
    if constexpr (varies_by_loop<Op, Element, Element>)
        if (!std::is_constant_evaluated())
            return map_by_tiles<float>(ours, count, widening<Op, Element>{op}, from_left ? arrived : before,
                                       from_left ? before : arrived);
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
    map_blocks<narrow, conversion_contracts<From, To>>(
        to, count, [](const auto& value) { return static_cast<To>(value); }, from);
}

/// Ends an accumulation of `ranks` contributions: what the op has left to do, then the one rounding. `out` is `accumulated`
/// itself or does not overlap it.
template <class Element, class Accumulator, class Op>
constexpr void finish(const Accumulator* accumulated, Element* out, std::size_t count, const Op& op, int ranks) {
    if constexpr (std::is_same_v<Element, Accumulator> && !finishes<Op, Element>)
        if (!std::is_constant_evaluated()) return copy(accumulated, out, count);
    const finishing<Op, Accumulator> last_step{op, ranks};
    constexpr bool fuses = may_fuse<Op, Accumulator, Element>;
    if constexpr (varies_by_loop<Op, Accumulator, Element>)
        if (!std::is_constant_evaluated())
            return map_by_tiles<packed_as<Element, Accumulator>>(out, count, last_step, accumulated);
    if constexpr (std::is_same_v<Element, Accumulator>)
        if (out == accumulated)
            return map_blocks<float, fuses, lie::in_order, target::first_operand>(out, count, last_step);
    map_blocks<packed_as<Element, Accumulator>, fuses>(out, count, last_step, accumulated);
}

/// Whether many results that take no operand's place are best made where they go. On AMD's processors that takes 0.6 to 0.9 of
/// the time; those of others need not load lines that they overwrite if they copy to them, out of a tile.
inline bool makes_in_place() noexcept { return readers_hold_up_writers(); }

/// Folds two sources in one pass, into a place or into two, `to` and `also`, which are the same if there is one. False if
/// nothing has been done, for tiles are faster.
template <class Element, class Op>
bool fold_at_once(const Element* first, const Element* last, Element* to, Element* also, std::size_t count,
                  const Op& op, int ranks) {
    using narrow = packed_as<Element, accumulator_t<Op, Element>>;
    constexpr bool fuses = may_fuse<Op, accumulator_t<Op, Element>, Element>;
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
    constexpr bool fuses = may_fuse<Op, accumulator, Element>;
    constexpr std::size_t length =
        tile<accumulator> * (packs<Element, accumulator> ? 2 : 1);  // narrow ones are shorter
    constexpr lie How = lie::in_planes;
    constexpr bool varies = varies_by_loop<Op, accumulator, Element>;  // ranks that fold the same do so in other places
    const combining<Op, accumulator> add{op};
    const auto add_last = combining_at_last<Op, Element>(op, ranks);

    if constexpr (!finishes_apart<Op, Element> && !varies)
        if (operands == 2 && results <= 2 && how != stores::streamed &&
            fold_at_once(static_cast<const Element*>(from(0)), static_cast<const Element*>(from(1)), to(0),
                         to(results - 1), count, op, ranks))
            return;

    alignas(accumulator) alignas(varies ? 64 : 1) tile_storage<accumulator, length> kept;
    alignas(Element) alignas(varies ? 64 : 1) tile_storage<Element, length> folded;
    accumulator* const sum = kept.values;
    const int last = operands - 1;
    const auto source_at = [&](const Element* place) {
        int s = operands > 1 && !varies && how != stores::streamed ? last : -1;
        while (s >= 0 && from(s) != place) --s;
        return s;
    };
    const int first_is = source_at(to(0)), last_is = source_at(to(results - 1));
    const int made_in = first_is >= 0 ? 0 : last_is >= 0 ? results - 1 : -1;  // a target
    const int made_of = first_is >= 0 ? first_is : last_is;                   // a source
    std::size_t here = count <= length ? count : length - (varies ? 0 : past_line(to(0)));
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
/// themselves, nor where loops vary.
template <class Op, class Element, class Accumulator = accumulator_t<Op, Element>>
inline constexpr std::size_t few = sizeof(Accumulator) > 16 || varies_by_loop<Op, Accumulator, Element> ? 0
                                   : std::is_same_v<Element, Accumulator>                               ? block
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
    if (operands == 2 && count <= few<Op, Element>) return fold_few<Element>(from(0), from(1), out, count, op, ranks);
    fold<Element>(
        from, operands, [out](int) { return out; }, 1, count, op, ranks, how);
}

}  // namespace ddl::kernel
