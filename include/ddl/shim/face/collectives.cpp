// SPDX-License-Identifier: Apache-2.0
#include <ddl/shim/objects.hpp>

#include <algorithm>
#include <cstdint>

using namespace ddl::shim;
using ddl::collective;

namespace ddl::shim {
namespace {

/// A task under examination, by the rank that brings it. The first mistake is the one that is told.
struct examination {
    const ddl_communicator& ranks;
    const task& asked;
    ddl_status status = DDL_OK;

    template <class... Words>
    bool complain(ddl_status kind, const char* format, Words... words) noexcept {
        status = refused(kind, to_string(asked.what), ranks.rank, format, words...);
        return false;
    }

    bool buffer(const char* name, const void* data, std::size_t count) noexcept {
        if (count != 0 && data == nullptr)
            return complain(DDL_INVALID_ARGUMENT, "%s is NULL, and is to hold %zu elements; pass a buffer", name,
                            count);
        if (mapped_memory::here().is_given_back(data))
            return complain(DDL_INVALID_ARGUMENT, "%s was given back with ddl_deallocate; allocate it anew", name);
        return true;
    }

    bool count(std::size_t elements) noexcept {
        const std::size_t each = std::max<std::size_t>(1, ddl_size_element(asked.element));
        if (elements <= static_cast<std::size_t>(PTRDIFF_MAX) / each) return true;
        return complain(DDL_INVALID_ARGUMENT, "count is %zu, more than any memory holds; is it negative?", elements);
    }

    bool tensors() noexcept {
        if (asked.tensors != 0 && (asked.data == nullptr || asked.counts == nullptr))
            return complain(DDL_INVALID_ARGUMENT, "the list of %zu tensors, or of their counts, is NULL",
                            asked.tensors);
        std::size_t total = 0;
        for (std::size_t i = 0; i < asked.tensors; ++i) {
            if (!count(asked.counts[i]) || !count(total += asked.counts[i]) ||
                !buffer("a tensor", asked.data[i], asked.counts[i]))
                return false;
        }
        return true;
    }

    bool buffers() noexcept {
        const bool rooted = asked.what == collective::broadcast || asked.what == collective::reduce ||
                            asked.what == collective::gather || asked.what == collective::scatter;
        if (rooted && (asked.root < 0 || asked.root >= ranks.size))
            return complain(DDL_INVALID_ARGUMENT, "root is %d; name a rank from 0 to %d", asked.root, ranks.size - 1);
        if (asked.what == collective::allreduce_n) return tensors();
        if (!count(asked.count)) return false;
        if (asked.what == collective::all_to_all && asked.count % static_cast<std::size_t>(ranks.size) != 0)
            return complain(DDL_INVALID_ARGUMENT, "count is %zu; pass a multiple of the %d ranks", asked.count,
                            ranks.size);
        const bool is_root = ranks.rank == asked.root;
        const std::size_t own = block(asked.count, ranks.size, ranks.rank).count;
        const bool block_in = asked.what == collective::all_gather || asked.what == collective::gather;
        const bool block_out = asked.what == collective::reduce_scatter || asked.what == collective::scatter;
        const bool no_in = asked.what == collective::broadcast || (asked.what == collective::scatter && !is_root);
        const bool no_out = (asked.what == collective::reduce || asked.what == collective::gather) && !is_root;
        return (no_in || buffer("in", asked.in, block_in ? own : asked.count)) &&
               (no_out || buffer("out", asked.out, block_out ? own : asked.count));
    }

    const row* by_mode(int schedule) const noexcept {
        const bool wanted = ranks.mode != 0 && schedule == 0 && asked.op != -1;
        return wanted ? ranks.rows->find(asked.what, ranks.mode, asked.op, asked.element) : nullptr;
    }

