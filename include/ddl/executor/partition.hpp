// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace ddl {

/// Elements of a segment: up to `most` of a block of `length`, from element `begin` on.
constexpr std::size_t segment_length(std::size_t length, std::size_t begin, std::size_t most) noexcept {
    return length <= begin ? 0 : length - begin < most ? length - begin : most;
}

/// `count` elements in `parts` neighbouring blocks whose lengths differ by one at most, longer ones first.
///
/// Block `r` is what rank `r` gives to an all-gather or gets from a reduce-scatter, a scatter or an all-to-all.
struct partition {
    std::size_t count = 0;
    int parts = 1;

    constexpr partition() = default;
    constexpr partition(std::size_t elements, int blocks) noexcept
        : count{elements}, parts{blocks}, shorter_{count / static_cast<std::size_t>(blocks)},
          longer_{count % static_cast<std::size_t>(blocks)} {}

    constexpr std::size_t first(int part) const noexcept {
        const auto index = static_cast<std::size_t>(part);
        return index * shorter_ + (index < longer_ ? index : longer_);
    }
    constexpr std::size_t length(int part) const noexcept {
        return static_cast<std::size_t>(part) < longer_ ? shorter_ + 1 : shorter_;
    }
    constexpr std::size_t longest() const noexcept { return length(0); }

private:
    std::size_t shorter_ = 0;  // elements of a block
    std::size_t longer_ = 0;   // blocks with one more
};

}  // namespace ddl
