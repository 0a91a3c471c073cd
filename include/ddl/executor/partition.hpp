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

    constexpr std::size_t first(int part) const noexcept {
        const auto index = static_cast<std::size_t>(part);
        const std::size_t longer = count % size();
        return index * (count / size()) + (index < longer ? index : longer);
    }
    constexpr std::size_t length(int part) const noexcept { return first(part + 1) - first(part); }
    constexpr std::size_t longest() const noexcept { return (count + size() - 1) / size(); }

private:
    constexpr std::size_t size() const noexcept { return static_cast<std::size_t>(parts); }
};

}  // namespace ddl
