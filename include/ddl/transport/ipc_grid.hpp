// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/call_queue.hpp>
#include <ddl/transport/grid_transport.hpp>
#include <ddl/transport/ipc_buffers.hpp>
#include <ddl/transport/patience.hpp>

#include <memory>

namespace ddl {

/// Ranks whose devices belong to processes of one host: a transport of grids over a memory transport and a kind of device.
///
/// A rank tells where its buffers are beside its notice; its peers open them, once, and all agree that they could before any
/// grid is launched. Where each rank has a GPU of its own, grids meet as those of one process do. Where ranks share a GPU
/// nothing says that their grids run at the same time, so no block waits: each rank waits on the host until its stream has
/// come to the call, folds its share when all ranks have, and leaves when all have folded.
template <memory_transport Host, ipc_device Device>
class ipc_grid {
public:
    static constexpr const char* name = Device::name;
    using stream_type = typename Device::stream;
    struct entry {};  // what there is to tell does not fit a notice

    /// All ranks of `host`, which outlives this, make one. Blocks. Throws on all ranks if one cannot take part.
    template <class... Arguments>
    explicit ipc_grid(Host& host, Arguments&&... of_device)
        : side_{new rank_side{host, std::forward<Arguments>(of_device)...}} {}

    int rank() const noexcept { return side_->host.rank(); }
    int size() const noexcept { return side_->host.size(); }
    Device& device() const noexcept { return side_->team.device(); }
    stream_type stream() const noexcept { return stream_; }

    /// This communicator for calls that enqueue on `stream`. They return when all ranks have enqueued theirs; where ranks share
    /// a GPU, when they are done. It refers to this one.
    ipc_grid on(stream_type stream) const noexcept { return {side_, stream, false}; }
    /// The same with the stream of an execution policy, as `thrust::cuda::par.on(stream)` is.
    template <class Policy>
        requires requires(Policy& policy) {
            { get_stream(policy) } -> std::same_as<stream_type>;
        }
    ipc_grid on(Policy policy) const {
        return on(get_stream(policy));
    }

    /// Waits until all that was enqueued has ended, and throws what a grid left. Blocks.
    void wait() {
        const call_site where{"wait"};
        device().require_free(stream_, where, rank());
        queue().drain();
        await_or_fail(where, [&] { return device().has_caught_up(stream_) && device().is_idle(); });
    }

    /// Closes what was opened of peers' buffers, so that until the next call no rank holds on to memory of another. For those
    /// who free memory and go on. All ranks call it; blocks.
    void forget() {
        const call_site where{"forget"};
        queue().drain();
        await_grid(where);
        side_->buffers.close_all();
        side_->host.exchange(0, where);
    }

    void set_timeout(timeout limit) noexcept { side_->host.set_timeout(limit); }
    timeout limit() const noexcept { return side_->host.limit(); }

    // what the library asks of a communicator
    void begin(const call_site& where) { side_->host.begin(where); }
    call_queue& queue() noexcept { return side_->host.queue(); }
    void fail(errc code, const char* words) noexcept { side_->host.fail(code, words); }
    std::byte* scratch(std::size_t bytes, scratch_for use) { return side_->host.scratch(bytes, use); }

    // what it asks of a transport of grids
    Host& host() noexcept { return side_->host; }
    std::uint64_t* const* windows() const noexcept { return side_->team.windows(); }
    int most_blocks() const noexcept { return side_->team.most_blocks(); }
    bool blocks_meet() const noexcept { return side_->team.together(); }

    void require_reachable(const char* which, const void* data, std::size_t bytes, const call_site& where) {
        try {
            device().require_free(stream_, where, rank());
            if (bytes != 0) side_->buffers.tell(which, data, bytes, where);
        } catch (...) {
            side_->buffers.untell();
            throw;
        }
    }

    /// The allocation that was told.
    std::span<const std::byte> reachable_around(std::span<const std::byte> buffer) const noexcept {
        return side_->buffers.told_around(buffer);
    }

    entry arrive(const call_site& where) {
        try {
            heed_fault(where);
            if (!blocks_meet()) await_stream(where);
        } catch (...) {
            side_->buffers.untell();
            throw;
        }
        return {};
    }
    void publish_buffers() { side_->buffers.publish(); }

    /// Opens the buffers of all ranks. All call it once they have told of them. Throws on all ranks or on none.
    void open_buffers(const call_site& where) {
        or_fail(where, [&] { side_->buffers.open_all(where, [&] { await_grid(where); }); });
    }
    std::uint64_t translated(int peer, std::uint64_t address) noexcept {
        return side_->buffers.translated(peer, address);
    }

