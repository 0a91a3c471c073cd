// SPDX-License-Identifier: Apache-2.0
// ranks: 1 2 3
// mpi-ranks: 2 3
// two-nodes: 2
// cuda: a double
// rows: few
#include <ddl/shim/ddl.hpp>
#include <ddl/shim/dl_comm.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <thread>

#include "doubles/device.hpp"
#include "heard.hpp"
#include "world.hpp"

// In the order of a process's life: without a driver, with one, with chunks of 1 KB.

namespace {

constexpr std::size_t counts[] = {0, 1, 7, 256, 257, 3001};  // a chunk has 256 floats

std::vector<float> brings(std::size_t count, int from = rank()) { return values_of<float>(from, count); }

void expect_sums(const std::vector<float>& values, const char* what = "") {
    for (std::size_t i = 0; i < values.size(); ++i)
        BOOST_TEST_REQUIRE(values[i] == static_cast<float>(summed(i)), what << " of " << values.size() << " at " << i);
}

/// All went as if nothing had happened: the ranks can go on.
void expect_usable() {
    const device<float> values{brings(1000)};
    REQUIRE_OK(ddl_run_allreduce(world(), values.data(), values.data(), 1000, DDL_FLOAT, DDL_SUM));
    expect_sums(values.get(), "afterwards");
}

/// Allocated while there is no driver.
void* early = nullptr;

/// A mismatch, behind which the ranks go on.
void expect_mismatch(ddl_status failed) {
    expect_failure(DDL_MISMATCH, "", failed);
    expect_usable();
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_driver_may_come_between_two_calls) {
    ::setenv("DL_COMM_PIPELINE_CHUNK_KB", "1", 1);
    BOOST_TEST_REQUIRE(ddl_malloc(&early, 64, 100) == 128U);
    std::vector<float> host = brings(10);
    REQUIRE_OK(ddl_run_allreduce(world(), host.data(), host.data(), 10, DDL_FLOAT, DDL_SUM));
    expect_sums(host);
    expect_usable();
}

BOOST_AUTO_TEST_CASE(an_allreduce_of_any_length_goes_there_and_back_in_all_three_forms) {
    for (const std::size_t count : counts) {
        const device<float> in{brings(count)};
        const device<float> out{std::vector<float>(count)};
        std::vector<float> host(count);
        REQUIRE_OK(ddl_run_allreduce(world(), in.data(), out.data(), count, DDL_FLOAT, DDL_SUM));
        expect_sums(out.get(), "out of place");
        BOOST_TEST(in.get() == brings(count));
        REQUIRE_OK(ddl_run_allreduce(world(), in.data(), host.data(), count, DDL_FLOAT, DDL_SUM));
        expect_sums(host, "to the host");
        host = brings(count);
        ddl_request* request = nullptr;
        const device<float> again{std::vector<float>(count)};
        REQUIRE_OK(ddl_start_allreduce(world(), host.data(), again.data(), count, DDL_FLOAT, DDL_SUM, &request));
        REQUIRE_OK(ddl_run_barrier(world()));
        REQUIRE_OK(ddl_wait_request(request));
        REQUIRE_OK(ddl_free_request(request));
        expect_sums(again.get(), "from the host");
        ddl_plan* plan = nullptr;
        REQUIRE_OK(ddl_plan_allreduce(world(), in.data(), in.data(), count, DDL_FLOAT, DDL_SUM, &plan));
        REQUIRE_OK(ddl_run_plan(plan));
        REQUIRE_OK(ddl_free_plan(plan));
        expect_sums(in.get(), "in place");
    }
}

BOOST_AUTO_TEST_CASE(long_vectors_pass_in_chunks_and_short_ones_at_once) {
    const device<float> values{brings(3001)};
    const int before = seen().copies;
    REQUIRE_OK(ddl_run_allreduce(world(), values.data(), values.data(), 256, DDL_FLOAT, DDL_SUM));
    BOOST_TEST(seen().copies - before == 2);
    REQUIRE_OK(ddl_run_allreduce(world(), values.data(), values.data(), 3001, DDL_FLOAT, DDL_SUM));
    BOOST_TEST(seen().copies - before == 2 + 2 * 12);
    BOOST_TEST(seen().pinned > 0);
}

BOOST_AUTO_TEST_CASE(managed_memory_is_used_where_it_is) {
    const device<float> values{brings(3001), true};
    const int before = seen().copies;
    REQUIRE_OK(ddl_run_allreduce(world(), values.data(), values.data(), 3001, DDL_FLOAT, DDL_SUM));
    BOOST_TEST(seen().copies == before);
    expect_sums(values.get());
}

BOOST_AUTO_TEST_CASE(many_tensors_here_and_there_are_one_exchange) {
    for (const std::size_t longest : {std::size_t{20}, std::size_t{2000}}) {
        const device<float> first{brings(longest)};
        std::vector<float> second = brings(longest / 3);
        const device<float> third{brings(3)};
        void* data[] = {first.data(), second.data(), third.data()};
        const std::size_t lengths[] = {longest, longest / 3, 3};
        REQUIRE_OK(ddl_run_allreduce_n(world(), data, lengths, 3, DDL_FLOAT, DDL_SUM));
        expect_sums(first.get(), "first");
        expect_sums(second, "second");
        expect_sums(third.get(), "third");
    }
}

BOOST_AUTO_TEST_CASE(what_is_rooted_or_in_blocks_goes_there_and_back) {
    const auto ranks = static_cast<std::size_t>(size());
    const int root = size() - 1;
    for (const std::size_t each : {std::size_t{1}, std::size_t{1003}}) {
        const std::size_t count = each * ranks;
        const device<float> in{brings(count)};
        const device<float> out{std::vector<float>(count, -1)};
        REQUIRE_OK(
            ddl_run_reduce(world(), in.data(), rank() == root ? out.data() : nullptr, count, DDL_FLOAT, DDL_SUM, root));
        if (rank() == root) expect_sums(out.get(), "reduce");
        REQUIRE_OK(ddl_run_broadcast(world(), out.data(), count, DDL_FLOAT, root));
        expect_sums(out.get(), "broadcast");
        const device<float> part{std::vector<float>(each)};
        REQUIRE_OK(ddl_run_reduce_scatter(world(), in.data(), part.data(), count, DDL_FLOAT, DDL_SUM));
        const device<float> parts{std::vector<float>(count)};
        REQUIRE_OK(ddl_run_all_gather(world(), part.data(), parts.data(), count, DDL_FLOAT));
        expect_sums(parts.get(), "reduce_scatter and all_gather");
        const device<float> other{std::vector<float>(each)};
        REQUIRE_OK(
            ddl_run_scatter(world(), rank() == root ? parts.data() : nullptr, other.data(), count, DDL_FLOAT, root));
        BOOST_TEST(other.get() == part.get());
        const device<float> gathered{std::vector<float>(count)};
        REQUIRE_OK(
            ddl_run_gather(world(), other.data(), rank() == root ? gathered.data() : nullptr, count, DDL_FLOAT, root));
        if (rank() == root) expect_sums(gathered.get(), "gather");
        const device<float> turned{std::vector<float>(count)};
        REQUIRE_OK(ddl_run_all_to_all(world(), parts.data(), turned.data(), count, DDL_FLOAT));
        const std::vector<float> own = part.get();
        const std::vector<float> all = turned.get();
        for (std::size_t i = 0; i < count; ++i) BOOST_TEST_REQUIRE(all[i] == own[i % each]);
    }
}

BOOST_AUTO_TEST_CASE(some_ranks_may_bring_memory_of_the_host) {
    for (const std::size_t count : {std::size_t{100}, std::size_t{2001}})
        for (int one = 0; one < size(); ++one) {
            const device<float> there{brings(count)};
            std::vector<float> here = brings(count);
            float* const data = rank() == one ? there.data() : here.data();
            const auto values = [&] { return rank() == one ? there.get() : here; };
            REQUIRE_OK(ddl_run_allreduce(world(), data, data, count, DDL_FLOAT, DDL_SUM));
            expect_sums(values(), "run");
            ddl_request* request = nullptr;
            REQUIRE_OK(ddl_start_broadcast(world(), data, count, DDL_FLOAT, 0, &request));
            REQUIRE_OK(ddl_wait_request(request));
            REQUIRE_OK(ddl_free_request(request));
            expect_sums(values(), "start");
            void* tensors[] = {data, data + count / 2};
            const std::size_t lengths[] = {count / 2, count - count / 2};
            REQUIRE_OK(ddl_run_allreduce_n(world(), tensors, lengths, 2, DDL_FLOAT, DDL_MAXIMUM));
            expect_sums(values(), "many");
            std::vector<float> sum(count);
            REQUIRE_OK(ddl_run_reduce(world(), data, sum.data(), count, DDL_FLOAT, DDL_SUM, one));
            for (std::size_t i = 0; i < count && rank() == one; ++i)
                BOOST_TEST_REQUIRE(sum[i] == static_cast<float>(size() * summed(i)));
        }
}

BOOST_AUTO_TEST_CASE(calls_that_differ_are_told_apart_in_chunks_too) {
    if (size() == 1) return;
    const device<float> there{brings(3000)};
    std::vector<float> here = brings(3000);
    const bool first = rank() == 0;
    float* const data = first ? there.data() : here.data();
    expect_mismatch(ddl_run_allreduce(world(), data, data, first ? 3000 : 2999, DDL_FLOAT, DDL_SUM));
    expect_mismatch(ddl_run_allreduce(world(), there.data(), there.data(), first ? 3000 : 2999, DDL_FLOAT, DDL_SUM));
    expect_mismatch(ddl_run_allreduce(world(), data, data, 3000, DDL_FLOAT, first ? DDL_SUM : DDL_MAXIMUM));
    expect_mismatch(first ? ddl_run_allreduce(world(), data, data, 3000, DDL_FLOAT, DDL_SUM)
                          : ddl_run_barrier(world()));
    ddl_communicator* part = nullptr;
    expect_mismatch(first ? ddl_run_allreduce(world(), data, data, 3000, DDL_FLOAT, DDL_SUM)
                          : ddl_split(world(), 0, 0, &part));
    float* const other = rank() == size() - 1 ? there.data() : here.data();
    expect_mismatch(
        ddl_run_allreduce(world(), other, other, 3000 - static_cast<std::size_t>(rank()), DDL_FLOAT, DDL_SUM));
    expect_mismatch(first ? ddl_run_allreduce(world(), data, data, 3000, DDL_FLOAT, DDL_SUM)
                          : ddl_run_all_gather(world(), there.data(), here.data(), 3000, DDL_FLOAT));
    const ddl_status failed = ddl_run_allreduce(world(), first ? data : nullptr, data, 3000, DDL_FLOAT, DDL_SUM);
    if (first) expect_failure(DDL_MISMATCH, "", failed);
    else expect_failure(DDL_INVALID_ARGUMENT, "in is NULL", failed);
    expect_usable();
}

BOOST_AUTO_TEST_CASE(a_copy_that_fails_is_told_on_all_ranks_and_the_next_call_works) {
    for (const std::size_t count : {std::size_t{100}, std::size_t{3000}})
        for (const int which : {1, 2, 3, 5, 9, 23}) {
            const std::size_t copies = count <= 256 ? 2 : 24;
            if (static_cast<std::size_t>(which) > copies) continue;
            const device<float> values{brings(count)};
            if (rank() == 0) seen().fails_at = which;
            const ddl_status failed =
                ddl_run_allreduce(world(), values.data(), values.data(), count, DDL_FLOAT, DDL_SUM);
            seen().fails_at = 0;
            if (rank() == 0) {
                expect_failure(DDL_SYSTEM,
                               "Async_v2: the CUDA driver says 700, an illegal memory access was encountered", failed);
            } else if (count > 256 || which == 1) {  // the last copy back is nobody else's affair
                expect_failure(DDL_MISMATCH, "see its own error", failed);
            } else {
                BOOST_TEST(failed == DDL_OK);
            }
            expect_usable();
        }
}

BOOST_AUTO_TEST_CASE(chunks_that_make_no_sense_are_refused) {
    ddl_communicator* part = nullptr;
    REQUIRE_OK(ddl_split(world(), 0, rank(), &part));
    const device<float> values{brings(3000)};
    ::setenv("DL_COMM_PIPELINE_CHUNK_KB", "0", 1);
    expect_failure(DDL_INVALID_ARGUMENT, "DL_COMM_PIPELINE_CHUNK_KB",
                   ddl_run_allreduce(part, values.data(), values.data(), 3000, DDL_FLOAT, DDL_SUM));
    ::setenv("DL_COMM_PIPELINE_CHUNK_KB", rank() == 0 ? "2" : "1", 1);  // the ranks agree on the longest
    REQUIRE_OK(ddl_run_allreduce(part, values.data(), values.data(), 3000, DDL_FLOAT, DDL_SUM));
    expect_sums(values.get());
    ::setenv("DL_COMM_PIPELINE_CHUNK_KB", "1", 1);
    const int pinned = seen().pinned;
    const int made = seen().made;
    REQUIRE_OK(ddl_close(part));
    BOOST_TEST(seen().pinned == pinned - 1);
    BOOST_TEST(seen().made < made);
}

BOOST_AUTO_TEST_CASE(the_plugin_of_cray_takes_it) {
    BOOST_TEST_REQUIRE(dl_comm_init() == 0);
    const device<float> there{brings(3001)};
    std::vector<float> here = brings(3001);
    void* tensors[] = {there.data(), here.data()};
    int lengths[] = {3001, 3001};
    dlDataType_t types[] = {DL_COMM_FLOAT, DL_COMM_FLOAT};
    int many = 2;
    void** towers[] = {tensors};
    int* lengths_of[] = {lengths};
    dlDataType_t* types_of[] = {types};
    BOOST_TEST(dl_comm_gradients(towers, lengths_of, types_of, &many, 1, 0) == 0);
    const std::vector<float> averages = there.get();
    BOOST_TEST(averages == here);
    for (std::size_t i = 0; i < 3001; ++i)
        BOOST_TEST_REQUIRE(averages[i] == static_cast<float>(summed(i)) / static_cast<float>(size()));
    const device<float> own{std::vector<float>(3001, static_cast<float>(rank()))};
    tensors[0] = own.data();
    BOOST_TEST(dl_comm_broadcast(towers, lengths_of, types_of, &many, 1, size() - 1) == 0);
    BOOST_TEST(own.get() == std::vector<float>(3001, static_cast<float>(size() - 1)));
    // several exchanges, of which those after a mistake are made all the same
    std::vector<float> floats(20'000, 1);
    std::vector<std::int64_t> integers(20'000, 1);
    void* gone = nullptr;
    REQUIRE_OK(ddl_allocate(world(), 80'000, &gone));
    REQUIRE_OK(ddl_deallocate(gone));
    const bool mistaken = rank() == size() - 1;
    tensors[0] = mistaken ? gone : floats.data();
    tensors[1] = integers.data();
    lengths[0] = lengths[1] = 20'000;
    types[1] = DL_COMM_INT64;
    BOOST_TEST(dl_comm_gradients(towers, lengths_of, types_of, &many, 1, 0) < 0);
    const std::string words = dl_comm_last_error();
    BOOST_TEST(words.find(mistaken ? "was given back" : "see its own error") != std::string::npos, words);
    BOOST_TEST(dl_comm_broadcast(towers, lengths_of, types_of, &many, 1, 0) == (mistaken ? -1 : 0));
    tensors[0] = floats.data();
    BOOST_TEST(dl_comm_gradients(towers, lengths_of, types_of, &many, 1, 0) == 0);
    BOOST_TEST(floats == std::vector<float>(20'000, 1), boost::test_tools::per_element());
    BOOST_TEST(dl_comm_finalize() == 0);
}

BOOST_AUTO_TEST_CASE(a_call_that_reports_times_counts_what_failed_here_alone) {
    ddl_communicator* part = nullptr;
    REQUIRE_OK(ddl_split(world(), 0, rank(), &part));
    REQUIRE_OK(ddl_set_options(part, "-dump_iter 2"));
    const device<float> values{brings(100)};
    for (int call = 0; call < 6; ++call) {
        if (rank() == 0 && call == 2) seen().fails_at = 2;  // the copy back
        const ddl_status status = ddl_run_allreduce(part, values.data(), values.data(), 100, DDL_FLOAT, DDL_MAXIMUM);
        seen().fails_at = 0;
        BOOST_TEST(status == (rank() == 0 && call == 2 ? DDL_SYSTEM : DDL_OK));
    }
    REQUIRE_OK(ddl_close(part));
}

BOOST_AUTO_TEST_CASE(the_interface_of_ibm_takes_it) {
    void* chosen = nullptr;
    const auto ask = driver().find<int(void**)>("cuCtxGetCurrent");
    BOOST_TEST_REQUIRE((ask(&chosen) == 0 && chosen == nullptr));
    BOOST_TEST_REQUIRE(ddl_init("-dev_sync 2") == DDL_SUCCESS);
    BOOST_TEST((ask(&chosen) == 0 && chosen != nullptr));  // the rank's GPU
    const device<float> values{brings(3001)};
    const int before = seen().synchronised;
    BOOST_TEST(ddl_allreduce(values.data(), 3001) == DDL_SUCCESS);
    BOOST_TEST(seen().synchronised - before == 2);
    expect_sums(values.get());
    std::vector<float> back(3001);
    BOOST_TEST(ddl_memcpy_device_to_host(back.data(), values.data(), 3001 * sizeof(float)) == DDL_SUCCESS);
    expect_sums(back);
    back.assign(3001, 5);
    BOOST_TEST(ddl_memcpy_host_to_device(values.data(), back.data(), 3001 * sizeof(float)) == DDL_SUCCESS);
    BOOST_TEST(values.get() == back);
    seen().fails_at = 1;
    const std::string why = lacks_line(2, "the CUDA driver says 700", [&] {
        const int status = ddl_allreduce(values.data(), 3001);
        BOOST_TEST(status == DDL_SYSTEM);
        return status;
    });
    BOOST_TEST(why.empty(), why);
    seen().fails_at = 0;
    const int pinned = seen().pinned;
    BOOST_TEST(ddl_allreduce(static_cast<float*>(early) + 1, 31) == DDL_SUCCESS);
    BOOST_TEST(seen().pinned == pinned + 1);
    BOOST_TEST(ddl_allreduce(early, 32) == DDL_SUCCESS);
    BOOST_TEST(seen().pinned == pinned + 1);  // once
    BOOST_TEST(ddl_free(early) == DDL_SUCCESS);
    BOOST_TEST(seen().pinned == pinned);
    void* memory = nullptr;
    BOOST_TEST(ddl_malloc(&memory, 64, 100) == 128U);  // the device can use it as its own
    BOOST_TEST(seen().pinned == pinned + 1);
    int waited = seen().synchronised;
    BOOST_TEST(ddl_allreduce(memory, 32) == DDL_SUCCESS);  // behind what the device does there
    BOOST_TEST(seen().synchronised > waited);
    waited = seen().synchronised;
    BOOST_TEST(ddl_memcpy_device_to_host(back.data(), memory, 128) == DDL_SUCCESS);
    BOOST_TEST(seen().synchronised > waited);
    std::thread{[&] { BOOST_TEST(ddl_free(memory) == DDL_SUCCESS); }}.join();  // which has chosen none
    BOOST_TEST(seen().pinned == pinned);
}
