// SPDX-License-Identifier: Apache-2.0
#include <ddl/element/complex_parts.hpp>
#include <ddl/element/elements.hpp>
#include <ddl/kernel/widest.hpp>
#include <ddl/op/ops.hpp>

#include <boost/test/unit_test.hpp>

#include <complex>
#include <cstddef>
#include <cstring>
#include <vector>

using ddl::kernel::contracts;
using ddl::kernel::vectors;
using ddl::kernel::widest;

struct multiply_and_add {
    float operator()(float a, float b) const { return a * 1.0000001f + b; }
};

static_assert(!contracts<ddl::sum, float> && !contracts<ddl::average, double>, "one operation each: nothing to fuse");
static_assert(!contracts<ddl::maximum, ddl::half> && !contracts<ddl::minimum, ddl::bfloat16>);
static_assert(!contracts<ddl::sum, std::complex<float>> && contracts<ddl::product, std::complex<float>>);
static_assert(!contracts<ddl::average, ddl::complex_parts<double>>);
static_assert(contracts<multiply_and_add, float>, "a user's op may hold two");
static_assert(contracts<multiply_and_add, int>, "and calculate in float with integers");
static_assert(!contracts<ddl::sum, int> && !contracts<ddl::bit_xor, std::byte> && !contracts<ddl::logical_or, char>);

struct scaled {  // a program's own element, whose conversion is a product and a sum
    short code;
    explicit operator float() const { return static_cast<float>(code) * 0.0137f + 0.3f; }
};
using ddl::kernel::conversion_contracts;
using ddl::kernel::may_fuse;
static_assert(conversion_contracts<scaled, float> && conversion_contracts<float, scaled>);
static_assert(may_fuse<ddl::sum, float, scaled> && !may_fuse<ddl::sum, float, float>);
static_assert(!conversion_contracts<ddl::half, float> && !conversion_contracts<float, ddl::bfloat16>);
static_assert(!conversion_contracts<ddl::float8_e4m3, float> && !conversion_contracts<int, double>);
static_assert(!conversion_contracts<std::complex<float>, std::complex<double>>);

namespace {

/// What `a * 1.0000001f + b` gives on these vectors.
template <class Run>
std::vector<float> on(const Run& run) {
    std::vector<float> a(256), b(256), out(256);
    for (std::size_t i = 0; i < a.size(); ++i) {
        a[i] = static_cast<float>(i) / 7.0f;
        b[i] = -a[i] + 1.0e-6f;
    }
    const auto loop = [&]<vectors>() {
        for (std::size_t i = 0; i < 256; ++i) out[i] = multiply_and_add{}(a[i], b[i]);
    };
    run(loop);
    return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_loop_that_may_contract_gives_the_same_bits_on_every_machine) {
    const auto plain = on([](const auto& loop) { loop.template operator()<vectors::compiled>(); });
    const auto chosen = on([](const auto& loop) { widest<true>(loop); });
    BOOST_TEST(std::memcmp(plain.data(), chosen.data(), plain.size() * sizeof(float)) == 0);
#if defined(__x86_64__) && !defined(__AVX512BW__)
    if (ddl::kernel::has(vectors::avx2)) {
        const auto avx2 = on([](const auto& loop) { ddl::kernel::with<vectors::avx2>(loop); });
        BOOST_TEST(std::memcmp(plain.data(), avx2.data(), plain.size() * sizeof(float)) == 0);
    }
#endif
}

BOOST_AUTO_TEST_CASE(a_loop_runs_once_and_is_told_its_vectors) {
    int runs = 0;
    vectors told = vectors::compiled;
    widest<false>([&]<vectors Which>() {
        ++runs;
        told = Which;
    });
    BOOST_TEST(runs == 1);
#if defined(__x86_64__) && !defined(__AVX512BW__)
    BOOST_TEST(ddl::kernel::has(told));
    BOOST_TEST((told == vectors::avx512) == ddl::kernel::has(vectors::avx512));
#endif
}
