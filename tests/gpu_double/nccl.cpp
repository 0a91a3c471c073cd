// SPDX-License-Identifier: Apache-2.0
// NCCL: work that meets that of the peers on the streams of all ranks.
#include <nccl.h>

#include <algorithm>
#include <cstring>

#include "machine.hpp"

using namespace cuda_double;

namespace {

using bytes = std::vector<std::byte>;

bytes copy_of(const void* data, std::size_t count) {
    const auto* const first = static_cast<const std::byte*>(data);
    return {first, first + count};
}

/// The ranks of one id, and what they bring each other.
struct clique {
    struct meeting {
        std::vector<bytes> brought;
        int came = 0;
        int left = 0;
    };
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<int> devices;  // of those that have joined
    std::map<unsigned long, meeting> meetings;
    std::map<std::pair<int, int>, std::deque<bytes>> sent;  // by sender and receiver
};

/// One rank's side, which its work holds.
struct side {
    std::shared_ptr<clique> all;
    int rank;
    int size;
    bool aborted = false;  // these two under the lock of the clique
    int working = 0;
};

/// What a rank does in a call: first everything that it brings, then everything that it waits for.
struct operation {
    std::function<void(side&)> bring;
    std::function<bool(const side&)> has_come;
    std::function<void(side&)> take;
};

struct grouped {
    ncclComm_t ranks;
    cudaStream_t stream;
    operation what;
};
thread_local int groups = 0;
thread_local std::vector<grouped> group;

}  // namespace

struct ncclComm {
    std::shared_ptr<side> own;
    unsigned long meetings = 0;  // that have been asked for
    int slow_answers = 1;
    bool ends = false;
};

namespace {

void work(side& own, const std::vector<operation>& list) {
    std::unique_lock held{own.all->mutex};
    for (const operation& each : list)
        if (each.bring && !own.aborted) each.bring(own);
    own.all->changed.notify_all();
    for (const operation& each : list) {
        if (!each.take) continue;
        own.all->changed.wait(held, [&] { return own.aborted || each.has_come(own); });
        if (!own.aborted) each.take(own);
    }
    --own.working;
    own.all->changed.notify_all();
}

/// Gives a stream what belongs together. The lock is held.
ncclResult_t enqueue(ncclComm_t ranks, cudaStream_t handle, std::vector<operation> list) {
    CUstream_st* const stream = stream_of(handle);
    if (stream == nullptr || stream->device != current()) return ncclInvalidArgument;
    {
        const std::lock_guard held{ranks->own->all->mutex};
        ++ranks->own->working;
    }
    const cudaError_t status =
        cuda_double::enqueue(stream, [own = ranks->own, list = std::move(list)] { work(*own, list); });
    if (status != cudaSuccess) return ncclUnhandledCudaError;
    ranks->slow_answers = 1;
    return ncclInProgress;
}

/// NCCL's kernels reach buffers of ranks of the same process straight from other GPUs. A GPU would say so with a fault.
bool reached_by_all(const ncclComm& ranks, const void* data) {
    const allocation* const known = machine::get().find(data);
    if (known == nullptr || known->pool == nullptr) return true;
    const std::lock_guard held{ranks.own->all->mutex};
    const std::vector<int>& devices = ranks.own->all->devices;
    return std::all_of(devices.begin(), devices.end(), [&](int each) { return known->pool->open_to.contains(each); });
}

/// Whether a call may be made: it may be told to fail.
bool may(const char* name) { return admit(name, asks::no_fault) == cudaSuccess; }

ncclResult_t give(const char* name, ncclComm_t ranks, cudaStream_t stream, std::initializer_list<const void*> buffers,
                  operation what) {
    const lock held;
    if (!may(name)) return ncclUnhandledCudaError;
    for (const void* const each : buffers)
        if (!reached_by_all(*ranks, each)) return ncclUnhandledCudaError;
    if (groups == 0) return enqueue(ranks, stream, {std::move(what)});
    group.push_back({ranks, stream, std::move(what)});
    return ncclSuccess;
}

/// A call in which every rank brings `length` bytes at most, and takes what it likes of all that was brought.
ncclResult_t meet(const char* name, ncclComm_t ranks, cudaStream_t stream, const void* in, std::size_t length,
                  void* out, std::function<void(const std::vector<bytes>&, int)> take) {
    const unsigned long number = ranks->meetings++;
    return give(name, ranks, stream, {in, out},
                {[=](side& own) {
                     clique::meeting& here = own.all->meetings[number];
                     here.brought.resize(static_cast<std::size_t>(own.size));
                     here.brought[static_cast<std::size_t>(own.rank)] = copy_of(in, length);
                     ++here.came;
                 },
                 [=](const side& own) { return own.all->meetings[number].came == own.size; },
                 [=](side& own) {
                     clique::meeting& here = own.all->meetings[number];
                     take(here.brought, own.rank);
                     if (++here.left == own.size) own.all->meetings.erase(number);
                 }});
}

template <class Call>
auto with_type(ncclDataType_t type, Call call) {
    switch (type) {
        case ncclInt8: return call(std::int8_t{});
        case ncclUint8: return call(std::uint8_t{});
        case ncclInt32: return call(std::int32_t{});
        case ncclUint32: return call(std::uint32_t{});
        case ncclInt64: return call(std::int64_t{});
        case ncclUint64: return call(std::uint64_t{});
        case ncclFloat64: return call(double{});
        default: return call(float{});
    }
}
std::size_t size_of(ncclDataType_t type) {
    return with_type(type, [](auto zero) { return sizeof zero; });
}

/// Folds `count` elements from element `first` on, from the last rank to the first, for NCCL promises no order.
void fold(const std::vector<bytes>& brought, void* out, std::size_t first, std::size_t count, ncclDataType_t type,
          ncclRedOp_t op) {
    with_type(type, [&]<class Element>(Element) {
        const auto value = [&](std::size_t rank, std::size_t i) {
            Element result;
            std::memcpy(&result, brought[rank].data() + (first + i) * sizeof result, sizeof result);
            return result;
        };
        for (std::size_t i = 0; i < count; ++i) {
            Element all = value(brought.size() - 1, i);
            for (std::size_t rank = brought.size() - 1; rank-- > 0;) {
                const Element one = value(rank, i);
                if (op == ncclMax) all = std::max(all, one);
                else if (op == ncclMin) all = std::min(all, one);
                else if (op == ncclProd) all = static_cast<Element>(all * one);
                else all = static_cast<Element>(all + one);
            }
            if (op == ncclAvg) all = static_cast<Element>(all / static_cast<Element>(brought.size()));
            static_cast<Element*>(out)[i] = all;
        }
    });
}

/// All that there were, by id: kept, for the thread sanitizer sees no pointer let go of.
std::map<unsigned long long, std::shared_ptr<clique>>& cliques() {
    static auto& all = *new std::map<unsigned long long, std::shared_ptr<clique>>;
    return all;
}

/// Ends what a rank has to do.
void abort(side& own) {
    const std::lock_guard held{own.all->mutex};
    own.aborted = true;
    own.all->changed.notify_all();
}

}  // namespace

