// SPDX-License-Identifier: Apache-2.0
#include <ddl/shim/calls.hpp>

using namespace ddl::shim;
using ddl::collective;

namespace {

ddl_status plan(ddl_communicator* ranks, task asked, ddl_plan** made) noexcept {
    if (const ddl_status status = emptied(made, to_string(asked.what))) return status;
    return with_communicator(ranks, to_string(asked.what), [&]() noexcept {
        ddl_status status = DDL_OK;
        const row* const how = examine(*ranks, asked, status);
        if (how == nullptr) return status;
        return guarded(this_thread, to_string(asked.what), [&] {
            auto kept = std::make_unique<kept_task>(asked);
            ddl_plan* const place = handle<ddl_plan>::take();
            place->ranks = ranks;
            place->opened = ranks->opened;
            place->how = how;
            place->kept = std::move(kept);
            handle<ddl_plan>::raise(place);
            *made = place;
        });
    });
}

/// Calls `use(communicator, row, task)` for a plan whose communicator is still open, with its lock held.
template <class Use>
ddl_status with_plan(const ddl_plan* plan, const char* operation, Use use) noexcept {
    const handle<ddl_plan>::user here{plan};
    if (!here)
        return refused(DDL_INVALID_ARGUMENT, operation, -1,
                       "this is %sno plan; make one, and use it until ddl_free_plan", marked::instead(plan));
    if (is_of_parent(*plan->ranks)) [[unlikely]]
        return refused_to_child(operation, plan->ranks->rank);
    const std::lock_guard lock{plan->ranks->calls};
    if (!handle<ddl_communicator>::alive(plan->ranks) || plan->ranks->opened != plan->opened)
        return refused(DDL_INVALID_ARGUMENT, operation, -1, "the communicator of this plan was closed; open another");
    return use(*plan->ranks, *plan->how, plan->kept->get());
}

}  // namespace

extern "C" {

ddl_status ddl_plan_allreduce(ddl_communicator* ranks, const void* in, void* out, size_t count, ddl_element element,
                              ddl_op op, ddl_plan** made) {
    return plan(ranks, reduction(collective::allreduce, in, out, count, element, op), made);
}
ddl_status ddl_plan_allreduce_n(ddl_communicator* ranks, void* const* data, const size_t* counts, size_t tensors,
                                ddl_element element, ddl_op op, ddl_plan** made) {
    return plan(ranks, many(data, counts, tensors, element, op), made);
}
ddl_status ddl_plan_reduce_scatter(ddl_communicator* ranks, const void* in, void* out, size_t count,
                                   ddl_element element, ddl_op op, ddl_plan** made) {
    return plan(ranks, reduction(collective::reduce_scatter, in, out, count, element, op), made);
}
ddl_status ddl_plan_all_gather(ddl_communicator* ranks, const void* in, void* out, size_t count, ddl_element element,
                               ddl_plan** made) {
    return plan(ranks, movement(collective::all_gather, in, out, count, element), made);
}
ddl_status ddl_plan_broadcast(ddl_communicator* ranks, void* data, size_t count, ddl_element element, int root,
                              ddl_plan** made) {
    return plan(ranks, movement(collective::broadcast, data, data, count, element, root), made);
}
ddl_status ddl_plan_reduce(ddl_communicator* ranks, const void* in, void* out, size_t count, ddl_element element,
                           ddl_op op, int root, ddl_plan** made) {
    return plan(ranks, reduction(collective::reduce, in, out, count, element, op, root), made);
}
ddl_status ddl_plan_gather(ddl_communicator* ranks, const void* in, void* out, size_t count, ddl_element element,
                           int root, ddl_plan** made) {
    return plan(ranks, movement(collective::gather, in, out, count, element, root), made);
}
ddl_status ddl_plan_scatter(ddl_communicator* ranks, const void* in, void* out, size_t count, ddl_element element,
                            int root, ddl_plan** made) {
    return plan(ranks, movement(collective::scatter, in, out, count, element, root), made);
}
ddl_status ddl_plan_all_to_all(ddl_communicator* ranks, const void* in, void* out, size_t count, ddl_element element,
                               ddl_plan** made) {
    return plan(ranks, movement(collective::all_to_all, in, out, count, element), made);
}

ddl_status ddl_run_plan(ddl_plan* plan) {
    return with_plan(plan, "run_plan", [](ddl_communicator& ranks, const row& how, task asked) noexcept {
        const under_way call{ranks};
        if (const ddl_status status = examine_again(ranks, asked)) {
            ranks.ranks->refuse();
            return status;
        }
        return carry_out(ranks, how, asked, this_thread);
    });
}

ddl_status ddl_start_plan(ddl_plan* plan, ddl_request** started) {
    ddl_status status = emptied(started, "start_plan");
    return with_plan(plan, "start_plan", [&](ddl_communicator& ranks, const row& how, task asked) noexcept {
        if (status == DDL_OK) status = examine_again(ranks, asked);
        if (status == DDL_OK) return start(ranks, how, asked, started);
        refuse_later(ranks);
        return status;
    });
}

ddl_status ddl_explain_plan(const ddl_plan* plan, char* line, size_t capacity) {
    if (line == nullptr || capacity == 0)
        return refused(DDL_INVALID_ARGUMENT, "explain_plan", -1, "there is no room for the line; pass a buffer");
    *line = '\0';
    return with_plan(plan, "explain_plan", [&](ddl_communicator& ranks, const row& how, const task& asked) noexcept {
        ranks.ranks->use_extents(nullptr);
        return guarded(this_thread, "explain_plan", [&] {
            std::vector<void*> data;
            const task placed = where_mapped(ranks, asked, data);
            std::snprintf(line, capacity, "%s", how.explain(ranks.object, placed).c_str());
        });
    });
}

ddl_status ddl_free_plan(ddl_plan* plan) {
    if (plan == nullptr) return DDL_OK;
    if (!handle<ddl_plan>::alive(plan) || !handle<ddl_plan>::bury(plan))
        return refused(DDL_INVALID_ARGUMENT, "free_plan", -1, "this is %sno plan; free each once",
                       marked::instead(plan));
    handle<ddl_plan>::leave(plan);
    return DDL_OK;
}

}  // extern "C"
