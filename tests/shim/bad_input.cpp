// SPDX-License-Identifier: Apache-2.0
// ranks: 1 2 3
// mpi-ranks: 2 3
// two-nodes: 2
#include <climits>
#include <cstdlib>

#include "world.hpp"

namespace {

/// After a mistake the ranks go on as if it had not been made.
struct still_usable {
    ~still_usable() {
        std::int32_t one = 1;
        const ddl_status status = ddl_run_allreduce(world(), &one, &one, 1, DDL_INT32, DDL_SUM);
        BOOST_TEST(status == DDL_OK, "the world is not usable any more: " << ddl_last_error());
        BOOST_TEST(one == size());
    }
};

float values[8] = {1, 2, 3, 4, 5, 6, 7, 8};

}  // namespace

BOOST_FIXTURE_TEST_CASE(elements_and_ops_that_are_none, still_usable) {
    expect_failure(DDL_INVALID_ARGUMENT, "element is 99", ddl_run_allreduce(world(), values, values, 8, 99, DDL_SUM));
    expect_failure(DDL_INVALID_ARGUMENT, "element is -1", ddl_run_allreduce(world(), values, values, 8, -1, DDL_SUM));
    expect_failure(DDL_INVALID_ARGUMENT, "op is 99", ddl_run_allreduce(world(), values, values, 8, DDL_FLOAT, 99));
    for (const int op : {-1, -7, INT_MIN + 1})
        expect_failure(DDL_INVALID_ARGUMENT, ("op is " + std::to_string(op)).c_str(),
                       ddl_run_allreduce(world(), values, values, 8, DDL_FLOAT, op));
    expect_failure(DDL_UNSUPPORTED, "bit_and of float",
                   ddl_run_allreduce(world(), values, values, 8, DDL_FLOAT, DDL_BIT_AND));
}

BOOST_FIXTURE_TEST_CASE(counts_that_are_negative_or_huge, still_usable) {
    const auto minus_one = static_cast<std::size_t>(-1);
    expect_failure(DDL_INVALID_ARGUMENT, "is it negative?",
                   ddl_run_allreduce(world(), values, values, minus_one, DDL_FLOAT, DDL_SUM));
    expect_failure(DDL_INVALID_ARGUMENT, "is it negative?",
                   ddl_run_broadcast(world(), values, SIZE_MAX / sizeof(float), DDL_FLOAT, 0));
    void* tensors[] = {values, values};
    const std::size_t counts[] = {SIZE_MAX / 16, SIZE_MAX / 16};
    expect_failure(DDL_INVALID_ARGUMENT, "is it negative?",
                   ddl_run_allreduce_n(world(), tensors, counts, 2, DDL_DOUBLE, DDL_SUM));
    expect_failure(DDL_INVALID_ARGUMENT, "tensors is 18446744073709551615, more than any memory holds",
                   ddl_run_allreduce_n(world(), tensors, counts, minus_one, DDL_FLOAT, DDL_SUM));
}

