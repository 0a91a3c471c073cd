// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/ipc_team.hpp>

#include <bitset>
#include <new>
#include <span>
#include <utility>

namespace ddl {

/// The buffers of a call of an `ipc_grid`: told to the peers, opened by them, and where they then lie.
///
/// Each rank has a page for it in its host's staging, published with its notice. In `open_all` ranks agree that all could be
/// opened: it throws on all of them or on none. Files are sent to those who ask for them, a few at a time,
/// which costs two meetings more each time.
template <class Host, ipc_device Device>
class ipc_buffers {
public:
    ipc_buffers(Host& host, ipc_team<Host, Device>& team) : host_{&host}, team_{&team}, opened_{team.device()} {
        if (sizeof(page) > host.staging_bytes())
            throw error(errc::invalid_argument, Device::name, host.rank(), -1,
                        "a call needs %zu bytes of staging, the host's communicator has %zu; pass a ddl::shared_memory",
                        sizeof(page), host.staging_bytes());
    }

    /// A buffer of the call that is about to be entered. Throws if peers cannot come to it; then there is no call.
    void tell(const char* which, const void* data, std::size_t bytes, const call_site& where) {
        const exported_memory what = device().identify(which, data, bytes, where, rank());
        for (const exported_memory& each : told_)
            if (each.first == what.first && each.id == what.id) return;
        if (told_.size() == page::most)
            throw error(errc::invalid_argument, where.operation, rank(), -1,
                        "tensors of more than %zu allocations; pass fewer, or parts of larger allocations", page::most);
        told_.push_back(exported(what));
    }
    /// The memory that was told with a buffer in it: other buffers there need not be.
    std::span<const std::byte> told_around(std::span<const std::byte> buffer) const noexcept {
        const auto place = reinterpret_cast<std::uintptr_t>(buffer.data());
        for (const exported_memory& each : told_)
            if (each.holds(place)) return {buffer.data() - (place - each.first), static_cast<std::size_t>(each.bytes)};
        return buffer;
    }
    /// There will be no such call.
    void untell() noexcept { told_.clear(); }
    /// Writes this rank's page. Before its notice.
    void publish() {
        host_->turn_staging();
        page& mine = *new (host_->staging(rank())) page;
        std::copy(told_.begin(), told_.end(), mine.buffers);
        mine.count = static_cast<std::uint32_t>(told_.size());
        told_.clear();
    }

    /// Opens what is new of all peers. All ranks call it; `let_idle()` returns when no grid of this rank runs.
    template <class LetIdle>
    void open_all(const call_site& where, LetIdle let_idle) {
        opened_.begin_call();
        page& mine = page_of(rank());
        std::optional<error> failure;
        const auto attempt = [&](const auto& work) {
            if (!failure) failure = failure_of(where, rank(), work);
            if (failure) mine.failed = fault{failure->code(), failure->what()};
        };
        attempt([&] {
            bool idle = false;  // grids of earlier calls may use what makes room
            for (int peer = 0; peer < host_->size(); ++peer)
                for (std::uint32_t i = 0; peer != rank() && i < page_of(peer).count; ++i) {
                    const exported_memory& what = page_of(peer).buffers[i];
                    if (opened_.find(peer, what) != nullptr) continue;
                    if (!std::exchange(idle, true)) let_idle();
                    if (what.how == exported_memory::by_handle) opened_.open(peer, what);
                    else {
                        if (std::exchange(mine.wants, 1) == 0) std::fill_n(mine.wanted, host_->size(), 0);
                        mine.wanted[static_cast<std::size_t>(peer)][i] = true;
                    }
                }
        });
        meet(where);
        std::size_t most = 0;  // files of a rank, the same on all ranks
        for (int from = 0; from < host_->size(); ++from) most = std::max(most, wanted_of(from));
        for (std::size_t first = 0; first < most; first += under_way) {
            attempt([&] { send_files(first); });
            meet(where);
            attempt([&] { open_files(where, first + under_way >= most); });
            meet(where);
        }
        for (int peer = 0; peer < host_->size(); ++peer) {
            const fault& theirs = page_of(peer).failed;
            if (theirs.code == errc{}) continue;
            host_->fail(theirs.code, theirs.words);
            throw failure ? error(*failure) : peer_gave_up(theirs, where, rank());
        }
    }

