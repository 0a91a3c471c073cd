// SPDX-License-Identifier: Apache-2.0
#include <ddl/shim/calls.hpp>

#include <algorithm>

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

/// The task with its buffers as `name(data)` names them. `data`: room for the tensors of a list.
template <class Name>
task named(const ddl_communicator& ranks, task asked, std::vector<void*>& data, Name name) {
    data.assign(asked.data, asked.data + asked.tensors);
    for (void*& tensor : data) tensor = name(tensor);
    asked.data = data.data();
    const buffer_use has = use_of(ranks, asked);
    if (has.reads) asked.in = name(asked.in);
    if (has.writes) asked.out = name(asked.out);
    return asked;
}

}  // namespace

task where_mapped(const ddl_communicator& ranks, const task& asked, std::vector<void*>& data) {
    return named(ranks, asked, data, [](const void* buffer) { return movable_memory::here().place_of(buffer); });
}

ddl_status run_where_mapped(ddl_communicator& ranks, const row& how, const task& asked,
                            const listener& heard) noexcept {
    movable_memory& memory = movable_memory::here();
    std::vector<void*> data;
    try {
        data.reserve(asked.tensors);
    } catch (const std::bad_alloc&) { return how.run(ranks.object, asked, heard); }
    // all of them before the first is named: in one block there must not be two names, or a call in place would not look like one
    if (ranks.size > 1) use_buffers(ranks, asked);
    const task mapped = named(ranks, asked, data, [&](const void* buffer) { return memory.enter(buffer); });
    const ddl_status status = how.run(ranks.object, mapped, heard);
    const bool failed = status != DDL_OK && status != DDL_MISMATCH && status != asked_again;
    named(ranks, asked, data, [&](const void* buffer) {
        memory.leave(buffer, failed);
        return const_cast<void*>(buffer);
    });
    return status;
}

}  // namespace ddl::shim
