// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/call.hpp>
#include <ddl/kernel/combine.hpp>
#include <ddl/schedule/program.hpp>
#include <ddl/transport/patience.hpp>

#include <vector>

namespace ddl {

/// Tags of a call's messages. A transport may use others for itself.
enum class message_tag : int { contract = 1, payload = 2 };

/// Waits for a message. Everything that a rank waits for passes here, so no wait is without a deadline.
template <message_transport Transport>
void complete(Transport& wire, typename Transport::ticket& message, const call_site& where, int peer) {
    if (wire.test(message)) return;
    patience waiting{wire.limit(), patience::crowded};  // each turn is a look at the network, and long enough
    while (!wire.test(message)) {
        if (!waiting.pause()) continue;
        wire.listen(where);
        if (!waiting.expired()) continue;
        const error failure(errc::timeout, where.operation, wire.rank(), where.round,
                            "rank %d did not answer within %g s; see what holds it up, or set a longer timeout", peer,
                            waiting.limit());
        wire.fail(errc::timeout, failure.what());
        throw failure;
    }
}

/// Messages under way, with the peer of each, in the order of their posting. Gives up on what is left when it goes.
template <message_transport Transport>
class outbox {
public:
    explicit outbox(Transport& wire) noexcept : wire_{wire} {}
    outbox(const outbox&) = delete;
    outbox& operator=(const outbox&) = delete;
    ~outbox() {
        for (std::size_t i = done_; i < entries_.size(); ++i) wire_.cancel(entries_[i].message);
    }
    void push(int peer, typename Transport::ticket message) { entries_.push_back({std::move(message), peer}); }
    std::size_t size() const noexcept { return entries_.size() - done_; }
    /// Waits for the oldest message.
    void complete_one(const call_site& where) {
        complete(wire_, entries_[done_].message, where, entries_[done_].peer);
        ++done_;
    }
    void complete_all(const call_site& where) {
        while (size() > 0) complete_one(where);
        entries_.clear();
        done_ = 0;
    }

private:
    struct entry {
        typename Transport::ticket message;
        int peer;
    };
    Transport& wire_;
    std::vector<entry> entries_;
    std::size_t done_ = 0;
};

/// Runs any program over a transport of messages.
///
/// Messages are cut into segments, so that one is combined while the next arrives: an eighth of the message, but long enough
/// to be worth a message of its own, and short enough for the slots of the longest. All sends and plain receives of a round
/// are posted at once; arrivals to combine pass through a few slots, and are combined in the order of the program whatever
/// the order of their arrival, so results are the same bits in every run. Operands for a chunk that is also sent in the
/// same round wait until all sends of the round are done.
template <message_transport Transport>
class message_run {
public:
    static constexpr std::size_t shortest_segment = std::size_t{1} << 18;
    static constexpr std::size_t longest_segment = std::size_t{1} << 22;
    static constexpr int slots = 4;

    /// Bytes of a segment of a message of `bytes`, in whole elements of `unit` bytes.
    static constexpr std::size_t segment_length(std::size_t bytes, std::size_t unit) noexcept {
        const std::size_t eighth = (bytes / 8 + 4095) / 4096 * 4096;
        const std::size_t wanted = eighth < shortest_segment  ? shortest_segment
                                   : eighth < longest_segment ? eighth
                                                              : longest_segment;
        return wanted > unit ? wanted / unit * unit : unit;
    }

    message_run(Transport& wire, const call_site& where) noexcept : wire_{wire}, where_{where} {}

    /// Bytes that `run` needs for arrivals on `rank`; `bytes_of_operand(t)` is how long a transfer that is combined is.
    template <program Program, class Bytes>
    static std::size_t arrival_bytes(const Program& program, int rank, Bytes bytes_of_operand, std::size_t unit) {
        std::size_t most = 0;
        std::size_t longest = 0;
        for (int round = 0; round < program.rounds(); ++round) {
            std::size_t sum = 0;
            for (int i = 0, width = program.width(rank, round); i < width; ++i) {
                const transfer t = program.at(rank, round, i);
                if (t.what != action::receive_reduce) continue;
                const std::size_t bytes = bytes_of_operand(t);
                sum += bytes;
                longest = bytes > longest ? bytes : longest;
            }
            if (needs_room_for_all(program, rank, round) && sum > most) most = sum;
        }
        const std::size_t segment = segment_length(longest, unit);
        const std::size_t slot = longest < segment ? longest : segment;
        return most > slots * slot ? most : slots * slot;
    }

