// SPDX-License-Identifier: Apache-2.0
#include <ddl/element/complex.hpp>

#include <boost/test/unit_test.hpp>

#include <complex>
#include <string_view>
#include <type_traits>

static_assert(ddl::element<std::complex<float>> && ddl::element<std::complex<double>>);
static_assert(std::is_same_v<ddl::wide_t<std::complex<float>>, std::complex<float>>);

BOOST_AUTO_TEST_CASE(complex_numbers_are_named_by_their_size) {
    BOOST_TEST(ddl::element_name<std::complex<float>>() == std::string_view{"complex64"});
    BOOST_TEST(ddl::element_name<std::complex<double>>() == std::string_view{"complex128"});
    BOOST_TEST(ddl::element_name<std::complex<long double>>() == std::string_view{"struct"});
}
