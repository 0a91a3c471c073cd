// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/all_gather.hpp>
#include <ddl/all_to_all.hpp>
#include <ddl/allreduce.hpp>
#include <ddl/barrier.hpp>
#include <ddl/broadcast.hpp>
#include <ddl/gather.hpp>
#include <ddl/kernel/cuda_elements.cuh>
#include <ddl/reduce.hpp>
#include <ddl/reduce_scatter.hpp>
#include <ddl/scatter.hpp>
#include <ddl/transport/cuda_memory.cuh>
#include <ddl/transport/cuda_moment.cuh>
#include <ddl/transport/cuda_status.cuh>
#include <ddl/transport/layered.hpp>
#include <ddl/transport/stream_policy.cuh>

#include <nccl.h>

#include <memory>
#include <span>

// NCCL, for those who have it: device memory over a library that carries whole collectives.
namespace ddl {

/// Throws if a call of NCCL failed. `ncclInProgress` is no failure.
inline void require_nccl(ncclResult_t status, const char* call, int rank, ncclComm_t ranks) {
    if (status == ncclSuccess || status == ncclInProgress) return;
    throw error(errc::system, call, rank, -1, "NCCL says %s (%.200s); see NCCL_DEBUG=INFO", ncclGetErrorString(status),
                ncclGetLastError(ranks));
}

/// NCCL's name of an op and of an element. What it has none for does not compile.
template <class Op>
consteval ncclRedOp_t nccl_op() {
    if constexpr (std::same_as<Op, sum>) return ncclSum;
    else if constexpr (std::same_as<Op, product>) return ncclProd;
    else if constexpr (std::same_as<Op, minimum>) return ncclMin;
    else if constexpr (std::same_as<Op, maximum>) return ncclMax;
    else if constexpr (std::same_as<Op, average>) return ncclAvg;
    else {
        static_assert(std::same_as<Op, sum>,
                      "ddl: NCCL has no such op; write ddl::sum, ddl::product, ddl::minimum, "
                      "ddl::maximum or ddl::average, or call over ddl::cuda_ipc");
        return ncclSum;  // so that this is the only error
    }
}
template <class Element>
consteval ncclDataType_t nccl_element() {
    using stored = typename alias_of<Element>::type;
    constexpr bool integer = std::is_integral_v<stored> && !std::same_as<stored, bool>;
    constexpr bool with_sign = std::is_signed_v<stored>;
    if constexpr (std::same_as<stored, half>) return ncclFloat16;
    else if constexpr (std::same_as<stored, bfloat16>) return ncclBfloat16;
    else if constexpr (std::same_as<stored, float>) return ncclFloat32;
    else if constexpr (std::same_as<stored, double>) return ncclFloat64;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 24, 3)
    else if constexpr (std::same_as<stored, float8_e4m3>) return ncclFloat8e4m3;
    else if constexpr (std::same_as<stored, float8_e5m2>) return ncclFloat8e5m2;
#endif
    else if constexpr (integer && sizeof(stored) == 1) return with_sign ? ncclInt8 : ncclUint8;
    else if constexpr (integer && sizeof(stored) == 4) return with_sign ? ncclInt32 : ncclUint32;
    else if constexpr (integer && sizeof(stored) == 8) return with_sign ? ncclInt64 : ncclUint64;
    else {
        static_assert(std::same_as<stored, float>,
                      "ddl: NCCL has no such element; pass integers of 1, 4 or 8 bytes or "
                      "floating values, or call over ddl::cuda_ipc");
        return ncclFloat32;
    }
}

/// Ranks with a GPU each, whose collectives NCCL carries out: one communicator of NCCL's beside one of ours.
///
/// `ddl::nccl gpus{host}` uses the current device and the communicator `host`, of any transport for host memory, which outlives
/// it: there ranks compare their calls and hear of failures. All ranks of `host` make one. Calls run on the default stream and
/// block; `gpus.on(stream)` gives the same communicator for calls that enqueue and return. Carries all collectives.
///
/// Values are folded in NCCL's order and rounded as NCCL does, which need not be once; no waiting for NCCL is without deadline.
template <communicator Host>
class nccl {
public:
    static constexpr const char* name = "nccl";
    static constexpr bool chooses_schedule = true;

