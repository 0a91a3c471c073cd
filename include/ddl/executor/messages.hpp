// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/message_lanes.hpp>
#include <ddl/executor/message_wait.hpp>
#include <ddl/function_view.hpp>
#include <ddl/kernel/combine.hpp>
#include <ddl/kernel/copy.hpp>
#include <ddl/schedule/program_view.hpp>

#include <algorithm>
#include <climits>
#include <memory>

namespace ddl {

/// Bytes of a piece of a buffer.
struct byte_range {
    std::byte* data;
    std::size_t bytes;
};

/// Where the chunks of a transfer lie, a single piece.
using chunk_places = function_view<byte_range(const transfer&)>;

/// `(side, arrived, before, ours, bytes)`: makes ours of what arrived and of those before, of which one may be ours.
using combination = function_view<void(kernel::side, const std::byte*, const std::byte*, std::byte*, std::size_t)>;

/// Where chunks lie that no message has changed: there they stay as they are.
struct input_view {
    function_view<const std::byte*(const transfer&)> at;  // null if those of a transfer do not lie together
    function_view<bool(int)> wants;                       // whether a chunk is copied to its place at last
};

/// Runs any program over a transport of messages.
///
/// Transfers of a round to one peer are a lane, and so are those from it. A lane moves segments in the order of the program, a
/// few at a time; lanes do not wait for each other, and a segment is combined while others are under way. What is combined
/// into the same elements is so in the order of the program whatever the order of arrival, so results are the same bits in
/// every run. Elements that a round also sends stay as they are until they have left. A chunk that no message has changed may lie
/// in an input, from where it is sent, or combined to its place: what only leaves is never copied.
///
/// Where receivers' cores move messages, rounds in a row in which a rank only sends are one for it: all of them copy at the same time.
///
/// What differs from call to call, it takes as views, so that a source of many calls compiles it once.
template <message_transport Transport>
class message_run {
    using ticket = typename Transport::ticket;

public:
    /// What a run needs of scratch.
    struct room {
        std::size_t arrivals = 0;  // bytes
        int width = 0;             // transfers in a round at most
        int messages = 0;          // under way at most
        int chunks = 0;            // of the program
        /// Behind them legs are aligned.
        std::size_t bytes_of_tickets() const noexcept {
            return (static_cast<std::size_t>(messages) * sizeof(ticket) + alignof(leg) - 1) / alignof(leg) *
                   alignof(leg);
        }
        std::size_t bytes() const noexcept {
            return arrivals + bytes_of_tickets() + static_cast<std::size_t>(width) * (sizeof(leg) + sizeof(lane)) +
                   static_cast<std::size_t>(chunks) * sizeof(int);
        }
    };

    /// What a run needs; `bytes_of_operand(t)` is how long a transfer that is combined is.
    static room needed(const Transport& wire, const program_view& program,
                       const function_view<std::size_t(const transfer&)>& bytes_of_operand, std::size_t unit) {
        const segmenting& cut = cut_of(wire);
        const int rank = wire.rank();
        room most;
        int width = 0;
        arrivals before{.only_sends = false};
        for (int round = 0; round < program.rounds(); ++round) {
            const arrivals here = arrivals_of(wire, program, round, bytes_of_operand, unit);
            width = (are_one(cut, before, here) ? width : 0) + program.width(rank, round);
            before = here;
            most.arrivals = std::max(most.arrivals, here.bytes);
            most.width = std::max(most.width, width);
        }
        most.messages = cut.messages(most.width);
        most.chunks = program.chunks();
        return most;
    }

