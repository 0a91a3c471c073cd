// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/allreduce.hpp>
#include <ddl/broadcast.hpp>
#include <ddl/transport/cuda_memory.cuh>
#include <ddl/transport/cuda_moment.cuh>
#include <ddl/transport/cuda_status.cuh>
#include <ddl/transport/fault.hpp>
#include <ddl/transport/nccl_names.cuh>
#include <ddl/transport/stream_policy.cuh>
#include <ddl/transport/threads.hpp>

#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace ddl {

/// Ranks with a GPU each, whose collectives NCCL carries out: one communicator of NCCL's beside one of ours.
///
/// `ddl::nccl gpus{host}` uses the current device and the communicator `host`, of any transport for host memory, which outlives
/// it: there ranks compare their calls and hear of failures. All ranks of `host` make one. Calls run on the default stream and
/// block; `gpus.on(stream)` gives the same communicator for calls that enqueue and return. Carries all collectives.
///
/// Values are folded in NCCL's order and rounded as NCCL does, which need not be once; no waiting for NCCL is without deadline.
template <communicator Host>
class nccl {
public:
    static constexpr const char* name = "nccl";
    static constexpr bool chooses_schedule = true;

    explicit nccl(Host& host) : side_{new rank_side{&host}} {
        // no rank waits for one that cannot take part
        std::optional<error> failure;
        ncclUniqueId id{};
        try {
            require_devices(name);
            require_cuda(cudaGetDevice(&side_->device), "cudaGetDevice", rank(), 0);
            if (rank() == 0) require_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId", 0, nullptr);
        } catch (const error& known) { failure = known; }
        int ready = failure ? 0 : 1;
        try {
            ddl::allreduce(host, std::span{&ready, 1}, minimum{});
        } catch (const error&) {  // a peer that has heard of this rank's failure may leave before this rank has done so
            if (!failure) throw;
        }
        if (failure) throw error(*failure);
        if (ready == 0) throw error(errc::system, name, rank(), -1, "a peer cannot take part; see its own error");
        ddl::broadcast(host, std::span{id.internal}, 0);
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = 0;
        const device_scope scope{device(), rank()};
        try {
            side_->find_neighbours();
            require_nccl(ncclCommInitRankConfig(&side_->ranks, size(), id, rank(), &config), "ncclCommInitRankConfig",
                         rank(), nullptr);
            side_->await_nccl("ncclCommInitRankConfig", call_site{name});
        } catch (const error& known) { side_->give_up(known); }
    }

    int rank() const { return side_->host->rank(); }
    int size() const { return side_->host->size(); }
    int device() const noexcept { return side_->device; }
    cudaStream_t stream() const noexcept { return stream_; }
    ncclComm_t communicator() const noexcept { return side_->ranks; }

    /// This communicator for calls that enqueue on `stream`, of this rank's device. It refers to this one.
    nccl on(cudaStream_t stream) const noexcept { return {side_, stream, false}; }
    /// The same with the stream of an execution policy, as `thrust::cuda::par.on(stream)` is.
    template <stream_policy Policy>
    nccl on(Policy policy) const {
        return on(get_stream(policy));
    }

    /// Waits until all that was enqueued on its stream has ended. Blocks. What takes longer than the host's timeout is aborted.
    void wait() {
        const call_site where{"wait"};
        require_no_capture(stream_, where, rank(), device());
        queue().drain();
        await(on_stream::anything, where);
    }

    // what the library asks of a communicator
    void begin(const call_site& where) { side_->host->begin(where); }
    auto& queue() noexcept { return side_->host->queue(); }
    void fail(errc code, const char* words) noexcept { side_->host->fail(code, words); }
    std::byte* scratch(std::size_t bytes, scratch_for use) { return side_->host->scratch(bytes, use); }
    Host& host() noexcept { return *side_->host; }

    /// For nonblocking calls: what the caller has put on the stream comes before, and the thread that carries them out waits for
    /// NCCL, as it cannot under capture. See `start`.
    auto defer() {
        require_no_capture(stream_, call_site{name}, rank(), device());
        struct deferral {
            nccl* ranks;
            cuda_moment before;
            void begin() const { before.follow(ranks->stream_); }
            void end() const { ranks->await(on_stream::anything, call_site{"wait"}); }
            bool done() const noexcept { return true; }
        };
        return deferral{this, {stream_, device(), rank()}};
    }