    explicit nccl(Host& host) : side_{new rank_side{&host}} {
        // no rank waits for one that cannot take part
        std::optional<error> failure;
        ncclUniqueId id{};
        try {
            require_devices(name);
            require_cuda(cudaGetDevice(&side_->device), "cudaGetDevice", rank(), 0);
            if (rank() == 0) require_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId", 0, nullptr);
        } catch (const error& known) { failure = known; }
        int ready = failure ? 0 : 1;
        ddl::allreduce(host, std::span{&ready, 1}, minimum{});
        if (failure) throw error(*failure);
        if (ready == 0) throw error(errc::system, name, rank(), -1, "a peer cannot take part; see its own error");
        ddl::broadcast(host, std::span{id.internal}, 0);
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = 0;
        const device_scope scope{device(), rank()};
        require_nccl(ncclCommInitRankConfig(&side_->ranks, size(), id, rank(), &config), "ncclCommInitRankConfig",
                     rank(), nullptr);
        side_->await_nccl("ncclCommInitRankConfig", call_site{name});
    }

    int rank() const { return side_->host->rank(); }
    int size() const { return side_->host->size(); }
    int device() const noexcept { return side_->device; }
    cudaStream_t stream() const noexcept { return stream_; }
    ncclComm_t communicator() const noexcept { return side_->ranks; }

    /// This communicator for calls that enqueue on `stream`, of this rank's device. It refers to this one.
    nccl on(cudaStream_t stream) const noexcept { return {side_, stream, false}; }
    /// The same with the stream of an execution policy, as `thrust::cuda::par.on(stream)` is.
    template <stream_policy Policy>
    nccl on(Policy policy) const {
        return on(get_stream(policy));
    }

    /// Waits until all that was enqueued has ended. Blocks. What takes longer than the host's timeout is aborted.
    void wait() {
        queue().drain();
        await(on_stream::anything, call_site{"wait"});
    }

    // what the library asks of a communicator
    void begin(const call_site& where) { side_->host->begin(where); }
    auto& queue() noexcept { return side_->host->queue(); }
    void fail(errc code, const char* words) noexcept { side_->host->fail(code, words); }
    std::byte* scratch(std::size_t bytes, scratch_for use) { return side_->host->scratch(bytes, use); }
    Host& host() noexcept { return *side_->host; }

    /// For nonblocking calls: what the caller has put on the stream comes before, and the thread that carries them out waits for
    /// NCCL. See `start`.
    auto defer() {
        struct deferral {
            nccl* ranks;
            cuda_moment before;
            void begin() const { before.follow(ranks->stream_); }
            void end() const { ranks->await(on_stream::anything, call_site{"wait"}); }
            bool done() const noexcept { return true; }
        };
        return deferral{this, {stream_, device(), rank()}};
    }

    /// Elements of a call that this rank reads or writes; of none the address may be any.
    struct buffer {
        const char* which;
        const void* data;
        std::size_t count;
    };

    /// One call: compares it on the host sides, then `enqueue(communicator, stream)` gives it to NCCL.
    template <class Checking, class Enqueue>
    void carry(const call& what, std::initializer_list<buffer> buffers, Enqueue enqueue) {
        const call_site where{to_string(what.what), 0};
        prepared<Checking>(host(), [&] {
            for (const auto& [which, data, count] : buffers)
                require_memory_of(device(), which, data, count, where, rank());
        });
        compare_levels<Checking>(host(), what);
        half_done guard{host()};
        guard.begin(where);
        const device_scope scope{device(), rank()};
        try {
            const ncclResult_t status = enqueue(side_->ranks, stream_);
            if (status != ncclInProgress) require_nccl(status, where.operation, rank(), side_->ranks);
            else side_->await_nccl(where.operation, where);
        } catch (const error& failure) { side_->give_up(failure); }  // the others may have enqueued theirs, and wait
        if (blocks_) await(on_stream::call, where);
        guard.end();
    }

private:
    struct rank_side {
        explicit rank_side(Host* wire) noexcept : host{wire} {}
        rank_side(const rank_side&) = delete;
        rank_side& operator=(const rank_side&) = delete;
        ~rank_side() {
            host->queue().drain();  // which outlives this, and its calls do not
            if (ranks == nullptr) return;
            // what peers do not come to is given up; whatever these say, there is nobody left to tell
            ncclResult_t status = ncclCommFinalize(ranks);
            for (patience waiting{timeout{10}}; status == ncclInProgress && !(waiting.pause() && waiting.expired());)
                if (ncclCommGetAsyncError(ranks, &status) != ncclSuccess) break;
            static_cast<void>(status == ncclSuccess ? ncclCommDestroy(ranks) : ncclCommAbort(ranks));
        }

