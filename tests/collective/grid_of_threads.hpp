// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/grid_transport.hpp>
#include <ddl/transport/grid_window.hpp>
#include <ddl/transport/host_block.hpp>
#include <ddl/transport/threads.hpp>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

/// A transport of grids without a GPU: each rank is a thread, and launches its blocks as threads of their own.
class grid_of_threads {
public:
    static constexpr const char* name = "grid of threads";
    struct entry {
        int rank;
    };

    template <class Body>
    static void run(int ranks, Body body, ddl::timeout limit = ddl::timeout{60}) {
        std::vector<std::vector<std::uint64_t>> memory;
        std::vector<std::uint64_t*> windows;
        for (int rank = 0; rank < ranks; ++rank) {
            memory.emplace_back(ddl::grid_window::bytes(ranks) / 8);
            windows.push_back(memory.back().data());
        }
        ddl::threads::run(
            ranks,
            [&](ddl::threads& team) {
                grid_of_threads mine{std::move(team), windows.data()};
                body(mine);
            },
            limit);
    }
    ~grid_of_threads() {
        starts = true;
        join();
    }

    int rank() const noexcept { return host_.rank(); }
    int size() const noexcept { return host_.size(); }
    void begin(const ddl::call_site& where) { host_.begin(where); }
    ddl::call_queue& queue() noexcept { return host_.queue(); }
    std::byte* scratch(std::size_t bytes, ddl::scratch_for use) { return host_.scratch(bytes, use); }
    void fail(ddl::errc code, const char* words) noexcept { host_.fail(code, words); }

    ddl::threads& host() noexcept { return host_; }
    std::uint64_t* const* windows() const noexcept { return windows_; }
    int most_blocks() const noexcept { return most; }
    int launches() const noexcept { return launches_; }
    int blocks_of_last() const noexcept { return blocks_of_last_; }
    /// What a body says that few of its blocks run at once.
    template <class Body>
        requires requires { Body::runs_at_once; }
    static int most_blocks_of() noexcept {
        return Body::runs_at_once;
    }

    /// Pretends that no GPU reaches address 64.
    void require_reachable(const char* which, const void* data, std::size_t bytes, const ddl::call_site& where) const {
        if (bytes != 0 && reinterpret_cast<std::uintptr_t>(data) == 64)
            throw ddl::error(ddl::errc::invalid_argument, where.operation, rank(), -1, "%s is out of reach", which);
    }
    entry arrive(const ddl::call_site& where) const {
        fail_at(stage::arrive, where.operation);
        return {rank()};
    }

    int most = 3;          // blocks that run at once
    int most_threads = 1;  // of a block, which has no more than the shape's

    // how it misbehaves, and when
    enum class stage { none, arrive, defer, begin };
    stage fails_at = stage::none;
    bool blocks = true;               // whether `settle` waits
    std::atomic<bool> starts = true;  // grids do nothing before

    struct deferral {
        grid_of_threads* team;
        void begin() const { team->fail_at(stage::begin, "begin"); }
        void end() const noexcept {}
        bool done() const {
            if (team->running_ != 0) return false;
            team->heed(ddl::call_site{"wait"});
            return true;
        }
    };
    deferral defer() {
        fail_at(stage::defer, "defer");
        return {this};
    }

    template <class Body>
    void launch(const Body& body, ddl::grid_shape shape, const entry* entries, const ddl::call_site&) {
        for (int peer = 0; peer < size(); ++peer)
            if (entries[peer].rank != peer) std::terminate();
        ++launches_;
        blocks_of_last_ = shape.blocks;
        join();  // launches of a rank follow each other
        const int threads = std::min(most_threads, shape.threads);
        running_ = shape.blocks * threads;
        for (int block = 0; block < shape.blocks; ++block) {
            const auto together = std::make_shared<ddl::host_threads>(threads);
            for (int thread = 0; thread < threads; ++thread)
                workers_.emplace_back([this, body, shape, block, together, thread] {
                    while (!starts) std::this_thread::yield();
                    ddl::host_block space{rank(),        block,     shape.blocks,
                                          host_.limit(), *together, static_cast<std::size_t>(thread)};
                    body(space);
                    if (space.missing() >= 0) missing_ = space.missing();
                    --running_;
                });
        }
    }
    void follow(const entry*, const ddl::call_site&) const noexcept {}
    void settle(const ddl::call_site& where) {
        if (blocks) heed(where);
    }

private:
    void fail_at(stage now, const char* operation) const {
        if (fails_at == now) throw ddl::error(ddl::errc::system, operation, rank(), -1, "the device says no");
    }
    void heed(const ddl::call_site& where) {
        join();
        if (missing_ >= 0)
            throw ddl::error(ddl::errc::timeout, where.operation, rank(), -1, "rank %d did not come", missing_.load());
    }
    grid_of_threads(ddl::threads&& team, std::uint64_t* const* windows) : host_{std::move(team)}, windows_{windows} {}
    void join() {
        for (std::thread& worker : workers_) worker.join();
        workers_.clear();
    }

    ddl::threads host_;
    std::uint64_t* const* windows_;
    std::vector<std::thread> workers_;
    std::atomic<int> missing_ = -1;
    std::atomic<int> running_ = 0;
    int launches_ = 0;
    int blocks_of_last_ = 0;
};

static_assert(ddl::grid_transport<grid_of_threads>);
