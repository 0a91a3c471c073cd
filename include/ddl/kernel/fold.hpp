// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/kernel/combine.hpp>
#include <ddl/op/op.hpp>

namespace ddl::kernel {

/// Converts `count` elements to the type that they are accumulated in. The ranges do not overlap.
template <class From, class To>
constexpr void convert(const From* __restrict from, To* __restrict to, std::size_t count) {
    std::size_t i = 0;
    for (; i + block <= count; i += block)
        for (std::size_t j = 0; j < block; ++j) to[i + j] = static_cast<To>(from[i + j]);
    for (; i < count; ++i) to[i] = static_cast<To>(from[i]);
}

/// Ends an accumulation of `ranks` contributions: what the op has left to do, then the one rounding. `out` may be
/// `accumulated` itself if the types are one.
template <class Element, class Accumulator, class Op>
constexpr void finish(const Accumulator* accumulated, Element* out, std::size_t count, const Op& op, int ranks) {
    for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<Element>(ddl::finish(op, accumulated[i], ranks));
}

/// Folds `count` elements of each of `operands` sources, from the first source to the last, into `out`.
///
/// `from(s)` is source `s`. Accumulates in `accumulator_t<Op, Element>`, finishes the op for `ranks` contributions and
/// rounds once. `out` may be one of the sources. Reads `operands`, writes 1 element each: what is between stays in a tile
/// that the first-level cache holds.
template <class From, class Element, class Op>
void fold(From from, int operands, Element* out, std::size_t count, const Op& op, int ranks) {
    using accumulator = accumulator_t<Op, Element>;
    constexpr std::size_t fits = 4096 / sizeof(accumulator) / block * block;
    constexpr std::size_t few = sizeof(accumulator) < 4096 ? 4096 / sizeof(accumulator) : 1;  // it lies on the stack
    constexpr std::size_t tile = fits > 0 ? fits : few;
    union storage {  // elements need no default constructor
        std::byte nothing;
        accumulator values[tile];
        storage() noexcept : nothing{} {}
    };
    storage kept;
    accumulator* const sum = kept.values;
    for (std::size_t at = 0; at < count; at += tile) {
        const std::size_t here = count - at < tile ? count - at : tile;
        convert(static_cast<const Element*>(from(0)) + at, sum, here);
        for (int s = 1; s < operands; ++s) {
            const Element* __restrict const next = static_cast<const Element*>(from(s)) + at;
            std::size_t i = 0;
            for (; i + block <= here; i += block)
                for (std::size_t j = i; j < i + block; ++j) sum[j] = op(sum[j], static_cast<accumulator>(next[j]));
            for (; i < here; ++i) sum[i] = op(sum[i], static_cast<accumulator>(next[i]));
        }
        finish(sum, out + at, here, op, ranks);
    }
}

}  // namespace ddl::kernel
