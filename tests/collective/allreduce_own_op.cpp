// SPDX-License-Identifier: Apache-2.0
#include <boost/test/unit_test.hpp>

#include "few_ranks.hpp"

namespace {

/// A user's element: a mean that can be continued.
struct moments {
    double total;
    std::int64_t count;
    friend bool operator==(const moments&, const moments&) = default;
};
struct merge {
    static constexpr bool commutative = true;
    static constexpr const char* name = "merge";
    moments operator()(const moments& a, const moments& b) const { return {a.total + b.total, a.count + b.count}; }
};

/// An op that knows something.
struct sum_modulo {
    static constexpr bool commutative = true;
    int modulus;
    int operator()(int a, int b) const { return (a + b) % modulus; }
};

/// An op with a last step.
struct mean_of_squares {
    static constexpr bool commutative = true;
    template <class Element>
    using accumulator = double;
    double operator()(double a, double b) const { return a + b; }
    double finish(double total, int ranks) const { return total / ranks; }
};

/// An element of its own alignment, and one of an odd size.
struct alignas(32) quad {
    double values[4];
    friend bool operator==(const quad&, const quad&) = default;
};
struct add_quads {
    static constexpr bool commutative = true;
    quad operator()(const quad& a, const quad& b) const {
        quad sum;
        for (int k = 0; k < 4; ++k) sum.values[k] = a.values[k] + b.values[k];
        return sum;
    }
};
struct triple {
    unsigned char values[3];
    friend bool operator==(const triple&, const triple&) = default;
};
struct add_triples {
    static constexpr bool commutative = true;
    triple operator()(triple a, triple b) const {
        for (int k = 0; k < 3; ++k) a.values[k] = static_cast<unsigned char>(a.values[k] + b.values[k]);
        return a;
    }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_struct_and_its_op) {
    on_few_ranks<moments>(
        merge{},
        [](int rank, std::size_t i) {
            return moments{double(small_value(rank, i)), rank};
        },
        [](int ranks, std::size_t i) {
            moments all{0, 0};
            for (int rank = 0; rank < ranks; ++rank) {
                all.total += small_value(rank, i);
                all.count += rank;
            }
            return all;
        });
}

BOOST_AUTO_TEST_CASE(an_op_that_holds_a_value) {
    const auto value = [](int rank, std::size_t i) { return static_cast<int>(random_bits(rank, i) % 97); };
    on_few_ranks<int>(sum_modulo{97}, value, folded<int>(value, [](int a, int b) { return (a + b) % 97; }));
}

BOOST_AUTO_TEST_CASE(a_lambda_that_is_vouched_for) {
    const auto value = [](int rank, std::size_t i) { return static_cast<unsigned>(random_bits(rank, i)); };
    const auto larger = [](unsigned a, unsigned b) { return a < b ? b : a; };
    on_few_ranks<unsigned>(ddl::commutative(larger), value, folded<unsigned>(value, larger));
}

BOOST_AUTO_TEST_CASE(an_op_that_accumulates_in_another_type_and_has_a_last_step) {
    on_few_ranks<int>(mean_of_squares{}, small_value, [](int ranks, std::size_t i) {
        double total = 0;
        for (int rank = 0; rank < ranks; ++rank) total += small_value(rank, i);
        return static_cast<int>(total / ranks);
    });
}

BOOST_AUTO_TEST_CASE(elements_of_any_size_and_alignment) {
    on_few_ranks<quad>(
        add_quads{},
        [](int rank, std::size_t i) {
            return quad{{double(small_value(rank, i)), 1, 2, double(rank)}};
        },
        [](int ranks, std::size_t i) {
            quad all{};
            for (int rank = 0; rank < ranks; ++rank)
                all = add_quads{}(all, {{double(small_value(rank, i)), 1, 2, double(rank)}});
            return all;
        });
    const auto three = [](int rank, std::size_t i) {
        const auto drawn = random_bits(rank, i);
        return triple{{static_cast<unsigned char>(drawn), static_cast<unsigned char>(drawn >> 8), 1}};
    };
    on_few_ranks<triple>(add_triples{}, three, [&](int ranks, std::size_t i) {
        triple all = three(0, i);
        for (int rank = 1; rank < ranks; ++rank) all = add_triples{}(all, three(rank, i));
        return all;
    });
}
