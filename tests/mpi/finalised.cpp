// SPDX-License-Identifier: Apache-2.0
// A program that ends MPI itself, while communicators of ours still live.
#include <ddl/allreduce.hpp>
#include <ddl/barrier.hpp>
#include <ddl/transport/cluster.hpp>

#include <boost/test/unit_test.hpp>

#include <span>
#include <string>
#include <vector>

namespace {
ddl::mpi* for_last_call = nullptr;
std::string last_call = "did not come";

/// MPI's own way to clean up: what MPI_Finalize calls first, while all of MPI still works.
int clean_up(MPI_Comm, int, void*, void*) {
    try {
        int value = 1;
        ddl::allreduce(*for_last_call, std::span{&value, 1});
        last_call = value == for_last_call->size() ? "went well" : "came to a wrong sum";
    } catch (const ddl::error& failure) { last_call = failure.what(); }
    return MPI_SUCCESS;
}
}  // namespace

BOOST_AUTO_TEST_CASE(calls_after_MPI_Finalize_are_errors_and_communicators_still_go) {
    int level = MPI_THREAD_SINGLE;
    BOOST_REQUIRE(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level) == MPI_SUCCESS);
    int key = MPI_KEYVAL_INVALID;
    BOOST_REQUIRE(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, clean_up, &key, nullptr) == MPI_SUCCESS);
    BOOST_REQUIRE(MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr) == MPI_SUCCESS);
    ddl::mpi first{MPI_COMM_WORLD};
    ddl::mpi second{MPI_COMM_WORLD};
    ddl::cluster third{MPI_COMM_WORLD};
    std::vector<int> values(3, 1);
    ddl::allreduce(first, values);
    BOOST_TEST(values == std::vector<int>(3, first.size()), boost::test_tools::per_element());
    ddl::barrier(second);
    ddl::barrier(third);
    for_last_call = &first;
    BOOST_REQUIRE(MPI_Finalize() == MPI_SUCCESS);
    BOOST_TEST(last_call == "went well");
    const auto call_over = [&](ddl::mpi& wire) -> std::string {
        try {
            ddl::allreduce(wire, values);
        } catch (const ddl::error& failure) { return failure.what(); }
        return "it went well";
    };
    const std::string words = "allreduce, rank " + std::to_string(first.rank()) +
                              ", round 0: MPI is not running; call collectives between MPI_Init and MPI_Finalize";
    BOOST_TEST(call_over(first) == words);
    BOOST_TEST(call_over(second) == words);
    BOOST_CHECK_EXCEPTION(ddl::mpi{MPI_COMM_WORLD}, ddl::error, [](const ddl::error& failure) {
        return failure.what() ==
               std::string{"mpi: MPI has ended in this process; make communicators before MPI_Finalize"};
    });
    BOOST_TEST(values == std::vector<int>(3, first.size()), boost::test_tools::per_element());
}
