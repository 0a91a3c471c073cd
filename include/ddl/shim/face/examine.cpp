// SPDX-License-Identifier: Apache-2.0
#include <ddl/shim/calls.hpp>

#include <algorithm>
#include <cstdint>

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

    /// The mode's row if it has one, else that of the schedule. Data that only moves takes the best way.
    const row* row_for() const noexcept {
        const bool reduces = asked.op != -1;
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
        const char* const op = asked.op == -1 ? "" : ddl_name_op(asked.op);
        if (element == nullptr)
            complain(DDL_INVALID_ARGUMENT, "element is %d; pass one of ddl.h, or what ddl_find_element gives",
                     asked.element);
        else if (op == nullptr)
            complain(DDL_INVALID_ARGUMENT, "op is %d; pass one of ddl.h, or what ddl_find_op gives", asked.op);
        else if (const row* const found = row_for()) return found;
        else
            complain(DDL_UNSUPPORTED, "%s%s%s by this schedule is not in this library; pass another, or build it in",
                     op, *op != '\0' ? " of " : "", element);
        return nullptr;
    }
};

}  // namespace

const row* examine(const ddl_communicator& ranks, const task& asked, ddl_status& status) noexcept {
    examination looking{ranks, asked};
    const row* const found = looking.find();
    const bool sensible = found != nullptr && looking.buffers();
    status = looking.status;
    return sensible ? found : nullptr;
}

ddl_status examine_again(const ddl_communicator& ranks, const task& asked) noexcept {
    examination looking{ranks, asked};
    bool there = looking.buffer("in", asked.in, 0) && looking.buffer("out", asked.out, 0);
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
