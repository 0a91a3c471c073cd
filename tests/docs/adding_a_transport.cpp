// SPDX-License-Identifier: Apache-2.0
// The transport of docs/adding_a_transport.md.
// prints: allreduce of 1000 float32 (4000 bytes) by sum over relay, 4 ranks: ring, 4 chunks in 6 rounds, in segments of up to 61440 bytes
// prints: every rank holds 10
#include <ddl/allreduce.hpp>

//! [transport]
#include <ddl/transport/call_queue.hpp>
#include <ddl/transport/concepts.hpp>
#include <ddl/transport/fault.hpp>
#include <ddl/transport/patience.hpp>
#include <ddl/transport/scratch.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>
#include <vector>

/// Ranks that are threads and hand each other copies of their messages over a table.
class relay {
public:
    static constexpr const char* name = "relay";

    /// What all ranks share.
    struct table {
        struct lane {
            std::vector<std::vector<std::byte>> messages;  // message `i` is for receive `i`
            std::vector<std::size_t> receives;             // their numbers
            std::size_t posted = 0;
        };
        std::mutex mutex;
        std::map<std::tuple<int, int, int>, lane> lanes;  // by (from, to, tag)
        std::optional<ddl::fault> first_fault;
    };
    struct ticket {
        table::lane* from = nullptr;  // null: nothing is awaited
        std::size_t number = 0;
        void* to = nullptr;
    };

    relay(table& shared, int rank, int size, ddl::timeout limit = ddl::timeout{})
        : table_{shared}, rank_{rank}, size_{size}, limit_{limit} {}

    // a communicator
    int rank() const noexcept { return rank_; }
    int size() const noexcept { return size_; }
    void begin(const ddl::call_site& where) {
        queue_.drain();
        const std::lock_guard lock{table_.mutex};
        if (table_.first_fault) throw ddl::still_broken(*table_.first_fault, where, rank_);
    }
    ddl::call_queue& queue() noexcept { return queue_; }
    std::byte* scratch(std::size_t bytes, ddl::scratch_for use = ddl::scratch_for::arrivals) {
        return scratch_.at_least(bytes, use);
    }
    void fail(ddl::errc code, const char* words) noexcept {
        const std::lock_guard lock{table_.mutex};
        if (!table_.first_fault) table_.first_fault.emplace(code, words);
    }

    // messages
    ticket send(int peer, const void* data, std::size_t bytes, int tag) {
        const auto* const first = static_cast<const std::byte*>(data);
        const std::lock_guard lock{table_.mutex};
        table_.lanes[{rank_, peer, tag}].messages.emplace_back(first, first + bytes);
        return {};  // the bytes are the caller's again
    }
    ticket receive(int peer, void* to, std::size_t, int tag) {
        const std::lock_guard lock{table_.mutex};
        table::lane& lane = table_.lanes[{peer, rank_, tag}];
        lane.receives.push_back(lane.posted);
        return {&lane, lane.posted++, to};
    }
    bool test(ticket& asked) {
        if (asked.from == nullptr) return true;
        const std::lock_guard lock{table_.mutex};
        auto& [messages, receives, posted] = *asked.from;
        const auto place = std::ranges::find(receives, asked.number) - receives.begin();
        if (place >= std::ssize(messages)) return false;
        const std::vector<std::byte>& message = messages[static_cast<std::size_t>(place)];
        if (!message.empty()) std::memcpy(asked.to, message.data(), message.size());
        messages.erase(messages.begin() + place);
        receives.erase(receives.begin() + place);
        asked = {};
        return true;
    }
    void cancel(ticket& given_up) noexcept {  // its message, if there is one, is for the next receive
        if (given_up.from == nullptr) return;
        const std::lock_guard lock{table_.mutex};
        std::erase(given_up.from->receives, given_up.number);
        given_up = {};
    }
    ddl::timeout limit() const noexcept { return limit_; }
    void listen(const ddl::call_site& where) {
        const std::lock_guard lock{table_.mutex};
        if (table_.first_fault) throw ddl::peer_gave_up(*table_.first_fault, where, rank_);
    }

private:
    table& table_;
    int rank_;
    int size_;
    ddl::timeout limit_;
    ddl::heap_scratch scratch_;
    ddl::call_queue queue_;  // last: its calls use the rest
};
static_assert(ddl::message_transport<relay>);
//! [transport]

int main() {
    relay::table shared;
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < 4; ++rank)
        ranks.emplace_back([&shared, rank] {
            relay world{shared, rank, 4};
            try {
                std::vector<float> uneven(rank == 1 ? 100 : 12'000);
                ddl::allreduce<ddl::recursive_doubling>(world, uneven);
                std::printf("rank %d found nothing wrong\n", rank);
            } catch (const ddl::error& why) {  // a mismatch leaves the communicator as it was
                if (why.code() != ddl::errc::mismatch) std::printf("rank %d: %s\n", rank, why.what());
            }
            std::vector<float> values(1000, static_cast<float>(rank + 1));
            auto plan = ddl::allreduce_init<ddl::ring>(world, values);
            plan();
            if (rank != 0) return;
            std::printf("%s\n", ddl::explain(plan).c_str());
            std::printf("every rank holds %g\n", static_cast<double>(values[999]));
        });
    for (std::thread& rank : ranks) rank.join();
}
