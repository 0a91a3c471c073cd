// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "cell.hpp"

namespace compare {

/// A collective as one contender carries it out: `in` and `out` are the same where the cell is in place.
using collective_call = std::function<void(const element* in, element* out)>;

/// One of those that do the same work in turns: ours over some transport and kind of buffer, a peer's, or the floor.
struct contender {
    std::string name;
    /// Its call for a cell; none if it does not have that collective.
    std::function<collective_call(const cell&)> prepare;
    /// Whose memory its buffers are; ordinary pages of this process if it does not say. Those of one kind share them.
    std::string memory_kind{};
    std::function<std::shared_ptr<element>(std::size_t count)> memory{};
    bool checked = true;  // the floor computes no collective
};

/// What all contenders stand on: ranks that meet, and agree on the slowest of them.
struct meeting {
    int rank = 0;
    int size = 1;
    std::function<void()> barrier;
    std::function<void(double* values, std::size_t count)> maximum;
};

}  // namespace compare
