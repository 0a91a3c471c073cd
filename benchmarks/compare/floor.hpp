// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>

#include "contender.hpp"

namespace compare {

/// The bandwidth floor, as a contender: on p ranks an allreduce of s bytes over mapped buffers must read ps bytes and
/// write ps. This reads s and writes s on every rank at the same time, each in its own memory, and computes nothing.
///
/// In the memory of `like`, if one is given: which kind has the larger pages differs between machines.
inline contender bandwidth_floor(const contender* like = nullptr) {
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
    contender floor{"floor", prepare};
    floor.checked = false;
    if (like == nullptr) return floor;
    floor.name += " " + like->name;
    floor.memory_kind = like->memory_kind;
    floor.memory = like->memory;
    return floor;
}

}  // namespace compare
