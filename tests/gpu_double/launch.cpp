// SPDX-License-Identifier: Apache-2.0
// Kernels: a host thread for each thread of each block.
#include <ddl/transport/host_block.hpp>

#include <atomic>
#include <csetjmp>
#include <csignal>

#include "machine.hpp"

namespace {

struct block_state {
    explicit block_state(unsigned threads) : together{static_cast<int>(threads)} {}
    ddl::host_threads together;
};
thread_local block_state* own_block = nullptr;
thread_local std::size_t refusals_seen = 0;

thread_local sigjmp_buf* way_out = nullptr;
extern "C" void leave_kernel(int number) {
    if (way_out != nullptr) siglongjmp(*way_out, 1);
    std::signal(number, SIG_DFL);
}

}  // namespace

void __syncthreads() { static_cast<void>(__syncthreads_and(1)); }
int __syncthreads_and(int ours) {
    const std::size_t before = refusals_seen;
    if (__tsan_release != nullptr) __tsan_release(own_block);  // which takes no order from the atomics here
    refusals_seen = own_block->together.refusals_with(ours == 0);
    if (__tsan_acquire != nullptr) __tsan_acquire(own_block);
    return refusals_seen == before;
}

namespace cuda_double {

namespace {

/// A kernel of one thread may touch what is not there, as a GPU's may; one of more would leave the others waiting.
cudaError_t run_alone(const std::function<void()>& kernel) {
    static const bool set = std::signal(SIGSEGV, leave_kernel) != SIG_ERR;
    sigjmp_buf back;
    way_out = set ? &back : nullptr;
    const bool faulted = sigsetjmp(back, 1) != 0;
    if (!faulted) kernel();
    way_out = nullptr;
    return faulted ? cudaErrorIllegalAddress : cudaSuccess;
}

/// Runs blocks `first` to `last` of a grid.
cudaError_t run_blocks(unsigned first, unsigned last, dim3 blocks, dim3 threads, const std::function<void()>& kernel) {
    std::deque<block_state> states;
    std::vector<std::thread> all;
    std::atomic<cudaError_t> status = cudaSuccess;
    const bool alone = blocks.x * blocks.y * threads.x == 1;
    for (unsigned block = first; block < last; ++block) {
        block_state& state = states.emplace_back(threads.x);
        for (unsigned thread = 0; thread < threads.x; ++thread)
            all.emplace_back([&, block, thread] {
                own_block = &state;
                blockIdx = {block % blocks.x, block / blocks.x};
                threadIdx = {thread};
                gridDim = blocks;
                blockDim = threads;
                if (alone) status = run_alone(kernel);
                else kernel();
            });
    }
    for (std::thread& each : all) each.join();
    return status;
}

void run_grid(int number, bool cooperative, dim3 blocks, dim3 threads, const std::function<void()>& kernel) {
    machine& all = machine::get();
    const unsigned count = blocks.x * blocks.y;
    for (unsigned first = 0; first < count;) {
        int takes = 0;
        {
            lock held;
            device& on = all.devices[static_cast<std::size_t>(number)];
            held.wait([&] { return on.free_blocks >= (cooperative ? static_cast<int>(count) : 1); });
            takes = std::min(static_cast<int>(count - first), on.free_blocks);
            on.free_blocks -= takes;
        }
        const unsigned last = first + static_cast<unsigned>(takes);
        const cudaError_t status = run_blocks(first, last, blocks, threads, kernel);
        first = last;
        const lock held;
        all.devices[static_cast<std::size_t>(number)].free_blocks += takes;
        if (status != cudaSuccess) all.devices[static_cast<std::size_t>(number)].fault = status;
        all.changed.notify_all();
    }
}

}  // namespace

cudaError_t launch(const char* name, bool cooperative, dim3 blocks, dim3 threads, std::function<void()> kernel,
                   cudaStream_t handle) {
    return called(name, asks::no_fault, [&](lock&) {
        CUstream_st* const stream = stream_of(handle);
        const int device = current();
        if (stream == nullptr || stream->device != device) return cudaErrorInvalidResourceHandle;
        if (blocks.x * blocks.y == 0 || threads.x == 0 || threads.x > 1024) return cudaErrorInvalidConfiguration;
        if (cooperative && static_cast<int>(blocks.x * blocks.y) > 2 * machine::get().processors)
            return cudaErrorCooperativeLaunchTooLarge;
        return enqueue(stream,
                       [=, kernel = std::move(kernel)] { run_grid(device, cooperative, blocks, threads, kernel); });
    });
}

}  // namespace cuda_double
