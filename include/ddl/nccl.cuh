// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/all_gather.hpp>
#include <ddl/all_to_all.hpp>
#include <ddl/allreduce.hpp>
#include <ddl/barrier.hpp>
#include <ddl/broadcast.hpp>
#include <ddl/gather.hpp>
#include <ddl/nccl_ranks.cuh>
#include <ddl/reduce.hpp>
#include <ddl/reduce_scatter.hpp>
#include <ddl/scatter.hpp>
#include <ddl/transport/layered.hpp>

#include <span>

// Each collective, as NCCL says it: device memory over a library that carries whole collectives, for those who have it.
namespace ddl {

template <class Host>
inline constexpr fusion_limits fusion_limits_of<nccl<Host>> = never_packed;

template <class Schedule, class Checking, class Op, class Element, class Host>
void allreduce_over(nccl<Host>& ranks, const Element* in, Element* out, std::size_t count, const Op&,
                    collective what = collective::allreduce, int detail = 0) {
    ranks.template carry<Checking>(
        describe<Op, Element, Schedule>(what, count, detail), {{"in", in, count}, {"out", out, count}},
        [&](ncclComm_t group, cudaStream_t stream) {
            return ncclAllReduce(in, out, count, nccl_element<Element>(), nccl_op<Op>(), group, stream);
        });
}

template <class Schedule, class Checking, class Op, class Element, class Host>
void reduce_over(nccl<Host>& ranks, const Element* in, Element* out, std::size_t count, const Op&, int root) {
    ranks.template carry<Checking>(describe<Op, Element, Schedule>(collective::reduce, count, root),
                                   {{"in", in, count}, {"out", out, ranks.rank() == root ? count : 0}},
                                   [&](ncclComm_t group, cudaStream_t stream) {
                                       return ncclReduce(in, out, count, nccl_element<Element>(), nccl_op<Op>(), root,
                                                         group, stream);
                                   });
}

template <class Schedule, class Checking, class Element, class Host>
void broadcast_over(nccl<Host>& ranks, Element* data, std::size_t count, int root) {
    ranks.template carry<Checking>(describe<no_op, Element, Schedule>(collective::broadcast, count, root),
                                   {{"data", data, count}}, [&](ncclComm_t group, cudaStream_t stream) {
                                       return ncclBroadcast(data, data, count * sizeof(Element), ncclUint8, root, group,
                                                            stream);
                                   });
}

/// One call of NCCL's for each rank's block, which may have unlike lengths: `enqueue(root, first, length)`.
template <class Enqueue>
ncclResult_t nccl_blocks(std::size_t count, int ranks, Enqueue enqueue) {
    const partition blocks{count, ranks};
    if (const ncclResult_t status = ncclGroupStart(); status != ncclSuccess) return status;
    ncclResult_t first_failure = ncclSuccess;
    for (int root = 0; root < ranks; ++root) {
        const ncclResult_t status = enqueue(root, blocks.first(root), blocks.length(root));
        if (status != ncclSuccess && status != ncclInProgress) first_failure = status;
    }
    const ncclResult_t status = ncclGroupEnd();
    return first_failure != ncclSuccess ? first_failure : status;
}

template <class Schedule, class Checking, class Op, class Element, class Host>
void reduce_scatter_over(nccl<Host>& ranks, const Element* in, Element* out, std::size_t count, const Op&) {
    const int size = ranks.size();
    const std::size_t mine = partition{count, size}.length(ranks.rank());
    ranks.template carry<Checking>(
        describe<Op, Element, Schedule>(collective::reduce_scatter, count, 0), {{"in", in, count}, {"out", out, mine}},
        [&](ncclComm_t group, cudaStream_t stream) {
            constexpr ncclDataType_t type = nccl_element<Element>();
            if (count % static_cast<std::size_t>(size) == 0)
                return ncclReduceScatter(in, out, count / static_cast<std::size_t>(size), type, nccl_op<Op>(), group,
                                         stream);
            return nccl_blocks(count, size, [&](int root, std::size_t first, std::size_t length) {
                return ncclReduce(in + first, out, length, type, nccl_op<Op>(), root, group, stream);
            });
        });
}

template <class Schedule, class Checking, class Element, class Host>
void all_gather_over(nccl<Host>& ranks, const Element* in, Element* out, std::size_t count) {
    const int size = ranks.size();
    const std::size_t mine = partition{count, size}.length(ranks.rank());
    ranks.template carry<Checking>(
        describe<no_op, Element, Schedule>(collective::all_gather, count, 0), {{"in", in, mine}, {"out", out, count}},
        [&](ncclComm_t group, cudaStream_t stream) {
            if (count % static_cast<std::size_t>(size) == 0)
                return ncclAllGather(in, out, count / static_cast<std::size_t>(size) * sizeof(Element), ncclUint8,
                                     group, stream);
            return nccl_blocks(count, size, [&](int root, std::size_t first, std::size_t length) {
                return ncclBroadcast(in, out + first, length * sizeof(Element), ncclUint8, root, group, stream);
            });
        });
}

/// Copies a rank's own block on the stream of the call.
template <class Host>
void nccl_copy(nccl<Host>& ranks, void* to, const void* from, std::size_t bytes) {
    if (to == from || bytes == 0) return;
    require_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, ranks.stream()), "cudaMemcpyAsync",
                 ranks.rank(), ranks.device());
}

