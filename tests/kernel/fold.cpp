// SPDX-License-Identifier: Apache-2.0
#include <ddl/element/elements.hpp>
#include <ddl/kernel/fold.hpp>
#include <ddl/op/ops.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <tuple>
#include <vector>

namespace data = boost::unit_test::data;
using ddl::kernel::convert;
using ddl::kernel::finish;
using ddl::kernel::fold;

namespace {

struct minus {
    template <class Type>
    constexpr Type operator()(const Type& a, const Type& b) const {
        return static_cast<Type>(a - b);
    }
};

/// An interval of ranks, which only a neighbour on the proper side can be joined to. It has no default constructor.
struct interval {
    int first, last;
    constexpr interval(int f, int l) : first{f}, last{l} {}
    friend constexpr bool operator==(const interval&, const interval&) = default;
};
struct join {
    constexpr interval operator()(const interval& a, const interval& b) const {
        return a.last == b.first ? interval{a.first, b.last} : interval{-1, -1};
    }
};

/// Larger than the tile of a fold: what is between must not be cut in the middle of an element.
struct large {
    double values[700];
};
struct add_large {
    large operator()(const large& a, const large& b) const {
        large result = a;
        for (int i = 0; i < 700; ++i) result.values[i] += b.values[i];
        return result;
    }
};

template <class Element>
using rows = std::vector<std::vector<Element>>;
template <class Element>
auto in_order(const rows<Element>& operands) {
    return [&operands](int s) { return operands[static_cast<std::size_t>(s)].data(); };
}

const std::size_t counts[] = {0, 1, 3, 4, 5, 63, 64, 65, 511, 512, 513, 1000, 1024, 1025, 5000};

template <class Element>
rows<Element> numbers(int operands, std::size_t count) {
    rows<Element> result(static_cast<std::size_t>(operands));
    for (std::size_t s = 0; s < result.size(); ++s)
        for (std::size_t i = 0; i < count; ++i) {
            const auto number = static_cast<float>((s * 13 + i * 7) % 11 + 1);
            result[s].push_back(static_cast<Element>(number));
        }
    return result;
}

/// Beside a loop that does one element at a time, from the first operand to the last.
template <class Element, class Op>
void check(int operands, std::size_t count, const Op& op) {
    const auto all = numbers<Element>(operands, count);
    std::vector<Element> out(count + 1, Element{});
    fold(in_order(all), operands, out.data(), count, op, operands);
    using accumulator = ddl::accumulator_t<Op, Element>;
    for (std::size_t i = 0; i < count; ++i) {
        accumulator sum = static_cast<accumulator>(all[0][i]);
        for (std::size_t s = 1; s < all.size(); ++s) sum = op(sum, static_cast<accumulator>(all[s][i]));
        BOOST_TEST((out[i] == static_cast<Element>(ddl::finish(op, sum, operands))),
                   "element " << i << " of " << count);
    }
    BOOST_TEST((out[count] == Element{}), "the next one is not ours");
}

}  // namespace

static_assert([] {
    const float from[] = {1.5f, 2.5f};
    int to[] = {0, 0};
    convert(from, to, 2);
    return to[0] == 1 && to[1] == 2;
}());
static_assert(
    [] {
        const double accumulated[] = {6.0, 9.0};
        float out[] = {0, 0};
        finish(accumulated, out, 2, ddl::average{}, 3);
        return out[0] == 2.0f && out[1] == 3.0f;
    }(),
    "an op's last step is done once, for all contributions");

BOOST_DATA_TEST_CASE(operands_are_folded_from_the_first_to_the_last, data::make(counts), count) {
    for (const int operands : {1, 2, 3, 8}) {
        check<int>(operands, count, minus{});
        check<double>(operands, count, minus{});
        check<ddl::half>(operands, count, minus{});
    }
}

BOOST_DATA_TEST_CASE(any_op_and_element, data::make(counts), count) {
    check<float>(4, count, ddl::sum{});
    check<std::uint8_t>(4, count, ddl::average{});
    check<std::int64_t>(4, count, ddl::maximum{});
    check<ddl::bfloat16>(4, count, ddl::sum{});
    check<ddl::float8_e4m3>(4, count, ddl::average{});
}

BOOST_AUTO_TEST_CASE(one_operand_is_finished_all_the_same) {
    const rows<float> all = {{3.0f, 6.0f}};
    float out[2];
    fold(in_order(all), 1, out, 2, ddl::average{}, 3);
    BOOST_TEST(out[0] == 1.0f, "as what three ranks have accumulated");
    BOOST_TEST(out[1] == 2.0f);
}

