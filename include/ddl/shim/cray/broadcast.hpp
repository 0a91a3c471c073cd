// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/shim/cray/first_failure.hpp>
#include <ddl/shim/cray/form.hpp>
#include <ddl/shim/ddl.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace ddl::shim {

/// Replaces the pieces by those of `root`, packed into one vector of so many bytes.
inline void broadcast_packed(ddl_communicator* ranks, const std::vector<piece>& pieces, std::size_t bytes, int root,
                             first_failure& result) {
    const bool is_root = ddl_get_rank(ranks) == root;
    const std::unique_ptr<std::byte[]> buffer{new (std::nothrow) std::byte[bytes]};
    if (buffer == nullptr) {
        result.keep(DDL_OUT_OF_MEMORY, ("no memory for " + std::to_string(bytes) + " bytes").c_str());
        return refuse(ranks);
    }
    int copied = DDL_OK;
    const auto each_copied = [&](auto copy) {
        std::byte* at = buffer.get();
        for (const piece& one : pieces) {
            if (copied == DDL_OK && one.count != 0) copied = copy(at, one.data, bytes_of(one));
            at += bytes_of(one);
        }
        result.keep(copied);
    };
    if (is_root) each_copied(ddl_memcpy_device_to_host);  // from whatever memory it is
    if (copied != DDL_OK) return refuse(ranks);
    const ddl_status sent = ddl_run_broadcast(ranks, buffer.get(), bytes, DDL_UINT8, root);
    result.keep(sent);
    if (sent == DDL_OK && !is_root)
        each_copied(
            [](std::byte* from, void* to, std::size_t size) { return ddl_memcpy_host_to_device(to, from, size); });
}

/// Replaces the pieces by those of `root`: long ones where they lie, the others packed together, as `allreduce_n` does. All ranks
/// bring pieces of one form.
inline first_failure broadcast(ddl_communicator* ranks, const std::vector<piece>& pieces, int root) {
    constexpr std::size_t alone = std::size_t{1}
                                  << 20;  // bytes: to pack it would cost more than the call that it saves
    constexpr std::size_t together = std::size_t{4} << 20;
    std::vector<piece> packed;
    std::size_t bytes = 0;
    first_failure result;
    for (const piece& one : pieces) {
        if (bytes_of(one) >= alone) {
            result.keep(ddl_run_broadcast(ranks, one.data, one.count, one.element, root));
            continue;
        }
        packed.push_back(one);
        bytes += bytes_of(one);
        if (bytes < together) continue;
        broadcast_packed(ranks, packed, std::exchange(bytes, 0), root, result);
        packed.clear();
    }
    if (!packed.empty() || pieces.empty()) broadcast_packed(ranks, packed, bytes, root, result);
    return result;
}

}  // namespace ddl::shim
