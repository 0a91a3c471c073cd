// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/call_queue.hpp>
#include <ddl/transport/concepts.hpp>
#include <ddl/transport/mailboxes.hpp>
#include <ddl/transport/patience.hpp>
#include <ddl/transport/rank_threads.hpp>
#include <ddl/transport/scratch.hpp>

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <vector>

namespace ddl {

/// Ranks that are threads and send each other messages, of which each rank keeps a record: MPI's rules without MPI.
///
/// `ddl::recording::run(4, [](ddl::recording& wire) { ... }, {.seed = 7, .delays = true})` starts four. For tests: they
/// count messages, and they meet what a network may do. With `delays`, messages of different (peer, tag) pairs overtake
/// each other and tickets take their time, in a way that `seed` chooses. A send of more than `eager_limit` bytes ends
/// only when its receive has taken it. The bytes of a message are read between `send` and the `test` that says so, as
/// late as can be, and an error tells if they changed meanwhile.
///
/// What orders the memory of two ranks is only this: `send` before the `test` that ends its receive, and the taking
/// of a message before the `test` that ends its send. So a thread sanitizer sees a byte that is touched too early.
class recording {
    struct reception;

public:
    static constexpr const char* name = "recording";
    /// A ticket takes its time in looks at it: who sleeps between them waits for nothing.
    static constexpr int looks_before_sleep = 5000;

    struct options {
        std::uint64_t seed = 1;
        bool delays = false;
        std::size_t eager_limit = 4096;  // bytes
        bool marks = false;              // whether messages bear them
        timeout limit{};
    };

    /// What a rank asked for: `bytes` is the length of what it sends, or the room that it offers. What bears a mark has
    /// `marked` for its tag.
    static constexpr int marked = -1;
    enum class direction { send, receive };
    struct event {
        direction kind;
        int peer;
        int tag;
        std::size_t bytes;
        bool operator==(const event&) const = default;
    };

    class ticket {
        friend class recording;
        std::shared_ptr<mailbox::message> sent_;
        std::shared_ptr<reception> awaited_;
        int tests_ = 0;  // that still say no
        std::uint32_t mark_ = 0;
    };

    /// Runs `body(wire)` on `ranks` new threads and waits for all of them. If some throw, the others hear it where they
    /// listen, and the first exception is thrown here that is not the echo of another rank's.
    template <class Body>
    static void run(int ranks, Body body, const options& chosen) {
        const auto shared = std::make_shared<mailboxes>(ranks < 1 ? 1 : ranks);
        run_in_threads(
            "recording::run", ranks,
            [&](int rank) {
                return recording{shared, rank, chosen};
            },
            body, [&](errc code, const char* words) { shared->fail(code, words); });
    }
    template <class Body>
    static void run(int ranks, Body body) {
        run(ranks, std::move(body), options{});
    }

    recording(recording&& from) noexcept
        : network_{(settle(from.queue_), from.network_)}, rank_{from.rank_}, told_{from.told_.load()},
          sends_left_{from.sends_left_.load()}, chosen_{from.chosen_}, turn_{from.turn_}, chance_{from.chance_},
          lanes_{std::move(from.lanes_)}, log_{std::move(from.log_)}, scratch_{std::move(from.scratch_)},
          queue_{std::move(from.queue_)} {}
    ~recording() {
        if (queue_) queue_->finish();  // its calls still use the rest
    }

    int rank() const noexcept { return rank_; }
    int size() const noexcept { return network_->size(); }

    /// Sets how long a wait for a peer may take. Ranks may differ in it.
    void set_timeout(timeout limit) noexcept { chosen_.limit = limit; }
    timeout limit() const noexcept { return chosen_.limit; }

    /// All sends and receives of this rank, in the order in which it asked for them.
    const std::vector<event>& log() const noexcept { return log_; }
    void clear_log() noexcept { log_.clear(); }