    /// `place(transfer)` is where the chunks of a transfer lie: `{std::byte* data, std::size_t bytes}`. `combine(side,
    /// arrived, ours, bytes)` folds arrived bytes into ours; segments are multiples of `unit` bytes. `arrivals` has
    /// `arrival_bytes`.
    template <program Program, class Place, class Combine>
    void run(const Program& program, Place place, std::size_t unit, std::byte* arrivals, Combine combine) {
        const int rank = wire_.rank();
        for (int round = 0; round < program.rounds(); ++round) {
            const int width = program.width(rank, round);
            if (width == 0) continue;
            where_.round = round;
            const bool all_at_once = needs_room_for_all(program, rank, round);
            outbox<Transport> sends{wire_};
            outbox<Transport> receives{wire_};
            outbox<Transport> operands{wire_};
            std::vector<operand> waiting;
            std::size_t posted = 0;
            std::byte* free = arrivals;
            const auto post = [&] {
                operand& next = waiting[posted];
                next.arrived = all_at_once ? free : arrivals + posted % slots * slot_;
                free += next.bytes;
                operands.push(next.peer, wire_.receive(next.peer, next.arrived, next.bytes, tag));
                ++posted;
            };
            slot_ = 0;
            for (int i = 0; i < width; ++i) {
                const transfer t = program.at(rank, round, i);
                if (t.what == action::send) continue;
                const auto [data, bytes] = place(t);
                const std::size_t segment = segment_length(bytes, unit);
                for (std::size_t at = 0; at < bytes; at += segment) {
                    const std::size_t here = bytes - at < segment ? bytes - at : segment;
                    if (t.what == action::receive) {
                        receives.push(t.peer, wire_.receive(t.peer, data + at, here, tag));
                        continue;
                    }
                    waiting.push_back({data + at, here, t.peer, nullptr});
                    slot_ = here > slot_ ? here : slot_;
                    if (all_at_once) post();
                }
            }
            while (posted < waiting.size() && posted < slots) post();
            for (int i = 0; i < width; ++i) {
                const transfer t = program.at(rank, round, i);
                if (t.what != action::send) continue;
                const auto [data, bytes] = place(t);
                const std::size_t segment = segment_length(bytes, unit);
                for (std::size_t at = 0; at < bytes; at += segment)
                    sends.push(t.peer, wire_.send(t.peer, data + at, bytes - at < segment ? bytes - at : segment, tag));
            }
            if (all_at_once) sends.complete_all(where_);
            for (const operand& next : waiting) {
                operands.complete_one(where_);
                combine(next.peer < rank ? kernel::side::left : kernel::side::right, next.arrived, next.ours,
                        next.bytes);
                if (posted < waiting.size()) post();
            }
            receives.complete_all(where_);
            sends.complete_all(where_);
        }
    }

private:
    static constexpr int tag = static_cast<int>(message_tag::payload);

    struct operand {
        std::byte* ours;
        std::size_t bytes;
        int peer;
        std::byte* arrived;
    };

    /// Whether the operands of a round cannot share slots: one of them is for a chunk that the round also sends, or plain
    /// receives stand between them, beside which they must be posted in order.
    template <program Program>
    static bool needs_room_for_all(const Program& program, int rank, int round) {
        const int width = program.width(rank, round);
        bool replaces = false;
        bool combines = false;
        for (int i = 0; i < width; ++i) {
            const transfer t = program.at(rank, round, i);
            replaces = replaces || t.what == action::receive;
            if (t.what != action::receive_reduce) continue;
            combines = true;
            for (int j = 0; j < width; ++j) {
                const transfer s = program.at(rank, round, j);
                if (s.what == action::send && s.chunk < t.chunk + t.count && t.chunk < s.chunk + s.count) return true;
            }
        }
        return replaces && combines;
    }

    Transport& wire_;
    call_site where_;
    std::size_t slot_ = 0;
};

}  // namespace ddl
