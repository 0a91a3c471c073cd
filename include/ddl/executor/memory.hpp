// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/call.hpp>
#include <ddl/executor/direct_limits.hpp>
#include <ddl/kernel/copy.hpp>
#include <ddl/kernel/fetch_to_store.hpp>
#include <ddl/kernel/hand_back.hpp>
#include <ddl/transport/concepts.hpp>
#include <ddl/transport/patience.hpp>
#include <ddl/transport/rank_memory.hpp>

#include <atomic>
#include <bit>
#include <cstring>
#include <memory>

namespace ddl {

/// How the bytes of a call over memory reach the ranks that need them.
enum class protocol : unsigned char {
    in_notice,  // in the cache line that announces the call; every rank folds everything
    one_shot,   // staged once; every rank folds everything
    staged,     // staged in segments; every rank folds its own block
    mapped,     // straight from and into the buffers of all ranks
};

constexpr const char* to_string(protocol way) noexcept {
    constexpr const char* names[] = {"in the notice", "one-shot", "staged two-shot", "mapped two-shot"};
    return names[static_cast<int>(way)];
}

/// One call over ranks that map each other's memory: how it is entered, stepped through and left.
///
/// A rank announces the call and waits until all ranks have; from then on it may touch what the others published for this
/// call. A rank that enters the next call has finished with the memory of this one, so staging needs no other guard.
template <memory_transport Transport>
class memory_call {
public:
    /// Where a rank's buffers lie for all ranks; 0 for those that peers cannot map.
    struct places {
        std::uint64_t in = 0;
        std::uint64_t out = 0;
        std::uint64_t past_line = 0;  // bytes between the beginning of a cache line and what this rank stages from
    };
    static_assert(sizeof(places) <= notice::room);

    static constexpr std::size_t line = 64;

    /// Bytes of a slot in which nothing but a call over memory writes.
    static constexpr std::size_t end_of_slot = 64;

    /// Staging is used in so many areas, in turns: one is filled while another is read.
    std::size_t turns() const noexcept { return std::size_t{1} << halvings_; }
    /// Bytes of each.
    std::size_t area() const noexcept { return ranks_.staging_bytes() >> halvings_; }
    /// Makes so many, a power of two, of two. All ranks call it alike, before they stage.
    void take_turns(std::size_t areas) noexcept { halvings_ = std::countr_zero(areas); }

    /// Always a part of its caller, so that `what` stays in registers: see there.
    [[gnu::always_inline]] memory_call(Transport& ranks, const call& what, bool compares)
        : ranks_{ranks}, compares_{compares}, where_{to_string(what.what), 0}, half_done_{ranks} {
        static_assert(limits_of<Transport>.segment >= 64,
                      "ddl: limits_of this transport has a segment of less than a cache line; see docs/tuning.md");
        constexpr std::size_t areas = limits_of<Transport>.for_processor(false, false).areas;
        static_assert(
            areas >= 2 && std::has_single_bit(areas),
            "ddl: limits_of this transport has areas that are no power of two; make them 2, 4 or 8: see docs/tuning.md");
        ranks_.begin(where_);
        call told = what;
        told.limits ^= limits_here<Transport>::fingerprint();  // beside those that the call brings
        static_assert(sizeof(call_record) + end_of_slot <= Transport::slot_bytes());
        std::construct_at(&described(rank()), told);  // in place: see `call`
        fingerprint_ = fingerprint(told);
    }

    int rank() const noexcept { return ranks_.rank(); }
    int size() const noexcept { return ranks_.size(); }
    Transport& ranks() const noexcept { return ranks_; }

    /// Returns when all ranks have called it: a barrier that compares the calls.
    void enter() {
        announce();
        end();
    }