    /// Elements of a call that this rank reads or writes; of none the address may be any.
    struct buffer {
        const char* which;
        const void* data;
        std::size_t count;
    };

    /// One call: compares it on the host sides, then `enqueue(communicator, stream)` gives it to NCCL.
    template <class Checking, class Enqueue>
    void carry(const call& what, std::initializer_list<buffer> buffers, Enqueue enqueue) {
        const call_site where{to_string(what.what), 0};
        prepared<Checking>(host(), [&] {
            for (const auto& [which, data, count] : buffers) {
                require_memory_of(device(), which, data, count, where, rank());
                for (const int other : side_->neighbours)
                    if (count != 0) require_opened_to(other, which, data, where, rank());
            }
        });
        compare_levels<Checking>(host(), what);
        half_done guard{host()};
        guard.begin(where);
        const device_scope scope{device(), rank()};
        try {
            const ncclResult_t status = enqueue(side_->ranks, stream_);
            if (status != ncclInProgress) require_nccl(status, where.operation, rank(), side_->ranks);
            else side_->await_nccl(where.operation, where);
        } catch (const error& failure) { side_->give_up(failure); }  // the others may have enqueued theirs, and wait
        if (blocks_) await(on_stream::call, where);
        guard.end();
    }

    /// Memory of the rank's device that `stream` gives and takes, which cudaFreeAsync ends. NCCL's kernels on other GPUs reach it.
    void* allocate(std::size_t bytes) {
        void* data = nullptr;
        require_cuda(cudaMallocFromPoolAsync(&data, bytes, side_->open_pool(), stream_), "cudaMallocFromPoolAsync",
                     rank(), device());
        return data;
    }

private:
    struct rank_side {
        using pool_type = std::shared_ptr<std::remove_pointer_t<cudaMemPool_t>>;

        explicit rank_side(Host* wire) noexcept : host{wire} {}
        rank_side(const rank_side&) = delete;
        rank_side& operator=(const rank_side&) = delete;
        ~rank_side() {
            host->queue().drain();  // which outlives this, and its calls do not
            if (ranks == nullptr) return;
            // what peers do not come to is given up; whatever these say, there is nobody left to tell
            ncclResult_t status = ncclCommFinalize(ranks);
            for (patience waiting{timeout{10}}; status == ncclInProgress;) {
                if (waiting.pause() && (waiting.expired() || has_failed())) break;
                if (ncclCommGetAsyncError(ranks, &status) != ncclSuccess) break;
            }
            static_cast<void>(status == ncclSuccess ? ncclCommDestroy(ranks) : ncclCommAbort(ranks));
        }

        /// Finds GPUs of this process that reach this one: NCCL's kernels there touch buffers of this rank where they lie.
        void find_neighbours() {
            if constexpr (std::same_as<Host, threads>)
                for (const std::uint64_t word : host->exchange(static_cast<std::uint64_t>(device), call_site{name})) {
                    const int other = static_cast<int>(word);
                    int reaches = 0;
                    if (other != device)
                        require_cuda(cudaDeviceCanAccessPeer(&reaches, other, device), "cudaDeviceCanAccessPeer",
                                     host->rank(), device);
                    if (reaches != 0) neighbours.push_back(other);
                }
        }
        cudaMemPool_t open_pool() {
            if (pool != nullptr) return pool.get();
            const auto place_of = [](int number) {
                cudaMemLocation place{};
                place.type = cudaMemLocationTypeDevice;
                place.id = number;
                return place;
            };
            cudaMemPoolProps how{};
            how.allocType = cudaMemAllocationTypePinned;
            how.location = place_of(device);
            cudaMemPool_t made = nullptr;
            require_cuda(cudaMemPoolCreate(&made, &how), "cudaMemPoolCreate", host->rank(), device);
            pool_type held{made, [](cudaMemPool_t old) noexcept { quietly(cudaMemPoolDestroy(old)); }};
            for (const int other : neighbours) {
                const cudaMemAccessDesc access{place_of(other), cudaMemAccessFlagsProtReadWrite};
                require_cuda(cudaMemPoolSetAccess(made, &access, 1), "cudaMemPoolSetAccess", host->rank(), device);
            }
            pool = std::move(held);
            return made;
        }

