// SPDX-License-Identifier: Apache-2.0
// ranks: 1 2 3 4 5 8
#include <ddl/allreduce.hpp>
#include <ddl/broadcast.hpp>
#include <ddl/buffer.hpp>
#include <ddl/schedule/tree.hpp>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sys/resource.h>

#include "world.hpp"

namespace data = boost::unit_test::data;

// The unit of explicit instantiation: every member of a plan compiles, called or not.
template class ddl::allreduce_plan<ddl::sum, float, ddl::ring, ddl::mpi>;
template class ddl::allreduce_plan<ddl::sum, float, ddl::ring, ddl::cluster>;
template class ddl::allreduce_plan<ddl::average, ddl::half, ddl::hierarchical<ddl::direct, ddl::ring>, ddl::cluster>;

using mpi_for_all_cases = mpi_with_threads<MPI_THREAD_MULTIPLE>;
BOOST_TEST_GLOBAL_FIXTURE(mpi_for_all_cases);

namespace {
ddl::cluster cluster_of(int most) { return {MPI_COMM_WORLD, ddl::ranks_per_node{most}, patient}; }

/// A cluster whose ranks go round the nodes like dealt cards: with 2 nodes the odd ranks are on the second.
ddl::cluster dealt(int most) {
    ddl::cluster blocks = cluster_of(most);
    const int node = blocks.rank() / most;
    const int place = blocks.rank() % most;
    return blocks.split(0, place * blocks.nodes() + node);
}

/// Short, a little longer than travels at once, and of several segments on each level.
constexpr std::size_t lengths[] = {0, 1, 3, 100, 5000, 100'001};

template <class Schedule>
void expect_exact_sums(ddl::cluster& world) {
    for (const std::size_t count : lengths) {
        const auto expected = fold_of<std::uint32_t>(world.size(), count, ddl::sum{});
        auto values = values_of<std::uint32_t>(world.rank(), count);
        std::vector<std::uint32_t> out(count);
        ddl::allreduce<Schedule>(world, values, out);
        BOOST_TEST((out == expected), count << " elements");
        BOOST_TEST((values == values_of<std::uint32_t>(world.rank(), count)));
        ddl::allreduce<Schedule>(world, values);
        BOOST_TEST((values == expected), count << " elements in place");
    }
}
}  // namespace

BOOST_AUTO_TEST_SUITE(nodes)

BOOST_AUTO_TEST_CASE(are_found_by_mpi_which_here_knows_one) {
    ddl::cluster world = cluster_of(0);
    BOOST_TEST(world.nodes() == 1);
    BOOST_TEST(world.node().size() == world_size());
    BOOST_TEST(world.rank() == world_rank());
    BOOST_TEST(world.ordered());
}

BOOST_DATA_TEST_CASE(have_as_many_ranks_as_was_said_and_the_last_what_is_left, data::make({1, 2, 3, 100}), most) {
    ddl::cluster world = cluster_of(most);
    const int size = world_size();
    const int nodes = (size + most - 1) / most;
    const int node = world_rank() / most;
    BOOST_TEST(world.nodes() == nodes);
    BOOST_TEST(world.node().size() == std::min(most, size - node * most));
    BOOST_TEST(world.node().rank() == world_rank() % most);
    for (int i = 0; i <= nodes; ++i) BOOST_TEST(world.grouping()[i] == std::min(i * most, size));
    BOOST_TEST(world.ordered());
}

BOOST_AUTO_TEST_CASE(are_cut_as_the_environment_says_where_the_program_does_not) {
    ::setenv("DDL_RANKS_PER_NODE", "2", 1);
    ddl::cluster world{MPI_COMM_WORLD, patient};
    BOOST_TEST(world.nodes() == (world_size() + 1) / 2);
    BOOST_TEST(cluster_of(1).nodes() == world_size(), "the program's word counts");
    for (const char* const words : {"two", "0", "-1", "2 nodes", "99999999999"}) {
        ::setenv("DDL_RANKS_PER_NODE", words, 1);
        const ddl::error failure = error_of([] { ddl::cluster{MPI_COMM_WORLD, patient}; });
        BOOST_TEST(says(failure, ddl::errc::invalid_argument, "it takes a number of ranks, 1 or more"), failure.what());
    }
    ::unsetenv("DDL_RANKS_PER_NODE");
    BOOST_TEST(says(error_of([] { cluster_of(-1); }), ddl::errc::invalid_argument, "pass 1 or more, or 0 for all"));
    expect_exact_sums<ddl::tuned>(world);
}

BOOST_AUTO_TEST_CASE(need_not_hold_consecutive_ranks) {
    ddl::cluster world = dealt(2);
    const int nodes = (world_size() + 1) / 2;
    BOOST_TEST(world.nodes() == nodes);
    BOOST_TEST(world.ordered() == (world_size() <= 2));
    BOOST_TEST(world.ordered_wire().rank() == world_rank(), "node by node they are as they were");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(allreduce)

BOOST_DATA_TEST_CASE(runs_any_schedule_on_nodes_of_any_size, data::make({1, 2, 3, 0}), most) {
    ddl::cluster world = cluster_of(most);
    expect_exact_sums<ddl::tuned>(world);
    expect_exact_sums<ddl::ring>(world);
    expect_exact_sums<ddl::hierarchical<ddl::direct, ddl::ring>>(world);
    expect_exact_sums<ddl::hierarchical<ddl::ring, ddl::recursive_halving>>(world);
    expect_exact_sums<ddl::hierarchical<ddl::direct, ddl::ring, ddl::direct>>(world);
    using by_size = ddl::selected<ddl::at_most<1000, ddl::tree>,
                                  ddl::otherwise<ddl::hierarchical<ddl::recursive_halving, ddl::direct>>>;
    expect_exact_sums<by_size>(world);
}

BOOST_DATA_TEST_CASE(lets_a_long_vector_pass_through_the_levels_in_pieces, data::make({1, 2, 3}), most) {
    ddl::cluster world = cluster_of(most);
    const std::size_t count = (std::size_t{13} << 20) / sizeof(std::uint32_t) + 5;  // three pieces
    const auto expected = fold_of<std::uint32_t>(world.size(), count, ddl::sum{});
    const auto values = values_of<std::uint32_t>(world.rank(), count);
    std::vector<std::uint32_t> out(count);
    const auto sums = [&]<class Schedule>(Schedule) {
        std::fill(out.begin(), out.end(), 0U);
        ddl::allreduce<Schedule>(world, values, out);
        BOOST_TEST((out == expected));
    };
    sums(ddl::tuned{});
    sums(ddl::hierarchical<ddl::direct, ddl::recursive_doubling>{});  // with two nodes a single round
    sums(ddl::hierarchical<ddl::ring, ddl::recursive_halving>{});
    sums(ddl::hierarchical<ddl::direct, ddl::tree>{});  // whose root sends in its last rounds, which are one
}

/// Right for the numbers that a compiler asks for, but not for two.
struct one_round_too_few : ddl::ring {
    static constexpr int rounds(int size) { return ddl::ring::rounds(size) - (size == 2); }
};

BOOST_DATA_TEST_CASE(refuses_levels_that_do_not_add_up_among_these_nodes, data::make({2, 3, 4}), most) {
    ddl::cluster world = cluster_of(most);  // as many ranks, in nodes of other sizes, are asked for themselves
    std::vector<int> data(3, 1);
    const auto call = [&] { ddl::allreduce<ddl::hierarchical<ddl::direct, one_round_too_few>>(world, data); };
    if (world.nodes() == 2)
        require_error(ddl::errc::invalid_argument, "do not add up among " + std::to_string(world.size()) + " ranks",
                      call);
    else call();
    ddl::allreduce(world, data);
    BOOST_TEST(data[0] == world.size() * (world.nodes() == 2 ? 1 : world.size()));
}

BOOST_AUTO_TEST_CASE(keeps_order_and_rounds_once_in_pieces_too) {
    constexpr std::size_t bytes = (std::size_t{13} << 20) + 24;
    ddl::cluster world = cluster_of(2);
    auto lines = values_of<line>(world.rank(), bytes / sizeof(line));
    ddl::allreduce<ddl::hierarchical<ddl::direct, ddl::recursive_doubling>>(world, lines, compose{});
    BOOST_TEST((lines == fold_of<line>(world.size(), lines.size(), compose{})));

    ddl::cluster cards = dealt(2);
    const auto in = values_of<ddl::half>(cards.rank(), bytes / sizeof(float));  // as long as what carries its sums
    std::vector<ddl::half> out(in.size());
    ddl::allreduce<ddl::hierarchical<ddl::direct, ddl::ring>>(cards, in, out, ddl::average{});
    double worst = 0;
    for (std::size_t i = 0; i < in.size(); ++i) {
        double exact = 0;
        for (int rank = 0; rank < cards.size(); ++rank) exact += static_cast<double>(brought<ddl::half>(rank, i));
        worst = std::max(worst, std::abs(exact / cards.size() - static_cast<double>(out[i])));
    }
    BOOST_TEST(worst <= 1.0 / 4096 + 1e-6, "one rounding, of values up to 1");
    BOOST_TEST(same_bits_everywhere<ddl::half>(MPI_COMM_WORLD, out));
}

BOOST_AUTO_TEST_CASE(runs_any_schedule_on_nodes_whose_ranks_are_dealt) {
    ddl::cluster world = dealt(2);
    expect_exact_sums<ddl::tuned>(world);
    expect_exact_sums<ddl::hierarchical<ddl::direct, ddl::ring>>(world);
    expect_exact_sums<ddl::hierarchical<ddl::ring, ddl::recursive_halving>>(world);
    expect_exact_sums<ddl::hierarchical<ddl::direct, ddl::ring, ddl::direct>>(world);
}

BOOST_AUTO_TEST_CASE(accumulates_half_types_in_float_on_every_level) {
    for (const int most : {1, 2, 0})
        for (const bool far : {false, true}) {
            ddl::cluster world = far && most != 0 ? dealt(most) : cluster_of(most);
            for (const std::size_t count : lengths) {
                const auto in = values_of<ddl::half>(world.rank(), count);
                std::vector<ddl::half> out(count);
                ddl::allreduce(world, in, out, ddl::average{});
                double worst = 0;
                for (std::size_t i = 0; i < count; ++i) {
                    double exact = 0;
                    for (int rank = 0; rank < world.size(); ++rank)
                        exact += static_cast<double>(brought<ddl::half>(rank, i));
                    worst = std::max(worst, std::abs(exact / world.size() - static_cast<double>(out[i])));
                }
                BOOST_TEST(worst <= 1.0 / 4096 + 1e-6, "one rounding, of values up to 1");
                BOOST_TEST(same_bits_everywhere<ddl::half>(MPI_COMM_WORLD, out));
                ddl::allreduce<ddl::hierarchical<ddl::direct, ddl::recursive_halving>>(world, out, ddl::maximum{});
            }
        }
}

BOOST_AUTO_TEST_CASE(keeps_the_order_of_ranks_for_an_op_that_needs_it) {
    for (const int most : {1, 2, 3, 0})
        for (const bool far : {false, true}) {
            ddl::cluster world = far && most != 0 ? dealt(most) : cluster_of(most);
            for (const std::size_t count : lengths) {
                const auto expected = fold_of<line>(world.size(), count, compose{});
                auto values = values_of<line>(world.rank(), count);
                ddl::allreduce(world, values, compose{});
                BOOST_TEST((values == expected), count << " elements, " << most << " ranks a node");
                values = values_of<line>(world.rank(), count);
                using two_levels = ddl::hierarchical<ddl::direct, ddl::recursive_doubling>;
                if (world.ordered() || world.nodes() == 1) {
                    ddl::allreduce<two_levels>(world, values, compose{});
                    BOOST_TEST((values == expected), count << " elements by levels, " << most << " ranks a node");
                } else {
                    const ddl::error failure = error_of([&] { ddl::allreduce<two_levels>(world, values, compose{}); });
                    BOOST_TEST(says(failure, ddl::errc::invalid_argument, "ranks of a node are not consecutive"),
                               failure.what());
                    BOOST_TEST((values == values_of<line>(world.rank(), count)));
                }
            }
        }
}

BOOST_AUTO_TEST_CASE(a_hierarchy_that_cannot_keep_the_order_is_told_to_ranks_that_call_something_else) {
    ddl::cluster world = dealt(2);
    if (world.ordered()) return;
    world.set_timeout(ddl::timeout{10.0});
    auto values = values_of<line>(world.rank(), 100);
    const bool odd = world.rank() == 1;
    const ddl::error failure = error_of([&] {
        if (odd) ddl::allreduce<ddl::hierarchical<ddl::direct, ddl::recursive_doubling>>(world, values, compose{});
        else ddl::allreduce(world, values, compose{});
    });
    BOOST_TEST(says(failure, odd ? ddl::errc::invalid_argument : ddl::errc::mismatch,
                    odd ? "ranks of a node are not consecutive" : "has called with invalid arguments"),
               failure.what());
    ddl::allreduce(world, values, compose{});
    BOOST_TEST((values == fold_of<line>(world.size(), values.size(), compose{})), "and the next call goes on");
}

BOOST_AUTO_TEST_CASE(takes_many_tensors_and_memory_that_the_node_can_map) {
    ddl::cluster world = cluster_of(2);
    std::vector<std::vector<std::uint32_t>> tensors;
    for (const std::size_t count : lengths) tensors.push_back(values_of<std::uint32_t>(world.rank(), count));
    ddl::allreduce_n(world, tensors);
    for (std::size_t i = 0; i < tensors.size(); ++i)
        BOOST_TEST((tensors[i] == fold_of<std::uint32_t>(world.size(), lengths[i], ddl::sum{})));
    for (const int most : {1, 2, 0}) {
        ddl::cluster other = cluster_of(most);
        ddl::buffer<std::uint32_t> mapped{other, 100'001};
        const auto in = values_of<std::uint32_t>(other.rank(), mapped.size());
        std::copy(in.begin(), in.end(), mapped.begin());
        ddl::allreduce(other, mapped);
        const auto expected = fold_of<std::uint32_t>(other.size(), mapped.size(), ddl::sum{});
        BOOST_TEST(std::equal(mapped.begin(), mapped.end(), expected.begin()));
    }
}

BOOST_AUTO_TEST_CASE(is_the_same_bits_in_every_run_of_a_plan) {
    ddl::cluster world = cluster_of(2);
    const auto in = values_of<float>(world.rank(), 30'000);
    std::vector<float> out(in.size());
    auto plan = ddl::allreduce_init<ddl::hierarchical<ddl::direct, ddl::ring>>(world, in, out);
    plan();
    const std::vector<float> first = out;
    for (int i = 0; i < 5; ++i) {
        out.assign(in.size(), 0);
        plan();
        BOOST_TEST((out == first));
    }
    BOOST_TEST(same_bits_everywhere<float>(MPI_COMM_WORLD, out));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_CASE(explain_tells_what_becomes_of_a_call) {
    const std::vector<float> in(100'000);
    std::vector<float> out(in.size());
    const auto explained = [&]<class Schedule>(Schedule, ddl::cluster world) {
        return std::string(ddl::explain(ddl::allreduce_init<Schedule>(world, in, out)).c_str());
    };
    const auto has = [](const std::string& line, const std::string& words) {
        BOOST_TEST(line.find(words) != std::string::npos, "'" << words << "' in: " << line);
    };
    const std::string ranks = std::to_string(world_size()) + " ranks: ";
    has(explained(ddl::tuned{}, cluster_of(0)),
        "allreduce of 100000 float32 (400000 bytes) by sum over cluster, " + ranks);
    has(explained(ddl::tuned{}, cluster_of(0)), "one node, so direct");
    has(explained(ddl::hierarchical<ddl::direct, ddl::ring>{}, cluster_of(0)), "one node, so direct");
    if (world_size() == 1) return;
    const std::string nodes = std::to_string(world_size()) + " nodes, ";
    has(explained(ddl::tuned{}, cluster_of(1)), nodes + "recursive_halving over mpi between all ranks");
    has(explained(ddl::hierarchical<ddl::direct, ddl::ring>{}, cluster_of(1)),
        nodes + "ring over mpi between all ranks");
    if (world_size() > 2)
        has(explained(ddl::tuned{}, cluster_of(2)),
            "nodes, hierarchical<direct, recursive_halving>: reduce-scatter in shared memory");
    has(explained(ddl::ring{}, cluster_of(1)), nodes + "ring over mpi between all ranks");
    ddl::cluster world = cluster_of(1);
    for (const std::size_t count : {100'000U, 1'000'000U}) {  // the wire knows where its ranks lie
        std::vector<float> data(count);
        const std::string flat = ddl::explain(ddl::broadcast_init(world.wire(), data)).c_str();
        const std::size_t begin = flat.rfind(": ") + 2;
        has(ddl::explain(ddl::broadcast_init(world, data)),
            nodes + flat.substr(begin, flat.find(", ", begin) - begin) + " over mpi between all ranks");
    }
}

BOOST_AUTO_TEST_SUITE(split)

BOOST_AUTO_TEST_CASE(keeps_ranks_of_a_node_on_a_node) {
    ddl::cluster world = cluster_of(2);
    ddl::cluster backwards = world.split(0, -world.rank());
    BOOST_TEST(backwards.rank() == world.size() - 1 - world.rank());
    BOOST_TEST(backwards.nodes() == world.nodes());
    BOOST_TEST(backwards.node().size() == world.node().size());
    expect_exact_sums<ddl::hierarchical<ddl::direct, ddl::ring>>(backwards);
    ddl::cluster ones = world.split(world.node().rank(), world.rank());
    BOOST_TEST(ones.nodes() == ones.size(), "one rank of each node");
    expect_exact_sums<ddl::tuned>(ones);
    ddl::cluster inside = world.split(world.rank() / 2, world.rank());
    BOOST_TEST(inside.nodes() == 1);
    expect_exact_sums<ddl::tuned>(inside);
}

BOOST_AUTO_TEST_CASE(outlives_what_it_came_from) {
    auto world = std::make_unique<ddl::cluster>(MPI_COMM_WORLD, ddl::ranks_per_node{2}, patient);
    ddl::cluster all = world->split(7, 0);
    world.reset();
    ddl::cluster moved{std::move(all)};
    for (const auto& use :
         {+[](ddl::cluster& gone) { gone.allocator(); }, +[](ddl::cluster& gone) { gone.allocate(1); }}) {
        const ddl::error failure = error_of([&] { use(all); });
        BOOST_TEST(says(failure, ddl::errc::broken, "use the one it moved to"), failure.what());
    }
    ddl::cluster again = moved.split(0, 0);
    BOOST_TEST(again.limit().seconds == patient.seconds);
    expect_exact_sums<ddl::tuned>(again);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_CASE(what_makes_no_sense_on_one_rank_is_an_error_on_all) {
    if (world_size() == 1) return;
    const bool odd = world_rank() == 1;
    const auto all_throw = [&](const auto& make, const char* words) {
        const ddl::error failure = error_of(make);
        BOOST_TEST(says(failure, odd ? ddl::errc::invalid_argument : ddl::errc::mismatch,
                        odd ? words : "a rank has called with invalid arguments"),
                   failure.what());
    };
    if (odd) ::setenv("DDL_RANKS_PER_NODE", "two", 1);
    all_throw([] { ddl::cluster{MPI_COMM_WORLD, patient}; }, "DDL_RANKS_PER_NODE is");
    ::unsetenv("DDL_RANKS_PER_NODE");
    all_throw([&] { cluster_of(odd ? -1 : 2); }, "ranks_per_node is -1");
    if (odd) ::setenv("DDL_TIMEOUT", "soon", 1);
    all_throw([] { ddl::mpi{MPI_COMM_WORLD}; }, "DDL_TIMEOUT is");
    ::unsetenv("DDL_TIMEOUT");
    expect_exact_sums<ddl::tuned>(*std::make_unique<ddl::cluster>(cluster_of(2)));
}

BOOST_AUTO_TEST_CASE(a_broken_one_cannot_be_split) {
    for (const int most : {0, 2}) {
        ddl::cluster world = cluster_of(most);
        MPI_Barrier(MPI_COMM_WORLD);  // who still makes it would hear of that there
        if (world_rank() == 0) world.fail(ddl::errc::system, "rank 0 gave up");
        const ddl::error failure = error_of([&] { world.split(0, world_rank()); });
        BOOST_TEST(std::string(failure.what()).find("rank 0 gave up") != std::string::npos, failure.what());
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

BOOST_AUTO_TEST_CASE(errors_of_a_node_name_the_call_and_the_ranks_of_the_cluster) {
    ddl::cluster world = cluster_of(2);
    const int rank = world_rank();
    const bool comes = rank % 2 == 0;  // the second rank of each node does not
    world.set_timeout(ddl::timeout{0.3});
    MPI_Barrier(MPI_COMM_WORLD);
    if (comes && rank + 1 < world.size()) {
        std::vector<float> values(1000);
        const ddl::error failure =
            error_of([&] { ddl::allreduce<ddl::hierarchical<ddl::direct, ddl::ring>, ddl::unchecked>(world, values); });
        BOOST_TEST((failure.code() == ddl::errc::timeout));
        BOOST_TEST(failure.rank() == rank);
        const std::string words = failure.what();  // its own, or those of another node in brackets
        int who = -1, round = -1, missed = -1;
        std::sscanf(words.c_str() + words.rfind("allreduce, rank"),
                    "allreduce, rank %d, round %d: rank %d did not arrive", &who, &round, &missed);
        BOOST_TEST(who >= 0, words);
        BOOST_TEST(missed == who + 1, words);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

BOOST_AUTO_TEST_CASE(errors_between_nodes_name_the_ranks_of_the_cluster_however_they_are_dealt) {
    ddl::cluster world = dealt(2);
    if (world.ordered()) return;
    // ring: the first rank of the first node waits for that of the last, which the wire, node by node, counts higher
    const int absent = world.nodes() - 1;
    const bool first = world.rank() == 0;
    world.set_timeout(ddl::timeout{first ? 1.0 : 3.0});
    MPI_Barrier(MPI_COMM_WORLD);
    if (world.rank() != absent) {
        std::vector<float> values(1000);
        const ddl::error failure =
            error_of([&] { ddl::allreduce<ddl::hierarchical<ddl::direct, ddl::ring>, ddl::unchecked>(world, values); });
        const std::string words =
            "allreduce, rank 0, round 0: rank " + std::to_string(absent) + " did not answer within 1 s";
        if (first) BOOST_TEST(says(failure, ddl::errc::timeout, words), failure.what());
        BOOST_TEST((failure.code() == ddl::errc::timeout), failure.what());
        BOOST_TEST(failure.rank() == world.rank());
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

BOOST_AUTO_TEST_CASE(a_rank_that_comes_when_the_others_have_given_up_hears_of_it) {
    ddl::cluster world = cluster_of(2);
    const bool late = world_rank() == 1;
    if (world.size() < 3) return;
    world.set_timeout(ddl::timeout{late ? 20.0 : 0.3});
    std::vector<float> values(100'000);
    MPI_Barrier(MPI_COMM_WORLD);
    if (late) MPI_Barrier(MPI_COMM_WORLD);
    const ddl::error failure = error_of([&] { ddl::allreduce(world, values); });
    if (!late) MPI_Barrier(MPI_COMM_WORLD);
    BOOST_TEST((failure.code() == ddl::errc::timeout), failure.what());
    if (late) BOOST_TEST(says(failure, ddl::errc::timeout, "a peer gave up ["), failure.what());
    MPI_Barrier(MPI_COMM_WORLD);
}

BOOST_AUTO_TEST_CASE(a_rank_whose_node_gets_no_memory_is_heard_of_on_all_nodes) {
    const ddl::timeout soon{0.5};
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    const bool poor = world_rank() == 1;
    if (poor) {
        rlimit none = files;
        none.rlim_cur = 3;
        ::setrlimit(RLIMIT_NOFILE, &none);
    }
    const ddl::error failure = error_of([&] { ddl::cluster{MPI_COMM_WORLD, ddl::ranks_per_node{2}, soon}; });
    if (poor) ::setrlimit(RLIMIT_NOFILE, &files);
    if (world_size() == 1) return;
    const std::string words = "shared_memory, rank 1: socket: ";
    if (world_rank() == 0) BOOST_TEST(says(failure, ddl::errc::timeout, "rank 1 did not start"), failure.what());
    else BOOST_TEST(says(failure, ddl::errc::system, poor ? words : "[" + words), failure.what());
    MPI_Barrier(MPI_COMM_WORLD);
}
