// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/huge_pages.hpp>
#include <ddl/transport/memory_ranks.hpp>

#include <cstdint>
#include <new>
#include <thread>

namespace ddl {

/// Ranks that are threads of this process. All memory is shared: long vectors are folded where they are.
///
/// `ddl::threads::run(4, [](ddl::threads& team) { ... })` starts four, each with its own communicator. A communicator
/// belongs to its thread; the collectives are called by all threads of the team in the same order.
class threads : public memory_ranks<threads> {
public:
    static constexpr const char* name = "threads";

    /// Runs `body(team)` on `ranks` new threads and waits for all of them. If some throw, the others are woken wherever
    /// they wait, and the first exception is thrown here.
    template <class Body>
    static void run(int ranks, Body body, timeout limit = timeout{}) {
        if (ranks < 1)
            throw error(errc::invalid_argument, "threads::run", -1, -1, "%d ranks; ask for one or more", ranks);
        const auto memory = std::make_shared<team_memory>(ranks, cores_for(ranks) >= ranks);
        std::vector<std::thread> workers;
        std::exception_ptr first;
        std::mutex first_mutex;
        for (int rank = 0; rank < ranks; ++rank)
            workers.emplace_back([&, rank] {
                threads team{memory, rank, ranks, limit};
                try {
                    body(team);
                } catch (...) {
                    {
                        std::lock_guard lock{first_mutex};
                        if (!first) first = std::current_exception();
                    }
                    team.fail(errc::peer_lost, "a thread of the team left with an exception");
                }
            });
        for (std::thread& worker : workers) worker.join();
        if (first) std::rethrow_exception(first);
    }

    threads(threads&&) noexcept = default;
    ~threads() { end(); }

    /// A team of the ranks that pass the same `color`, ordered by `key`, then by rank. All ranks call it; blocks.
    threads split(int color, int key) {
        const call_site where{"split"};
        const std::vector<int> group = members(color, key, where);
        int place = 0;
        while (group[static_cast<std::size_t>(place)] != rank()) ++place;
        const int ranks = static_cast<int>(group.size());
        std::shared_ptr<team_memory> memory;
        if (place == 0) memory = std::make_shared<team_memory>(ranks, uncrowded(), memory_);
        const auto leaders = exchange(reinterpret_cast<std::uintptr_t>(&memory), where);
        if (place != 0)
            memory = *reinterpret_cast<const std::shared_ptr<team_memory>*>(
                static_cast<std::uintptr_t>(leaders[static_cast<std::size_t>(group[0])]));
        exchange(0, where);  // until here the leader's pointer must stay
        return {std::move(memory), place, ranks, limit(), *this};
    }

    bool lost(int) const noexcept { return false; }
    std::byte* allocate(std::size_t bytes) {
        if (bytes > PTRDIFF_MAX) throw std::bad_alloc{};  // `operator new` may round it up to none
        auto* const data = static_cast<std::byte*>(::operator new(bytes, std::align_val_t{alignment}));
        advise_huge_pages(data, bytes);
        return data;
    }
    void deallocate(std::byte* data, std::size_t) noexcept { ::operator delete(data, std::align_val_t{alignment}); }
    std::uint64_t address_of(const void* data, std::size_t) const noexcept {
        return reinterpret_cast<std::uintptr_t>(data);
    }
    std::byte* mapped(int, std::uint64_t address, std::size_t) const noexcept {
        return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address));
    }

private:
    static constexpr std::size_t alignment = 4096;
    static constexpr std::size_t each_window_bytes = std::size_t{1} << 18;

    struct team_memory {
        team_memory(int ranks, bool uncrowded, std::shared_ptr<team_memory> split_from = nullptr)
            : parent{std::move(split_from)}, bytes{rank_memory::bytes(ranks, each_window_bytes)},
              base{static_cast<std::byte*>(::operator new(bytes, std::align_val_t{alignment}))} {
            std::memset(base, 0, bytes);
            rank_memory{base, ranks, each_window_bytes}.say_uncrowded(uncrowded);
        }
        team_memory(const team_memory&) = delete;
        team_memory& operator=(const team_memory&) = delete;
        ~team_memory() { ::operator delete(base, std::align_val_t{alignment}); }
        std::shared_ptr<team_memory> parent;  // whose faults its parts look at
        std::size_t bytes;
        std::byte* base;
    };

    threads(std::shared_ptr<team_memory> memory, int rank, int ranks, timeout limit)
        : memory_ranks{rank_memory{memory->base, ranks, each_window_bytes}, rank, ranks, limit},
          memory_{std::move(memory)} {}
    threads(std::shared_ptr<team_memory> memory, int rank, int ranks, timeout limit, const threads& from)
        : memory_ranks{rank_memory{memory->base, ranks, each_window_bytes}, rank, ranks, limit, from.lineage()},
          memory_{std::move(memory)} {}

    std::shared_ptr<team_memory> memory_;
};

static_assert(memory_transport<threads>);

}  // namespace ddl