        timeout limit() const {
            if constexpr (requires { host->limit(); }) return host->limit();
            else return timeout{};
        }
        /// Waits until NCCL has done on the host what it was asked for.
        void await_nccl(const char* call, const call_site& where) {
            absence lost;
            for (patience waiting{limit()};;) {
                ncclResult_t status = ncclSuccess;
                require_nccl(ncclCommGetAsyncError(ranks, &status), "ncclCommGetAsyncError", host->rank(), ranks);
                require_nccl(status, call, host->rank(), ranks);
                if (status == ncclSuccess) return;
                if (waiting.pause()) look_around(waiting, lost, where);
            }
        }
        /// Since when a peer has ended, where the host knows; such a one may have done its part before.
        struct absence {
            int peer = -1;
            double since = 0;
        };
        /// What NCCL waits for may never come: gives up when a peer has said so or ended, or after the limit.
        void look_around(patience& waiting, absence& lost, const call_site& where) {
            if constexpr (requires { host->lost(0); })
                for (int peer = 0; peer < host->size() && lost.peer < 0; ++peer)
                    if (host->lost(peer)) lost = {peer, now()};
            if (lost.peer >= 0 && now() - lost.since > grace)
                give_up(error(errc::peer_lost, where.operation, host->rank(), where.round,
                              "rank %d has ended; start the job again", lost.peer));
            heed(waiting, where);
        }
        void heed(patience& waiting, const call_site& where) {
            if constexpr (requires { host->listen(where); }) try {
                    host->listen(where);
                } catch (const error& told) { give_up(told); }
            if (waiting.expired())
                give_up(error(errc::timeout, where.operation, host->rank(), where.round,
                              "NCCL was not done within %g s; see what holds a peer up, or set a longer timeout",
                              limit().seconds));
        }
        [[noreturn]] void give_up(const error& failure) {
            if (ranks != nullptr) static_cast<void>(ncclCommAbort(std::exchange(ranks, nullptr)));
            host->fail(failure.code(), failure.what());
            throw error(failure);
        }

        static constexpr double grace = 1;  // seconds
        Host* host;
        ncclComm_t ranks = nullptr;
        int device = 0;
    };

    nccl(std::shared_ptr<rank_side> side, cudaStream_t stream, bool blocks) noexcept
        : side_{std::move(side)}, stream_{stream}, blocks_{blocks} {}

    /// What is awaited on the stream: a call that peers carry out with us, or also what is this rank's alone.
    enum class on_stream { call, anything };
    void await(on_stream what, const call_site& where) {
        const device_scope scope{device(), rank()};
        typename rank_side::absence lost;
        for (patience waiting{side_->limit()};;) {
            const cudaError_t status = query();
            if (status == cudaSuccess) break;
            if (status != cudaErrorNotReady) require_cuda(status, "cudaStreamQuery", rank(), device());
            static_cast<void>(cudaGetLastError());
            if (!waiting.pause()) continue;
            try {
                ncclResult_t answer = ncclSuccess;
                require_nccl(ncclCommGetAsyncError(side_->ranks, &answer), "ncclCommGetAsyncError", rank(),
                             side_->ranks);
                require_nccl(answer, where.operation, rank(), side_->ranks);
            } catch (const error& failure) { side_->give_up(failure); }
            if (what == on_stream::call) side_->look_around(waiting, lost, where);
            else side_->heed(waiting, where);
        }
    }
    cudaError_t query() const {
        const beside_captures aside{device(), rank()};
        return cudaStreamQuery(stream_);
    }

    std::shared_ptr<rank_side> side_;
    cudaStream_t stream_ = nullptr;
    bool blocks_ = true;
};

template <class Host>
inline constexpr fusion_limits fusion_limits_of<nccl<Host>>{1, 0};  // no host may pack what lies in a GPU
template <class Host>
inline constexpr bool exchanges_in_place<nccl<Host>> = true;

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

