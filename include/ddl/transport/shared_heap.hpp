// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/descriptor.hpp>
#include <ddl/transport/free_list.hpp>
#include <ddl/transport/huge_pages.hpp>
#include <ddl/transport/memory_source.hpp>
#include <ddl/transport/own_descriptor.hpp>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <mutex>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>
#include <vector>

namespace ddl {

/// The memory of a job of processes: one file without a name, in which every rank has a heap that all others can map.
///
/// The file is sparse and huge, and only pages in use cost memory; it is gone with the last process that has it,
/// however that process ends. An address is an offset in it, so it means the same in every process; 0 is no address.
/// Rank `r` allocates from `region_bytes` of its own. A process maps a region from its beginning, and once more when it
/// is asked for more: a *view* of `smallest_view` bytes, or twice that, and so on. Views stay to the end, so a lookup
/// is one load without a lock, and an address that is used again needs no new mapping.
///
/// An allocation is whole pages, reserved: what `allocate` returns can be written to. Any thread may call any member.
/// A process made by fork shares the memory, but not the lists: there nothing is allocated, given back or let go.
class shared_heap {
public:
    static constexpr std::size_t page = 4096;
    static constexpr std::uint64_t region_bytes = std::uint64_t{1} << 44;
    static constexpr int most_ranks = 1 << 18;  // the file then ends at 2^62, and the system takes up to 2^63

    /// What the first allocation of rank 0 gets.
    static constexpr std::uint64_t first_address = page;

    /// An empty file for `size` ranks.
    static descriptor create(int size) {
        rlimit longest{};
        const std::uint64_t bytes = region_bytes * static_cast<std::uint64_t>(size);
        if (::getrlimit(RLIMIT_FSIZE, &longest) == 0 && longest.rlim_cur < bytes)
            throw error(
                errc::system, operation, 0, -1,
                "the job's file, which is sparse, is longer than this process may make; set ulimit -f unlimited");
        descriptor file{::memfd_create("ddl", MFD_CLOEXEC)};
        if (!file) throw refused_by_system(operation, 0, "memfd_create");
        if (::ftruncate(file.number(), static_cast<off_t>(bytes)) != 0)
            throw refused_by_system(operation, 0, "ftruncate");
        return file;
    }

    /// Rank `rank`'s heap in `file`. The locks below belong to an opening of a file, so each rank opens it once more; and again for
    /// what it maps, which a process made by fork keeps, while the locks end with this one.
    shared_heap(const descriptor& file, int rank, int size)
        : locks_{[&] { return opened_again(file, rank); }}, file_{opened_again(file, rank)}, rank_{rank}, size_{size},
          process_{::getpid()}, free_{page, region_bytes - page},
          views_{std::make_unique<std::atomic<std::byte*>[]>(static_cast<std::size_t>(size) * view_sizes)} {}
    shared_heap(const shared_heap&) = delete;
    shared_heap& operator=(const shared_heap&) = delete;
    ~shared_heap() {
        for (int owner = 0; owner < size_; ++owner)
            for (int k = 0; k < view_sizes; ++k)
                if (std::byte* const base = view(owner, k).load()) ::munmap(base, view_bytes(k));
    }

    /// Memory at the beginning of a page, its content arbitrary. Throws `errc::out_of_memory`.
    std::byte* allocate(std::size_t bytes) {
        const std::uint64_t address = take(bytes);
        try {
            reserve(address, bytes);
            return mapped(address, bytes);
        } catch (...) {
            give(address, bytes);
            throw;
        }
    }
    void deallocate(std::byte* data, std::size_t bytes) noexcept {
        if (inherited()) return;
        if (const std::uint64_t address = address_of(data, bytes)) give(address, bytes);
    }

    /// See `memory_source`. Goes piece by piece, so that hardly more memory is in use meanwhile.
    moved_pages adopt(std::byte* place, std::size_t bytes) {
        if (static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) != page) return {};  // neighbours would go along
        const std::uint64_t address = take(bytes);
        moved_pages moved;
        try {
            moved.lies = mapped(address, bytes);
            constexpr std::size_t step = std::size_t{1} << 20;
            while (moved.bytes < bytes) {
                const std::size_t here = bytes - moved.bytes < step ? bytes - moved.bytes : step;
                reserve(address + moved.bytes, here);
                std::memcpy(moved.lies + moved.bytes, place + moved.bytes, here);
                if (!lay_over(place + moved.bytes, here, address + moved.bytes)) break;
                moved.bytes += here;
            }
        } catch (const error&) {}  // there is no memory
        if (moved.bytes > 0) return moved;
        give(address, bytes);
        return {};
    }

