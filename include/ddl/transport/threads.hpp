// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/memory_ranks.hpp>
#include <ddl/transport/memory_source.hpp>
#include <ddl/transport/rank_threads.hpp>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

namespace ddl {

/// Ranks that are threads of this process. All memory is shared: long vectors are folded where they are.
///
/// `ddl::threads::run(4, [](ddl::threads& team) { ... })` starts four, each with its own communicator. A communicator
/// belongs to its thread; the collectives are called by all threads of the team in the same order.
class threads : public memory_ranks<threads> {
public:
    static constexpr const char* name = "threads";
    static constexpr bool one_process = true;

    /// Runs `body(team)` on `ranks` new threads and waits for all of them. If some throw, the others are woken wherever
    /// they wait, and the first exception is thrown here that is not the echo of another rank's.
    template <class Body>
    static void run(int ranks, Body body, timeout limit = timeout{}) {
        const auto shared = std::make_shared<group>(ranks < 1 ? 1 : ranks, cores_for(ranks) >= ranks);
        run_in_threads(
            "threads::run", ranks,
            [&](int rank) {
                return threads{shared, rank, ranks, limit};
            },
            body, [&](errc code, const char* words) { tell(shared->view(), code, words); });
    }

    threads(threads&&) noexcept = default;
    ~threads() {
        end();
        if (group_) group_->left[static_cast<std::size_t>(rank())].store(true);
    }

    /// A team of the ranks that pass the same `color`, ordered by `key`, then by rank. All ranks call it; blocks.
    threads split(int color, int key) {
        const call_site where{"split"};
        return or_tell(where, [&] { return part_of(members(color, key, where), where); });
    }

    /// Whether a peer's communicator has gone.
    bool lost(int peer) const noexcept { return group_->left[static_cast<std::size_t>(peer)].load(); }
    std::byte* allocate(std::size_t bytes) { return memory_source{}.allocate(bytes); }
    void deallocate(std::byte* data, std::size_t) noexcept { memory_source{}.deallocate(data, 0); }
    std::uint64_t address_of(const void* data, std::size_t) const noexcept {
        return reinterpret_cast<std::uintptr_t>(data);
    }
    std::byte* mapped(int, std::uint64_t address, std::size_t) const noexcept {
        return reinterpret_cast<std::byte*>(std::uintptr_t{address});
    }

private:
    static constexpr std::size_t alignment = 4096;
    static constexpr std::size_t each_window_bytes = std::size_t{1} << 18;

    struct memory_of_group {
        memory_of_group(std::size_t size, std::shared_ptr<memory_of_group> split_from)
            : parent{std::move(split_from)}, bytes{size},
              base{static_cast<std::byte*>(::operator new(size, std::align_val_t{alignment}))} {
            std::memset(base, 0, bytes);
        }
        memory_of_group(const memory_of_group&) = delete;
        memory_of_group& operator=(const memory_of_group&) = delete;
        ~memory_of_group() { ::operator delete(base, std::align_val_t{alignment}); }
        std::shared_ptr<memory_of_group> parent;  // whose faults its parts look at
        std::size_t bytes;
        std::byte* base;
    };
    /// What the communicators of a group have in common.
    struct group {
        group(int size, bool uncrowded, std::shared_ptr<memory_of_group> split_from = nullptr)
            : memory{std::make_shared<memory_of_group>(rank_memory::bytes(size, each_window_bytes),
                                                       std::move(split_from))},
              ranks{size}, left(static_cast<std::size_t>(size)), offers(static_cast<std::size_t>(size)) {
            view().say_uncrowded(uncrowded);
        }
        rank_memory view() const noexcept { return {memory->base, ranks, each_window_bytes}; }
        std::shared_ptr<memory_of_group> memory;
        int ranks;
        std::vector<std::atomic<bool>> left;         // whether a rank's communicator has gone
        std::vector<std::shared_ptr<group>> offers;  // during a split, by the first rank of each part
    };

    threads part_of(const std::vector<int>& part, const call_site& where) {
        int place = 0;
        while (part[static_cast<std::size_t>(place)] != rank()) ++place;
        const int ranks = static_cast<int>(part.size());
        std::shared_ptr<group>& offer = group_->offers[static_cast<std::size_t>(part[0])];
        if (place == 0) offer = std::make_shared<group>(ranks, uncrowded(), group_->memory);
        exchange(0, where);
        std::shared_ptr<group> ours = offer;
        exchange(0, where);  // until here the offer stays, and for good if this rank gives up: a peer may still look
        if (place == 0) offer.reset();
        return {std::move(ours), place, ranks, limit(), *this};
    }

    threads(std::shared_ptr<group> shared, int rank, int ranks, timeout limit)
        : memory_ranks{shared->view(), rank, ranks, limit}, group_{std::move(shared)} {}
    threads(std::shared_ptr<group> shared, int rank, int ranks, timeout limit, const threads& from)
        : memory_ranks{shared->view(), rank, ranks, limit, from.lineage()}, group_{std::move(shared)} {}

    std::shared_ptr<group> group_;
};

static_assert(memory_transport<threads>);

}  // namespace ddl
