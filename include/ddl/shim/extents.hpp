// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/schedule/direct.hpp>
#include <ddl/schedule/hierarchical.hpp>
#include <ddl/schedule/recursive_halving.hpp>
#include <ddl/schedule/ring.hpp>
#include <ddl/shim/level_clock.hpp>

#include <algorithm>
#include <cstdint>

namespace ddl::shim {

/// How many ranks each level of the machine has, innermost first: what `-mode b:4x2x3` is about. Levels beyond the last have
/// one rank. A schedule is a type and knows no communicator: the extents are those of the one whose call the thread carries out.
struct by_extents {
    static constexpr int levels = level_clock::levels;

    /// What later calls of this thread go by: `levels` numbers. Their rounds are timed by `clock`, if it is not nullptr.
    static void use(const int* extents, level_clock* clock = nullptr) noexcept {
        std::copy_n(extents, levels, extents_);
        clock_ = clock;
    }
    static level_clock* clock() noexcept { return clock_; }

    /// The level in which two ranks meet that differ in one, of groups that the levels before `first` make up.
    static int between(int rank, int peer, int first) noexcept {
        int level = first;
        for (; level < levels - 1 && rank % extents_[level] == peer % extents_[level]; ++level) {
            rank /= extents_[level];
            peer /= extents_[level];
        }
        return level;
    }

    /// One word for them, by which ranks compare theirs.
    static std::uint32_t fingerprint() noexcept {
        std::uint32_t word = 0;
        for (const int extent : extents_) word = (word + static_cast<std::uint32_t>(extent)) * 0x9e37'79b1U;
        return word;
    }

    /// The levels from `first` on as a shape of `size` ranks; one level of all where the extents are of another group.
    static shape of(int size, int first) noexcept {
        int extents[levels] = {1, 1, 1, 1};
        int product = 1;
        for (int level = first; level < levels; ++level) product *= extents[level - first] = extents_[level];
        if (product != size) return {size, 1, 1, 1};
        return {extents[0], extents[1], extents[2], extents[3]};
    }

private:
    static inline thread_local int extents_[levels] = {1, 1, 1, 1};
    static inline thread_local level_clock* clock_ = nullptr;
};

/// A program that tells the clock that its thread has when it is made, if there is one, in which level each of its rounds is. Between
/// them the rank is in what `First` levels there are before: the memory of its node, or in none.
template <program Program, int First>
struct timed {
    Program rounds_of_levels;
    level_clock* clock = by_extents::clock();
    int size() const noexcept { return rounds_of_levels.size(); }
    int chunks() const noexcept { return rounds_of_levels.chunks(); }
    int rounds() const noexcept {  // executors ask before each round
        if (clock != nullptr) [[unlikely]]
            clock->enter(First - 1);
        return rounds_of_levels.rounds();
    }
    int width(int rank, int round) const noexcept {
        const int transfers = rounds_of_levels.width(rank, round);
        if (clock != nullptr && transfers > 0) [[unlikely]]
            clock->enter(by_extents::between(rank, at(rank, round, 0).peer, First));
        return transfers;
    }
    transfer at(int rank, int round, int index) const noexcept { return rounds_of_levels.at(rank, round, index); }
};

/// A hierarchy of the extents that the program gave, whatever the machine looks like: `Inner` in the innermost groups,
/// `Outer` across them, level by level.
template <class Inner, class Outer, int First = 0>
struct in_extents {
    static constexpr const char* name = "in_extents";
    static std::uint32_t fingerprint() noexcept { return by_extents::fingerprint(); }
    using hierarchy_of_four = hierarchical<Inner, Outer, Outer, Outer>;
    static auto allreduce(const shape& ranks) noexcept {
        const timed<decltype(hierarchy_of_four::allreduce(ranks)), First> result{
            hierarchy_of_four::allreduce(by_extents::of(ranks.size(), First))};
        (void)result.rounds();  // from here on the rank is before the first
        return result;
    }
};
static_assert(schedule<in_extents<direct, ring>>);

/// The same where the innermost groups are the nodes of the machine, whose memory then carries that level.
template <class Inner, class Outer>
using in_nodes = hierarchical<Inner, in_extents<Outer, Outer, 1>>;

/// What the modes of DDL_OPTIONS stand for: `b` and `n`, `r`, `m` and `c`.
using enhanced = in_extents<direct, ring>;
using rings = in_extents<ring, ring>;
using halvings = in_extents<recursive_halving, recursive_halving>;
using enhanced_on_nodes = in_nodes<direct, ring>;
using rings_on_nodes = in_nodes<ring, ring>;
using halvings_on_nodes = in_nodes<recursive_halving, recursive_halving>;

}  // namespace ddl::shim

template <class Inner, class Outer, int First>
inline constexpr bool ddl::of_the_library<ddl::shim::in_extents<Inner, Outer, First>> = true;