    /// Makes this rank dead to its peers: `sends` messages still leave, later ones and a failure never come.
    void die(std::size_t sends = 0) noexcept { sends_left_ = sends; }

    void begin(const call_site& where) {
        queue_in(queue_, where, rank_).drain();
        heed_fault(where);
    }
    call_queue& queue() { return queue_in(queue_, {name}, rank_); }

    std::byte* scratch(std::size_t bytes, scratch_for use = scratch_for::arrivals) {
        return scratch_.at_least(bytes, use);
    }

    ticket send(int peer, const void* data, std::size_t bytes, int tag) { return post(peer, data, bytes, tag, 0); }

    ticket receive(int peer, void* data, std::size_t bytes, int tag) {
        ticket result;
        result.awaited_ = std::make_shared<reception>(static_cast<std::byte*>(data), bytes);
        lanes_[{checked(peer, "receive"), tag}].awaited.push_back(result.awaited_);
        log_.push_back({direction::receive, peer, tag, bytes});
        return result;
    }

    bool marks() const noexcept { return chosen_.marks; }
    ticket send_marked(int peer, const void* data, std::size_t bytes, std::uint32_t mark) {
        return post(peer, data, bytes, marked, mark);
    }
    ticket receive_marked(int peer, void* data, std::size_t bytes) { return receive(peer, data, bytes, marked); }
    std::uint32_t mark_of(const ticket& received) const noexcept { return received.mark_; }

    bool test(ticket& asked) {
        if (!asked.sent_ && !asked.awaited_) return true;
        progress();
        if (asked.tests_ > 0) {
            --asked.tests_;
            return false;
        }
        const bool done = asked.sent_ ? asked.sent_->leaves_sender() : asked.awaited_->done;
        if (!done) return false;
        const std::uint32_t mark = asked.awaited_ ? asked.awaited_->mark : 0;
        asked = {};
        asked.mark_ = mark;
        return true;
    }

    /// Gives up on a message. Nobody touches its bytes afterwards.
    void cancel(ticket& given_up) noexcept {
        if (given_up.sent_) given_up.sent_->withdraw();
        if (given_up.awaited_)
            for (auto& [pair, way] : lanes_) std::erase(way.awaited, given_up.awaited_);
        given_up = {};
    }

    void listen(const call_site& where) {
        heed_fault(where);
        progress();
    }

    /// Tells all ranks that this one leaves a collective half done. The first call counts.
    void fail(errc code, const char* words) noexcept {
        told_ = true;
        if (sends_left_ > 0 && queue_) network_->fail(code, words);  // it may have moved
    }

    /// A network of the ranks that pass the same `color`, ordered by `key`, then by rank. All ranks call it; blocks.
    recording split(int color, int key) {
        const call_site where{"split"};
        if (color < 0)
            throw error(errc::invalid_argument, where.operation, rank_, -1, "color is %d; pass 0 or more", color);
        begin(where);
        const auto joined = network_->join(rank_, color, key);
        const mailboxes::gathering::seat* mine = nullptr;
        patience waiting{limit()};
        while ((mine = joined->seat_of(rank_)) == nullptr) {
            if (!waiting.pause()) continue;
            listen(where);
            if (!waiting.expired()) continue;
            const error failure = did_not_arrive(where, rank_, network_->first_absent(*joined), waiting.limit());
            fail(failure.code(), failure.what());
            throw failure;
        }
        options theirs = chosen_;
        theirs.seed = chosen_.seed * 31 + static_cast<std::uint64_t>(color) + 1;
        return {mine->group, mine->place, theirs};
    }

private:
    void heed_fault(const call_site& where) {
        if (const fault* const known = network_->failed())
            throw told_.exchange(true) ? still_broken(*known, where, rank_) : peer_gave_up(*known, where, rank_);
    }

