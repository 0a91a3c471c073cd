// SPDX-License-Identifier: Apache-2.0
#include <ddl/shim/calls.hpp>

#include <algorithm>
#include <cstdint>

namespace ddl::shim {
namespace {

/// A task under examination, by the rank that brings it. The first mistake is the one that is told.
struct examination {
    ddl_communicator& ranks;
    task& asked;
    ddl_status status = DDL_OK;
    const device_memory* driver = find_driver();

    /// nullptr where the host can read all there is. Buffers that it could read in the last call need no second look.
    const device_memory* find_driver() noexcept {
        asked.on_device = false;
        if (asked.tensors == 0 && asked.in == ranks.host_in && asked.out == ranks.host_out) [[likely]]
            return nullptr;
        const device_memory* const found = device_memory::here();
        ranks.host_in = found == nullptr ? asked.in : &ranks;  // of which no call has any
        ranks.host_out = asked.out;
        return found;
    }

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
            return complain(DDL_INVALID_ARGUMENT, "%s was given back; allocate it anew", name);
        if (driver == nullptr || data == nullptr || asked.on_device) [[likely]]
            return true;
        status = guarded(this_thread, to_string(asked.what), [&] {
            asked.on_device = driver->holds(data);
            if (!asked.on_device) await_device(*driver, data);
        });
        return status == DDL_OK;
    }

    bool count(std::size_t elements) noexcept {
        const std::size_t each = std::max<std::size_t>(1, ddl_size_element(asked.element));
        if (elements <= static_cast<std::size_t>(PTRDIFF_MAX) / each) return true;
        return complain(DDL_INVALID_ARGUMENT, "count is %zu, more than any memory holds; is it negative?", elements);
    }

    bool tensors() noexcept {
        if (asked.tensors > static_cast<std::size_t>(PTRDIFF_MAX) / sizeof(void*))
            return complain(DDL_INVALID_ARGUMENT, "tensors is %zu, more than any memory holds; is it negative?",
                            asked.tensors);
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

    /// In place the block is this rank's, of the whole vector; what overlaps otherwise would be read after it was written.
    bool apart(const buffer_use& use) noexcept {
        if (asked.in == asked.out && use.in == use.out) [[likely]]
            return true;
        const std::size_t each = ddl_size_element(asked.element);
        const auto in = reinterpret_cast<std::uintptr_t>(asked.in);
        const auto out = reinterpret_cast<std::uintptr_t>(asked.out);
        const std::size_t place = use.in == use.out ? 0 : block(asked.count, ranks.size, ranks.rank).first * each;
        if (use.in < use.out ? lie_apart_or_at(place, in, use.in * each, out, use.out * each)
                             : lie_apart_or_at(place, out, use.out * each, in, use.in * each))
            return true;
        return complain(DDL_INVALID_ARGUMENT, "in and out overlap; pass %s, or buffers that are apart",
                        use.in == use.out  ? "one pointer for both"
                        : use.in > use.out ? "this rank's block of in for out"
                                           : "this rank's block of out for in");
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
        const buffer_use use = use_of(ranks, asked);
        return (!use.reads || buffer("in", asked.in, use.in)) && (!use.writes || buffer("out", asked.out, use.out)) &&
               apart(use);
    }

    /// The mode's row if it has one, else that of the schedule. Data that only moves takes the best way.
    const row* row_for() const noexcept {
        const bool reduces = asked.op != moves;
        for (const int schedule : {ranks.mode, ranks.schedule}) {
            const bool wanted = reduces && schedule != 0;
            if (!wanted) continue;
            const row* const found = ranks.rows->find(asked.what, schedule, asked.op, asked.element);
            if (found != nullptr || schedule == ranks.schedule) return found;
        }
        return ranks.rows->find(asked.what, 0, asked.op, asked.element);
    }

    const row* find() noexcept {
        const char* const element = ddl_name_element(asked.element);
        const char* const op = asked.op == moves ? "" : ddl_name_op(asked.op);
        if (element == nullptr)
            complain(DDL_INVALID_ARGUMENT, "element is %d; pass one of ddl.h, or what ddl_find_element gives",
                     asked.element);
        else if (op == nullptr)
            complain(DDL_INVALID_ARGUMENT, "op is %d; pass one of ddl.h, or what ddl_find_op gives",
                     asked.op == no_op_of_caller ? moves : asked.op);
        else if (const row* const found = row_for()) return found;
        else
            complain(DDL_UNSUPPORTED, "%s%s%s by this schedule is not in this library; pass another, or build it in",
                     op, *op != '\0' ? " of " : "", element);
        return nullptr;
    }
};

}  // namespace

const row* examine(ddl_communicator& ranks, task& asked, ddl_status& status) noexcept {
    examination looking{ranks, asked};
    const row* const found = looking.find();
    const bool sensible = found != nullptr && looking.buffers();
    status = looking.status;
    return sensible ? found : nullptr;
}

ddl_status examine_again(ddl_communicator& ranks, task& asked) noexcept {
    examination looking{ranks, asked};
    const buffer_use use = use_of(ranks, asked);
    bool there =
        (!use.reads || looking.buffer("in", asked.in, 0)) && (!use.writes || looking.buffer("out", asked.out, 0));
    for (std::size_t i = 0; i < asked.tensors && there; ++i) there = looking.buffer("a tensor", asked.data[i], 0);
    return looking.status;
}

ddl_status unless_interrupted(ddl_status status, const ddl_communicator& ranks, const task& asked,
                              const listener& heard) noexcept {
    if (status == DDL_OK || !ranks.interrupted.load()) return status;
    return heard(DDL_INTERRUPTED, error(static_cast<errc>(DDL_INTERRUPTED), to_string(asked.what), ranks.rank, -1,
                                        "the program interrupted it; close the communicator, and open another")
                                      .what());
}

}  // namespace ddl::shim
