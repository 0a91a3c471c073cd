// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/schedule/hierarchical.hpp>
#include <ddl/schedule/proof_vector.hpp>
#include <ddl/schedule/rooted.hpp>
#include <ddl/schedule/selected.hpp>

#include <cstddef>
#include <cstdint>

namespace ddl {

/// What can be wrong with a program.
enum class flaw : unsigned char {
    none,
    bad_peer,      // a transfer names a rank that does not exist, or the rank itself
    bad_chunk,     // a transfer names chunks that do not exist, or none; or the program has none
    unmatched,     // a send that nobody receives, a receive that nobody sends, or both of different chunks
    unready,       // a rank sends a chunk that has no value yet, or combines what arrives with it
    overlap,       // a chunk is replaced in a round in which it is also sent, or written twice
    twice,         // a contribution would be counted twice
    disordered,    // operands that do not lie side by side in rank order are combined (only where order is asked for)
    wrong_result,  // in the end a rank lacks what it should hold, or holds something else
};

constexpr const char* to_string(flaw what) noexcept {
    constexpr const char* texts[] = {"no flaw",
                                     "a transfer with a peer that does not exist",
                                     "a transfer of chunks that do not exist",
                                     "a send and a receive that do not meet",
                                     "a chunk sent or combined before it has a value",
                                     "a chunk replaced while it is sent or written",
                                     "a contribution counted twice",
                                     "operands combined out of rank order",
                                     "a wrong result in the end"};
    return texts[static_cast<int>(what)];
}

/// The outcome of a proof: no flaw, or the first one and where it shows.
struct proof {
    flaw what = flaw::none;
    int rank = -1;
    int round = -1;
    int chunk = -1;
    constexpr explicit operator bool() const noexcept { return what == flaw::none; }
};

/// Whether a proof also asks that operands are combined in rank order.
enum class operand_order : bool { any, ranks };

/// Runs a program with sets of contributors in place of data.
///
/// The value of a chunk is the set of ranks whose contribution it holds. For up to 64 ranks a set is a word with a bit
/// for each rank, and the run is exact. Beyond that it is the sum of a 64-bit random weight for each contributor, which
/// a wrong set meets with a chance of 2^-63. Messages are matched in the order in which MPI would match them, and all
/// transfers of a round read what was there before it, so a matched program cannot deadlock.
///
/// Cost: time linear in all transfers of all ranks; space linear in ranks times chunks.
template <program Program, operand_order Order = operand_order::any>
class symbolic_run {
public:
    using contributors = std::uint64_t;

    // vectors are filled with a value throughout: clang 14 cannot size one without in a constant expression
    constexpr explicit symbolic_run(const Program& what)
        : program_{what}, ranks_{what.size()}, chunks_{chunks_of(what)}, held_(cells(), nothing),
          cursor_(index(ranks_), std::size_t{0}), stamp_(index(chunks_), -1), writer_(index(chunks_), action::send) {
        if constexpr (Order == operand_order::ranks) spans_.assign(cells(), span{0, 0});
    }

    static constexpr contributors nothing = 0;

    /// Gives each rank the values that it has at the start: `holds(rank, chunk)`, `nothing` if none.
    template <class Holds>
    constexpr void start(Holds holds) {
        for (int rank = 0; rank < ranks_; ++rank)
            for (int chunk = 0; chunk < chunks_; ++chunk) {
                held_[cell(rank, chunk)] = holds(rank, chunk);
                if constexpr (Order == operand_order::ranks) spans_[cell(rank, chunk)] = {rank, rank + 1};
            }
    }

    /// The set of `rank` alone.
    constexpr contributors only(int rank) const noexcept {
        if (ranks_ <= 64) return contributors{1} << rank;
        contributors z = static_cast<contributors>(rank) * 0x9e3779b97f4a7c15U + 0x9e3779b97f4a7c15U;  // splitmix64
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
        return (z ^ (z >> 31)) | 1;
    }
    constexpr contributors everybody() const noexcept {
        contributors all = nothing;
        for (int rank = 0; rank < ranks_; ++rank) all += only(rank);
        return all;
    }

