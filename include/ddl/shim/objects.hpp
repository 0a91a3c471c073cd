// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/shim/backend.hpp>
#include <ddl/shim/forks.hpp>
#include <ddl/shim/handle.hpp>
#include <ddl/shim/last_error.hpp>
#include <ddl/shim/mapped_memory.hpp>
#include <ddl/shim/performance.hpp>
#include <ddl/shim/staging.hpp>
#include <ddl/transport/request.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

/// What a `ddl_communicator*` points to.
struct ddl_communicator : ddl::shim::handle<ddl_communicator> {
    static constexpr auto its_kind = ddl::shim::kind::communicator;
    std::mutex calls;  // one at a time
    std::mutex end;    // held by who uses `ranks` beside the call under way, and by who ends it
    std::unique_ptr<ddl::shim::backend> ranks;  // there as long as the handle is alive
    const ddl::shim::table* rows = nullptr;
    void* object = nullptr;
    int rank = -1;
    int size = 0;
    int schedule = 0;               // of reductions
    int mode = 0;                   // what `ddl_set_options` would have in its place, where the library has it
    bool has_extents = false;       // whether `ddl_set_options` has set some
    int dev_sync = 0;               // what its options say of devices
    const void* host_in = nullptr;  // the last call's buffers, if no driver was loaded that could have made them
    const void* host_out = nullptr;
    std::unique_ptr<ddl::shim::performance> times;  // of its reductions, if its options ask for them
    std::unique_ptr<ddl::shim::staging> staged;     // once a call had device memory to pass on
    std::uint64_t opened = 0;                       // the how manyth communicator of this process it is
    struct {                                        // for those who ask without a lock, be it that it ends meanwhile
        std::atomic<unsigned> forks;                // how many there had been when it was opened
        std::atomic<int> rank, size, local_rank, local_size;
        std::atomic<const char*> transport;
    } known{};
    std::atomic<int> started{0};             // nonblocking calls under way
    std::atomic<std::thread::id> running{};  // who is in a blocking one; none if nobody is
    std::atomic<bool> interrupted{false};
};

namespace ddl::shim {

/// A task that outlives the caller's arrays of arguments.
struct kept_task {
    explicit kept_task(const task& from)
        : data(from.data, from.data + from.tensors), counts(from.counts, from.counts + from.tensors), asked{from} {}
    task get() const noexcept {
        task result = asked;
        result.data = data.data();
        result.counts = counts.data();
        return result;
    }

private:
    std::vector<void*> data;
    std::vector<std::size_t> counts;
    task asked;
};

/// How a nonblocking call went, for all who ask.
struct progress {
    request done;
    ddl_status status = DDL_OK;
    text words;
};

/// Whether this thread is in a callback of `ddl_on_completion`, and so mostly in the call that has ended, for which `ddl_close` waits.
inline thread_local bool is_calling_back = false;
inline ddl_status refused_in_callback(const char* operation, int rank) noexcept {
    return refused(DDL_INVALID_ARGUMENT, operation, rank,
                   "a callback of ddl_on_completion closes no communicator; close it once the callback is back");
}

/// While it lives a blocking collective is under way, of a communicator whose lock is held.
class under_way {
public:
    explicit under_way(ddl_communicator& ranks) noexcept : running_{ranks.running} {
        // who interrupts may be early or late anyway
        running_.store(std::this_thread::get_id(), std::memory_order_relaxed);
    }
    under_way(const under_way&) = delete;
    under_way& operator=(const under_way&) = delete;
    ~under_way() { running_.store({}, std::memory_order_relaxed); }

private:
    std::atomic<std::thread::id>& running_;
};

/// Makes the handle of a communicator that was just opened.
ddl_communicator* hold(std::unique_ptr<backend> ranks);

/// What `ddl_set_options` does, for `operation`.
ddl_status set_options(ddl_communicator* ranks, const char* words, const char* operation) noexcept;

/// Whether this process was made by fork, and the rank is its parent. For an open communicator.
inline bool is_of_parent(const ddl_communicator& ranks) noexcept {
    return ranks.known.forks.load(std::memory_order_relaxed) != forks::so_far();
}
inline ddl_status refused_to_child(const char* operation, int rank) noexcept {
    return refused(
        DDL_BROKEN, operation, rank,
        "this process was made by fork, and the rank is its parent; call there, or make the process by exec");
}

inline ddl_status refused_as_closed(const char* operation, const ddl_communicator* ranks) noexcept {
    return refused(DDL_INVALID_ARGUMENT, operation, -1,
                   "this is %sno open communicator; open one, and use it until it is closed", marked::instead(ranks));
}

/// Calls `use()` with a lock of the communicator held, if that is open, and this process's own.
template <class Use>
ddl_status with_lock(std::mutex ddl_communicator::*lock, ddl_communicator* ranks, const char* operation,
                     Use use) noexcept {
    if (handle<ddl_communicator>::alive(ranks)) {
        if (is_of_parent(*ranks)) [[unlikely]]
            return refused_to_child(operation, ranks->rank);
        const std::lock_guard held{ranks->*lock};
        if (handle<ddl_communicator>::alive(ranks)) return use();
    }
    return refused_as_closed(operation, ranks);
}

/// Memory that the peers of a communicator can map, if it is open; also for a process made by fork.
inline std::optional<memory_source> memory_of(ddl_communicator* ranks) noexcept {
    if (!handle<ddl_communicator>::alive(ranks)) return std::nullopt;
    std::unique_lock held{ranks->end, std::defer_lock};
    if (!is_of_parent(*ranks))
        held.lock();  // else a thread of the parent may have left it taken, and nobody ends `ranks`
    if (!handle<ddl_communicator>::alive(ranks)) return std::nullopt;
    return ranks->ranks->memory();
}

}  // namespace ddl::shim

/// What a `ddl_request*` points to.
struct ddl_request : ddl::shim::handle<ddl_request> {
    static constexpr auto its_kind = ddl::shim::kind::request;
    void empty() noexcept { call.reset(); }
    std::shared_ptr<ddl::shim::progress> call;
    unsigned forks = 0;
};

/// What a `ddl_plan*` points to.
struct ddl_plan : ddl::shim::handle<ddl_plan> {
    static constexpr auto its_kind = ddl::shim::kind::plan;
    void empty() noexcept { kept.reset(); }
    ddl_communicator* ranks = nullptr;
    std::uint64_t opened = 0;  // which opening of that handle it was made for
    const ddl::shim::row* how = nullptr;
    std::unique_ptr<ddl::shim::kept_task> kept;
};
