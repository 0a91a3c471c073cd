// SPDX-License-Identifier: Apache-2.0
// ranks: 2 3
// A program that ends while its calls are under way, over communicators that end after MPI, or never.
#include <ddl/allreduce.hpp>
#include <ddl/transport/cluster.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

namespace {

/// Made before MPI starts, so it goes behind it: what was started has been carried out by then.
struct started {
    std::unique_ptr<ddl::mpi> wire;
    ddl::cluster* world = nullptr;  // which nobody ends
    std::vector<std::vector<int>> values;
    std::vector<ddl::request> requests;
    int expected = 0;

    ~started() {
        const auto is_over = [](const ddl::request& each) { return each.is_over(); };
        const auto is_right = [this](const std::vector<int>& each) {
            return std::count(each.begin(), each.end(), expected) == static_cast<std::ptrdiff_t>(each.size());
        };
        if (std::all_of(requests.begin(), requests.end(), is_over) &&
            std::all_of(values.begin(), values.end(), is_right))
            return;
        std::puts("MPI has ended before the calls");
        std::fflush(stdout);
        std::_Exit(1);
    }
} calls;

}  // namespace

BOOST_AUTO_TEST_CASE(a_process_that_ends_waits_for_calls_that_are_in_MPI) {
    calls.wire = std::make_unique<ddl::mpi>();
    calls.world = new ddl::cluster{MPI_COMM_WORLD, ddl::ranks_per_node{1}};
    calls.expected = calls.wire->size();
    calls.values.assign(20, std::vector<int>(1'000'000, 1));
    for (std::size_t i = 0; i < calls.values.size(); ++i)
        calls.requests.push_back(i % 2 == 0 ? ddl::allreduce_async(*calls.wire, calls.values[i])
                                            : ddl::allreduce_async(*calls.world, calls.values[i]));
    std::this_thread::sleep_for(std::chrono::milliseconds{5});  // so that one of them is in MPI by now
}
