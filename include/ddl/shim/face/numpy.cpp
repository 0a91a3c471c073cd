// SPDX-License-Identifier: Apache-2.0
#include <ddl/shim/movable_memory.hpp>
#include <ddl/shim/objects.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>

using namespace ddl::shim;

extern "C" {
struct PyObject;
[[gnu::weak]] PyObject* PyCapsule_New(void*, const char*, void (*)(PyObject*));  // null in a process without Python
[[gnu::weak]] void* PyCapsule_GetPointer(PyObject*, const char*);
[[gnu::weak]] void PyErr_Clear();
}

// Memory of NumPy's arrays that peers can map, or that can move there. NumPy asks for it through a struct of functions, which
// is part of its C API from 1.22 on (NEP 49); this is compiled without its headers.
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

/// What a block of `held` bytes holds, as far as it has room there, in one of `bytes`.
template <auto Allocate, auto Deallocate>
void* into_another(void* context, void* data, std::size_t held, std::size_t bytes) noexcept {
    void* const moved = Allocate(context, bytes);
    if (moved == nullptr) return nullptr;
    std::memcpy(moved, data, std::min(held, bytes));
    Deallocate(context, data, held);
    return moved;
}

/// Arrays in memory that the ranks of the node can map. The context is their communicator.
namespace mapped {

/// Shorter arrays gain nothing by it, and whole pages are what peers map.
constexpr std::size_t least = 4096;

/// The system's memory where peers can map none, as after the end of the communicator, and in a process made by fork.
void* allocate(void* context, std::size_t bytes) noexcept {
    auto* const ranks = static_cast<ddl_communicator*>(context);
    std::optional<ddl::memory_source> source;
    if (bytes >= least && handle<ddl_communicator>::alive(ranks) && !is_of_parent(*ranks)) source = memory_of(ranks);
    if (source) {
        void* data = nullptr;
        const ddl_status status = guarded(this_thread, "allocate", [&] {
            std::byte* const memory = source->allocate(bytes);
            mapped_memory::here().add(memory, bytes, *source, !(*source == ddl::memory_source{}));
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
    return into_another<allocate, deallocate>(context, data, held, bytes);
}

}  // namespace mapped

/// Arrays that can move there, and NumPy's own memory for short ones. The context is the handler before.
namespace movable {

const numpy_handler& before(const void* context) noexcept { return *static_cast<const numpy_handler*>(context); }

/// Which NumPy asks the system for by default, too.
bool huge_pages() noexcept {
    static const bool wanted = [] {
        const char* const words = std::getenv("NUMPY_MADVISE_HUGEPAGE");  // NOLINT(concurrency-mt-unsafe): read once
        return words == nullptr || std::atoi(words) != 0;
    }();
    return wanted;
}

void* allocate(void* context, std::size_t bytes) noexcept {
    if (bytes >= movable_memory::least) return movable_memory::here().allocate(bytes, false, huge_pages());
    return before(context).allocate(before(context).context, bytes);
}

void* allocate_zeros(void* context, std::size_t count, std::size_t bytes) noexcept {
    if (bytes != 0 && count > static_cast<std::size_t>(PTRDIFF_MAX) / bytes) return nullptr;
    if (count * bytes >= movable_memory::least)
        return movable_memory::here().allocate(count * bytes, true, huge_pages());
    return before(context).allocate_zeros(before(context).context, count, bytes);
}

void deallocate(void* context, void* data, std::size_t bytes) noexcept {
    if (data == nullptr) return;
    const bool may_be = reinterpret_cast<std::uintptr_t>(data) % ddl::memory_source::alignment == 0;
    if (!may_be || !movable_memory::here().give_back(data))
        before(context).deallocate(before(context).context, data, bytes);
}

void* reallocate(void* context, void* data, std::size_t bytes) noexcept {
    const std::size_t held = movable_memory::here().bytes_of(data);
    if (held == 0) return before(context).reallocate(before(context).context, data, bytes);
    return into_another<allocate, deallocate>(context, data, held, bytes);
}

}  // namespace movable

constexpr const char* capsule_name = "mem_handler";

/// A capsule for PyDataMem_SetHandler. What it points to stays for ever, for arrays do, too.
PyObject* capsule(const numpy_handler& functions) {
    auto* const made = new (std::nothrow) numpy_handler{functions};
    return made == nullptr ? nullptr : PyCapsule_New(made, capsule_name, nullptr);
}

}  // namespace

extern "C" {

/// A capsule for NumPy's PyDataMem_SetHandler: arrays in memory that the ranks of the node can map. Null if there is no memory
/// for it.
DDL_API PyObject* ddl_numpy_handler(ddl_communicator* ranks);
PyObject* ddl_numpy_handler(ddl_communicator* ranks) {
    if (PyCapsule_New == nullptr) return nullptr;
    return capsule({"ddl", 1, ranks, mapped::allocate, mapped::allocate_zeros, mapped::reallocate, mapped::deallocate});
}

/// The same for arrays that move there once collectives keep using them. `before`: the handler so far. Null if that is not
/// NumPy's own, whose place this takes, or if there is no memory for it.
DDL_API PyObject* ddl_numpy_movable_handler(PyObject* before);
PyObject* ddl_numpy_movable_handler(PyObject* before) {
    if (PyCapsule_New == nullptr || PyCapsule_GetPointer == nullptr || PyErr_Clear == nullptr) return nullptr;
    void* const own = PyCapsule_GetPointer(before, capsule_name);
    if (own == nullptr) PyErr_Clear();
    if (own == nullptr || std::strcmp(static_cast<const numpy_handler*>(own)->name, "default_allocator") != 0)
        return nullptr;
    return capsule(
        {"ddl_movable", 1, own, movable::allocate, movable::allocate_zeros, movable::reallocate, movable::deallocate});
}

}  // extern "C"
