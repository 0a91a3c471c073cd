// SPDX-License-Identifier: Apache-2.0
#include <ddl/shim/calls.hpp>

#include <algorithm>
#include <new>

namespace ddl::shim {
namespace {

/// Counts a call for each of its buffers. Those of which it was the last that they had to wait for move.
void use_buffers(const ddl_communicator& ranks, const task& asked) noexcept {
    // a driver of devices may have been told of pages, which must stay then
    const auto source = [&] { return device_memory::here() == nullptr ? ranks.ranks->memory() : memory_source{}; };
    const std::size_t each = ddl_size_element(asked.element);
    const auto use = [&](const void* data, std::size_t count) {
        movable_memory::here().use(data, count * each, source);
    };
    for (std::size_t i = 0; i < asked.tensors; ++i) use(asked.data[i], asked.counts[i]);
    const buffer_use has = use_of(ranks, asked);
    if (has.reads && has.writes && asked.in == asked.out) return use(asked.in, std::max(has.in, has.out));
    if (has.reads) use(asked.in, has.in);
    if (has.writes) use(asked.out, has.out);
}

}  // namespace

task where_mapped(const ddl_communicator& ranks, task asked, std::vector<void*>& data) {
    const auto place = [](const void* buffer) { return movable_memory::here().place_of(buffer); };
    data.assign(asked.data, asked.data + asked.tensors);
    for (void*& tensor : data) tensor = place(tensor);
    asked.data = data.data();
    const buffer_use has = use_of(ranks, asked);
    if (has.reads) asked.in = place(asked.in);
    if (has.writes) asked.out = place(asked.out);
    return asked;
}

ddl_status run_where_mapped(ddl_communicator& ranks, const row& how, const task& asked,
                            const listener& heard) noexcept {
    std::vector<void*> data;
    try {
        data.reserve(asked.tensors);
    } catch (const std::bad_alloc&) { return how.run(ranks.object, asked, heard); }
    ranks.ranks->drain();  // calls under way may still write to what is to move
    // all of them before the first is named: in one block there must not be two names, or a call in place would not look like one
    if (ranks.size > 1) use_buffers(ranks, asked);
    return how.run(ranks.object, where_mapped(ranks, asked, data), heard);
}

}  // namespace ddl::shim