    /// Tells of the call, with up to `notice::room` bytes, then waits until all ranks have. Publishes what was staged.
    void announce(const void* carried, std::size_t bytes) {
        if (bytes != 0) kernel::copy_few(carried, room(), bytes);
        announce();
    }
    void announce(const places& buffers) {
        std::construct_at(reinterpret_cast<places*>(room()), buffers);  // in place: see `call`
        announce();
    }
    /// The same with what has been written to `room`.
    void announce() {
        ranks_.notice_of(rank()).fingerprint = fingerprint_;
        ranks_.post();
        try {
            for (int peer = 0; peer < size(); ++peer)
                if (peer != rank()) ranks_.await_notice(peer, where_);
        } catch (...) {
            leave();  // a peer may have come further
            throw;
        }
        ++where_.round;
        compare();
        half_done_.begin(where_);
    }

    /// Where this rank's notice carries `notice::room` bytes.
    std::byte* room() const noexcept { return ranks_.notice_of(rank()).carried; }
    /// What a peer's notice carries.
    const std::byte* carried(int peer) const noexcept { return ranks_.notice_of(peer).carried; }
    places announced(int peer) const noexcept {
        places buffers;
        std::memcpy(&buffers, carried(peer), sizeof buffers);
        return buffers;
    }

    /// Announces the buffers if peers can map them, else what `stage` stages. True if those of all ranks that publish
    /// something, `publishing` of them, can be mapped, and `suits()`, which all ranks find alike in what has been announced. If
    /// not, all have staged when it returns.
    template <class Stage, class Suits>
    bool announce_or_stage(const places& buffers, int publishing, const Stage& stage, const Suits& suits) {
        if (buffers.in == 0) stage();
        announce(buffers);
        int maps = 0;
        for (int peer = 0; peer < size(); ++peer) maps += announced(peer).in != 0;
        if (maps == publishing && suits()) return true;
        if (maps != 0) {  // those who hoped for the others' buffers stage theirs too
            if (buffers.in != 0) stage();
            step();
        }
        return false;
    }

    /// Publishes what this rank has written, and that it is done with what it has read. Returns how often it has published.
    std::uint64_t publish() noexcept {
        ++where_.round;
        return ranks_.advance();
    }
    /// Waits until the peers for which `which(peer)` holds have published so often.
    template <class Which>
    void await(std::uint64_t published, const Which& which) {
        for (int peer = 0; peer < size(); ++peer)
            if (peer != rank() && which(peer)) ranks_.await(peer, published, where_);
    }
    /// The same for all peers.
    void await(std::uint64_t published) {
        await(published, [](int) { return true; });
    }
    /// Publishes, and waits until all ranks have come as far.
    void step() { await(publish()); }

    /// The call is over for this rank: what comes now is no longer the others' affair.
    void end() noexcept { half_done_.end(); }

    /// Runs `work`, in which ranks load from each other's buffers and store to them. Nobody leaves before all are done with
    /// it, not even by an exception: the buffers may go with it. Who comes when one has left throws, and touches nothing.
    template <class Work>
    void share(const Work& work) {
        try {
            reaches(rank()).store(1);  // before it looks: see `leave`
            ranks_.listen(where_);
            work();
            reaches(rank()).store(0, std::memory_order_release);  // met by the acquire in `leave`
            step();
        } catch (...) {
            half_done_.tell();
            leave();
            throw;
        }
    }

    template <class Element>
    Element* mapped(int peer, std::uint64_t address, std::size_t count) const {
        return reinterpret_cast<Element*>(ranks_.mapped(peer, address, count * sizeof(Element)));
    }

    static const direct_limits& limits() noexcept { return limits_here<Transport>::all(); }

    /// Where segment `turn` of `peer`'s part `part` is staged, `each` elements a part, `past` bytes behind the beginning of a
    /// cache line.
    template <class Element>
    Element* staged(int peer, std::size_t turn, int part, std::size_t each, std::size_t past = 0) const noexcept {
        return reinterpret_cast<Element*>(ranks_.staging(peer) + place<Element>(ranks_.turned(), turn, part, each) +
                                          past);
    }
    /// Bytes between two parts at least: one may begin up to a line later, see `past`, and the next is aligned all the same.
    template <class Element>
    static constexpr std::size_t apart = alignof(Element) > line ? alignof(Element) : line;

