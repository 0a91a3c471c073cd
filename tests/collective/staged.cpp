// SPDX-License-Identifier: Apache-2.0
// The collectives other than allreduce, through the host.
#include <ddl/all_gather.hpp>
#include <ddl/all_to_all.hpp>
#include <ddl/allreduce.hpp>
#include <ddl/broadcast.hpp>
#include <ddl/gather.hpp>
#include <ddl/reduce.hpp>
#include <ddl/reduce_scatter.hpp>
#include <ddl/scatter.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "oracle.hpp"
#include "places.hpp"
#include "staged_threads.hpp"

namespace data = boost::unit_test::data;

namespace {

/// Counts that ranks share evenly and unevenly, in one chunk and in many.
constexpr std::size_t counts[] = {0, 1, 5, 63, 64, 65, 1000, 1003};

template <class Body>
void staged_over_threads(int ranks, int slots, Body body) {
    ddl::threads::run(
        ranks,
        [&](ddl::threads& host) {
            staged_threads team{host, 256, slots};
            body(team);
        },
        patient);
}

using team_of_threads = staged_threads<ddl::threads>;

/// `call` copies so many elements out of the device and into it, no others.
template <class Call>
void copies(team_of_threads& team, std::size_t out, std::size_t in, Call call) {
    const std::size_t fetched = team.fetched;
    const std::size_t stored = team.stored;
    call();
    require(team.fetched - fetched == out * sizeof(float),
            "what is read of the device is fetched once, and nothing else");
    require(team.stored - stored == in * sizeof(float),
            "what is written to the device is stored once, and nothing else");
}

}  // namespace

BOOST_DATA_TEST_CASE(blocks_of_unlike_lengths_pass_in_chunks, data::make({1, 2, 3, 5}) * data::make({1, 3}), ranks,
                     slots) {
    staged_over_threads(ranks, slots, [](team_of_threads& team) {
        const int rank = team.rank();
        for (const std::size_t count : counts) {
            const auto own = ddl::block(count, team.size(), rank);
            const auto sums = sums_of_small_values(team.size(), count);
            auto values = small_values<float>(rank, count);
            guarded<float> mine{own.count};
            copies(team, count, own.count, [&] { ddl::reduce_scatter(team, values, mine); });
            require_values(
                mine, [&](std::size_t i) { return sums[own.first + i]; }, "reduce_scatter");
            guarded<float> all{count};
            copies(team, own.count, count, [&] { ddl::all_gather(team, mine, all); });
            require_values(
                all, [&](std::size_t i) { return sums[i]; }, "all_gather");
            ddl::reduce_scatter<ddl::ring>(team, values, ddl::sum{});
            ddl::all_gather<ddl::ring>(team, values);
            require_values(
                values, [&](std::size_t i) { return sums[i]; }, "both in place");
        }
    });
}

BOOST_DATA_TEST_CASE(only_the_root_is_read_or_written, data::make({1, 2, 3, 5}), ranks) {
    staged_over_threads(ranks, 2, [](team_of_threads& team) {
        const int rank = team.rank();
        for (const std::size_t count : counts)
            for (int root = 0; root < team.size(); ++root) {
                const bool is_root = rank == root;
                const auto own = ddl::block(count, team.size(), rank);
                const auto sums = sums_of_small_values(team.size(), count);
                auto values = small_values<float>(rank, count);
                guarded<float> whole{count};
                const auto at_root = [&](auto wanted, const char* name) {
                    if (is_root) require_values(whole, wanted, name);
                    else require(whole.untouched(), name);
                };
                copies(team, count, is_root ? count : 0, [&] { ddl::reduce(team, values, whole, ddl::sum{}, root); });
                at_root([&](std::size_t i) { return sums[i]; }, "reduce");

                copies(team, is_root ? count : 0, is_root ? 0 : count, [&] { ddl::broadcast(team, values, root); });
                const auto of_root = [&](std::size_t i) { return small_value(root, i); };
                require_values(values, of_root, "broadcast");

                guarded<float> mine{own.count};
                copies(team, is_root ? count : 0, own.count, [&] {
                    ddl::scatter_plan<float, ddl::tuned, team_of_threads>{team, values.data(), mine.data(), count,
                                                                          root}();
                });
                require_values(
                    mine, [&](std::size_t i) { return of_root(own.first + i); }, "scatter");
                copies(team, own.count, is_root ? count : 0, [&] {
                    ddl::gather_plan<float, ddl::tuned, team_of_threads>{team, mine.data(), whole.data(), count,
                                                                         root}();
                });
                at_root(of_root, "gather");
            }
    });
}

BOOST_DATA_TEST_CASE(pairs_of_blocks_are_exchanged, data::make({1, 2, 3, 5}), ranks) {
    staged_over_threads(ranks, 2, [](team_of_threads& team) {
        for (const std::size_t each : {0U, 1U, 13U, 200U}) {
            const std::size_t count = each * static_cast<std::size_t>(team.size());
            const auto wanted = exchanged_values(team.rank(), each);
            auto values = small_values<float>(team.rank(), count);
            guarded<float> out{count};
            copies(team, count, count, [&] { ddl::all_to_all(team, values, out); });
            require_values(out, wanted, "beside");
            ddl::all_to_all(team, values);
            require_values(values, wanted, "in place");
        }
    });
}

