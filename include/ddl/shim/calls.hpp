// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/shim/movable_memory.hpp>
#include <ddl/shim/objects.hpp>

#include <new>
#include <vector>

// What the three verbs of every collective have in common.
namespace ddl::shim {

/// Calls `use()` with the communicator's lock held, if that is open, and this process's own.
template <class Use>
ddl_status with_communicator(ddl_communicator* ranks, const char* operation, Use use) noexcept {
    return with_lock(&ddl_communicator::calls, ranks, operation, use);
}

/// `place` is where a result goes: empties it, or complains that there is none.
template <class Object>
ddl_status emptied(Object** place, const char* operation) noexcept {
    if (place == nullptr)
        return refused(DDL_INVALID_ARGUMENT, operation, -1,
                       "the pointer to the result is NULL; pass where it is to go");
    *place = nullptr;
    return DDL_OK;
}

/// How many elements of `in` and `out` a call has on this rank, and whether it looks at them.
struct buffer_use {
    bool reads;
    bool writes;
    std::size_t in;
    std::size_t out;
};
inline buffer_use use_of(const ddl_communicator& ranks, const task& asked) noexcept {
    const bool is_root = ranks.rank == asked.root;
    const std::size_t own = block(asked.count, ranks.size, ranks.rank).count;
    const bool block_in = asked.what == collective::all_gather || asked.what == collective::gather;
    const bool block_out = asked.what == collective::reduce_scatter || asked.what == collective::scatter;
    const bool no_in = asked.what == collective::broadcast || (asked.what == collective::scatter && !is_root);
    const bool no_out = (asked.what == collective::reduce || asked.what == collective::gather) && !is_root;
    return {!no_in, !no_out, no_in ? 0 : block_in ? own : asked.count, no_out ? 0 : block_out ? own : asked.count};
}

/// The row that carries a task out, by the communicator's mode or schedule; nullptr if the task makes no sense, with the reason in
/// `last_error` and its kind in `status`. Finds out where its buffers lie. The lock is held.
const row* examine(ddl_communicator& ranks, task& asked, ddl_status& status) noexcept;

/// The task with its buffers where peers can map them, those that have moved there. `data`: room for the tensors of a list.
task where_mapped(const ddl_communicator& ranks, task asked, std::vector<void*>& data);

/// Whether the buffers of a task that made sense once are still there, and where. The lock is held.
ddl_status examine_again(ddl_communicator& ranks, task& asked) noexcept;

/// Carries out a call of which buffers lie in a device. `met`: in another rank's, who asks for chunks. Sets `has_met` if the ranks
/// have done their part, be it that this one's copy of the result failed.
ddl_status carry_out_staged(ddl_communicator& ranks, const row& how, const task& asked, const listener& heard, bool met,
                            bool& has_met) noexcept;

/// What a failed call returns: the failure, or that `ddl_interrupt` or `ddl_abort` was its cause.
ddl_status unless_interrupted(ddl_status status, const ddl_communicator& ranks, const task& asked,
                              const listener& heard) noexcept;

/// Runs a task whose buffers may lie in memory that moves: see `movable_memory`.
ddl_status run_where_mapped(ddl_communicator& ranks, const row& how, const task& asked, const listener& heard) noexcept;

inline ddl_status run_on_host(ddl_communicator& ranks, const row& how, const task& asked,
                              const listener& heard) noexcept {
    const bool may_be_mapped =
        movable_memory::is_in_use() &&
        (asked.tensors != 0 || asked.count * ddl_size_element(asked.element) >= movable_memory::page);
    return may_be_mapped ? run_where_mapped(ranks, how, asked, heard) : how.run(ranks.object, asked, heard);
}

inline ddl_status carry_out(ddl_communicator& ranks, const row& how, const task& asked,
                            const listener& heard) noexcept {
    const bool timed = ranks.times != nullptr && performance::counts(asked.what);
    if (ranks.has_extents) {
        ranks.ranks->drain();  // calls under way, which this thread may carry out, use theirs
        ranks.ranks->use_extents(timed ? &ranks.times->clock() : nullptr);
    }
    ddl_status status = timed ? ranks.times->begin(*ranks.ranks, heard) : DDL_OK;
    const double begin = timed ? now() : 0;
    bool has_met = false;
    if (status == DDL_OK) [[likely]]
        status = asked.on_device ? carry_out_staged(ranks, how, asked, heard, false, has_met)
                                 : run_on_host(ranks, how, asked, heard);
    if (status == asked_again) [[unlikely]]
        status = carry_out_staged(ranks, how, asked, heard, true, has_met);
    if (timed) {
        ranks.times->clock().enter(-1);
        ranks.ranks->use_extents(nullptr);
    }
    if (timed && (status == DDL_OK || has_met)) {  // all ranks count the call, or none does
        const ddl_status compared = ranks.times->add(*ranks.ranks, now() - begin, asked, heard);
        if (status == DDL_OK) status = compared;
    }
    return status == DDL_OK ? status : unless_interrupted(status, ranks, asked, heard);
}

inline ddl_status carry_out_barrier(ddl_communicator& ranks, const listener& heard) noexcept {
    const task asked{collective::barrier, DDL_BOOL, -1, 0, nullptr, nullptr, 0};
    return unless_interrupted(ranks.ranks->barrier(heard), ranks, asked, heard);
}

/// Hands a task to the communicator's queue, and a request to the caller. The lock is held.
ddl_status start(ddl_communicator& ranks, const row& how, const task& asked, ddl_request** started) noexcept;

/// The peers, who wait in a call that this rank cannot start, hear of that from its queue. The lock is held.
inline void refuse_later(ddl_communicator& ranks) noexcept {
    ++ranks.started;
    const ddl_status handed = guarded(nobody, "refuse", [&] {
        const auto refuse = [&started = ranks.started, &backend = *ranks.ranks] {
            backend.refuse();
            --started;
        };
        request done;
        if (ranks.ranks->push(refuse, done, nobody) != DDL_OK) throw std::bad_alloc{};
    });
    if (handed == DDL_OK) return;
    --ranks.started;
    ranks.ranks->interrupt("no memory is left");
}

/// Bits have no sign: such ops are built in for the unsigned integers.
inline ddl_element unsigned_for_bits(ddl_element element, ddl_op op) noexcept {
    const bool is_signed = element == DDL_INT8 || element == DDL_INT16 || element == DDL_INT32 || element == DDL_INT64;
    return is_signed && DDL_BIT_AND <= op && op <= DDL_BIT_XOR ? element + 1 : element;
}

inline task reduction(collective what, const void* in, void* out, std::size_t count, ddl_element element, ddl_op op,
                      int root = 0) {
    return {what, unsigned_for_bits(element, op), op == moves ? no_op_of_caller : op, root, in, out, count};
}
inline task movement(collective what, const void* in, void* out, std::size_t count, ddl_element element, int root = 0) {
    return {what, element, moves, root, in, out, count};
}
inline task many(void* const* data, const std::size_t* counts, std::size_t tensors, ddl_element element, ddl_op op) {
    task result = reduction(collective::allreduce_n, nullptr, nullptr, 0, element, op);
    result.data = data;
    result.counts = counts;
    result.tensors = tensors;
    return result;
}

}  // namespace ddl::shim
