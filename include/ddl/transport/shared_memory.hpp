// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/launcher.hpp>
#include <ddl/transport/memory_ranks.hpp>
#include <ddl/transport/memory_source.hpp>
#include <ddl/transport/rendezvous.hpp>
#include <ddl/transport/shared_heap.hpp>

#include <memory>
#include <optional>
#include <vector>

namespace ddl {

/// A rank's place in a group of processes: its share of the group's memory, and a lock that says that it lives.
///
/// Rank `r` of `n` holds a lock on byte `r` of that memory until it leaves, and one on byte `n + r` as long as this object lives, for
/// parts that were split off look at the group's faults; neither for longer than its process lives, whatever ends that. So others
/// can tell at any time whether it is there.
class membership {
public:
    static constexpr std::size_t window_bytes = std::size_t{1} << 20;

    /// The group's first rank makes its memory, in its own heap. The others join at that `address()`.
    static membership found(std::shared_ptr<shared_heap> heap, int size, bool uncrowded) {
        const std::uint64_t address = heap->take_zeroed(rank_memory::bytes(size, window_bytes));
        membership first{std::move(heap), address, 0, size};
        first.memory().say_uncrowded(uncrowded);
        return first;
    }

    membership(std::shared_ptr<shared_heap> heap, std::uint64_t address, int rank, int size)
        : membership{std::move(heap), address, rank, size, heap_only{}} {
        // each rank provides its own window, so that it lies near its core; the first one also what comes before all
        const rank_memory ranks = memory();
        std::byte* const first = rank == 0 ? base() : ranks.window(rank);
        heap_->reserve(address + static_cast<std::uint64_t>(first - base()),
                       static_cast<std::size_t>(ranks.window(rank) - first) + window_bytes);
        if (!heap_->hold(address + static_cast<std::uint64_t>(rank)) ||
            !heap_->hold(address + static_cast<std::uint64_t>(size + rank)))
            throw refused_by_system("shared_memory", rank, "a lock on the shared memory");
    }
    membership(membership&&) noexcept = default;
    membership& operator=(membership&&) = delete;

    /// The others may still read their last results here, so the memory is used again only when all have let go.
    ~membership() {
        if (!heap_) return;
        leave();
        heap_->let_go(address_ + static_cast<std::uint64_t>(size_ + rank_));
        if (rank_ == 0) heap_->retire(address_, rank_memory::bytes(size_, window_bytes), 2 * size_);
    }

    /// From here on this rank is lost to the others.
    void leave() noexcept { heap_->let_go(address_ + static_cast<std::uint64_t>(rank_)); }

    int rank() const noexcept { return rank_; }
    int size() const noexcept { return size_; }
    std::uint64_t address() const noexcept { return address_; }
    const std::shared_ptr<shared_heap>& heap() const noexcept { return heap_; }
    rank_memory memory() const { return {base(), size_, window_bytes}; }
    bool present(int peer) const noexcept {
        return peer == rank_ || heap_->is_held(address_ + static_cast<std::uint64_t>(peer), 1);
    }

private:
    struct heap_only {};  // once a delegate is done, the destructor undoes what the public constructor cannot finish
    membership(std::shared_ptr<shared_heap> heap, std::uint64_t address, int rank, int size, heap_only) noexcept
        : heap_{std::move(heap)}, address_{address}, rank_{rank}, size_{size} {}

    std::byte* base() const { return heap_->mapped(address_, rank_memory::bytes(size_, window_bytes)); }

    std::shared_ptr<shared_heap> heap_;
    std::uint64_t address_;
    int rank_;
    int size_;
};

/// Ranks that are processes of one host, under one user; no MPI.
///
/// `ddl::shared_memory node{"job", rank, size}` in each of them, in any order, or `ddl::shared_memory node` where a
/// launcher has set the variables of `launcher`. It returns when all ranks are there, or throws in those that came. A
/// process that ends, by whatever end, is `errc::peer_lost` to the others, and leaves nothing behind.
///
/// Memory of `allocate`, `buffer` and `shared_allocator` is read and written where it is; other memory is copied
/// through windows of 1 MiB a rank. A communicator is for one thread at a time. After a `fork` the child must not use
/// it; that it lives does not make its parent look alive.
class shared_memory : public memory_ranks<shared_memory> {
public:
    static constexpr const char* name = "shared_memory";

    /// As the launcher says. Alone if no launcher says anything.
    shared_memory() : shared_memory{launcher::from_environment()} {}

    /// All ranks pass the same `job`, which no other run of this user on this host may have at the same time. `limit`
    /// is for the meeting, and for each later wait until `set_timeout`.
    shared_memory(std::string_view job, int rank, int size, timeout limit = timeout{})
        : shared_memory{launcher{job, rank, size, limit}} {}

    shared_memory(shared_memory&&) noexcept = default;
    ~shared_memory() {
        end();
        if (!seats_.empty()) seat().leave();
    }

