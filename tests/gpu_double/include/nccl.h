// SPDX-License-Identifier: Apache-2.0
#pragma once
// A double of NCCL over that of the CUDA runtime: as much of it as ddl asks for, with NCCL's names and values.
//
// Imitated: communicators that do not block, with answers that take their time; ranks of a device each; work that waits on its
// stream for that of all peers, groups of it as one; aborts, which end this rank's work and no other's; calls that are told to
// fail, by `cuda_double::fail`. Not imitated: elements of less than 32 bits that are no integers, graphs, order of folding.

#include <cuda_runtime.h>

#include <cstddef>

#define NCCL_VERSION(major, minor, patch) ((major)*10000 + (minor)*100 + (patch))
#define NCCL_VERSION_CODE NCCL_VERSION(2, 27, 0)

enum ncclResult_t {
    ncclSuccess = 0,
    ncclUnhandledCudaError = 1,
    ncclSystemError = 2,
    ncclInternalError = 3,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5,
    ncclRemoteError = 6,
    ncclInProgress = 7,
};
enum ncclRedOp_t { ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg };
enum ncclDataType_t {
    ncclInt8,
    ncclUint8,
    ncclInt32,
    ncclUint32,
    ncclInt64,
    ncclUint64,
    ncclFloat16,
    ncclFloat32,
    ncclFloat64,
    ncclBfloat16,
    ncclFloat8e4m3,
    ncclFloat8e5m2,
};

struct ncclComm;
using ncclComm_t = ncclComm*;
struct ncclUniqueId {
    char internal[128];
};
struct ncclConfig_t {
    int blocking;
};
#define NCCL_CONFIG_INITIALIZER \
    { 1 }

const char* ncclGetErrorString(ncclResult_t status);
const char* ncclGetLastError(ncclComm_t ranks);
ncclResult_t ncclGetUniqueId(ncclUniqueId* id);
ncclResult_t ncclCommInitRankConfig(ncclComm_t* ranks, int size, ncclUniqueId id, int rank, ncclConfig_t* config);
ncclResult_t ncclCommFinalize(ncclComm_t ranks);
ncclResult_t ncclCommDestroy(ncclComm_t ranks);
ncclResult_t ncclCommAbort(ncclComm_t ranks);
ncclResult_t ncclCommGetAsyncError(ncclComm_t ranks, ncclResult_t* status);
ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();
ncclResult_t ncclAllReduce(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t ranks, cudaStream_t stream);
ncclResult_t ncclReduce(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                        ncclComm_t ranks, cudaStream_t stream);
ncclResult_t ncclReduceScatter(const void* in, void* out, std::size_t each, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t ranks, cudaStream_t stream);
ncclResult_t ncclAllGather(const void* in, void* out, std::size_t each, ncclDataType_t type, ncclComm_t ranks,
                           cudaStream_t stream);
ncclResult_t ncclBroadcast(const void* in, void* out, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t ranks, cudaStream_t stream);
ncclResult_t ncclSend(const void* in, std::size_t count, ncclDataType_t type, int peer, ncclComm_t ranks,
                      cudaStream_t stream);
ncclResult_t ncclRecv(void* out, std::size_t count, ncclDataType_t type, int peer, ncclComm_t ranks,
                      cudaStream_t stream);