BOOST_AUTO_TEST_CASE(narrow_values_are_accumulated_in_float_and_rounded_once) {
    const rows<ddl::bfloat16> ones(1000, std::vector<ddl::bfloat16>(70, ddl::bfloat16(1.0f)));
    std::vector<ddl::bfloat16> out(70, ddl::bfloat16(0.0f));
    fold(in_order(ones), 1000, out.data(), 70, ddl::sum{}, 1000);
    for (const ddl::bfloat16 total : out) BOOST_TEST(float{total} == 1000.0f, "eight bits would stop at 256");

    // 2048 + 1 + 1: rounded after each addition a half stays at 2048
    const rows<ddl::half> halves = {{ddl::half(2048.0f)}, {ddl::half(1.0f)}, {ddl::half(1.0f)}};
    ddl::half sum(0.0f);
    fold(in_order(halves), 3, &sum, 1, ddl::sum{}, 3);
    BOOST_TEST(float{sum} == 2050.0f);

    // the sum of four is beyond what a half holds, their mean is not
    const rows<ddl::half> large_ones(4, std::vector<ddl::half>{ddl::half(60000.0f)});
    fold(in_order(large_ones), 4, &sum, 1, ddl::average{}, 4);
    BOOST_TEST(float{sum} == float{ddl::half(60000.0f)});
}

BOOST_AUTO_TEST_CASE(the_mean_of_short_integers_does_not_overflow_on_the_way) {
    const rows<std::int8_t> all(100, std::vector<std::int8_t>{127, -128});
    std::int8_t out[2];
    fold(in_order(all), 100, out, 2, ddl::average{}, 100);
    BOOST_TEST(out[0] == 127);
    BOOST_TEST(out[1] == -128);
}

BOOST_DATA_TEST_CASE(the_result_may_lie_in_any_source, data::xrange(0, 4), which) {
    auto all = numbers<double>(4, 1500);
    std::vector<double> expected(1500);
    fold(in_order(all), 4, expected.data(), 1500, minus{}, 4);
    auto& target = all[static_cast<std::size_t>(which)];
    fold(in_order(all), 4, target.data(), 1500, minus{}, 4);
    BOOST_TEST(target == expected, boost::test_tools::per_element());
}

