// SPDX-License-Identifier: Apache-2.0
#include <ddl/allreduce.hpp>
#include <ddl/barrier.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <span>

#include "fold_in_rank_order.hpp"
#include "grid_of_threads.hpp"
#include "oracle.hpp"

namespace data = boost::unit_test::data;

// what benchmarks/gpu writes for a machine
template <>
inline constexpr ddl::grid_limits ddl::grid_limits_of<grid_of_threads>{.grids = {{2, 100'000, 2}, {3, 200'000, 1}}};

namespace {

constexpr std::size_t short_and_long[] = {0, 1, 7, 1000, 16384, 16385, 40'001, 70'001};

/// What a vector of a device is to the library: its `data()` is a pointer class.
template <class Type>
struct device_vector {
    struct pointer {
        Type* address;
        Type* get() const noexcept { return address; }
    };
    std::vector<Type> values;
    pointer data() noexcept { return {values.data()}; }
    std::size_t size() const noexcept { return values.size(); }
};
static_assert(ddl::contiguous<device_vector<int>&> && ddl::writable<device_vector<int>&>);

struct heavy {  // a body
    static constexpr int runs_at_once = 1;
};

}  // namespace

BOOST_DATA_TEST_CASE(a_grid_folds_short_and_long_vectors, data::make({1, 2, 3, 5}), ranks) {
    grid_of_threads::run(ranks, [](grid_of_threads& team) {
        for (const std::size_t count : short_and_long) {
            const auto expected = sums_of_small_values(team.size(), count);
            const auto wanted = [&](std::size_t i) { return expected[i]; };
            const int before = team.launches();
            auto in = small_values<float>(team.rank(), count);
            guarded<float> out{count};
            ddl::allreduce(team, in, out);
            require_values(out, wanted, "beside");
            ddl::allreduce<ddl::direct>(team, in, ddl::sum{});
            require_values(in, wanted, "in place");
            require(team.launches() - before == (count == 0 ? 0 : 2), "one launch a call, none for nothing");
        }
    });
}

BOOST_DATA_TEST_CASE(the_bits_are_the_same_for_any_grid, data::make({2, 3, 5}), ranks) {
    grid_of_threads::run(ranks, [](grid_of_threads& team) {
        for (team.most = 1; team.most <= 5; ++team.most) {
            team.most_threads = team.most % 2 + 1;
            require_fold_in_rank_order<float>(team, short_and_long);
            require_fold_in_rank_order<ddl::bfloat16>(team, short_and_long);
        }
    });
}

BOOST_AUTO_TEST_CASE(vectors_of_devices_are_taken) {
    grid_of_threads::run(2, [](grid_of_threads& team) {
        device_vector<int> values{{team.rank(), 10}};
        ddl::allreduce(team, values, ddl::maximum{});
        require(values.values == std::vector<int>{1, 10}, "the larger of both");
    });
}

BOOST_AUTO_TEST_CASE(a_plan_runs_again_and_later) {
    grid_of_threads::run(3, [](grid_of_threads& team) {
        std::vector<int> values(100, 1);
        auto plan = ddl::allreduce_init(team, values);
        plan();
        plan();
        ddl::allreduce_async(team, values).wait();
        require(values == std::vector<int>(100, 27), "three times three");
        ddl::barrier(team);
        const std::string words = ddl::explain(plan);
        require(words.find("over grid of threads, 3 ranks: direct, one-shot in one launch") != std::string::npos,
                words);
        ddl::barrier(team);
        team.most = 1;
        const auto says = [&](std::size_t count, const char* way) {
            std::vector<int> many(count);
            const std::string told = ddl::explain(ddl::allreduce_init(team, many));
            require(told.find(way) != std::string::npos, told);
        };
        says(512, "one-shot in one launch: up to 2048 bytes");  // which fill the inbox of the one block
        says(513, "fused two-shot");
    });
}