    /// Whether parts of up to `bytes` are to be spread: not few short lines, which are asked back early (see `reclaim`), nor parts
    /// beside which the lines would not stay in the second-level cache.
    static bool spreads(std::size_t bytes) noexcept { return bytes > 2048 && bytes <= 4 * limits().spread; }
    /// Lets calls stage in other lines than those before them, so that they come back to a line late: segments of `each`
    /// elements of `parts` parts, the longest of `longest` elements, of which the ranks stage `staged` together. All ranks call
    /// it alike, before they stage. A line that two cores write and read in turns is cheaper if it is one of many.
    template <class Element>
    void spread(std::size_t longest, std::size_t each, int parts, int staged) noexcept {
        if (staged == 0) return;  // a rank alone
        spread_.segments = (longest + each - 1) / each;
        // calls of one segment go through both halves before they meet a line again, a long one stays in one
        const std::size_t halves = spread_.segments == 1 ? 2 : 1;
        const std::size_t over = limits().spread / halves / turns() / static_cast<std::size_t>(staged);
        const std::size_t bytes = (longest < each ? longest : each) * sizeof(Element);
        spread_.pitch = area() / static_cast<std::size_t>(parts) / apart<Element> * apart<Element>;
        spread_.stride = (bytes + 2 * apart<Element> - 1) / apart<Element> * apart<Element>;
        const std::size_t enough = (over + spread_.stride - 1) / spread_.stride, fit = spread_.pitch / spread_.stride;
        spread_.lots = fit < enough ? fit : enough;
    }
    /// The place of part `part` among those that `owner` stages: of blocks that each belong to a rank all but its own, for which
    /// there is no need.
    static int among_others(int owner, int part) noexcept { return part > owner ? part - 1 : part; }
    /// How far behind the beginning of a line a part is staged that begins `first` elements into what lies `past_line` behind
    /// one: as far as it lies itself, if it is of more than one segment, and segments are of whole lines. Copies from lines to lines that are cut alike are
    /// up to 1.3 times as fast, but one part has a line more.
    template <class Element>
    static constexpr std::size_t past(std::size_t past_line, std::size_t first, bool has_more_segments) noexcept {
        return has_more_segments ? (past_line + first * sizeof(Element)) % line : 0;
    }
    static std::size_t past_line(const void* buffer) noexcept {
        return reinterpret_cast<std::uintptr_t>(buffer) % line;
    }
    /// Whether cache lines for `bytes` are to be taken back: one alone comes as early by the store itself, and many stand in
    /// the way of those that this call still reads.
    static bool reclaims(std::size_t bytes) noexcept { return bytes > 64 && bytes <= limits().reclaimed; }
    /// Whether the only reader of a part of `bytes` hands its cache lines back, so that the owner need not take them.
    static bool hands_back(std::size_t bytes) noexcept {
        return bytes >= 2048 && kernel::readers_hold_up_writers() && !kernel::copy_takes_lines(bytes);
    }
    /// Takes back the cache lines in which the next call will stage, if it stages what this one did: `count` elements of part
    /// `part`. All peers have announced this call, so none reads there any more; yet they hold copies, and the stores of
    /// the next call would wait until these are given up. Call it when all have announced.
    template <class Element>
    void reclaim(int part, std::size_t each, std::size_t count) const noexcept {
        const std::uint64_t next = ranks_.turned() + 1;
        kernel::fetch_to_store(ranks_.staging(rank(), next) + place<Element>(next, 0, part, each),
                               count * sizeof(Element));
    }
    /// The most elements of a segment if there are `parts` of them, 0 if not even one fits. Segments are `shorter` times
    /// shorter than the limits say, if elements let them.
    template <class Element>
    std::size_t segment(int parts, std::size_t shorter = 1) const noexcept {
        const std::size_t share = area() / static_cast<std::size_t>(parts > 0 ? parts : 1);  // a rank alone has none
        const std::size_t fits = share > apart<Element> ? share - apart<Element> : 0;
        const std::size_t longest = limits().segment / shorter;
        const std::size_t room = fits < longest ? fits : longest;
        if (room < sizeof(Element)) return fits / sizeof(Element);
        return (room >= 64 * sizeof(Element) ? room / 64 * 64 : room) / sizeof(Element);
    }