template <class Schedule, class Checking, class Element, class Host>
void gather_over(nccl<Host>& ranks, const Element* in, Element* out, std::size_t count, int root) {
    const int rank = ranks.rank();
    const partition blocks{count, ranks.size()};
    const std::size_t mine = blocks.length(rank);
    ranks.template carry<Checking>(
        describe<no_op, Element, Schedule>(collective::gather, count, root),
        {{"in", in, mine}, {"out", out, rank == root ? count : 0}}, [&](ncclComm_t group, cudaStream_t stream) {
            if (rank == root) nccl_copy(ranks, out + blocks.first(rank), in, mine * sizeof(Element));
            return nccl_blocks(count, ranks.size(), [&](int peer, std::size_t first, std::size_t length) {
                const std::size_t bytes = length * sizeof(Element);
                if (peer == rank && rank == root) return ncclSuccess;
                if (rank == root) return ncclRecv(out + first, bytes, ncclUint8, peer, group, stream);
                return peer == rank ? ncclSend(in, bytes, ncclUint8, root, group, stream) : ncclSuccess;
            });
        });
}

template <class Schedule, class Checking, class Element, class Host>
void scatter_over(nccl<Host>& ranks, const Element* in, Element* out, std::size_t count, int root) {
    const int rank = ranks.rank();
    const partition blocks{count, ranks.size()};
    const std::size_t mine = blocks.length(rank);
    ranks.template carry<Checking>(
        describe<no_op, Element, Schedule>(collective::scatter, count, root),
        {{"in", in, rank == root ? count : 0}, {"out", out, mine}}, [&](ncclComm_t group, cudaStream_t stream) {
            if (rank == root) nccl_copy(ranks, out, in + blocks.first(rank), mine * sizeof(Element));
            return nccl_blocks(count, ranks.size(), [&](int peer, std::size_t first, std::size_t length) {
                const std::size_t bytes = length * sizeof(Element);
                if (peer == rank && rank == root) return ncclSuccess;
                if (rank == root) return ncclSend(in + first, bytes, ncclUint8, peer, group, stream);
                return peer == rank ? ncclRecv(out, bytes, ncclUint8, root, group, stream) : ncclSuccess;
            });
        });
}

/// Memory that lives on the stream of a call: NCCL has enqueued its work when this goes.
template <class Checking, class Host>
auto nccl_scratch(nccl<Host>& ranks, std::size_t bytes) {
    const auto release = [device = ranks.device(), stream = ranks.stream()](void* data) noexcept {
        // whatever these say, there is nobody left to tell
        int before = 0;
        const bool known = quietly(cudaGetDevice(&before));
        // which tells default streams apart: on another one this would be gone while it is still sent
        if (quietly(cudaSetDevice(device))) quietly(cudaFreeAsync(data, stream));
        if (known) quietly(cudaSetDevice(before));
    };
    void* data = nullptr;
    if (bytes != 0)
        prepared<Checking>(ranks.host(), [&] {
            const device_scope scope{ranks.device(), ranks.rank()};
            data = ranks.allocate(bytes);
        });
    return std::unique_ptr<void, decltype(release)>{data, release};
}

/// In place a copy is sent, which lives on the stream.
template <class Schedule, class Checking, class Element, class Host>
void all_to_all_over(nccl<Host>& ranks, const Element* in, Element* out, std::size_t count) {
    const std::size_t all = count * sizeof(Element);
    const auto copy = nccl_scratch<Checking>(ranks, in == out ? all : 0);
    const auto* const from = copy ? static_cast<const Element*>(copy.get()) : in;
    ranks.template carry<Checking>(
        describe<no_op, Element, Schedule>(collective::all_to_all, count, 0), {{"in", in, count}, {"out", out, count}},
        [&](ncclComm_t group, cudaStream_t stream) {
            nccl_copy(ranks, copy.get(), in, copy ? all : 0);
            const std::size_t own = partition{count, ranks.size()}.first(ranks.rank());
            nccl_copy(ranks, out + own, in + own, all / static_cast<std::size_t>(ranks.size()));
            return nccl_blocks(count, ranks.size(), [&](int peer, std::size_t first, std::size_t length) {
                const std::size_t bytes = length * sizeof(Element);
                if (peer == ranks.rank()) return ncclSuccess;
                const ncclResult_t status = ncclSend(from + first, bytes, ncclUint8, peer, group, stream);
                if (status != ncclSuccess && status != ncclInProgress) return status;
                return ncclRecv(out + first, bytes, ncclUint8, peer, group, stream);
            });
        });
}

