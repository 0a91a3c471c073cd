// SPDX-License-Identifier: Apache-2.0
#include <ddl/element/half.hpp>
#include <ddl/op/op.hpp>

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

using ddl::accumulator_t;
using ddl::combines;
using ddl::commutes;
using ddl::finishes;
using ddl::misnamed;
using ddl::named;
using ddl::names_commutative;
using ddl::names_finish;
using ddl::names_itself;
using ddl::says_commutative;

namespace {

struct subtract {
    template <class Type>
        requires requires(Type a, Type b) {
            { a - b } -> std::convertible_to<Type>;
        }
    constexpr Type operator()(Type a, Type b) const {
        return a - b;
    }
};

struct says_it_does_not_commute : subtract {
    static constexpr bool commutative = false;
};

/// All that an op may bring: a name, an accumulator, a last step.
struct root_of_mean_square {
    static constexpr bool commutative = true;
    static constexpr const char* name = "root_of_mean_square";
    template <class Element>
        requires std::is_arithmetic_v<Element>
    using accumulator = double;
    constexpr double operator()(double a, double b) const { return a + b; }
    constexpr double finish(double total, int ranks) const { return total / ranks; }
};

// A last step that nobody can call.
struct finish_that_is_not_const : root_of_mean_square {
    double finish(double total, int ranks) { return total / ranks; }
};
struct finish_without_ranks : root_of_mean_square {
    double finish(double total) const { return total; }
};
struct finish_of_a_reference : root_of_mean_square {
    static double finish(double& total, int ranks) { return total / ranks; }
};
struct finish_of_words : root_of_mean_square {
    template <class Value>
    std::string_view finish(Value, int) const {
        return "";
    }
};
/// Not a function: a setting of the op's own.
struct finish_that_is_a_number : subtract {
    static constexpr int finish = 1;
    int start = 0;
};

struct only_of_halves {
    ddl::half operator()(ddl::half a, ddl::half) const { return a; }
};

struct scaled_sum {
    float scale;
    constexpr float operator()(float a, float b) const { return scale * (a + b); }
};

// What an op says of itself, and what it seems to say.
struct name_is_characters {
    static constexpr char name[] = "characters";
};
struct name_is_no_constant {
    static inline const char* name = "variable";
};
struct name_is_a_member {
    const char* name = "member";
};
struct name_is_a_function {
    static constexpr const char* name() { return "function"; }
};
struct name_is_a_member_function {
    const char* name() const { return "function"; }
};
struct name_is_a_number {
    static constexpr int name = 3;
};
struct name_is_a_type {
    struct name {};
};
struct commutative_is_a_constant_type {
    static constexpr std::true_type commutative{};
};
struct commutative_is_a_member {
    const bool commutative = true;
};
struct commutative_is_a_function {
    static constexpr bool commutative() { return true; }
};
struct commutative_is_a_member_function {
    bool commutative() const { return true; }
};

/// One accumulator for all elements.
struct sum_of_squares {
    using accumulator = double;
    constexpr double operator()(double a, double b) const { return a + b; }
};

struct opaque {};

float add(float a, float b) { return a + b; }

}  // namespace

static_assert(named<root_of_mean_square> && named<name_is_characters> && names_itself<name_is_characters>);
static_assert(!named<name_is_no_constant> && names_itself<name_is_no_constant>);
static_assert(!named<name_is_a_member> && names_itself<name_is_a_member>);
static_assert(!named<name_is_a_function> && names_itself<name_is_a_function>);
static_assert(!named<name_is_a_member_function> && names_itself<name_is_a_member_function>);
static_assert(!named<name_is_a_number> && names_itself<name_is_a_number>);
static_assert(!named<name_is_a_type> && !names_itself<name_is_a_type>);
static_assert(!named<subtract> && !names_itself<subtract> && !names_itself<float (*)(float, float)>);
static_assert(misnamed<name_is_a_number> && misnamed<ddl::commutative_op<name_is_a_number>>);
static_assert(!misnamed<root_of_mean_square> && !misnamed<ddl::commutative_op<subtract>>);

static_assert(says_commutative<says_it_does_not_commute> && !commutes<says_it_does_not_commute>);
static_assert(says_commutative<commutative_is_a_constant_type> && commutes<commutative_is_a_constant_type>);
static_assert(!says_commutative<commutative_is_a_member> && names_commutative<commutative_is_a_member>);
static_assert(!says_commutative<commutative_is_a_function> && names_commutative<commutative_is_a_function>);
static_assert(!says_commutative<commutative_is_a_member_function> &&
              names_commutative<commutative_is_a_member_function>);
