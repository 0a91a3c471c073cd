// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/kernel/hand_back.hpp>
#include <ddl/kernel/widest.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace ddl::kernel {

/// How a result is stored: for those who read it soon; the same, mostly over lines that this core has just read, or that others
/// have; or past the caches, for results that would not stay in them anyway. A streamed store does not load the line that it
/// overwrites, and leaves the caches to others.
enum class stores : unsigned char { cached, held, shared, streamed };

/// Moves the 256 bytes at `from` to `to`: all loads before all stores.
[[gnu::always_inline]] inline void copy_lines(const std::byte* from, std::byte* to) noexcept {
    typedef unsigned char line __attribute__((vector_size(64)));
    line a, b, c, d;
    __builtin_memcpy(&a, from, 64);
    __builtin_memcpy(&b, from + 64, 64);
    __builtin_memcpy(&c, from + 128, 64);
    __builtin_memcpy(&d, from + 192, 64);
    __builtin_memcpy(to, &a, 64);
    __builtin_memcpy(to + 64, &b, 64);
    __builtin_memcpy(to + 128, &c, 64);
    __builtin_memcpy(to + 192, &d, 64);
}

/// Copies `bytes`, which are 256 or more, between ranges that do not overlap. Most of its stores are of whole cache lines.
inline void copy_forward(const std::byte* from, std::byte* to, std::size_t bytes) noexcept {
    copy_lines(from, to);
    for (std::size_t at = 256 - reinterpret_cast<std::uintptr_t>(to) % 64; at + 256 < bytes; at += 256)
        copy_lines(from + at, to + at);
    copy_lines(from + bytes - 256, to + bytes - 256);
}

/// Copies `bytes`, which are 256 or more, from the end to the beginning, between ranges that do not overlap.
inline void copy_backward(const std::byte* from, std::byte* to, std::size_t bytes) noexcept {
    for (std::size_t at = bytes - 256; at > 0; at = at > 256 ? at - 256 : 0) copy_lines(from + at, to + at);
    copy_lines(from, to);
}

/// How far the target lies above the source modulo 4 KiB.
inline std::size_t ahead_of(const std::byte* from, const std::byte* to) noexcept {
    return (reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from)) % 4096;
}

/// Whether a forward copy is slow: where the target lies just above the source, some processors take the loads of a forward copy
/// for loads of what was just stored, and `memcpy` falls to a tenth of its speed.
inline bool is_slow_forward(const std::byte* from, const std::byte* to, std::size_t bytes) noexcept {
    const std::size_t ahead = ahead_of(from, to);
    return 0 < ahead && ahead < 2048 && 4096 <= bytes && bytes <= (std::size_t{1} << 18);
}

/// Whether a string move is the quickest copy: of what is long, for it begins slowly, where such moves take lines. Nothing else
/// writes whole lines without loading them and leaves them in the caches; the C library moves strings of some lengths alone. Less
/// than a line above the source they are no better than others, and worse if long; past the caches streamed stores are, in the end.
inline bool is_best_by_string(const std::byte* from, const std::byte* to, std::size_t bytes, stores how) noexcept {
    if (how == stores::shared) return copy_takes_lines(bytes);
    const std::size_t ahead = ahead_of(from, to);
    return how == stores::cached && bytes >= (std::size_t{1} << 16) && (ahead == 0 || ahead >= 64) &&
           string_moves_take_lines();
}

#if defined(__SSE2__)
/// The same past the caches.
inline void copy_streamed(const std::byte* from, std::byte* to, std::size_t bytes) noexcept {
    constexpr std::size_t line = 64;
    const std::size_t to_line = (line - reinterpret_cast<std::uintptr_t>(to) % line) % line;
    const std::size_t head = to_line < bytes ? to_line : bytes;
    std::memcpy(to, from, head);
    std::size_t at = head;
    for (; at + line <= bytes; at += line) {
        const auto* const source = reinterpret_cast<const __m128i*>(from + at);
        auto* const target = reinterpret_cast<__m128i*>(to + at);
        const __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1);
        const __m128i c = _mm_loadu_si128(source + 2), d = _mm_loadu_si128(source + 3);
        _mm_stream_si128(target, a);
        _mm_stream_si128(target + 1, b);
        _mm_stream_si128(target + 2, c);
        _mm_stream_si128(target + 3, d);
    }
    std::memcpy(to + at, from + at, bytes - at);
}
#endif

/// Makes streamed stores visible to whoever acquires what this thread releases next: a release alone does not order them.
inline void settle([[maybe_unused]] stores how) noexcept {
#if defined(__SSE2__)
    if (how == stores::streamed) _mm_sfence();
#endif
}

/// Copies `bytes`, which are 256 or more, between buffers that do not overlap.
[[gnu::noinline]] inline void copy_long(const std::byte* from, std::byte* to, std::size_t bytes,
                                        [[maybe_unused]] stores how) noexcept {
#if defined(__x86_64__)
    if (is_best_by_string(from, to, bytes, how)) {
        asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
        return;
    }
#endif
#if defined(__SSE2__)
    if (how == stores::streamed) return copy_streamed(from, to, bytes);
#endif
    const bool strings = string_moves_take_lines();
    // memcpy may move strings, too: those may want for themselves, without a load, what is here already
    const bool by_hand = how == stores::held || (how == stores::cached && strings && bytes < least_string);
    if (!strings && is_slow_forward(from, to, bytes)) widest<false>([=]<vectors>() { copy_backward(from, to, bytes); });
    else if (by_hand) widest<false>([=]<vectors>() { copy_forward(from, to, bytes); });
    else std::memcpy(to, from, bytes);
}

/// Copies `bytes`, 1 to 64, between ranges that do not overlap: without the call of a function that is for any number.
[[gnu::always_inline]] inline void copy_few(const void* from, void* to, std::size_t bytes) noexcept {
    const auto* const source = static_cast<const std::byte*>(from);
    auto* const target = static_cast<std::byte*>(to);
    const auto ends = [=]<std::size_t Width>(std::integral_constant<std::size_t, Width>) {  // may overlap each other
        std::byte first[Width], last[Width];
        __builtin_memcpy(first, source, Width);
        __builtin_memcpy(last, source + bytes - Width, Width);
        __builtin_memcpy(target, first, Width);
        __builtin_memcpy(target + bytes - Width, last, Width);
    };
    if (bytes >= 32) ends(std::integral_constant<std::size_t, 32>{});
    else if (bytes >= 16) ends(std::integral_constant<std::size_t, 16>{});
    else if (bytes >= 8) ends(std::integral_constant<std::size_t, 8>{});
    else if (bytes >= 4) ends(std::integral_constant<std::size_t, 4>{});
    else if (bytes >= 2) ends(std::integral_constant<std::size_t, 2>{});
    else *target = *source;
}

/// Copies `count` elements between buffers that are the same or do not overlap. Null pointers are fine for none.
/// After streamed stores call `settle`.
template <class Element>
void copy(const Element* from, Element* to, std::size_t count, stores how = stores::cached) noexcept {
    if (count == 0 || from == to) return;
    const std::size_t bytes = count * sizeof(Element);
    const auto* const source = reinterpret_cast<const std::byte*>(from);
    auto* const target = reinterpret_cast<std::byte*>(to);
    if (bytes <= 64) copy_few(source, target, bytes);
    else if (bytes < 256) std::memcpy(target, source, bytes);
    else copy_long(source, target, bytes, how);
}

}  // namespace ddl::kernel