BOOST_AUTO_TEST_CASE(ranks_that_disagree_are_told_before_anything_is_launched) {
    grid_of_threads::run(3, [](grid_of_threads& team) {
        std::vector<int> values(team.rank() == 1 ? 9 : 10, 1);
        require_error(ddl::errc::mismatch, "elements, this rank", [&] { ddl::allreduce(team, values); });
        require(team.launches() == 0, "nothing was launched");
        values.assign(10, 1);
        ddl::allreduce(team, values);  // the communicator is as good as before
        require(values == std::vector<int>(10, 3), "a sum");
    });
}

BOOST_AUTO_TEST_CASE(memory_out_of_reach_is_refused_and_the_others_are_told) {
    grid_of_threads::run(2, [](grid_of_threads& team) {
        std::vector<int> values(10, 1);
        std::span<int> data{values};
        if (team.rank() == 1) data = {reinterpret_cast<int*>(std::uintptr_t{64}), 10};
        if (team.rank() == 1)
            require_error(ddl::errc::invalid_argument, "in is out of reach", [&] { ddl::allreduce(team, data); });
        else require_error(ddl::errc::mismatch, "see its own error", [&] { ddl::allreduce(team, data); });
        ddl::allreduce(team, values);
        require(values == std::vector<int>(10, 2), "a sum");
    });
}

BOOST_AUTO_TEST_CASE(what_a_device_refuses_before_the_call_is_told_too) {
    using stage = grid_of_threads::stage;
    for (const stage where : {stage::arrive, stage::defer, stage::begin})
        grid_of_threads::run(3, [where](grid_of_threads& team) {
            std::vector<int> values(10, 1);
            const bool fails = team.rank() == 1;
            if (fails) team.fails_at = where;
            ddl::request sum;  // outlives the error: the library that counts its references is not instrumented
            const auto call = [&] {
                sum = ddl::allreduce_async(team, values);
                sum.wait();
            };
            if (fails) require_error(ddl::errc::system, "the device says no", call);
            else
                require_error(ddl::errc::mismatch, "rank 1 has called with invalid arguments; see its own error", call);
            require(team.launches() == 0, "nothing was launched");
            team.fails_at = stage::none;
            ddl::allreduce(team, values);
            require(values == std::vector<int>(10, 3), "the communicator is as good as before");
        });
}

BOOST_AUTO_TEST_CASE(unchecked_calls_are_told_nothing_of_a_refusal) {
    using stage = grid_of_threads::stage;
    for (const stage where : {stage::defer, stage::begin})
        grid_of_threads::run(3, [where](grid_of_threads& team) {
            std::vector<int> values(10, 1);
            const auto call = [&] { ddl::allreduce_async<ddl::tuned, ddl::unchecked>(team, values).wait(); };
            if (team.rank() == 1) {
                team.fails_at = where;
                require_error(ddl::errc::system, "the device says no", call);
                team.fails_at = stage::none;
            }
            call();  // for the others it is the first
            require(values == std::vector<int>(10, 3), "a sum");
        });
}

