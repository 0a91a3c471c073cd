// SPDX-License-Identifier: Apache-2.0
// not under: address thread
// The walks are those of allreduce_sum, which the sanitizers see.
#include <boost/test/unit_test.hpp>

#include <tuple>

#include "few_ranks.hpp"

namespace {
using truths = std::tuple<bool, int>;

template <class Element>
Element truth(int rank, std::size_t i) {
    const auto drawn = random_bits(rank, i) % 4;
    return static_cast<Element>(std::is_same_v<Element, bool> ? drawn > 1 : drawn);
}
}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(all_one_or_an_odd_number_are_true, Element, truths) {
    const auto count_true = [](int ranks, std::size_t i) {
        int count = 0;
        for (int rank = 0; rank < ranks; ++rank) count += truth<Element>(rank, i) ? 1 : 0;
        return count;
    };
    on_few_ranks<Element>(ddl::logical_and{}, truth<Element>,
                          [&](int ranks, std::size_t i) { return count_true(ranks, i) == ranks; });
    on_few_ranks<Element>(ddl::logical_or{}, truth<Element>,
                          [&](int ranks, std::size_t i) { return count_true(ranks, i) > 0; });
    on_few_ranks<Element>(ddl::logical_xor{}, truth<Element>,
                          [&](int ranks, std::size_t i) { return count_true(ranks, i) % 2 == 1; });
}
