// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/shim/mapped_memory.hpp>

#include <cstddef>

namespace ddl::shim {

/// The memory of CUDA devices, by the driver that this process has loaded: the library neither links a driver nor loads one.
/// What the driver refuses is an `error` that names its function and its words.
class device_memory {
public:
    /// nullptr while no driver is loaded, and so no memory of a device can be about. Costs some nanoseconds.
    static const device_memory* here() noexcept;

    /// Makes a device the thread's, as cudaSetDevice does: the one of this number, which goes round. Nothing if the thread has one
    /// already, or the process none.
    void choose(int number) const;

    /// Whether the host cannot read what `data` points to. It can read managed and pinned memory.
    bool holds(const void* data) const;
    /// The context of memory that `holds`, kept alive by whoever allocated it.
    void* context_of(const void* data) const;
    /// Makes a context the thread's until `leave`.
    void enter(void* context) const;
    void leave() const noexcept;
    /// Waits for all work of the thread's context.
    void synchronize() const;
    /// Copies from anywhere to anywhere.
    void copy(void* to, const void* from, std::size_t bytes) const;

    /// For the thread's context. Streams wait for the default stream, as programs expect that know no other.
    void* make_stream() const;
    void* make_event() const;
    void end_stream(void* stream) const noexcept;
    void end_event(void* event) const noexcept;
    void fetch(void* host, const void* device, std::size_t bytes, void* stream) const;
    void store(void* device, const void* host, std::size_t bytes, void* stream) const;
    /// `await` returns when what the stream was given before the last `mark` of the event is done.
    void mark(void* event, void* stream) const;
    void await(void* event) const;

    /// Lets the devices of the thread's context reach host memory. False if the driver does not want to: copies then take longer.
    bool pin(void* host, std::size_t bytes) const noexcept;
    void unpin(void* host) const noexcept;

private:
    template <class... Arguments>
    struct function {
        const char* name;
        int (*call)(Arguments...);
    };
    struct located {
        unsigned kind = 0;
        int device = 0;
        int managed = 0;
        void* context = nullptr;
    };
    using address = unsigned long long;

    device_memory() = default;
    /// False if the driver lacks a function.
    bool find_all(void* driver) noexcept;
    located locate(const void* data) const;
    template <class... Declared, class... Arguments>
    void call(const function<Declared...>& what, Arguments... arguments) const;

    function<int, const char**> words_{"cuGetErrorString", nullptr};
    function<unsigned, int*, void**, address> locate_{"cuPointerGetAttributes", nullptr};
    function<unsigned> start_{"cuInit", nullptr};
    function<int*> count_{"cuDeviceGetCount", nullptr};
    function<void**> current_{"cuCtxGetCurrent", nullptr};
    function<void*> make_current_{"cuCtxSetCurrent", nullptr};
    function<int*, int> device_{"cuDeviceGet", nullptr};
    function<void**, int> retain_{"cuDevicePrimaryCtxRetain", nullptr};
    function<int> release_{"cuDevicePrimaryCtxRelease_v2", nullptr};
    function<void*> push_{"cuCtxPushCurrent_v2", nullptr};
    function<void**> pop_{"cuCtxPopCurrent_v2", nullptr};
    function<> synchronize_{"cuCtxSynchronize", nullptr};
    function<address, address, std::size_t> copy_{"cuMemcpy", nullptr};
    function<void**, unsigned> make_stream_{"cuStreamCreate", nullptr};
    function<void*> end_stream_{"cuStreamDestroy_v2", nullptr};
    function<void**, unsigned> make_event_{"cuEventCreate", nullptr};
    function<void*> end_event_{"cuEventDestroy_v2", nullptr};
    function<void*, void*> mark_{"cuEventRecord", nullptr};
    function<void*> await_{"cuEventSynchronize", nullptr};
    function<void*, address, std::size_t, void*> fetch_{"cuMemcpyDtoHAsync_v2", nullptr};
    function<address, const void*, std::size_t, void*> store_{"cuMemcpyHtoDAsync_v2", nullptr};
    function<void*, std::size_t, unsigned> pin_{"cuMemHostRegister_v2", nullptr};
    function<void*> unpin_{"cuMemHostUnregister", nullptr};
};

/// The context of a device, as the thread's own while this lives; nothing without a driver.
class entered {
public:
    entered(const device_memory* driver, void* context) : driver_{driver} {
        if (driver_ != nullptr) driver_->enter(context);
    }
    entered(const entered&) = delete;
    entered& operator=(const entered&) = delete;
    ~entered() {
        if (driver_ != nullptr) driver_->leave();
    }

private:
    const device_memory* driver_;
};

/// Pins memory of ours into which `data` points, if it waits for that: from now on the device of the thread may use it as its own.
inline void pin_if_wanted(const device_memory& driver, const void* data) {
    if (const auto [begin, bytes] = mapped_memory::here().to_pin(data); begin != nullptr && driver.pin(begin, bytes))
        mapped_memory::here().pinned(begin, driver.context_of(begin));
}

/// Waits for the device that may still be at work on `data`, if that is memory of ours and pinned.
inline void await_device(const device_memory& driver, const void* data) {
    pin_if_wanted(driver, data);
    void* const context = mapped_memory::here().pinned_in(data);
    if (context == nullptr) return;
    const entered its{&driver, context};
    driver.synchronize();
}

}  // namespace ddl::shim