const char* ncclGetErrorString(ncclResult_t status) {
    return status == ncclUnhandledCudaError ? "unhandled cuda error"
           : status == ncclInvalidUsage     ? "invalid usage"
                                            : "invalid argument";
}
const char* ncclGetLastError(ncclComm_t) { return "the double says no more"; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
    const lock held;
    if (!may("ncclGetUniqueId")) return ncclUnhandledCudaError;
    const unsigned long long number = ++machine::get().last_id;
    *id = {};
    std::memcpy(id->internal, &number, sizeof number);
    cliques()[number] = std::make_shared<clique>();
    return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* ranks, int size, ncclUniqueId id, int rank, ncclConfig_t* config) {
    const lock held;
    if (!may("ncclCommInitRankConfig")) return ncclUnhandledCudaError;
    unsigned long long number = 0;
    std::memcpy(&number, id.internal, sizeof number);
    const auto known = cliques().find(number);
    if (known == cliques().end() || config->blocking != 0) return ncclInvalidArgument;
    const std::shared_ptr<clique> all = known->second;
    *ranks = new ncclComm{std::make_shared<side>(side{all, rank, size})};
    const std::lock_guard joining{all->mutex};
    all->devices.push_back(current());
    return ncclInProgress;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t ranks, ncclResult_t* status) {
    const lock held;
    if (!may("ncclCommGetAsyncError")) return ncclUnhandledCudaError;
    side& own = *ranks->own;
    const std::lock_guard looking{own.all->mutex};
    std::vector<int> devices = own.all->devices;
    std::sort(devices.begin(), devices.end());
    const bool all_came = static_cast<int>(devices.size()) == own.size;
    if (std::adjacent_find(devices.begin(), devices.end()) != devices.end()) *status = ncclInvalidUsage;
    else if (!all_came || (ranks->ends && own.working != 0)) *status = ncclInProgress;
    else *status = ranks->slow_answers-- > 0 ? ncclInProgress : ncclSuccess;
    return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t ranks) {
    const lock held;
    if (!may("ncclCommFinalize")) return ncclUnhandledCudaError;
    ranks->ends = true;
    return ncclInProgress;
}
ncclResult_t ncclCommDestroy(ncclComm_t ranks) {
    bool goes_well = false;
    {
        const lock held;
        goes_well = may("ncclCommDestroy");
    }
    {
        std::unique_lock held{ranks->own->all->mutex};
        ranks->own->all->changed.wait(held, [&] { return ranks->own->working == 0; });
    }
    delete ranks;  // however it goes, or a tool would find it
    return goes_well ? ncclSuccess : ncclUnhandledCudaError;
}
ncclResult_t ncclCommAbort(ncclComm_t ranks) {
    abort(*ranks->own);
    delete ranks;
    return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
    const lock held;
    if (!may("ncclGroupStart")) return ncclUnhandledCudaError;
    ++groups;
    return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
    const lock held;
    if (--groups > 0) return ncclSuccess;
    const std::vector<grouped> all = std::exchange(group, {});
    if (!may("ncclGroupEnd")) return ncclUnhandledCudaError;
    if (all.empty()) return ncclSuccess;
    std::vector<operation> list;
    for (const grouped& each : all) list.push_back(each.what);
    return enqueue(all[0].ranks, all[0].stream, std::move(list));
}

