// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/shim/backend.hpp>
#include <ddl/shim/extents.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

namespace ddl::shim {

/// A communicator of `Transport` behind the interface that all have in common.
template <class Transport>
class over_transport final : public backend {
public:
    explicit over_transport(Transport&& ranks) : ranks_{std::move(ranks)} {}

    const char* transport() const noexcept override { return Transport::name; }
    int rank() const noexcept override { return ranks_.rank(); }
    int size() const noexcept override { return ranks_.size(); }
    int local_rank() const noexcept override { return node().rank(); }
    int local_size() const noexcept override { return node().size(); }

    void* object() noexcept override { return &ranks_; }
    const table& rows() const override {
        static const table& ours = *new table{registry::here().table_for(Transport::name)};  // stays, as those do
        return ours;
    }
    int schedule(const char* name) const noexcept override { return registry::here().schedule(name); }
    const char* schedule_name(int number) const noexcept override { return registry::here().schedule_name(number); }

    ddl_status barrier(const listener& heard) noexcept override {
        return unless_asked(heard, "barrier", [&] { ddl::barrier(ranks_); });
    }
    ddl_status agree(bool asks, std::span<std::int64_t> words, const listener& heard) noexcept override {
        return guarded(heard, "agree", [&] {
            if (asks) ask_for_chunks();
            allreduce<direct>(ranks_, words, maximum{});
        });
    }
    ddl_status compare(std::span<std::int64_t> words, const listener& heard) noexcept override {
        return unless_asked(heard, "timed allreduce", [&] {
            barrier_over<direct, checked>(ranks_, collective::timed);  // which no call of a program agrees with
            allreduce<direct>(ranks_, words, maximum{});
        });
    }
    void drain() noexcept override { ranks_.queue().drain(); }
    void refuse() noexcept override {
        // what the others get is news of this rank, which has its own
        unless_asked(nobody, "refuse", [&] { barrier_over<direct, checked>(ranks_, collective::refused); });
    }
    ddl_status push(std::function<void()> call, request& done, const listener& heard) noexcept override {
        return guarded(heard, "start", [&] { done = ranks_.queue().push(std::move(call)); });
    }
    ddl_status split(int color, int key, std::unique_ptr<backend>& part, const listener& heard) noexcept override {
        return unless_asked(heard, "split", [&] {
            barrier_over<direct, checked>(ranks_, collective::split);  // where other calls are met and told
            part = std::make_unique<over_transport>(ranks_.split(color, key));
        });
    }
    void interrupt(const char* why) noexcept override {
        text words;
        if (why == nullptr) words.append("the program interrupted rank %d", rank());
        else words.append("rank %d gave up: %s", rank(), why);
        if constexpr (clustered_transport<Transport>) {
            if (ranks_.nodes() > 1) ranks_.fail(errc::broken, words.c_str());
            else node().fail(errc::broken, words.c_str());
        } else {
            ranks_.fail(errc::broken, words.c_str());
        }
    }
    void set_timeout(double seconds) noexcept override { ranks_.set_timeout(timeout{seconds}); }
    memory_source memory() const noexcept override {
        if constexpr (requires { ranks_.allocator(); }) return ranks_.allocator();
        else return {};
    }
    void set_extents(const int* extents) noexcept override {
        drain();  // calls under way still look at the old ones
        std::copy_n(extents, by_extents::levels, extents_);
    }
    void use_extents(level_clock* clock) const noexcept override { by_extents::use(extents_, clock); }
    bool nodes_of(int ranks) const noexcept override {
        if constexpr (clustered_transport<Transport>) {
            auto& world = const_cast<Transport&>(ranks_);
            if (!world.ordered()) return false;
            for (int node = 0; node <= world.nodes(); ++node)
                if (world.grouping()[node] != node * ranks) return false;
            return true;
        } else {
            return false;
        }
    }

private:
    /// All ranks hear of it. Those that ask too return; those that call something else find it cut short, and this one too.
    void ask_for_chunks() {
        try {
            barrier_over<direct, checked>(ranks_, collective::staged);
        } catch (const error& failure) {
            if (failure.code() != errc::staged) throw;
        }
    }
    /// Runs a call that cannot be made in chunks. Those who ask for some hear that.
    template <class Body>
    ddl_status unless_asked(const listener& heard, const char* operation, Body body) noexcept {
        const ddl_status status = guarded(heard, operation, body);
        if (status != asked_again) return status;
        std::int64_t never[] = {INT64_MAX, INT64_MAX, 0};
        if (const ddl_status failed = agree(false, never, heard)) return failed;
        return guarded(heard, operation, [&] {
            throw error(errc::mismatch, operation, rank(), -1,
                        "other ranks reduce device memory; call the same collectives in the same order on every rank");
        });
    }

    auto& node() const noexcept {
        if constexpr (clustered_transport<Transport>) return const_cast<Transport&>(ranks_).node();
        else return ranks_;
    }

    Transport ranks_;
    int extents_[by_extents::levels] = {1, 1, 1, 1};
};

/// Opens transports that need no more than a job's name, or nothing at all.
template <class Transport>
constexpr opener opener_of() noexcept {
    opener result{Transport::name, nullptr, nullptr, nullptr};
    if constexpr (requires { Transport{"job", 0, 1, timeout{}}; }) {
        result.by_environment = [](std::unique_ptr<backend>& world, const listener& heard) noexcept {
            return guarded(heard, Transport::name,
                           [&] { world = std::make_unique<over_transport<Transport>>(Transport{}); });
        };
        result.by_job = [](const char* job, int rank, int size, double seconds, std::unique_ptr<backend>& world,
                           const listener& heard) noexcept {
            return guarded(heard, Transport::name, [&] {
                const timeout limit = seconds > 0 ? timeout{seconds} : timeout_from_environment();
                world = std::make_unique<over_transport<Transport>>(Transport{job, rank, size, limit});
            });
        };
    }
    return result;
}

}  // namespace ddl::shim
