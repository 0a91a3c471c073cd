// SPDX-License-Identifier: Apache-2.0
#include <ddl/shim/companion.hpp>
#include <ddl/shim/ddl.hpp>
#include <ddl/shim/device_memory.hpp>
#include <ddl/shim/ibm/error_line.hpp>
#include <ddl/shim/last_error.hpp>
#include <ddl/shim/mapped_memory.hpp>
#include <ddl/shim/objects.hpp>
#include <ddl/shim/process_end.hpp>
#include <ddl/transport/launcher.hpp>

#include <atomic>
#include <cstring>
#include <mutex>
#include <utility>

using namespace ddl::shim;

namespace {

/// The one world of a process, as IBM's interface knows it.
struct process {
    std::mutex changes;
    ddl_communicator* world = nullptr;
    std::atomic<ddl_communicator*> ready{nullptr};  // `world`, once its options are set
    bool by_user = false;                           // whether `ddl_init` made it ready
    std::atomic<bool> finalized{false};

    static process& here() {
        static process& kept = *new process;  // stays: other threads may still call while the process ends
        return kept;
    }
};

const char* variable(const char* name) noexcept {
    return std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing here sets any
}

int reported(ddl_status status, place where = place::here()) noexcept {
    return failed(status, ddl_last_error(), where);
}

/// Nobody says how many ranks there are, but a program with an MPI library may go on to use MPI, as Horovod does: then it is
/// started here.
bool is_singleton_of_mpi() noexcept {
    for (const char* const name : {"RANK", "WORLD_SIZE", "DDL_TRANSPORT"})
        if (variable(name) != nullptr) return false;
    return mpi_is_loaded() && !mpi_is_up() && !launched_by_mpi();
}

/// When the process ends, which it may do without `ddl_finalize`.
void leave(int status) noexcept {
    process& here = process::here();
    const std::unique_lock lock{here.changes, std::try_to_lock};  // a thread that has it may never give it back now
    if (lock && here.world != nullptr) tell_of_end(here.world, status);
}

ddl_status refused_as_finalized(const char* operation) noexcept {
    return refused(DDL_INVALID_ARGUMENT, operation, -1,
                   "DDL was finalized in this process; start it once, and end it last");
}

/// Opens the world if that is to be done, and sets its options, for `operation`.
ddl_status start(process& here, const char* words, const char* operation) noexcept {
    if (here.finalized) return refused_as_finalized(operation);
    if (here.world == nullptr) {
        const ddl_status opened =
            is_singleton_of_mpi() ? ddl_open_mpi(nullptr, 0, &here.world) : ddl_open_environment(&here.world);
        if (opened != DDL_OK) return told_of(operation, opened);
        at_end_of_this_process<leave>();
    }
    if (const ddl_status status = set_options(here.world, words, operation)) return status;
    here.ready = here.world;
    return DDL_OK;
}

/// The world that is ready, started from DDL_OPTIONS if nobody did; nullptr if that fails.
ddl_communicator* started(ddl_status& status) noexcept {
    process& here = process::here();
    if (ddl_communicator* const ready = here.ready.load(std::memory_order_acquire)) [[likely]]
        return ready;
    const std::lock_guard lock{here.changes};
    if (here.ready == nullptr) status = start(here, variable("DDL_OPTIONS"), "allreduce");
    return here.ready;
}

constexpr ddl_element elements[] = {DDL_FLOAT,  DDL_HALF,  DDL_DOUBLE, DDL_INT8,  DDL_UINT8,  DDL_INT16,
                                    DDL_UINT16, DDL_INT32, DDL_UINT32, DDL_INT64, DDL_UINT64, DDL_BFLOAT16};
constexpr ddl_op ops[] = {DDL_SUM, DDL_PRODUCT, DDL_MINIMUM, DDL_MAXIMUM};

/// The number of ddl.h for one of IBM's; one that no table has for what is none.
template <std::size_t Count>
int translated(const int (&numbers)[Count], int number) noexcept {
    return number >= 0 && number < static_cast<int>(Count) ? numbers[number] : -1;
}

/// Fills `answer` by `ask(world)`, once DDL is started.
int answered(const char* what, int* answer, int (*ask)(const ddl_communicator*)) noexcept {
    if (answer == nullptr)
        return reported(refused(DDL_INVALID_ARGUMENT, what, -1, "the pointer is NULL; pass where the answer is to go"));
    const ddl_communicator* const world = process::here().ready.load(std::memory_order_acquire);
    if (world == nullptr && process::here().finalized) return reported(refused_as_finalized(what));
    if (world == nullptr)
        return reported(refused(DDL_INVALID_ARGUMENT, what, -1, "DDL is not started; call ddl_init first"));
    *answer = ask(world);
    return DDL_SUCCESS;
}

int copied(const char* what, void* to, const void* from, std::size_t bytes) noexcept {
    if (bytes > static_cast<std::size_t>(PTRDIFF_MAX) || (bytes != 0 && (to == nullptr || from == nullptr)))
        return reported(
            refused(DDL_INVALID_ARGUMENT, what, -1, "%zu bytes from %p to %p make no sense", bytes, from, to));
    for (const void* const each : {static_cast<const void*>(to), from})
        if (mapped_memory::here().is_given_back(each))
            return reported(
                refused(DDL_INVALID_ARGUMENT, what, -1, "%p was given back with ddl_free; allocate it anew", each));
    return reported(guarded(this_thread, what, [&] {
        if (bytes == 0) return;
        if (const device_memory* const driver = device_memory::here()) {
            for (const void* const each : {static_cast<const void*>(to), from})
                if (driver->holds(each)) {
                    const entered context{driver, driver->context_of(each)};
                    return driver->copy(to, from, bytes);
                }
            for (const void* const each : {static_cast<const void*>(to), from}) await_device(*driver, each);
        }
        std::memcpy(to, from, bytes);
    }));
}

}  // namespace

