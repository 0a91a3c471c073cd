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
/// How many halves a loop of `Which` vectors converts at a time; 0 without an instruction for it. The same bits as `half`'s own
/// formula.
template <vectors Which>
inline constexpr std::size_t half_lanes =
#if defined(__AVX512F__)
    stored_at_once<Which>;
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
    [[gnu::target("avx512f")]] static void round(const float* from, narrow& codes) noexcept {
        wide values;
        __builtin_memcpy(&values, from, sizeof values);
        unsigned short every = 0xffff;
        codes = __builtin_ia32_vcvtps2ph512_mask(values, 0, narrow{}, every);  // 0: to nearest even
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
    [[gnu::target("f16c")]] static void round(const float* from, narrow& codes) noexcept {
        wide values;
        __builtin_memcpy(&values, from, sizeof values);
        codes = __builtin_ia32_vcvtps2ph256(values, 0);  // 0: to nearest even
    }
};

#else
template <vectors>
inline constexpr std::size_t half_lanes = 0;
#endif

}  // namespace ddl::kernel
