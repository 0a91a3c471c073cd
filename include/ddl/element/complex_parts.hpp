// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/element/element.hpp>

#include <bit>
#include <limits>

namespace ddl {

/// A complex number as its two parts, which lie as those of `std::complex` do. What kernels compute with: nvcc 13 leaves out what
/// `std::complex` of GCC's library computes, and says nothing.
///
/// The bits are those of `std::complex`, where no compiler fuses a product and a sum.
template <class Part>
struct complex_parts {
    using value_type = Part;

    Part real_part;
    Part imaginary_part;

    constexpr Part real() const noexcept { return real_part; }
    constexpr Part imag() const noexcept { return imaginary_part; }

    friend constexpr complex_parts operator+(const complex_parts& a, const complex_parts& b) noexcept {
        return {a.real_part + b.real_part, a.imaginary_part + b.imaginary_part};
    }
    friend constexpr complex_parts operator-(const complex_parts& a, const complex_parts& b) noexcept {
        return {a.real_part - b.real_part, a.imaginary_part - b.imaginary_part};
    }
    /// Source: the C standard of 2011, G.5.1: where both parts come out as NaN, infinities among the operands count.
    friend constexpr complex_parts operator*(const complex_parts& a, const complex_parts& b) noexcept {
        const complex_parts result = multiplied(a, b);
        const bool lost = is_nan(result.real_part) && is_nan(result.imaginary_part);
        return lost ? with_infinities(a, b, result) : result;
    }
    template <std::same_as<Part> Divisor>
    friend constexpr complex_parts operator/(const complex_parts& a, Divisor b) noexcept {
        return {a.real_part / b, a.imaginary_part / b};
    }
    friend constexpr bool operator==(const complex_parts&, const complex_parts&) = default;

private:
    static constexpr Part infinity = std::numeric_limits<Part>::infinity();

    static constexpr bool is_nan(Part value) noexcept { return value != value; }
    static constexpr bool is_infinite(Part value) noexcept { return value == infinity || value == -infinity; }
    static constexpr bool is_infinite(const complex_parts& value) noexcept {
        return is_infinite(value.real_part) || is_infinite(value.imaginary_part);
    }
    static constexpr Part with_sign_of(Part value, Part magnitude) noexcept {
        using bits = std::conditional_t<sizeof(Part) == 4, std::int32_t, std::int64_t>;
        return std::bit_cast<bits>(value) < 0 ? -magnitude : magnitude;
    }
    /// An infinity is 1, all else 0.
    static constexpr complex_parts boxed(const complex_parts& value) noexcept {
        const auto part = [](Part of) { return with_sign_of(of, static_cast<Part>(is_infinite(of) ? 1 : 0)); };
        return {part(value.real_part), part(value.imaginary_part)};
    }
    static constexpr complex_parts without_nan(const complex_parts& value) noexcept {
        const auto part = [](Part of) { return is_nan(of) ? with_sign_of(of, Part{0}) : of; };
        return {part(value.real_part), part(value.imaginary_part)};
    }
    static constexpr complex_parts multiplied(const complex_parts& a, const complex_parts& b) noexcept {
        return {a.real_part * b.real_part - a.imaginary_part * b.imaginary_part,
                a.real_part * b.imaginary_part + a.imaginary_part * b.real_part};
    }
    static constexpr complex_parts with_infinities(complex_parts a, complex_parts b,
                                                   const complex_parts& otherwise) noexcept {
        const bool overflows =
            is_infinite(a.real_part * b.real_part) || is_infinite(a.imaginary_part * b.imaginary_part) ||
            is_infinite(a.real_part * b.imaginary_part) || is_infinite(a.imaginary_part * b.real_part);
        bool infinite = false;
        if (is_infinite(a)) a = boxed(a), b = without_nan(b), infinite = true;
        if (is_infinite(b)) b = boxed(b), a = without_nan(a), infinite = true;
        if (!infinite && overflows) a = without_nan(a), b = without_nan(b), infinite = true;
        if (!infinite) return otherwise;
        const complex_parts result = multiplied(a, b);
        return {infinity * result.real_part, infinity * result.imaginary_part};
    }
};

template <>
struct naming<complex_parts<float>> {
    static constexpr const char* name = "complex64";
};

template <>
struct naming<complex_parts<double>> {
    static constexpr const char* name = "complex128";
};

static_assert(element<complex_parts<float>> && element<complex_parts<double>>);

}  // namespace ddl
