// SPDX-License-Identifier: Apache-2.0
#include <ddl/schedule/few_or_many.hpp>
#include <ddl/schedule/proof.hpp>
#include <ddl/schedule/recursive_doubling.hpp>
#include <ddl/schedule/recursive_halving.hpp>
#include <ddl/schedule/ring.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

namespace data = boost::unit_test::data;

namespace {

using either = ddl::few_or_many<6, ddl::ring, ddl::recursive_halving>;

template <class One, class Other>
bool run_alike(int size) {
    if (One::rounds(size) != Other::rounds(size) || One::chunks(size) != Other::chunks(size)) return false;
    for (int rank = 0; rank < size; ++rank)
        for (int k = 0; k < One::rounds(size); ++k) {
            const auto a = One::round(rank, size, k);
            const auto b = Other::round(rank, size, k);
            if (a.size() != b.size()) return false;
            for (int i = 0; i < a.size(); ++i)
                if (!(a[i] == b[i])) return false;
        }
    return true;
}

/// Where the last rank stands beside the first.
struct doubling_turned_by_one : ddl::recursive_doubling {
    static constexpr auto round(int rank, int size, int k) noexcept {
        auto transfers = ddl::recursive_doubling::round((rank + 1) % size, size, k);
        for (int i = 0; i < transfers.size(); ++i) transfers.items[i].peer = (transfers[i].peer + size - 1) % size;
        return transfers;
    }
};

}  // namespace

static_assert(ddl::proves_allreduce<either>(6) && ddl::proves_allreduce<either>(7));
static_assert(ddl::has_halves<ddl::few_or_many<16, ddl::ring, ddl::recursive_halving>>);
static_assert(ddl::keeps_rank_order<ddl::few_or_many<3, ddl::recursive_doubling, ddl::recursive_doubling>>);
static_assert(!ddl::keeps_rank_order<ddl::few_or_many<64, ddl::recursive_doubling, doubling_turned_by_one>>,
              "that it rotates the operands of many ranks only is known");
static_assert(ddl::proves_reduce_scatter<either>(6) && ddl::proves_all_gather<either>(7));

BOOST_DATA_TEST_CASE(few_ranks_run_the_one_and_more_the_other, data::xrange(1, 13), size) {
    BOOST_TEST((size <= 6 ? run_alike<either, ddl::ring>(size) : run_alike<either, ddl::recursive_halving>(size)));
}

BOOST_DATA_TEST_CASE(it_is_every_collective_that_it_offers, data::xrange(1, 13), size) {
    BOOST_TEST(ddl::proves_allreduce<either>(size));
    BOOST_TEST(ddl::proves_reduce_scatter<either>(size));
    BOOST_TEST(ddl::proves_all_gather<either>(size));
}