        /// Whether a peer has failed, where the host knows: it comes to nothing any more.
        bool has_failed() const noexcept {
            if constexpr (requires { host->has_failed(); }) return host->has_failed();
            else if constexpr (requires { host->listen(call_site{name}); }) try {
                    host->listen(call_site{name});
                } catch (const error&) { return true; }
            return false;
        }
        timeout limit() const {
            if constexpr (requires { host->limit(); }) return host->limit();
            else return timeout{};
        }
        /// Waits until NCCL has done on the host what it was asked for.
        void await_nccl(const char* call, const call_site& where) {
            absence lost;
            for (patience waiting{limit()};;) {
                ncclResult_t status = ncclSuccess;
                require_nccl(ncclCommGetAsyncError(ranks, &status), "ncclCommGetAsyncError", host->rank(), ranks);
                require_nccl(status, call, host->rank(), ranks);
                if (status == ncclSuccess) return;
                if (waiting.pause()) look_around(waiting, lost, where);
            }
        }
        /// Since when a peer has ended, where the host knows; such a one may have done its part before.
        struct absence {
            int peer = -1;
            double since = 0;
        };
        /// What NCCL waits for may never come: gives up when a peer has said so or ended, or after the limit.
        void look_around(patience& waiting, absence& lost, const call_site& where) {
            if constexpr (requires { host->lost(0); })
                for (int peer = 0; peer < host->size() && lost.peer < 0; ++peer)
                    if (host->lost(peer)) lost = {peer, now()};
            if (lost.peer >= 0 && now() - lost.since > grace)
                give_up(error(errc::peer_lost, where.operation, host->rank(), where.round,
                              "rank %d has ended; start the job again", lost.peer));
            heed(waiting, where);
        }
        void heed(patience& waiting, const call_site& where) {
            if constexpr (requires { host->listen(where); }) try {
                    host->listen(where);
                } catch (const error& told) { give_up(told); }
            if (waiting.expired())
                give_up(error(errc::timeout, where.operation, host->rank(), where.round,
                              "NCCL was not done within %g s; see what holds a peer up, or set a longer timeout",
                              limit().seconds));
        }
        [[noreturn]] void give_up(const error& failure) {
            if (!failed) failed = fault{failure.code(), failure.what()};
            if (ranks != nullptr) static_cast<void>(ncclCommAbort(std::exchange(ranks, nullptr)));
            host->fail(failure.code(), failure.what());
            throw error(failure);
        }

        static constexpr double grace = 1;  // seconds
        Host* host;
        ncclComm_t ranks = nullptr;
        std::optional<fault> failed{};  // why it was given up
        int device = 0;
        std::vector<int> neighbours{};
        pool_type pool{};
    };

    nccl(std::shared_ptr<rank_side> side, cudaStream_t stream, bool blocks) noexcept
        : side_{std::move(side)}, stream_{stream}, blocks_{blocks} {}

    /// What is awaited on the stream: a call that peers carry out with us, or also what is this rank's alone.
    enum class on_stream { call, anything };
    void await(on_stream what, const call_site& where) {
        // what was enqueued was aborted, and its stream comes past it as if it had ended
        if (side_->failed) throw still_broken(*side_->failed, where, rank());
        const device_scope scope{device(), rank()};
        typename rank_side::absence lost;
        for (patience waiting{side_->limit()};;) {
            const cudaError_t status = query();
            if (status == cudaSuccess) break;
            if (status != cudaErrorNotReady) side_->give_up(cuda_failure(status, "cudaStreamQuery", rank(), device()));
            if (!waiting.pause()) continue;
            try {
                ncclResult_t answer = ncclSuccess;
                require_nccl(ncclCommGetAsyncError(side_->ranks, &answer), "ncclCommGetAsyncError", rank(),
                             side_->ranks);
                require_nccl(answer, where.operation, rank(), side_->ranks);
            } catch (const error& failure) { side_->give_up(failure); }
            if (what == on_stream::call) side_->look_around(waiting, lost, where);
            else side_->heed(waiting, where);
        }
    }
    cudaError_t query() const {
        const beside_captures aside{device(), rank()};
        return cudaStreamQuery(stream_);
    }

    std::shared_ptr<rank_side> side_;
    cudaStream_t stream_ = nullptr;
    bool blocks_ = true;
};

}  // namespace ddl
