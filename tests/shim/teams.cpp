// SPDX-License-Identifier: Apache-2.0
// ranks: 1 2 3 4 5 6 7 8 9
// mpi-ranks: 2 3
// two-nodes: 2
// mpich-two-nodes: none; where several threads call MPI at once, MPICH 4.0.2 over UCX left messages unmatched
#include <ddl/element/bfloat16.hpp>
#include <ddl/element/half.hpp>
#include <ddl/shim/dl_comm.h>
#include <ddl/shim/numbers.hpp>

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "heard.hpp"

namespace {

/// The lists of a call, from vectors.
template <class Element>
struct lists {
    explicit lists(std::vector<std::vector<std::vector<Element>>>& towers, dlDataType_t type) {
        for (auto& tower : towers) {
            auto& own = data.emplace_back();
            auto& own_lengths = lengths.emplace_back();
            for (auto& tensor : tower) {
                own.push_back(tensor.data());
                own_lengths.push_back(static_cast<int>(tensor.size()));
            }
            types.emplace_back(tower.size(), type);
            counts.push_back(static_cast<int>(tower.size()));
        }
        for (std::size_t i = 0; i < towers.size(); ++i) {
            data_of.push_back(data[i].data());
            lengths_of.push_back(lengths[i].data());
            types_of.push_back(types[i].data());
        }
    }
    int gradients(int team) {
        return dl_comm_gradients(data_of.data(), lengths_of.data(), types_of.data(), counts.data(),
                                 static_cast<int>(counts.size()), team);
    }
    int broadcast(int root) {
        return dl_comm_broadcast(data_of.data(), lengths_of.data(), types_of.data(), counts.data(),
                                 static_cast<int>(counts.size()), root);
    }
    std::vector<std::vector<void*>> data;
    std::vector<std::vector<int>> lengths;
    std::vector<std::vector<dlDataType_t>> types;
    std::vector<int> counts;
    std::vector<void**> data_of;
    std::vector<int*> lengths_of;
    std::vector<dlDataType_t*> types_of;
};

int rank() { return dl_comm_get_rank(); }
int size() { return dl_comm_get_nranks(); }

/// One tower of one tensor.
template <class Element>
int average(std::vector<Element>& tensor, dlDataType_t type, int team) {
    std::vector<std::vector<std::vector<Element>>> towers{{std::move(tensor)}};
    const int status = lists<Element>{towers, type}.gradients(team);
    tensor = std::move(towers[0][0]);
    return status;
}

/// `status` is a failure, and its words name rank `other`.
void expect_told(int status, int other, const char* words) {
    BOOST_TEST(status < 0);
    const std::string heard = dl_comm_last_error();
    BOOST_TEST(heard.find("rank " + std::to_string(other) + " " + words) != std::string::npos, heard);
}
constexpr const char* bad_arguments = "has called with invalid arguments";

}  // namespace

BOOST_AUTO_TEST_CASE(before_the_plugin_is_started_nothing_works_and_nothing_breaks) {
    BOOST_TEST(dl_comm_get_rank() < 0);
    BOOST_TEST(dl_comm_get_nranks() < 0);
    BOOST_TEST(dl_comm_localrank() < 0);
    const auto expect_line = [](const std::string& function, auto call) {
        heard lines;
        const int status = call();
        BOOST_TEST(lines.words() == "dl_comm: " + function + ": the plugin is not started; call dl_comm_init first\n");
        BOOST_TEST(status < 0);
    };
    expect_line("dl_create_team", [] { return dl_create_team(0, 1, 0); });
    expect_line("dl_comm_create_team", [] { return dl_comm_create_team(0, 1, 0); });
    std::vector<float> tensor(4);
    for (const int team : {0, -1})
        expect_line("dl_comm_gradients", [&] { return average(tensor, DL_COMM_FLOAT, team); });
    std::vector<std::vector<std::vector<float>>> towers{{tensor}};
    BOOST_TEST(lists<float>(towers, DL_COMM_FLOAT).broadcast(0) < 0);
    for (const int team : {0, -1}) BOOST_TEST(dl_comm_refuse_gradients(team) < 0);
    BOOST_TEST(dl_comm_refuse_broadcast() < 0);
    BOOST_TEST(std::string{dl_comm_last_error()} == "the plugin is not started; call dl_comm_init first");
}