static_assert(!commutes<commutative_is_a_member> && !commutes<commutative_is_a_function>);
static_assert(!names_commutative<subtract> && !names_commutative<float (*)(float, float)>);

static_assert(std::is_same_v<accumulator_t<sum_of_squares, float>, double>);
static_assert(std::is_same_v<accumulator_t<ddl::commutative_op<sum_of_squares>, std::int8_t>, double>);

static_assert(combines<subtract, float> && combines<subtract, int>);
static_assert(!combines<subtract, opaque>, "an op without meaning for an element is false, and no hard error");
static_assert(combines<float (*)(float, float), float>, "a function is an op");
static_assert(combines<decltype([](int a, int b) { return a * b; }), int>, "so is a lambda");
static_assert(!combines<decltype([](const char*, const char*) { return ""; }), int>);

static_assert(!commutes<subtract>, "silence is taken as a no");
static_assert(!commutes<says_it_does_not_commute>);
static_assert(!commutes<float (*)(float, float)>);
static_assert(commutes<root_of_mean_square>);

static_assert(std::is_same_v<accumulator_t<subtract, ddl::half>, float>, "the wide type, where the op takes it");
static_assert(std::is_same_v<accumulator_t<only_of_halves, ddl::half>, ddl::half>, "the element, where it does not");
static_assert(std::is_same_v<accumulator_t<subtract, int>, int>);
static_assert(std::is_same_v<accumulator_t<root_of_mean_square, float>, double>, "what the op says, where it does");
static_assert(std::is_same_v<accumulator_t<root_of_mean_square, opaque>, opaque>, "and it may say it of some only");
static_assert(combines<only_of_halves, ddl::half>);
static_assert(!combines<root_of_mean_square, opaque>);

static_assert(finishes<root_of_mean_square, float> && !finishes<subtract, float>);
template <class Op>
constexpr bool in_vain = names_finish<Op, float> && !finishes<Op, float>;
static_assert(names_finish<root_of_mean_square, float> && !names_finish<subtract, float>);
static_assert(in_vain<finish_that_is_not_const> && in_vain<finish_without_ranks>);
static_assert(in_vain<finish_of_a_reference> && in_vain<finish_of_words>);
static_assert(!names_finish<finish_that_is_a_number, float> && !names_finish<float (*)(float, float), float>);
static_assert(ddl::finish(root_of_mean_square{}, 12.0, 4) == 3.0);
static_assert(ddl::finish(subtract{}, 12.0, 4) == 12.0, "an op without a last step leaves its result alone");

static_assert(ddl::op_name<root_of_mean_square>() == std::string_view{"root_of_mean_square"});
static_assert(ddl::op_name<subtract>() == std::string_view{"user's op"});
static_assert(ddl::op_name<float (*)(float, float)>() == std::string_view{"user's op"});

template <class Op>
using vouched_for = decltype(ddl::commutative(std::declval<Op>()));

static_assert(commutes<vouched_for<subtract>>, "the user vouches for it");
static_assert(commutes<vouched_for<says_it_does_not_commute>>, "even against the op's own word");
static_assert(combines<vouched_for<subtract>, float> && !combines<vouched_for<subtract>, opaque>);
static_assert(std::is_same_v<accumulator_t<vouched_for<root_of_mean_square>, float>, double>);
static_assert(std::is_same_v<accumulator_t<vouched_for<only_of_halves>, ddl::half>, ddl::half>);
static_assert(finishes<vouched_for<root_of_mean_square>, float> && !finishes<vouched_for<subtract>, float>);
static_assert(in_vain<vouched_for<finish_that_is_not_const>> && in_vain<vouched_for<finish_without_ranks>>);
static_assert(!names_finish<vouched_for<subtract>, float>);
static_assert(ddl::op_name<vouched_for<root_of_mean_square>>() == std::string_view{"root_of_mean_square"});
static_assert(ddl::finish(ddl::commutative(root_of_mean_square{}), 12.0, 4) == 3.0);
static_assert(ddl::commutative(scaled_sum{0.5f})(2.0f, 4.0f) == 3.0f, "an op with state keeps it");
static_assert(sizeof(vouched_for<subtract>) == 1 && std::is_empty_v<vouched_for<subtract>>, "the mark weighs nothing");

BOOST_AUTO_TEST_CASE(a_function_and_a_lambda_can_be_vouched_for) {
    const float offset = 1.0f;
    BOOST_TEST(ddl::commutative(add)(1.0f, 2.0f) == 3.0f);
    BOOST_TEST(ddl::commutative([=](float a, float b) { return a + b + offset; })(1.0f, 2.0f) == 4.0f);
}
