// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/threads.hpp>

#include <thrust/execution_policy.h>

#include <concepts>
#include <memory>

namespace ddl {

/// What `cuda_peer` is where Thrust's device system is one of the host's: ranks that are threads, for the same program.
///
/// `ddl::host_peer::run(4, [](ddl::host_peer& team) { ... })` runs the body on four threads. Memory of the device is the host's,
/// and all of it is taken. Every call blocks, that over `on(policy)` too: `wait` is there for programs that need it elsewhere.
/// A copy stands for the same communicator, and ends before it. Carries what `threads` does.
class host_peer {
public:
    static constexpr const char* name = "host_peer";

    /// Runs `body(team)` on `ranks` new threads and waits for all of them, as `threads::run` does.
    template <class Body>
    static void run(int ranks, Body body, timeout limit = timeout{}) {
        threads::run(
            ranks,
            [&](threads& team) {
                host_peer mine{std::make_shared<threads>(std::move(team))};
                try {
                    body(mine);
                } catch (...) {
                    mine.fail(errc::peer_lost, "a thread of the team left with an exception");
                    throw;
                }
            },
            limit);
    }

    host_peer(const host_peer&) = default;
    host_peer& operator=(const host_peer&) = default;
    ~host_peer() {
        if (side_.use_count() == 1) queue().finish();  // while calls, which refer to it, find it whole
    }

    int rank() const noexcept { return side_->rank(); }
    int size() const noexcept { return side_->size(); }
    /// The number of the rank's device: the host is the only one.
    static constexpr int device() noexcept { return 0; }

    /// This communicator for calls under an execution policy of the device system. It is used as it is: nothing is enqueued.
    template <class Policy>
    host_peer on(const Policy&) const noexcept {
        static_assert(
            std::convertible_to<Policy, thrust::device_system_tag>,
            "ddl: this is no execution policy of Thrust's device system; write team.on(thrust::device), or pass team");
        return *this;
    }
    /// Returns at once: every call has ended where it was made.
    void wait() const noexcept {}

    /// A team of the ranks that pass the same `color`, ordered by `key`, then by rank. All ranks call it; blocks.
    host_peer split(int color, int key) { return {std::make_shared<threads>(side_->split(color, key))}; }

    /// Sets how long a wait for a peer may take.
    void set_timeout(timeout limit) noexcept { side_->set_timeout(limit); }
    timeout limit() const noexcept { return side_->limit(); }

    // what the library asks of a communicator
    void begin(const call_site& where) { side_->begin(where); }
    call_queue& queue() noexcept { return side_->queue(); }
    void fail(errc code, const char* words) noexcept { side_->fail(code, words); }
    std::byte* scratch(std::size_t bytes, scratch_for use) { return side_->scratch(bytes, use); }

    // what it asks of ranks that share memory
    notice& notice_of(int peer) const noexcept { return side_->notice_of(peer); }
    void post() noexcept { side_->post(); }
    void await_notice(int peer, const call_site& where) { side_->await_notice(peer, where); }
    std::uint64_t advance() noexcept { return side_->advance(); }
    void await(int peer, std::uint64_t step, const call_site& where) { side_->await(peer, step, where); }
    bool lost(int peer) const noexcept { return side_->lost(peer); }
    void listen(const call_site& where) { side_->listen(where); }
    static constexpr std::size_t slot_bytes() noexcept { return threads::slot_bytes(); }
    std::byte* slot(int peer) const noexcept { return side_->slot(peer); }
    std::byte* window(int peer) const noexcept { return side_->window(peer); }
    std::size_t window_bytes() const noexcept { return side_->window_bytes(); }
    void turn_staging() noexcept { side_->turn_staging(); }
    void turn_alike() noexcept { side_->turn_alike(); }
    std::uint64_t turned() const noexcept { return side_->turned(); }
    std::byte* staging(int peer) const noexcept { return side_->staging(peer); }
    std::byte* staging(int peer, std::uint64_t turned) const noexcept { return side_->staging(peer, turned); }
    std::size_t staging_bytes() const noexcept { return side_->staging_bytes(); }
    std::size_t cache_bytes() const noexcept { return side_->cache_bytes(); }
    std::uint64_t address_of(const void* data, std::size_t bytes) const noexcept {
        return side_->address_of(data, bytes);
    }
    std::byte* mapped(int peer, std::uint64_t address, std::size_t bytes) const noexcept {
        return side_->mapped(peer, address, bytes);
    }

private:
    host_peer(std::shared_ptr<threads> side) noexcept : side_{std::move(side)} {}

    std::shared_ptr<threads> side_;
};

static_assert(memory_transport<host_peer>);

}  // namespace ddl