BOOST_AUTO_TEST_CASE(a_variable_that_one_rank_cannot_read_is_told_on_all) {
    BOOST_TEST_REQUIRE(dl_comm_init_mpi() == 0);
    for (const char* const variable : {"DL_COMM_PIPELINE_CHUNK_KB", "DL_COMM_NUM_CUDA_STREAMS"}) {
        if (rank() == size() - 1) ::setenv(variable, "many", 1);
        BOOST_TEST(dl_comm_init() < 0);
        const std::string heard = dl_comm_last_error();
        BOOST_TEST(heard == "rank " + std::to_string(size() - 1) + ": " + variable +
                                " is \"many\"; it takes a number from 1 to " +
                                (std::string{variable}.ends_with("KB") ? "1000000" : "1024"));
        ::unsetenv(variable);
    }
}

BOOST_AUTO_TEST_CASE(init_meets_the_others_if_nobody_did) {
    BOOST_TEST_REQUIRE(dl_comm_init() == 0);
    BOOST_TEST(dl_comm_init_mpi() == 0);
    BOOST_TEST(dl_comm_init() < 0);  // once
    BOOST_TEST(rank() < size());
}

BOOST_AUTO_TEST_CASE(a_team_that_nobody_made_is_made_as_the_environment_says) {
    std::vector<float> tensor(10, static_cast<float>(rank()));
    BOOST_TEST(average(tensor, DL_COMM_FLOAT, 9) == 0);
    BOOST_TEST(tensor[9] == static_cast<float>(size() - 1) / 2);
    BOOST_TEST(dl_create_team(9, 1, 0) < 0);  // it is there now
}

BOOST_AUTO_TEST_CASE(a_program_that_makes_no_team_has_one_for_all_numbers_in_which_ranks_name_the_same) {
    std::vector<float> tensor(10, static_cast<float>(rank()));
    if (size() > 1)
        expect_told(average(tensor, DL_COMM_FLOAT, rank() == size() - 1 ? 4 : 9), rank() == size() - 1 ? 0 : size() - 1,
                    "names another team or brings other lists");
    BOOST_TEST(tensor[0] == static_cast<float>(rank()));
    BOOST_TEST(average(tensor, DL_COMM_FLOAT, 4) == 0);
    BOOST_TEST(tensor[9] == static_cast<float>(size() - 1) / 2);
}

BOOST_AUTO_TEST_CASE(a_rank_that_names_no_team_is_named_to_those_who_wait_in_the_only_one) {
    std::vector<float> tensor(10, static_cast<float>(rank()));
    if (rank() == size() - 1) BOOST_TEST(average(tensor, DL_COMM_FLOAT, -1) < 0);
    else expect_told(average(tensor, DL_COMM_FLOAT, 9), size() - 1, bad_arguments);
    BOOST_TEST(tensor[0] == static_cast<float>(rank()));
    BOOST_TEST(average(tensor, DL_COMM_FLOAT, 9) == 0);
    BOOST_TEST(tensor[9] == static_cast<float>(size() - 1) / 2);
}

BOOST_AUTO_TEST_CASE(ranks_make_one_team_at_a_time) {
    if (size() < 2) return;
    expect_told(dl_create_team(5, rank() == 0 ? 1 : 2, 0), rank() == 0 ? 1 : 0,
                "makes another team; pass equal numbers");
    const int status = dl_create_team(5, rank() == 0 ? 0 : 1, 0);
    if (rank() == 0) BOOST_TEST(status < 0);
    else expect_told(status, 0, bad_arguments);
}

BOOST_AUTO_TEST_CASE(a_wide_value_below_all_narrow_ones_is_zero) {
    volatile double tiny = -1e-50;  // which not every compiler evaluates
    BOOST_TEST(static_cast<float>(static_cast<ddl::bfloat16>(ddl::shim::wide_value{tiny})) == 0.0F);
}