ncclResult_t ncclAllReduce(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t ranks, cudaStream_t stream) {
    return meet("ncclAllReduce", ranks, stream, in, count * size_of(type), out,
                [=](const std::vector<bytes>& brought, int) { fold(brought, out, 0, count, type, op); });
}
ncclResult_t ncclReduce(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t ranks, cudaStream_t stream) {
    return meet("ncclReduce", ranks, stream, in, count * size_of(type), out,
                [=](const std::vector<bytes>& brought, int rank) {
                    if (rank == root) fold(brought, out, 0, count, type, op);
                });
}
ncclResult_t ncclReduceScatter(const void* in, void* out, std::size_t each, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t ranks, cudaStream_t stream) {
    const auto size = static_cast<std::size_t>(ranks->own->size);
    return meet("ncclReduceScatter", ranks, stream, in, size * each * size_of(type), out,
                [=](const std::vector<bytes>& brought, int rank) {
                    fold(brought, out, static_cast<std::size_t>(rank) * each, each, type, op);
                });
}
ncclResult_t ncclAllGather(const void* in, void* out, std::size_t each, ncclDataType_t type, ncclComm_t ranks,
                           cudaStream_t stream) {
    return meet("ncclAllGather", ranks, stream, in, each * size_of(type), out,
                [=](const std::vector<bytes>& brought, int) {
                    auto* next = static_cast<std::byte*>(out);
                    for (const bytes& one : brought) next = std::copy(one.begin(), one.end(), next);
                });
}
ncclResult_t ncclBroadcast(const void* in, void* out, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t ranks, cudaStream_t stream) {
    const std::size_t length = root == ranks->own->rank ? count * size_of(type) : 0;
    return meet("ncclBroadcast", ranks, stream, in, length, out, [=](const std::vector<bytes>& brought, int) {
        const bytes& one = brought[static_cast<std::size_t>(root)];
        std::copy(one.begin(), one.end(), static_cast<std::byte*>(out));
    });
}
ncclResult_t ncclSend(const void* in, std::size_t count, ncclDataType_t type, int peer, ncclComm_t ranks,
                      cudaStream_t stream) {
    const std::size_t length = count * size_of(type);
    return give("ncclSend", ranks, stream, {in},
                {[=](side& own) {
                     own.all->sent[{own.rank, peer}].push_back(copy_of(in, length));
                 },
                 {},
                 {}});
}
ncclResult_t ncclRecv(void* out, std::size_t, ncclDataType_t, int peer, ncclComm_t ranks, cudaStream_t stream) {
    return give("ncclRecv", ranks, stream, {out},
                {{},
                 [=](const side& own) {
                     return !own.all->sent[{peer, own.rank}].empty();
                 },
                 [=](side& own) {
                     std::deque<bytes>& waiting = own.all->sent[{peer, own.rank}];
                     std::copy(waiting.front().begin(), waiting.front().end(), static_cast<std::byte*>(out));
                     waiting.pop_front();
                 }});
}
