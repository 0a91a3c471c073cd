// SPDX-License-Identifier: Apache-2.0
#include <ddl/shim/objects.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>

using namespace ddl::shim;

// Memory of NumPy's arrays that peers can map. NumPy asks for it through a struct of functions, which is part of its C API
// from 1.22 on (NEP 49); this is compiled without its headers.
namespace {

struct numpy_handler {
    char name[127];
    unsigned char version;
    void* context;
    void* (*allocate)(void* context, std::size_t bytes);
    void* (*allocate_zeros)(void* context, std::size_t count, std::size_t bytes);
    void* (*reallocate)(void* context, void* data, std::size_t bytes);
    void (*deallocate)(void* context, void* data, std::size_t bytes);
};

/// Shorter arrays gain nothing by it, and whole pages are what peers map.
constexpr std::size_t least = 4096;

/// The system's memory where peers can map none, as after the end of the communicator, and in a process made by fork.
void* allocate(void* context, std::size_t bytes) noexcept {
    auto* const ranks = static_cast<ddl_communicator*>(context);
    if (bytes >= least && handle<ddl_communicator>::alive(ranks) && !is_of_parent(*ranks)) {
        void* data = nullptr;
        const ddl_status status = guarded(this_thread, "allocate", [&] {
            const ddl::memory_source source = ranks->ranks->memory();
            std::byte* const memory = source.allocate(bytes);
            mapped_memory::here().add(memory, bytes, source, !(source == ddl::memory_source{}));
            data = memory;
        });
        if (status == DDL_OK) return data;
    }
    return std::malloc(std::max<std::size_t>(bytes, 1));
}

void* allocate_zeros(void* context, std::size_t count, std::size_t bytes) noexcept {
    if (bytes != 0 && count > static_cast<std::size_t>(PTRDIFF_MAX) / bytes) return nullptr;
    void* const data = count * bytes < least
                           ? std::calloc(std::max<std::size_t>(count, 1), std::max<std::size_t>(bytes, 1))
                           : allocate(context, count * bytes);
    if (data != nullptr && count * bytes >= least) std::memset(data, 0, count * bytes);
    return data;
}

void deallocate(void*, void* data, std::size_t) noexcept {
    if (data != nullptr && !mapped_memory::here().give_back(data)) std::free(data);
}

void* reallocate(void* context, void* data, std::size_t bytes) noexcept {
    const std::size_t held = mapped_memory::here().bytes_of(data);
    if (held == 0) return std::realloc(data, std::max<std::size_t>(bytes, 1));
    void* const moved = allocate(context, bytes);
    if (moved == nullptr) return nullptr;
    std::memcpy(moved, data, std::min(held, bytes));
    deallocate(context, data, held);
    return moved;
}

}  // namespace

extern "C" {

struct PyObject;
[[gnu::weak]] PyObject* PyCapsule_New(void*, const char*, void (*)(PyObject*));  // null in a process without Python

/// A capsule for NumPy's PyDataMem_SetHandler: arrays in memory that the ranks of the node can map. What it points to stays for
/// ever, for arrays do, too. Null if there is no memory for it.
DDL_API PyObject* ddl_numpy_handler(ddl_communicator* ranks);
PyObject* ddl_numpy_handler(ddl_communicator* ranks) {
    if (PyCapsule_New == nullptr) return nullptr;
    auto* const made =
        new (std::nothrow) numpy_handler{"ddl", 1, ranks, allocate, allocate_zeros, reallocate, deallocate};
    return made == nullptr ? nullptr : PyCapsule_New(made, "mem_handler", nullptr);
}

}  // extern "C"