    /// An address of `peer`, here; 0 if it is in none of its buffers, as that of no elements may be.
    std::uint64_t translated(int peer, std::uint64_t address) noexcept {
        if (peer == rank()) return address;
        const page& told = page_of(peer);
        for (std::uint32_t i = 0; i < told.count; ++i)
            if (told.buffers[i].holds(address))
                return reinterpret_cast<std::uintptr_t>(opened_.find(peer, told.buffers[i])) +
                       (address - told.buffers[i].first);
        return 0;
    }

    void close_all() noexcept { opened_.close_all(); }
    std::size_t open() const noexcept { return opened_.size(); }

    /// Returns when all ranks have called it.
    void meet(const call_site& where) {
        const std::uint64_t reached = host_->advance();
        for (int peer = 0; peer < host_->size(); ++peer) host_->await(peer, reached, where);
    }

private:
    struct page {
        static constexpr std::size_t most = 1024;
        page() noexcept {}
        std::uint32_t count;
        // written after the notices:
        int wants = 0;
        fault failed;
        // lest it wipes what nobody reads:
        union {
            std::bitset<most> wanted[grid_window::most_ranks];  // of each rank: whose files are needed, if `wants`
        };
        union {
            exported_memory buffers[most];
        };
    };
    static constexpr std::size_t under_way = 16;  // files of a rank

    int rank() const noexcept { return host_->rank(); }
    Device& device() noexcept { return team_->device(); }
    page& page_of(int peer) noexcept { return *std::launder(reinterpret_cast<page*>(host_->staging(peer))); }

    /// Adds the handle of our own memory.
    exported_memory exported(exported_memory what) {
        if (what.how != exported_memory::by_handle) return what;
        for (const exported_memory& each : exports_)
            if (what.id != 0 && each.id == what.id && each.first == what.first) return each;
        device().export_handle(what);
        if (exports_.size() == ipc_mappings<Device>::most) exports_.clear();
        exports_.push_back(what);
        return what;
    }

    bool wants(int peer, int from, std::uint32_t index) noexcept {
        const page& theirs = page_of(peer);
        return index < page_of(from).count && theirs.wants != 0 && theirs.wanted[static_cast<std::size_t>(from)][index];
    }
    /// How many files a rank is to send.
    std::size_t wanted_of(int from) noexcept {
        std::size_t files = 0;
        for (int peer = 0; peer < host_->size(); ++peer)
            if (page_of(peer).wants != 0) files += page_of(peer).wanted[static_cast<std::size_t>(from)].count();
        return files;
    }

    /// Sends the files from the one of number `first` on.
    void send_files(std::size_t first) {
        std::size_t number = 0;
        for (std::uint32_t i = 0; i < page_of(rank()).count; ++i)
            for (int peer = 0; peer < host_->size(); ++peer)
                if (wants(peer, rank(), i) && number++ - first < under_way)  // one below `first` wraps around
                    team_->post().send(team_->files_of(peer), i, device().export_file(page_of(rank()).buffers[i]));
    }

    /// Opens those that have come. If they were the `last`, none may be missing.
    void open_files(const call_site& where, bool last) {
        while (const auto parcel = team_->post().receive()) {
            const auto [from, index] = parcel->what;
            if (from < 0 || from >= host_->size() || !wants(rank(), from, index)) continue;
            if (const exported_memory& what = page_of(from).buffers[index]; opened_.find(from, what) == nullptr)
                opened_.open(from, what, parcel->file);
        }
        for (int peer = 0; last && peer < host_->size(); ++peer)
            for (std::uint32_t i = 0; i < page_of(peer).count; ++i)
                if (wants(rank(), peer, i) && opened_.find(peer, page_of(peer).buffers[i]) == nullptr)
                    throw error(errc::system, where.operation, rank(), where.round,
                                "the descriptor of memory of rank %d did not come; see the error of that rank", peer);
    }

    Host* host_;
    ipc_team<Host, Device>* team_;
    ipc_mappings<Device> opened_;
    std::vector<exported_memory> told_;
    std::vector<exported_memory> exports_;  // handles that need not be asked for again
};

}  // namespace ddl
