// SPDX-License-Identifier: Apache-2.0
// ranks: 1 2 3 4 5 6 7 8 9
// mpi-ranks: 1 2 3 4 5
// two-nodes: 2 4 5
#include <ddl/shim/ddl.h>  // both faces in one program
#include <ddl/shim/ddl.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "heard.hpp"

// In the order of a process's life: before it starts, started, ended.

namespace {

/// The call fails with a line of DDL's that holds these words.
template <class Call>
void expect_line(const char* words, Call call) {
    const std::string why = lacks_line(6, words, call);
    BOOST_TEST(why.empty(), why);
}

int size() {
    int ranks = 0;
    BOOST_TEST(ddl_size(&ranks) == DDL_SUCCESS);
    return ranks;
}

/// Sums of 1, 2, 3 ... on all ranks are right.
void expect_sums(std::size_t count = 1003) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 100);
    BOOST_TEST(ddl_allreduce(values.data(), count) == DDL_SUCCESS);
    const auto ranks = static_cast<float>(size());
    for (std::size_t i = 0; i < count; ++i) BOOST_TEST_REQUIRE(values[i] == static_cast<float>(i % 100) * ranks);
}

}  // namespace

BOOST_AUTO_TEST_CASE(before_the_start_memory_and_the_rank_are_there_already) {
    int rank = -1;
    BOOST_TEST(ddl_rank(&rank) == DDL_SUCCESS);
    BOOST_TEST(rank >= 0);
    void* memory = nullptr;
    BOOST_TEST(ddl_malloc(&memory, 64, 100) == 128U);
    BOOST_TEST(ddl_free(memory) == DDL_SUCCESS);
    expect_line("call ddl_init first", [&] { return ddl_size(&rank); });
}

BOOST_AUTO_TEST_CASE(a_start_with_options_that_make_no_sense_can_be_tried_again) {
    ::setenv("DDL_TRANSPORT", "pigeon", 1);
    float value = 1;
    expect_line("] init: DDL_TRANSPORT is \"pigeon\"", [] { return ddl_init(""); });
    expect_line("] allreduce: DDL_TRANSPORT is \"pigeon\"", [&] { return ddl_allreduce(&value, 1); });
    ::unsetenv("DDL_TRANSPORT");
    int rank = -1;
    BOOST_TEST(ddl_rank(&rank) == DDL_SUCCESS);
    const std::string begin = "[ERROR DDL-1-6] init, rank " + std::to_string(rank) + ": ";
    expect_line((begin + "invalid dim size=77, but there are ").c_str(), [] { return ddl_init("-mode b:7x11"); });
    expect_line((begin + "no option of DDL is called: -turbo").c_str(), [] { return ddl_init("-turbo 1"); });
    expect_line("one letter of bnrmcp", [] { return ddl_init("-mode q"); });
    for (const char* const named : {"-mode CUDA", "-mode MPI"})  // which have not failed
        expect_line(named + 6, [=] { return ddl_init(named); });
    const char* const options = std::getenv("DDL_OPTIONS");
    const std::string kept = options == nullptr ? "" : options;
    ::setenv("DDL_OPTIONS", "-turbo 1", 1);
    expect_line(("] allreduce, rank " + std::to_string(rank) + ": no option").c_str(),
                [&] { return ddl_allreduce(&value, 1); });
    ::setenv("DDL_OPTIONS", kept.c_str(), 1);
}

BOOST_AUTO_TEST_CASE(a_process_starts_once) {
    BOOST_TEST_REQUIRE(ddl_init("-dbg_level 0") == DDL_SUCCESS);
    expect_line("call ddl_init once", [] { return ddl_init(""); });
    expect_sums();
}

BOOST_AUTO_TEST_CASE(memory_comes_in_whole_units_and_is_zero) {
    void* memory = nullptr;
    BOOST_TEST_REQUIRE(ddl_malloc(&memory, 64, 400) == 448U);
    const auto* const values = static_cast<const float*>(memory);
    BOOST_TEST(std::all_of(values, values + 112, [](float each) { return each == 0; }));
    const float one = 1;
    BOOST_TEST(ddl_memcpy_host_to_device(memory, &one, sizeof one) == DDL_SUCCESS);
    BOOST_TEST(ddl_memsync() == DDL_SUCCESS);
    BOOST_TEST(ddl_allreduce(memory, 112) == DDL_SUCCESS);
    float back = 0;
    BOOST_TEST(ddl_memcpy_device_to_host(&back, memory, sizeof back) == DDL_SUCCESS);
    BOOST_TEST(back == static_cast<float>(size()));
    BOOST_TEST(ddl_free(memory) == DDL_SUCCESS);
    for (void* const wrong : {memory, static_cast<void*>(&back)})
        expect_line("is not from ddl_malloc, or was given back before", [&] { return ddl_free(wrong); });
    expect_line("was given back; allocate it anew", [&] { return ddl_allreduce(memory, 112); });
    expect_line("was given back", [&] { return ddl_memcpy_device_to_host(&back, memory, sizeof back); });
    expect_line("make no sense", [&] { return ddl_memcpy_host_to_device(nullptr, &one, sizeof one); });
    expect_line("is one negative?", [&] { return ddl_malloc(&memory, 64, static_cast<std::size_t>(-1)) == 0 ? 1 : 0; });
    expect_line("] malloc", [&] { return ddl_malloc(&memory, 64, std::size_t{1} << 50) == 0 ? 1 : 0; });
    BOOST_TEST(memory == nullptr);
    expect_line("the pointer is NULL; pass where the memory is to go",
                [&] { return ddl_malloc(nullptr, 64, 64) == 0 ? 1 : 0; });
    BOOST_TEST(ddl_malloc(&memory, 64, 0) == 0U);
    BOOST_TEST(ddl_free(memory) == DDL_SUCCESS);
    BOOST_TEST(ddl_free(nullptr) == DDL_SUCCESS);
    expect_sums();
}

