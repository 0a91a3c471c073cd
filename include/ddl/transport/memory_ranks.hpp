// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/error.hpp>
#include <ddl/topology/caches.hpp>
#include <ddl/transport/call_queue.hpp>
#include <ddl/transport/concepts.hpp>
#include <ddl/transport/patience.hpp>
#include <ddl/transport/rank_memory.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <vector>

namespace ddl {

/// What `threads` and `shared_memory` have in common: counters to wait for, and a failure that all ranks learn of.
///
/// `Derived` says whether a peer is lost (`bool lost(int)`), and how memory is had and named (`allocate`, `deallocate`,
/// `address_of`, `mapped`).
template <class Derived>
class memory_ranks {
public:
    int rank() const noexcept { return rank_; }
    int size() const noexcept { return size_; }

    /// Sets how long a wait for a peer may take. Ranks may differ in it.
    void set_timeout(timeout limit) noexcept { limit_.store(limit, std::memory_order_relaxed); }
    timeout limit() const noexcept { return limit_.load(std::memory_order_relaxed); }

    void begin(const call_site& where) {
        queue_in(queue_, where, rank_).drain();
        listen(where);
        ++calls_;
    }
    call_queue& queue() { return queue_in(queue_, {Derived::name}, rank_); }

    std::uint64_t advance() noexcept {
        memory_.counter(rank_).store(++step_, std::memory_order_release);  // met by the acquire in `await`
        return step_;
    }

    void await(int peer, std::uint64_t step, const call_site& where) {
        await(memory_.counter(peer), step, peer, where);
    }

    ddl::notice& notice_of(int peer) const noexcept { return memory_.notice(peer, calls_); }
    void post() noexcept {
        notice_of(rank_).call.store(calls_, std::memory_order_release);  // met by the acquire in `await`
    }
    void await_notice(int peer, const call_site& where) { await(notice_of(peer).call, calls_, peer, where); }

    static constexpr std::size_t slot_bytes() noexcept { return rank_memory::slot_bytes; }
    std::byte* slot(int peer) const noexcept { return memory_.slot(peer, calls_); }
    std::byte* window(int peer) const noexcept { return memory_.window(peer); }
    std::size_t window_bytes() const noexcept { return memory_.window_bytes(); }
    void turn_staging() noexcept { ++turned_; }
    void turn_alike() noexcept { turned_ = calls_; }
    std::uint64_t turned() const noexcept { return turned_; }
    std::byte* staging(int peer) const noexcept { return staging(peer, turned_); }
    std::byte* staging(int peer, std::uint64_t turned) const noexcept {
        return window(peer) + turned % 2 * staging_bytes();
    }
    std::size_t staging_bytes() const noexcept { return window_bytes() / 2; }
    /// Whether each rank has a core for itself, as far as the one knew who founded the group. The same on all ranks.
    bool uncrowded() const noexcept { return memory_.uncrowded(); }
    std::size_t cache_bytes() const noexcept { return cache_bytes_; }
    /// The caches to go by from now on, where the system does not know: results that do not stay in the last one are stored
    /// past it. Each rank for itself; ranks may differ.
    void set_caches(const caches& known) noexcept { cache_bytes_ = known.last; }

    std::byte* scratch(std::size_t bytes, scratch_for use = scratch_for::arrivals) {
        block& kept = scratch_[static_cast<std::size_t>(use)];
        if (bytes > kept.bytes) {
            release(kept);
            const std::size_t wanted = bytes + bytes / 2;
            kept = {derived().allocate(wanted), wanted};
        }
        return kept.data;
    }

    /// Every rank's `value`, in rank order. All ranks call it; blocks.
    std::vector<std::uint64_t> exchange(std::uint64_t value, const call_site& where) {
        struct
            words {  // laid out as the call of a collective begins, so that ranks which call one see that this is none
            std::uint64_t value;
            std::uint32_t mark;
        };
        begin(where);
        const words ours{value, exchange_mark};
        std::memcpy(slot(rank_), &ours, sizeof ours);
        notice_of(rank_).fingerprint = exchange_mark;
        post();
        std::vector<std::uint64_t> values(static_cast<std::size_t>(size_));
        int elsewhere = -1;
        for (int peer = 0; peer < size_; ++peer) {
            await_notice(peer, where);
            words theirs{};
            std::memcpy(&theirs, slot(peer), sizeof theirs);
            values[static_cast<std::size_t>(peer)] = theirs.value;
            if (theirs.mark != exchange_mark && elsewhere < 0) elsewhere = peer;
        }
        if (elsewhere < 0) return values;
        turn_alike();
        throw error(errc::mismatch, where.operation, rank_, 0,
                    "rank %d calls a collective, this rank %s; call the same in the same order on every rank",
                    elsewhere, where.operation);
    }

