// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/schedule/program.hpp>

#include <memory>

namespace ddl {

/// A program that a caller keeps, whatever its type: what runs it is compiled once for all of them.
class program_view {
public:
    template <program Program>
    program_view(const Program& rounds) noexcept
        : kept_{std::addressof(rounds)}, size_{rounds.size()}, chunks_{rounds.chunks()}, rounds_{rounds.rounds()},
          width_{[](const void* kept, int rank, int round) {
              return static_cast<const Program*>(kept)->width(rank, round);
          }},
          at_{[](const void* kept, int rank, int round, int index) {
              return static_cast<const Program*>(kept)->at(rank, round, index);
          }} {}

    int size() const noexcept { return size_; }
    int chunks() const noexcept { return chunks_; }
    int rounds() const noexcept { return rounds_; }
    int width(int rank, int round) const { return width_(kept_, rank, round); }
    transfer at(int rank, int round, int index) const { return at_(kept_, rank, round, index); }

private:
    const void* kept_;
    int size_;
    int chunks_;
    int rounds_;
    int (*width_)(const void*, int, int);
    transfer (*at_)(const void*, int, int, int);
};

}  // namespace ddl
