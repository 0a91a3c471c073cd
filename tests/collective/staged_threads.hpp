// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/staging_transport.hpp>
#include <ddl/transport/threads.hpp>

#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

/// One after the other, by a thread of its own: what a stream of a GPU is.
class copy_stream {
public:
    copy_stream() : worker_{[this] { work(); }} {}
    ~copy_stream() {
        {
            const std::lock_guard lock{mutex_};
            ends_ = true;
        }
        changed_.notify_all();
        worker_.join();
    }
    void push(std::function<void()> copy) {
        const std::lock_guard lock{mutex_};
        copies_.push_back(std::move(copy));
        changed_.notify_all();
    }
    void synchronize() {
        std::unique_lock lock{mutex_};
        changed_.wait(lock, [this] { return copies_.empty(); });
    }

private:
    void work() {
        std::unique_lock lock{mutex_};
        for (;;) {
            changed_.wait(lock, [this] { return ends_ || !copies_.empty(); });
            if (copies_.empty()) return;
            const std::function<void()>& first = copies_.front();  // which nobody else takes away
            lock.unlock();
            first();
            lock.lock();
            copies_.pop_front();
            changed_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> copies_;
    bool ends_ = false;
    std::thread worker_;
};

/// Stages over `Host` without a GPU: copies are made by threads. Counts what was moved.
template <class Host>
class staged_threads {
public:
    static constexpr const char* name = "staged";

    staged_threads(Host& host, std::size_t chunk_bytes, int slots)
        : host_{host}, chunk_bytes_{chunk_bytes}, slots_(static_cast<std::size_t>(slots)) {}
    ~staged_threads() {
        for (auto& one : slots_) one.copies.synchronize();
    }

    int rank() const { return host_.rank(); }
    int size() const { return host_.size(); }
    void begin(const ddl::call_site& where) { host_.begin(where); }
    ddl::call_queue& queue() noexcept { return host_.queue(); }
    void fail(ddl::errc code, const char* words) noexcept { host_.fail(code, words); }
    std::byte* scratch(std::size_t bytes, ddl::scratch_for use) {
        if (bytes != 0) throw std::logic_error("the host would copy what lies in a device");
        return host_.scratch(bytes, use);
    }

    Host& host() noexcept { return host_; }
    std::size_t chunk_bytes(std::size_t) const noexcept { return chunk_bytes_; }
    int slot_count() const noexcept { return static_cast<int>(slots_.size()); }
    std::byte* slot(int index, std::size_t bytes) {
        auto& memory = at(index).memory;
        if (memory.size() < bytes) {
            at(index).copies.synchronize();
            memory.resize(bytes);
        }
        return memory.data();
    }
    void require_reachable(const char* which, const void* data, std::size_t bytes, const ddl::call_site& where) const {
        if (bytes != 0 && data == out_of_reach)
            throw ddl::error(ddl::errc::invalid_argument, where.operation, rank(), -1, "%s is out of reach", which);
    }
    void arrive(int used) { used_ = used; }
    void fetch(int index, std::size_t place, const std::byte* from, std::size_t bytes) {
        if (index >= used_) throw std::logic_error("what the caller has begun may still be under way");
        copy(direction::fetch, index, at(index).memory.data() + place, from, bytes);
        fetched += bytes;
    }
    void store(int index, std::size_t place, std::byte* to, std::size_t bytes) {
        copy(direction::store, index, to, at(index).memory.data() + place, bytes);
        stored += bytes;
    }
    void await(int index) { at(index).copies.synchronize(); }

    std::size_t fetched = 0;
    std::size_t stored = 0;
    enum class direction { fetch, store };
    std::function<void(direction, int slot)> beside_copy;  // called by the thread that copies, before it does
    int copies_until_one_fails = -1;                       // never, if negative
    const void* out_of_reach = nullptr;

private:
    struct slot_memory {
        std::vector<std::byte> memory;
        copy_stream copies;
    };
    slot_memory& at(int index) { return slots_[static_cast<std::size_t>(index)]; }
    void copy(direction way, int index, std::byte* to, const std::byte* from, std::size_t bytes) {
        if (copies_until_one_fails-- == 0)
            throw ddl::error(ddl::errc::system, "copy", rank(), -1, "the device says no");
        at(index).copies.push([=, this] {
            if (beside_copy) beside_copy(way, index);
            if (bytes != 0) std::memcpy(to, from, bytes);
        });
    }

    Host& host_;
    std::size_t chunk_bytes_;
    int used_ = 0;  // slots of the call
    std::vector<slot_memory> slots_;
};

static_assert(ddl::staging_transport<staged_threads<ddl::threads>>);
