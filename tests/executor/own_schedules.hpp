// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/schedule/combinators.hpp>
#include <ddl/schedule/proof.hpp>
#include <ddl/schedule/schedule.hpp>
#include <ddl/schedule/tree.hpp>

#include <array>

/// Schedules as a user may write them.
namespace own {

/// A ring, with its transfers in an array.
struct array_ring {
    static constexpr int chunks(int size) noexcept { return size; }
    static constexpr int rounds(int size) noexcept { return 2 * (size - 1); }
    static constexpr std::array<ddl::transfer, 2> round(int rank, int size, int k) noexcept {
        const int outgoing = ddl::wrap(rank - 1 - k, size);
        const auto arrival = k < size - 1 ? ddl::action::receive_reduce : ddl::action::receive;
        return {{{ddl::action::send, (rank + 1) % size, outgoing},
                 {arrival, ddl::wrap(rank - 1, size), ddl::wrap(outgoing - 1, size)}}};
    }
};
static_assert(ddl::schedule<array_ring> && ddl::proves_allreduce<array_ring>(5));

/// All send to rank 0 at once, rank 1 in two messages; then a tree.
struct fan {
    struct inward {
        int ranks;
        constexpr int size() const noexcept { return ranks; }
        constexpr int chunks() const noexcept { return 2; }
        constexpr int rounds() const noexcept { return 1; }
        constexpr int width(int rank, int) const noexcept { return rank == 0 ? ranks : rank == 1 ? 2 : 1; }
        constexpr ddl::transfer at(int rank, int, int i) const noexcept {
            using enum ddl::action;
            if (rank == 1) return {send, 0, i, 1};
            if (rank != 0) return {send, 0, 0, 2};
            if (i < 2) return {receive_reduce, 1, i, 1};
            return {receive_reduce, i, 0, 2};
        }
    };
    static constexpr auto allreduce(int size) noexcept {
        return ddl::then(inward{size}, ddl::finer<ddl::tree::whole>{ddl::tree::broadcast(size, 0), 2});
    }
};
static_assert(ddl::proves_allreduce<fan>(9) && ddl::proves_allreduce<fan>(10));

/// A chain in which results and operands travel together: chunk 0 is combined upwards, and while its result comes down,
/// chunk 1 is combined downwards beside it; then that one's result goes up.
struct chain {
    static constexpr int chunks(int) noexcept { return 2; }
    static constexpr int rounds(int size) noexcept { return 3 * (size - 1); }
    static constexpr ddl::transfer_list<4> round(int rank, int size, int k) noexcept {
        using enum ddl::action;
        const int leg = size > 1 ? k / (size - 1) : 0;
        const int step = size > 1 ? k % (size - 1) : 0;
        const int giver = leg == 1 ? size - 1 - step : step;
        const int taker = leg == 1 ? giver - 1 : giver + 1;
        ddl::transfer_list<4> transfers;
        if (rank == giver) {
            if (leg != 2) transfers.push({send, taker, 0});
            if (leg != 0) transfers.push({send, taker, 1});
        } else if (rank == taker) {
            if (leg != 2) transfers.push({leg == 0 ? receive_reduce : receive, giver, 0});
            if (leg != 0) transfers.push({leg == 1 ? receive_reduce : receive, giver, 1});
        }
        return transfers;
    }
};
static_assert(ddl::schedule<chain> && ddl::proves_allreduce<chain>(1) && ddl::proves_allreduce<chain>(5));

/// Everybody sends everything to everybody, and combines it at once: what a rank sends is also what it combines into.
struct gossip {
    static constexpr int chunks(int) noexcept { return 1; }
    static constexpr int rounds(int size) noexcept { return size > 1 ? 1 : 0; }
    struct all {
        int rank;
        int ranks;
        constexpr int size() const noexcept { return 2 * (ranks - 1); }
        /// From the neighbours outwards on each side, so that what is combined lies side by side.
        constexpr ddl::transfer operator[](int index) const noexcept {
            const int nth = index / 2;
            const int peer = nth < rank ? rank - 1 - nth : nth + 1;
            return {index % 2 == 0 ? ddl::action::send : ddl::action::receive_reduce, peer, 0};
        }
    };
    static constexpr all round(int rank, int size, int) noexcept { return {rank, size}; }
};
static_assert(ddl::schedule<gossip> && ddl::proves_allreduce<gossip>(5) && ddl::proves_rank_order<gossip>(5));

/// Of three ranks. What rank 1 sends at last has changed in part, and so has what rank 0 combines it with.
struct crossing {
    static constexpr int chunks(int) noexcept { return 2; }
    static constexpr int rounds(int) noexcept { return 3; }
    static constexpr ddl::transfer_list<2> round(int rank, int size, int k) noexcept {
        using enum ddl::action;
        ddl::transfer_list<2> transfers;
        const auto pass = [&](int from, int to, ddl::action what, int chunk, int count) {
            if (rank == from) transfers.push({send, to, chunk, count});
            if (rank == to) transfers.push({what, from, chunk, count});
        };
        if (size != 3) return transfers;
        if (k == 0) {
            pass(2, 1, receive_reduce, 0, 1);
            pass(2, 0, receive_reduce, 1, 1);
        } else if (k == 1) {
            pass(1, 0, receive_reduce, 0, 2);
        } else {
            pass(0, 1, receive, 0, 2);
            pass(0, 2, receive, 0, 2);
        }
        return transfers;
    }
};
static_assert(ddl::schedule<crossing> && ddl::proves_allreduce<crossing>(3));

}  // namespace own