BOOST_FIXTURE_TEST_CASE(buffers_that_are_null_or_given_back, still_usable) {
    expect_failure(DDL_INVALID_ARGUMENT, "in is NULL",
                   ddl_run_allreduce(world(), nullptr, values, 8, DDL_FLOAT, DDL_SUM));
    expect_failure(DDL_INVALID_ARGUMENT, "out is NULL",
                   ddl_run_allreduce(world(), values, nullptr, 8, DDL_FLOAT, DDL_SUM));
    BOOST_TEST(ddl_run_allreduce(world(), nullptr, nullptr, 0, DDL_FLOAT, DDL_SUM) == DDL_OK);

    void* memory = nullptr;
    REQUIRE_OK(ddl_allocate(world(), 4096, &memory));
    REQUIRE_OK(ddl_deallocate(memory));
    expect_failure(DDL_INVALID_ARGUMENT, "give back each pointer once", ddl_deallocate(memory));
    expect_failure(DDL_INVALID_ARGUMENT, "is not from ddl_allocate", ddl_deallocate(values));
    expect_failure(DDL_INVALID_ARGUMENT, "was given back",
                   ddl_run_allreduce(world(), memory, memory, 8, DDL_FLOAT, DDL_SUM));

    ddl_plan* plan = nullptr;
    REQUIRE_OK(ddl_allocate(world(), 4096, &memory));
    REQUIRE_OK(ddl_plan_allreduce(world(), memory, memory, 8, DDL_FLOAT, DDL_SUM, &plan));
    REQUIRE_OK(ddl_run_plan(plan));
    REQUIRE_OK(ddl_deallocate(memory));
    expect_failure(DDL_INVALID_ARGUMENT, "was given back", ddl_run_plan(plan));
    REQUIRE_OK(ddl_free_plan(plan));
    expect_failure(DDL_INVALID_ARGUMENT, "is it negative?",
                   ddl_allocate(world(), static_cast<std::size_t>(-1), &memory));
    expect_failure(DDL_OUT_OF_MEMORY, "allocate", ddl_allocate(world(), std::size_t{1} << 50, &memory));
}

BOOST_FIXTURE_TEST_CASE(roots_and_counts_that_do_not_fit_the_ranks, still_usable) {
    expect_failure(DDL_INVALID_ARGUMENT, "name a rank from 0",
                   ddl_run_broadcast(world(), values, 8, DDL_FLOAT, size()));
    expect_failure(DDL_INVALID_ARGUMENT, "name a rank from 0",
                   ddl_run_gather(world(), values, values, 8, DDL_FLOAT, -1));
    if (size() > 1)
        expect_failure(DDL_INVALID_ARGUMENT, "pass a multiple",
                       ddl_run_all_to_all(world(), values, values, static_cast<std::size_t>(size()) + 1, DDL_FLOAT));
}

BOOST_FIXTURE_TEST_CASE(buffers_that_overlap_otherwise_than_in_place, still_usable) {
    const auto whole = static_cast<std::size_t>(size()) * 2;  // two elements a rank
    std::vector<std::int32_t> data(whole + 1, 1);
    std::int32_t* const one = data.data();
    std::int32_t* const other = one + (rank() == 0 ? 1 : 0);  // no rank's block
    const auto expect = [](const char* what, ddl_status status) {
        expect_failure(DDL_INVALID_ARGUMENT, (std::string{"in and out overlap; pass "} + what).c_str(), status);
    };
    expect("one pointer", ddl_run_allreduce(world(), one, one + 1, whole, DDL_INT32, DDL_SUM));
    expect("one pointer", ddl_run_all_to_all(world(), one + 1, one, whole, DDL_INT32));
    if (size() == 1) return;
    expect("this rank's block of in", ddl_run_reduce_scatter(world(), one, other, whole, DDL_INT32, DDL_SUM));
    expect("this rank's block of out", ddl_run_all_gather(world(), other, one, whole, DDL_INT32));
    for (const int root : {0, 1}) {
        const bool is_root = rank() == root;
        const auto expect_on_root = [&](const char* what, ddl_status status) {
            if (is_root) expect(what, status);
            else expect_failure(DDL_MISMATCH, "see its own error", status);
        };
        expect_on_root("this rank's block of in", ddl_run_scatter(world(), one, other, whole, DDL_INT32, root));
        expect_on_root("this rank's block of out", ddl_run_gather(world(), other, one, whole, DDL_INT32, root));
        expect_on_root("one pointer", ddl_run_reduce(world(), one, one + 1, whole, DDL_INT32, DDL_SUM, root));
    }
    BOOST_TEST(data == std::vector<std::int32_t>(whole + 1, 1), boost::test_tools::per_element());
}

