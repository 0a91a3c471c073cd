// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/element/alias.hpp>
#include <ddl/element/complex_parts.hpp>
#include <ddl/element/element.hpp>

#include <complex>

namespace ddl {

/// The names of `std::complex`. It is an element without this file too, only nameless: `<complex>` costs 0.3 s a file.
template <>
struct naming<std::complex<float>> : naming<complex_parts<float>> {};
template <>
struct naming<std::complex<double>> : naming<complex_parts<double>> {};

template <>
struct alias_of<std::complex<float>> {
    using type = complex_parts<float>;
};
template <>
struct alias_of<std::complex<double>> {
    using type = complex_parts<double>;
};

static_assert(element<std::complex<float>> && element<std::complex<double>>);

}  // namespace ddl