BOOST_AUTO_TEST_CASE(precision_is_honoured) {
    BOOST_TEST_REQUIRE(dl_create_team(0, 1, 0) == 0);
    BOOST_TEST_REQUIRE(dl_comm_create_team(1, 1, 1) == 0);
    const auto mean = [](int team) {
        std::vector<float> tensor(1, rank() == 0 ? 16'777'216.0F : 1.0F);
        BOOST_TEST(average(tensor, DL_COMM_FLOAT, team) == 0);
        return tensor[0];
    };
    float lost = 16'777'216.0F;
    for (int other = 1; other < size(); ++other) lost += 1;  // float has no odd numbers here
    BOOST_TEST(mean(0) == lost / static_cast<float>(size()));
    BOOST_TEST(mean(1) == static_cast<float>((16'777'216.0 + size() - 1) / size()));
    std::vector<double> wide(1, 1e300);
    BOOST_TEST(average(wide, DL_COMM_DOUBLE, 0) == 0);  // a double stays one
    BOOST_TEST(wide[0] == 1e300, boost::test_tools::tolerance(1e-12));
    // what is lost in float beside a great number comes back when that goes
    const auto left_of = [](auto one, dlDataType_t type, float great, int team) {
        using element = decltype(one);
        const float brought[] = {great, 3 * static_cast<float>(one), -great};
        std::vector<element> tensor(40, element{rank() < 3 ? brought[rank()] : 0.0F});
        BOOST_TEST(average(tensor, type, team) == 0);
        return static_cast<float>(tensor[39]);
    };
    if (size() != 3) return;
    const ddl::half small{0.000244140625F};
    BOOST_TEST(left_of(small, DL_COMM_HALF, 65504.0F, 0) == 0);
    BOOST_TEST(left_of(small, DL_COMM_HALF, 65504.0F, 1) == static_cast<float>(small));
    BOOST_TEST(left_of(ddl::bfloat16{1.0F}, DL_COMM_BFLOAT16, 1e9F, 0) == 0);
    BOOST_TEST(left_of(ddl::bfloat16{1.0F}, DL_COMM_BFLOAT16, 1e9F, 1) == 1);
    BOOST_TEST(left_of(1.0F, DL_COMM_FLOAT, 1e9F, 0) == 0);
    BOOST_TEST(left_of(1.0F, DL_COMM_FLOAT, 1e9F, 1) == 1);
}

BOOST_AUTO_TEST_CASE(towers_are_averaged_tensor_by_tensor) {
    BOOST_TEST_REQUIRE(dl_create_team(2, 3, 0) == 0);
    std::vector<std::vector<std::vector<float>>> towers(3);
    for (std::size_t tower = 0; tower < towers.size(); ++tower)
        for (std::size_t tensor = 0; tensor < 5; ++tensor)
            towers[tower].emplace_back(tensor * 12'345,
                                       static_cast<float>(100 * tower + tensor) + static_cast<float>(rank()));
    BOOST_TEST(lists<float>(towers, DL_COMM_FLOAT).gradients(2) == 0);
    const float mean = static_cast<float>(size() - 1) / 2;
    for (std::size_t tower = 0; tower < towers.size(); ++tower)
        for (std::size_t tensor = 0; tensor < 5; ++tensor)
            for (const float each : towers[tower][tensor])
                BOOST_TEST_REQUIRE(each == static_cast<float>(100 * tower + tensor) + mean,
                                   boost::test_tools::tolerance(1e-5F));
}