BOOST_AUTO_TEST_CASE(types_and_operations_are_those_of_the_header) {
    double wide[2] = {1.5, -2};
    BOOST_TEST(ddl_allreduce(wide, 2, DDL_TYPE_DOUBLE, DDL_OP_SUM) == DDL_SUCCESS);
    BOOST_TEST(wide[0] == 1.5 * size());
    std::int64_t whole[2] = {2, 3};
    BOOST_TEST(ddl_allreduce(whole, 2, DDL_TYPE_INT64, DDL_OP_MIN) == DDL_SUCCESS);
    BOOST_TEST(whole[1] == 3);
    std::uint16_t halves[1] = {0x3c00};  // 1
    BOOST_TEST(ddl_allreduce(halves, 1, DDL_TYPE_HALF, DDL_OP_SUM) == DDL_SUCCESS);
    constexpr std::uint16_t whole_halves[] = {0,      0x3c00, 0x4000, 0x4200, 0x4400,
                                              0x4500, 0x4600, 0x4700, 0x4800, 0x4880};
    BOOST_TEST(halves[0] == whole_halves[size()]);
}

BOOST_AUTO_TEST_CASE(calls_that_make_no_sense_leave_the_rest_in_order) {
    float value[1] = {1};
    expect_line("type is 55; pass a DDL_Type",
                [&] { return ddl_allreduce(value, 1, static_cast<DDL_Type>(55), DDL_OP_SUM); });
    expect_line("op is -3; pass a DDL_Op",
                [&] { return ddl_allreduce(value, 1, DDL_TYPE_FLOAT, static_cast<DDL_Op>(-3)); });
    expect_line("in is NULL", [&] { return ddl_allreduce(nullptr, 1); });
    expect_line("is it negative?", [&] { return ddl_allreduce(value, static_cast<std::size_t>(-1)); });
    expect_line("is NULL", [] { return ddl_rank(nullptr); });
    expect_sums();
    if (size() == 1) return;
    int rank = -1;
    BOOST_TEST(ddl_rank(&rank) == DDL_SUCCESS);
    float more[2] = {1, 2};
    expect_line("pass equal counts", [&] { return ddl_allreduce(more, rank == 0 ? 1 : 2); });
    expect_line(rank == 0 ? "op is" : "see its own error", [&] {
        return ddl_allreduce(more, 2, DDL_TYPE_FLOAT, rank == 0 ? static_cast<DDL_Op>(9) : DDL_OP_SUM);
    });
    expect_sums();
}

BOOST_AUTO_TEST_CASE(with_ddl_debug_a_line_tells_its_place_in_the_source) {
    ::setenv("DDL_DEBUG", "1", 1);
    std::string line;
    {
        heard lines;
        BOOST_TEST(ddl_rank(nullptr) != DDL_SUCCESS);
        line = lines.words();
    }
    ::unsetenv("DDL_DEBUG");
    BOOST_TEST(line.starts_with("[DDL DEBUG] ddl/shim/ibm/ddl.cpp:"), line);
    BOOST_TEST(line.find("ddl.cpp:") < line.find(" [ERROR DDL-1-6] "), line);
}

