// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/error.hpp>
#include <ddl/transport/fault_record.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <sched.h>
#include <tuple>
#include <utility>
#include <vector>

namespace ddl {

/// Messages to one rank. Senders only release and the owner only acquires: it orders messages and nothing else.
class mailbox {
public:
    /// A message under way. `place_` is the only thing that sender and receiver meet in.
    class message {
    public:
        message(int rank, int message_tag, std::uint32_t message_mark, const void* data, std::size_t count,
                std::size_t eager_limit)
            : sender{rank}, tag{message_tag}, mark{message_mark}, bytes{count}, eager_{count <= eager_limit},
              source_{static_cast<const std::byte*>(data)}, sum_{sum_of(source_)} {}

        const int sender;
        const int tag;
        const std::uint32_t mark;
        const std::size_t bytes;

        /// Called by the sender: whether its bytes are its own again. An eager message is put by until its receive
        /// comes.
        bool leaves_sender() {
            whereabouts seen = place_.load(std::memory_order_acquire);  // meets the release in `move`
            if (seen == at_sender && eager_) {
                std::unique_ptr<std::byte[]> room{new std::byte[bytes]};  // before the claim: there may be no memory
                if (claimed(seen)) {
                    kept_ = std::move(room);  // behind it: compilers have a receiver that has claimed read it, too
                    move(source_, kept_.get(), kept);
                    return true;
                }
            }
            return seen == kept || seen == taken || seen == withdrawn;
        }

        /// Called by the receiver: copies the message, unless its sender is at it right now or has withdrawn it.
        bool reaches(std::byte* target) {
            whereabouts seen = place_.load(std::memory_order_acquire);  // meets the release in `move`
            if (seen != kept && !(seen == at_sender && claimed(seen))) return false;
            move(seen == kept ? kept_.get() : source_, target, taken);
            return true;
        }

        /// Called by the sender: afterwards nobody reads its bytes.
        void withdraw() noexcept {
            whereabouts seen = at_sender;
            while (!place_.compare_exchange_weak(seen, withdrawn, std::memory_order_acquire)) {
                if (seen == kept || seen == taken || seen == withdrawn) return;
                if (seen == moving) ::sched_yield();
                seen = at_sender;
            }
        }
        bool is_withdrawn() const noexcept { return place_.load(std::memory_order_relaxed) == withdrawn; }

    private:
        enum whereabouts : int { at_sender, moving, kept, taken, withdrawn };

        bool claimed(whereabouts& seen) noexcept {
            return place_.compare_exchange_strong(seen, moving, std::memory_order_acquire);
        }

        void move(const std::byte* from, std::byte* to, whereabouts then) {
            if (bytes > 0) std::memcpy(to, from, bytes);
            const bool unchanged = sum_of(to) == sum_;
            place_.store(unchanged ? then : withdrawn, std::memory_order_release);  // met by whoever comes next
            if (!unchanged)
                throw error(errc::invalid_argument, "send", sender, -1,
                            "%zu bytes with tag %d were changed under way; leave them until the ticket tests true",
                            bytes, tag);
        }

        /// FNV-1a.
        std::uint64_t sum_of(const std::byte* data) const noexcept {
            std::uint64_t sum = 0xcbf2'9ce4'8422'2325U;
            for (std::size_t i = 0; i < bytes; ++i)
                sum = (sum ^ static_cast<std::uint64_t>(data[i])) * 0x100'0000'01b3U;
            return sum;
        }

        const bool eager_;
        const std::byte* const source_;
        const std::uint64_t sum_;
        std::unique_ptr<std::byte[]> kept_;
        std::atomic<whereabouts> place_{at_sender};
    };

    mailbox() = default;
    mailbox(const mailbox&) = delete;
    mailbox& operator=(const mailbox&) = delete;
    ~mailbox() { take_all(); }

