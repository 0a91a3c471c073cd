// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/element/alias.hpp>
#include <ddl/element/element.hpp>
#include <ddl/op/ordered.hpp>

#include <type_traits>

namespace ddl {
struct sum;
struct product;
struct minimum;
struct maximum;
struct average;
struct bit_and;
struct bit_or;
struct bit_xor;
struct logical_and;
struct logical_or;
struct logical_xor;
struct half;
struct bfloat16;
struct float8_e4m3;
struct float8_e5m2;
}  // namespace ddl

namespace ddl::kernel {

/// The vectors that a loop is compiled for.
enum class vectors { compiled, avx2, avx512 };  // `compiled`: those of the whole program

/// Values of 32 bits that a loop of `Which` vectors, AVX2 or wider, has stored at once: a load waits for stores that it spans.
/// 16 where compilers store 64 bytes at once.
template <vectors Which>
inline constexpr std::size_t stored_at_once =
#if defined(__tune_znver3__) || defined(__tune_znver4__) || defined(__tune_znver5__)
    16;
#else
    Which == vectors::avx512 ? 16 : 8;
#endif

#if defined(__x86_64__) && !defined(__AVX512BW__)
/// `loop`, and all that it calls and that can be inlined, compiled for AVX2. Without FMA: the bits stay those of any machine.
template <class Loop>
[[gnu::target("avx2,f16c"), gnu::flatten]] void with_avx2(const Loop& loop) {
    loop.template operator()<vectors::avx2>();
}
#if defined(__clang__)
template <class Loop>
[[gnu::target("avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl"), gnu::flatten]] void with_avx512(const Loop& loop) {
    loop.template operator()<vectors::avx512>();
}
#else
template <class Loop>
[[gnu::target("avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512"), gnu::flatten]] void with_avx512(
    const Loop& loop) {
    loop.template operator()<vectors::avx512>();
}
#endif

/// Whether the machine has `which`. A load and a branch. Every processor with AVX2 converts halves too.
inline bool has(vectors which) noexcept {
    if (which == vectors::avx512) return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    return which == vectors::compiled || __builtin_cpu_supports("avx2");
}

/// Runs `loop` on vectors that the machine has.
template <vectors Which, class Loop>
void with(const Loop& loop) {
    if constexpr (Which == vectors::avx512) with_avx512(loop);
    else if constexpr (Which == vectors::avx2) with_avx2(loop);
    else loop.template operator()<vectors::compiled>();
}
#endif

/// Runs `loop.operator()<vectors>()` compiled for the widest vectors that the machine has, where the program is compiled for
/// less.
///
/// `Contracts`: the loop may hold a product and a sum that AVX-512 would fuse, and so round otherwise than other machines;
/// it then gets AVX2. Costs a load and a branch. NEON needs no choice: every arm64 machine has it.
template <bool Contracts, class Loop>
void widest(const Loop& loop) {
#if defined(__x86_64__) && !defined(__AVX512BW__)
    if constexpr (!Contracts)
        if (has(vectors::avx512)) return with<vectors::avx512>(loop);
    if (has(vectors::avx2)) return with<vectors::avx2>(loop);
#endif
    loop.template operator()<vectors::compiled>();
}

template <class Type>
concept complex_number = requires(const Type& value) {
    requires std::is_arithmetic_v<typename Type::value_type>;
    value.real();
    value.imag();
};

template <class Type, class... Others>
inline constexpr bool is_any_of = (std::is_same_v<Type, Others> || ...);

/// Whether `Op` on values of `Type` may hold a product and a sum that AVX-512 would fuse into one rounding: be they integers, a
/// program's own op may calculate in `float`. These hold one of the two at most. Specialise it for an op of yours that is like them.
template <class Op, class Type>
inline constexpr bool contracts = true;
template <class Op, class Type>
    requires(std::is_arithmetic_v<Type> && is_any_of<Op, sum, product, minimum, maximum, average>) ||
                is_any_of<Op, bit_and, bit_or, bit_xor, logical_and, logical_or, logical_xor>
inline constexpr bool contracts<Op, Type> = false;
template <class Op, complex_number Type>  // a sum of them is one of their parts
    requires std::is_same_v<Op, sum> || std::is_same_v<Op, average>
inline constexpr bool contracts<Op, Type> = false;
template <class Op, coded Type>  // compared by their codes
    requires std::is_same_v<Op, minimum> || std::is_same_v<Op, maximum>
inline constexpr bool contracts<Op, Type> = false;

/// A number whose conversions the language or this library writes.
template <class Type>
concept known_number = std::is_arithmetic_v<Type> || complex_number<Type> || requires { alias_of<Type>::name; } ||
                       is_any_of<Type, half, bfloat16, float8_e4m3, float8_e5m2, compiler_half>;

/// Whether a conversion of one of these to the other may hold them: one that a program has written. Specialise it for such a one that
/// does not.
template <class From, class To>
inline constexpr bool conversion_contracts = !std::is_same_v<From, To> && !(known_number<From> && known_number<To>);

/// Whether a loop may hold them that calls `Op` on values of `Type`, which come or go as `Element`.
template <class Op, class Type, class Element>
inline constexpr bool may_fuse = contracts<Op, Type> || conversion_contracts<Element, Type>;

/// Whether the whole program is compiled for processors that fuse, or so that compilers put terms and quotients otherwise where they
/// like (`-ffast-math`, `-Ofast`).
inline constexpr bool compiled_to_round_freely =
#if defined(__FMA__) || defined(__FP_FAST_FMAF) || defined(__ARM_FEATURE_FMA) || defined(__ASSOCIATIVE_MATH__) || \
    defined(__RECIPROCAL_MATH__) || defined(__FAST_MATH__)
    true;
#else
    false;
#endif

/// Whether two loops over `Op` may give other bits: compilers choose in each which of two products they fuse, for one.
template <class Op, class Type, class Element>
inline constexpr bool varies_by_loop = compiled_to_round_freely && may_fuse<Op, Type, Element>;

}  // namespace ddl::kernel
