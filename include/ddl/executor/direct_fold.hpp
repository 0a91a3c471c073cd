// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/memory.hpp>
#include <ddl/executor/partition.hpp>
#include <ddl/kernel/fold.hpp>

namespace ddl {

/// What a `direct_fold` is carried out by.
template <class Op, class Element, class Takes, memory_transport Transport>
class direct_fold_run {
public:
    direct_fold_run(memory_call<Transport>& here, const Element* in, Element* out, std::size_t count, const Op& op,
                    Takes takes)
        : here_{here}, in_{in}, out_{out}, count_{count}, op_{op}, takes_{takes}, rank_{here.rank()},
          size_{here.size()} {}

    /// Runs the fold; the way that it took.
    protocol operator()() {
        const std::size_t bytes = count_ * sizeof(Element);
        const protocol way = notice::carries<Element>(bytes) ? in_notice() : by_size(bytes);
        here_.end();
        return way;
    }

private:
    using places = typename memory_call<Transport>::places;

    protocol in_notice() {
        here_.announce(in_, count_ * sizeof(Element));
        fold_all([this](int peer) { return reinterpret_cast<const Element*>(here_.carried(peer)); });
        return protocol::in_notice;
    }

    protocol by_size(std::size_t bytes) {
        const std::size_t longest_one_shot = limits_here<Transport>::longest_one_shot(here_.ranks(), takers() == size_);
        const bool is_short = bytes <= longest_one_shot && bytes <= here_.ranks().staging_bytes();
        const bool may_be_mapped = bytes >= here_.limits().mapped;
        if (is_short && !may_be_mapped) {
            here_.ranks().turn_staging();
            stage_whole();
            here_.announce();
            return in_one_shot(bytes);
        }
        const std::size_t each = here_.template segment<Element>(size_ - 1);
        if (each == 0) return through_stand_ins(bytes);
        here_.ranks().turn_staging();
        const std::size_t longest = partition{count_, size_}.longest();
        // short results bring the lines of their operands back; then few lines are cheaper than many
        const bool comes_back = takers() == size_ && longest * sizeof(Element) <= 16384;
        if (!is_short && !comes_back && here_.spreads(longest * sizeof(Element)))
            here_.template spread<Element>(longest, each, size_ - 1, size_ * (size_ - 1));
        const auto stage = [&] {
            if (is_short) stage_whole();
            else stage_segment(0, each);
        };
        places ours = may_be_mapped ? buffers(bytes) : places{};
        ours.past_line = here_.past_line(in_);
        if (here_.announce_or_stage(ours, size_, stage, [] { return true; })) return fold_mapped(in_, out_);
        return is_short ? in_one_shot(bytes) : in_segments(each);
    }

    Element* whole_of(int peer) const { return here_.template staged<Element>(peer, 0, 0, 0); }
    void stage_whole() { kernel::copy(in_, whole_of(rank_), count_); }

    /// Requires the vectors of all ranks to be staged and published.
    protocol in_one_shot(std::size_t bytes) {
        const bool by_readers = size_ == 2 && here_.hands_back(bytes);
        if (here_.reclaims(bytes) && !(by_readers && takes_(1 - rank_))) here_.template reclaim<Element>(0, 0, count_);
        fold_all([this](int peer) { return static_cast<const Element*>(whole_of(peer)); });
        if (by_readers && takes_(rank_)) kernel::hand_back(reinterpret_cast<std::byte*>(whole_of(1 - rank_)), bytes);
        return protocol::one_shot;
    }

    /// Where this rank's buffers lie for all ranks; nowhere, unless peers can map both.
    places buffers(std::size_t bytes) const {
        places ours;
        ours.in = here_.ranks().address_of(in_, bytes);
        if (!takes_(rank_)) return ours;
        ours.out = in_ == out_ ? ours.in : here_.ranks().address_of(out_, bytes);
        return ours.out != 0 ? ours : places{};
    }

    kernel::stores how() const noexcept {
        const std::size_t all = 2 * count_ * sizeof(Element) * static_cast<std::size_t>(size_);
        return in_ != out_ ? here_.stores_beside(all) : kernel::stores::cached;
    }

    /// Every rank folds everything; its own vector where it lies.
    template <class Staged>
    void fold_all(const Staged& staged) {
        if (!takes_(rank_)) return;
        kernel::fold([&](int peer) { return peer == rank_ ? in_ : staged(peer); }, size_, out_, count_, op_, size_);
    }

    /// Folds the own block, straight from and into the buffers that ranks have announced, this one `own_in` and `own_out`.
    protocol fold_mapped(const Element* own_in, Element* own_out) {
        const partition blocks{count_, size_};
        const std::size_t first = blocks.first(rank_);
        const std::size_t length = blocks.length(rank_);
        const auto from = [&](int peer) {
            if (peer == rank_) return own_in + first;
            return here_.template mapped<const Element>(peer, here_.announced(peer).in, count_) + first;
        };
        const auto into = [&](int peer) {
            if (peer == rank_) return own_out + first;
            return here_.template mapped<Element>(peer, here_.announced(peer).out, count_) + first;
        };
        here_.share([&] {
            kernel::fold<Element>(
                from, size_, [&](int target) { return into(nth_taker(target)); }, takers(), length, op_, size_, how());
        });
        return protocol::mapped;
    }

