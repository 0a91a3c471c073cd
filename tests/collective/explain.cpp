// SPDX-License-Identifier: Apache-2.0
#include <ddl/all_gather.hpp>
#include <ddl/allreduce.hpp>
#include <ddl/broadcast.hpp>
#include <ddl/reduce.hpp>
#include <ddl/reduce_scatter.hpp>
#include <ddl/scatter.hpp>

#include <boost/test/unit_test.hpp>

#include <string>
#include <utility>

#include "oracle.hpp"
#include "places.hpp"

namespace {

/// What is said of an allreduce of `count` floats between two ranks.
template <class Place, class Schedule = ddl::tuned>
std::string explained(std::size_t count, int size = 2) {
    std::string line;
    Place::run(size, [&](auto& ranks) {
        std::vector<float> data(count);
        const std::string mine = ddl::explain(ddl::allreduce_init<Schedule>(ranks, data));
        if (ranks.rank() == 0) line = mine;
    });
    return line;
}

}  // namespace

BOOST_AUTO_TEST_CASE(short_vectors_over_memory_are_folded_by_every_rank) {
    BOOST_TEST(explained<places::threads>(100) ==
               "allreduce of 100 float32 (400 bytes) by sum over threads, 2 ranks: direct, one-shot: so few bytes are "
               "staged once, and every rank folds all of them");
    BOOST_TEST(
        explained<places::threads>(12) ==
        "allreduce of 12 float32 (48 bytes) by sum over threads, 2 ranks: direct, one-shot: up to 48 bytes travel with the "
        "announcement, and every rank folds all of them");
}

BOOST_AUTO_TEST_CASE(memory_that_peers_map_is_not_copied) {
    BOOST_TEST(
        explained<places::threads>(5000) ==
        "allreduce of 5000 float32 (20000 bytes) by sum over threads, 2 ranks: direct, fused and mapped: peers can map "
        "this rank's buffer, and if all can, nothing is copied");
}

BOOST_AUTO_TEST_CASE(memory_that_they_cannot_is_staged) {
    BOOST_TEST(explained<places::processes>(512) ==
               "allreduce of 512 float32 (2048 bytes) by sum over private memory, 2 ranks: direct, one-shot: so few "
               "bytes are staged once, and every rank folds all of them");
    BOOST_TEST(
        explained<places::processes>(5000) ==
        "allreduce of 5000 float32 (20000 bytes) by sum over private memory, 2 ranks: direct, fused and staged through "
        "windows of 262144 bytes, for peers cannot map this rank's buffer; a ddl::buffer would save the copies");
}

BOOST_AUTO_TEST_CASE(what_only_moves_is_announced_staged_or_mapped_by_what_a_rank_hands_out) {
    places::threads::run(2, [](auto& ranks) {
        const auto says = [](const std::string& line, const std::string& end) {
            require(line.ends_with("2 ranks: direct, " + end), line);
        };
        const std::string announced = "up to 48 bytes travel with the announcement";
        const std::string staged =
            "fused and staged through windows of 262144 bytes, below the 8192 bytes from which buffers are mapped";
        const std::string mapped =
            "fused and mapped: peers can map this rank's buffer, and if all can, nothing is copied";
        std::vector<float> short_half(12), half(1500), whole(3000), long_half(2048), longest(4096);
        says(ddl::explain(ddl::broadcast_init(ranks, short_half)), announced);
        says(ddl::explain(ddl::broadcast_init(ranks, half)), staged);
        says(ddl::explain(ddl::broadcast_init(ranks, long_half)), mapped);
        std::vector<float> two(24);
        says(ddl::explain(ddl::all_gather_init(ranks, short_half, two)), announced);
        says(ddl::explain(ddl::all_gather_init(ranks, half, whole)), staged);
        says(ddl::explain(ddl::all_gather_init(ranks, long_half, longest)), mapped);
        says(ddl::explain(ddl::scatter_init(ranks, two, short_half, 0)), staged);
        says(ddl::explain(ddl::reduce_scatter_init(ranks, whole, half)), mapped);
    });
}