BOOST_AUTO_TEST_CASE(types_may_be_mixed_in_one_call) {
    std::vector<float> floats(100, static_cast<float>(rank()));
    std::vector<double> doubles(50'000, rank());
    std::vector<std::int32_t> integers(3, 2 * rank());
    void* data[] = {floats.data(), doubles.data(), integers.data()};
    int lengths[] = {100, 50'000, 3};
    dlDataType_t types[] = {DL_COMM_FLOAT, DL_COMM_DOUBLE, DL_COMM_INT32};
    void** data_of[] = {data};
    int* lengths_of[] = {lengths};
    dlDataType_t* types_of[] = {types};
    int counts[] = {3};
    BOOST_TEST(dl_comm_gradients(data_of, lengths_of, types_of, counts, 1, 2) == 0);
    BOOST_TEST(floats[99] == static_cast<float>(size() - 1) / 2);
    BOOST_TEST(doubles[49'999] == (size() - 1) / 2.0);
    BOOST_TEST(integers[2] == size() - 1);
}

BOOST_AUTO_TEST_CASE(teams_run_beside_each_other) {
    BOOST_TEST_REQUIRE(dl_create_team(3, 2, 0) == 0);
    BOOST_TEST_REQUIRE(dl_create_team(4, 2, 0) == 0);
    std::atomic<int> right{0};
    std::vector<std::thread> threads;
    for (const int team : {3, 4})
        threads.emplace_back([&right, team] {
            for (int step = 0; step < 20; ++step) {
                std::vector<float> tensor(40'000, static_cast<float>(team * rank()));
                if (average(tensor, DL_COMM_FLOAT, team) == 0 &&
                    tensor.back() == static_cast<float>(team * (size() - 1)) / 2)
                    ++right;
            }
        });
    for (std::thread& each : threads) each.join();
    BOOST_TEST(right == 40);
}

BOOST_AUTO_TEST_CASE(every_rank_may_be_the_root) {
    for (int root = 0; root < size(); ++root) {
        std::vector<std::vector<std::vector<double>>> towers{
            {std::vector<double>(10, rank()), std::vector<double>(1, rank())}};
        BOOST_TEST(lists<double>(towers, DL_COMM_DOUBLE).broadcast(root) == 0);
        BOOST_TEST(towers[0][0][9] == root);
        BOOST_TEST(towers[0][1][0] == root);
    }
}

BOOST_AUTO_TEST_CASE(a_broadcast_takes_a_list_of_long_and_short_tensors_of_any_type) {
    for (int root = 0; root < size(); ++root) {
        std::vector<std::vector<float>> floats{std::vector<float>(3), std::vector<float>(300'000),
                                               std::vector<float>(0), std::vector<float>(7)};
        for (std::size_t i = 0; i < floats.size(); ++i)
            floats[i].assign(floats[i].size(), static_cast<float>(10 * rank() + static_cast<int>(i)));
        std::vector<std::int64_t> integers(5, rank());
        std::vector<std::uint16_t> halves(3, static_cast<std::uint16_t>(rank() + 1));
        void* data[] = {floats[0].data(), halves.data(),   floats[1].data(),
                        floats[2].data(), integers.data(), floats[3].data()};
        int lengths[] = {3, 3, 300'000, 0, 5, 7};
        dlDataType_t types[] = {DL_COMM_FLOAT, DL_COMM_HALF,  DL_COMM_FLOAT,
                                DL_COMM_FLOAT, DL_COMM_INT64, DL_COMM_FLOAT};
        void** data_of[] = {data};
        int* lengths_of[] = {lengths};
        dlDataType_t* types_of[] = {types};
        int counts[] = {6};
        BOOST_TEST(dl_comm_broadcast(data_of, lengths_of, types_of, counts, 1, root) == 0);
        for (std::size_t i = 0; i < floats.size(); ++i)
            BOOST_TEST((floats[i] ==
                        std::vector<float>(floats[i].size(), static_cast<float>(10 * root + static_cast<int>(i)))));
        BOOST_TEST(integers == std::vector<std::int64_t>(5, root), boost::test_tools::per_element());
        BOOST_TEST(halves == std::vector<std::uint16_t>(3, static_cast<std::uint16_t>(root + 1)),
                   boost::test_tools::per_element());
    }
    BOOST_TEST(dl_comm_broadcast(nullptr, nullptr, nullptr, nullptr, 0, 0) == 0);
}

BOOST_AUTO_TEST_CASE(many_tensors_travel_in_more_than_one_vector) {
    const auto value = [](int of, std::size_t i) { return static_cast<float>(1000 * of + static_cast<int>(i)); };
    std::vector<std::vector<std::vector<float>>> towers(2);
    for (std::size_t i = 0; i < 40; ++i) towers[i / 20].emplace_back(30'000, value(rank(), i));
    BOOST_TEST(lists<float>(towers, DL_COMM_FLOAT).broadcast(size() - 1) == 0);
    for (std::size_t i = 0; i < 40; ++i)
        BOOST_TEST((towers[i / 20][i % 20] == std::vector<float>(30'000, value(size() - 1, i))), "tensor " << i);
}

BOOST_AUTO_TEST_CASE(who_waits_in_a_broadcast_or_for_a_team_keeps_no_other_thread_waiting) {
    const auto train = [] {
        std::vector<float> tensor(4, static_cast<float>(rank()));
        BOOST_TEST(average(tensor, DL_COMM_FLOAT, 0) == 0);
        BOOST_TEST(tensor[0] == static_cast<float>(size() - 1) / 2);
    };
    for (const bool broadcasts : {true, false}) {
        const auto world = [&] {
            std::vector<std::vector<std::vector<double>>> towers{{std::vector<double>(10, rank())}};
            return broadcasts ? lists<double>{towers, DL_COMM_DOUBLE}.broadcast(0) : dl_create_team(6, 1, 0);
        };
        if (rank() == 0) {
            int status = -1;
            std::thread waiting{[&] { status = world(); }};
            std::this_thread::sleep_for(std::chrono::milliseconds{50});  // the others come when they have trained
            train();
            waiting.join();
            BOOST_TEST(status == 0);
        } else {
            train();
            BOOST_TEST(world() == 0);
        }
    }
}

BOOST_AUTO_TEST_CASE(what_makes_no_sense_is_refused_on_all_ranks_and_the_team_goes_on) {
    std::vector<float> tensor(4, 1.0F);
    std::vector<std::vector<std::vector<float>>> towers{{tensor}};
    BOOST_TEST(lists<float>(towers, static_cast<dlDataType_t>(17)).gradients(0) < 0);
    lists<float> negative{towers, DL_COMM_FLOAT};
    negative.lengths[0][0] = rank() == 0 ? -4 : 4;  // one rank's mistake
    for (const bool broadcasts : {false, true}) {
        const int status = broadcasts ? negative.broadcast(0) : negative.gradients(0);
        if (rank() == 0) BOOST_TEST(status < 0);
        else expect_told(status, 0, bad_arguments);
    }
    if (size() > 1) {
        lists<float> shorter{towers, DL_COMM_FLOAT};
        shorter.lengths[0][0] = rank() == size() - 1 ? 3 : 4;
        const int other = rank() == size() - 1 ? 0 : size() - 1;
        expect_told(shorter.gradients(0), other, "names another team or brings other lists; pass equal teams, lengths");
        expect_told(shorter.broadcast(0), other, "brings other lists; pass equal lengths and types");
        expect_told(lists<float>(towers, DL_COMM_FLOAT).broadcast(rank() == 0 ? 1 : 0), rank() == 0 ? 1 : 0,
                    "names root");
    }
    BOOST_TEST(lists<float>(towers, DL_COMM_FLOAT).broadcast(size()) < 0);
    const int status = lists<float>(towers, DL_COMM_FLOAT).broadcast(rank() == 0 ? -1 : 0);
    if (rank() == 0) BOOST_TEST(status < 0);
    else expect_told(status, 0, bad_arguments);
    BOOST_TEST(dl_comm_refuse_gradients(0) == 0);
    BOOST_TEST(dl_comm_refuse_broadcast() == 0);
    BOOST_TEST(dl_comm_gradients(nullptr, nullptr, nullptr, nullptr, 1, 0) < 0);
    BOOST_TEST(dl_comm_gradients(nullptr, nullptr, nullptr, nullptr, -1, 0) < 0);
    BOOST_TEST(dl_comm_gradients(nullptr, nullptr, nullptr, nullptr, 0, 0) == 0);
    BOOST_TEST(dl_create_team(-1, 1, 0) < 0);
    BOOST_TEST(dl_create_team(7, 0, 0) < 0);
    BOOST_TEST(dl_create_team(7, 1, 2) < 0);
    BOOST_TEST(average(tensor, DL_COMM_FLOAT, 0) == 0);
    BOOST_TEST(tensor[3] == 1.0F);
}

BOOST_AUTO_TEST_CASE(of_several_teams_nobody_knows_which_was_meant) {
    if (size() < 2) return;
    std::vector<float> tensor(4, 1.0F);
    if (rank() == 0) {
        BOOST_TEST(average(tensor, DL_COMM_FLOAT, 77) < 0);
        BOOST_TEST(std::string{dl_comm_last_error()}.find("there is no team 77") != std::string::npos);
    }
    for (int step = 0; step < 2; ++step)
        for (const int team : {0, 3}) {
            const int status = average(tensor, DL_COMM_FLOAT, team);
            if (rank() == 0) BOOST_TEST(status < 0);
            else expect_told(status, 0, bad_arguments);
        }
    BOOST_TEST(dl_comm_broadcast(nullptr, nullptr, nullptr, nullptr, 0, 0) == 0);  // all have heard before rank 0 ends
}

BOOST_AUTO_TEST_CASE(after_the_end_it_does_not_start_again) {
    BOOST_TEST(dl_comm_finalize() == 0);
    BOOST_TEST(dl_comm_finalize() == 0);
    BOOST_TEST(dl_comm_init() < 0);
    BOOST_TEST(dl_comm_init_mpi() < 0);
    BOOST_TEST(dl_comm_get_rank() < 0);
}
