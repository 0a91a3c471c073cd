// SPDX-License-Identifier: Apache-2.0
#include <ddl/shim/calls.hpp>

using namespace ddl::shim;
using ddl::collective;

namespace {

ddl_status run(ddl_communicator* ranks, task&& asked) noexcept {
    return with_communicator(ranks, to_string(asked.what), [&]() noexcept {
        const under_way call{*ranks};
        ddl_status status = DDL_OK;
        if (const row* const how = examine(*ranks, asked, status)) return carry_out(*ranks, *how, asked, this_thread);
        ranks->ranks->refuse();
        return status;
    });
}

}  // namespace

extern "C" {
ddl_status ddl_run_allreduce(ddl_communicator* ranks, const void* in, void* out, size_t count, ddl_element element,
                             ddl_op op) {
    return run(ranks, reduction(collective::allreduce, in, out, count, element, op));
}
ddl_status ddl_run_allreduce_n(ddl_communicator* ranks, void* const* data, const size_t* counts, size_t tensors,
                               ddl_element element, ddl_op op) {
    return run(ranks, many(data, counts, tensors, element, op));
}
ddl_status ddl_run_reduce_scatter(ddl_communicator* ranks, const void* in, void* out, size_t count, ddl_element element,
                                  ddl_op op) {
    return run(ranks, reduction(collective::reduce_scatter, in, out, count, element, op));
}
ddl_status ddl_run_all_gather(ddl_communicator* ranks, const void* in, void* out, size_t count, ddl_element element) {
    return run(ranks, movement(collective::all_gather, in, out, count, element));
}
ddl_status ddl_run_broadcast(ddl_communicator* ranks, void* data, size_t count, ddl_element element, int root) {
    return run(ranks, movement(collective::broadcast, data, data, count, element, root));
}
ddl_status ddl_run_reduce(ddl_communicator* ranks, const void* in, void* out, size_t count, ddl_element element,
                          ddl_op op, int root) {
    return run(ranks, reduction(collective::reduce, in, out, count, element, op, root));
}
ddl_status ddl_run_gather(ddl_communicator* ranks, const void* in, void* out, size_t count, ddl_element element,
                          int root) {
    return run(ranks, movement(collective::gather, in, out, count, element, root));
}
ddl_status ddl_run_scatter(ddl_communicator* ranks, const void* in, void* out, size_t count, ddl_element element,
                           int root) {
    return run(ranks, movement(collective::scatter, in, out, count, element, root));
}
ddl_status ddl_run_all_to_all(ddl_communicator* ranks, const void* in, void* out, size_t count, ddl_element element) {
    return run(ranks, movement(collective::all_to_all, in, out, count, element));
}

ddl_status ddl_run_barrier(ddl_communicator* ranks) {
    return with_communicator(ranks, "barrier", [&]() noexcept {
        const under_way call{*ranks};
        return carry_out_barrier(*ranks, this_thread);
    });
}

}  // extern "C"
