// SPDX-License-Identifier: Apache-2.0
#include <ddl/kernel/combine.hpp>
#include <ddl/kernel/fold.hpp>
#include <ddl/op/ops.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace data = boost::unit_test::data;
using ddl::kernel::combine;
using ddl::kernel::share;
using ddl::kernel::side;

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

/// `ours` of one thread that has `mine` of eight elements.
constexpr bool each_element_once(std::size_t threads) {
    int arrived[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    int ours[8] = {};
    for (std::size_t thread = 0; thread < threads; ++thread)
        combine<side::left>(share{thread, threads}, arrived, ours, 8, ddl::sum{});
    for (int i = 0; i < 8; ++i)
        if (ours[i] != i + 1) return false;
    return true;
}

constexpr int of_one(bool left) {
    const int arrived[] = {10};
    int ours[] = {3};
    if (left) combine<side::left>(arrived, ours, 1, minus{});
    else combine<side::right>(arrived, ours, 1, minus{});
    return ours[0];
}

const std::size_t counts[] = {0, 1, 2, 63, 64, 65, 127, 128, 1000};

/// Beside a loop that does one element at a time; elements beyond the last are left alone.
template <class Element, class Op>
void check(std::size_t count, const Op& op) {
    std::vector<Element> arrived, ours;
    for (std::size_t i = 0; i < count + 1; ++i) {
        arrived.push_back(static_cast<Element>(static_cast<float>(i % 7 + 1)));
        ours.push_back(static_cast<Element>(static_cast<float>(i % 5 + 2)));
    }
    const std::vector<Element> before = ours;
    std::vector<Element> from_left = ours, from_right = ours;
    combine<side::left>(arrived.data(), from_left.data(), count, op);
    combine<side::right>(arrived.data(), from_right.data(), count, op);
    for (std::size_t i = 0; i < count; ++i) {
        BOOST_TEST((from_left[i] == op(arrived[i], before[i])), "element " << i << " of " << count);
        BOOST_TEST((from_right[i] == op(before[i], arrived[i])), "element " << i << " of " << count);
    }
    BOOST_TEST((from_left[count] == before[count] && from_right[count] == before[count]), "the next one is not ours");
    std::vector<Element> to_left = arrived, to_right = arrived;
    combine<side::left>(arrived.data(), before.data(), to_left.data(), count, op);
    combine<side::right>(arrived.data(), before.data(), to_right.data(), count, op);
    from_left[count] = from_right[count] = arrived[count];
    BOOST_TEST((to_left == from_left && to_right == from_right), "the same elsewhere, and no more");
}

}  // namespace

static_assert(of_one(true) == 7, "an operand from the left stands left of ours");
static_assert(of_one(false) == -7, "and one from the right stands right of it");
static_assert(each_element_once(1) && each_element_once(3) && each_element_once(8), "threads share the elements");
static_assert(each_element_once(20), "of which there may be fewer than threads");

BOOST_DATA_TEST_CASE(the_order_of_operands_is_kept_for_any_count, data::make(counts), count) {
    check<int>(count, minus{});
    check<double>(count, minus{});
    check<std::int8_t>(count, minus{});
}

BOOST_DATA_TEST_CASE(any_op_and_element, data::make(counts), count) {
    check<float>(count, ddl::sum{});
    check<std::uint8_t>(count, ddl::sum{});
    check<std::int64_t>(count, ddl::product{});
    check<std::uint32_t>(count, ddl::bit_xor{});
    check<long double>(count, ddl::maximum{});
    check<std::complex<float>>(count, ddl::product{});
    check<int>(count, [](int a, int b) { return 2 * a - b; });
}

BOOST_AUTO_TEST_CASE(elements_need_no_default_constructor) {
    std::vector<interval> lower(70, interval{0, 2}), upper(70, interval{2, 5});
    auto ours = upper;
    combine<side::left>(lower.data(), ours.data(), ours.size(), join{});
    BOOST_TEST((ours == std::vector<interval>(70, interval{0, 5})));
    ours = lower;
    combine<side::right>(upper.data(), ours.data(), ours.size(), join{});
    BOOST_TEST((ours == std::vector<interval>(70, interval{0, 5})));
}

BOOST_DATA_TEST_CASE(pointers_need_no_more_than_the_elements_own_alignment, data::xrange(0, 9), offset) {
    const auto skipped = static_cast<std::size_t>(offset);
    std::vector<float> arrived(skipped + 1000, 1.5f), ours(9 - skipped + 1000, 2.0f);
    combine<side::left>(arrived.data() + skipped, ours.data() + 9 - skipped, 1000, ddl::sum{});
    for (std::size_t i = 0; i < 9 - skipped; ++i) BOOST_TEST(ours[i] == 2.0f);
    for (std::size_t i = 9 - skipped; i < ours.size(); ++i) BOOST_TEST(ours[i] == 3.5f);
}

BOOST_AUTO_TEST_CASE(nothing_is_combined_with_nothing) {
    combine<side::left>(static_cast<const int*>(nullptr), static_cast<int*>(nullptr), 0, ddl::sum{});
    combine<side::right>(share{3, 4}, static_cast<const int*>(nullptr), static_cast<int*>(nullptr), 0, ddl::sum{});
}

BOOST_AUTO_TEST_CASE(an_op_with_state_is_asked_itself) {
    int calls = 0;
    const auto counting = [&calls](int a, int b) {
        ++calls;
        return a + b;
    };
    std::vector<int> arrived(130, 1), ours(130, 2);
    combine<side::left>(arrived.data(), ours.data(), 130, counting);
    BOOST_TEST(calls == 130, "once for each element");
}
