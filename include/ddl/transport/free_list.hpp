// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ddl {

/// Which parts of a range of addresses are free. Gives out the lowest that suffice, so that what is in use stays dense.
class free_list {
public:
    static constexpr std::uint64_t none = ~std::uint64_t{0};

    free_list(std::uint64_t first, std::uint64_t bytes) : free_{{first, bytes}} {}

    /// The first address of `bytes` in a row, or `none`.
    std::uint64_t take(std::uint64_t bytes) {
        free_.reserve(taken_ + 2);  // so that `give` never allocates: between two free pieces lies a taken one
        for (std::size_t i = 0; i < free_.size(); ++i) {
            piece& from = free_[i];
            if (from.bytes < bytes) continue;
            const std::uint64_t first = from.first;
            from.first += bytes;
            from.bytes -= bytes;
            if (from.bytes == 0) free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(i));
            ++taken_;
            return first;
        }
        return none;
    }

    /// Takes back what `take(bytes)` gave.
    void give(std::uint64_t first, std::uint64_t bytes) noexcept {
        --taken_;
        std::size_t place = 0;
        for (std::size_t above = free_.size(); place < above;) {
            const std::size_t middle = (place + above) / 2;
            if (free_[middle].first < first) place = middle + 1;
            else above = middle;
        }
        const auto next = free_.begin() + static_cast<std::ptrdiff_t>(place);
        const bool joins_next = next != free_.end() && first + bytes == next->first;
        const bool joins_previous = place > 0 && (next - 1)->first + (next - 1)->bytes == first;
        if (joins_previous) {
            (next - 1)->bytes += bytes + (joins_next ? next->bytes : 0);
            if (joins_next) free_.erase(next);
        } else if (joins_next) {
            next->first = first;
            next->bytes += bytes;
        } else {
            free_.insert(next, {first, bytes});
        }
    }

    /// How many pieces are given out.
    std::size_t taken() const noexcept { return taken_; }

private:
    struct piece {
        std::uint64_t first;
        std::uint64_t bytes;
    };
    std::vector<piece> free_;  // in order of addresses; no two touch
    std::size_t taken_ = 0;
};

}  // namespace ddl
