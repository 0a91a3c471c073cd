// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/grid_limits.hpp>
#include <ddl/executor/memory.hpp>
#include <ddl/executor/refusal.hpp>
#include <ddl/transport/grid_transport.hpp>
#include <ddl/transport/grid_window.hpp>

#include <array>
#include <cstring>

namespace ddl {

/// One call over grids: what a rank tells of it, its launches, and how it is left. `Told` goes to all ranks.
template <class Checking, class Told, grid_transport Transport>
class grid_call {
public:
    /// The host sides compare the call. `tell(where)` prepares this rank's side and says what to tell; if that fails, the others
    /// learn it, and the communicator is as good as before.
    template <class Tell>
    grid_call(Transport& ranks, const call& ours, Tell tell)
        : ranks_{ranks}, where_{to_string(ours.what), 0}, told_{prepare(tell)},
          here_{ranks.host(), with_limits(ours), Checking::compares}, empty_{ours.count == 0} {
        publish_buffers(ranks);
        try {
            here_.announce(&told_, sizeof told_);
        } catch (const error& failure) {
            if (failure.code() != errc::mismatch)
                retreat(ranks);  // a peer may have launched; who disagrees launches nothing
            throw;
        }
        if (empty_) return;
        for (int peer = 0; peer < ranks.size(); ++peer) entries_[static_cast<std::size_t>(peer)] = of(peer).side;
    }

    /// What a peer told. As long as nobody has left the call.
    Told told(int peer) const { return of(peer).words; }
    /// An address that it told, as grids of this rank reach it. In `launches`.
    std::uint64_t reached(int peer, std::uint64_t address) const { return translated(ranks_, peer, address); }

    void set_windows(grid_windows& places) const {
        places.size = ranks_.size();
        for (int peer = 0; peer < places.size; ++peer) places.windows[peer] = ranks_.windows()[peer];
    }

    /// Starts a grid of this rank. All ranks start the same ones, in the same order.
    template <class Body>
    void launch(const Body& body, grid_shape shape) {
        ranks_.launch(body, shape, entries_.data(), where_);
    }

    /// Runs `launches`, if there is anything to do, and leaves the call: blocks until the grids have ended where the transport
    /// does; else it returns when all ranks have launched. Nobody leaves before, not even by an exception: one may launch for
    /// others.
    template <class Launches>
    void run(const Launches& launches) {
        if (empty_) return here_.end();
        try {
            here_.share([&] {
                open_buffers(ranks_, where_);
                launches();
            });
            ranks_.follow(entries_.data(), where_);
        } catch (...) {
            retreat(ranks_);
            throw;
        }
        here_.end();
        ranks_.settle(where_);
    }

private:
    using entry = typename Transport::entry;
    struct carried {
        Told words;
        entry side;
    };
    static_assert(sizeof(carried) <= notice::room);

    static call with_limits(call ours) noexcept {
        ours.limits = sound_grid_limits<Transport>().fingerprint();
        return ours;
    }

    template <class Tell>
    carried prepare(Tell tell) {
        auto& host = ranks_.host();
        host.queue().drain();
        return prepared<Checking>(host, [&]() -> carried {
            const Told words = tell(where_);
            return {words, ranks_.arrive(where_)};
        });
    }

    carried of(int peer) const {
        carried theirs;
        std::memcpy(&theirs, here_.carried(peer), sizeof theirs);
        return theirs;
    }

    Transport& ranks_;
    call_site where_;
    carried told_;
    memory_call<std::remove_reference_t<decltype(std::declval<Transport&>().host())>> here_;
    std::array<entry, grid_window::most_ranks> entries_;
    bool empty_;
};

}  // namespace ddl
