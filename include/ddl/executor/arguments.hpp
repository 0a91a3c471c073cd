// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/contiguous.hpp>
#include <ddl/executor/partition.hpp>
#include <ddl/executor/refusal.hpp>
#include <ddl/transport/device_messages.hpp>
#include <ddl/transport/grid_transport.hpp>
#include <ddl/transport/staging_transport.hpp>

#include <cstdint>
#include <iterator>

namespace ddl {

/// This rank, and how many there are. What is no communicator, which `compose` says, has a rank alone.
template <class Transport>
int rank_in(Transport& ranks) {
    if constexpr (communicator<Transport>) return ranks.rank();
    else return 0;
}
template <class Transport>
int ranks_in(Transport& ranks) {
    if constexpr (communicator<Transport>) return ranks.size();
    else return 1;
}

/// Whether ranks have a device, as those of GPUs and of what stands for them: they take ranges that lie there.
template <class Transport>
inline constexpr bool has_device =
    grid_transport<Transport> || staging_transport<Transport> || device_message_transport<Transport> ||
    requires(Transport& ranks) { ranks.device(); };
template <stacked_transport Transport>
inline constexpr bool has_device<Transport> =
    has_device<std::remove_reference_t<decltype(std::declval<Transport&>().node())>>;

/// A class, so that ranges of several types print one error.
template <class Transport>
struct reaches_device_ranges {
    static_assert(has_device<Transport>,
                  "ddl: this range lies in a device, and these ranks know the host's memory alone; wrap them in "
                  "ddl::staged, or pass a span of what the host reaches");
};

/// Whether ranges can be those of a call: where `In` is read and `Out` written. The first mismatch is the only error.
template <class In, class Out>
consteval bool ranges_fit() {
    if constexpr (!contiguous<In> || !contiguous<Out>) {
        static_assert(contiguous<In> && contiguous<Out>,
                      "ddl: this is no contiguous range; pass a vector, an array or a span: std::span{&x, 1} for one "
                      "value, std::span(data, count) for a pointer");
    } else if constexpr (!std::same_as<std::remove_const_t<element_of<In>>, std::remove_const_t<element_of<Out>>>) {
        static_assert(std::same_as<std::remove_const_t<element_of<In>>, std::remove_const_t<element_of<Out>>>,
                      "ddl: in and out hold different elements; pass one type");
    } else {
        return true;
    }
    return false;
}

/// The element of a call with these ranges: that of `Out`, `const` kept.
template <class In, class Out, bool Fit = ranges_fit<std::remove_reference_t<In>, std::remove_reference_t<Out>>()>
struct element_given {
    using type = refused_element;
};
template <class In, class Out>
struct element_given<In, Out, true> {
    using type = element_of<Out>;
};
template <class In, class Out = In>
using element_for = typename element_given<In, Out>::type;

/// Where the elements lie that a call is given.
template <class Transport, contiguous Range>
constexpr auto data_for(Transport&, Range& range) noexcept {
    if constexpr (device_range<Range>) static_cast<void>(reaches_device_ranges<Transport>{});
    return data_of(range);
}

/// It keeps its elements itself, as a vector does: where it is const, so are they. A view, such as a span, refers to others'.
template <class Range>
concept keeps_elements = contiguous<std::remove_const_t<Range>> && contiguous<const Range> &&
                         !std::same_as<element_of<std::remove_const_t<Range>>, element_of<const Range>>;

/// A class, so that `in` and `out` of one type print one error.
template <class Range>
struct outlives_its_call {
    static_assert(std::is_lvalue_reference_v<Range> || !keeps_elements<Range>,
                  "ddl: a plan or nonblocking call would refer to a temporary that is gone; name it first");
};

/// The same of the ranges that a plan reads and writes; null if these have been refused. A temporary has its type for `In` or
/// `Out`, all else a reference to it.
template <class In, class Out, class Transport>
constexpr const element_for<In, Out>* input_for(Transport& ranks, std::remove_reference_t<In>& in) noexcept {
    if constexpr (std::same_as<element_for<In, Out>, refused_element>) {
        return nullptr;
    } else {
        static_cast<void>(outlives_its_call<In>{});
        return data_for(ranks, in);
    }
}
template <class In, class Out, class Transport>
constexpr element_for<In, Out>* output_for(Transport& ranks, std::remove_reference_t<Out>& out) noexcept {
    if constexpr (std::same_as<element_for<In, Out>, refused_element>) {
        return nullptr;
    } else {
        static_cast<void>(outlives_its_call<Out>{});
        return data_for(ranks, out);
    }
}
template <class Range>
constexpr std::size_t count_for(Range& range) noexcept {
    if constexpr (contiguous<Range>) return size_of(range);
    else return 0;
}

/// What is met in a range of tensors: references to them, or views made on the way.
template <class Tensors>
using tensor_in = decltype(*std::begin(std::declval<Tensors&>()));

/// Contiguous ranges in a range.
template <class Tensors>
concept range_of_ranges = requires { requires contiguous<std::remove_reference_t<tensor_in<Tensors>>>; };

/// Whether a range can be that of `allreduce_n`. The first mismatch is the only error.
template <class Transport, class Tensors>
consteval bool tensors_fit() {
    if constexpr (!range_of_ranges<Tensors>) {
        static_assert(range_of_ranges<Tensors>,
                      "ddl: allreduce_n takes a range of contiguous ranges; pass a vector of vectors or of spans");
    } else {
        using tensor = std::remove_reference_t<tensor_in<Tensors>>;
        if constexpr (!writable<tensor>)
            static_assert(writable<tensor>, "ddl: allreduce_n works in place; pass a range of writable ranges");
        else if constexpr (device_range<tensor> && !has_device<Transport>)
            static_cast<void>(reaches_device_ranges<Transport>{});
        else return true;
    }
    return false;
}

/// It keeps its tensors itself, as it would its elements.
template <class Tensors>
concept keeps_tensors =
    requires { requires !std::same_as<tensor_in<std::remove_const_t<Tensors>>, tensor_in<const Tensors>>; };

/// What `outlives_its_call` is asked of a range of tensors: one of them, which goes with a temporary that keeps it.
template <class Tensors>
using tensor_for_later = std::conditional_t<!std::is_lvalue_reference_v<Tensors> && keeps_tensors<Tensors>,
                                            std::remove_reference_t<tensor_in<Tensors>>, tensor_in<Tensors>>;

/// This rank's arguments make no sense. Lets the others know, who would wait for it in the call, then throws.
template <class Checking, class Transport>
[[noreturn]] void refuse(Transport& ranks, const error& reason) {
    tell_refusal<Checking>(ranks);
    throw reason;
}

/// The block of `count` elements that is `rank`'s in reduce-scatter, all-gather, gather and scatter.
struct block_of {
    std::size_t first;
    std::size_t count;
};
constexpr block_of block(std::size_t count, int size, int rank) noexcept {
    const partition blocks{count, size};
    return {blocks.first(rank), blocks.length(rank)};
}

/// `name` must hold `wanted` elements.
template <class Checking, class Transport>
void require_count(Transport& ranks, collective what, const char* name, std::size_t held, std::size_t wanted,
                   const char* because) {
    if (held == wanted) return;
    refuse<Checking>(ranks, error(errc::invalid_argument, to_string(what), rank_in(ranks), -1,
                                  "%s holds %zu elements, and needs %zu, %s", name, held, wanted, because));
}

/// Whether `bytes` at `part` lie apart from `all` at `whole`, or `place` bytes into them, as those of a call in place.
constexpr bool lie_apart_or_at(std::size_t place, std::uintptr_t part, std::size_t bytes, std::uintptr_t whole,
                               std::size_t all) noexcept {
    return part == whole + place || part + bytes <= whole || whole + all <= part || bytes == 0 || all == 0;
}

/// `part` must lie apart from `whole`, or `place` elements into it, as where a call is in place.
template <class Checking, class Transport, class Part, class Whole>
void require_apart(Transport& ranks, collective what, Part& part, Whole& whole, std::size_t place = 0) {
    if constexpr (contiguous<Part> && contiguous<Whole>) {
        constexpr std::size_t each = sizeof(*data_of(part));
        if (lie_apart_or_at(place * each, reinterpret_cast<std::uintptr_t>(data_of(part)), size_of(part) * each,
                            reinterpret_cast<std::uintptr_t>(data_of(whole)), size_of(whole) * each))
            return;
        refuse<Checking>(ranks, error(errc::invalid_argument, to_string(what), rank_in(ranks), -1,
                                      "in and out overlap; pass two ranges that lie apart, or call in place"));
    }
}

/// `in` and `out` must hold equally many elements, and be one range or lie apart.
template <class Checking, class Transport, class In, class Out>
void require_alike(Transport& ranks, collective what, In& in, Out& out) {
    require_count<Checking>(ranks, what, "out", count_for(out), count_for(in), "as many as in");
    require_apart<Checking>(ranks, what, out, in);
}

/// `part`, which is called `name`, must be as long as this rank's block of `whole`, and be that block or lie apart.
template <class Checking, class Transport, class Part, class Whole>
void require_own_block(Transport& ranks, collective what, const char* name, Part& part, Whole& whole,
                       const char* because) {
    const block_of mine = block(count_for(whole), ranks_in(ranks), rank_in(ranks));
    require_count<Checking>(ranks, what, name, count_for(part), mine.count, because);
    require_apart<Checking>(ranks, what, part, whole, mine.first);
}

/// `root` must be a rank.
template <class Checking, class Transport>
void require_root(Transport& ranks, collective what, int root) {
    if (0 <= root && root < ranks_in(ranks)) return;
    refuse<Checking>(ranks, error(errc::invalid_argument, to_string(what), rank_in(ranks), -1,
                                  "root is %d; name a rank from 0 to %d", root, ranks_in(ranks) - 1));
}

/// Elements of a vector that has a block as long as `part` for each rank. On `root` that must be `whole`, called `name`, and `part`
/// must be this rank's block of it or lie apart.
template <class Checking, class Transport, class Part, class Whole>
std::size_t equal_blocks(Transport& ranks, collective what, const char* name, Part& part, Whole& whole,
                         const char* because, int root) {
    const std::size_t count = count_for(part) * static_cast<std::size_t>(ranks_in(ranks));
    require_root<Checking>(ranks, what, root);
    if (rank_in(ranks) != root) return count;
    require_count<Checking>(ranks, what, name, count_for(whole), count, because);
    require_apart<Checking>(ranks, what, part, whole, count_for(part) * static_cast<std::size_t>(root));
    return count;
}

}  // namespace ddl