    /// Returns when all ranks have launched, or folded. If that fails, no grid of this rank runs any more: peers whose buffers it
    /// reached may leave the call.
    template <class Body>
    void launch(const Body& body, grid_shape shape, const entry*, const call_site& where) {
        try {
            or_fail(where, [&] {
                host().listen(where);  // who has waited for us for too long has left, and its buffers with it
                device().launch(body, shape, ipc_launch<stream_type>{stream_, rank(), blocks_meet(), limit()});
                if (!blocks_meet()) await_grid(where);
                side_->buffers.meet(where);
            });
        } catch (...) {
            device().give_up(rank());  // our grid would wait for peers that do not come
            side_->await_quietly(limit_of_leaver);
            throw;
        }
    }

    void follow(const entry*, const call_site&) const noexcept {}
    void settle(const call_site& where) {
        if (blocks_) await_grid(where);
    }

    /// For nonblocking calls: what the caller has put on the stream comes before, and the thread that carries them out waits for
    /// the grid. See `start`.
    auto defer() {
        struct deferral {
            ipc_grid* ranks;
            decltype(std::declval<Device&>().mark(stream_type{})) before;
            void begin() const { before.follow(ranks->stream_); }
            void end() const { ranks->await_grid(call_site{"wait"}); }
            bool done() const noexcept { return true; }
        };
        return deferral{this, device().mark(stream_)};
    }

private:
    /// This rank's side, which outlives the handles that `on` gives.
    struct rank_side {
        template <class... Arguments>
        explicit rank_side(Host& wire, Arguments&&... of_device)
            : host{wire}, team{wire, std::forward<Arguments>(of_device)...}, buffers{wire, team} {}
        ~rank_side() {
            host.queue().drain();    // which outlives this, and its calls do not
            await_quietly(endless);  // what peers' memory is closed under must have ended; of lost peers it is told
        }

        /// Waits for the device. A peer that has ended, or failed, may have done its part before; but if our grid does not end
        /// soon after, it is told to stop.
        template <class Ready>
        bool await(timeout limit, Ready ready) {
            patience waiting{limit};
            std::array<double, grid_window::most_ranks> lost_since{};  // who ended first is to blame
            double failed_since = 0;
            while (!ready()) {
                if (!waiting.pause()) continue;
                if (waiting.expired()) return false;
                if (!team.together()) continue;
                if (failed_since == 0 && host.has_failed()) failed_since = now();
                if (failed_since != 0 && now() - failed_since > grace)
                    team.device().give_up((host.rank() + 1) % host.size());  // whoever it was has said so
                for (int peer = 0; peer < host.size(); ++peer) {
                    if (!host.lost(peer)) continue;
                    double& since = lost_since[static_cast<std::size_t>(peer)];
                    if (since == 0) since = now();
                    if (now() - since > grace) team.device().give_up(peer);
                }
            }
            return true;
        }
        void await_quietly(timeout limit) noexcept {
            try {
                await(limit, [&] { return team.device().is_idle(); });
            } catch (...) {  // a device that fails runs nothing any more
            }
        }

        Host& host;
        ipc_team<Host, Device> team;
        ipc_buffers<Host, Device> buffers;
    };

    ipc_grid(std::shared_ptr<rank_side> side, stream_type stream, bool blocks) noexcept
        : side_{std::move(side)}, stream_{stream}, blocks_{blocks} {}

    void await_stream(const call_site& where) {
        await_or_fail(where, [&] { return device().has_caught_up(stream_); });
    }
    void await_grid(const call_site& where) {
        await_or_fail(where, [&] { return device().is_idle(); });
    }
    /// A device that fails is told to the peers, whose grids would wait for ours.
    template <class Ready>
    void await_or_fail(const call_site& where, Ready ready) {
        or_fail(where, [&] { side_->await(endless, ready); });
        heed_fault(where);
    }
    /// What fails in `work` is told to the peers.
    template <class Work>
    void or_fail(const call_site& where, const Work& work) {
        if (const auto failure = failure_of(where, rank(), work)) {
            fail(failure->code(), failure->what());
            throw error(*failure);
        }
    }

    void heed_fault(const call_site& where) {
        const int missed = device().missed();
        if (missed < 0) return;
        if (missed == rank())
            return host().listen(where);  // stopped by ourselves, when a call had failed: of which that tells
        // grids of peers that met ours before it gave up use its buffers; none begins later, but nothing here tells of their end
        for (patience waiting{timeout{grace}}; !waiting.pause() || !waiting.expired();) {}
        host().listen(where);  // who did not come may have said why
        const error failure = host().lost(missed) ? error(errc::peer_lost, where.operation, rank(), where.round,
                                                          "rank %d has ended; start the job again", missed)
                                                  : grid_did_not_arrive(where, rank(), missed, limit().seconds);
        fail(failure.code(), failure.what());
        throw failure;
    }

    /// Seconds for what a peer has stored before it ended to be seen, or for what it still stores.
    static constexpr double grace = 1;
    static constexpr timeout endless{1e18};  // grids have deadlines of their own, and the caller's work is the caller's

    std::shared_ptr<rank_side> side_;
    stream_type stream_{};
    bool blocks_ = true;
};

}  // namespace ddl
