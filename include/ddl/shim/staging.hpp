// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/shim/device_memory.hpp>
#include <ddl/transport/memory_source.hpp>
#include <ddl/transport/staging_shape.hpp>

#include <algorithm>
#include <vector>

namespace ddl::shim {

/// What the memory of a device passes through: memory that peers can map, pinned if the driver lets us, and streams.
///
/// Copies of one slot are carried out in order, those of different slots at the same time if there are streams for it. All of
/// it is for one context, which is the thread's own while a function of this is called.
class staging {
public:
    /// `driver` and `context` are nullptr where no buffer lies in a device.
    staging(memory_source source, const device_memory* driver, void* context)
        : source_{std::move(source)}, shape_{staging_shape::from_environment()}, driver_{driver}, context_{context} {
        if (driver_ == nullptr) return;
        try {
            for (int i = 0; i < shape_.streams; ++i) streams_.push_back(driver_->make_stream());
            for (int i = 0; i < slot_count(); ++i) events_.push_back(driver_->make_event());
        } catch (...) {
            release();
            throw;
        }
    }
    staging(const staging&) = delete;
    staging& operator=(const staging&) = delete;
    ~staging() { release(); }

    const void* context() const noexcept { return context_; }
    std::size_t chunk_bytes(std::size_t passing) const noexcept { return shape_.chunk_of(passing); }
    /// One is with the host, one on its way there, and one on its way back.
    int slot_count() const noexcept { return std::max(3, shape_.streams); }

    /// So many bytes, at least; what was in them before may be lost.
    std::byte* room(std::size_t bytes) {
        if (bytes_ >= bytes && data_ != nullptr) return data_;
        give_back();
        const std::size_t pages = (bytes + memory_source::alignment) / memory_source::alignment;
        data_ = source_.allocate(pages * memory_source::alignment);
        bytes_ = pages * memory_source::alignment;
        pinned_ = driver_ != nullptr && driver_->pin(data_, bytes_);
        return data_;
    }

    void fetch(int slot, void* host, const void* device, std::size_t bytes) {
        if (bytes == 0) return;
        driver_->fetch(host, device, bytes, stream_of(slot));
        driver_->mark(event_of(slot), stream_of(slot));
    }
    void store(int slot, void* device, const void* host, std::size_t bytes) {
        if (bytes == 0) return;
        driver_->store(device, host, bytes, stream_of(slot));
        driver_->mark(event_of(slot), stream_of(slot));
    }
    void await(int slot) {
        if (driver_ != nullptr) driver_->await(event_of(slot));
    }
    void await_all() {
        for (int slot = 0; slot < slot_count(); ++slot) await(slot);
    }

private:
    void* stream_of(int slot) const noexcept { return streams_[static_cast<std::size_t>(slot % shape_.streams)]; }
    void* event_of(int slot) const noexcept { return events_[static_cast<std::size_t>(slot)]; }

    void give_back() noexcept {
        if (data_ == nullptr) return;
        if (pinned_ && driver_ != nullptr) driver_->unpin(data_);
        source_.deallocate(data_, bytes_);
        data_ = nullptr;
    }
    void release() noexcept {
        try {
            if (driver_ != nullptr) driver_->enter(context_);
        } catch (...) {
            driver_ = nullptr;  // a context that is gone took along what was its own
        }
        if (driver_ != nullptr) {
            for (void* const each : events_) driver_->end_event(each);
            for (void* const each : streams_) driver_->end_stream(each);
        }
        give_back();
        if (driver_ != nullptr) driver_->leave();
    }

    memory_source source_;
    staging_shape shape_;
    const device_memory* driver_;
    void* context_;
    std::vector<void*> streams_;
    std::vector<void*> events_;
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
    bool pinned_ = false;
};

}  // namespace ddl::shim
