// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>

#include "contender.hpp"

namespace compare {

/// The bandwidth floor, as a contender: on p ranks an allreduce of s bytes over mapped buffers must read ps bytes and write
/// ps. This reads s and writes s on every rank at the same time, each in its own memory, and computes nothing that counts.
inline contender bandwidth_floor() {
    const auto prepare = [](const cell& asked) -> collective_call {
        if (asked.collective != "allreduce") return {};
        if (!asked.in_place)
            return [bytes = asked.count * sizeof(element)](const element* in, element* out) {
                std::memcpy(out, in, bytes);
            };
        return [bytes = asked.count * sizeof(element)](const element*, element* out) {
            auto* const data = reinterpret_cast<unsigned char*>(out);  // bytes: the same loop for every element
            for (std::size_t i = 0, end = bytes; i < end; ++i) data[i] ^= 0x5a;
        };
    };
    return {"floor", prepare, {}, false};
}

}  // namespace compare