    /// A receive that waits for its message. Known to its rank alone.
    struct reception {
        reception(std::byte* data, std::size_t bytes) noexcept : target{data}, room{bytes} {}
        std::byte* target;
        std::size_t room;
        std::uint32_t mark = 0;
        bool done = false;
    };

    /// All that goes from one peer with one tag.
    struct lane {
        struct arrival {
            std::shared_ptr<mailbox::message> content;
            std::uint64_t visible;  // from this turn on
        };
        std::deque<arrival> arrived;
        std::deque<std::shared_ptr<reception>> awaited;
        std::uint64_t visible = 0;  // that of the last arrival: nothing in a lane overtakes
    };

    recording(std::shared_ptr<mailboxes> network, int rank, const options& chosen)
        : network_{std::move(network)}, rank_{rank}, chosen_{chosen},
          chance_{chosen.seed * 0x9e37'79b9'7f4a'7c15U + static_cast<std::uint64_t>(rank)} {}

    ticket post(int peer, const void* data, std::size_t bytes, int tag, std::uint32_t mark) {
        mailbox& box = network_->of(checked(peer, "send"));
        ticket result;
        result.sent_ = std::make_shared<mailbox::message>(rank_, tag, mark, data, bytes, chosen_.eager_limit);
        result.tests_ = hesitation();
        log_.push_back({direction::send, peer, tag, bytes});
        if (sends_left_ > 0) {
            --sends_left_;
            box.put(result.sent_);
        }
        return result;
    }

    int checked(int peer, const char* operation) const {
        if (peer >= 0 && peer < size()) return peer;
        throw error(errc::invalid_argument, operation, rank_, -1, "there is no rank %d; pass one below %d", peer,
                    size());
    }

    /// Takes what the mailbox holds and copies what may be seen by now.
    void progress() {
        ++turn_;
        if (chosen_.delays && chance_() % 4 == 0) ::sched_yield();
        for (auto& content : network_->of(rank_).take_all()) {
            lane& way = lanes_[{content->sender, content->tag}];
            way.visible = std::max(way.visible, turn_ + static_cast<std::uint64_t>(hesitation()));
            way.arrived.push_back({std::move(content), way.visible});
        }
        for (auto& [pair, way] : lanes_) deliver(way);
    }

    void deliver(lane& way) {
        while (!way.arrived.empty() && way.arrived.front().visible <= turn_) {
            mailbox::message& next = *way.arrived.front().content;
            if (!next.is_withdrawn()) {
                if (way.awaited.empty()) return;
                reception& here = *way.awaited.front();
                if (next.bytes > here.room)
                    throw error(errc::system, "receive", rank_, -1,
                                "rank %d sends %zu bytes with tag %d, this receive takes %zu; agree on the count",
                                next.sender, next.bytes, next.tag, here.room);
                if (!next.reaches(here.target)) return;
                here.mark = next.mark;
                here.done = true;
                way.awaited.pop_front();
            }
            way.arrived.pop_front();
        }
    }

    /// For how many turns a thing is put off: mostly none or few, now and then many.
    int hesitation() noexcept {
        if (!chosen_.delays) return 0;
        const std::uint64_t drawn = chance_();
        return static_cast<int>(drawn % 16 == 0 ? drawn / 16 % 512 : drawn / 16 % 8);
    }

    std::shared_ptr<mailboxes> network_;
    int rank_;
    // these two are atomic: of a body that throws the others are told beside calls of the queue's thread
    std::atomic<bool> told_ = false;  // whether this rank knows of the failure
    std::atomic<std::size_t> sends_left_ = static_cast<std::size_t>(-1);
    options chosen_;
    std::uint64_t turn_ = 0;
    std::mt19937_64 chance_;
    std::map<std::pair<int, int>, lane> lanes_;  // by (peer, tag)
    std::vector<event> log_;
    heap_scratch scratch_;
    std::unique_ptr<call_queue> queue_ = std::make_unique<call_queue>();
};

static_assert(marking_transport<recording>);

}  // namespace ddl
