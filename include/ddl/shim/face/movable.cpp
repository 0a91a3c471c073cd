// SPDX-License-Identifier: Apache-2.0
#include <ddl/shim/calls.hpp>

#include <algorithm>

namespace ddl::shim {
namespace {

/// Says of each buffer of a task which bytes a call of it uses: `visit(data, bytes)`.
template <class Visit>
void for_each_buffer(const ddl_communicator& ranks, const task& asked, Visit visit) {
    const std::size_t each = ddl_size_element(asked.element);
    if (asked.what == collective::allreduce_n) {
        for (std::size_t i = 0; i < asked.tensors; ++i) visit(asked.data[i], asked.counts[i] * each);
        return;
    }
    const buffer_use use = use_of(ranks, asked);
    const bool in_place = use.reads && use.writes && asked.in == asked.out;
    if (use.reads) visit(asked.in, (in_place ? std::max(use.in, use.out) : use.in) * each);
    if (use.writes && !in_place) visit(asked.out, use.out * each);
}

}  // namespace

task where_mapped(const ddl_communicator& ranks, task asked, std::vector<void*>& data) {
    movable_memory& memory = movable_memory::here();
    const buffer_use use = use_of(ranks, asked);
    if (use.reads) asked.in = memory.place_of(asked.in);
    if (use.writes) asked.out = memory.place_of(asked.out);
    data.assign(asked.data, asked.data + asked.tensors);
    for (void*& tensor : data) tensor = memory.place_of(tensor);
    asked.data = data.data();
    return asked;
}

ddl_status run_where_mapped(ddl_communicator& ranks, const row& how, task asked, const listener& heard) noexcept {
    std::vector<void*> data;
    try {
        // a driver of devices may have been told of pages, which must stay then
        const auto source = [&] { return device_memory::here() == nullptr ? ranks.ranks->memory() : memory_source{}; };
        // all of them first: what lies in one block must be named in one way, or a call in place would not look like one
        if (ranks.size > 1)
            for_each_buffer(ranks, asked, [&](const void* buffer, std::size_t bytes) {
                movable_memory::here().use(buffer, bytes, source);
            });
        asked = where_mapped(ranks, asked, data);
    } catch (const std::bad_alloc&) {}  // a list then stays as it is
    return how.run(ranks.object, asked, heard);
}

}  // namespace ddl::shim
