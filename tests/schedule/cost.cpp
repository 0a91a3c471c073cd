// SPDX-License-Identifier: Apache-2.0
#include <ddl/schedule/cost.hpp>
#include <ddl/schedule/direct.hpp>
#include <ddl/schedule/recursive_doubling.hpp>
#include <ddl/schedule/recursive_halving.hpp>
#include <ddl/schedule/ring.hpp>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <initializer_list>

namespace data = boost::unit_test::data;
using namespace ddl;

namespace {

constexpr link_cost steps{1, 0, 0};     // counts rounds
constexpr link_cost traffic{0, 1, 0};   // counts bytes on the way
constexpr link_cost operands{0, 0, 1};  // counts bytes combined

template <class Schedule>
constexpr double of(int size, double bytes, const link_cost& over) {
    return cost(allreduce_program<Schedule>(size), bytes, over);
}

}  // namespace

static_assert(of<ring>(1, 100, links::gigabit) == 0, "one rank has nothing to send");
static_assert(of<recursive_doubling>(8, 800, steps) == 3, "ceil(log2 p) steps");
static_assert(of<recursive_doubling>(8, 800, traffic) == 2400, "of the whole vector each");
static_assert(of<recursive_doubling>(8, 800, operands) == 2400, "which is combined each time");
static_assert(of<recursive_halving>(8, 800, steps) == 6, "twice as many");
static_assert(of<recursive_halving>(8, 800, traffic) == 1400, "but the least that there can be: 2n(p-1)/p");
static_assert(of<recursive_halving>(8, 800, operands) == 700, "of which the half is combined");
static_assert(of<direct>(8, 800, steps) == 14, "a rank sends its messages one after the other, in two rounds");

// within a class, newer links are nowhere slower
constexpr bool cheaper(std::initializer_list<link_cost> from_slow_to_fast) {
    link_cost before{1, 1, 1};
    for (const link_cost& each : from_slow_to_fast) {
        if (!(each.message > 0 && each.byte > 0 && each.combined > 0)) return false;
        if (each.message > before.message || each.byte >= before.byte || each.combined > before.combined) return false;
        before = each;
    }
    return true;
}
static_assert(cheaper({links::gigabit, links::ten_gigabit, links::twenty_five_gigabit, links::hundred_gigabit,
                       links::two_hundred_gigabit, links::four_hundred_gigabit}));
static_assert(cheaper({links::pcie_3, links::pcie_4, links::pcie_5}));
static_assert(cheaper({links::nvlink_2, links::nvlink_3, links::nvlink_4, links::nvlink_5}));
static_assert(links::xeon_socket.byte > links::one_host.byte, "ranks that share channels have less of them");

// no link carries more than its wire: bits a second, each way
constexpr bool within(const link_cost& link, double bits) { return 8 / link.byte <= bits * 1.000001; }
static_assert(within(links::gigabit, 1e9) && within(links::ten_gigabit, 10e9) &&
              within(links::twenty_five_gigabit, 25e9) && within(links::hundred_gigabit, 100e9) &&
              within(links::two_hundred_gigabit, 200e9) && within(links::four_hundred_gigabit, 400e9));
static_assert(within(links::pcie_3, 16 * 8e9) && within(links::pcie_4, 16 * 16e9) && within(links::pcie_5, 16 * 32e9));

BOOST_DATA_TEST_CASE(a_ring_takes_the_least_bytes_and_the_most_steps, data::xrange(2, 20), size) {
    const double bytes = 1000.0 * size;
    BOOST_TEST(of<ring>(size, bytes, steps) == 2 * (size - 1));
    BOOST_TEST(of<ring>(size, bytes, traffic) == 2000.0 * (size - 1), boost::test_tools::tolerance(1e-12));
}

BOOST_AUTO_TEST_CASE(where_two_schedules_cross_both_cost_about_the_same) {
    for (const link_cost& over :
         {links::gigabit, links::ten_gigabit, links::twenty_five_gigabit, links::hundred_gigabit,
          links::two_hundred_gigabit, links::four_hundred_gigabit, links::one_host}) {
        const auto quick = allreduce_program<recursive_doubling>(8);
        const auto broad = allreduce_program<recursive_halving>(8);
        const auto bytes = static_cast<double>(crossover(quick, broad, over));
        BOOST_TEST(bytes > 1000, "a message is worth many bytes");
        BOOST_TEST(cost(quick, bytes, over) <= cost(broad, bytes, over));
        BOOST_TEST(cost(quick, 2 * bytes, over) > cost(broad, 2 * bytes, over));
    }
}

BOOST_AUTO_TEST_CASE(some_never_cross) {
    const auto halving = allreduce_program<recursive_halving>(8);
    BOOST_TEST(crossover(halving, halving, links::gigabit) == std::size_t{1} << 40, "as quick as itself, for ever");
    BOOST_TEST(crossover(allreduce_program<ring>(8), halving, links::gigabit) == 1U, "more steps and no byte less");
}
