// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/element/bfloat16.hpp>
#include <ddl/kernel/widest.hpp>

#include <cstddef>
#if defined(__x86_64__) && !defined(__CUDACC__)
#include <immintrin.h>
#endif

namespace ddl::kernel {

#if defined(__x86_64__) && !defined(__CUDACC__)
/// The vectors that the instruction takes for so many words of results.
template <std::size_t Words>
struct bfloat16_words;

template <>
struct bfloat16_words<16> {
    typedef __m512 wide;
    typedef short narrow __attribute__((vector_size(64)));
    static constexpr narrow in_turns = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                        8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    [[gnu::target("avx512f,avx512dq")]] static int subnormal(const wide& values) noexcept {
        return _mm512_fpclass_ps_mask(values, 0x20);
    }
};

template <>
struct bfloat16_words<8> {
    typedef __m256 wide;
    typedef short narrow __attribute__((vector_size(32)));
    static constexpr narrow in_turns = {0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15};
    [[gnu::target("avx512f,avx512dq,avx512vl")]] static int subnormal(const wide& values) noexcept {
        return _mm256_fpclass_ps_mask(values, 0x20);
    }
};
#endif

/// The instruction that rounds to bfloat16, for loops of `Which` vectors.
template <vectors Which>
struct bfloat16_vectors {
    /// Whether such a loop may hold it. Not those that clang compiles for machines that it does not know: they store in two
    /// halves what the instruction would load as one, for 16 words, which then waits.
    static constexpr bool round =
#if !defined(__x86_64__) || defined(__CUDACC__)
        false;
#elif defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
        true;
#elif defined(__clang__)
        false;
#else
        Which == vectors::avx512;
#endif

#if defined(__x86_64__) && !defined(__CUDACC__)
    /// Words that are set at a time.
    static constexpr std::size_t words = stored_at_once<Which>;

    /// Whether this processor has it.
    static bool are_here() noexcept { return __builtin_cpu_supports("avx512bf16"); }

    using set = bfloat16_words<words>;
    using codes = typename set::narrow;

    /// Sets word `i` to the code of `first[i]` and, above it, that of `second[i]`: those of `bfloat16::code_of`. False if a
    /// value is subnormal: the instruction takes it for zero, and the word is wrong. In a program that has asked for subnormals
    /// to be zero, they are.
    [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static bool set_words(const float* first, const float* second,
                                                                                codes& to) noexcept {
        typename set::wide below, above;
        __builtin_memcpy(&below, first, sizeof below);
        __builtin_memcpy(&above, second, sizeof above);
        const int lost = set::subnormal(below) | set::subnormal(above);
        // by name: compilers differ in the type of a vector of bfloat16, and older ones have none
        asm("vcvtne2ps2bf16 {%[below], %[above], %[to]|%[to], %[above], %[below]}\n\t"
            "vpermw %[to], %[in_turns], %[to]"
            : [to] "=&v"(to)
            : [below] "v"(below), [above] "v"(above), [in_turns] "v"(set::in_turns));
        return lost == 0;
    }
#endif
};

}  // namespace ddl::kernel
