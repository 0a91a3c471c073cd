// SPDX-License-Identifier: Apache-2.0
#include <ddl/element/elements.hpp>
#include <ddl/kernel/combine.hpp>
#include <ddl/kernel/fold.hpp>
#include <ddl/kernel/packed.hpp>
#include <ddl/op/sum.hpp>

#include <boost/mpl/list.hpp>
#include <boost/test/unit_test.hpp>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

using ddl::kernel::lie;
using ddl::kernel::map_packed;
using ddl::kernel::vectors;

static_assert(ddl::kernel::packs<ddl::half, float> && ddl::kernel::packs<ddl::float8_e4m3, float>);
static_assert(!ddl::kernel::packs<float, float>, "a float fills its word alone");
static_assert(!ddl::kernel::packs<std::int8_t, std::int64_t>);

namespace {

using narrow_elements = boost::mpl::list<ddl::bfloat16, ddl::half, ddl::float8_e4m3, ddl::float8_e5m2>;

/// Floats of every exponent and sign: the ends and the middle of each binade's fractions, ties of every format and their
/// neighbours, infinities and NaNs, quiet and signalling.
const std::vector<float>& questions() {
    static const std::vector<float> all = [] {
        std::vector<float> made;
        const auto add = [&made](std::uint32_t bits) { made.push_back(std::bit_cast<float>(bits)); };
        for (std::uint32_t top = 0; top < 512; ++top) {
            for (std::uint32_t fraction = 0; fraction < 1024; ++fraction)
                for (const std::uint32_t low : {0u, 1u, 0xfffu, 0x1000u, 0x1001u, 0x1fffu})
                    add((top << 23) | (fraction << 13) | low);
            for (std::uint32_t fraction = 0; fraction < 0x800000u; fraction += 65537) add((top << 23) | fraction);
        }
        made.resize(made.size() / 64 * 64);
        return made;
    }();
    return all;
}

template <class Narrow>
std::vector<Narrow> codes() {
    std::vector<Narrow> all;
    const std::uint32_t count = 1u << (8 * sizeof(Narrow));
    for (std::uint32_t code = 0; code < count; ++code)
        all.push_back(Narrow::from_bits(static_cast<decltype(Narrow::bits)>(code)));
    return all;
}

/// Calls `act` with each kind of vectors that the program may use here.
template <class Act>
void on_all_vectors(const Act& act) {
    act(std::integral_constant<vectors, vectors::compiled>{});
#if defined(__x86_64__) && !defined(__AVX512BW__)
    if (ddl::kernel::has(vectors::avx2)) act(std::integral_constant<vectors, vectors::avx2>{});
    if (ddl::kernel::has(vectors::avx512)) act(std::integral_constant<vectors, vectors::avx512>{});
#endif
}

template <vectors Which, class Loop>
void run(const Loop& loop) {
#if defined(__x86_64__) && !defined(__AVX512BW__)
    ddl::kernel::with<Which>(loop);
#else
    loop.template operator()<vectors::compiled>();
#endif
}

const auto same = [](float value) { return value; };

template <class Narrow, class Which>
void check_both_ways(Which) {
    const auto narrow = codes<Narrow>();
    std::vector<float> wide(narrow.size());
    run<Which::value>([&]<vectors Here>() {
        map_packed<Narrow, lie::in_order, Here>(wide.data(), wide.size(), same, narrow.data());
    });
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < narrow.size(); ++i)
        wrong += std::bit_cast<std::uint32_t>(wide[i]) != std::bit_cast<std::uint32_t>(float{narrow[i]});
    BOOST_TEST(wrong == 0u, wrong << " codes are widened to other bits");

    const auto& asked = questions();
    std::vector<Narrow> rounded(asked.size());
    run<Which::value>([&]<vectors Here>() {
        map_packed<Narrow, lie::in_order, Here>(rounded.data(), rounded.size(), same, asked.data());
    });
    wrong = 0;
    for (std::size_t i = 0; i < asked.size(); ++i) wrong += rounded[i].bits != Narrow(asked[i]).bits;
    BOOST_TEST(wrong == 0u, wrong << " floats are rounded to other bits");
}

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(every_vector_path_gives_the_bits_of_one_element_at_a_time, Narrow, narrow_elements) {
    on_all_vectors([](auto which) { check_both_ways<Narrow>(which); });
}

BOOST_AUTO_TEST_CASE(a_subnormal_at_any_place_of_a_block_is_not_taken_for_zero) {
    constexpr std::size_t length = ddl::kernel::packed_block<ddl::bfloat16>;
    const ddl::bfloat16 smallest = ddl::bfloat16::from_bits(0x8001);
    on_all_vectors([&](auto which) {
        for (std::size_t place = 0; place < length; ++place) {
            std::vector<ddl::bfloat16> values(length, ddl::bfloat16(1.0f)), kept(length);
            values[place] = smallest;
            run<decltype(which)::value>([&]<vectors Here>() {
                map_packed<ddl::bfloat16, lie::in_planes, Here>(kept.data(), length, same, values.data());
            });
            for (std::size_t i = 0; i < length; ++i) BOOST_TEST(kept[i].bits == values[i].bits);
        }
    });
}