    const row* find(int schedule) noexcept {
        const char* const element = ddl_name_element(asked.element);
        const char* const op = asked.op == -1 ? "" : ddl_name_op(asked.op);
        if (element == nullptr)
            complain(DDL_INVALID_ARGUMENT, "element is %d; pass one of ddl.h, or what ddl_find_element gives",
                     asked.element);
        else if (op == nullptr)
            complain(DDL_INVALID_ARGUMENT, "op is %d; pass one of ddl.h, or what ddl_find_op gives", asked.op);
        else if (const row* const found = by_mode(schedule)) return found;
        else if (const row* const found = ranks.rows->find(asked.what, schedule, asked.op, asked.element)) return found;
        else
            complain(DDL_UNSUPPORTED, "%s%s%s by this schedule is not in this library; pass another, or build it in",
                     op, *op != '\0' ? " of " : "", element);
        return nullptr;
    }
};

/// What `ddl_interrupt` does to the call under way.
ddl_status interrupted(const ddl_communicator& ranks, const task& asked, const listener& heard) noexcept {
    return heard(DDL_INTERRUPTED, error(static_cast<errc>(DDL_INTERRUPTED), to_string(asked.what), ranks.rank, -1,
                                        "the program interrupted it; close the communicator, and open another")
                                      .what());
}

ddl_status closed(const task& asked) noexcept {
    return refused(DDL_INVALID_ARGUMENT, to_string(asked.what), -1,
                   "this is no open communicator; open one, and use it until ddl_close");
}

using handles = handle<ddl_communicator>;

bool reduces(const task& asked) noexcept { return asked.op != -1; }

ddl_status carry_out(ddl_communicator& ranks, const row& how, const task& asked, const listener& heard) noexcept {
    const ddl_status status = how.run(ranks.object, asked, heard);
    if (status != DDL_OK && ranks.interrupted.load()) return interrupted(ranks, asked, heard);
    return status;
}

}  // namespace

const row* examine(const ddl_communicator& ranks, const task& asked, int schedule, ddl_status& status) noexcept {
    examination looking{ranks, asked};
    const row* const found = looking.find(schedule);
    const bool sensible = found != nullptr && looking.buffers();
    status = looking.status;
    return sensible ? found : nullptr;
}

ddl_status run(ddl_communicator* ranks, const task& asked, int schedule) noexcept {
    if (!handles::alive(ranks)) return closed(asked);
    const std::lock_guard lock{ranks->calls};
    if (!handles::alive(ranks)) return closed(asked);
    ddl_status status = DDL_OK;
    const row* const how = examine(*ranks, asked, schedule, status);
    if (how == nullptr) {
        ranks->ranks->refuse();
        return status;
    }
    return carry_out(*ranks, *how, asked, this_thread);
}

namespace {

ddl_status run(ddl_communicator* ranks, const task& asked) noexcept {
    return run(ranks, asked, reduces(asked) && handles::alive(ranks) ? ranks->schedule : 0);
}

listener to_request(progress& call) noexcept {
    return {[](void* to, ddl_status, const char* words) noexcept {
                static_cast<progress*>(to)->words = text{}.append("%s", words);
            },
            &call};
}

/// Hands `call(progress)` to the communicator's own thread, and a request to the caller. The lock is held.
template <class Call>
ddl_status push(ddl_communicator& ranks, Call call, ddl_request** started) noexcept {
    return guarded(this_thread, "start", [&] {
        auto how = std::make_shared<progress>();
        auto carried = [&ranks, how, call = std::move(call)] {
            how->status = call(*how);
            --ranks.started;
            how->done.finish(nullptr);
        };
        ++ranks.started;
        text why;
        const listener refused_by{
            [](void* to, ddl_status, const char* words) noexcept { static_cast<text*>(to)->append("%s", words); },
            &why};
        if (ranks.ranks->push(std::move(carried), refused_by) != DDL_OK) {
            --ranks.started;
            throw error(errc::system, "start", ranks.rank, -1, "no thread for nonblocking calls: %s", why.c_str());
        }
        *started = handle<ddl_request>::take();
        (*started)->call = std::move(how);
    });
}

/// The same for a task, if it makes sense; if not, the peers who wait in the call hear of that.
ddl_status push(ddl_communicator& ranks, const row& how, const kept_task& kept, ddl_request** started) noexcept {
    return push(
        ranks,
        [&ranks, &how, kept](progress& call) {
            const task asked = kept.get();
            return carry_out(ranks, how, asked, to_request(call));
        },
        started);
}

ddl_status start(ddl_communicator* ranks, const task& asked, ddl_request** started) noexcept {
    if (started == nullptr)
        return refused(DDL_INVALID_ARGUMENT, to_string(asked.what), -1,
                       "the pointer to the request is NULL; pass where it is to go");
    *started = nullptr;
    if (!handles::alive(ranks)) return closed(asked);
    const std::lock_guard lock{ranks->calls};
    if (!handles::alive(ranks)) return closed(asked);
    ddl_status status = DDL_OK;
    const row* const how = examine(*ranks, asked, reduces(asked) ? ranks->schedule : 0, status);
    if (how == nullptr) {
        ranks->ranks->push([&backend = *ranks->ranks] { backend.refuse(); }, this_thread);
        return status;
    }
    return guarded(this_thread, to_string(asked.what), [&] { status = push(*ranks, *how, kept_task{asked}, started); })
               ? DDL_OUT_OF_MEMORY
               : status;
}

ddl_status plan(ddl_communicator* ranks, const task& asked, ddl_plan** made) noexcept {
    if (made == nullptr)
        return refused(DDL_INVALID_ARGUMENT, to_string(asked.what), -1,
                       "the pointer to the plan is NULL; pass where it is to go");
    *made = nullptr;
    if (!handles::alive(ranks)) return closed(asked);
    const std::lock_guard lock{ranks->calls};
    if (!handles::alive(ranks)) return closed(asked);
    ddl_status status = DDL_OK;
    const row* const how = examine(*ranks, asked, reduces(asked) ? ranks->schedule : 0, status);
    if (how == nullptr) return status;
    return guarded(this_thread, to_string(asked.what), [&] {
        auto kept = std::make_unique<kept_task>(asked);
        *made = handle<ddl_plan>::take();
        (*made)->ranks = ranks;
        (*made)->opened = ranks->opened;
        (*made)->how = how;
        (*made)->kept = std::move(kept);
    });
}

/// Calls `use(communicator, row, task)` for a plan whose communicator is still open, with its lock held.
template <class Use>
ddl_status with_plan(const ddl_plan* plan, const char* operation, Use use) noexcept {
    if (!handle<ddl_plan>::alive(plan))
        return refused(DDL_INVALID_ARGUMENT, operation, -1,
                       "this is no plan; make one, and use it until ddl_free_plan");
    const std::lock_guard lock{plan->ranks->calls};
    if (!handles::alive(plan->ranks) || plan->ranks->opened != plan->opened)
        return refused(DDL_INVALID_ARGUMENT, operation, -1, "the communicator of this plan was closed; open another");
    return use(*plan->ranks, *plan->how, plan->kept->get());
}

/// Bits have no sign: such ops are built in for the unsigned integers.
ddl_element unsigned_for_bits(ddl_element element, ddl_op op) noexcept {
    const bool is_signed = element == DDL_INT8 || element == DDL_INT16 || element == DDL_INT32 || element == DDL_INT64;
    return is_signed && DDL_BIT_AND <= op && op <= DDL_BIT_XOR ? element + 1 : element;
}

task reduction(collective what, const void* in, void* out, std::size_t count, ddl_element element, ddl_op op,
               int root = 0) {
    constexpr ddl_op none = 1 << 30;  // in a task -1 says that data only moves; here it is a mistake
    return {what, unsigned_for_bits(element, op), op < 0 ? none : op, root, in, out, count};
}
task movement(collective what, const void* in, void* out, std::size_t count, ddl_element element, int root = 0) {
    return {what, element, -1, root, in, out, count};
}
task many(void* const* data, const std::size_t* counts, std::size_t tensors, ddl_element element, ddl_op op) {
    task result = reduction(collective::allreduce_n, nullptr, nullptr, 0, element, op);
    result.data = data;
    result.counts = counts;
    result.tensors = tensors;
    return result;
}

}  // namespace
}  // namespace ddl::shim

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