    /// From now on errors of waits call its ranks by these numbers: those that they have where the whole call is made.
    void call_ranks(std::vector<int> numbers) noexcept { numbers_ = std::move(numbers); }
    int called(int rank) const noexcept { return numbers_.empty() ? rank : numbers_[static_cast<std::size_t>(rank)]; }

    /// Tells all ranks that this one leaves a collective half done: they throw wherever they wait. The first call counts.
    void fail(errc code, const char* words) noexcept {
        told_ = true;
        tell(memory_, code, words);
    }

    /// Throws if a rank of this group, or of one that it was split from, has left a call half done.
    void listen(const call_site& where) {
        heed(memory_.first_fault(), where);
        for (const rank_memory& outer : enclosing_) heed(outer.first_fault(), where);
    }
    /// Whether one has.
    bool has_failed() const noexcept {
        const auto failed = [](const rank_memory& group) { return group.first_fault().is_taken(); };
        return failed(memory_) || std::any_of(enclosing_.begin(), enclosing_.end(), failed);
    }

protected:
    /// What `work()` gives. Of a lack of memory that it meets between its waits the others hear, too.
    template <class Work>
    auto or_tell(const call_site& where, const Work& work) {
        try {
            return work();
        } catch (const error&) { throw; } catch (const std::exception&) {  // taken for that, as in `failure_of`
            const error lack(errc::out_of_memory, where.operation, called(rank_), where.round, "no memory is left");
            fail(lack.code(), lack.what());
            throw lack;
        }
    }

    static void tell(const rank_memory& group, errc code, const char* words) noexcept {
        group.first_fault().record(fault{code, words});
    }

    /// `enclosing`: the groups that this one was split from, whose faults are its own.
    memory_ranks(rank_memory memory, int rank, int size, timeout limit, std::vector<rank_memory> enclosing = {})
        : memory_{memory}, enclosing_{std::move(enclosing)}, rank_{rank}, size_{size}, limit_{limit},
          spins_{size > cores_for(size) ? patience::crowded : patience::alone},
          cache_bytes_{std::min(caches::of_this_machine().last, most_of_cache * static_cast<std::size_t>(size))},
          queue_{std::make_unique<call_queue>(true, size)} {}
    memory_ranks(memory_ranks&& from) noexcept
        : memory_{(settle(from.queue_), from.memory_)}, enclosing_{std::move(from.enclosing_)}, rank_{from.rank_},
          size_{from.size_}, numbers_{std::move(from.numbers_)}, limit_{from.limit()}, spins_{from.spins_},
          cache_bytes_{from.cache_bytes_}, step_{from.step_}, calls_{from.calls_}, turned_{from.turned_},
          told_{from.told_.load()}, queue_{std::move(from.queue_)}, scratch_{std::exchange(from.scratch_, {})} {}

    /// To be called by the destructor of `Derived`, which still knows how to give memory back.
    void end() noexcept {
        if (queue_) queue_->finish();  // its calls still use the rest
        for (block& kept : scratch_) release(kept);
    }