    /// Where `bytes` at `data` lie for all ranks; 0 if they are not from this rank's heap.
    std::uint64_t address_of(const void* data, std::size_t bytes) const noexcept {
        const auto first = reinterpret_cast<std::uintptr_t>(data);
        for (int k = 0; k < view_sizes; ++k) {
            const auto base = reinterpret_cast<std::uintptr_t>(view(rank_, k).load(std::memory_order_acquire));
            if (base == 0 || first < base) continue;
            const std::uint64_t within = first - base;
            if (within < view_bytes(k) && bytes <= view_bytes(k) - within) return region(rank_) + within;
        }
        return 0;
    }

    /// The other way: where `bytes` at `address`, of any rank's heap, lie in this process.
    std::byte* mapped(std::uint64_t address, std::size_t bytes) const {
        const int owner = static_cast<int>(address / region_bytes);
        const std::uint64_t within = address % region_bytes;
        const int k = view_for(within + bytes);
        std::byte* base = view(owner, k).load(std::memory_order_acquire);  // meets the release in `map`
        if (base == nullptr) base = map(owner, k);
        return base + within;
    }

    /// Addresses without memory yet, to be shared out with `reserve`; zero when they are first read.
    std::uint64_t take_zeroed(std::size_t bytes) {
        const std::uint64_t address = take(bytes);
        punch(address, whole_pages(bytes));
        return address;
    }

    /// Provides the pages at `address`, near the caller's core. A lack of memory is an error here, not a signal later, but where a
    /// container may use less than the host has: the system ends who goes beyond that.
    void reserve(std::uint64_t address, std::size_t bytes) {
        bytes = whole_pages(bytes);
        struct sysinfo machine {};
        // beyond this the system would end processes at random before it said no
        if (::sysinfo(&machine) == 0 && bytes / machine.mem_unit >= machine.totalram + machine.totalswap)
            throw no_memory(bytes);
        // in steps, for a call that a signal interrupts starts again from its beginning
        constexpr std::size_t step = std::size_t{1} << 20;
        for (std::size_t done = 0; done < bytes;) {
            const std::size_t here = bytes - done < step ? bytes - done : step;
            if (::fallocate(file_.number(), 0, static_cast<off_t>(address + done), static_cast<off_t>(here)) == 0) {
                done += here;
            } else if (errno == ENOMEM || errno == ENOSPC) {
                throw no_memory(bytes);
            } else if (errno != EINTR) {
                throw refused_by_system(operation, rank_, "fallocate");
            }
        }
    }

    /// Gives back what `take_zeroed` gave as soon as nobody holds one of the `holders` bytes at `address`.
    void retire(std::uint64_t address, std::size_t bytes, int holders) noexcept {
        if (inherited()) return;  // the parent's lists, and a lock that another thread of it may have held
        std::lock_guard lock{mutex_};
        retired_.push_back({address, bytes, holders});  // does not throw: `take` made room for one more
    }