    int takers() const {
        int count = 0;
        for (int peer = 0; peer < size_; ++peer) count += takes_(peer);
        return count;
    }
    int nth_taker(int target) const {
        int peer = 0;
        while (!takes_(peer) || target-- > 0) ++peer;
        return peer;
    }

    /// Elements too large for staging: memory that all can map stands in for the caller's.
    protocol through_stand_ins(std::size_t bytes) {
        auto* const stand_in = reinterpret_cast<Element*>(here_.memory_for_all(2 * bytes));
        kernel::copy(in_, stand_in, count_);
        auto& ranks = here_.ranks();
        here_.announce(places{ranks.address_of(stand_in, bytes), ranks.address_of(stand_in + count_, bytes)});
        fold_mapped(stand_in, stand_in + count_);
        if (takes_(rank_)) kernel::copy(stand_in + count_, out_, count_);
        return protocol::mapped;
    }

    /// Stages what the others fold. The own block stays where it is: its place is for its result.
    void stage_segment(std::size_t turn, std::size_t each) {
        const partition blocks{count_, size_};
        const std::size_t begin = turn * each;
        for (int block = 0; block < size_; ++block)
            if (block != rank_)
                kernel::copy(in_ + blocks.first(block) + begin, own_place(turn, block, each),
                             segment_length(blocks.length(block), begin, each));
    }

    /// Where this rank stages segment `turn` of a block.
    Element* own_place(std::size_t turn, int block, std::size_t each) const {
        const partition blocks{count_, size_};
        const auto past =
            here_.template past<Element>(here_.past_line(in_), blocks.first(block), blocks.longest() > each);
        return here_.template staged<Element>(rank_, turn, here_.among_others(rank_, block), each, past);
    }

    /// Requires segment 0 to be staged and published. Segments are staged while the one before is folded: one step each.
    ///
    /// A result takes the place of the operand that its taker staged. So a cache line goes to the owner of a block with the
    /// operand, and comes back with the result: nobody ever writes a line that others have copies of.
    protocol in_segments(std::size_t each) {
        const partition blocks{count_, size_};
        const std::size_t own = blocks.first(rank_);
        const bool is_long = blocks.longest() > each;
        const bool takes = takes_(rank_);
        for (std::size_t turn = 0, begin = 0; begin < blocks.longest(); ++turn, begin += each) {
            const auto place = [&](int peer) {
                const auto past = here_.template past<Element>(here_.announced(peer).past_line, own, is_long);
                return here_.template staged<Element>(peer, turn, here_.among_others(peer, rank_), each, past);
            };
            const auto from = [&](int peer) {
                return peer == rank_ ? in_ + own + begin : static_cast<const Element*>(place(peer));
            };
            const auto to = [&](int target) {
                const int peer = nth_taker(target);
                return peer == rank_ ? out_ + own + begin : place(peer);
            };
            if (begin + each < blocks.longest()) stage_segment(turn + 1, each);
            const std::size_t length = segment_length(blocks.length(rank_), begin, each);
            kernel::fold<Element>(from, size_, to, takers(), length, op_, size_);
            for (int peer = 0; peer < size_; ++peer)  // its lines would else come back with a result
                if (peer != rank_ && !takes_(peer) && here_.hands_back(length * sizeof(Element)))
                    kernel::hand_back(reinterpret_cast<std::byte*>(place(peer)), length * sizeof(Element));
            here_.step();
            if (!takes) continue;
            for (int i = 1; i < size_; ++i) {  // not all ranks at once at the first block
                const int block = (rank_ + i) % size_;
                kernel::copy<Element>(own_place(turn, block, each), out_ + blocks.first(block) + begin,
                                      segment_length(blocks.length(block), begin, each), how());
            }
        }
        kernel::settle(how());
        return protocol::staged;
    }

    memory_call<Transport>& here_;
    const Element* in_;
    Element* out_;
    std::size_t count_;
    const Op& op_;
    Takes takes_;
    int rank_;
    int size_;
};

/// Folds a vector of every rank, in rank order, into those of the ranks for which `takes(rank)` holds: the schedule `direct`
/// over memory, fused. An allreduce, or a reduce.
///
/// Block `r` of every buffer is touched by its owner, rank `r`, alone: it loads all contributions, and stores the result
/// wherever it is wanted. That writes each output once, where a reduce-scatter and an all-gather by loads write it twice.
/// Short vectors are folded whole by every rank instead, which saves a step.
///
/// Cost: 1 step for short vectors, 2 for mapped ones, else 1 and 1 a segment. Bytes loaded and stored by all `p` ranks
/// together for `s` bytes each: short `p(p+3)s`, staged `(5p-2)s`, mapped `2ps`.
template <class Op, class Element, class Takes, memory_transport Transport>
protocol direct_fold(memory_call<Transport>&& here, const Element* in, Element* out, std::size_t count, const Op& op,
                     Takes takes) {
    return direct_fold_run<Op, Element, Takes, Transport>{here, in, out, count, op, takes}();
}

}  // namespace ddl