    /// `scratch` has room for what is `needed`.
    message_run(Transport& wire, const call_site& where, const room& has, std::byte* scratch)
        : wire_{wire}, cut_{cut_of(wire)}, in_step_{combine_in_step(wire)}, where_{where}, arrivals_{scratch},
          tickets_{reinterpret_cast<ticket*>(scratch + has.arrivals)},
          legs_{reinterpret_cast<leg*>(scratch + has.arrivals + has.bytes_of_tickets())},
          lanes_{reinterpret_cast<lane*>(legs_ + has.width)}, changed_{reinterpret_cast<int*>(lanes_ + has.width)} {
        static_assert(alignof(leg) <= alignof(std::max_align_t));
    }
    message_run(const message_run&) = delete;
    message_run& operator=(const message_run&) = delete;
    /// Gives up on what is under way, if a failure ended the run.
    ~message_run() {
        for (int i = 0; i < lane_count_; ++i)
            for (int n = lanes_[i].moved.count; n < lanes_[i].posted.count; ++n) wire_.cancel(message(lanes_[i], n));
        std::destroy_n(tickets_, ticket_count_);
    }

    /// Segments are multiples of `unit` bytes. `meanwhile(round)` is called in each round while its first messages are under way, of
    /// rounds that are one for each of them. Without `input` chunks are changed where they lie.
    void run(const program_view& program, const chunk_places& place, std::size_t unit, const combination& combine,
             const function_view<void(int)>& meanwhile, const input_view* input) {
        if (input != nullptr) std::fill_n(changed_, program.chunks(), in_no_round);
        const auto arrivals_in = [&](int round) {
            return arrivals_of(
                wire_, program, round, [&](const transfer& t) { return place(t).bytes; }, unit);
        };
        arrivals next = program.rounds() > 0 ? arrivals_in(0) : arrivals{};
        for (int round = 0, end; round < program.rounds(); round = end) {
            operands_ = next;
            for (end = round + 1; end < program.rounds(); ++end) {
                next = arrivals_in(end);
                if (!are_one(cut_, operands_, next)) break;
            }
            where_.round = round;
            lay_out(program, round, end, place, unit, input);
            for (const bool sends : {false, true})
                for (int i = 0; i < lane_count_; ++i)
                    if (lanes_[i].sends == sends) post(lanes_[i]);
            for (int each = round; each < end; ++each) meanwhile(each);
            message_wait<Transport> waiting{wire_, where_};
            for (;;) {
                bool any = false;
                const lane* open = nullptr;  // one that waits for its peer, if there is one
                for (int i = 0; i < lane_count_; ++i) {
                    any = advance(lanes_[i], combine) || any;
                    if (!lanes_[i].finished() && (open == nullptr || open->moved.leg < 0)) open = &lanes_[i];
                }
                if (open == nullptr) break;
                if (any) waiting.restart();
                else waiting.pause(open->peer);
            }
        }
        for (int c = 0; input != nullptr && c < program.chunks(); ++c)
            if (changed_[c] == in_no_round && input->wants(c)) settle(c, place, *input);
    }

private:
    static constexpr int in_no_round = INT_MAX;
    static constexpr int tag = static_cast<int>(message_tag::payload);

    /// Whether a round and the next one are one for a rank.
    static bool are_one(const segmenting& cut, const arrivals& round, const arrivals& next) noexcept {
        return cut.cores_move() && round.only_sends && next.only_sends;
    }

    /// Copies a chunk that is in the input to its place.
    void settle(int chunk, const chunk_places& place, const input_view& input) {
        const transfer alone{action::receive, wire_.rank(), chunk};
        const auto [data, bytes] = place(alone);
        kernel::copy(input.at(alone), data, bytes);
        changed_[chunk] = -1;
    }
    /// Where the values are that a transfer of `round` reads, whose place is `data`: those from before the round, if it sends.
    const std::byte* values_for(const transfer& t, int round, const std::byte* data, const chunk_places& place,
                                const input_view& input) {
        const auto is_in_input = [&](int c) { return changed_[c] >= (t.what == action::send ? round : in_no_round); };
        int there = 0;
        for (int c = t.chunk; c < t.chunk + t.count; ++c) there += is_in_input(c);
        if (there == t.count)
            if (const std::byte* const values = input.at(t); values != nullptr) return values;
        for (int c = t.chunk; c < t.chunk + t.count && there != 0; ++c)
            if (is_in_input(c)) settle(c, place, input);
        return data;
    }

