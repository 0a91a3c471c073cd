// SPDX-License-Identifier: Apache-2.0
// Gloo over TCP on the loopback interface, the fastest way it has between processes of one machine.
#include <ddl/transport/launcher.hpp>

#include <cstdlib>
#include <filesystem>
#include <gloo/algorithm.h>
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <type_traits>

#include "peer.hpp"

namespace compare {
namespace {

std::shared_ptr<gloo::Context> context;

std::shared_ptr<gloo::Context> connected() {
    const ddl::launcher own = ddl::launcher::from_environment();
    const auto folder = std::filesystem::temp_directory_path() / ("gloo-" + std::string{own.job});
    std::filesystem::create_directories(folder);
    gloo::rendezvous::FileStore store{folder.string()};
    gloo::transport::tcp::attr loopback;
    loopback.iface = "lo";
    auto device = gloo::transport::tcp::CreateDevice(loopback);
    const auto made = std::make_shared<gloo::rendezvous::Context>(own.rank, own.size);
    made->connectFullMesh(store, device);
    gloo::BarrierOptions all{std::shared_ptr<gloo::Context>{made}};
    gloo::barrier(all);  // nobody reads the folder any more
    if (own.rank == 0) std::filesystem::remove_all(folder);
    return made;
}

void fold(void* result, const void* a, const void* b, std::size_t count) {
    if constexpr (std::is_same_v<op, ddl::sum>) gloo::sum<element>(result, a, b, count);
    else gloo::max<element>(result, a, b, count);
}

/// Gloo takes a call's description anew each time.
void allreduce(const element* in, element* out, std::size_t count) {
    gloo::AllreduceOptions call{context};
    if (in != out) call.setInput(const_cast<element*>(in), count);
    call.setOutput(out, count);
    call.setReduceFunction(static_cast<void (*)(void*, const void*, const void*, std::size_t)>(fold));
    gloo::allreduce(call);
}

collective_call call_of(const cell& asked) {
    const std::size_t count = asked.count;
    const bool in_place = asked.in_place;
    if (asked.collective == "barrier")
        return [](const element*, element*) {
            gloo::BarrierOptions call{context};
            gloo::barrier(call);
        };
    if (asked.collective == "broadcast")
        return [=](const element*, element* out) {
            gloo::BroadcastOptions call{context};
            call.setOutput(out, count);
            call.setRoot(0);
            gloo::broadcast(call);
        };
    const auto size = static_cast<std::size_t>(context->size);
    if (asked.collective == "all_gather" && count % size == 0)
        return [=](const element* in, element* out) {
            gloo::AllgatherOptions call{context};
            call.setInput(const_cast<element*>(in), count / size);
            call.setOutput(out, count);
            gloo::allgather(call);
        };
    if (asked.collective == "all_to_all" && !in_place)
        return [=](const element* in, element* out) {
            gloo::AlltoallOptions call{context};
            call.setInput(const_cast<element*>(in), count);
            call.setOutput(out, count);
            gloo::alltoall(call);
        };
    if (asked.collective == "reduce")
        return [=](const element* in, element* out) {
            gloo::ReduceOptions call{context};
            if (!in_place) call.setInput(const_cast<element*>(in), count);
            call.setOutput(out, count);
            call.setReduceFunction(fold);
            call.setRoot(0);
            gloo::reduce(call);
        };
    if (!asked.tensors.empty())
        return [tensors = asked.tensors](const element*, element* out) {
            for (const tensor& each : tensors) allreduce(out + each.first, out + each.first, each.count);
        };
    if (asked.collective == "allreduce") return [=](const element* in, element* out) { allreduce(in, out, count); };
    return {};  // it has no reduce-scatter of this kind
}

}  // namespace

peer::peer(int&, char**&) { context = connected(); }
peer::~peer() { context.reset(); }
void peer::give_up() const { std::_Exit(2); }
std::string peer::version() const { return "Gloo " DDL_COMPARE_PEER_VERSION " over TCP"; }
std::vector<contender> peer::contenders() const { return {{"peer", call_of}}; }

}  // namespace compare
