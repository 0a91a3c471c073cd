// SPDX-License-Identifier: Apache-2.0
// What a call that is refused leaves behind: errors on all ranks, and nothing else.
#include <ddl/all_gather.hpp>
#include <ddl/all_to_all.hpp>
#include <ddl/allreduce.hpp>
#include <ddl/barrier.hpp>
#include <ddl/broadcast.hpp>
#include <ddl/gather.hpp>
#include <ddl/reduce.hpp>
#include <ddl/reduce_scatter.hpp>
#include <ddl/scatter.hpp>

#include <boost/test/unit_test.hpp>

#include <span>
#include <tuple>

#include "oracle.hpp"
#include "places.hpp"

namespace {
using every_place =
    std::tuple<places::threads, places::processes, places::messages<1>, places::levels<ddl::threads, ddl::recording, 2>,
               places::levels<ddl::recording, ddl::recording, 2>>;
}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(a_rank_with_invalid_arguments_lets_the_others_know, Place, every_place) {
    for (const int one : {0, 1, 3})
        Place::run(4, [&](auto& ranks) {
            const bool wrong = ranks.rank() == one;
            const std::vector<float> in(4, 1);
            std::vector<float> out(wrong ? 3 : 4, -1);
            const auto call = [&] { ddl::allreduce(ranks, in, out); };
            if (wrong)
                require_error(
                    ddl::errc::invalid_argument,
                    "allreduce, rank " + std::to_string(one) + ": out holds 3 elements, and needs 4, as many as in",
                    call);
            else
                require_error(ddl::errc::mismatch,
                              "rank " + std::to_string(one) + " has called with invalid arguments; see its own error",
                              call);
            for (const float each : out) require(each == -1, "the output was written");
            std::vector<int> data(3, 1);
            ddl::allreduce(ranks, data);
            require(data == std::vector<int>(3, 4), "it is out of order afterwards");
        });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_root_that_is_no_rank_is_an_invalid_argument, Place, every_place) {
    Place::run(4, [&](auto& ranks) {
        std::vector<float> data(4);
        require_error(ddl::errc::invalid_argument, "root is 4; name a rank from 0 to 3",
                      [&] { ddl::broadcast<ddl::direct>(ranks, data, 4); });
        require_error(ddl::errc::invalid_argument, "root is -1; name a rank from 0 to 3",
                      [&] { ddl::reduce<ddl::direct>(ranks, data, ddl::sum{}, -1); });
    });
}

BOOST_AUTO_TEST_CASE(ranges_that_overlap_in_part_are_an_invalid_argument) {
    places::threads::run(2, [](auto& ranks) {
        std::vector<int> memory(16, 1);
        const auto at = [&](std::size_t first, std::size_t count) { return std::span(memory).subspan(first, count); };
        const auto refused = [&](auto call) {
            require_error(ddl::errc::invalid_argument, "in and out overlap; pass two ranges that lie apart", call);
        };
        const bool is_root = ranks.rank() == 0;
        for (const std::size_t first : {3U, 5U}) {  // 4 elements before those at 4, or after
            refused([&] { ddl::allreduce(ranks, at(4, 4), at(first, 4)); });
            refused([&] { ddl::allreduce_init(ranks, at(4, 4), at(first, 4)); });
            refused([&] { ddl::allreduce_async(ranks, at(4, 4), at(first, 4)); });
            refused([&] { ddl::all_to_all(ranks, at(4, 4), at(first, 4)); });
            refused([&] { ddl::reduce_scatter(ranks, at(4, 4), at(first, 2)); });
            refused([&] { ddl::all_gather(ranks, at(first, 2), at(4, 4)); });
        }
        const auto refused_by_the_root = [&](auto call) {
            if (is_root) refused(call);
            else require_error(ddl::errc::mismatch, "rank 0 has called with invalid arguments", call);
        };
        refused_by_the_root([&] { ddl::reduce(ranks, at(0, 4), at(1, 4)); });
        refused_by_the_root([&] { ddl::gather(ranks, at(1, 2), at(0, 4)); });
        refused_by_the_root([&] { ddl::scatter(ranks, at(0, 4), at(1, 2)); });
        require(memory == std::vector<int>(16, 1), "something was written");
    });
}