BOOST_FIXTURE_TEST_CASE(one_rank_alone_makes_a_mistake_and_all_hear_of_it, still_usable) {
    if (size() == 1) return;
    const bool mistaken = rank() == 0;
    const ddl_status status = ddl_run_allreduce(world(), mistaken ? nullptr : values, values, 8, DDL_FLOAT, DDL_SUM);
    if (mistaken) expect_failure(DDL_INVALID_ARGUMENT, "in is NULL", status);
    else expect_failure(DDL_MISMATCH, "see its own error", status);

    ddl_request* request = nullptr;
    const ddl_status started =
        ddl_start_allreduce(world(), values, values, 8, mistaken ? 99 : DDL_FLOAT, DDL_SUM, &request);
    if (mistaken) {
        expect_failure(DDL_INVALID_ARGUMENT, "element is 99", started);
        BOOST_TEST(request == nullptr);
    } else {
        BOOST_TEST(started == DDL_OK);
        expect_failure(DDL_MISMATCH, "see its own error", ddl_wait_request(request));
        REQUIRE_OK(ddl_free_request(request));
    }
}

BOOST_FIXTURE_TEST_CASE(one_rank_alone_has_no_place_for_a_result_and_all_hear_of_it, still_usable) {
    if (size() == 1) return;
    const bool mistaken = rank() == 0;
    ddl_request* request = nullptr;
    ddl_request** const place = mistaken ? nullptr : &request;
    const auto expect = [&](ddl_status status) {
        if (mistaken) return expect_failure(DDL_INVALID_ARGUMENT, "is NULL", status);
        BOOST_TEST_REQUIRE(status == DDL_OK, ddl_last_error());
        expect_failure(DDL_MISMATCH, "see its own error", ddl_wait_request(request));
        REQUIRE_OK(ddl_free_request(request));
    };
    expect(ddl_start_allreduce(world(), values, values, 8, DDL_FLOAT, DDL_SUM, place));
    expect(ddl_start_barrier(world(), place));
    ddl_plan* plan = nullptr;
    REQUIRE_OK(ddl_plan_allreduce(world(), values, values, 8, DDL_FLOAT, DDL_SUM, &plan));
    expect(ddl_start_plan(plan, place));
    REQUIRE_OK(ddl_free_plan(plan));
    ddl_communicator* part = nullptr;
    const ddl_status split = ddl_split(world(), 0, 0, mistaken ? nullptr : &part);
    if (mistaken) expect_failure(DDL_INVALID_ARGUMENT, "is NULL", split);
    else expect_failure(DDL_MISMATCH, "see its own error", split);
}

BOOST_FIXTURE_TEST_CASE(ranks_that_call_different_things, still_usable) {
    if (size() == 1) return;
    const std::size_t count = rank() == 0 ? 7 : 8;
    expect_failure(DDL_MISMATCH, "pass equal counts",
                   ddl_run_allreduce(world(), values, values, count, DDL_FLOAT, DDL_SUM));
    expect_failure(DDL_MISMATCH, "pass equal types",
                   ddl_run_allreduce(world(), values, values, 8, rank() == 0 ? DDL_INT32 : DDL_FLOAT, DDL_SUM));
    expect_failure(DDL_MISMATCH, "pass equal ops",
                   ddl_run_allreduce(world(), values, values, 8, DDL_FLOAT, rank() == 0 ? DDL_SUM : DDL_MAXIMUM));
    expect_failure(DDL_MISMATCH, "pass equal roots",
                   ddl_run_broadcast(world(), values, 8, DDL_FLOAT, rank() == 0 ? 0 : 1));
    expect_failure(DDL_MISMATCH, "call the same",
                   rank() == 0 ? ddl_run_barrier(world()) : ddl_run_broadcast(world(), values, 8, DDL_FLOAT, 0));
}

