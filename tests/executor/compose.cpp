// SPDX-License-Identifier: Apache-2.0
#include <ddl/executor/compose.hpp>
#include <ddl/op/sum.hpp>
#include <ddl/schedule/multi_ring.hpp>
#include <ddl/transport/recording.hpp>
#include <ddl/transport/threads.hpp>

#include <boost/test/unit_test.hpp>

using ddl::collective;

static_assert(ddl::offers<ddl::ring, collective::allreduce> && ddl::offers<ddl::ring, collective::reduce_scatter>);
static_assert(ddl::offers<ddl::ring, collective::broadcast>, "by a tree's scatter and its own all-gather");
static_assert(!ddl::offers<ddl::ring, collective::gather> && !ddl::offers<ddl::ring, collective::scatter>);
static_assert(!ddl::offers<ddl::tree, collective::reduce_scatter>, "it is not made of halves");
static_assert(ddl::offers<ddl::tree, collective::gather> && !ddl::offers<ddl::tree, collective::all_to_all>);
static_assert(ddl::offers<ddl::direct, collective::all_to_all> && ddl::offers<ddl::direct, collective::scatter>);
static_assert(!ddl::offers<int, collective::allreduce> && !ddl::is_schedule<int>);

using mixed = ddl::selected<ddl::at_most<100, ddl::tree>, ddl::otherwise<ddl::ring>>;
static_assert(ddl::offers<mixed, collective::allreduce>);
static_assert(!ddl::offers<mixed, collective::reduce_scatter>, "one of its choices cannot");

static_assert(ddl::in_rank_order<ddl::direct, collective::allreduce>);
static_assert(ddl::in_rank_order<ddl::recursive_doubling, collective::allreduce>);
static_assert(!ddl::in_rank_order<ddl::ring, collective::allreduce>);
static_assert(!ddl::in_rank_order<ddl::recursive_halving, collective::allreduce>);
static_assert(ddl::in_rank_order<ddl::tree, collective::allreduce>);
static_assert(!ddl::in_rank_order<ddl::tree, collective::reduce>, "to a root other than 0 it rotates");
static_assert(!ddl::in_rank_order<mixed, collective::allreduce>);
static_assert(!ddl::in_rank_order<ddl::hierarchical<ddl::direct, ddl::direct, ddl::ring>, collective::reduce_scatter>);

struct ring_that_stops_early : ddl::ring {
    static constexpr int rounds(int size) { return ddl::ring::rounds(size) - 1; }
};
static_assert(ddl::proved<mixed, collective::allreduce> && ddl::proved<ddl::tree, collective::gather>);
static_assert(ddl::proved<ddl::hierarchical<ddl::direct, ddl::multi_ring<2>, ddl::tree>, collective::allreduce>);
static_assert(!ddl::proved<ring_that_stops_early, collective::allreduce>);
static_assert(!ddl::proved<ddl::selected<ddl::at_most<9, ddl::tree>, ddl::otherwise<ring_that_stops_early>>,
                           collective::allreduce>);
static_assert(!ddl::proved<ddl::hierarchical<ddl::direct, ring_that_stops_early>, collective::allreduce>);
static_assert(!ddl::proved<ddl::few_or_many<64, ddl::ring, ring_that_stops_early>, collective::allreduce>,
              "what only many ranks run is asked for itself");

static_assert(ddl::compose<collective::allreduce, ddl::sum, float, ddl::ring, ddl::threads>());
static_assert(ddl::compose<collective::allreduce, ddl::sum, float, ddl::multi_ring<2>, ddl::recording>());
static_assert(ddl::compose<collective::broadcast, ddl::no_op, float, ddl::tree, ddl::recording>());

template <collective What, bool Commutes, class Transport>
using chosen = typename ddl::default_schedule<What, Commutes, Transport>::type;
static_assert(std::same_as<chosen<collective::allreduce, true, ddl::threads>, ddl::direct>);
static_assert(ddl::in_rank_order<chosen<collective::allreduce, false, ddl::threads>, collective::allreduce>);
static_assert(ddl::in_rank_order<chosen<collective::allreduce, false, ddl::recording>, collective::allreduce>);
static_assert(ddl::in_rank_order<chosen<collective::reduce, false, ddl::recording>, collective::reduce>);
static_assert(
    ddl::in_rank_order<chosen<collective::reduce_scatter, false, ddl::recording>, collective::reduce_scatter>);

BOOST_AUTO_TEST_CASE(all_facts_are_checked_by_the_compiler) { BOOST_TEST(true); }