BOOST_AUTO_TEST_CASE(with_a_subnormal_a_block_goes_to_both_places_all_the_same) {
    constexpr std::size_t length = 2 * ddl::kernel::packed_block<ddl::bfloat16>;
    const ddl::kernel::combining<ddl::sum, float> add{ddl::sum{}};
    on_all_vectors([&](auto which) {
        for (std::size_t place = 0; place < length; ++place) {
            std::vector<ddl::bfloat16> left(length, ddl::bfloat16(1.0f)), right(length, ddl::bfloat16(2.0f));
            left[place] = ddl::bfloat16::from_bits(0x8001), right[place] = ddl::bfloat16(0.0f);
            run<decltype(which)::value>([&]<vectors Here>() {
                map_packed<ddl::bfloat16, lie::in_planes, Here>(
                    ddl::kernel::both<ddl::bfloat16>{left.data(), right.data()}, length, add,
                    static_cast<const ddl::bfloat16*>(left.data()), static_cast<const ddl::bfloat16*>(right.data()));
            });
            for (std::size_t i = 0; i < length; ++i) {
                BOOST_TEST(left[i].bits == (i == place ? 0x8001 : ddl::bfloat16(3.0f).bits));
                BOOST_TEST(right[i].bits == left[i].bits);
            }
        }
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(sums_have_the_bits_of_one_element_at_a_time, Narrow, narrow_elements) {
    const auto left = codes<Narrow>();
    const ddl::kernel::combining<ddl::sum, float> add{ddl::sum{}};
    on_all_vectors([&](auto which) {
        for (const std::size_t turned : {0U, 1U, 77U, 128U, 255U}) {  // beside small values, their negatives, NaNs
            std::vector<Narrow> right(left.size()), narrow(left.size()), of_wide(left.size());
            for (std::size_t i = 0; i < left.size(); ++i)
                right[i] = left[(i + turned * left.size() / 256) % left.size()];
            std::vector<float> wide(left.size());
            run<decltype(which)::value>([&]<vectors Here>() {
                map_packed<Narrow, lie::in_planes, Here>(narrow.data(), narrow.size(), add, left.data(), right.data());
                map_packed<Narrow, lie::in_planes, Here>(wide.data(), wide.size(), same, left.data());
                map_packed<Narrow, lie::in_planes, Here>(of_wide.data(), of_wide.size(), add,
                                                         static_cast<const float*>(wide.data()), right.data());
            });
            int wrong = 0;
            for (std::size_t i = 0; i < left.size(); ++i) {
                const Narrow expected{static_cast<float>(left[i]) + static_cast<float>(right[i])};
                if (std::isnan(static_cast<float>(expected)))  // which of two, an addition does not say
                    wrong += !std::isnan(static_cast<float>(narrow[i])) + !std::isnan(static_cast<float>(of_wide[i]));
                else wrong += (narrow[i].bits != expected.bits) + (of_wide[i].bits != expected.bits);
            }
            BOOST_TEST(wrong == 0);
        }
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(planes_are_put_back_in_order, Narrow, narrow_elements) {
    const auto narrow = codes<Narrow>();
    on_all_vectors([&](auto which) {
        std::vector<float> between(narrow.size());
        std::vector<Narrow> again(narrow.size());
        run<decltype(which)::value>([&]<vectors Here>() {
            map_packed<Narrow, lie::in_planes, Here>(between.data(), between.size(), same, narrow.data());
            map_packed<Narrow, lie::in_planes, Here>(again.data(), again.size(), same,
                                                     static_cast<const float*>(between.data()));
        });
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < narrow.size(); ++i)  // by its formulas: a compiler may leave out two conversions
            wrong += again[i].bits != Narrow::code_of(Narrow::value_of(narrow[i].bits));
        BOOST_TEST(wrong == 0u);
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_target_may_be_an_operand, Narrow, narrow_elements) {
    const std::vector<Narrow> arrived(128, Narrow(0.5f));
    on_all_vectors([&](auto which) {
        std::vector<float> ours(128);
        for (std::size_t i = 0; i < ours.size(); ++i) ours[i] = static_cast<float>(i);
        run<decltype(which)::value>([&]<vectors Here>() {
            map_packed<Narrow, lie::in_order, Here>(
                ours.data(), ours.size(), [](float own, float other) { return own - other; }, ours.data(),
                arrived.data());
        });
        for (std::size_t i = 0; i < ours.size(); ++i) BOOST_TEST(ours[i] == static_cast<float>(i) - 0.5f);
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(arrived_narrow_values_are_combined_in_float, Narrow, narrow_elements) {
    for (const std::size_t count : {0u, 1u, 31u, 32u, 63u, 64u, 65u, 200u}) {
        const std::vector<Narrow> arrived(count, Narrow(2.0f));
        std::vector<float> left(count + 1, 8.0f), right = left;
        const auto minus = [](float a, float b) { return a - b; };
        ddl::kernel::combine<ddl::kernel::side::left>(arrived.data(), left.data(), count, minus);
        ddl::kernel::combine<ddl::kernel::side::right>(arrived.data(), right.data(), count, minus);
        for (std::size_t i = 0; i <= count; ++i) {
            BOOST_TEST(left[i] == (i < count ? -6.0f : 8.0f));
            BOOST_TEST(right[i] == (i < count ? 6.0f : 8.0f));
        }
    }
}