    void put(std::shared_ptr<message> content) {
        auto* const added = new letter{std::move(content), newest_.load(std::memory_order_relaxed)};
        while (!newest_.compare_exchange_weak(added->older, added, std::memory_order_release,
                                              std::memory_order_relaxed)) {}
    }
    /// The oldest first.
    std::vector<std::shared_ptr<message>> take_all() {
        std::vector<std::shared_ptr<message>> all;
        if (newest_.load(std::memory_order_relaxed) == nullptr) return all;
        letter* next = newest_.exchange(nullptr, std::memory_order_acquire);  // meets the release in `put`
        while (next != nullptr) {
            const std::unique_ptr<letter> read{next};
            all.push_back(std::move(read->content));
            next = read->older;
        }
        std::reverse(all.begin(), all.end());
        return all;
    }

private:
    struct letter {
        std::shared_ptr<message> content;
        letter* older;
    };
    std::atomic<letter*> newest_{nullptr};
};

/// What the ranks of one process share to send each other messages: a mailbox each, the first failure, and the split
/// that they are gathering for.
class mailboxes {
public:
    explicit mailboxes(int ranks) : boxes_(static_cast<std::size_t>(ranks)) {}

    int size() const noexcept { return static_cast<int>(boxes_.size()); }
    mailbox& of(int rank) noexcept { return boxes_[static_cast<std::size_t>(rank)]; }

    /// The first failure that a rank announced, or null.
    const fault* failed() const noexcept { return first_.known(); }
    void fail(errc code, const char* words) noexcept { first_.record(fault{code, words}); }

    /// One call of `split`. The last rank to come finds everybody a seat.
    class gathering {
    public:
        struct seat {
            bool present = false;
            int color = 0;
            int key = 0;
            int place = 0;
            std::shared_ptr<mailboxes> group;
        };

        explicit gathering(int ranks) : seats_(static_cast<std::size_t>(ranks)) {}

        /// Once all have come: where `rank` sits.
        const seat* seat_of(int rank) const noexcept {
            return over_.load(std::memory_order_acquire) ? &seats_[static_cast<std::size_t>(rank)] : nullptr;
        }

    private:
        friend class mailboxes;

        void find_seats() {
            std::vector<seat*> order;
            order.reserve(seats_.size());
            for (seat& one : seats_) order.push_back(&one);
            std::sort(order.begin(), order.end(), [](const seat* a, const seat* b) {
                // seats lie in the order of ranks
                return std::tie(a->color, a->key, a) < std::tie(b->color, b->key, b);
            });
            for (auto first = order.begin(); first != order.end();) {
                const int color = (*first)->color;
                const auto last =
                    std::find_if(first, order.end(), [=](const seat* one) { return one->color != color; });
                const auto group = std::make_shared<mailboxes>(static_cast<int>(last - first));
                for (int place = 0; first != last; ++first, ++place) {
                    (*first)->place = place;
                    (*first)->group = group;
                }
            }
            over_.store(true, std::memory_order_release);  // met by the acquire in `seat_of`
        }

        std::vector<seat> seats_;
        int present_ = 0;
        std::atomic<bool> over_{false};
    };

    std::shared_ptr<gathering> join(int rank, int color, int key) {
        std::lock_guard lock{mutex_};
        if (!open_) open_ = std::make_shared<gathering>(size());
        auto joined = open_;
        joined->seats_[static_cast<std::size_t>(rank)] = {true, color, key, 0, nullptr};
        if (++joined->present_ == size()) {
            open_.reset();
            joined->find_seats();
        }
        return joined;
    }
    int first_absent(const gathering& joined) const {
        std::lock_guard lock{mutex_};
        const auto& seats = joined.seats_;
        const auto absent = std::find_if(seats.begin(), seats.end(), [](const auto& one) { return !one.present; });
        return static_cast<int>(absent - seats.begin());
    }

private:
    std::vector<mailbox> boxes_;
    fault_record first_;
    mutable std::mutex mutex_;
    std::shared_ptr<gathering> open_;
};

}  // namespace ddl
