// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/grid_fold.hpp>
#include <ddl/executor/grid_meeting.hpp>
#include <ddl/executor/partition.hpp>

namespace ddl {

/// Where all ranks keep each of some tensors, in as many bytes. Plain bytes, for it travels in a kernel's arguments: there it
/// lives as long as the launch does, in a graph too, and needs no memory of its own, and no copy.
///
/// A row for each tensor: in how many packets the ones before it lie, its length, and its address on each rank.
template <class Element, std::size_t Bytes>
class grid_table {
public:
    static constexpr std::size_t unit = kernel::packet_elements<Element>;

    constexpr explicit grid_table(int ranks) noexcept : ranks_{ranks} {
        static_assert(Bytes / sizeof(std::uint64_t) > 2 + grid_window::most_ranks,
                      "ddl: grid_limits_of this transport has a table in which a tensor of 32 ranks finds no room");
    }

    constexpr bool full() const noexcept { return row(rows_ + 1) >= room; }
    constexpr bool empty() const noexcept { return rows_ == 0; }
    constexpr void clear() noexcept { rows_ = 0, words_[0] = 0; }
    /// A tensor of 1 element or more. `address(rank)` says where it lies, as a number.
    template <class Address>
    constexpr void add(std::size_t count, const Address& address) noexcept {
        std::uint64_t* const to = words_ + row(rows_);
        std::uint64_t all = 0;
        for (int rank = 0; rank < ranks_; ++rank) all |= to[2 + rank] = address(rank);
        const bool whole = kernel::fills_packets<Element> && all % sizeof(kernel::packet) == 0;
        to[1] = count << 1 | static_cast<std::uint64_t>(whole);
        words_[row(++rows_)] = to[0] + (count + unit - 1) / unit;
    }

    /// Packets that all of them fill.
    constexpr std::size_t packets() const noexcept { return words_[row(rows_)]; }

    /// A packet of all: where it lies in which tensor.
    struct place {
        unsigned row = 0;
        unsigned count = 0;  // elements; 0 behind the last packet
        std::size_t first = 0;
        bool whole = false;  // can be loaded and stored at once, on all ranks
    };
    /// Packet `at`. `tensor` is that of an earlier packet, and becomes that of this one.
    constexpr place find(std::size_t at, std::size_t end, int& tensor) const noexcept {
        if (at >= end) return {};
        while (words_[row(tensor + 1)] <= at) ++tensor;
        const std::size_t here = row(tensor);
        const std::size_t first = (at - words_[here]) * unit;
        const std::size_t count = segment_length(words_[here + 1] >> 1, first, unit);
        return {static_cast<unsigned>(here), static_cast<unsigned>(count), first,
                (words_[here + 1] & 1) != 0 && count == unit};
    }
    /// The tensor of packet `at`, which there is.
    constexpr int tensor_of(std::size_t at) const noexcept {
        int low = 0;
        for (int high = rows_; high - low > 1;) {
            const int middle = low + (high - low) / 2;
            (words_[row(middle)] <= at ? low : high) = middle;
        }
        return low;
    }
    /// Whether all packets up to `last` are whole that begin in `tensor`, behind its first.
    constexpr bool holds(int tensor, std::size_t last) const noexcept {
        const std::size_t here = row(tensor);
        return (words_[here + 1] & 1) != 0 && (last - words_[here] + 1) * unit <= words_[here + 1] >> 1;
    }
    constexpr Element* address(const place& of, int rank) const noexcept {
        return reinterpret_cast<Element*>(
                   static_cast<std::uintptr_t>(words_[of.row + 2 + static_cast<std::size_t>(rank)])) +
               of.first;
    }

private:
    static constexpr std::size_t room = Bytes / sizeof(std::uint64_t);

    constexpr std::size_t row(int index) const noexcept {
        return static_cast<std::size_t>(index) * (2 + static_cast<std::size_t>(ranks_));
    }

    int ranks_;
    int rows_ = 0;
    std::uint64_t words_[room] = {};
};

/// An allreduce of many tensors, in place and fused: their packets are shared out as if they were one vector, so that short
/// ones and long ones keep all threads busy. The same bits as a call for each.
///
/// The body of a grid: blocks of all ranks run at the same time.
template <class Op, class Element, std::size_t Bytes>
struct grid_tensors {
    using op_type = Op;  // what a GPU must be able to call: see device_functions.cuh
    using element_type = Element;

    grid_windows ranks;
    grid_table<Element, Bytes> table;
    Op op;  // with [[no_unique_address]] nvcc 13 takes the whole for twice as long, and the driver reads past it

    template <execution_space Space>
    constexpr void operator()(Space& space) const {
        between_meetings(space, ranks, [&] { work(space); });
    }

private:
    using fold = grid_fold<Op, Element>;
    using place = typename grid_table<Element, Bytes>::place;

    template <class Space>
    constexpr void work(Space& space) const {
        const auto stride = static_cast<std::uint32_t>(space.threads());  // short counts, for registers are scarce
        const auto turn = static_cast<std::uint32_t>(stride * fold::together);
        const std::size_t end = table.packets();
        const auto [blocks, block] = grid_share::of_all(space, ranks.size);
        std::size_t at = static_cast<std::uint32_t>(block) * turn + space.thread();
        if (at >= end) return;
        for (int tensor = table.tensor_of(at); at < end; at += static_cast<std::uint32_t>(blocks) * turn) {
            const place first = table.find(at, end, tensor);
            if (table.holds(tensor, at + turn - stride)) reduce<fold::together>(space, first);
            else
                for (std::uint32_t on = 0; on < turn; on += stride) reduce_one(space, table.find(at + on, end, tensor));
        }
    }

    /// As many packets as there are threads apart, from one on.
    template <std::size_t Count, class Space>
    constexpr void reduce(Space& space, const place& first) const {
        if constexpr (kernel::fills_packets<Element>) {
            const auto stride = static_cast<std::uint32_t>(space.threads() * sizeof(kernel::packet));
            const auto bytes = [&](int rank) {
                return [=, begin = reinterpret_cast<std::byte*>(table.address(first, rank))](std::size_t i) {
                    return begin + i * stride;
                };
            };
            fold::template packets<Count>(space, ranks.size, {0, ranks.size}, op, bytes, bytes);
        }
    }

    template <class Space>
    constexpr void reduce_one(Space& space, const place& one) const {
        if (one.whole) return reduce<1>(space, one);
        for (std::size_t k = 0; k < one.count; ++k) {
            const auto at = [&](int rank) { return table.address(one, rank) + k; };
            fold::element(ranks.size, {0, ranks.size}, op, at, at);
        }
    }
};

}  // namespace ddl