BOOST_AUTO_TEST_CASE(a_schedule_that_was_named_is_walked) {
    BOOST_TEST(
        (explained<places::threads, ddl::ring>(100)) ==
        "allreduce of 100 float32 (400 bytes) by sum over threads, 2 ranks: ring, walked round by round through windows "
        "of 262144 bytes, as it was named");
    BOOST_TEST((explained<places::threads, ddl::hierarchical<ddl::direct, ddl::ring>>(100))
                   .find("2 ranks: hierarchical<direct, ring>, walked") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(messages_carry_what_fits_beside_the_comparison) {
    BOOST_TEST(
        explained<places::messages<1>>(100) ==
        "allreduce of 100 float32 (400 bytes) by sum over recording, 2 ranks: recursive_doubling, selected for this size, "
        "in the messages that compare the calls");
    BOOST_TEST(
        explained<places::messages<1>>(100, 3) ==
        "allreduce of 100 float32 (400 bytes) by sum over recording, 3 ranks: recursive_doubling, selected for this size, "
        "in the messages that compare the calls, from each rank to each");
    BOOST_TEST(
        explained<places::messages<1>>(4000) ==
        "allreduce of 4000 float32 (16000 bytes) by sum over recording, 2 ranks: recursive_doubling, selected for this size, "
        "beside the messages that compare the calls, in pieces of up to 61440 bytes");
    BOOST_TEST(
        explained<places::messages<1>>(8'000, 5) ==
        "allreduce of 8000 float32 (32000 bytes) by sum over recording, 5 ranks: recursive_doubling, selected for this size, "
        "beside the messages that compare the calls, in pieces of up to 61440 bytes");
    for (const auto& [count, ranks] : {std::pair{10'000, 3}, {10'000, 5}, {20'000, 3}, {20'000, 7}}) {
        const std::string line = explained<places::messages<1>>(static_cast<std::size_t>(count), ranks);
        BOOST_TEST(line.ends_with(std::to_string(ranks) + " ranks: direct, selected for this size, " +
                                  std::to_string(ranks) + " chunks in 2 rounds, in segments of up to 61440 bytes"),
                   line);
    }
    BOOST_TEST(
        explained<places::messages<1>>(10'000, 4) ==
        "allreduce of 10000 float32 (40000 bytes) by sum over recording, 4 ranks: recursive_halving, selected for this size, "
        "4 chunks in 4 rounds, of which the first half goes with the messages that compare the calls");
    BOOST_TEST(
        explained<places::messages<1>>(80'000, 3) ==
        "allreduce of 80000 float32 (320000 bytes) by sum over recording, 3 ranks: recursive_halving, selected for this size, "
        "3 chunks in 4 rounds, in segments of up to 61440 bytes");
}

BOOST_AUTO_TEST_CASE(short_blocks_travel_with_the_comparison) {
    places::messages<1>::run(2, [](auto& ranks) {
        std::vector<float> block(100), all(200);
        const auto says = [](const ddl::text& line, const std::string& end) {
            const std::string words = line;
            require(words.ends_with(end), words);
        };
        says(ddl::explain(ddl::all_gather_init(ranks, block, all)),
             "2 ranks: recursive_halving, selected for this size, in the messages that compare the calls");
        says(ddl::explain(ddl::reduce_scatter_init(ranks, all, block)),
             "2 ranks: recursive_halving, in the messages that compare the calls");
        says(ddl::explain(ddl::scatter_init(ranks, all, block, 0)),
             "2 ranks: tree, selected for this size, in the messages that compare the calls, if they are compared");
        std::vector<float> longer(20'000), longest(40'000);
        says(ddl::explain(ddl::all_gather_init(ranks, longer, longest)),
             "2 ranks: recursive_halving, selected for this size");
    });
}

BOOST_AUTO_TEST_CASE(short_vectors_from_and_to_a_root_travel_with_the_comparison) {
    const auto line_of_each = [](int size, std::size_t count) {
        std::string lines;
        places::messages<1>::run(size, [&](auto& ranks) {
            std::vector<float> data(count);
            const std::string broadcast = ddl::explain(ddl::broadcast_init<ddl::tree>(ranks, data));
            const std::string reduce = ddl::explain(ddl::reduce_init<ddl::tree>(ranks, data));
            if (ranks.rank() != 0) return;
            for (const std::string& line : {broadcast, reduce}) lines += line.substr(line.find("ranks: ")) + "; ";
        });
        return lines;
    };
    BOOST_TEST(line_of_each(2, 100) ==
               "ranks: tree, in the messages that compare the calls, if they are compared; "
               "ranks: tree, in the messages that compare the calls, if they are compared; ");
    BOOST_TEST(line_of_each(3, 100) ==
               "ranks: tree, in the messages that compare the calls, from each rank to each, if they are compared; "
               "ranks: tree, in the messages that compare the calls, from each rank to each, if they are compared; ");
    BOOST_TEST(line_of_each(2, 100'000) == "ranks: tree; ranks: tree; ");
}

BOOST_AUTO_TEST_CASE(levels_are_named_one_by_one) {
    BOOST_TEST(
        (explained<places::levels<ddl::threads, ddl::recording, 2>>(100, 6)) ==
        "allreduce of 100 float32 (400 bytes) by sum over layered, 6 ranks: hierarchical<direct, recursive_halving>, inside "
        "threads with 2 ranks, across recording with 3");
}

BOOST_AUTO_TEST_CASE(it_is_a_text_that_becomes_a_string) {
    places::threads::run(1, [](auto& ranks) {
        std::vector<int> data(1);
        const ddl::text line = ddl::explain(ddl::broadcast_init(ranks, data));
        require(std::string(line) == line.c_str() && line.size() == std::string(line).size(), "they differ");
        require(std::string(line).find(
                    "broadcast of 1 int32 (4 bytes) over threads, 1 ranks: direct, up to 48 bytes travel") == 0,
                line.c_str());
    });
}
