// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/call.hpp>
#include <ddl/executor/partition.hpp>
#include <ddl/kernel/copy.hpp>
#include <ddl/kernel/fold.hpp>
#include <ddl/transport/concepts.hpp>
#include <ddl/transport/patience.hpp>

#include <atomic>
#include <cstring>

namespace ddl {

/// How the bytes of a call over memory reach the ranks that need them.
enum class protocol : unsigned char {
    one_shot,  // in the slots, with the announcement of the call; every rank folds everything
    staged,    // through windows in segments; every rank folds its own block
    mapped,    // straight from and into the buffers of all ranks
};

constexpr const char* to_string(protocol way) noexcept {
    constexpr const char* names[] = {"one-shot", "staged two-shot", "mapped two-shot"};
    return names[static_cast<int>(way)];
}

/// One call over ranks that map each other's memory: the schedule `direct`, fused.
///
/// `enter` announces the call and waits until all ranks have; from then on a rank may touch what the others published for
/// this call. A rank that enters the next call has finished with the memory of this one, so windows need no other guard.
/// Block `r` of every buffer is touched by its owner, rank `r`, alone: it loads all contributions in rank order, and stores
/// the result wherever it is wanted. That writes each output once, where a reduce-scatter and an all-gather by loads write
/// it twice.
template <memory_transport Transport>
class memory_call {
public:
    /// The longest vector that travels with the announcement.
    static constexpr std::size_t one_shot_bytes = 8192;

    memory_call(Transport& ranks, const call& what, bool compares)
        : ranks_{ranks}, what_{what}, compares_{compares}, where_{to_string(what.what), 0}, rank_{ranks.rank()},
          size_{ranks.size()}, half_done_{ranks} {
        ranks_.begin(where_);
    }

    /// Returns when all ranks have called it: a barrier that compares the calls.
    void enter() {
        announce(nullptr, 0, nullptr, 0, 0);
        half_done_.end();
    }

    /// Folds `count` elements of all ranks, in rank order, into `out` of the ranks for which `takes(rank)` holds.
    ///
    /// Cost: 1 step for short vectors, 2 for a mapped one, else 2 a segment. Bytes loaded and stored by all `p` ranks
    /// together for `s` bytes each: one-shot `p(p+3)s`, staged `(5p-2)s`, mapped `2ps`.
    template <class Op, class Element, class Takes>
    protocol fold(const Element* in, Element* out, std::size_t count, const Op& op, Takes takes) {
        const std::size_t bytes = count * sizeof(Element);
        const partition blocks{count, size_};
        protocol way = protocol::one_shot;
        if (bytes <= one_shot_bytes) {
            announce(in, bytes, nullptr, 0, bytes);
            if (takes(rank_)) {
                const auto from = [&](int peer) { return reinterpret_cast<const Element*>(announced(peer).carried); };
                fold_from(from, out, count, op);
            }
        } else if (const std::size_t each = segment(sizeof(Element), size_ + 1); each == 0) {
            // elements too large for the windows: memory that all can map stands in for the caller's
            auto* const stand_in = reinterpret_cast<Element*>(memory_for_all(2 * bytes));
            kernel::copy(in, stand_in, count);
            announce(stand_in, bytes, stand_in + count, bytes, 0);
            fold_mapped<Element>(blocks, op, takes);
            if (takes(rank_)) kernel::copy(stand_in + count, out, count);
            way = protocol::mapped;
        } else {
            announce(in, bytes, takes(rank_) ? out : nullptr, bytes, 0);
            if (all_mapped(takes)) {
                fold_mapped<Element>(blocks, op, takes);
                way = protocol::mapped;
            } else {
                fold_staged(in, out, blocks, each, op, takes);
                way = protocol::staged;
            }
        }
        half_done_.end();
        return way;
    }

    /// Folds block `r` of all ranks into `out` of rank `r`. Cost: as for `fold`, without the second half.
    /// Block `b` is the `length(b)` elements from `first(b)` on, `longest` an upper bound of all lengths.
    template <class Op, class Element, class First, class Length>
    protocol fold_blocks(const Element* in, Element* out, std::size_t count, const Op& op, First first, Length length,
                         std::size_t longest) {
        const auto consume = [&](std::size_t begin, std::size_t most, auto fetch) {
            const std::size_t bytes = length(rank_) * sizeof(Element);
            if (begin >= bytes) return;
            const std::size_t here = bytes - begin < most ? bytes - begin : most;
            const auto from = [&](int peer) { return reinterpret_cast<const Element*>(fetch(peer, rank_)); };
            fold_from(from, out + begin / sizeof(Element), here / sizeof(Element), op);
        };
        return stream<Element>(
            in, count, size_, [&](int, int block) { return first(block); },
            [&](int, int block) { return length(block); }, longest, consume);
    }