extern "C" {

DDL_API int ddl_init(const char* words) {
    process& here = process::here();
    const std::lock_guard lock{here.changes};
    if (here.by_user)
        return reported(
            refused(DDL_INVALID_ARGUMENT, "init", -1, "DDL is started already; call ddl_init once in a process"));
    const ddl_status status = start(here, words, "init");
    here.by_user = status == DDL_OK;
    const device_memory* const driver = device_memory::here();
    if (status != DDL_OK || driver == nullptr) return reported(status);
    // one GPU a rank: programs take the one that is current afterwards
    return reported(guarded(this_thread, "init", [&] { driver->choose(ddl_get_local_rank(here.world)); }));
}

DDL_API int ddl_finalize(void) {
    if (is_calling_back) return reported(refused_in_callback("finalize", -1));
    process& here = process::here();
    const std::lock_guard lock{here.changes};
    here.ready = nullptr;
    here.by_user = false;
    here.finalized = true;
    const bool of_parent = here.world != nullptr && is_of_parent(*here.world);  // and so is MPI
    const ddl_status closed = ddl_close(std::exchange(here.world, nullptr));
    if (closed != DDL_OK || of_parent || !mpi_is_up()) return reported(closed);
    ddl::text why;
    const companion* const part = load_companion(why);
    if (part == nullptr)
        return reported(refused(DDL_UNSUPPORTED, "finalize", -1, "MPI cannot be ended: %.200s", why.c_str()));
    return reported(part->finalize(this_thread));
}

DDL_API int ddl_rank(int* rank) {
    if (rank == nullptr)
        return reported(
            refused(DDL_INVALID_ARGUMENT, "rank", -1, "the pointer is NULL; pass where the answer is to go"));
    if (const ddl_communicator* const world = process::here().ready.load(std::memory_order_acquire)) {
        *rank = ddl_get_rank(world);
        return DDL_SUCCESS;
    }
    const bool of_mpi = ranks_are_of_mpi();
    if (of_mpi && mpi_is_up()) {
        ddl::text why;
        const companion* const part = load_companion(why);
        if (part == nullptr)
            return reported(refused(DDL_UNSUPPORTED, "rank", -1, "MPI cannot be asked: %.200s", why.c_str()));
        return reported(part->world_rank(rank, this_thread));
    }
    return reported(guarded(this_thread, "rank", [&] {
        *rank = (of_mpi ? ddl::launcher::of_mpi() : ddl::launcher::from_environment()).rank;
    }));
}
DDL_API int ddl_size(int* size) { return answered("size", size, ddl_get_size); }
DDL_API int ddl_local_rank(int* rank) { return answered("local_rank", rank, ddl_get_local_rank); }
DDL_API int ddl_local_size(int* size) { return answered("local_size", size, ddl_get_local_size); }

DDL_API size_t ddl_malloc(void** memory, size_t quantum, size_t bytes) {
    constexpr auto most = static_cast<std::size_t>(PTRDIFF_MAX);
    if (memory == nullptr) {
        reported(refused(DDL_INVALID_ARGUMENT, "malloc", -1, "the pointer is NULL; pass where the memory is to go"));
        return 0;
    }
    *memory = nullptr;
    if (quantum > most || bytes > most - quantum) {
        reported(refused(DDL_INVALID_ARGUMENT, "malloc", -1,
                         "%zu bytes in units of %zu make no sense; is one negative?", bytes, quantum));
        return 0;
    }
    const std::size_t unit = quantum == 0 ? 1 : quantum;
    const std::size_t rounded = (bytes + unit - 1) / unit * unit;
    const auto shared = [&](ddl_status status) -> std::size_t {
        if (reported(status) != DDL_OK) return 0;
        // the thread's device may use it as the memory of its own that a program expects, as soon as there is one
        mapped_memory::here().want_pinned(*memory);
        if (const device_memory* const driver = device_memory::here())
            guarded(this_thread, "malloc", [&] { pin_if_wanted(*driver, *memory); });
        return rounded;
    };
    if (ddl_communicator* const world = process::here().ready.load(std::memory_order_acquire))
        return shared(told_of("malloc", ddl_allocate(world, rounded, memory)));
    // not yet started, which only all ranks together can do: memory of this process, which is as good but for speed
    const ddl_status status = guarded(this_thread, "malloc", [&] {
        const ddl::memory_source own;
        const std::size_t held = rounded == 0 ? 1 : rounded;
        std::byte* const data = own.allocate(held);
        std::memset(data, 0, held);
        mapped_memory::here().add(data, held, own);
        *memory = data;
    });
    return shared(status);
}
DDL_API int ddl_free(void* memory) {
    const ddl_status status = ddl_deallocate(memory);
    if (status == DDL_INVALID_ARGUMENT)  // in the names of the caller
        refused(status, "free", -1, "%p is not from ddl_malloc, or was given back before; give back each pointer once",
                memory);
    return reported(status);
}

DDL_API int ddl_memcpy_host_to_device(void* device, const void* host, size_t bytes) {
    return copied("memcpy_host_to_device", device, host, bytes);
}
DDL_API int ddl_memcpy_device_to_host(void* host, const void* device, size_t bytes) {
    return copied("memcpy_device_to_host", host, device, bytes);
}
DDL_API int ddl_memsync(void) { return DDL_SUCCESS; }  // the copies above are done when they return

DDL_API int ddl_allreduce(void* data, size_t count, DDL_Type type, DDL_Op op) {
    ddl_status status = DDL_OK;
    ddl_communicator* const world = started(status);
    if (world == nullptr) return reported(status);
    const ddl_element element = translated(elements, type);
    const ddl_op combined = translated(ops, op);
    status = ddl_run_allreduce(world, data, data, count, element, combined);
    if (status == DDL_INVALID_ARGUMENT && element < 0)  // in the words of the caller
        refused(status, "allreduce", ddl_get_rank(world), "type is %d; pass a DDL_Type of ddl.hpp", int{type});
    else if (status == DDL_INVALID_ARGUMENT && combined < 0)
        refused(status, "allreduce", ddl_get_rank(world), "op is %d; pass a DDL_Op of ddl.hpp", int{op});
    return status == DDL_OK ? DDL_SUCCESS : reported(status);
}

}  // extern "C"