    /// Runs all rounds, then asks `wanted(rank, chunk)` for each value in the end; `nothing` stands for "anything".
    template <class Wanted>
    constexpr proof operator()(Wanted wanted) {
        if (chunks_ == 0) return {flaw::bad_chunk, -1, -1, -1};
        for (int round = 0; round < program_.rounds(); ++round)
            if (const proof found = run(round); !found) return found;
        for (int rank = 0; rank < ranks_; ++rank)
            for (int chunk = 0; chunk < chunks_; ++chunk)
                if (const contributors goal = wanted(rank, chunk); goal != nothing && goal != held_[cell(rank, chunk)])
                    return {flaw::wrong_result, rank, program_.rounds(), chunk};
        return {};
    }

private:
    struct span {
        int first;
        int last;
    };
    struct message {
        int from;
        int chunk;
        int count;
        std::size_t values;
    };
    static constexpr std::size_t index(int value) noexcept { return static_cast<std::size_t>(value); }
    constexpr std::size_t cells() const noexcept { return index(ranks_) * index(chunks_); }
    constexpr std::size_t cell(int rank, int chunk) const noexcept {
        return index(rank) * index(chunks_) + index(chunk);
    }

    constexpr proof run(int round) {
        // everything that is under way in this round, sorted by receiver
        inbox_begin_.assign(index(ranks_) + 1, 0);
        for (int rank = 0; rank < ranks_; ++rank)
            for (int i = 0, width = program_.width(rank, round); i < width; ++i) {
                const transfer t = program_.at(rank, round, i);
                if (t.peer < 0 || t.peer >= ranks_ || t.peer == rank) return {flaw::bad_peer, rank, round, t.chunk};
                if (t.chunk < 0 || t.count < 1 || t.count > chunks_ - t.chunk)
                    return {flaw::bad_chunk, rank, round, t.chunk};
                if (t.what == action::send) ++inbox_begin_[index(t.peer) + 1];
            }
        for (int rank = 0; rank < ranks_; ++rank) inbox_begin_[index(rank) + 1] += inbox_begin_[index(rank)];
        inbox_.assign(inbox_begin_.back(), message{});
        values_.clear();
        value_spans_.clear();
        inbox_end_ = inbox_begin_;
        for (int rank = 0; rank < ranks_; ++rank)
            for (int i = 0, width = program_.width(rank, round); i < width; ++i) {
                const transfer t = program_.at(rank, round, i);
                if (t.what != action::send) continue;
                inbox_[inbox_end_[index(t.peer)]++] = {rank, t.chunk, t.count, values_.size()};
                for (int chunk = t.chunk; chunk < t.chunk + t.count; ++chunk) {
                    if (held_[cell(rank, chunk)] == nothing) return {flaw::unready, rank, round, chunk};
                    values_.push_back(held_[cell(rank, chunk)]);
                    if constexpr (Order == operand_order::ranks) value_spans_.push_back(spans_[cell(rank, chunk)]);
                }
            }
        for (int rank = 0; rank < ranks_; ++rank)
            if (const proof found = arrive(rank, round); !found) return found;
        return {};
    }

    constexpr proof arrive(int rank, int round) {
        const std::size_t begin = inbox_begin_[index(rank)];
        const std::size_t end = inbox_end_[index(rank)];
        for (std::size_t i = end; i > begin; --i)
            cursor_[index(inbox_[i - 1].from)] = i - 1;  // the first of each sender
        const long long here = static_cast<long long>(round) * ranks_ + rank;
        const int width = program_.width(rank, round);
        for (int i = 0; i < width; ++i)
            if (const transfer t = program_.at(rank, round, i); t.what == action::send)
                for (int chunk = t.chunk; chunk < t.chunk + t.count; ++chunk) touch(chunk, here, action::send);
        std::size_t received = 0;
        for (int i = 0; i < width; ++i) {
            const transfer t = program_.at(rank, round, i);
            if (t.what == action::send) continue;
            ++received;
            const std::size_t next = cursor_[index(t.peer)]++;
            if (next < begin || next >= end) return {flaw::unmatched, rank, round, t.chunk};
            const message& m = inbox_[next];
            if (m.from != t.peer || m.chunk != t.chunk || m.count != t.count)
                return {flaw::unmatched, rank, round, t.chunk};
            for (int j = 0; j < t.count; ++j)
                if (const flaw found = take(rank, t, t.chunk + j, m.values + index(j), here); found != flaw::none)
                    return {found, rank, round, t.chunk + j};
        }
        if (received != end - begin) return {flaw::unmatched, rank, round, -1};
        return {};
    }

    /// Remembers the strongest use of a chunk in this round; tells whether it was used before.
    constexpr bool touch(int chunk, long long here, action what) noexcept {
        const bool before = stamp_[index(chunk)] == here;
        if (!before || writer_[index(chunk)] == action::send) writer_[index(chunk)] = what;
        stamp_[index(chunk)] = here;
        return before;
    }