    /// Every rank publishes some of `parts` blocks of its `in`; every rank copies those it wants.
    ///
    /// `first(rank, part)` and `length(rank, part)`: where the block lies in that rank's `in`, in elements; length 0 if it
    /// publishes none. `wants(copy)` calls `copy(peer, part, to)` for each block that this rank takes. `longest`: an upper
    /// bound of all lengths, equal on all ranks.
    template <class Element, class First, class Length, class Wants>
    protocol move(const Element* in, std::size_t count, int parts, First first, Length length, std::size_t longest,
                  Wants wants) {
        const auto consume = [&](std::size_t begin, std::size_t most, auto fetch) {
            wants([&](int peer, int part, Element* to) {
                const std::size_t bytes = length(peer, part) * sizeof(Element);
                if (begin >= bytes) return;
                const std::size_t here = bytes - begin < most ? bytes - begin : most;
                kernel::copy(fetch(peer, part), reinterpret_cast<std::byte*>(to) + begin, here);
            });
        };
        return stream<Element>(in, count, parts, first, length, longest, consume);
    }

private:
    /// A peer that folds or copies for longer is taken for dead.
    static constexpr timeout longest_work{10.0};

    struct record {
        call what;
        std::uint64_t in;
        std::uint64_t out;
        std::atomic<std::uint32_t> lets_go;  // 1 when this rank no longer touches the buffers of others
        alignas(64) std::byte carried[one_shot_bytes];
    };

    record& announced(int peer) const noexcept { return *reinterpret_cast<record*>(ranks_.slot(peer)); }

    /// Tells of the call and of what this rank shares, then waits until all ranks have.
    void announce(const void* in, std::size_t in_bytes, const void* out, std::size_t out_bytes, std::size_t carried) {
        static_assert(sizeof(record) <= Transport::slot_bytes());
        record& mine = announced(rank_);
        mine.what = what_;
        mine.in = in != nullptr ? ranks_.address_of(in, in_bytes) : 0;
        mine.out = out != nullptr ? ranks_.address_of(out, out_bytes) : 0;
        mine.lets_go.store(0, std::memory_order_relaxed);  // published by the step below
        if (carried != 0) std::memcpy(mine.carried, in, carried);
        step();
        compare();
        half_done_.begin(where_);
    }

    /// Runs `work`, in which ranks load from each other's buffers and store to them. Nobody leaves before all are done with
    /// it, not even by an exception: the buffers may go with it.
    template <class Work>
    void share(Work work) {
        std::atomic<std::uint32_t>& lets_go = announced(rank_).lets_go;
        try {
            work();
            lets_go.store(1, std::memory_order_release);  // met by the acquire below
            step();
        } catch (...) {
            lets_go.store(1, std::memory_order_release);
            // no longer than any other wait: a peer that is dead or stopped does not let go
            patience waiting{ranks_.limit().seconds < longest_work.seconds ? ranks_.limit() : longest_work};
            for (int peer = 0; peer < size_; ++peer)
                while (announced(peer).lets_go.load(std::memory_order_acquire) == 0)
                    if (waiting.pause() && (ranks_.lost(peer) || waiting.expired())) break;
            throw;
        }
    }

    void compare() const {
        if (!compares_) return;
        // everybody reads the same announcements: if one rank finds a mismatch, all do
        for (int peer = 1; peer < size_; ++peer) {
            const call& theirs = announced(peer).what;
            if (theirs.agrees(announced(0).what)) continue;
            const int other = what_.agrees(announced(0).what) ? peer : 0;
            throw mismatch(what_, rank_, announced(other).what, other);
        }
    }

    /// Memory that stands in for a buffer that cannot take part. Without it this rank tells the others that it will not.
    std::byte* memory_for_all(std::size_t bytes) {
        try {
            return ranks_.scratch(bytes, scratch_for::stand_in);
        } catch (...) {
            what_.what = collective::refused;
            try {
                enter();
            } catch (const error&) {
                // the news of this rank, which the others get; it has its own
            }
            throw;
        }
    }

    /// Publishes what this rank has written, and waits until all ranks have come as far.
    void step() {
        const std::uint64_t reached = ranks_.advance();
        for (int peer = 0; peer < size_; ++peer) ranks_.await(peer, reached, where_);
        ++where_.round;
    }

    /// Elements of a segment when half a window is cut into `parts`, 0 if not even one fits.
    std::size_t segment(std::size_t element_bytes, int parts) const noexcept {
        const std::size_t room = ranks_.window_bytes() / 2 / static_cast<std::size_t>(parts);
        return (room >= 64 * element_bytes ? room / 64 * 64 : room) / element_bytes;
    }
    std::byte* half(int peer, std::size_t turn) const noexcept {
        return ranks_.window(peer) + turn % 2 * (ranks_.window_bytes() / 2);
    }

    template <class From, class Element, class Op>
    void fold_from(From from, Element* out, std::size_t count, const Op& op) {
        kernel::fold(from, size_, out, count, op, size_);
    }

    template <class Takes>
    bool all_mapped(Takes takes) const noexcept {
        for (int peer = 0; peer < size_; ++peer)
            if (announced(peer).in == 0 || (takes(peer) && announced(peer).out == 0)) return false;
        return true;
    }

    template <class Element>
    Element* mapped(int peer, std::uint64_t address, std::size_t count) const {
        return reinterpret_cast<Element*>(ranks_.mapped(peer, address, count * sizeof(Element)));
    }

