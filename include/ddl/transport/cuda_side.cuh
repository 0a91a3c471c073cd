// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/cuda_status.cuh>
#include <ddl/transport/cuda_team.cuh>
#include <ddl/transport/fault.hpp>
#include <ddl/transport/patience.hpp>
#include <ddl/transport/threads.hpp>

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

namespace ddl {

/// One rank of a `cuda_peer`, which outlives the handles that `on` gives: its host side, and how its failures are told to hosts
/// and grids, and left.
struct cuda_side {
    std::shared_ptr<cuda_team> team;
    threads host;
    std::vector<std::pair<const void*, int>> blocks_of{};  // kernels; belongs to the thread that carries out calls

    int device() const noexcept { return team->device_of(host.rank()); }

    /// Tells that this rank takes part in nothing more: the others hear why, and their grids do not wait for it.
    void fail(errc code, const char* words) noexcept {
        host.fail(code, words);
        team->give_up(host.rank());
    }
    /// Does what this rank's grid needs, or fails.
    template <class Work>
    void or_give_up(const call_site& where, const Work& work) {
        if (const auto failure = failure_of(where, host.rank(), work)) {
            fail(failure->code(), failure->what());
            throw error(*failure);
        }
    }
    /// Throws what a grid left.
    void heed_fault(const call_site& where) {
        const std::uint64_t missed = std::atomic_ref{team->faults()[host.rank()]}.load(std::memory_order_acquire);
        if (missed == 0) return;
        host.listen(where);  // whose grid did not come may have said why
        const error failure =
            grid_did_not_arrive(where, host.rank(), static_cast<int>(missed) - 1, host.limit().seconds);
        host.fail(errc::timeout, failure.what());
        throw failure;
    }
    /// What a wait for a stream or an event came to. If it failed, no grid waits any more for this rank's.
    void judge(cudaError_t status, const char* operation, const call_site& where) {
        try {
            if (status != cudaSuccess)
                or_give_up(where, [&] { require_cuda(status, operation, host.rank(), device()); });
            heed_fault(where);
        } catch (...) {
            team->give_up(host.rank());
            throw;
        }
    }

    /// Whether a grid may still reach buffers of a call that has failed: each ends, or gives up.
    bool is_reached() const noexcept {
        cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;  // see beside_captures
        const bool aside = quietly(cudaThreadExchangeStreamCaptureMode(&mode));
        bool any = false;
        for (int peer = 0; peer < host.size(); ++peer)
            if (team->leader(peer) == peer) any = any || is_running(cudaEventQuery(team->done(peer, false)));
        if (aside) quietly(cudaThreadExchangeStreamCaptureMode(&mode));
        return any;
    }
    /// How long one who leaves a call that has failed waits for the grids.
    patience patience_of_leaver() const noexcept { return patience{limit_of_leaver}; }
    void retreat() const noexcept {
        for (patience waiting = patience_of_leaver(); is_reached();)
            if (waiting.pause() && waiting.expired()) break;
    }

private:
    /// A device that has failed runs nothing any more.
    static bool is_running(cudaError_t status) noexcept { return !quietly(status) && status == cudaErrorNotReady; }
};

}  // namespace ddl