BOOST_FIXTURE_TEST_CASE(ranks_that_time_their_calls_by_other_options, still_usable) {
    if (size() == 1) return;
    ddl_communicator* part = nullptr;
    REQUIRE_OK(ddl_split(world(), 0, rank(), &part));
    for (const char* const others : {"", "-dump_iter 1000", "-rebind_iter 2000"}) {
        REQUIRE_OK(ddl_set_options(part, rank() == 0 ? "-dump_iter 2000" : others));
        for (int time = 0; time < 3; ++time)  // no call is taken for another
            expect_failure(DDL_MISMATCH, *others == '\0' ? "timed allreduce" : "pass the same in the options",
                           ddl_run_allreduce(part, values, values, 8, DDL_FLOAT, DDL_SUM));
        REQUIRE_OK(ddl_run_barrier(part));
    }
    REQUIRE_OK(ddl_set_options(part, "-dump_iter 2000 -rebind_iter 3"));
    for (int time = 0; time < 3; ++time) {
        float one = 1;
        REQUIRE_OK(ddl_run_allreduce(part, &one, &one, 1, DDL_FLOAT, DDL_SUM));
        BOOST_TEST(one == static_cast<float>(size()));
    }
    REQUIRE_OK(ddl_close(part));
}

BOOST_FIXTURE_TEST_CASE(handles_that_are_null_closed_or_freed, still_usable) {
    expect_failure(DDL_INVALID_ARGUMENT, "no open communicator", ddl_run_barrier(nullptr));
    BOOST_TEST(ddl_get_rank(nullptr) == -1);
    BOOST_TEST(ddl_get_transport(nullptr) == nullptr);
    ddl_communicator* part = nullptr;
    REQUIRE_OK(ddl_split(world(), 0, rank(), &part));
    ddl_plan* plan = nullptr;
    REQUIRE_OK(ddl_plan_allreduce(part, values, values, 8, DDL_FLOAT, DDL_SUM, &plan));
    REQUIRE_OK(ddl_close(part));
    expect_failure(DDL_INVALID_ARGUMENT, "no open communicator", ddl_close(part));
    expect_failure(DDL_INVALID_ARGUMENT, "no open communicator",
                   ddl_run_allreduce(part, values, values, 8, DDL_FLOAT, DDL_SUM));
    BOOST_TEST(ddl_get_size(part) == -1);
    expect_failure(DDL_INVALID_ARGUMENT, "was closed", ddl_run_plan(plan));
    REQUIRE_OK(ddl_split(world(), 0, rank(), &part));  // in the same place; the plan is still the old one's
    expect_failure(DDL_INVALID_ARGUMENT, "was closed", ddl_run_plan(plan));
    REQUIRE_OK(ddl_close(part));
    REQUIRE_OK(ddl_free_plan(plan));
    expect_failure(DDL_INVALID_ARGUMENT, "no plan", ddl_free_plan(plan));
    expect_failure(DDL_INVALID_ARGUMENT, "no request", ddl_wait_request(nullptr));
    BOOST_TEST(ddl_close(nullptr) == DDL_OK);
    BOOST_TEST(ddl_free_plan(nullptr) == DDL_OK);
    BOOST_TEST(ddl_free_request(nullptr) == DDL_OK);
}

