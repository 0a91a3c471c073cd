// SPDX-License-Identifier: Apache-2.0
#include <ddl/shim/calls.hpp>

using namespace ddl::shim;
using ddl::collective;

namespace ddl::shim {
namespace {

listener to_request(progress& call) noexcept {
    return {[](void* to, ddl_status, const char* words) noexcept {
                static_cast<progress*>(to)->words = text{}.append("%s", words);
            },
            &call};
}

/// Hands `make()(progress)` to the communicator's queue, and a request to the caller. The lock is held.
///
/// All that may fail comes before the queue has it. The peers, who are or will be in that call, hear of a failure.
template <class Make>
ddl_status push(ddl_communicator& ranks, const char* operation, const Make& make, ddl_request** started) noexcept {
    ddl_request* place = nullptr;
    std::shared_ptr<progress> how;
    std::function<void()> carried;
    ddl_status status = guarded(this_thread, operation, [&] {
        how = std::make_shared<progress>();
        carried = [&ranks, how, call = make()] {
            how->status = call(*how);
            --ranks.started;
        };
        place = handle<ddl_request>::take();
    });
    if (status == DDL_OK) {
        ++ranks.started;
        status = ranks.ranks->push(std::move(carried), how->done, this_thread);
        if (status != DDL_OK) {
            --ranks.started;
            handle<ddl_request>::give(place);
        }
    }
    if (status != DDL_OK) {
        ranks.ranks->interrupt(last_error().c_str());
        return status;
    }
    place->call = std::move(how);
    place->forks = ranks.known.forks;
    handle<ddl_request>::raise(place);
    *started = place;
    return status;
}

}  // namespace

ddl_status start(ddl_communicator& ranks, const row& how, const task& asked, ddl_request** started) noexcept {
    return push(
        ranks, to_string(asked.what),
        [&] {
            return [&ranks, &how, kept = kept_task{asked}](progress& call) {
                return carry_out(ranks, how, kept.get(), to_request(call));
            };
        },
        started);
}

}  // namespace ddl::shim

namespace {

/// A task that makes no sense is not started, and the peers hear of that.
ddl_status start(ddl_communicator* ranks, task asked, ddl_request** started) noexcept {
    ddl_status status = emptied(started, to_string(asked.what));
    return with_communicator(ranks, to_string(asked.what), [&]() noexcept {
        const row* const how = status == DDL_OK ? examine(*ranks, asked, status) : nullptr;
        if (how != nullptr) return ddl::shim::start(*ranks, *how, asked, started);
        refuse_later(*ranks);
        return status;
    });
}

}  // namespace

extern "C" {

ddl_status ddl_start_allreduce(ddl_communicator* ranks, const void* in, void* out, size_t count, ddl_element element,
                               ddl_op op, ddl_request** started) {
    return start(ranks, reduction(collective::allreduce, in, out, count, element, op), started);
}
ddl_status ddl_start_allreduce_n(ddl_communicator* ranks, void* const* data, const size_t* counts, size_t tensors,
                                 ddl_element element, ddl_op op, ddl_request** started) {
    return start(ranks, many(data, counts, tensors, element, op), started);
}
ddl_status ddl_start_reduce_scatter(ddl_communicator* ranks, const void* in, void* out, size_t count,
                                    ddl_element element, ddl_op op, ddl_request** started) {
    return start(ranks, reduction(collective::reduce_scatter, in, out, count, element, op), started);
}
ddl_status ddl_start_all_gather(ddl_communicator* ranks, const void* in, void* out, size_t count, ddl_element element,
                                ddl_request** started) {
    return start(ranks, movement(collective::all_gather, in, out, count, element), started);
}
ddl_status ddl_start_broadcast(ddl_communicator* ranks, void* data, size_t count, ddl_element element, int root,
                               ddl_request** started) {
    return start(ranks, movement(collective::broadcast, data, data, count, element, root), started);
}
ddl_status ddl_start_reduce(ddl_communicator* ranks, const void* in, void* out, size_t count, ddl_element element,
                            ddl_op op, int root, ddl_request** started) {
    return start(ranks, reduction(collective::reduce, in, out, count, element, op, root), started);
}
ddl_status ddl_start_gather(ddl_communicator* ranks, const void* in, void* out, size_t count, ddl_element element,
                            int root, ddl_request** started) {
    return start(ranks, movement(collective::gather, in, out, count, element, root), started);
}
ddl_status ddl_start_scatter(ddl_communicator* ranks, const void* in, void* out, size_t count, ddl_element element,
                             int root, ddl_request** started) {
    return start(ranks, movement(collective::scatter, in, out, count, element, root), started);
}
ddl_status ddl_start_all_to_all(ddl_communicator* ranks, const void* in, void* out, size_t count, ddl_element element,
                                ddl_request** started) {
    return start(ranks, movement(collective::all_to_all, in, out, count, element), started);
}

ddl_status ddl_start_barrier(ddl_communicator* ranks, ddl_request** started) {
    const ddl_status placed = emptied(started, "barrier");
    return with_communicator(ranks, "barrier", [&]() noexcept {
        if (placed != DDL_OK) {
            refuse_later(*ranks);
            return placed;
        }
        return push(
            *ranks, "barrier",
            [ranks] { return [ranks](progress& call) { return carry_out_barrier(*ranks, to_request(call)); }; },
            started);
    });
}

}  // extern "C"