    /// A lock on the byte at `address`, which ends with the process however that ends. False if somebody else has it.
    bool hold(std::uint64_t address) noexcept {
        struct flock lock = lock_on(address, 1, F_WRLCK);
        return ::fcntl(locks_.number(), F_OFD_SETLK, &lock) == 0;
    }
    void let_go(std::uint64_t address) noexcept {
        if (inherited()) return;
        struct flock lock = lock_on(address, 1, F_UNLCK);
        (void)::fcntl(locks_.number(), F_OFD_SETLK, &lock);
    }
    /// Whether another rank holds one of the `count` bytes at `address`.
    bool is_held(std::uint64_t address, int count) const noexcept {
        struct flock lock = lock_on(address, count, F_WRLCK);
        return ::fcntl(locks_.number(), F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
    }

private:
    static constexpr const char* operation = "shared_memory";
    static constexpr std::uint64_t smallest_view = std::uint64_t{1} << 26;
    static constexpr int view_sizes = std::countr_zero(region_bytes) - std::countr_zero(smallest_view) + 1;
    /// Smaller pieces stay reserved for their next user.
    static constexpr std::size_t punched_bytes = std::size_t{1} << 18;

    struct retired_piece {
        std::uint64_t address;
        std::size_t bytes;
        int holders;
    };

    static constexpr std::uint64_t region(int rank) noexcept { return region_bytes * static_cast<std::uint64_t>(rank); }
    static constexpr std::size_t view_bytes(int k) noexcept { return smallest_view << k; }
    static constexpr int view_for(std::uint64_t end) noexcept {
        return end <= smallest_view ? 0 : static_cast<int>(std::bit_width(end - 1)) - std::countr_zero(smallest_view);
    }
    static constexpr std::size_t whole_pages(std::size_t bytes) noexcept {
        return bytes == 0 ? page : (bytes + page - 1) / page * page;
    }
    static constexpr struct flock lock_on(std::uint64_t address, int count, short type) noexcept {
        struct flock lock {};
        lock.l_type = type;
        lock.l_whence = SEEK_SET;
        lock.l_start = static_cast<off_t>(address);
        lock.l_len = count;
        return lock;
    }

    static descriptor opened_again(const descriptor& file, int rank) {
        char path[32];
        std::snprintf(path, sizeof path, "/proc/self/fd/%d", file.number());
        descriptor again{::open(path, O_RDWR | O_CLOEXEC)};
        if (!again && errno == ENOENT)
            throw error(errc::system, operation, rank, -1,
                        "this process finds no /proc of its own, by which it opens the job's file; mount it");
        if (!again) throw refused_by_system(operation, rank, path);
        return again;
    }

    std::atomic<std::byte*>& view(int owner, int k) const noexcept {
        return views_[static_cast<std::size_t>(owner) * view_sizes + static_cast<std::size_t>(k)];
    }

    std::byte* map(int owner, int k) const {
        std::lock_guard lock{mutex_};
        std::atomic<std::byte*>& slot = view(owner, k);
        if (std::byte* const base = slot.load()) return base;  // another thread was faster
        void* const base = ::mmap(nullptr, view_bytes(k), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                                  file_.number(), static_cast<off_t>(region(owner)));
        if (base == MAP_FAILED) throw refused_by_system(operation, rank_, "mmap of memory that ranks share");
        advise_huge_pages(base, view_bytes(k));
        slot.store(static_cast<std::byte*>(base), std::memory_order_release);
        return static_cast<std::byte*>(base);
    }

    /// Maps a part of the file over what is at `place`.
    bool lay_over(std::byte* place, std::size_t bytes, std::uint64_t address) const noexcept {
        if (::mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_.number(),
                   static_cast<off_t>(address)) == MAP_FAILED)
            return false;
        // nothing to drop yet: for libraries that keep what they know of pages, and watch for this call
        (void)::madvise(place, bytes, MADV_DONTNEED);
        return true;
    }

    error no_memory(std::size_t bytes) const {
        return error(errc::out_of_memory, operation, rank_, -1,
                     "%zu bytes that peers can map are not to be had; use less, or run fewer ranks on this host",
                     bytes);
    }

    /// Whether this process is a child of the one that made the heap, and is to leave it to that.
    bool inherited() const noexcept { return ::getpid() != process_; }

    std::uint64_t take(std::size_t bytes) {
        if (inherited())
            throw error(errc::out_of_memory, operation, rank_, -1,
                        "a process made by fork has no memory that peers can map; allocate it before the fork");
        if (bytes > region_bytes) throw no_memory(bytes);
        std::lock_guard lock{mutex_};
        reclaim();
        retired_.reserve(free_.taken() + 1);  // so that `retire` never allocates
        const std::uint64_t first = free_.take(whole_pages(bytes));
        if (first == free_list::none) throw no_memory(bytes);
        return region(rank_) + first;
    }

    void give(std::uint64_t address, std::size_t bytes) noexcept {
        bytes = whole_pages(bytes);
        if (bytes >= punched_bytes) punch(address, bytes);
        std::lock_guard lock{mutex_};
        free_.give(address - region(rank_), bytes);
    }

    /// Makes free what was retired and is not in use any more.
    void reclaim() noexcept {
        std::erase_if(retired_, [this](const retired_piece& old) {
            if (is_held(old.address, old.holders)) return false;
            punch(old.address, whole_pages(old.bytes));
            free_.give(old.address - region(rank_), whole_pages(old.bytes));
            return true;
        });
    }

    /// Returns pages to the system; they read as zero from then on.
    void punch(std::uint64_t address, std::size_t bytes) noexcept {
        if (bytes == 0) return;
        while (::fallocate(file_.number(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(address),
                           static_cast<off_t>(bytes)) != 0 &&
               errno == EINTR) {}
    }

    own_descriptor locks_;
    descriptor file_;
    int rank_;
    int size_;
    pid_t process_;
    mutable std::mutex mutex_;  // for the lists, and for new views
    free_list free_;
    std::vector<retired_piece> retired_;
    std::unique_ptr<std::atomic<std::byte*>[]> views_;
};

}  // namespace ddl
