// SPDX-License-Identifier: Apache-2.0
// Run with CUDA_VISIBLE_DEVICES empty: what a program is told that finds no GPU.
#include <ddl/allreduce.hpp>
#include <ddl/transport/cuda_peer.cuh>
#include <ddl/transport/staged.cuh>

#include <cstring>

#include "../collective/require.hpp"

namespace {

/// `call` must throw a `system` error whose words name `operation` and say what to do.
template <class Call>
void expect_no_device(const char* operation, Call call) {
    try {
        call();
    } catch (const ddl::error& failure) {
        std::puts(failure.what());
        require(failure.code() == ddl::errc::system, "the kind of the error");
        require(std::strcmp(failure.operation(), operation) == 0, "the call that is named");
        require(std::strstr(failure.what(), "there is no CUDA device; run on a machine with one") != nullptr ||
                    std::strstr(failure.what(), "install a newer driver, or one at all") != nullptr,
                "what to do");
        return;
    }
    throw std::runtime_error("a GPU was found where none is to be seen");
}

}  // namespace

int main() {
    try {
        expect_no_device("cuda_peer::run", [] { ddl::cuda_peer::run(2, [](ddl::cuda_peer&) {}); });
        ddl::threads::run(2, [](ddl::threads& host) {
            expect_no_device("staged", [&] { ddl::staged{host, ddl::staging_shape{}}; });
            ddl::barrier_over<ddl::direct, ddl::checked>(host);  // the host's communicator is as good as before
        });
        bool refused = false;
        try {
            ddl::cuda_peer::run(33, [](ddl::cuda_peer&) {});
        } catch (const ddl::error& failure) { refused = failure.code() == ddl::errc::invalid_argument; }
        require(refused, "more ranks than a grid knows");
    } catch (const std::exception& failure) {
        std::printf("failed: %s\n", failure.what());
        return 1;
    }
}