/// The copy of a rank's own block, as NCCL would say it.
inline ncclResult_t nccl_copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
    if (to == from || bytes == 0) return ncclSuccess;
    const cudaError_t status = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
    return status == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

template <class Schedule, class Checking, class Element, class Host>
void gather_over(nccl<Host>& ranks, const Element* in, Element* out, std::size_t count, int root) {
    const int rank = ranks.rank();
    const std::size_t mine = partition{count, ranks.size()}.length(rank);
    ranks.template carry<Checking>(
        describe<no_op, Element, Schedule>(collective::gather, count, root),
        {{"in", in, mine}, {"out", out, rank == root ? count : 0}}, [&](ncclComm_t group, cudaStream_t stream) {
            return nccl_blocks(count, ranks.size(), [&](int peer, std::size_t first, std::size_t length) {
                const std::size_t bytes = length * sizeof(Element);
                if (peer == rank && rank == root) return nccl_copy(out + first, in, bytes, stream);
                if (rank == root) return ncclRecv(out + first, bytes, ncclUint8, peer, group, stream);
                return peer == rank ? ncclSend(in, bytes, ncclUint8, root, group, stream) : ncclSuccess;
            });
        });
}

template <class Schedule, class Checking, class Element, class Host>
void scatter_over(nccl<Host>& ranks, const Element* in, Element* out, std::size_t count, int root) {
    const int rank = ranks.rank();
    const std::size_t mine = partition{count, ranks.size()}.length(rank);
    ranks.template carry<Checking>(
        describe<no_op, Element, Schedule>(collective::scatter, count, root),
        {{"in", in, rank == root ? count : 0}, {"out", out, mine}}, [&](ncclComm_t group, cudaStream_t stream) {
            return nccl_blocks(count, ranks.size(), [&](int peer, std::size_t first, std::size_t length) {
                const std::size_t bytes = length * sizeof(Element);
                if (peer == rank && rank == root) return nccl_copy(out, in + first, bytes, stream);
                if (rank == root) return ncclSend(in + first, bytes, ncclUint8, peer, group, stream);
                return peer == rank ? ncclRecv(out, bytes, ncclUint8, root, group, stream) : ncclSuccess;
            });
        });
}

/// In place a copy is sent, which lives on the stream.
template <class Schedule, class Checking, class Element, class Host>
void all_to_all_over(nccl<Host>& ranks, const Element* in, Element* out, std::size_t count) {
    const std::size_t all = count * sizeof(Element);
    const auto release = [&](void* data) { static_cast<void>(cudaFreeAsync(data, ranks.stream())); };
    std::unique_ptr<void, decltype(release)> copy{nullptr, release};  // NCCL has enqueued its work when this goes
    if (in == out && count != 0)
        prepared<Checking>(ranks.host(), [&] {
            const device_scope scope{ranks.device(), ranks.rank()};
            void* data = nullptr;
            require_cuda(cudaMallocAsync(&data, all, ranks.stream()), "cudaMallocAsync", ranks.rank(), ranks.device());
            copy.reset(data);
        });
    const auto* const from = copy ? static_cast<const Element*>(copy.get()) : in;
    ranks.template carry<Checking>(
        describe<no_op, Element, Schedule>(collective::all_to_all, count, 0), {{"in", in, count}, {"out", out, count}},
        [&](ncclComm_t group, cudaStream_t stream) {
            if (const ncclResult_t status = nccl_copy(copy.get(), in, copy ? all : 0, stream); status != ncclSuccess)
                return status;
            return nccl_blocks(count, ranks.size(), [&](int peer, std::size_t first, std::size_t length) {
                const std::size_t bytes = length * sizeof(Element);
                if (peer == ranks.rank()) return nccl_copy(out + first, in + first, bytes, stream);
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

template <class Schedule, class Op, class Element, class Host>
void explain_way(text& line, nccl<Host>&, collective, const void*, std::size_t) {
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

/// Nobody leaves before all of its node have come, nor before one of each other node has met all of that.
template <class Schedule, class Checking, class Host, class Wire>
void barrier_over(layered<nccl<Host>, Wire>& ranks, collective what = collective::barrier) {
    barrier_over<Schedule, Checking>(ranks.node(), what);
    barrier_over<recursive_doubling, Checking>(ranks.wire(), what);
}

}  // namespace ddl
