// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/element/element.hpp>

#include <complex>

namespace ddl {

/// The names of `std::complex`. It is an element without this file too, only nameless: `<complex>` costs 0.3 s a file.
template <>
struct naming<std::complex<float>> {
    static constexpr const char* name = "complex64";
};

template <>
struct naming<std::complex<double>> {
    static constexpr const char* name = "complex128";
};

static_assert(element<std::complex<float>> && element<std::complex<double>>);

}  // namespace ddl
