// SPDX-License-Identifier: Apache-2.0
#include <ddl/schedule/halving_or_doubling.hpp>
#include <ddl/schedule/proof.hpp>
#include <ddl/schedule/ring.hpp>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

namespace data = boost::unit_test::data;

namespace {

template <class As>
bool runs_alike(int size) {
    const auto one = ddl::allreduce_program<ddl::halving_or_doubling>(size);
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
    return ddl::with_schedule<Schedule>(bytes, ranks, []<class Chosen>() { return Chosen::name; });
}
using by_length = ddl::selected<ddl::at_most<100, ddl::ring>, ddl::otherwise<ddl::halving_or_doubling>>;
static_assert(chosen<by_length>(100, 6) == ddl::ring::name);
static_assert(chosen<by_length>(101, 6) == ddl::recursive_doubling::name);
static_assert(chosen<by_length>(101, 8) == ddl::recursive_halving::name);

BOOST_DATA_TEST_CASE(it_halves_among_a_power_of_two_and_doubles_among_others, data::xrange(1, 18), size) {
    const bool power = size == 1 || size == 2 || size == 4 || size == 8 || size == 16;
    BOOST_TEST((power ? runs_alike<ddl::recursive_halving>(size) : runs_alike<ddl::recursive_doubling>(size)));
    BOOST_TEST(ddl::proves_allreduce<ddl::halving_or_doubling>(size));
}
