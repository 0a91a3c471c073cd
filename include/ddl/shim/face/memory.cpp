// SPDX-License-Identifier: Apache-2.0
#include <ddl/shim/device_memory.hpp>
#include <ddl/shim/objects.hpp>

#include <cstring>

using namespace ddl::shim;

namespace {

/// Of the device that may use the memory; one that is gone has forgotten it.
void unpin(void* data) noexcept {
    const device_memory* const driver = device_memory::here();
    void* const context = mapped_memory::here().pinned_in(data);
    if (driver == nullptr || context == nullptr) return;
    try {
        const entered its{driver, context};
        driver->unpin(data);
    } catch (const ddl::error&) { return; }
}

}  // namespace

extern "C" {

ddl_status ddl_allocate(ddl_communicator* ranks, size_t bytes, void** data) {
    if (data == nullptr)
        return refused(DDL_INVALID_ARGUMENT, "allocate", -1,
                       "the pointer to the memory is NULL; pass where it is to go");
    *data = nullptr;
    const std::optional<ddl::memory_source> source = memory_of(ranks);
    if (!source) return refused_as_closed("allocate", ranks);
    if (bytes > static_cast<std::size_t>(PTRDIFF_MAX))
        return refused(DDL_INVALID_ARGUMENT, "allocate", ranks->rank,
                       "%zu bytes are more than any memory holds; is it negative?", bytes);
    const ddl_status status = guarded(this_thread, "allocate", [&] {
        const std::size_t held = bytes == 0 ? 1 : bytes;
        std::byte* const memory = source->allocate(held);
        std::memset(memory, 0, held);
        mapped_memory::here().add(memory, held, *source);
        *data = memory;
    });
    return told_of("allocate", status);  // what the memory says is in the name of its transport
}

ddl_status ddl_deallocate(void* data) {
    if (data == nullptr) return DDL_OK;
    bool ours = false;
    const ddl_status status = guarded(this_thread, "deallocate", [&] {
        mapped_memory& memory = mapped_memory::here();
        if (memory.bytes_of(data) != 0) unpin(data);
        ours = memory.give_back(data);
    });
    if (status != DDL_OK || ours) return status;
    return refused(DDL_INVALID_ARGUMENT, "deallocate", -1,
                   "%p is not from ddl_allocate, or was given back before; give back each pointer once", data);
}

}  // extern "C"