namespace {
/// While the host's collective of the second chunk goes on, the first is copied out, and the third in: each waits for the others.
struct overlap {
    std::atomic<int> fetches = 0;  // that are under way
    std::atomic<int> stores = 0;
    std::atomic<bool> seen = false;
    std::atomic<bool> in_vain = false;

    template <class Ready>
    bool await(Ready ready) {
        for (ddl::patience waiting{patient}; !ready() && !in_vain;)
            if (waiting.pause() && waiting.expired()) in_vain = true;
        return !in_vain;
    }
    void copy(team_of_threads::direction way, int slot) {
        const bool is_fetch = way == team_of_threads::direction::fetch;
        if (is_fetch && slot < 2) return;  // the collective is there when the first two have come
        auto& under_way = is_fetch ? fetches : stores;
        ++under_way;
        await([&] { return seen.load(); });
        --under_way;
    }
    void look() {
        seen = await([&] { return fetches == 1 && stores == 1; });
    }
};
struct sum_that_looks {
    static constexpr bool commutative = true;
    overlap* all;  // of the rank that looks
    float operator()(float left, float right) const {
        if (all != nullptr && left == 1 && !all->seen) all->look();
        return left + right;
    }
};
}  // namespace

BOOST_AUTO_TEST_CASE(a_copy_in_a_copy_out_and_the_hosts_collective_are_under_way_at_once) {
    staged_over_threads(2, 3, [](team_of_threads& team) {
        constexpr std::size_t chunk = 256 / sizeof(float);
        overlap all;
        if (team.rank() == 0) team.beside_copy = [&](team_of_threads::direction way, int slot) { all.copy(way, slot); };
        std::vector<float> values(6 * chunk);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i / chunk);
        ddl::allreduce(team, values, sum_that_looks{team.rank() == 0 ? &all : nullptr});
        require(team.rank() != 0 || all.seen, "one came after the other");
        for (std::size_t i = 0; i < values.size(); ++i)
            require(values[i] == static_cast<float>(2 * (i / chunk)), "a sum");
    });
}

BOOST_AUTO_TEST_CASE(ranks_that_disagree_are_told_before_anything_is_stored) {
    staged_over_threads(2, 2, [](team_of_threads& team) {
        std::vector<float> values(team.rank() == 0 ? 1000 : 1001, 1);
        require_error(ddl::errc::mismatch, "elements, this rank", [&] { ddl::broadcast(team, values); });
        require_error(ddl::errc::mismatch, "names root",
                      [&] { ddl::broadcast(team, std::vector<float>(1000), team.rank()); });
        require(team.stored == 0, "nothing was stored");
    });
}

BOOST_AUTO_TEST_CASE(memory_that_copies_cannot_reach_is_refused_and_the_others_are_told) {
    staged_over_threads(3, 2, [](team_of_threads& team) {
        std::vector<float> values(999, 1);
        std::vector<float> part(333);
        for (const bool is_in : {true, false}) {
            const bool refuses = team.rank() == 1;
            if (refuses) team.out_of_reach = is_in ? values.data() : part.data();
            require_error(refuses ? ddl::errc::invalid_argument : ddl::errc::mismatch,
                          !refuses ? "see its own error"
                          : is_in  ? "reduce_scatter, rank 1: in is out of reach"
                                   : "out is out of reach",
                          [&] { ddl::reduce_scatter(team, values, part); });
            team.out_of_reach = nullptr;
            ddl::reduce_scatter(team, values, part);
            require(part == std::vector<float>(333, 3), "the communicator is as good as before");
        }
    });
}

BOOST_AUTO_TEST_CASE(a_copy_that_fails_is_told_to_those_who_wait_for_it) {
    staged_over_threads(3, 2, [](team_of_threads& team) {
        for (int which = 0; which < 12; ++which) {
            std::vector<float> values(500, static_cast<float>(team.rank()));  // of eight chunks
            const bool fails = team.rank() == 1;
            if (fails) team.copies_until_one_fails = which;
            const auto call = [&] { ddl::broadcast(team, values, 1); };
            if (which >= 8) call();
            else if (fails) require_error(ddl::errc::system, "the device says no", call);
            else require_error(ddl::errc::mismatch, "see its own error", call);
            team.copies_until_one_fails = -1;
            values.assign(500, static_cast<float>(team.rank()));
            ddl::broadcast(team, values, 2);
            require(values == std::vector<float>(500, 2), "the communicator is as good as before");
        }
    });
}

BOOST_AUTO_TEST_CASE(a_plan_names_the_schedule_of_its_own_collective) {
    ddl::recording::run(3, [](ddl::recording& host) {
        staged_threads team{host, 256, 2};
        const std::vector<float> in(5);
        std::vector<float> out(15);
        const std::string line = ddl::explain(ddl::gather_init(team, in, out));
        require(line.find("on their way, each over recording: tree") != std::string::npos, line);
    });
}
