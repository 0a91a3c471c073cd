// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/element/half.hpp>
#include <ddl/kernel/widest.hpp>

#include <cstddef>
#if defined(__x86_64__) && !defined(__CUDACC__)
#include <immintrin.h>
#elif defined(__aarch64__) && !defined(__CUDACC__)
#include <arm_neon.h>
#endif

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
    typedef __m256i narrow;
    static constexpr __mmask16 every = 0xffff;  // g++ 12 warns of what unmasked ones leave undefined inside

    [[gnu::target("avx512f")]] static void widen(const half* from, float* to) noexcept {
        narrow codes;
        __builtin_memcpy(&codes, from, sizeof codes);
        _mm512_storeu_ps(to, _mm512_maskz_cvtph_ps(every, codes));
    }
    [[gnu::target("avx512f")]] static void round(const float* from, narrow& codes) noexcept {
        codes = _mm512_maskz_cvtps_ph(every, _mm512_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT);
    }
};

template <>
struct half_vectors<8> {
    typedef __m128i narrow;

    [[gnu::target("f16c")]] static void widen(const half* from, float* to) noexcept {
        narrow codes;
        __builtin_memcpy(&codes, from, sizeof codes);
        _mm256_storeu_ps(to, _mm256_cvtph_ps(codes));
    }
    [[gnu::target("f16c")]] static void round(const float* from, narrow& codes) noexcept {
        codes = _mm256_cvtps_ph(_mm256_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT);
    }
};

#elif defined(__aarch64__) && !defined(__CUDACC__)
template <vectors>
inline constexpr std::size_t half_lanes = 8;

template <>
struct half_vectors<8> {
    typedef float16x8_t narrow;

    static void widen(const half* from, float* to) noexcept {
        narrow codes;
        __builtin_memcpy(&codes, from, sizeof codes);
        vst1q_f32(to, vcvt_f32_f16(vget_low_f16(codes)));
        vst1q_f32(to + 4, vcvt_high_f32_f16(codes));
    }
    static void round(const float* from, narrow& codes) noexcept {
        codes = vcvt_high_f16_f32(vcvt_f16_f32(vld1q_f32(from)), vld1q_f32(from + 4));
    }
};

#else
template <vectors>
inline constexpr std::size_t half_lanes = 0;
#endif

}  // namespace ddl::kernel