    template <class Element, class Op, class Takes>
    void fold_mapped(partition blocks, const Op& op, Takes takes) {
        const std::size_t first = blocks.first(rank_);
        const std::size_t end = first + blocks.length(rank_);
        constexpr std::size_t tile = sizeof(Element) < 8192 ? 8192 / sizeof(Element) : 1;
        const auto fold_tile = [&](std::size_t at) {
            const std::size_t here = end - at < tile ? end - at : tile;
            const Element* result = nullptr;
            for (int peer = 0; peer < size_; ++peer) {
                if (!takes(peer)) continue;
                Element* const out = mapped<Element>(peer, announced(peer).out, blocks.count) + at;
                if (result != nullptr) {
                    kernel::copy(result, out, here);
                    continue;
                }
                const auto from = [&](int source) {
                    return mapped<const Element>(source, announced(source).in, blocks.count) + at;
                };
                fold_from(from, out, here, op);
                result = out;
            }
        };
        share([&] {
            for (std::size_t at = first; at < end; at += tile) fold_tile(at);
        });
    }

    /// `each` elements of every block pass through a half of the window at a time; behind them stands the result of the
    /// owner. The own block is never staged.
    template <class Element, class Op, class Takes>
    void fold_staged(const Element* in, Element* out, partition blocks, std::size_t each, const Op& op, Takes takes) {
        std::size_t turn = 0;
        for (std::size_t begin = 0; begin < blocks.longest(); begin += each, ++turn) {
            const auto here = [&](int block) {
                const std::size_t length = blocks.length(block);
                return length <= begin ? 0 : length - begin < each ? length - begin : each;
            };
            const auto place = [&](int peer, int part) {
                return reinterpret_cast<Element*>(half(peer, turn)) + static_cast<std::size_t>(part) * each;
            };
            for (int block = 0; block < size_; ++block)
                if (block != rank_) kernel::copy(in + blocks.first(block) + begin, place(rank_, block), here(block));
            step();
            const auto from = [&](int peer) {
                return peer == rank_ ? in + blocks.first(rank_) + begin
                                     : static_cast<const Element*>(place(peer, rank_));
            };
            fold_from(from, place(rank_, size_), here(rank_), op);
            step();
            if (!takes(rank_)) continue;
            for (int block = 0; block < size_; ++block)
                kernel::copy(place(block, size_), out + blocks.first(block) + begin, here(block));
        }
    }

    /// Hands out all blocks that ranks publish, straight from their `in` where all of them are mapped, else in segments.
    ///
    /// `consume(begin, bytes, fetch)` may read up to `bytes` bytes from byte `begin` on of each block: `fetch(peer, part)`.
    template <class Element, class First, class Length, class Consume>
    protocol stream(const Element* in, std::size_t count, int parts, First first, Length length, std::size_t longest,
                    Consume consume) {
        const auto publishes = [&](int peer) {
            for (int part = 0; part < parts; ++part)
                if (length(peer, part) != 0) return true;
            return false;
        };
        std::size_t each = segment(sizeof(Element), parts);
        const Element* source = in;
        if (each == 0 && publishes(rank_)) {
            // elements too large for the windows: memory that all can map stands in for the caller's
            auto* const stand_in = reinterpret_cast<Element*>(memory_for_all(count * sizeof(Element)));
            kernel::copy(in, stand_in, count);
            source = stand_in;
        }
        announce(publishes(rank_) ? source : nullptr, count * sizeof(Element), nullptr, 0, 0);
        bool all_map = true;
        for (int peer = 0; peer < size_; ++peer) all_map = all_map && (announced(peer).in != 0 || !publishes(peer));
        if (all_map) {
            const auto fetch = [&](int peer, int part) {
                const std::size_t end = first(peer, part) + length(peer, part);
                return reinterpret_cast<const std::byte*>(mapped<const Element>(peer, announced(peer).in, end) +
                                                          first(peer, part));
            };
            share([&] { consume(0, longest * sizeof(Element), fetch); });
            half_done_.end();
            return protocol::mapped;
        }
        std::size_t turn = 0;
        for (std::size_t begin = 0; begin < longest; begin += each, ++turn) {
            const auto place = [&](int peer, int part) {
                return half(peer, turn) + static_cast<std::size_t>(part) * each * sizeof(Element);
            };
            for (int part = 0; part < parts; ++part) {
                const std::size_t whole = length(rank_, part);
                if (whole <= begin) continue;
                const std::size_t here = whole - begin < each ? whole - begin : each;
                kernel::copy(source + first(rank_, part) + begin, reinterpret_cast<Element*>(place(rank_, part)), here);
            }
            // a rank that publishes a segment has read the one before: the other half of its peers' windows is free
            step();
            consume(begin * sizeof(Element), each * sizeof(Element),
                    [&](int peer, int part) { return static_cast<const std::byte*>(place(peer, part)); });
        }
        half_done_.end();
        return protocol::staged;
    }

    Transport& ranks_;
    call what_;
    bool compares_;
    call_site where_;
    int rank_;
    int size_;
    half_done<Transport> half_done_;
};

}  // namespace ddl
