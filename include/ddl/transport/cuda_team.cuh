// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/device_block.cuh>
#include <ddl/transport/grid_window.hpp>
#include <ddl/transport/launch_order.hpp>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace ddl {

/// What the ranks of a `cuda_peer` share: a window of each on its GPU, and memory in which grids leave faults.
class cuda_team {
public:
    /// Rank `r` is on device `devices[r]`. Throws where there is no GPU, or one that cannot reach another.
    cuda_team(std::vector<int> devices, const char* operation)
        : devices_{std::move(devices)}, last_captures_(devices_.size()), turns_{leaders_below(size())} {
        const int ranks = size();
        try {
            for (int rank = 0; rank < ranks; ++rank) prepare(rank, operation);
            require_cuda(cudaHostAlloc(reinterpret_cast<void**>(&faults_), sizeof *faults_ * devices_.size(),
                                       cudaHostAllocPortable | cudaHostAllocMapped),
                         "cudaHostAlloc", -1, devices_[0]);
            std::fill_n(faults_, devices_.size(), 0);
        } catch (...) {
            release();
            throw;
        }
    }
    cuda_team(const cuda_team&) = delete;
    cuda_team& operator=(const cuda_team&) = delete;
    ~cuda_team() { release(); }

    int size() const noexcept { return static_cast<int>(devices_.size()); }
    int device_of(int rank) const noexcept { return devices_[static_cast<std::size_t>(rank)]; }
    std::uint64_t* const* windows() const noexcept { return windows_.data(); }
    std::uint64_t* faults() const noexcept { return faults_; }
    /// Recorded by a rank: when its buffers are ready, and, by the one that launches, when the grid has ended. Captures have
    /// events of their own: what was recorded in one means nothing outside.
    cudaEvent_t ready(int rank, bool captured) const noexcept { return event(rank, captured ? 2 : 0); }
    cudaEvent_t done(int rank, bool captured) const noexcept { return event(rank, captured ? 3 : 1); }
    /// The capture in which `done(rank, true)` was recorded last. Belongs to the thread that launches.
    std::optional<unsigned long long>& last_capture(int rank) noexcept {
        return last_captures_[static_cast<std::size_t>(rank)];
    }

    /// Whether grids on several GPUs wait for each other.
    bool spans_devices() const noexcept { return companions(0) != size(); }
    /// For teams that do: whose turn it is to launch, and, on a GPU, when what was launched last in turn has ended, of any team
    /// of this process. A grid that starts after that waits for no grid that comes later.
    launch_order::turns& turns() noexcept { return turns_; }
    /// GPUs whose lowest rank is below `rank`: the number of a leader among those who launch.
    int leaders_below(int rank) const noexcept {
        int known = 0;
        for (int each = 0; each < rank; ++each) known += leader(each) == each ? 1 : 0;
        return known;
    }
    static cudaEvent_t last_in_turn(int device, int rank) {
        static std::mutex mutex;
        static std::vector<cudaEvent_t> events;  // never destroyed: at the end of the process CUDA may have gone before
        const std::lock_guard lock{mutex};
        if (events.size() <= static_cast<std::size_t>(device)) events.resize(static_cast<std::size_t>(device) + 1);
        cudaEvent_t& event = events[static_cast<std::size_t>(device)];
        if (event == nullptr)  // on the current device, which is that one
            require_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate", rank, device);
        return event;
    }

    /// Makes all blocks give up that wait for a rank whose grid did not start. Of the teams split from this one, too: their hosts
    /// hear of the failure, and launch nothing any more.
    void give_up(int rank) noexcept {
        turns_.abandon();
        for (std::size_t i = 0; i < devices_.size(); ++i)
            std::atomic_ref{faults_[i]}.store(static_cast<std::uint64_t>(rank) + 1,
                                              std::memory_order_release);  // after what the host was told
        const std::lock_guard lock{parts_mutex_};
        for (const std::weak_ptr<cuda_team>& part : parts_)
            if (const auto still = part.lock()) still->give_up(0);  // whoever it was has said so
    }
    /// A team that was split from this one.
    void add_part(const std::shared_ptr<cuda_team>& part) {
        const std::lock_guard lock{parts_mutex_};
        std::erase_if(parts_, [](const auto& old) { return old.expired(); });
        parts_.push_back(part);
    }

