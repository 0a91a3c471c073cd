// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/cuda_memory.cuh>
#include <ddl/transport/cuda_moment.cuh>
#include <ddl/transport/cuda_side.cuh>
#include <ddl/transport/grid_transport.hpp>
#include <ddl/transport/stream_policy.cuh>

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace ddl {

/// Ranks on the GPUs of this process: one on each, or several on one, whose work is then one launch.
///
/// `ddl::cuda_peer::run(4, [](ddl::cuda_peer& team) { ... })` runs the body on four threads, with the rank's GPU as the
/// current device; rank `r` is on device `r` modulo their number. Collectives take memory of that device. They run on the
/// default stream and block; `team.on(stream)` gives the same communicator for calls that enqueue on `stream` and return.
/// Buffers then belong to the call until the stream has come past it, and calls of one team are ordered one after the other,
/// whatever their streams. A fault of a grid that was enqueued is thrown by `wait`, or by the next call.
///
/// Under stream capture all ranks pass streams that are captured, those of a GPU streams of one capture; graphs and calls of one
/// team are then the caller's to order.
///
/// The request of a nonblocking call is done when its stream has come past it: buffers are free then, and `test` and `wait`
/// throw what the grid left. Until then other calls are enqueued. Under capture it is done when the call has been captured.
class cuda_peer {
public:
    static constexpr const char* name = "cuda_peer";
    struct entry {
        cudaEvent_t ready;
        unsigned long long capture;  // its id
        bool captured;
    };

    /// Runs `body(team)` on `ranks` new threads and waits for all of them, as `threads::run` does.
    template <class Body>
    static void run(int ranks, Body body, timeout limit = timeout{}) {
        constexpr const char* operation = "cuda_peer::run";
        if (ranks < 1 || ranks > grid_window::most_ranks)
            throw error(errc::invalid_argument, operation, -1, -1, "%d ranks; ask for 1 to %d", ranks,
                        grid_window::most_ranks);
        const int count = require_devices(operation);
        std::vector<int> devices;
        for (int rank = 0; rank < ranks; ++rank) devices.push_back(rank % count);
        const auto shared = std::make_shared<cuda_team>(std::move(devices), operation);
        threads::run(
            ranks,
            [&](threads& team) {
                const int device = shared->device_of(team.rank());
                require_cuda(cudaSetDevice(device), "cudaSetDevice", team.rank(), device);
                cuda_peer mine{std::move(team), shared};
                try {
                    body(mine);
                } catch (...) {
                    mine.fail(errc::peer_lost, "a thread of the team left with an exception");
                    throw;
                }
            },
            limit);
    }

    cuda_peer(const cuda_peer&) = default;
    cuda_peer& operator=(const cuda_peer&) = default;
    ~cuda_peer() {
        if (side_.use_count() == 1) queue().finish();  // while calls, which refer to it, find it whole
    }

    int rank() const noexcept { return side_->host.rank(); }
    int size() const noexcept { return side_->host.size(); }
    int device() const noexcept { return side_->device(); }
    cudaStream_t stream() const noexcept { return stream_; }

    /// This communicator for calls that enqueue on `stream`, of this rank's device, and return. It refers to this one.
    cuda_peer on(cudaStream_t stream) const noexcept { return {side_, stream, false}; }
    /// The same with the stream of an execution policy, as `thrust::cuda::par.on(stream)` is.
    template <stream_policy Policy>
    cuda_peer on(Policy policy) const {
        return on(get_stream(policy));
    }

    /// Waits until all that was enqueued has ended, and throws what a grid left. Blocks.
    void wait() {
        const call_site where{"wait"};
        require_no_capture(stream_, where, rank(), device());
        queue().drain();
        // by the handle of cudaStreamPerThread the thread that carries out nonblocking calls has another stream
        await_stream(where, [&] { await_event(side_->team->done(side_->team->leader(rank()), false)); });
    }

    /// A team of the ranks that pass the same `color`, ordered by `key`, then by rank. All ranks call it; blocks.
    cuda_peer split(int color, int key) {
        constexpr const char* operation = "split";
        threads part = side_->host.split(color, key);
        const call_site where{operation};
        std::vector<int> devices;
        for (const std::uint64_t device : part.exchange(static_cast<std::uint64_t>(this->device()), where))
            devices.push_back(static_cast<int>(device));
        std::shared_ptr<cuda_team> shared;
        if (part.rank() == 0)
            if (const auto failure = failure_of(where, rank(), [&] {
                    shared = std::make_shared<cuda_team>(std::move(devices), operation);
                    side_->team->add_part(shared);
                })) {
                part.fail(failure->code(), failure->what());
                throw error(*failure);
            }
        const auto all = part.exchange(reinterpret_cast<std::uintptr_t>(&shared), where);
        if (part.rank() != 0)
            shared = *reinterpret_cast<const std::shared_ptr<cuda_team>*>(static_cast<std::uintptr_t>(all[0]));
        part.exchange(0, where);  // until here the leader's pointer must stay
        return {std::move(part), std::move(shared)};
    }

    /// Sets how long a wait for a peer may take, that of a block included.
    void set_timeout(timeout limit) noexcept { side_->host.set_timeout(limit); }
    timeout limit() const noexcept { return side_->host.limit(); }

    // what the library asks of a communicator
    void begin(const call_site& where) { side_->host.begin(where); }
    call_queue& queue() noexcept { return side_->host.queue(); }
    void fail(errc code, const char* words) noexcept { side_->fail(code, words); }
    std::byte* scratch(std::size_t bytes, scratch_for use) { return side_->host.scratch(bytes, use); }

    // what it asks of a transport of grids
    threads& host() noexcept { return side_->host; }
    std::uint64_t* const* windows() const noexcept { return side_->team->windows(); }
    int most_blocks() const noexcept { return side_->team->most_blocks(); }
    /// The GPU is asked once for each kernel, which loads it, too.
    template <class Body>
    int most_blocks_of() {
        const auto* const kernel = reinterpret_cast<const void*>(&run_on_device<Body>);
        auto& known = side_->blocks_of;
        for (const auto& [asked, blocks] : known)
            if (asked == kernel) return blocks;
        side_->or_give_up(call_site{name}, [&] { known.emplace_back(kernel, side_->team->most_blocks(kernel)); });
        return known.back().second;
    }

    void require_reachable(const char* which, const void* data, std::size_t bytes, const call_site& where) const {
        if (bytes == 0) return;
        cudaPointerAttributes about{};
        side_->or_give_up(where, [&] {  // a grid of the call before may have failed
            require_cuda(cudaPointerGetAttributes(&about, data), "cudaPointerGetAttributes", rank(), device());
        });
        if (about.type == cudaMemoryTypeManaged) return;
        if (about.type == cudaMemoryTypeDevice && about.device == device()) {
            for (int peer = 0; peer < size(); ++peer)
                if (const int other = side_->team->device_of(peer);
                    other != device() && side_->team->leader(peer) == peer)
                    require_opened_to(other, which, data, where, rank());
            return;
        }
        if (about.type == cudaMemoryTypeDevice)
            throw error(errc::invalid_argument, where.operation, rank(), -1,
                        "%s is memory of CUDA device %d, this rank's device is %d; pass memory of the rank's device",
                        which, about.device, device());
        throw error(errc::invalid_argument, where.operation, rank(), -1,
                    "%s is host memory; pass memory of CUDA device %d, or call over ddl::threads", which, device());
    }

    /// The allocation.
    std::span<const std::byte> reachable_around(std::span<const std::byte> buffer) const {
        return allocation_around(buffer);
    }

    entry arrive(const call_site& where) {
        side_->heed_fault(where);
        const device_scope scope{device(), rank()};
        entry mine{};
        mine.captured = is_captured(&mine.capture);
        mine.ready = side_->team->ready(rank(), mine.captured);
        require_cuda(cudaEventRecord(mine.ready, stream_), "cudaEventRecord", rank(), device());
        return mine;
    }

    /// The lowest rank of a GPU launches for all ranks there, when their streams and the team's last call have come as far.
    template <class Body>
    void launch(const Body& body, grid_shape shape, const entry* entries, const call_site& where) {
        static_assert(
            sizeof(Body) + sizeof(device_launch) <= most_arguments,
            "ddl: this CUDA hands a kernel 4 KiB; specialise ddl::grid_limits_of<ddl::cuda_peer> with a table of "
            "2048 bytes, or take CUDA 12.1 or later");
        apart_ = captured_apart(entries);
        if (apart_ >= 0 || side_->team->leader(rank()) != rank()) return;
        side_->or_give_up(where, [&] { launch_for_all(body, shape, entries, where); });
    }

    void follow(const entry* entries, const call_site&) {
        const int leader = side_->team->leader(rank());
        if (apart_ >= 0 || leader == rank()) return;
        const device_scope scope{device(), rank()};
        await_event(side_->team->done(leader, entries[rank()].captured));
    }

    void settle(const call_site& where) {
        if (apart_ >= 0)  // thrown here, where the call is over on the host: the communicator is as good as before
            throw error(errc::invalid_argument, where.operation, rank(), 1,
                        "rank %d is under another stream capture, or under none; capture on no rank or on all, in one "
                        "capture on all ranks of a GPU",
                        apart_);
        if (blocks_) await_stream(where, [] {});
    }

    void retreat() const noexcept {
        if (side_->host.has_failed()) side_->team->give_up(rank());  // a peer's grid may come yet, and wait for ours
        side_->retreat();
    }

    class deferral;
    /// For nonblocking calls: what the caller has put on the stream comes before. In the caller's thread; see `start`.
    deferral defer();

private:
    /// Bytes of arguments that a kernel may take.
    static constexpr std::size_t most_arguments = CUDART_VERSION < 12010 ? 4096 : 32764;

    cuda_peer(threads&& host, std::shared_ptr<cuda_team> team)
        : side_{new cuda_side{std::move(team), std::move(host)}} {}
    cuda_peer(std::shared_ptr<cuda_side> side, cudaStream_t stream, bool blocks) noexcept
        : side_{std::move(side)}, stream_{stream}, blocks_{blocks} {}

    bool is_captured(unsigned long long* id = nullptr) const {
        cudaStreamCaptureStatus capture{};
        require_cuda(cudaStreamGetCaptureInfo(stream_, &capture, id), "cudaStreamGetCaptureInfo", rank(), device());
        return capture != cudaStreamCaptureStatusNone;
    }
    void await_event(cudaEvent_t event) {
        require_cuda(cudaStreamWaitEvent(stream_, event, 0), "cudaStreamWaitEvent", rank(), device());
    }

    /// The first rank that is not captured as rank 0 and the leader of its GPU are; -1 if there is none. All ranks look at all
    /// GPUs, so that they agree before any of them launches: grids of some GPUs alone would wait for a graph, which may never
    /// come. Captures are told by their ids, for streams say little: those of cudaStreamPerThread have one handle, and several may
    /// belong to one capture.
    int captured_apart(const entry* entries) const noexcept {
        for (int peer = 0; peer < size(); ++peer) {
            const entry& theirs = entries[peer];
            const entry& leading = entries[side_->team->leader(peer)];
            if (theirs.captured != entries[0].captured || (theirs.captured && theirs.capture != leading.capture))
                return peer;
        }
        return -1;
    }

    template <class Body>
    void launch_for_all(const Body& body, grid_shape shape, const entry* entries, const call_site& where) {
        cuda_team& team = *side_->team;
        const entry& mine = entries[rank()];
        const device_scope scope{device(), rank()};
        for (int peer = 0; peer < size(); ++peer)
            if (team.device_of(peer) == device() && peer != rank()) await_event(entries[peer].ready);
        // calls of one team follow each other: those of one capture, and those outside
        if (!mine.captured || team.last_capture(rank()) == mine.capture) await_event(team.done(rank(), mine.captured));
        device_launch how;
        int companions = 0;
        for (int peer = 0; peer < size(); ++peer)
            if (team.device_of(peer) == device()) how.ranks[companions++] = static_cast<unsigned char>(peer);
        how.faults = team.faults();
        how.nanoseconds = static_cast<std::uint64_t>(std::min(limit().seconds, 1e9) * 1e9);
        Body argument = body;
        void* arguments[] = {&argument, &how};
        const dim3 blocks{static_cast<unsigned>(shape.blocks), static_cast<unsigned>(companions)};
        // in a graph they are the caller's to order
        const bool in_turn = team.spans_devices() && !mine.captured;
        const cudaEvent_t last = in_turn ? cuda_team::last_in_turn(device(), rank()) : nullptr;
        if (in_turn) {
            const bool has_turn = team.turns().enter(limit());
            if (!has_turn && team.turns().is_abandoned())
                throw error(errc::broken, where.operation, rank(), where.round,
                            "another rank of this team has failed; see its own error");
            if (!has_turn)
                throw error(errc::timeout, where.operation, rank(), where.round,
                            "another team of these GPUs has not launched within %g s; see its own error",
                            limit().seconds);
            await_event(last);
        }
        // the driver refuses what would not run all at once: blocks that wait for each other never wait for a place
        require_cuda(cudaLaunchCooperativeKernel(launchable(&run_on_device<Body>), blocks,
                                                 dim3{static_cast<unsigned>(shape.threads)}, arguments, 0, stream_),
                     "cudaLaunchCooperativeKernel", rank(), device());
        const cudaError_t recorded = cudaEventRecord(team.done(rank(), mine.captured), stream_);
        if (recorded != cudaSuccess && !mine.captured) {
            const error why = cuda_failure(recorded, "cudaEventRecord", rank(), device());
            fail(why.code(), why.what());
            quietly(cudaStreamSynchronize(stream_));  // no event says when this grid has ended
        }
        require_cuda(recorded, "cudaEventRecord", rank(), device());
        if (mine.captured) team.last_capture(rank()) = mine.capture;
        if (!in_turn) return;
        require_cuda(cudaEventRecord(last, stream_), "cudaEventRecord", rank(), device());
        team.turns().leave(team.leaders_below(rank()));
    }

    /// Waits for the stream when `prepare` has given it what else it is to wait for.
    template <class Prepare>
    void await_stream(const call_site& where, const Prepare& prepare) {
        const device_scope scope{device(), rank()};
        try {
            side_->or_give_up(where, prepare);
            side_->judge(cudaStreamSynchronize(stream_), "cudaStreamSynchronize", where);
        } catch (...) {
            side_->retreat();
            throw;
        }
    }

    std::shared_ptr<cuda_side> side_;
    cudaStream_t stream_ = nullptr;
    bool blocks_ = true;
    int apart_ = -1;  // the rank that keeps the call that was entered from being launched
};

/// A nonblocking call of a `cuda_peer`: an event on its stream says where it stands. None under capture, where nothing runs.
/// Copies are one call. The communicator outlives them.
class cuda_peer::deferral {
public:
    explicit deferral(const cuda_peer& ranks) : side_{ranks.side_.get()}, stream_{ranks.stream_} {
        if (!ranks.is_captured()) moment_.emplace(stream_, side_->device(), rank());
        else if (stream_ == nullptr || stream_ == cudaStreamPerThread)  // another one to the thread that carries it out
            throw error(errc::invalid_argument, name, rank(), -1,
                        "a default stream is under capture, and another thread carries out nonblocking calls; capture "
                        "a stream that was created, or call without a request");
    }
    /// The stream of the thread that carries the call out may be another one than the caller's, by the same handle.
    void begin() const {
        keep_device(side_->device(), rank());
        if (moment_) moment_->follow(stream_);
    }
    void end() const {
        if (moment_) moment_->mark(stream_);
    }
    /// Does not block: a failure is thrown when no grid reaches the buffers any more, or has for too long.
    bool done() {
        if (!moment_) return true;
        if (!failure_) try {
                const cudaError_t status = moment_->query();
                if (status == cudaErrorNotReady) return false;
                side_->judge(status, "cudaEventQuery", call_site{"wait"});
                return true;
            } catch (...) {
                failure_ = std::current_exception();
                leaving_.emplace(side_->patience_of_leaver());
            }
        if (side_->is_reached() && !leaving_->expired()) return false;
        std::rethrow_exception(failure_);
    }

private:
    int rank() const noexcept { return side_->host.rank(); }

    cuda_side* side_;  // which carries this out before it goes
    cudaStream_t stream_;
    std::optional<cuda_moment> moment_;
    std::exception_ptr failure_ = nullptr;
    std::optional<patience> leaving_{};
};

inline cuda_peer::deferral cuda_peer::defer() { return deferral{*this}; }

static_assert(grid_transport<cuda_peer>);

}  // namespace ddl
