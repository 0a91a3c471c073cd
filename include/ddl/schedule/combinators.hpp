// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/schedule/program.hpp>

namespace ddl {

/// First `Before`, then `After`, over the same chunks.
template <program Before, program After>
struct sequence {
    Before before;
    After after;
    constexpr int size() const noexcept { return before.size(); }
    constexpr int chunks() const noexcept { return before.chunks(); }
    constexpr int rounds() const noexcept { return before.rounds() + after.rounds(); }
    constexpr int width(int rank, int round) const noexcept {
        const int past = round - before.rounds();
        return past < 0 ? before.width(rank, round) : after.width(rank, past);
    }
    constexpr transfer at(int rank, int round, int index) const noexcept {
        const int past = round - before.rounds();
        return past < 0 ? before.at(rank, round, index) : after.at(rank, past, index);
    }
};

/// `then(a, b)`: first `a`, then `b`. Both must cut the buffer into equally many chunks.
template <program Before, program After>
constexpr sequence<Before, After> then(Before before, After after) noexcept {
    return {before, after};
}

/// The program backwards: the all-gather of a reduce-scatter.
template <program Forward>
struct mirror {
    Forward forward;
    constexpr int size() const noexcept { return forward.size(); }
    constexpr int chunks() const noexcept { return forward.chunks(); }
    constexpr int rounds() const noexcept { return forward.rounds(); }
    constexpr int width(int rank, int round) const noexcept { return forward.width(rank, rounds() - 1 - round); }
    constexpr transfer at(int rank, int round, int index) const noexcept {
        return mirrored(forward.at(rank, rounds() - 1 - round, index));
    }
};

/// The rounds of a program from `first` on.
template <program Whole>
struct rest_of {
    Whole whole;
    int first;
    constexpr int size() const noexcept { return whole.size(); }
    constexpr int chunks() const noexcept { return whole.chunks(); }
    constexpr int rounds() const noexcept { return whole.rounds() - first; }
    constexpr int width(int rank, int round) const noexcept { return whole.width(rank, first + round); }
    constexpr transfer at(int rank, int round, int index) const noexcept {
        return whole.at(rank, first + round, index);
    }
};

/// The same program over chunks that are each cut into `parts`.
template <program Coarse>
struct finer {
    Coarse coarse;
    int parts;
    constexpr int size() const noexcept { return coarse.size(); }
    constexpr int chunks() const noexcept { return coarse.chunks() * parts; }
    constexpr int rounds() const noexcept { return coarse.rounds(); }
    constexpr int width(int rank, int round) const noexcept { return coarse.width(rank, round); }
    constexpr transfer at(int rank, int round, int index) const noexcept {
        const transfer t = coarse.at(rank, round, index);
        return {t.what, t.peer, t.chunk * parts, t.count * parts};
    }
};

/// Rounds `first` to `first + count - 1` of a schedule in the form `Schedule::round(rank, size, round)`.
template <class Schedule>
struct rounds_of {
    int ranks;
    int first;
    int count;
    constexpr int size() const noexcept { return ranks; }
    constexpr int chunks() const noexcept { return Schedule::chunks(ranks); }
    constexpr int rounds() const noexcept { return count; }
    constexpr int width(int rank, int round) const noexcept {
        return static_cast<int>(Schedule::round(rank, ranks, first + round).size());
    }
    constexpr transfer at(int rank, int round, int index) const noexcept {
        // std::array takes an unsigned index, transfer_list an int
        const auto transfers = Schedule::round(rank, ranks, first + round);
        using index_type = decltype(transfers.size());
        return transfers[static_cast<index_type>(index)];
    }
};

}  // namespace ddl