    /// The members of each group of `split`, in order of (key, rank): those that chose this rank's color.
    std::vector<int> members(int color, int key, const call_site& where) {
        const auto packed = (static_cast<std::uint64_t>(static_cast<std::uint32_t>(color)) << 32) |
                            (static_cast<std::uint32_t>(key) ^ 0x8000'0000U);  // so that negative keys sort first
        const std::vector<std::uint64_t> all = exchange(packed, where);
        if (color < 0)
            throw error(errc::invalid_argument, where.operation, rank_, -1, "color is %d; pass 0 or more", color);
        std::vector<int> group;
        for (int peer = 0; peer < size_; ++peer)
            if (static_cast<std::int32_t>(all[static_cast<std::size_t>(peer)] >> 32) < 0)
                throw error(errc::mismatch, where.operation, rank_, 0,
                            "rank %d has called with invalid arguments; see its own error", peer);
        for (int peer = 0; peer < size_; ++peer)
            if (all[static_cast<std::size_t>(peer)] >> 32 == static_cast<std::uint32_t>(color)) group.push_back(peer);
        for (std::size_t i = 1; i < group.size(); ++i)  // insertion sort: stable, and groups are small
            for (std::size_t j = i;
                 j > 0 && all[static_cast<std::size_t>(group[j])] < all[static_cast<std::size_t>(group[j - 1])]; --j)
                std::swap(group[j], group[j - 1]);
        return group;
    }

    /// This group and those that it was split from.
    std::vector<rank_memory> lineage() const {
        std::vector<rank_memory> groups{memory_};
        groups.insert(groups.end(), enclosing_.begin(), enclosing_.end());
        return groups;
    }

private:
    Derived& derived() noexcept { return static_cast<Derived&>(*this); }

    struct block {
        std::byte* data = nullptr;
        std::size_t bytes = 0;
    };
    void release(block& kept) noexcept {
        if (kept.data != nullptr) derived().deallocate(kept.data, kept.bytes);
        kept = {};
    }

    /// Waits until `flag`, which `peer` writes, is `value` or more.
    void await(const std::atomic<std::uint64_t>& flag, std::uint64_t value, int peer, const call_site& where) {
        if (flag.load(std::memory_order_acquire) >= value) return;
        patience waiting{limit(), spins_};
        while (flag.load(std::memory_order_acquire) < value)
            if (waiting.pause()) look_around(flag, value, peer, waiting, where);
    }

    void look_around(const std::atomic<std::uint64_t>& flag, std::uint64_t value, int peer, patience& waiting,
                     const call_site& where) {
        listen(where);
        int ended = -1;
        if (derived().lost(peer)) {
            // it may have done its part before it ended
            if (flag.load(std::memory_order_acquire) >= value) return;
            ended = peer;
        } else if (next_is_missing()) {
            ended = next_;
        } else if (!waiting.expired()) {
            return;
        }
        if (ended >= 0) listen(where);  // it may have said why meanwhile
        error failure = ended >= 0 ? error(errc::peer_lost, where.operation, called(rank_), where.round,
                                           "rank %d has ended; start the job again", called(ended))
                                   : did_not_arrive(where, called(rank_), called(peer), waiting.limit());
        fail(failure.code(), failure.what());
        throw failure;
    }

    /// Whether the next of all ranks, at each look another one, has ended and will never come to this call: who is awaited may be late
    /// for long.
    bool next_is_missing() noexcept {
        next_ = (next_ + 1) % size_;
        return next_ != rank_ && derived().lost(next_) &&
               notice_of(next_).call.load(std::memory_order_acquire) < calls_;
    }

    void heed(const fault_record& record, const call_site& where) {
        if (!record.is_taken()) return;
        patience writing{timeout{1}};  // whoever writes it may end before it is done
        while (record.known() == nullptr && !(writing.pause() && writing.expired())) {}
        const fault* const said = record.known();
        const fault known = said != nullptr ? *said : fault{errc::peer_lost, "it ended before it could say why"};
        // if it is of a group around this one, whose ranks are to hear the cause first
        tell(memory_, known.code, known.words);
        const int own = called(rank_);
        throw told_.exchange(true) ? still_broken(known, where, own) : peer_gave_up(known, where, own);
    }

    /// What a rank may expect to keep in the last cache. One that is larger is shared with more cores than take part, or than a
    /// virtual machine shows.
    static constexpr std::size_t most_of_cache = std::size_t{32} << 20;

    rank_memory memory_;
    std::vector<rank_memory> enclosing_;
    int rank_;
    int size_;
    std::vector<int> numbers_;    // what errors call its ranks; their own numbers if empty
    std::atomic<timeout> limit_;  // this and `told_`: the queue's thread looks at requests beside the calls
    int spins_;
    int next_ = 0;  // to be looked at
    std::size_t cache_bytes_;
    std::uint64_t step_ = 0;
    std::uint64_t calls_ = 0;
    std::uint64_t turned_ = 0;
    std::atomic<bool> told_ = false;  // whether this rank knows of the first fault
    std::unique_ptr<call_queue> queue_;
    std::array<block, scratch_uses> scratch_;
};

}  // namespace ddl
