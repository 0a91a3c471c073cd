// SPDX-License-Identifier: Apache-2.0
#include <ddl/all_gather.hpp>
#include <ddl/all_to_all.hpp>
#include <ddl/allreduce.hpp>
#include <ddl/broadcast.hpp>
#include <ddl/gather.hpp>
#include <ddl/reduce.hpp>
#include <ddl/reduce_scatter.hpp>
#include <ddl/scatter.hpp>

#include <boost/test/unit_test.hpp>

#include <tuple>

#include "oracle.hpp"
#include "places.hpp"

// A plan is the unit of explicit instantiation.
template class ddl::allreduce_plan<ddl::sum, float, ddl::ring, ddl::threads>;
template class ddl::allreduce_plan<ddl::average, ddl::bfloat16, ddl::tuned, ddl::recording>;
template class ddl::allreduce_plan<ddl::sum, double, ddl::hierarchical<ddl::direct, ddl::ring>,
                                   ddl::layered<ddl::threads, ddl::recording>>;
template class ddl::reduce_scatter_plan<ddl::sum, float, ddl::ring, ddl::threads>;
template class ddl::all_gather_plan<float, ddl::ring, ddl::threads>;
template class ddl::broadcast_plan<float, ddl::tree, ddl::recording>;
template class ddl::reduce_plan<ddl::maximum, int, ddl::tuned, ddl::threads>;
template class ddl::gather_plan<float, ddl::direct, ddl::threads>;
template class ddl::scatter_plan<float, ddl::direct, ddl::threads>;
template class ddl::all_to_all_plan<float, ddl::direct, ddl::threads>;

namespace {
using every_place = std::tuple<places::threads, places::processes, places::messages<1>>;
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_plan_runs_again_and_again_with_what_its_buffers_hold_then, Place, every_place) {
    Place::run(3, [](auto& ranks) {
        std::vector<float> in(5000);
        std::vector<float> out(in.size());
        auto step = ddl::allreduce_init<ddl::ring>(ranks, in, out, ddl::sum{});
        for (int run = 0; run < 20; ++run) {
            in.assign(in.size(), static_cast<float>(run));
            step();
            require(out == std::vector<float>(out.size(), static_cast<float>(3 * run)), "another sum");
        }
        require(step.count() == 5000, "its count");
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(plans_may_be_run_in_turns, Place, every_place) {
    Place::run(2, [](auto& ranks) {
        std::vector<float> a(10, 1), b(6000, 1);
        auto first = ddl::allreduce_init(ranks, a);
        auto second = ddl::allreduce_init(ranks, b, ddl::maximum{});
        for (int run = 0; run < 5; ++run) {
            first();
            second();
        }
        require(a[9] == 32 && b[5999] == 1, "another value");
    });
}

BOOST_AUTO_TEST_CASE(a_plan_keeps_the_op_that_it_was_given) {
    struct scaled {
        int factor;
        int operator()(int a, int b) const { return factor * (a + b); }
    };
    places::threads::run(2, [](auto& ranks) {
        std::vector<int> data(3, 1);
        auto step = ddl::allreduce_init<ddl::direct>(ranks, data, scaled{5});
        step();
        require(data == std::vector<int>(3, 10), "another op");
    });
}

BOOST_AUTO_TEST_CASE(a_wrong_length_throws_on_this_rank_alone_when_the_plan_is_made) {
    places::threads::run(2, [](auto& ranks) {
        if (ranks.rank() == 1) return;
        std::vector<float> four(4), three(3);
        require_error(ddl::errc::invalid_argument,
                      "allreduce, rank 0: out holds 3 elements, and needs 4, as many as in",
                      [&] { ddl::allreduce_init(ranks, four, three); });
        require_error(ddl::errc::invalid_argument,
                      "reduce_scatter, rank 0: out holds 3 elements, and needs 2, this rank's block of in",
                      [&] { ddl::reduce_scatter_init(ranks, four, three); });
        require_error(ddl::errc::invalid_argument,
                      "all_gather, rank 0: in holds 3 elements, and needs 2, this rank's block of out",
                      [&] { ddl::all_gather_init(ranks, three, four); });
        require_error(ddl::errc::invalid_argument,
                      "gather, rank 0: out holds 4 elements, and needs 6, in for each rank",
                      [&] { ddl::gather_init(ranks, three, four); });
        require_error(ddl::errc::invalid_argument,
                      "scatter, rank 0: in holds 4 elements, and needs 6, out for each rank",
                      [&] { ddl::scatter_init(ranks, four, three); });
        require_error(
            ddl::errc::invalid_argument,
            "all_to_all, rank 0: in holds 3 elements, one block of equal length for each rank; pass a multiple of 2",
            [&] { ddl::all_to_all_init(ranks, three); });
        require_error(ddl::errc::invalid_argument, "broadcast, rank 0: root is 2; name a rank from 0 to 1",
                      [&] { ddl::broadcast_init(ranks, four, 2); });
    });
}
