// SPDX-License-Identifier: Apache-2.0
#include <ddl/executor/contract.hpp>
#include <ddl/op/sum.hpp>
#include <ddl/schedule/ring.hpp>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <vector>

#include "../collective/require.hpp"

namespace data = boost::unit_test::data;

namespace {

constexpr std::size_t asks = 0;  // stands for a rank that asks for chunks

ddl::call call_of(std::size_t count) {
    if (count == asks) return ddl::describe<ddl::no_op, std::byte, ddl::ring>(ddl::collective::staged, 0, 0);
    return ddl::describe<ddl::sum, float, ddl::ring>(ddl::collective::allreduce, count, 0);
}

ddl::agreement alone(int rank, std::size_t count) { return {call_of(count), call_of(count), rank, -1}; }

/// What ranks that bring these counts find out, joined as `split` says: those before it, those behind it, both.
ddl::agreement joined(const std::vector<std::size_t>& counts, std::size_t split) {
    const auto part = [&](std::size_t first, std::size_t last) {
        ddl::agreement all = alone(static_cast<int>(first), counts[first]);
        for (std::size_t r = first + 1; r < last; ++r) all.join(alone(static_cast<int>(r), counts[r]));
        return all;
    };
    ddl::agreement all = part(0, split);
    if (split < counts.size()) all.join(part(split, counts.size()));
    return all;
}

}  // namespace

BOOST_DATA_TEST_CASE(equal_calls_agree, data::xrange(1, 6), split) {
    const ddl::agreement all = joined({7, 7, 7, 7, 7}, static_cast<std::size_t>(split));
    BOOST_TEST(all.differs == -1);
    BOOST_TEST(all.lowest == 0);
    all.throw_if_differs(call_of(7), 3);
}

BOOST_DATA_TEST_CASE(the_lowest_rank_that_differs_is_found_however_ranks_are_joined,
                     data::xrange(0, 6) * data::xrange(1, 6), odd, split) {
    std::vector<std::size_t> counts(6, 7);
    counts[static_cast<std::size_t>(odd)] = 8;
    const ddl::agreement all = joined(counts, static_cast<std::size_t>(split));
    BOOST_TEST(all.lowest == 0);
    BOOST_TEST(all.differs == (odd == 0 ? 1 : odd));
    BOOST_TEST(all.first.count == counts[0]);
    BOOST_TEST(all.other.count == (odd == 0 ? 7U : 8U));
}

BOOST_DATA_TEST_CASE(all_hear_of_a_rank_that_asks_for_chunks_whatever_else_differs,
                     data::xrange(0, 5) * data::xrange(1, 5), asking, split) {
    std::vector<std::size_t> counts{7, 8, 7, 9, 9};
    counts[static_cast<std::size_t>(asking)] = asks;
    const ddl::agreement all = joined(counts, static_cast<std::size_t>(split));
    for (int rank = 0; rank < 5; ++rank) {
        const ddl::call own = call_of(counts[static_cast<std::size_t>(rank)]);
        BOOST_TEST((error_of([&] { all.throw_if_differs(own, rank); }).code() == ddl::errc::staged));
    }
}

BOOST_AUTO_TEST_CASE(each_rank_hears_of_another_than_itself) {
    const ddl::agreement all = joined({7, 7, 8, 9}, 2);
    const auto heard = [&](std::size_t count, int rank) {
        return std::string(error_of([&] { all.throw_if_differs(call_of(count), rank); }).what());
    };
    BOOST_TEST(heard(7, 0) ==
               "allreduce, rank 0, round 0: rank 2 brings 8 elements, this rank 7; pass equal counts on every rank");
    BOOST_TEST(heard(7, 1) ==
               "allreduce, rank 1, round 0: rank 2 brings 8 elements, this rank 7; pass equal counts on every rank");
    BOOST_TEST(heard(8, 2) ==
               "allreduce, rank 2, round 0: rank 0 brings 7 elements, this rank 8; pass equal counts on every rank");
    BOOST_TEST(heard(9, 3) ==
               "allreduce, rank 3, round 0: rank 0 brings 7 elements, this rank 9; pass equal counts on every rank");
}
