// SPDX-License-Identifier: Apache-2.0
#include <ddl/schedule/halving_direct_or.hpp>
#include <ddl/schedule/proof.hpp>
#include <ddl/schedule/ring.hpp>
#include <ddl/schedule/selected.hpp>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

namespace data = boost::unit_test::data;

namespace {

using among_five = ddl::halving_direct_or<5, ddl::recursive_doubling>;

static_assert(!ddl::keeps_rank_order<among_five>, "halving rotates");
static_assert(!ddl::keeps_rank_order<ddl::halving_direct_or<7, ddl::ring>>);

template <class As>
bool runs_alike(int size) {
    const auto one = ddl::allreduce_program<among_five>(size);
    const auto other = ddl::allreduce_program<As>(size);
    if (one.rounds() != other.rounds() || one.chunks() != other.chunks()) return false;
    for (int rank = 0; rank < size; ++rank)
        for (int k = 0; k < one.rounds(); ++k) {
            if (one.width(rank, k) != other.width(rank, k)) return false;
            for (int i = 0; i < one.width(rank, k); ++i)
                if (!(one.at(rank, k, i) == other.at(rank, k, i))) return false;
        }
    return true;
}

}  // namespace

template <class Schedule>
constexpr const char* chosen(std::size_t bytes, int ranks) {
    return ddl::with_schedule<Schedule>(bytes, ddl::company{.ranks = ranks},
                                        []<class Chosen>() { return Chosen::name; });
}
using by_length = ddl::selected<ddl::at_most<100, ddl::ring>, ddl::otherwise<among_five>>;
static_assert(chosen<by_length>(100, 6) == ddl::ring::name);
static_assert(chosen<by_length>(101, 6) == ddl::recursive_doubling::name);
static_assert(chosen<by_length>(101, 5) == ddl::direct::name);
static_assert(chosen<by_length>(101, 8) == ddl::recursive_halving::name);

BOOST_DATA_TEST_CASE(it_halves_among_a_power_of_two_speaks_directly_among_few_others_and_as_named_among_more,
                     data::xrange(1, 18), size) {
    const bool power = size == 1 || size == 2 || size == 4 || size == 8 || size == 16;
    BOOST_TEST((power       ? runs_alike<ddl::recursive_halving>(size)
                : size <= 5 ? runs_alike<ddl::direct>(size)
                            : runs_alike<ddl::recursive_doubling>(size)));
    BOOST_TEST(ddl::proves_allreduce<among_five>(size));
}
