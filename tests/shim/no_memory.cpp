// SPDX-License-Identifier: Apache-2.0
// rows: few
// ranks: 1 2 3
// What C gets to hear where the process has no memory left.
#include <cstdlib>
#include <new>
#include <unistd.h>

#include "world.hpp"

namespace {

thread_local int granted = -1;  // before one is refused to this thread; below 0 nothing is

/// What `call()` returns if this thread is refused memory after `allocations`.
template <class Call>
ddl_status with_memory_for(int allocations, const Call& call) {
    granted = allocations;
    const ddl_status status = call();
    granted = -1;
    return status;
}

/// Whether any rank says so.
bool anywhere(bool here) {
    std::uint8_t said = here;
    REQUIRE_OK(ddl_run_allreduce(world(), &said, &said, 1, DDL_UINT8, DDL_SUM));
    return said != 0;
}

}  // namespace

// not inline: g++ would take what it sees for a mismatch
[[gnu::noinline]] void* operator new(std::size_t bytes) {
    if (granted < 0 || granted-- != 0)
        if (void* const memory = std::malloc(bytes)) return memory;
    throw std::bad_alloc{};
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

BOOST_AUTO_TEST_CASE(a_call_that_finds_no_memory_is_not_begun_and_the_others_hear_of_it) {
    bool lacks = true;
    for (int allocations = 0; lacks; ++allocations) {
        ddl_communicator* ranks = nullptr;
        REQUIRE_OK(ddl_split(world(), 0, rank(), &ranks));
        float value = 1;
        ddl_request* request = nullptr;
        const auto start = [&] { return ddl_start_allreduce(ranks, &value, &value, 1, DDL_FLOAT, DDL_SUM, &request); };
        const bool last = rank() == size() - 1;
        const ddl_status status = last ? with_memory_for(allocations, start) : start();
        lacks = anywhere(status != DDL_OK);
        if (status != DDL_OK) {
            expect_failure(DDL_OUT_OF_MEMORY, "no memory is left", status);
            BOOST_TEST(last);
            BOOST_TEST(request == nullptr);
            BOOST_TEST(ddl_interrupt(ranks) == DDL_OK);  // nothing is under way: it is not what breaks the next call
            expect_failure(DDL_BROKEN, "no memory is left", ddl_run_barrier(ranks));
            BOOST_TEST(value == 1);
        } else if (lacks) {
            expect_failure(DDL_BROKEN, "gave up", ddl_wait_request(request));
        } else {
            REQUIRE_OK(ddl_wait_request(request));
            BOOST_TEST(value == static_cast<float>(size()));
        }
        if (request != nullptr) REQUIRE_OK(ddl_free_request(request));
        REQUIRE_OK(ddl_close(ranks));
        BOOST_TEST_REQUIRE(allocations < 1000);
    }
}

BOOST_AUTO_TEST_CASE(the_others_hear_of_tensors_for_which_there_is_no_list) {
    bool lacks = true;
    int times = 0;
    for (int allocations = 0; lacks; ++allocations) {
        ddl_communicator* ranks = nullptr;
        REQUIRE_OK(ddl_split(world(), 0, rank(), &ranks));
        REQUIRE_OK(ddl_set_timeout(ranks, 20));
        float values[] = {1, 2, 3};
        void* const data[] = {&values[0], &values[1]};
        const std::size_t counts[] = {1, 2};
        const auto run = [&] { return ddl_run_allreduce_n(ranks, data, counts, 2, DDL_FLOAT, DDL_SUM); };
        const bool last = rank() == size() - 1;
        const ddl_status status = last ? with_memory_for(allocations, run) : run();
        lacks = anywhere(status != DDL_OK);
        times += lacks;
        if (lacks) {
            if (last) expect_failure(DDL_OUT_OF_MEMORY, "no", status);
            else expect_failure(DDL_MISMATCH, "see its own error", status);
            REQUIRE_OK(ddl_run_barrier(ranks));  // as good as before
        } else {
            BOOST_TEST(values[2] == static_cast<float>(3 * size()));
        }
        REQUIRE_OK(ddl_close(ranks));
        BOOST_TEST_REQUIRE(allocations < 1000);
    }
    BOOST_TEST(times > 0);
}

BOOST_AUTO_TEST_CASE(the_others_hear_of_a_split_that_finds_no_memory) {
    bool lacks = true;
    for (int allocations = 0; lacks; ++allocations) {
        ddl_communicator* ranks = nullptr;
        REQUIRE_OK(ddl_split(world(), 0, rank(), &ranks));
        REQUIRE_OK(ddl_set_timeout(ranks, 20));
        ddl_communicator* part = nullptr;
        const auto split = [&] { return ddl_split(ranks, 0, rank(), &part); };
        const bool last = rank() == size() - 1;
        ddl_status status = last ? with_memory_for(allocations, split) : split();
        if (last && status != DDL_OK) expect_failure(DDL_OUT_OF_MEMORY, "no memory is left", status);
        if (status == DDL_OK) status = ddl_run_barrier(part);  // where those hear of it who were done
        BOOST_TEST(status != DDL_TIMEOUT);
        lacks = anywhere(status != DDL_OK);
        BOOST_TEST((status != DDL_OK) == lacks);
        REQUIRE_OK(ddl_close(part));
        REQUIRE_OK(ddl_close(ranks));
        BOOST_TEST_REQUIRE(allocations < 1000);
    }
}

BOOST_AUTO_TEST_CASE(a_refusal_that_finds_no_memory_is_one) {
    ddl_communicator* alone = nullptr;
    REQUIRE_OK(ddl_split(world(), rank(), 0, &alone));
    for (int allocations = 0; allocations < 5; ++allocations) {
        ddl_request* none = nullptr;
        expect_failure(DDL_INVALID_ARGUMENT, "in is NULL", with_memory_for(allocations, [&] {
                           return ddl_start_allreduce(alone, nullptr, nullptr, 1, DDL_FLOAT, DDL_SUM, &none);
                       }));
    }
    REQUIRE_OK(ddl_close(alone));
}

BOOST_AUTO_TEST_CASE(so_is_a_communicator_that_cannot_be_opened) {
    bool lacks = true;
    for (int allocations = 0; lacks; ++allocations) {
        ddl_communicator* alone = nullptr;
        const std::string job = "no-memory-" + std::to_string(::getpid());
        const ddl_status status =
            with_memory_for(allocations, [&] { return ddl_open_job(job.c_str(), 0, 1, 20, &alone); });
        lacks = status != DDL_OK;
        if (lacks) expect_failure(DDL_OUT_OF_MEMORY, "no memory is left", status);
        BOOST_TEST((alone == nullptr) == lacks);
        REQUIRE_OK(ddl_close(alone));
        BOOST_TEST_REQUIRE(allocations < 1000);
    }
}
