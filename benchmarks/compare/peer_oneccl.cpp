// SPDX-License-Identifier: Apache-2.0
// oneCCL on host memory, over the MPI that it brings.
#include <ddl/transport/mpi_runtime.hpp>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <type_traits>

#include "peer.hpp"
#include <oneapi/ccl.hpp>

// The static library asks for the hooks of a profiler, which is not there.
extern "C" {
void* __itt_domain_create_ptr__3_0 = nullptr;
void* __itt_event_create_ptr__3_0 = nullptr;
void* __itt_event_end_ptr__3_0 = nullptr;
void* __itt_event_start_ptr__3_0 = nullptr;
void* __itt_metadata_add_ptr__3_0 = nullptr;
void* __itt_string_handle_create_ptr__3_0 = nullptr;
void* __itt_task_begin_ptr__3_0 = nullptr;
void* __itt_task_end_ptr__3_0 = nullptr;
void* __itt_thread_set_name_ptr__3_0 = nullptr;
}

namespace compare {
namespace {

std::unique_ptr<ccl::communicator> world;

ccl::datatype type() {
    if constexpr (std::is_same_v<element, float>) return ccl::datatype::float32;
    else if constexpr (std::is_same_v<element, double>) return ccl::datatype::float64;
    else if constexpr (std::is_same_v<element, std::int32_t>) return ccl::datatype::int32;
    else return ccl::datatype::bfloat16;
}
ccl::reduction operation() { return std::is_same_v<op, ddl::sum> ? ccl::reduction::sum : ccl::reduction::max; }

collective_call call_of(const cell& asked) {
    const std::size_t count = asked.count;
    const auto size = static_cast<std::size_t>(world->size());
    const std::size_t each = count / size;
    if (asked.collective == "barrier") return [](const element*, element*) { ccl::barrier(*world).wait(); };
    if (!asked.tensors.empty())  // as it is meant to be used: all are started, then awaited
        return [tensors = asked.tensors](const element*, element* out) {
            std::vector<ccl::event> started;
            for (const tensor& each : tensors) {
                element* const data = out + each.first;
                started.push_back(ccl::allreduce(data, data, each.count, type(), operation(), *world));
            }
            for (ccl::event& each : started) each.wait();
        };
    if (asked.collective == "broadcast")
        return [=](const element*, element* out) { ccl::broadcast(out, count, type(), 0, *world).wait(); };
    if (asked.collective == "reduce")
        return [=](const element* in, element* out) {
            ccl::reduce(in, out, count, type(), operation(), 0, *world).wait();
        };
    if (asked.collective == "allreduce" || asked.collective == "allreduce_async")
        return [=](const element* in, element* out) {
            ccl::allreduce(in, out, count, type(), operation(), *world).wait();
        };
    if (count % size != 0) return {};
    if (asked.collective == "reduce_scatter")
        return [=](const element* in, element* out) {
            ccl::reduce_scatter(in, out, each, type(), operation(), *world).wait();
        };
    if (asked.collective == "all_gather")
        return [=](const element* in, element* out) { ccl::allgather(in, out, each, type(), *world).wait(); };
    if (asked.in_place) return {};
    return [=](const element* in, element* out) { ccl::alltoall(in, out, each, type(), *world).wait(); };
}

}  // namespace

peer::peer(int& count, char**& words) {
    int level = MPI_THREAD_SINGLE;
    MPI_Init_thread(&count, &words, MPI_THREAD_MULTIPLE, &level);
    ccl::init();
    int rank = 0;
    int size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    ccl::kvs::address_type address;
    const ccl::shared_ptr_class<ccl::kvs> first = rank == 0 ? ccl::create_main_kvs() : nullptr;
    if (first) address = first->get_address();
    MPI_Bcast(address.data(), static_cast<int>(address.size()), MPI_BYTE, 0, MPI_COMM_WORLD);
    world = std::make_unique<ccl::communicator>(
        ccl::create_communicator(size, rank, first ? first : ccl::create_kvs(address)));
}
peer::~peer() {
    world.reset();
    MPI_Finalize();
}
void peer::give_up() const {
    MPI_Abort(MPI_COMM_WORLD, 2);
    std::abort();
}
std::string peer::version() const {
    const ccl::library_version found = ccl::get_library_version();
    return "oneCCL " + std::to_string(found.major) + "." + std::to_string(found.minor) + "." +
           std::to_string(found.update);
}
std::vector<contender> peer::contenders() const { return {{"peer", call_of}}; }

}  // namespace compare