    constexpr flaw take(int rank, const transfer& t, int chunk, std::size_t arrived, long long here) {
        const bool replaced = stamp_[index(chunk)] == here && writer_[index(chunk)] == action::receive;
        if (replaced) return flaw::overlap;
        if (touch(chunk, here, t.what) && t.what == action::receive) return flaw::overlap;
        contributors& ours = held_[cell(rank, chunk)];
        if (t.what == action::receive_reduce) {
            if (ours == nothing) return flaw::unready;
            if (ranks_ <= 64 && (ours & values_[arrived]) != 0) return flaw::twice;
            if constexpr (Order == operand_order::ranks) {
                span& mine = spans_[cell(rank, chunk)];
                const span theirs = value_spans_[arrived];
                const span left = t.peer < rank ? theirs : mine;
                const span right = t.peer < rank ? mine : theirs;
                if (left.last != right.first) return flaw::disordered;
                mine = {left.first, right.last};
            }
            ours += values_[arrived];
        } else {
            ours = values_[arrived];
            if constexpr (Order == operand_order::ranks) spans_[cell(rank, chunk)] = value_spans_[arrived];
        }
        return flaw::none;
    }

    Program program_;
    int ranks_;
    int chunks_;
    proof_vector<contributors> held_;
    proof_vector<span> spans_;
    proof_vector<std::size_t> inbox_begin_;
    proof_vector<std::size_t> inbox_end_;
    proof_vector<message> inbox_;
    proof_vector<contributors> values_;
    proof_vector<span> value_spans_;
    proof_vector<std::size_t> cursor_;  // for each sender its next message to the rank at hand
    proof_vector<long long> stamp_;     // the round and rank that last used a chunk
    proof_vector<action> writer_;       // and how
};

/// For each chunk the rank that owns it between reduce-scatter and all-gather; -1 if nobody, -2 if two do.
template <program Program>
constexpr proof_vector<int> owners(const Program& halves) {
    proof_vector<int> result(static_cast<std::size_t>(chunks_of(halves)), -1);
    for (int rank = 0; rank < halves.size(); ++rank)
        for (int i = 0; i < owned_ranges(halves, rank); ++i) {
            const chunk_range range = owned(halves, rank, i);
            for (int c = range.first; c < range.first + range.count; ++c) {
                int& owner = result[static_cast<std::size_t>(c)];
                owner = owner == -1 ? rank : -2;
            }
        }
    return result;
}

/// Every rank ends with every contribution to every chunk, exactly once.
template <operand_order Order = operand_order::any, program Program>
constexpr proof prove_allreduce(const Program& what) {
    symbolic_run<Program, Order> run{what};
    run.start([&run](int rank, int) { return run.only(rank); });
    const auto all = run.everybody();
    return run([all](int, int) { return all; });
}

/// Every chunk has one owner, and the owner ends with every contribution to it, exactly once.
template <operand_order Order = operand_order::any, program Program>
constexpr proof prove_reduce_scatter(const Program& what) {
    const auto owner = owners(what);
    for (const int rank : owner)
        if (rank < 0) return {flaw::wrong_result, -1, -1, -1};
    symbolic_run<Program, Order> run{what};
    run.start([&run](int rank, int) { return run.only(rank); });
    const auto all = run.everybody();
    return run([&](int rank, int chunk) { return owner[static_cast<std::size_t>(chunk)] == rank ? all : run.nothing; });
}

/// The values that a collective moves without combining: chunk `c` starts at `from(c)` and must reach `reaches(rank, c)`.
template <program Program, class From, class Reaches>
constexpr proof prove_moves(const Program& what, From from, Reaches reaches) {
    symbolic_run<Program> run{what};
    run.start([&](int rank, int c) { return from(c) == rank ? run.only(rank) : run.nothing; });
    return run([&](int rank, int c) { return reaches(rank, c) ? run.only(from(c)) : run.nothing; });
}

/// Every rank ends with what the owner of each chunk began with.
template <program Program>
constexpr proof prove_all_gather(const Program& what) {
    const auto owner = owners(what);
    for (const int rank : owner)
        if (rank < 0) return {flaw::wrong_result, -1, -1, -1};
    return prove_moves(
        what, [&](int c) { return owner[static_cast<std::size_t>(c)]; }, [](int, int) { return true; });
}

template <program Program>
constexpr proof prove_broadcast(const Program& what, int root) {
    return prove_moves(
        what, [root](int) { return root; }, [](int, int) { return true; });
}

/// The root ends with every contribution to every chunk, exactly once.
template <operand_order Order = operand_order::any, program Program>
constexpr proof prove_reduce(const Program& what, int root) {
    symbolic_run<Program, Order> run{what};
    run.start([&run](int rank, int) { return run.only(rank); });
    const auto all = run.everybody();
    return run([&](int rank, int) { return rank == root ? all : run.nothing; });
}

/// Chunk `r` goes from the root to rank `r`.
template <program Program>
constexpr proof prove_scatter(const Program& what, int root) {
    return prove_moves(
        what, [root](int) { return root; }, [](int rank, int c) { return c == rank; });
}

/// Chunk `r` comes from rank `r` to the root.
template <program Program>
constexpr proof prove_gather(const Program& what, int root) {
    return prove_moves(
        what, [](int c) { return c; }, [root](int rank, int) { return rank == root; });
}

/// Chunk `s * p + d` goes from rank `s` to rank `d`.
template <program Program>
constexpr proof prove_all_to_all(const Program& what) {
    const int p = what.size();
    return prove_moves(
        what, [p](int c) { return c / p; }, [p](int rank, int c) { return c % p == rank; });
}

/// Calls `holds.template operator()<S>()` for the schedule, or for all choices of a `selected`; true if all are.
template <class Schedule>
struct every_choice {
    static constexpr bool of(auto&& holds) {
        if constexpr (arguments_of<Schedule>::fit) return holds.template operator()<Schedule>();
        else return (arguments_of<Schedule>::complain(), false);
    }
};
template <class... Choices>
struct every_choice<selected<Choices...>> {
    static constexpr bool of(auto&& holds) {
        if constexpr (arguments_of<selected<Choices...>>::fit)
            return (every_choice<typename Choices::type>::of(holds) && ...);
        else return (arguments_of<selected<Choices...>>::complain(), false);
    }
};

/// `static_assert(ddl::proves_allreduce<ring>(5))`: that the schedule is an allreduce for so many ranks, or such a shape.
template <class Schedule>
constexpr bool proves_allreduce(const shape& ranks) {
    return every_choice<Schedule>::of([&]<class S>() { return bool(prove_allreduce(allreduce_program<S>(ranks))); });
}
template <class Schedule>
constexpr bool proves_reduce_scatter(const shape& ranks) {
    return every_choice<Schedule>::of(
        [&]<class S>() { return bool(prove_reduce_scatter(reduce_scatter_program<S>(ranks))); });
}
template <class Schedule>
constexpr bool proves_all_gather(const shape& ranks) {
    return every_choice<Schedule>::of([&]<class S>() { return bool(prove_all_gather(all_gather_program<S>(ranks))); });
}
template <class Schedule>
constexpr bool proves_broadcast(int size, int root = 0) {
    return every_choice<Schedule>::of(
        [&]<class S>() { return bool(prove_broadcast(broadcast_program<S>(size, root), root)); });
}
template <class Schedule>
constexpr bool proves_reduce(int size, int root = 0) {
    return every_choice<Schedule>::of(
        [&]<class S>() { return bool(prove_reduce(reduce_program<S>(size, root), root)); });
}
template <class Schedule>
constexpr bool proves_scatter(int size, int root = 0) {
    return every_choice<Schedule>::of([&]<class S>() { return bool(prove_scatter(S::scatter(size, root), root)); });
}
template <class Schedule>
constexpr bool proves_gather(int size, int root = 0) {
    return every_choice<Schedule>::of([&]<class S>() { return bool(prove_gather(S::gather(size, root), root)); });
}
template <class Schedule>
constexpr bool proves_all_to_all(int size) {
    return every_choice<Schedule>::of([&]<class S>() { return bool(prove_all_to_all(S::all_to_all(size))); });
}
/// That the allreduce combines operands in rank order as well.
template <class Schedule>
constexpr bool proves_rank_order(const shape& ranks) {
    return every_choice<Schedule>::of(
        [&]<class S>() { return bool(prove_allreduce<operand_order::ranks>(allreduce_program<S>(ranks))); });
}

template <class Schedule>
struct order_is_kept;

/// Whether a schedule may carry an op that does not commute: asked of the proof for 2 to 7 ranks, and of all parts of each choice.
template <class Schedule>
inline constexpr bool keeps_rank_order = [] {
    for (int size = 2; size <= 7; ++size)
        if (!proves_rank_order<Schedule>(size)) return false;
    return every_choice<Schedule>::of(
        []<class S>(std::type_identity<S> = {}) { return parts_of<S>::template all<order_is_kept>; });
}();
template <class Schedule>
struct order_is_kept : std::bool_constant<keeps_rank_order<Schedule>> {};

}  // namespace ddl