namespace {

/// A mean whose op returns more than is accumulated, as a user may write it.
struct wide {
    int value;
    constexpr wide(int v) : value{v} {}
    constexpr operator std::int8_t() const { return static_cast<std::int8_t>(value); }
};
struct wide_mean {
    constexpr wide operator()(const std::int8_t& a, const std::int8_t& b) const { return {a + b}; }
    constexpr std::int8_t finish(const wide& sum, int ranks) const {
        return static_cast<std::int8_t>(sum.value / ranks);
    }
};

/// Two operands of four elements, and of so many that they go another way; in place of either, too.
template <class Element, class Op>
void check_few(const Op& op, const rows<Element>& all) {
    rows<Element> repeated(2);
    for (const std::size_t s : {0U, 1U})
        for (int i = 0; i < 100; ++i) repeated[s].insert(repeated[s].end(), all[s].begin(), all[s].end());
    std::vector<Element> many(repeated[0]), few(all[0]);
    fold(in_order(repeated), 2, many.data(), 500, op, 2);
    fold(in_order(all), 2, few.data(), 4, op, 2);
    BOOST_TEST(std::memcmp(few.data(), many.data(), 4 * sizeof(Element)) == 0);
    for (const std::size_t which : {0U, 1U}) {
        rows<Element> own = all;
        fold(in_order(own), 2, own[which].data(), 4, op, 2);
        BOOST_TEST(std::memcmp(own[which].data(), many.data(), 4 * sizeof(Element)) == 0, "in place of " << which);
        BOOST_TEST(std::memcmp(&own[which][4], &all[which][4], sizeof(Element)) == 0, "the next one is not ours");
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE(few_elements_come_to_the_same_as_many) {
    check_few<std::int8_t>(wide_mean{}, {{100, -100, 127, 1, 100}, {100, -100, 127, 2, 100}});
    check_few<std::int8_t>(ddl::average{}, {{100, -100, 127, 1, 100}, {100, -100, 127, 2, 100}});
    check_few<double>(minus{}, {{1, 2, 3, 4, 5}, {5, 3, 1, -1, 7}});
    check_few<interval>(join{}, {{5, interval{0, 1}}, {5, interval{1, 2}}});
    const auto halves = numbers<ddl::half>(2, 5);
    check_few<ddl::half>(ddl::sum{}, halves);
    check_few<ddl::half>(ddl::average{}, halves);
    check_few<ddl::bfloat16>(ddl::product{}, numbers<ddl::bfloat16>(2, 5));
    check_few<ddl::float8_e5m2>(ddl::maximum{}, numbers<ddl::float8_e5m2>(2, 5));
}

BOOST_AUTO_TEST_CASE(few_elements_of_one_operand_are_copied_bit_by_bit) {
    const rows<ddl::bfloat16> all(1,
                                  std::vector<ddl::bfloat16>(4, std::bit_cast<ddl::bfloat16>(std::uint16_t{0x7f81})));
    std::vector<ddl::bfloat16> out(4);
    fold(in_order(all), 1, out.data(), 4, ddl::sum{}, 1);
    BOOST_TEST(std::memcmp(out.data(), all[0].data(), 4 * sizeof(ddl::bfloat16)) == 0);
}

BOOST_AUTO_TEST_CASE(elements_need_no_default_constructor) {
    rows<interval> all;
    for (int s = 0; s < 5; ++s) all.emplace_back(1500, interval{s, s + 1});
    std::vector<interval> out(1500, interval{-2, -2});
    fold(in_order(all), 5, out.data(), 1500, join{}, 5);
    BOOST_TEST((out == std::vector<interval>(1500, interval{0, 5})));
}

BOOST_AUTO_TEST_CASE(an_element_may_be_larger_than_a_tile) {
    const rows<large> all(2, std::vector<large>(3, large{{1.0, 2.0}}));
    std::vector<large> out(3);
    fold(in_order(all), 2, out.data(), 3, add_large{}, 2);
    for (const large& each : out) {
        BOOST_TEST(each.values[0] == 2.0);
        BOOST_TEST(each.values[1] == 4.0);
        BOOST_TEST(each.values[699] == 0.0);
    }
}

BOOST_DATA_TEST_CASE(sources_need_no_more_than_the_elements_own_alignment, data::xrange(0, 9), offset) {
    const auto skipped = static_cast<std::size_t>(offset);
    const rows<float> all(3, std::vector<float>(1500, 1.5f));
    std::vector<float> out(1500, 0.0f);
    fold([&](int s) { return all[static_cast<std::size_t>(s)].data() + (s == 1 ? skipped : 0); }, 3,
         out.data() + skipped, 1400, ddl::sum{}, 3);
    for (std::size_t i = 0; i < out.size(); ++i)
        BOOST_TEST(out[i] == (skipped <= i && i < skipped + 1400 ? 4.5f : 0.0f), "element " << i);
}

BOOST_AUTO_TEST_CASE(finishing_may_be_done_in_place) {
    std::vector<double> values(100, 6.0);
    finish(values.data(), values.data(), values.size(), ddl::average{}, 4);
    BOOST_TEST(values == std::vector<double>(100, 1.5), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(results_go_to_every_target_also_past_the_caches) {
    using ddl::kernel::stores;
    for (const stores how : {stores::cached, stores::streamed})
        for (const std::size_t count : {0u, 1u, 65u, 1500u}) {
            const auto all = numbers<ddl::bfloat16>(3, count);
            std::vector<ddl::bfloat16> expected(count);
            fold(in_order(all), 3, expected.data(), count, ddl::sum{}, 3);
            rows<ddl::bfloat16> outs(3, std::vector<ddl::bfloat16>(count + 1, ddl::bfloat16(-1.0f)));
            fold<ddl::bfloat16>(
                in_order(all), 3, [&outs](int t) { return outs[static_cast<std::size_t>(t)].data(); }, 3, count,
                ddl::sum{}, 3, how);
            for (const auto& out : outs) {
                for (std::size_t i = 0; i < count; ++i) BOOST_TEST(out[i].bits == expected[i].bits);
                BOOST_TEST(float{out[count]} == -1.0f, "the next one is not ours");
            }
        }
}

BOOST_AUTO_TEST_CASE(every_source_may_be_a_target) {
    auto all = numbers<float>(3, 1500);
    std::vector<float> expected(1500);
    fold(in_order(all), 3, expected.data(), 1500, minus{}, 3);
    fold<float>(
        in_order(all), 3, [&all](int t) { return all[static_cast<std::size_t>(t)].data(); }, 3, 1500, minus{}, 3);
    for (const auto& target : all) BOOST_TEST(target == expected, boost::test_tools::per_element());
}

using folded_elements =
    std::tuple<float, ddl::bfloat16, ddl::half, std::int16_t>;  // as they are, packed, and converted on the way

namespace {

/// `position`: of the target that is source `shared`, or of none.
template <class Element, class Op>
void check_targets(int operands, int targets, int shared, int position, const Op& op) {
    auto all = numbers<Element>(operands, 1100);
    std::vector<Element> expected(1100);
    fold(in_order(all), operands, expected.data(), 1100, op, operands);
    rows<Element> outs(3, std::vector<Element>(1100));
    const auto into = [&](int t) {
        return t == position ? all[static_cast<std::size_t>(shared)].data() : outs[static_cast<std::size_t>(t)].data();
    };
    fold<Element>(in_order(all), operands, into, targets, 1100, op, operands);
    for (int t = 0; t < targets; ++t)
        BOOST_TEST(
            std::memcmp(into(t), expected.data(), 1100 * sizeof(Element)) == 0,
            operands << " operands, source " << shared << ", target " << t << " of " << targets << ", " << position);
}

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(targets_beside_sources_get_the_same, Element, folded_elements) {
    for (const int targets : {1, 2, 3})
        for (int operands = 1; operands <= 4; ++operands)
            for (int shared = 0; shared < operands; ++shared)
                for (int position = 0; position <= targets; ++position) {
                    check_targets<Element>(operands, targets, shared, position, ddl::average{});
                    check_targets<Element>(operands, targets, shared, position, minus{});
                }
}

namespace {

/// Of two operands into one place and into two, of which `shared` are operands, against one element at a time.
template <class Element, class Op>
void check_count(std::size_t count, int shared, int targets, const Op& op) {
    auto all = numbers<Element>(2, count);
    for (auto& row : all) row.push_back(Element(96.0f));
    std::vector<Element> expected;
    expected.reserve(count + 1);  // so that none lie somewhere, too
    using accumulator = ddl::accumulator_t<Op, Element>;
    for (std::size_t i = 0; i < count; ++i)
        expected.push_back(static_cast<Element>(
            ddl::finish(op, op(static_cast<accumulator>(all[0][i]), static_cast<accumulator>(all[1][i])), 2)));
    rows<Element> outs(2, std::vector<Element>(count + 1, Element(96.0f)));
    const auto into = [&](int t) {
        const auto place = static_cast<std::size_t>(t);
        return ((shared >> t & 1) != 0 ? all : outs)[place].data();
    };
    const std::string_view what = ddl::element_name<Element>();
    if (targets == 1) fold(in_order(all), 2, into(0), count, op, 2);
    else fold<Element>(in_order(all), 2, into, 2, count, op, 2);
    for (int t = 0; t < targets; ++t) {
        BOOST_TEST(std::memcmp(into(t), expected.data(), count * sizeof(Element)) == 0,
                   count << " of " << what << ", target " << t << " of " << targets << ", shared " << shared);
        BOOST_TEST(float(into(t)[count]) == 96.0f, "the next one is not ours");
    }
}

}  // namespace

using elements_of_blocks = std::tuple<float, ddl::bfloat16, ddl::half, ddl::float8_e4m3, ddl::float8_e5m2>;

BOOST_AUTO_TEST_CASE_TEMPLATE(every_count_fills_its_blocks, Element, elements_of_blocks) {
    for (std::size_t count = 0; count <= 200; ++count)
        for (const int targets : {1, 2})
            for (int shared = 0; shared < 1 << targets; ++shared) {
                check_count<Element>(count, shared, targets, minus{});
                check_count<Element>(count, shared, targets, ddl::average{});
            }
}

namespace {

/// An op that is meant for what operands hold, and for nothing else.
struct careful_sum {
    bool* surprised;
    float operator()(float a, float b) const {
        if (a < 1.0f || b < 1.0f) *surprised = true;
        return a + b;
    }
};

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(an_op_sees_no_values_but_those_of_operands, Element, elements_of_blocks) {
    bool surprised = false;
    for (std::size_t count = 0; count <= 200; ++count) {
        const auto all = numbers<Element>(2, count);
        std::vector<Element> out(count);
        fold(in_order(all), 2, out.data(), count, careful_sum{&surprised}, 2);
    }
    BOOST_TEST(!surprised);
}

BOOST_AUTO_TEST_CASE(elements_may_be_assigned_by_moves_alone) {
    struct moved {
        int value;
        explicit moved(int v) : value{v} {}
        moved(const moved&) = default;
        moved& operator=(moved&&) = default;
        moved operator-(const moved& other) const { return moved{value - other.value}; }
    };
    rows<moved> all;
    for (const int value : {7, 3}) all.emplace_back(70, moved{value});
    fold<moved>(
        in_order(all), 2, [&](int t) { return all[static_cast<std::size_t>(t)].data(); }, 2, 70, minus{}, 2);
    for (const auto& row : all)
        for (const moved& each : row) BOOST_TEST(each.value == 4);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(two_sources_may_be_the_two_targets, Element, folded_elements) {
    for (const std::size_t count : counts)
        for (const bool turned : {false, true}) {
            auto all = numbers<Element>(2, count);
            for (auto& row : all) row.push_back(static_cast<Element>(100));
            std::vector<Element> expected(count);
            fold(in_order(all), 2, expected.data(), count, minus{}, 2);
            fold<Element>(
                in_order(all), 2, [&](int t) { return all[(t == 0) == turned ? 1 : 0].data(); }, 2, count, minus{}, 2);
            for (const auto& target : all) {
                BOOST_TEST((count == 0 || std::memcmp(target.data(), expected.data(), count * sizeof(Element)) == 0),
                           count << " elements" << (turned ? ", turned" : ""));
                BOOST_TEST((target[count] == static_cast<Element>(100)), "the next one is not ours");
            }
        }
}

// A program's own element: what makes it a number is a product and a sum, which a processor may fuse.
struct quantised {
    std::int16_t code;
    quantised() = default;
    explicit quantised(float value)
        : code{static_cast<std::int16_t>(static_cast<std::int64_t>((value - 0.3f) * 729927.0f))} {}
    explicit operator float() const { return static_cast<float>(code) * 0.0137f + 0.3f; }
};

template <>
struct ddl::accumulation<quantised> {
    using type = float;
};

namespace {

// A program's own op, which calculates in `float` between integers.
struct blend {
    template <class Element>
    using accumulator = std::int32_t;
    constexpr std::int32_t operator()(std::int32_t a, std::int32_t b) const {
        const float both = static_cast<float>(a) * 0.37f + static_cast<float>(b) * 0.73f;
        return static_cast<std::int32_t>(static_cast<std::int64_t>(both * 30000.0f));  // be it more than 32 bits hold
    }
};

/// Elements at which a fold to one place differs from the same to another one, which begins elsewhere in its line.
template <class Element, class Make, class Op>
std::size_t differing(const Make& make, const Op& op, int operands) {
    constexpr std::size_t count = 1500;
    std::vector<std::vector<Element>> sources;
    for (int s = 0; s < operands; ++s) {
        sources.emplace_back(count);
        for (std::size_t i = 0; i < count; ++i)
            sources.back()[i] =
                make(static_cast<int>((i * 2654435761U + static_cast<std::size_t>(s) * 40503U) >> 7 & 0xfff));
    }
    const auto from = [&](int s) { return sources[static_cast<std::size_t>(s)].data(); };
    std::vector<Element> first(count + 64), other(count + 64);
    std::size_t most = 0;
    for (std::size_t offset = 0; offset < 64; offset += 7) {
        ddl::kernel::fold(from, operands, first.data(), count, op, operands);
        ddl::kernel::fold(from, operands, other.data() + offset, count, op, operands);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < count; ++i)
            wrong += std::memcmp(&first[i], &other[offset + i], sizeof(Element)) != 0 ? 1U : 0U;
        most = std::max(most, wrong);
    }
    return most;
}

}  // namespace

BOOST_AUTO_TEST_CASE(where_results_lie_changes_no_bit_of_what_a_program_calculates) {
    for (const int operands : {2, 3, 5}) {
        const auto code = [](int value) {
            quantised made{};
            made.code = static_cast<std::int16_t>(value - 2048);
            return made;
        };
        BOOST_TEST(differing<quantised>(code, ddl::sum{}, operands) == 0U);
        const auto byte = [](int value) { return static_cast<std::int8_t>(value); };
        BOOST_TEST(differing<std::int8_t>(byte, blend{}, operands) == 0U);
    }
}
