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

/// Hands `call(progress)` to the communicator's queue, and a request to the caller. The lock is held.
template <class Call>
ddl_status push(ddl_communicator& ranks, Call call, ddl_request** started) noexcept {
    return guarded(this_thread, "start", [&] {
        auto how = std::make_shared<progress>();
        auto carried = [&ranks, how, call = std::move(call)] {
            how->status = call(*how);
            --ranks.started;
        };
        ++ranks.started;
        text why;
        const listener refused_by{
            [](void* to, ddl_status, const char* words) noexcept { static_cast<text*>(to)->append("%s", words); },
            &why};
        if (ranks.ranks->push(std::move(carried), how->done, refused_by) != DDL_OK) {
            --ranks.started;
            ranks.ranks->refuse();
            throw error(errc::system, "start", ranks.rank, -1, "no thread for nonblocking calls: %s", why.c_str());
        }
        ddl_request* const place = handle<ddl_request>::take();
        place->call = std::move(how);
        place->forks = ranks.known.forks;
        handle<ddl_request>::raise(place);
        *started = place;
    });
}

}  // namespace

ddl_status start(ddl_communicator& ranks, const row& how, const task& asked, ddl_request** started) noexcept {
    ddl_status status = DDL_OK;
    const ddl_status copied = guarded(this_thread, to_string(asked.what), [&] {
        status = push(
            ranks,
            [&ranks, &how, kept = kept_task{asked}](progress& call) {
                return carry_out(ranks, how, kept.get(), to_request(call));
            },
            started);
    });
    return copied != DDL_OK ? copied : status;
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
            *ranks, [ranks](progress& call) { return carry_out_barrier(*ranks, to_request(call)); }, started);
    });
}

}  // extern "C"
