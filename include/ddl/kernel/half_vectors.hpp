// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/element/half.hpp>
#include <ddl/kernel/widest.hpp>

#include <cstddef>
#include <type_traits>

namespace ddl::kernel {

/// `Lanes` halves, and as many `float`.
template <std::size_t Lanes>
struct half_vectors;

#if defined(__x86_64__) && !defined(__CUDACC__)
/// How many halves an instruction of `Which` vectors converts; 0 without such an instruction. The same bits as `half`'s own
/// formula.
template <vectors Which>
inline constexpr std::size_t half_lanes =
#if defined(__AVX512F__)
    16;
#elif defined(__F16C__) && defined(__AVX2__)
    Which == vectors::avx512 ? 16 : 8;
#else
    Which == vectors::avx512 ? 16
    : Which == vectors::avx2 ? 8
                             : 0;
#endif

template <>
struct half_vectors<16> {
    typedef short narrow __attribute__((vector_size(32)));
    typedef float wide __attribute__((vector_size(64)));

    [[gnu::target("avx512f")]] static void widen(const half* from, float* to) noexcept {
        narrow codes;
        __builtin_memcpy(&codes, from, sizeof codes);
        unsigned short every = 0xffff;  // a variable: the compilers differ in its sign
        const wide values = __builtin_ia32_vcvtph2ps512_mask(codes, wide{}, every, 4);
        __builtin_memcpy(to, &values, sizeof values);
    }
    [[gnu::target("avx512f")]] static void round(const float* from, half* to) noexcept {
        wide values;
        __builtin_memcpy(&values, from, sizeof values);
        unsigned short every = 0xffff;
        const narrow codes = __builtin_ia32_vcvtps2ph512_mask(values, 0, narrow{}, every);  // 0: to nearest even
        __builtin_memcpy(static_cast<void*>(to), &codes, sizeof codes);
    }
};

template <>
struct half_vectors<8> {
    typedef short narrow __attribute__((vector_size(16)));
    typedef float wide __attribute__((vector_size(32)));

    [[gnu::target("f16c")]] static void widen(const half* from, float* to) noexcept {
        narrow codes;
        __builtin_memcpy(&codes, from, sizeof codes);
        const wide values = __builtin_ia32_vcvtph2ps256(codes);
        __builtin_memcpy(to, &values, sizeof values);
    }
    [[gnu::target("f16c")]] static void round(const float* from, half* to) noexcept {
        wide values;
        __builtin_memcpy(&values, from, sizeof values);
        const narrow codes = __builtin_ia32_vcvtps2ph256(values, 0);  // 0: to nearest even
        __builtin_memcpy(static_cast<void*>(to), &codes, sizeof codes);
    }
};

#else
template <vectors>
inline constexpr std::size_t half_lanes = 0;
#endif

}  // namespace ddl::kernel