BOOST_AUTO_TEST_CASE(modes_are_hierarchies_of_their_extents) {
    ddl_communicator* world = nullptr;
    BOOST_TEST_REQUIRE(ddl_open_environment(&world) == DDL_OK);  // another one, of the same ranks
    const int ranks = ddl_get_size(world);
    std::vector<std::string> modes{"r:" + std::to_string(ranks), "c:" + std::to_string(ranks),
                                   "p:" + std::to_string(ranks) + "x1x1x1 "};
    if (ranks == 6) modes.insert(modes.end(), {"b:2x3", "n:3x2", "r:3x1x2", "c:2x3", "m:3x2"});
    if (ranks == 9) modes.insert(modes.end(), {"b:3x3", "r:1x3x3", "c:3x3"});
    if (ranks == 4) modes.insert(modes.end(), {"b:2x2", "n:2x2x1", "r:2x2", "m:2x1x2", "b:1x4", "c:4x1"});
    if (ranks == 8) modes.insert(modes.end(), {"b:2x2x2", "r:2x2x2", "c:2x2x2x1", "n:2x1x4", "m:4x2"});
    for (const std::string& mode : modes) {
        BOOST_TEST_REQUIRE(ddl_set_options(world, ("-mode " + mode).c_str()) == DDL_OK, mode << ddl_last_error());
        for (const std::size_t count : {1U, 17U, 40'000U}) {
            std::vector<float> values(count, 1.0F);
            BOOST_TEST_REQUIRE(ddl_run_allreduce(world, values.data(), values.data(), count, DDL_FLOAT, DDL_SUM) ==
                               DDL_OK);
            BOOST_TEST_REQUIRE(
                std::count(values.begin(), values.end(), static_cast<float>(ranks)) == static_cast<long>(count), mode);
            double greatest = ddl_get_rank(world);  // no ring for this: the best schedule instead
            BOOST_TEST_REQUIRE(ddl_run_allreduce(world, &greatest, &greatest, 1, DDL_DOUBLE, DDL_MAXIMUM) == DDL_OK);
            BOOST_TEST_REQUIRE(greatest == ranks - 1);
        }
    }
    BOOST_TEST(ddl_close(world) == DDL_OK);
}

BOOST_AUTO_TEST_CASE(extents_are_those_of_a_communicator) {
    ddl_communicator* world = nullptr;
    ddl_communicator* alone = nullptr;
    BOOST_TEST_REQUIRE(ddl_open_environment(&world) == DDL_OK);
    const int ranks = ddl_get_size(world);
    const int rank = ddl_get_rank(world);
    BOOST_TEST_REQUIRE(ddl_split(world, rank, 0, &alone) == DDL_OK);
    const std::string mode = ranks == 4 ? "-mode b:2x2" : "-mode r:" + std::to_string(ranks);
    BOOST_TEST_REQUIRE(ddl_set_options(world, mode.c_str()) == DDL_OK);
    if (rank == 0) BOOST_TEST_REQUIRE(ddl_set_options(alone, "") == DDL_OK);
    const auto sums = [&](auto run) {
        std::vector<float> values(1000, 1.0F);
        run(values.data(), values.size());
        BOOST_TEST(std::count(values.begin(), values.end(), static_cast<float>(ranks)) == 1000);
    };
    sums([&](float* data, std::size_t count) {
        BOOST_TEST_REQUIRE(ddl_run_allreduce(world, data, data, count, DDL_FLOAT, DDL_SUM) == DDL_OK);
    });
    sums([&](float* data, std::size_t count) {
        ddl_request* started = nullptr;
        BOOST_TEST_REQUIRE(ddl_start_allreduce(world, data, data, count, DDL_FLOAT, DDL_SUM, &started) == DDL_OK);
        BOOST_TEST_REQUIRE(ddl_wait_request(started) == DDL_OK);
    });
    BOOST_TEST(ddl_close(alone) == DDL_OK);
    BOOST_TEST(ddl_close(world) == DDL_OK);
}

BOOST_AUTO_TEST_CASE(extents_that_differ_between_ranks_are_an_error_on_all) {
    ddl_communicator* world = nullptr;
    BOOST_TEST_REQUIRE(ddl_open_environment(&world) == DDL_OK);
    const std::string ranks = std::to_string(ddl_get_size(world));
    std::vector<float> values(1000, 1.0F);
    const auto run = [&](const std::string& mode) {
        BOOST_TEST_REQUIRE(ddl_set_options(world, ("-mode " + mode).c_str()) == DDL_OK);
        return ddl_run_allreduce(world, values.data(), values.data(), values.size(), DDL_FLOAT, DDL_SUM);
    };
    if (ddl_get_size(world) > 1) {
        BOOST_TEST(run(ddl_get_rank(world) == 0 ? "r:" + ranks : "r:1x" + ranks) == DDL_MISMATCH);
        const std::string heard = ddl_last_error();
        // where the nodes are groups of one, they are another schedule
        BOOST_TEST((heard.find("pass the same -mode in the options") != std::string::npos ||
                    heard.find("name the same schedule") != std::string::npos),
                   heard);
    }
    BOOST_TEST(run("r:" + ranks) == DDL_OK);
    BOOST_TEST(values.front() == static_cast<float>(ddl_get_size(world)));
    BOOST_TEST(ddl_close(world) == DDL_OK);
}

BOOST_AUTO_TEST_CASE(after_the_end_nothing_starts_again) {
    BOOST_TEST(ddl_finalize() == DDL_SUCCESS);
    expect_line("init: DDL was finalized", [] { return ddl_init(""); });
    float value[1] = {1};
    expect_line("allreduce: DDL was finalized", [&] { return ddl_allreduce(value, 1); });
    int size = 0;
    expect_line("size: DDL was finalized", [&] { return ddl_size(&size); });
    BOOST_TEST(ddl_finalize() == DDL_SUCCESS);
}
