// SPDX-License-Identifier: Apache-2.0
// Run with CUDA_VISIBLE_DEVICES empty: what a program is told that finds no GPU.
#include <ddl/allreduce.hpp>
#include <ddl/transport/cuda_ipc.cuh>
#include <ddl/transport/cuda_peer.cuh>
#include <ddl/transport/shared_memory.hpp>
#include <ddl/transport/staged.cuh>

#include <cstring>
#include <unistd.h>

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
                    std::strstr(failure.what(), "there is no CUDA driver; install one for CUDA ") != nullptr,
                "what to do");
        return;
    }
    throw std::runtime_error("a GPU was found where none is to be seen");
}

void expect_words(const ddl::error& failure, ddl::errc code, const char* words) {
    require(failure.code() == code && std::strcmp(failure.what(), words) == 0, failure.what());
}

/// Each reason why a program finds no GPU has words of its own, and says what to do.
void reasons_are_told_apart() {
    const auto lack = [](cudaError_t status, int driver) {
        return ddl::lack_of_devices("cuda_peer::run", status, driver, 13000);
    };
    expect_words(
        lack(cudaErrorInsufficientDriver, 12040), ddl::errc::system,
        "cuda_peer::run: the CUDA driver serves version 12.4, this program needs 13.0; install a newer driver");
    expect_words(
        lack(cudaErrorInsufficientDriver, 0), ddl::errc::system,
        "cuda_peer::run: there is no CUDA driver; install one for CUDA 13.0 or later, or run on a machine with a GPU");
    for (const cudaError_t status : {cudaErrorNoDevice, cudaSuccess})
        expect_words(lack(status, 13000), ddl::errc::system,
                     "cuda_peer::run: there is no CUDA device; run on a machine with one, or see CUDA_VISIBLE_DEVICES");
    expect_words(lack(cudaErrorSystemDriverMismatch, 13000), ddl::errc::system,
                 ("cudaGetDeviceCount: CUDA device 0 says cudaErrorSystemDriverMismatch (" +
                  std::string{cudaGetErrorString(cudaErrorSystemDriverMismatch)} + ")")
                     .c_str());
}

/// A status that is checked names the call, the rank and the device, in CUDA's words.
void failures_name_the_call_and_the_device() {
    ddl::require_cuda(cudaSuccess, "cudaMalloc", 3, 2);
    const auto failure = [](cudaError_t status) {
        return error_of([&] { ddl::require_cuda(status, "cudaMemcpyAsync", 3, 2); });
    };
    expect_words(failure(cudaErrorInvalidValue), ddl::errc::system,
                 "cudaMemcpyAsync, rank 3: CUDA device 2 says cudaErrorInvalidValue (invalid argument)");
    expect_words(failure(cudaErrorMemoryAllocation), ddl::errc::out_of_memory,
                 "cudaMemcpyAsync, rank 3: CUDA device 2 says cudaErrorMemoryAllocation (out of memory)");
}

}  // namespace

int main() {
    try {
        reasons_are_told_apart();
        failures_name_the_call_and_the_device();
        expect_no_device("cuda_peer::run", [] { ddl::cuda_peer::run(2, [](ddl::cuda_peer&) {}); });
        ddl::threads::run(2, [](ddl::threads& host) {
            expect_no_device("staged", [&] { ddl::staged{host, ddl::staging_shape{}}; });
            ddl::barrier_over<ddl::direct, ddl::checked>(host);  // the host's communicator is as good as before
        });
        ddl::shared_memory alone{"gpu-no-device-" + std::to_string(::getpid()), 0, 1};
        expect_no_device("cuda_ipc", [&] { ddl::cuda_ipc{alone}; });
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