    /// Ranks on the device of `rank`, and the lowest of them, which launches for all.
    int companions(int rank) const noexcept {
        return static_cast<int>(std::count(devices_.begin(), devices_.end(), device_of(rank)));
    }
    int leader(int rank) const noexcept {
        return static_cast<int>(std::find(devices_.begin(), devices_.end(), device_of(rank)) - devices_.begin());
    }
    /// Blocks that each rank may have at once on the fullest device, at most `device_blocks_together` on a multiprocessor.
    int most_blocks() const noexcept { return most_blocks_; }
    /// The same of one kernel: fewer where a tool such as compute-sanitizer has added to it.
    int most_blocks(const void* kernel) const {
        int least = most_blocks_;
        for (int rank = 0; rank < size(); ++rank)
            if (leader(rank) == rank) least = std::min(least, blocks_at_once(rank, kernel) / companions(rank));
        return std::max(least, 1);  // if not even that runs, the launch says so
    }

private:
    static constexpr int events_of_a_rank = 4;
    cudaEvent_t event(int rank, int which) const noexcept {
        return events_[static_cast<std::size_t>(events_of_a_rank * rank + which)];
    }

    /// How many blocks of a kernel the device of `rank` runs at once.
    int blocks_at_once(int rank, const void* kernel) const {
        const int device = device_of(rank);
        const device_scope scope{device, rank};
        int processors = 0;
        int together = 0;
        require_cuda(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device),
                     "cudaDeviceGetAttribute", rank, device);
        require_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&together, kernel, longest_device_block, 0),
                     "cudaOccupancyMaxActiveBlocksPerMultiprocessor", rank, device);
        return std::min(together, device_blocks_together) * processors;
    }

    void prepare(int rank, const char* operation) {
        const int device = device_of(rank);
        const device_scope scope{device, rank};
        require_cooperative_launch(device, operation, rank);
        // registers leave room for `device_blocks_together` of any kernel; the GPU may still run fewer, or lack code for it
        const int most = blocks_at_once(rank, reinterpret_cast<const void*>(&run_on_device<no_work>));
        const int share = most / companions(rank);
        if (share < 1)
            throw error(errc::invalid_argument, operation, rank, -1,
                        "%d ranks on CUDA device %d, which runs %d blocks at once; ask for fewer ranks",
                        companions(rank), device, most);
        most_blocks_ = most_blocks_ == 0 ? share : std::min(most_blocks_, share);
        for (const int other : devices_) {
            if (other == device) continue;
            int reaches = 0;
            require_cuda(cudaDeviceCanAccessPeer(&reaches, device, other), "cudaDeviceCanAccessPeer", rank, device);
            if (reaches == 0)
                throw error(errc::system, operation, rank, -1,
                            "CUDA device %d cannot reach the memory of device %d; use ddl::staged", device, other);
            const cudaError_t status = cudaDeviceEnablePeerAccess(other, 0);
            if (status == cudaErrorPeerAccessAlreadyEnabled) quietly(status);
            else require_cuda(status, "cudaDeviceEnablePeerAccess", rank, device);
        }
        for (int i = 0; i < events_of_a_rank; ++i) {
            cudaEvent_t event = nullptr;
            require_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate", rank, device);
            events_.push_back(event);
        }
        const std::size_t bytes = grid_window::bytes(size());
        void* window = nullptr;
        require_cuda(cudaMalloc(&window, bytes), "cudaMalloc", rank, device);
        windows_.push_back(static_cast<std::uint64_t*>(window));
        require_cuda(cudaMemset(window, 0, bytes), "cudaMemset", rank, device);
        require_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize", rank, device);
    }

    void release() noexcept {
        // whatever these say, there is nobody left to tell
        int before = 0;
        const bool known = quietly(cudaGetDevice(&before));
        for (std::size_t rank = 0; rank < windows_.size(); ++rank) {
            quietly(cudaSetDevice(devices_[rank]));
            quietly(cudaDeviceSynchronize());
        }
        for (const cudaEvent_t event : events_) quietly(cudaEventDestroy(event));
        for (std::uint64_t* const window : windows_) quietly(cudaFree(window));
        if (faults_ != nullptr) quietly(cudaFreeHost(faults_));
        if (known) quietly(cudaSetDevice(before));
    }

    std::vector<int> devices_;
    std::vector<std::uint64_t*> windows_;
    std::vector<cudaEvent_t> events_;
    std::vector<std::optional<unsigned long long>> last_captures_;
    launch_order::turns turns_;
    std::mutex parts_mutex_;
    std::vector<std::weak_ptr<cuda_team>> parts_;
    std::uint64_t* faults_ = nullptr;
    int most_blocks_ = 0;
};

}  // namespace ddl