    /// Sets out the legs and lanes of the rounds from `first` to `end`.
    void lay_out(const program_view& program, int first, int end, const chunk_places& place, std::size_t unit,
                 const input_view* input) {
        lane_count_ = 0;
        int legs = 0;
        std::byte* free = arrivals_;
        for (int round = first; round < end; ++round)
            for (int i = 0, width = program.width(wire_.rank(), round); i < width; ++i) {
                const transfer t = program.at(wire_.rank(), round, i);
                const auto [data, bytes] = place(t);
                if (bytes == 0) continue;
                const bool sends = t.what == action::send;
                const std::byte* values = data;
                if (input != nullptr) {
                    if (t.what != action::receive) values = values_for(t, round, data, place, *input);
                    for (int c = t.chunk; c < t.chunk + t.count && !sends; ++c)
                        changed_[c] = std::min(changed_[c], round);
                }
                std::byte* const moved = sends ? const_cast<std::byte*>(values) : data;  // what is sent is only read
                const std::size_t segment = segment_of(wire_, program, round, t, bytes, unit);
                std::byte* arrival = nullptr;
                if (t.what == action::receive_reduce && values != data && arrives_in_place(segment)) {
                    arrival = data;
                } else if (t.what == action::receive_reduce && operands_.own_room) {
                    arrival = free;
                    free += whole_lines(bytes);
                }
                legs_[legs] = {moved, values, bytes, arrival, t.what, -1, segment};
                append(legs++, t.peer, sends);
            }
        depth_ = std::min(cut_.segments(lane_count_, operands_.slot), most_segments());
        // those that are used: a few, where there is room for hundreds
        for (const int used = lane_count_ * depth_; ticket_count_ < used; ++ticket_count_)
            std::construct_at(tickets_ + ticket_count_);
        for (int i = 0; i < lane_count_; ++i) {
            lanes_[i].slot_room = free;
            if (lanes_[i].combines && !operands_.own_room) free += static_cast<std::size_t>(depth_) * operands_.slot;
        }
    }

    /// Of any lane.
    int most_segments() const noexcept {
        std::size_t most = 1;
        for (int i = 0; i < lane_count_; ++i) {
            std::size_t segments = 0;
            for (int l = lanes_[i].posted.leg; l >= 0; l = legs_[l].next)
                segments += legs_[l].bytes <= legs_[l].segment ? 1 : (legs_[l].bytes - 1) / legs_[l].segment + 1;
            most = std::max(most, segments);
        }
        return static_cast<int>(std::min<std::size_t>(most, INT_MAX));
    }

    /// Puts a leg at the end of its lane.
    void append(int index, int peer, bool sends) {
        lane* mine = lanes_;
        while (mine != lanes_ + lane_count_ && !(mine->peer == peer && mine->sends == sends)) ++mine;
        const bool combines = legs_[index].what == action::receive_reduce;
        if (mine == lanes_ + lane_count_) {
            const lane_position begin{index, 0, 0};
            *mine = {peer, sends, combines, index, begin, begin, begin, nullptr};
            ++lane_count_;
            return;
        }
        mine->combines = mine->combines || combines;
        legs_[mine->last].next = index;
        mine->last = index;
    }

    ticket& message(const lane& of, int count) const noexcept {
        return tickets_[(&of - lanes_) * depth_ + count % depth_];
    }
    std::size_t length(const lane_position& here) const noexcept {
        const leg& whole = legs_[here.leg];
        return whole.bytes - here.at < whole.segment ? whole.bytes - here.at : whole.segment;
    }
    void step(lane_position& here) const noexcept {
        here.at += legs_[here.leg].segment;
        ++here.count;
        if (here.at >= legs_[here.leg].bytes) here = {legs_[here.leg].next, 0, here.count};
    }
    std::byte* arrival(const lane& from, const lane_position& here) const noexcept {
        if (std::byte* const own = legs_[here.leg].arrival; own != nullptr) return own + here.at;
        return from.slot_room + static_cast<std::size_t>(here.count % depth_) * operands_.slot;
    }

