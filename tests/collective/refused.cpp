// SPDX-License-Identifier: Apache-2.0
// What a call that is refused leaves behind: errors on all ranks, and nothing else.
#include <ddl/allreduce.hpp>
#include <ddl/barrier.hpp>
#include <ddl/broadcast.hpp>
#include <ddl/reduce.hpp>

#include <boost/test/unit_test.hpp>

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
