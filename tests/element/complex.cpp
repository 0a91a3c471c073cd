// SPDX-License-Identifier: Apache-2.0
#include <ddl/element/complex.hpp>
#include <ddl/op/ops.hpp>

#include <boost/test/unit_test.hpp>

#include <complex>
#include <cstring>
#include <limits>
#include <string_view>
#include <tuple>
#include <type_traits>

static_assert(ddl::element<std::complex<float>> && ddl::element<std::complex<double>>);
static_assert(std::is_same_v<ddl::wide_t<std::complex<float>>, std::complex<float>>);

using parts = std::tuple<float, double>;

BOOST_AUTO_TEST_CASE(complex_numbers_are_named_by_their_size) {
    BOOST_TEST(ddl::element_name<std::complex<float>>() == std::string_view{"complex64"});
    BOOST_TEST(ddl::element_name<std::complex<double>>() == std::string_view{"complex128"});
    BOOST_TEST(ddl::element_name<std::complex<long double>>() == std::string_view{"struct"});
}

namespace {

/// Whether both have the same bits; of a NaN neither sign nor payload count.
template <class Part>
bool same(const std::complex<Part>& left, const ddl::complex_parts<Part>& right) {
    const auto alike = [](Part a, Part b) { return (a != a && b != b) || std::memcmp(&a, &b, sizeof a) == 0; };
    return alike(left.real(), right.real()) && alike(left.imag(), right.imag());
}

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(parts_are_computed_as_the_library_does, Part, parts) {
    using limits = std::numeric_limits<Part>;
    const Part values[] = {0,
                           Part(-0.0),
                           1,
                           Part(-2.5),
                           limits::infinity(),
                           -limits::infinity(),
                           limits::quiet_NaN(),
                           limits::max(),
                           limits::lowest(),
                           limits::denorm_min()};
    for (const Part a : values)
        for (const Part b : values)
            for (const Part c : values)
                for (const Part d : values) {
                    const std::complex<Part> x{a, b};
                    const std::complex<Part> y{c, d};
                    const ddl::complex_parts<Part> p{a, b};
                    const ddl::complex_parts<Part> q{c, d};
                    BOOST_REQUIRE(same(x + y, p + q));
                    BOOST_REQUIRE(same(x - y, p - q));
                    BOOST_REQUIRE(same(x * y, p * q));
                    BOOST_REQUIRE(same(x / c, p / c));
                }
}

BOOST_AUTO_TEST_CASE(ops_take_parts_and_call_them_what_they_stand_for) {
    static_assert(std::is_same_v<ddl::alias_of<std::complex<float>>::type, ddl::complex_parts<float>>);
    static_assert(sizeof(ddl::complex_parts<double>) == sizeof(std::complex<double>));
    static_assert(ddl::combines<ddl::product, ddl::complex_parts<double>>);
    static_assert(!ddl::combines<ddl::minimum, ddl::complex_parts<float>>);
    BOOST_TEST(ddl::element_name<ddl::complex_parts<float>>() == std::string_view{"complex64"});
    const auto mean = ddl::finish(ddl::average{}, ddl::complex_parts<float>{3, 4}, 2);
    BOOST_TEST((mean == ddl::complex_parts<float>{1.5F, 2}));
}
