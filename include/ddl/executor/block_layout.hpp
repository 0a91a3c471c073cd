// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/partition.hpp>
#include <ddl/schedule/schedule.hpp>

#include <vector>

namespace ddl {

/// Where the chunks of a reduce-scatter or all-gather lie in a vector of which rank `r` owns the `r`-th block.
///
/// The chunks that a rank owns cut its block evenly. Most programs number chunks in the order of their owners; those that
/// do not (hierarchies) run over a buffer in their own order, `place`, and are packed from and to the vector, `first`.
class block_layout {
public:
    template <program Program>
    block_layout(const Program& halves, std::size_t count) : chunks_(static_cast<std::size_t>(halves.chunks())) {
        const partition blocks{count, halves.size()};
        for (int rank = 0; rank < halves.size(); ++rank) {
            const int ranges = owned_ranges(halves, rank);
            int owned_chunks = 0;
            for (int i = 0; i < ranges; ++i) owned_chunks += owned(halves, rank, i).count;
            const partition cut{blocks.length(rank), owned_chunks};
            for (int i = 0, part = 0; i < ranges; ++i) {
                const chunk_range range = owned(halves, rank, i);
                for (int c = range.first; c < range.first + range.count; ++c, ++part)
                    at(c) = {blocks.first(rank) + cut.first(part), cut.length(part), 0, rank};
            }
        }
        std::size_t end = 0;
        for (chunk& c : chunks_) {
            c.place = end;
            end += c.length;
            longest_ = c.length > longest_ ? c.length : longest_;
        }
    }

    int chunks() const noexcept { return static_cast<int>(chunks_.size()); }
    /// Of the vector.
    std::size_t first(int c) const noexcept { return at(c).first; }
    std::size_t length(int c) const noexcept { return at(c).length; }
    std::size_t longest() const noexcept { return longest_; }
    /// In the order of the program.
    std::size_t place(int c) const noexcept { return at(c).place; }
    int owner(int c) const noexcept { return at(c).owner; }

private:
    struct chunk {
        std::size_t first;
        std::size_t length;
        std::size_t place;
        int owner;
    };
    chunk& at(int c) noexcept { return chunks_[static_cast<std::size_t>(c)]; }
    const chunk& at(int c) const noexcept { return chunks_[static_cast<std::size_t>(c)]; }

    std::vector<chunk> chunks_;
    std::size_t longest_ = 0;
};

}  // namespace ddl