    /// Sends or receives what the lane has room for.
    void post(lane& mine) {
        const lane_position& oldest = mine.sends || operands_.own_room ? mine.moved : mine.used;
        for (lane_position& next = mine.posted; next.leg >= 0 && next.count - oldest.count < depth_; step(next)) {
            const leg& here = legs_[next.leg];
            std::byte* const data = here.what == action::receive_reduce ? arrival(mine, next) : here.data + next.at;
            message(mine, next.count) = mine.sends ? wire_.send(mine.peer, data, length(next), tag)
                                                   : wire_.receive(mine.peer, data, length(next), tag);
        }
    }

    /// Goes a segment further, if one has moved or can be combined. Whether it did.
    bool advance(lane& mine, const combination& combine) {
        const bool moves = mine.moved.count < mine.posted.count && wire_.test(message(mine, mine.moved.count));
        if (moves) step(mine.moved);
        const bool uses = !mine.sends && mine.used.count < mine.moved.count && !is_held_up(mine) && !is_ahead(mine);
        if (uses) {
            const leg& here = legs_[mine.used.leg];
            if (here.what == action::receive_reduce)
                combine(mine.peer < wire_.rank() ? kernel::side::left : kernel::side::right, arrival(mine, mine.used),
                        here.before + mine.used.at, here.data + mine.used.at, length(mine.used));
            step(mine.used);
        }
        if (moves || uses) post(mine);
        return moves || uses;
    }

    /// Whether the elements that the next operand of a lane is for have yet to be sent, or combined with an earlier one.
    bool is_held_up(const lane& mine) const noexcept {
        const leg& here = legs_[mine.used.leg];
        if (!operands_.entangled || here.what != action::receive_reduce) return false;
        const std::byte* const begin = here.data + mine.used.at;
        const std::byte* const end = begin + length(mine.used);
        for (const lane* other = lanes_; other != lanes_ + lane_count_; ++other) {
            const lane_position& left = other->sends ? other->moved : other->used;
            std::size_t at = left.at;
            for (int i = left.leg; i >= 0 && (other->sends || i < mine.used.leg); i = legs_[i].next, at = 0)
                if (legs_[i].what != action::receive && legs_[i].data + at < end &&
                    begin < legs_[i].data + legs_[i].bytes)
                    return true;
        }
        return false;
    }

    /// Whether an operand of values that are in the input, cut into segments of so many bytes, is received where the result goes:
    /// where cores move messages it passes the caches once less then. Pieces stay in them.
    bool arrives_in_place(std::size_t segment) const noexcept {
        return cut_.cores_move() && segment > cut_.short_bytes && !operands_.entangled;
    }

    /// Whether an operand has to wait until what goes the other way has left.
    bool is_ahead(const lane& mine) const noexcept {
        if (!in_step_ || legs_[mine.used.leg].what != action::receive_reduce) return false;
        for (const lane* other = lanes_; other != lanes_ + lane_count_; ++other)
            if (other->sends && other->peer == mine.peer)
                return other->moved.leg >= 0 && other->moved.count <= mine.used.count;
        return false;
    }

    Transport& wire_;
    const segmenting& cut_;
    bool in_step_;
    call_site where_;
    std::byte* arrivals_;
    ticket* tickets_;
    int ticket_count_ = 0;
    leg* legs_;
    lane* lanes_;
    int* changed_;  // of each chunk, the round in which a message first changes it; -1 if it is in its place
    int lane_count_ = 0;
    int depth_ = 1;
    arrivals operands_;
};

}  // namespace ddl