ddl_status ddl_run_barrier(ddl_communicator* ranks) {
    const task asked = movement(collective::barrier, nullptr, nullptr, 0, DDL_BOOL);
    if (!handle<ddl_communicator>::alive(ranks)) return closed(asked);
    const std::lock_guard lock{ranks->calls};
    if (!handle<ddl_communicator>::alive(ranks)) return closed(asked);
    const ddl_status status = ranks->ranks->barrier(this_thread);
    return status != DDL_OK && ranks->interrupted.load() ? interrupted(*ranks, asked, this_thread) : status;
}

ddl_status ddl_start_barrier(ddl_communicator* ranks, ddl_request** started) {
    const task asked = movement(collective::barrier, nullptr, nullptr, 0, DDL_BOOL);
    if (started == nullptr)
        return refused(DDL_INVALID_ARGUMENT, "barrier", -1,
                       "the pointer to the request is NULL; pass where it is to go");
    *started = nullptr;
    if (!handle<ddl_communicator>::alive(ranks)) return closed(asked);
    const std::lock_guard lock{ranks->calls};
    if (!handle<ddl_communicator>::alive(ranks)) return closed(asked);
    return push(
        *ranks, [ranks](progress& call) { return ranks->ranks->barrier(to_request(call)); }, started);
}

ddl_status ddl_run_plan(ddl_plan* plan) {
    return with_plan(plan, "run_plan", [](ddl_communicator& ranks, const row& how, const task& asked) noexcept {
        return carry_out(ranks, how, asked, this_thread);
    });
}

ddl_status ddl_start_plan(ddl_plan* plan, ddl_request** started) {
    if (started == nullptr)
        return refused(DDL_INVALID_ARGUMENT, "start_plan", -1,
                       "the pointer to the request is NULL; pass where it is to go");
    *started = nullptr;
    return with_plan(plan, "start_plan", [&](ddl_communicator& ranks, const row& how, const task& asked) noexcept {
        ddl_status status = DDL_OK;
        const ddl_status copied =
            guarded(this_thread, "start_plan", [&] { status = push(ranks, how, kept_task{asked}, started); });
        return copied != DDL_OK ? copied : status;
    });
}

ddl_status ddl_explain_plan(const ddl_plan* plan, char* line, size_t capacity) {
    if (line == nullptr || capacity == 0)
        return refused(DDL_INVALID_ARGUMENT, "explain_plan", -1, "there is no room for the line; pass a buffer");
    *line = '\0';
    return with_plan(plan, "explain_plan", [&](ddl_communicator& ranks, const row& how, const task& asked) noexcept {
        return guarded(this_thread, "explain_plan",
                       [&] { std::snprintf(line, capacity, "%s", how.explain(ranks.object, asked).c_str()); });
    });
}

ddl_status ddl_free_plan(ddl_plan* plan) {
    if (plan == nullptr) return DDL_OK;
    if (!handle<ddl_plan>::alive(plan) || !handle<ddl_plan>::bury(plan))
        return refused(DDL_INVALID_ARGUMENT, "free_plan", -1, "this is no plan; free each once");
    plan->kept.reset();
    handle<ddl_plan>::give(plan);
    return DDL_OK;
}

}  // extern "C"