BOOST_AUTO_TEST_CASE(ranges_that_meet_are_taken_and_so_are_those_of_calls_in_place) {
    places::threads::run(2, [](auto& ranks) {
        std::vector<int> memory(8, 1);
        const auto at = [&](std::size_t first, std::size_t count) { return std::span(memory).subspan(first, count); };
        const auto mine = 2 * static_cast<std::size_t>(ranks.rank());
        ddl::allreduce(ranks, at(0, 4), at(0, 4));
        ddl::allreduce(ranks, at(0, 4), at(4, 4));
        ddl::allreduce(ranks, at(4, 4), at(0, 4));
        require(memory == std::vector<int>{8, 8, 8, 8, 4, 4, 4, 4}, "another sum");
        ddl::all_to_all(ranks, at(0, 4), at(0, 4));
        ddl::reduce_scatter(ranks, at(0, 4), at(mine, 2));
        ddl::all_gather(ranks, at(mine, 2), at(0, 4));
        require(memory == std::vector<int>{16, 16, 16, 16, 4, 4, 4, 4}, "another sum of blocks");
        ddl::reduce(ranks, at(0, 4), ranks.rank() == 0 ? at(0, 4) : at(1, 4));
        ddl::gather(ranks, at(mine, 2), ranks.rank() == 0 ? at(0, 4) : at(1, 4));
        ddl::scatter(ranks, at(0, 4), ranks.rank() == 0 ? at(0, 2) : at(1, 2));
        require(memory[1] == (ranks.rank() == 0 ? 32 : 16), "another block");
        ddl::reduce_scatter(ranks, at(0, 1), ranks.rank() == 0 ? at(0, 1) : at(1, 0));
        ddl::reduce_scatter(ranks, at(4, 1), ranks.rank() == 0 ? at(0, 1) : at(4, 0));
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(no_output_is_written, Place, every_place) {
    for (const int one : {0, 1, 2, 3})
        for (const std::size_t count : {std::size_t{8}, std::size_t{5000}})
            Place::run(4, [&](auto& ranks) {
                const std::size_t mine = ranks.rank() == one ? count - 1 : count;
                const std::vector<int> born(mine, ranks.rank());
                std::vector<int> data = born;
                std::vector<int> out = born;
                const auto untouched = [&](const char* call) {
                    require(data == born && out == born, std::string(call) + ", rank " + std::to_string(ranks.rank()) +
                                                             ", of which rank " + std::to_string(one) +
                                                             " differs: written");
                };
                require_error(ddl::errc::mismatch, "brings", [&] { ddl::allreduce(ranks, data); });
                require_error(ddl::errc::mismatch, "brings", [&] { ddl::allreduce(ranks, data, out); });
                untouched("allreduce");
                require_error(ddl::errc::mismatch, "brings", [&] { ddl::allreduce<ddl::tree>(ranks, data, out); });
                untouched("allreduce<tree>");
                for (int root = 0; root < 4; ++root) {
                    require_error(ddl::errc::mismatch, "brings", [&] { ddl::broadcast<ddl::tree>(ranks, data, root); });
                    untouched("broadcast<tree>");
                    require_error(ddl::errc::mismatch, "brings",
                                  [&] { ddl::reduce<ddl::tree>(ranks, data, out, ddl::sum{}, root); });
                    untouched("reduce<tree>");
                }
            });
}

BOOST_AUTO_TEST_CASE(comparing_costs_a_short_allreduce_no_message) {
    for (const int size : {2, 3, 4, 5, 8, 9}) {
        const bool directly = size > 2 && size <= ddl::most_direct_ranks;
        const auto program = ddl::allreduce_program<ddl::recursive_doubling>(size);
        ddl::recording::run(size, [&](auto& ranks) {
            std::vector<float> data(100, 1);
            ranks.clear_log();
            ddl::allreduce(ranks, data);
            int sent = 0;
            for (const auto& one : ranks.log()) sent += one.kind == ddl::recording::direction::send ? 1 : 0;
            int needed = directly ? size - 1 : 0;
            for (int round = 0; round < program.rounds() && !directly; ++round)
                for (int i = 0; i < program.width(ranks.rank(), round); ++i)
                    needed += program.at(ranks.rank(), round, i).what == ddl::action::send ? 1 : 0;
            require(sent == needed, std::to_string(sent) + " messages, where " + std::to_string(needed) + " suffice");
        });
    }
}
