// SPDX-License-Identifier: Apache-2.0
#include <ddl/element/narrow_format.hpp>

#include <boost/test/unit_test.hpp>

#include <bit>
#include <cstdint>

#include "nearest.hpp"

namespace {

template <int ExponentBits, int FractionBits>
unsigned wrong_answers() {
    using format = ddl::narrow_format<ExponentBits, FractionBits>;
    const nearest oracle{ExponentBits, FractionBits, 1u << (ExponentBits + FractionBits)};
    unsigned wrong = 0;
    for (unsigned code = 0; code < oracle.codes(); ++code)
        wrong += double{std::bit_cast<float>(format::widened(code))} != oracle.value(code);
    for (const float question : oracle.questions())
        if (double{question} <= oracle.value(oracle.codes() - 1))
            wrong += format::rounded(std::bit_cast<std::uint32_t>(question)) != oracle.code(question);
    return wrong;
}

}  // namespace

static_assert(ddl::narrow_format<5, 10>::rounded(std::bit_cast<std::uint32_t>(65536.0f)) == 0x7c00,
              "rounding up past the largest half arrives at the code of infinity");

BOOST_AUTO_TEST_CASE(one_formula_serves_every_narrow_format) {
    BOOST_TEST((wrong_answers<5, 10>() == 0u));
    BOOST_TEST((wrong_answers<4, 3>() == 0u));
    BOOST_TEST((wrong_answers<5, 2>() == 0u));
    BOOST_TEST((wrong_answers<3, 2>() == 0u), "OCP's 6-bit E3M2");
    BOOST_TEST((wrong_answers<2, 1>() == 0u), "OCP's 4-bit E2M1");
    BOOST_TEST((wrong_answers<6, 9>() == 0u));
}
