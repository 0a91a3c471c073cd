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
#include <vector>

/// What a `ddl_communicator*` points to.
struct ddl_communicator : ddl::shim::handle<ddl_communicator> {
    std::mutex calls;  // one at a time
    std::unique_ptr<ddl::shim::backend> ranks;
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
    unsigned forks = 0;                             // how many there had been when it was opened
    std::atomic<int> started{0};                    // nonblocking calls under way
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

/// Makes the handle of a communicator that was just opened.
ddl_communicator* hold(std::unique_ptr<backend> ranks);

/// Whether this process was made by fork, and the rank is its parent. For an open communicator.
inline bool is_of_parent(const ddl_communicator& ranks) noexcept { return ranks.forks != forks::so_far(); }
inline ddl_status refused_to_child(const char* operation, int rank) noexcept {
    return refused(
        DDL_BROKEN, operation, rank,
        "this process was made by fork, and the rank is its parent; call there, or make the process by exec");
}

}  // namespace ddl::shim

/// What a `ddl_request*` points to.
struct ddl_request : ddl::shim::handle<ddl_request> {
    std::shared_ptr<ddl::shim::progress> call;
    unsigned forks = 0;
};

/// What a `ddl_plan*` points to.
struct ddl_plan : ddl::shim::handle<ddl_plan> {
    ddl_communicator* ranks = nullptr;
    std::uint64_t opened = 0;  // which opening of that handle it was made for
    const ddl::shim::row* how = nullptr;
    std::unique_ptr<ddl::shim::kept_task> kept;
};