BOOST_FIXTURE_TEST_CASE(handles_of_another_kind, still_usable) {
    ddl_plan* plan = nullptr;
    ddl_request* request = nullptr;
    REQUIRE_OK(ddl_plan_allreduce(world(), values, values, 8, DDL_FLOAT, DDL_MAXIMUM, &plan));
    REQUIRE_OK(ddl_start_barrier(world(), &request));
    REQUIRE_OK(ddl_wait_request(request));
    const auto expect = [](const char* words, ddl_status status) {
        expect_failure(DDL_INVALID_ARGUMENT, words, status);
    };
    for (void* const each : {static_cast<void*>(plan), static_cast<void*>(request)}) {
        auto* const ranks = static_cast<ddl_communicator*>(each);
        const char* const words =
            each == plan ? "this is a plan, and no open comm" : "this is a request, and no open comm";
        void* memory = nullptr;
        expect(words, ddl_run_barrier(ranks));
        expect(words, ddl_interrupt(ranks));
        expect(words, ddl_allocate(ranks, 8, &memory));
        expect(words, ddl_close(ranks));
        BOOST_TEST(ddl_get_rank(ranks) == -1);
    }
    for (void* const each : {static_cast<void*>(world()), static_cast<void*>(request)}) {
        const char* const words = each == request ? "this is a request, and no plan" : "a communicator, and no plan";
        expect(words, ddl_run_plan(static_cast<ddl_plan*>(each)));
        expect(words, ddl_free_plan(static_cast<ddl_plan*>(each)));
    }
    for (void* const each : {static_cast<void*>(world()), static_cast<void*>(plan)}) {
        const char* const words = each == plan ? "this is a plan, and no request" : "a communicator, and no request";
        expect(words, ddl_wait_request(static_cast<ddl_request*>(each)));
        expect(words, ddl_free_request(static_cast<ddl_request*>(each)));
    }
    REQUIRE_OK(ddl_run_plan(plan));
    REQUIRE_OK(ddl_free_plan(plan));
    REQUIRE_OK(ddl_free_request(request));
}

BOOST_FIXTURE_TEST_CASE(results_that_have_no_place_to_go, still_usable) {
    expect_failure(DDL_INVALID_ARGUMENT, "is NULL", ddl_open_environment(nullptr));
    expect_failure(DDL_INVALID_ARGUMENT, "is NULL", ddl_start_barrier(world(), nullptr));
    expect_failure(DDL_INVALID_ARGUMENT, "is NULL",
                   ddl_plan_allreduce(world(), values, values, 8, DDL_FLOAT, DDL_SUM, nullptr));
    expect_failure(DDL_INVALID_ARGUMENT, "is NULL", ddl_allocate(world(), 8, nullptr));
}

BOOST_FIXTURE_TEST_CASE(a_result_that_there_is_none_of_is_null, still_usable) {
    const char* const before = std::getenv("DDL_TRANSPORT");
    const std::string kept = before == nullptr ? "" : before;
    ::setenv("DDL_TRANSPORT", "pigeons", 1);
    ddl_communicator* other = world();
    expect_failure(DDL_INVALID_ARGUMENT, "it takes mpi or shared_memory", ddl_open_environment(&other));
    BOOST_TEST(other == nullptr);
    if (before == nullptr) ::unsetenv("DDL_TRANSPORT");
    else ::setenv("DDL_TRANSPORT", kept.c_str(), 1);
}

BOOST_FIXTURE_TEST_CASE(jobs_timeouts_schedules_and_modes_that_make_no_sense, still_usable) {
    ddl_communicator* other = nullptr;
    expect_failure(DDL_INVALID_ARGUMENT, "pass 0 <= rank < size", ddl_open_job("job", 3, 2, 0, &other));
    expect_failure(DDL_INVALID_ARGUMENT, "NULL", ddl_open_job(nullptr, 0, 1, 0, &other));
    expect_failure(DDL_INVALID_ARGUMENT, "timeout", ddl_open_job("job", 0, 1, -1, &other));
    BOOST_TEST(other == nullptr);
    expect_failure(DDL_INVALID_ARGUMENT, "pass more than 0", ddl_set_timeout(world(), 0));
    expect_failure(DDL_UNSUPPORTED, "without the schedule zigzag; pass one of tuned, ",
                   ddl_set_schedule(world(), "zigzag"));
    expect_failure(DDL_INVALID_ARGUMENT, "letter", ddl_set_options(world(), "-mode z:1"));
    expect_failure(DDL_INVALID_ARGUMENT, "invalid dim size=1000", ddl_set_options(world(), "-mode b:10x100"));
    const ddl_status split = ddl_split(world(), -1, 0, &other);
    expect_failure(DDL_INVALID_ARGUMENT, "pass 0 or more", split);
}