/// Nobody leaves before the host sides of all have come; what is enqueued may still run.
template <class Schedule, class Checking, class Host>
void barrier_over(nccl<Host>& ranks, collective what = collective::barrier) {
    compare_levels<checked>(ranks.host(), describe<no_op, std::byte, Schedule>(what, 0, 0));
}

template <collective What, class Schedule, class Op, class Element, class Host>
void explain_way(text& line, nccl<Host>&, const void*, std::size_t) {
    line.append("by NCCL %d", NCCL_VERSION_CODE);
}

/// The schedule across nodes, of levels with NCCL inside: that of a hierarchy, if one is named.
template <class Schedule>
struct across_libraries {
    using type = Schedule;
};
template <hierarchy Schedule>
struct across_libraries<Schedule> {
    using type = typename Schedule::outer;
};

/// Levels with NCCL inside: it folds a share of the vector for each rank of the node, the wire folds the shares of equal ranks
/// of all nodes, NCCL gathers them. The wire takes device memory, as `ddl::staged` does, on the stream of the node.
template <class Schedule, class Checking, class Op, class Element, class Host, class Wire>
void allreduce_over(layered<nccl<Host>, Wire>& ranks, const Element* in, Element* out, std::size_t count, const Op& op,
                    collective = collective::allreduce, int = 0) {
    auto& node = ranks.node();
    const partition blocks{count, node.size()};
    Element* const mine = out + blocks.first(node.rank());
    half_done guard{ranks};
    guard.begin(call_site{"allreduce", 0});
    reduce_scatter_over<direct, Checking>(node, in, mine, count, op);
    ddl::allreduce<typename across_libraries<Schedule>::type, Checking>(
        ranks.wire(), std::span{mine, blocks.length(node.rank())}, op);
    all_gather_over<direct, Checking>(node, static_cast<const Element*>(mine), out, count);
    guard.end();
}

/// Each node folds into its rank that is the root's equal, these fold across.
template <class Schedule, class Checking, class Op, class Element, class Host, class Wire>
void reduce_over(layered<nccl<Host>, Wire>& ranks, const Element* in, Element* out, std::size_t count, const Op& op,
                 int root) {
    auto& node = ranks.node();
    const int members = node.size();
    const bool folds = node.rank() == root % members;
    half_done guard{ranks};
    guard.begin(call_site{"reduce", 0});
    const auto sum_of_node = nccl_scratch<Checking>(node, folds ? count * sizeof(Element) : 0);
    auto* const sums = static_cast<Element*>(sum_of_node.get());
    reduce_over<direct, Checking>(node, in, sums, count, op, root % members);
    if (folds)
        ddl::reduce<typename across_libraries<Schedule>::type, Checking>(
            ranks.wire(), std::span{sums, count}, std::span{out, ranks.rank() == root ? count : 0}, op, root / members);
    guard.end();
}

/// The root's equals in all nodes get it across, and hand it on inside.
template <class Schedule, class Checking, class Element, class Host, class Wire>
void broadcast_over(layered<nccl<Host>, Wire>& ranks, Element* data, std::size_t count, int root) {
    auto& node = ranks.node();
    const int members = node.size();
    half_done guard{ranks};
    guard.begin(call_site{"broadcast", 0});
    if (node.rank() == root % members)
        ddl::broadcast<typename across_libraries<Schedule>::type, Checking>(ranks.wire(), std::span{data, count},
                                                                            root / members);
    broadcast_over<direct, Checking>(node, data, count, root % members);
    guard.end();
}

/// Nobody leaves before all of its node have come, nor before one of each other node has met all of that.
template <class Schedule, class Checking, class Host, class Wire>
void barrier_over(layered<nccl<Host>, Wire>& ranks, collective what = collective::barrier) {
    barrier_over<Schedule, Checking>(ranks.node(), what);
    barrier_over<recursive_doubling, Checking>(ranks.wire(), what);
}

}  // namespace ddl
