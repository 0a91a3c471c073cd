// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/error.hpp>
#include <ddl/kernel/cuda_elements.cuh>
#include <ddl/op/ops.hpp>

#include <nccl.h>

#include <concepts>
#include <type_traits>

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

}  // namespace ddl