    /// A communicator of the ranks that pass the same `color`, ordered by `key`, then by rank. All ranks call it;
    /// blocks.
    shared_memory split(int color, int key) {
        const call_site where{"split"};
        const std::vector<int> group = or_tell(where, [&] { return members(color, key, where); });
        int place = 0;
        while (group[static_cast<std::size_t>(place)] != rank()) ++place;
        const int ranks = static_cast<int>(group.size());
        std::optional<membership> mine;  // until the others know why this rank gives up
        try {
            return or_tell(where, [&] {
                if (place == 0) mine.emplace(membership::found(seat().heap(), ranks, uncrowded()));
                const auto leaders = exchange(mine ? mine->address() : 0, where);
                if (!mine) mine.emplace(seat().heap(), leaders[static_cast<std::size_t>(group[0])], place, ranks);
                exchange(0, where);  // until here a rank without its lock does not look ended
                return shared_memory{std::move(*mine), *this};
            });
        } catch (const error& failure) {
            fail(failure.code(), failure.what());
            throw;
        }
    }

    /// Whether a peer's communicator, or its process, has ended.
    bool lost(int peer) const noexcept { return !seat().present(peer); }

    /// Whole pages that all ranks of the job can map. Throws `errc::out_of_memory`. Any thread may call it.
    std::byte* allocate(std::size_t bytes) { return heap_or_throw()->allocate(bytes); }
    void deallocate(std::byte* data, std::size_t bytes) noexcept { seat().heap()->deallocate(data, bytes); }
    /// The same for those who outlive the communicator: the memory then lives as long as they do.
    memory_source allocator() const { return memory_source{heap_or_throw()}; }

    std::uint64_t address_of(const void* data, std::size_t bytes) const noexcept {
        return seat().heap()->address_of(data, bytes);
    }
    std::byte* mapped(int, std::uint64_t address, std::size_t bytes) const {
        return seat().heap()->mapped(address, bytes);
    }

private:
    struct admission {
        membership seat;
        local_socket job_name;
    };

    static admission meet(const launcher& launched) {
        const auto& [job, rank, size, limit] = launched;
        if (size < 1 || size > shared_heap::most_ranks || rank < 0 || rank >= size)
            throw error(errc::invalid_argument, name, rank, -1, "rank %d of %d; pass 0 <= rank < size <= %d", rank,
                        size, shared_heap::most_ranks);
        rendezvous meeting{job, rank, size, limit};
        try {
            return rank == 0 ? host(meeting, size) : attend(meeting, rank, size);
        } catch (const error& failure) {
            meeting.give_up(failure);
            throw;
        } catch (const std::exception& unknown) {  // taken for a lack of memory, as in `failure_of`
            meeting.give_up(error(errc::out_of_memory, name, rank, -1, "%s", unknown.what()));
            throw;
        }
    }
    static admission host(rendezvous& meeting, int size) {
        if (size > 1) meeting.claim();
        const descriptor file = shared_heap::create(size);
        membership seat =
            membership::found(std::make_shared<shared_heap>(file, 0, size), size, cores_for(size) >= size);
        if (size > 1) meeting.host(file, [&](int peer) { return seat.present(peer); });
        return {std::move(seat), meeting.take_name()};
    }
    static admission attend(rendezvous& meeting, int rank, int size) {
        const descriptor file = meeting.attend();
        membership seat{std::make_shared<shared_heap>(file, rank, size), shared_heap::first_address, rank, size};
        meeting.await_all([&](int peer) { return seat.present(peer); });
        return {std::move(seat), local_socket{}};
    }

    explicit shared_memory(const launcher& launched) : shared_memory{meet(launched), launched.limit} {}
    shared_memory(admission&& from, timeout limit)
        : memory_ranks{from.seat.memory(), from.seat.rank(), from.seat.size(), limit},
          seats_{std::make_shared<membership>(std::move(from.seat))}, job_name_{std::move(from.job_name)} {}
    shared_memory(membership&& seat, const shared_memory& from)
        : memory_ranks{seat.memory(), seat.rank(), seat.size(), from.limit(), from.lineage()}, seats_(1) {
        seats_.insert(seats_.end(), from.seats_.begin(), from.seats_.end());
        seats_.front() = std::make_shared<membership>(std::move(seat));  // whole until there is memory for all
    }

    membership& seat() const noexcept { return *seats_.front(); }
    /// For users, who may ask for memory where a communicator was moved from.
    const std::shared_ptr<shared_heap>& heap_or_throw() const {
        if (seats_.empty()) throw moved_from({name}, rank());
        return seat().heap();
    }

    std::vector<std::shared_ptr<membership>> seats_;  // in this group, and in those that it was split from
    local_socket job_name_;                           // rank 0's: no other run can take the name while it is open
};

static_assert(memory_transport<shared_memory>);

}  // namespace ddl