    /// How results are stored over what was not read, where operands and results of all ranks are `bytes` together. If they fill
    /// the last cache, past it: they would not stay there.
    kernel::stores stores_beside(std::size_t bytes) const noexcept {
        return bytes >= ranks_.cache_bytes() ? kernel::stores::streamed : kernel::stores::cached;
    }

    /// Memory that stands in for buffers that cannot take part. Without it this rank tells the others that it will not.
    std::byte* memory_for_all(std::size_t bytes) {
        try {
            return ranks_.scratch(bytes, scratch_for::stand_in);
        } catch (...) {
            if (!compares_) {  // nobody would see what is told, and all take what has not been: they are to hear of a failure
                half_done_.begin(where_);
                half_done_.tell();
                throw;
            }
            call_record& told = described(rank());
            told.what = collective::refused;
            fingerprint_ = fingerprint(told);
            try {
                enter();
            } catch (const error&) {
                // the news of this rank, which the others get; it has its own
            }
            throw;
        }
    }

private:
    /// Where in its staging a rank that has turned it for the `turned`th time has segment `turn` of a part.
    template <class Element>
    std::size_t place(std::uint64_t turned, std::size_t turn, int part, std::size_t each) const noexcept {
        const std::size_t nth = static_cast<std::size_t>(part);
        if (spread_.lots == 0) return turn % turns() * area() + nth * (each * sizeof(Element) + apart<Element>);
        const std::size_t use = turn + turned / 2 * spread_.segments;  // every other time it is the other half
        return use % turns() * area() + nth * spread_.pitch + (use >> halvings_) % spread_.lots * spread_.stride;
    }

    /// This rank touches nobody's buffers any more, and all can hear why; waits until nobody touches its own. Who has come to
    /// the call, but not to its buffers, need not be waited for, and might never come: either it hears of the failure there, or
    /// it is seen here, as both tell before they look. A process that is stopped stays where it is, and is left in the end; a
    /// thread is not stopped alone, and comes back from its fold or copy.
    void leave() noexcept {
        reaches(rank()).store(0, std::memory_order_release);
        patience waiting{limit_of_leaver};
        for (int peer = 0; peer < size(); ++peer)
            while (reaches(peer).load() != 0)
                if (waiting.pause() && (ranks_.lost(peer) || (!one_process<Transport> && waiting.expired()))) break;
    }

    call_record& described(int peer) const noexcept { return *reinterpret_cast<call_record*>(ranks_.slot(peer)); }
    /// 1 while a rank touches the buffers of others; 0 again when it leaves a call.
    std::atomic<std::uint32_t>& reaches(int peer) const noexcept {
        return *reinterpret_cast<std::atomic<std::uint32_t>*>(ranks_.slot(peer) + Transport::slot_bytes() -
                                                              end_of_slot);
    }

    void compare() const {
        if (!compares_) return;
        // everybody reads the same notices: if one rank finds a mismatch, all do
        const std::uint64_t first = ranks_.notice_of(0).fingerprint;
        for (int peer = 1; peer < size(); ++peer) {
            if (ranks_.notice_of(peer).fingerprint == first) continue;
            int other = fingerprint_ == first ? peer : 0;
            for (int each = 0; each < size(); ++each)  // of which all must hear
                if (described(each).what == collective::staged) other = each;
            ranks_.turn_alike();  // some have turned it for this call, and others not
            throw mismatch(described(rank()), rank(), described(other), other);
        }
    }

    Transport& ranks_;
    bool compares_;
    std::uint64_t fingerprint_;
    call_site where_;
    half_done<Transport> half_done_;
    int halvings_ = 1;
    struct {
        std::size_t lots = 0;      // for a segment of a part, in each area, taken in turns; 0: it has one place
        std::size_t stride = 0;    // bytes between two lots
        std::size_t pitch = 0;     // bytes between the lots of a part and those of the next
        std::size_t segments = 1;  // of the longest part
    } spread_;
};

}  // namespace ddl
