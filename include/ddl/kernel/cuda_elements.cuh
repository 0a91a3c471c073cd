// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/element/alias.hpp>
#include <ddl/element/complex.hpp>
#include <ddl/element/elements.hpp>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

// CUDA's narrow types are ours by another name: the same bits, accumulated alike, rounded once.
namespace ddl {

/// What a type of CUDA's has in common with `Ours`.
template <class Ours>
struct like {
    using type = Ours;
    static constexpr const char* name = naming<Ours>::name;
};

template <>
struct alias_of<__half> : like<half> {};
template <>
struct alias_of<__nv_bfloat16> : like<bfloat16> {};
template <>
struct alias_of<__nv_fp8_e4m3> : like<float8_e4m3> {};
template <>
struct alias_of<__nv_fp8_e5m2> : like<float8_e5m2> {};

template <class Element>
    requires requires { alias_of<Element>::name; }
struct naming<Element> : alias_of<Element> {};
template <class Element>
    requires requires { alias_of<Element>::name; }
struct accumulation<Element> {
    using type = wide_t<typename alias_of<Element>::type>;
};

/// See `complex_parts`.
template <class Part>
inline constexpr bool computed_by_kernels<std::complex<Part>> = false;

static_assert(element<__half> && sizeof(__half) == sizeof(half));
static_assert(element<__nv_bfloat16> && sizeof(__nv_bfloat16) == sizeof(bfloat16));
static_assert(element<__nv_fp8_e4m3> && sizeof(__nv_fp8_e4m3) == sizeof(float8_e4m3));
static_assert(element<__nv_fp8_e5m2> && sizeof(__nv_fp8_e5m2) == sizeof(float8_e5m2));
static_assert(std::is_same_v<wide_t<__half>, float>);

}  // namespace ddl
