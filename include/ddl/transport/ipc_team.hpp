// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/fault.hpp>
#include <ddl/transport/file_post.hpp>
#include <ddl/transport/grid_window.hpp>
#include <ddl/transport/ipc_mappings.hpp>

#include <optional>

namespace ddl {

/// What a rank of an `ipc_grid` knows of the others: their windows, opened here, where to send them files, and whether they
/// have a GPU each.
///
/// Ranks meet over `Host`, a memory transport with an `exchange` of words. If one of them cannot take part, all throw, and
/// the host's communicator is as good as before.
template <class Host, ipc_device Device>
class ipc_team {
public:
    template <class... Arguments>
    explicit ipc_team(Host& host, Arguments&&... of_device) {
        const call_site where{Device::name};
        const auto rank = static_cast<std::size_t>(host.rank());
        greeting mine;
        std::optional<error> failure = failure_of(where, host.rank(), [&] {
            if (host.size() > grid_window::most_ranks)
                throw error(errc::invalid_argument, Device::name, host.rank(), -1, "%d ranks; ask for 1 to %d",
                            host.size(), grid_window::most_ranks);
            device_.emplace(std::forward<Arguments>(of_device)...);
            windows_.emplace(*device_);
            post_.emplace(host.rank());
            std::byte* const window = device_->allocate_window(grid_window::bytes(host.size()));
            mine.gpu = device_->identity();
            mine.most_blocks = device_->most_blocks();
            mine.files = post_->address();
            mine.window = device_->identify("the window", window, grid_window::bytes(host.size()), where, host.rank());
            if (mine.window.how == exported_memory::by_handle) device_->export_handle(mine.window);
            addresses_.resize(static_cast<std::size_t>(host.size()));
            addresses_[rank] = reinterpret_cast<std::uint64_t*>(window);
        });
        if (failure) mine.failed = fault{failure->code(), failure->what()};
        host.exchange(0, where);  // nobody reads the host's windows any more
        new (host.window(host.rank())) greeting{mine};
        host.exchange(0, where);
        const auto greeting_of = [&](int peer) -> const greeting& {
            return *reinterpret_cast<const greeting*>(host.window(peer));
        };
        for (int peer = 0; peer < host.size(); ++peer) {
            const greeting& theirs = greeting_of(peer);
            if (theirs.failed.code == errc{} || failure) continue;
            failure = error(theirs.failed.code, Device::name, host.rank(), -1, "rank %d cannot take part [%s]", peer,
                            theirs.failed.words);
        }
        const auto open_all = [&] {
            most_blocks_ = mine.most_blocks;
            for (int peer = 0; peer < host.size(); ++peer) {
                const greeting& theirs = greeting_of(peer);
                files_.push_back(theirs.files);
                most_blocks_ = std::min(most_blocks_, theirs.most_blocks);
                if (peer == host.rank()) continue;
                if (theirs.gpu == mine.gpu) together_ = false;
                for (int other = 0; other < peer; ++other)
                    if (greeting_of(other).gpu == theirs.gpu) together_ = false;
                addresses_[static_cast<std::size_t>(peer)] =
                    reinterpret_cast<std::uint64_t*>(windows_->open(peer, theirs.window));
            }
        };
        if (!failure) failure = failure_of(where, host.rank(), open_all);
        int other = -1;
        const auto failed = host.exchange(failure ? 1 : 0, where);  // and all have read the greetings
        for (int peer = 0; peer < host.size(); ++peer)
            if (failed[static_cast<std::size_t>(peer)] != 0) other = peer;
        if (!failure && other >= 0)
            failure = error(errc::system, Device::name, host.rank(), -1,
                            "rank %d cannot reach the memory of others; see its own error", other);
        if (!failure) return;
        windows_.reset();  // a peer may free what we have open only after that
        static_cast<void>(failure_of(where, host.rank(), [&] { host.exchange(0, where); }));
        throw *failure;
    }
    ipc_team(const ipc_team&) = delete;
    ipc_team& operator=(const ipc_team&) = delete;
    /// Waits a while for the peers to close this rank's window, which goes with the device.
    ~ipc_team() {
        const file_post::address_type ours = post_->address();
        windows_.reset();
        post_.reset();  // which tells them that we have closed theirs
        patience waiting{timeout{longest_farewell}};
        for (const file_post::address_type& theirs : files_)
            while (std::strcmp(theirs.name, ours.name) != 0 && !file_post::gone(theirs) && !waiting.expired())
                ::usleep(1000);
    }

    Device& device() noexcept { return *device_; }
    const Device& device() const noexcept { return *device_; }
    std::uint64_t* const* windows() const noexcept { return addresses_.data(); }
    int most_blocks() const noexcept { return most_blocks_; }
    /// Whether the blocks of all ranks can run at the same time: each rank has a GPU of its own.
    bool together() const noexcept { return together_; }
    const file_post& post() const noexcept { return *post_; }
    const file_post::address_type& files_of(int peer) const noexcept { return files_[static_cast<std::size_t>(peer)]; }

private:
    static constexpr double longest_farewell = 2;  // seconds

    struct greeting {
        std::array<std::byte, 16> gpu{};
        exported_memory window;
        int most_blocks = 0;
        file_post::address_type files;
        fault failed;
    };

    std::optional<Device> device_;
    std::optional<ipc_mappings<Device>> windows_;  // goes before the device
    std::optional<file_post> post_;
    std::vector<std::uint64_t*> addresses_;
    std::vector<file_post::address_type> files_;
    int most_blocks_ = 0;
    bool together_ = true;
};

}  // namespace ddl