BOOST_AUTO_TEST_CASE(a_request_is_done_when_the_grid_is) {
    grid_of_threads::run(2, [](grid_of_threads& team) {
        std::vector<int> values(20'000, 1);
        team.blocks = false;
        team.starts = false;
        const ddl::request sum = ddl::allreduce_async(team, values);
        ddl::barrier(team);  // until when the host sides have launched
        require(team.launches() == 1 && !sum.test(), "it is under way");
        team.starts = true;
        sum.wait();
        require(values == std::vector<int>(20'000, 2), "a sum");
    });
}

BOOST_AUTO_TEST_CASE(what_a_grid_leaves_is_thrown_by_its_request) {
    std::atomic<bool> given_up = false;
    std::vector<int>
        memory[2];  // of both until both grids have ended: the late one writes where the other has given up
    grid_of_threads::run(
        2,
        [&](grid_of_threads& team) {
            std::vector<int>& values = memory[team.rank()];
            values.assign(20'000, 1);
            team.blocks = false;
            team.starts = team.rank() == 0;
            const ddl::request sum = ddl::allreduce_async(team, values);
            while (team.rank() == 1 && !given_up) std::this_thread::yield();
            team.starts = true;
            require_error(ddl::errc::timeout, team.rank() == 0 ? "wait, rank 0: rank 1 did not" : "rank 0 did not",
                          [&] { sum.wait(); });
            given_up = true;
        },
        ddl::timeout{2});
}

BOOST_AUTO_TEST_CASE(shapes_have_work_for_each_block_and_room_for_each_parcel) {
    using narrow = ddl::grid_one_shot<ddl::sum, std::int8_t>;
    using wide = ddl::grid_one_shot<ddl::sum, double>;
    using floats = ddl::grid_one_shot<ddl::sum, float>;
    const auto holds = []<class Body>(std::size_t count, int ranks, int blocks) {
        const auto shape = ddl::one_shot_shape<Body>(count, ranks, blocks, 512);
        return shape.blocks >= 1 && shape.blocks <= blocks && shape.threads % 32 == 0 && shape.threads <= 512 &&
               static_cast<std::size_t>(shape.blocks) <= Body::parcels(count) && count <= Body::most(shape.blocks);
    };
    for (const int ranks : {2, 3, 8})
        for (const int blocks : {1, 7, 32, 500}) {
            const int room = std::min(blocks, ddl::grid_window::inbox_blocks(ranks));
            for (std::size_t count = 1; count <= narrow::most(room); count += 1 + count / 5) {
                BOOST_TEST(holds.template operator()<narrow>(count, ranks, blocks));
                if (count <= wide::most(room))
                    BOOST_TEST(holds.template operator()<wide>(count, ranks, blocks),
                               count << " doubles in " << blocks);
            }
        }
    // what limits call short has room
    for (int ranks = 1; ranks <= ddl::grid_window::most_ranks; ++ranks)
        BOOST_TEST(ddl::grid_limits{}.longest_one_shot(ranks) ==
                   4 * floats::most(ddl::grid_window::inbox_blocks(ranks)));
    BOOST_TEST(ddl::two_shot_shape<float>(1, 4, 100, 512).blocks == 1);
    BOOST_TEST(ddl::two_shot_shape<float>(std::size_t{1} << 30, 4, 100, 512).blocks == 100);
    BOOST_TEST(ddl::two_shot_shape<float>(std::size_t{1} << 30, 4, 10'000, 512).blocks ==
               ddl::grid_window::most_blocks);
}

BOOST_DATA_TEST_CASE(a_table_says_how_many_blocks_a_rank_has, data::make({2, 3, 5}), ranks) {
    grid_of_threads::run(ranks, [](grid_of_threads& team) {
        const auto blocks_for = [&](std::size_t count) {
            std::vector<float> values(count, 1);
            ddl::allreduce(team, values);
            require(values == std::vector<float>(count, static_cast<float>(team.size())), "a sum");
            return team.blocks_of_last();
        };
        const bool two = team.size() == 2;
        const bool many = team.size() > 3;
        require(blocks_for(25'000) == (two ? 2 : many ? 3 : 1), "the first row that fits");
        require(blocks_for(25'001) == (many ? 3 : 1), "a longer vector, of the next row");
        require(blocks_for(50'001) == 3, "beyond the table: as many as run at once");
        require(blocks_for(1536) == 3, "a short vector, whose blocks do not meet");
    });
}

BOOST_AUTO_TEST_CASE(ranks_compare_their_tables) {
    constexpr ddl::grid_limits limits{.grids = {{2, 100'000, 2}}};
    BOOST_TEST(limits.fingerprint() != ddl::grid_limits{}.fingerprint());
    for (const ddl::grid_row other : {ddl::grid_row{3, 100'000, 2}, {2, 100'001, 2}, {2, 100'000, 3}})
        BOOST_TEST(limits.fingerprint() != (ddl::grid_limits{.grids = {other}}).fingerprint());
    BOOST_TEST(limits.blocks(2, 100, 1) == 1, "no more than run at once");
}

BOOST_AUTO_TEST_CASE(a_transport_may_know_how_many_blocks_of_a_body_run) {
    grid_of_threads::run(1, [](grid_of_threads& team) {
        require(ddl::most_blocks<heavy>(team) == 1 && ddl::most_blocks<int>(team) == 3, "its own, or that of all");
    });
}
