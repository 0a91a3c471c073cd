// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/element/bfloat16.hpp>
#include <ddl/kernel/widest.hpp>

#include <cstddef>
#include <cstdint>

namespace ddl::kernel {

/// The instruction that rounds to bfloat16, for loops of `Which` vectors.
template <vectors Which>
struct bfloat16_vectors {
    /// Whether such a loop may hold it. Not those that clang compiles for machines that it does not know: they store in two
    /// halves what the instruction loads as one, which then waits.
    static constexpr bool round =
#if !defined(__x86_64__) || defined(__CUDACC__)
        false;
#elif defined(__AVX512BW__) && defined(__AVX512DQ__)
        true;
#elif defined(__clang__)
        false;
#else
        Which == vectors::avx512;
#endif

#if defined(__x86_64__) && !defined(__CUDACC__)
    static constexpr std::size_t words = 16;

    /// Whether this processor has it.
    static bool are_here() noexcept { return __builtin_cpu_supports("avx512bf16"); }

    /// Sets word `i` to the code of `first[i]` and, above it, that of `second[i]`: those of `bfloat16::code_of`. False if a
    /// value is subnormal: the instruction takes it for zero, and the word is wrong. In a program that has asked for subnormals
    /// to be zero, they are.
    [[gnu::target("avx512f,avx512bw,avx512dq")]] static bool set_words(const float* first, const float* second,
                                                                       std::uint32_t* to) noexcept {
        typedef float wide __attribute__((vector_size(64)));
        typedef short narrow __attribute__((vector_size(64)));
        constexpr narrow in_turns = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                     8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
        wide below, above;
        __builtin_memcpy(&below, first, sizeof below);
        __builtin_memcpy(&above, second, sizeof above);
        constexpr int subnormal = 0x20;
        constexpr unsigned short every = 0xffff;
        const int lost = __builtin_ia32_fpclassps512_mask(below, subnormal, every) |
                         __builtin_ia32_fpclassps512_mask(above, subnormal, every);
        narrow codes;  // by name: compilers differ in the type of a vector of bfloat16, and older ones have none
        asm("vcvtne2ps2bf16 {%[below], %[above], %[codes]|%[codes], %[above], %[below]}\n\t"
            "vpermw %[codes], %[in_turns], %[codes]"
            : [codes] "=&v"(codes)
            : [below] "v"(below), [above] "v"(above), [in_turns] "v"(in_turns));
        __builtin_memcpy(to, &codes, sizeof codes);
        return lost == 0;
    }
#endif
};

}  // namespace ddl::kernel
