// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/ipc_device.hpp>

#include <algorithm>
#include <vector>

namespace ddl {

/// Memory of peers that this process has opened, kept open for later calls: to open costs more than a short collective.
///
/// An allocation is known by its peer, its place there and its id. What overlaps a new one has been freed, and is closed. At
/// most `most` of a peer stay open, those used last. Whoever opens or closes sees to it that no grid of this process uses them.
template <ipc_device Device>
class ipc_mappings {
public:
    static constexpr std::size_t most = 64;

    explicit ipc_mappings(Device& device) noexcept : device_{&device} {}
    ipc_mappings(const ipc_mappings&) = delete;
    ipc_mappings& operator=(const ipc_mappings&) = delete;
    ~ipc_mappings() { close_all(); }

    /// Where the memory is here; null if it has to be opened.
    std::byte* find(int peer, const exported_memory& what) noexcept {
        for (mapping& each : open_)
            if (each.peer == peer && each.what.id == what.id && each.what.first == what.first &&
                each.what.bytes == what.bytes && each.what.how == what.how && (what.id != 0 || each.used == call_)) {
                each.used = call_;
                return each.here;
            }
        return nullptr;
    }

    std::byte* open(int peer, const exported_memory& what, const descriptor& file = {}) {
        close_if([&](const mapping& old) {
            return old.peer == peer && old.what.first < what.first + what.bytes &&
                   what.first < old.what.first + old.what.bytes;
        });
        const auto of_peer = [&](const mapping& each) { return each.peer == peer; };
        if (static_cast<std::size_t>(std::count_if(open_.begin(), open_.end(), of_peer)) >= most) {
            std::uint64_t oldest = call_;
            for (const mapping& each : open_)
                if (of_peer(each)) oldest = std::min(oldest, each.used);
            close_if([&](const mapping& each) { return of_peer(each) && each.used == oldest && oldest != call_; });
        }
        open_.reserve(open_.size() + 1);
        std::byte* const here = device_->open(what, file);
        open_.push_back({peer, what, here, call_});
        return here;
    }

    /// A new call: what was used in earlier ones may be closed.
    void begin_call() noexcept { ++call_; }

    void close_all() noexcept {
        close_if([](const mapping&) { return true; });
    }
    std::size_t size() const noexcept { return open_.size(); }

private:
    struct mapping {
        int peer;
        exported_memory what;
        std::byte* here;
        std::uint64_t used;  // in which call last
    };

    template <class Predicate>
    void close_if(Predicate leaves) noexcept {
        std::erase_if(open_, [&](const mapping& each) {
            if (!leaves(each)) return false;
            device_->close(each.here, each.what);
            return true;
        });
    }

    Device* device_;
    std::vector<mapping> open_;
    std::uint64_t call_ = 0;
};

}  // namespace ddl
