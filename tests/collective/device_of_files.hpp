// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/host_block.hpp>
#include <ddl/transport/ipc_grid.hpp>
#include <ddl/transport/threads.hpp>

#include <fcntl.h>
#include <functional>
#include <span>
#include <sys/mman.h>
#include <thread>

/// A device without a GPU: its memory is files that other processes map, its blocks are threads.
///
/// As on a GPU, memory is known to those alone that have opened it, allocations have numbers, a stream may lag behind.
class device_of_files {
public:
    static constexpr const char* name = "ipc of files";
    using stream = int;
    static constexpr stream captured = -1;

    /// Ranks with one number share a GPU.
    explicit device_of_files(int gpu) : gpu_{gpu} {
        if (gpu < 0) throw ddl::error(ddl::errc::system, name, -1, -1, "there is no such device");
    }
    device_of_files(const device_of_files&) = delete;
    device_of_files& operator=(const device_of_files&) = delete;
    ~device_of_files() {
        join();
        while (!memory_.empty()) give(reinterpret_cast<std::byte*>(memory_.back().what.first));
    }

    /// Memory of so many bytes; at `place` if that is given.
    std::byte* take(std::size_t bytes, ddl::exported_memory::way how = ddl::exported_memory::by_handle,
                    void* place = nullptr) {
        const int file = ::memfd_create("device", MFD_CLOEXEC);
        if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0) throw std::bad_alloc{};
        void* const first = ::mmap(place, bytes, PROT_READ | PROT_WRITE,
                                   MAP_SHARED | (place != nullptr ? MAP_FIXED_NOREPLACE : 0), file, 0);
        if (first == MAP_FAILED) throw std::bad_alloc{};
        memory_.push_back({{reinterpret_cast<std::uintptr_t>(first), bytes, tells_numbers ? ++last_id_ : 0, how, {}},
                           ddl::descriptor{file}});
        return static_cast<std::byte*>(first);
    }
    void give(std::byte* first) {
        std::erase_if(memory_, [&](const allocation& each) {
            if (each.what.first != reinterpret_cast<std::uintptr_t>(first)) return false;
            ::munmap(first, each.what.bytes);
            return true;
        });
    }

    // what ddl::ipc_grid asks
    std::array<std::byte, 16> identity() const { return {static_cast<std::byte>(gpu_)}; }
    static constexpr int most_blocks() { return 3; }
    std::byte* allocate_window(std::size_t bytes) { return take(bytes); }
    ddl::exported_memory identify(const char* which, const void* data, std::size_t bytes, const ddl::call_site& where,
                                  int rank) {
        ++identified;
        const auto address = reinterpret_cast<std::uintptr_t>(data);
        for (const allocation& each : memory_)
            if (each.what.holds(address) && each.what.holds(address + bytes - 1)) return each.what;
        throw ddl::error(ddl::errc::invalid_argument, where.operation, rank, -1, "%s cannot be shared", which);
    }
    void export_handle(ddl::exported_memory& what) {
        ++exports;
        const int names[2] = {::getpid(), file_of(what).number()};
        std::memcpy(what.handle.data(), names, sizeof names);
    }
    ddl::descriptor export_file(const ddl::exported_memory& what) {
        ++exports;
        return ddl::descriptor{::fcntl(file_of(what).number(), F_DUPFD_CLOEXEC, 0)};
    }
    std::byte* open(const ddl::exported_memory& what, const ddl::descriptor& file) {
        if (opens_before_refusal >= 0 && opens_before_refusal-- == 0)
            throw ddl::error(ddl::errc::system, name, -1, -1, "nothing can be opened");
        ++opens;
        if (before_open) before_open();
        ddl::descriptor found;
        if (what.how == ddl::exported_memory::by_handle) {
            int names[2];
            std::memcpy(names, what.handle.data(), sizeof names);
            char path[64];
            std::snprintf(path, sizeof path, "/proc/%d/fd/%d", names[0], names[1]);
            found = ddl::descriptor{::open(path, O_RDWR | O_CLOEXEC)};
        }
        void* const here =
            ::mmap(nullptr, what.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, found ? found.number() : file.number(), 0);
        if (here == MAP_FAILED) throw ddl::refused_by_system(name, -1, "mmap of a peer's memory");
        return static_cast<std::byte*>(here);
    }
    void close(std::byte* mapped, const ddl::exported_memory& what) noexcept {
        if (running_ != 0) std::terminate();  // a grid may still use it
        ++closes;
        ::munmap(mapped, what.bytes);
    }
    void require_free(stream which, const ddl::call_site& where, int rank) const {
        if (which == captured)
            throw ddl::error(ddl::errc::invalid_argument, where.operation, rank, -1, "under capture");
    }
    struct moment {
        int* marked;
        void follow(stream) const { --*marked; }
    };
    moment mark(stream) {
        ++marked;
        return {&marked};
    }
    bool has_caught_up(stream which) {
        if (lag && ddl::now() < lag_until) return false;
        if (lag) std::exchange(lag, nullptr)();
        return is_idle() || which != latest_;
    }
    bool is_idle() {
        if (broken_) throw ddl::error(ddl::errc::system, name, -1, -1, "the device has failed");
        return running_ == 0;
    }
    int missed() const { return missed_; }
    void give_up(int rank) noexcept {
        int none = -1;
        if (missed_.compare_exchange_strong(none, rank) && when_giving_up) when_giving_up();
    }

    template <class Body>
    void launch(const Body& body, ddl::grid_shape shape, const ddl::ipc_launch<stream>& how) {
        ++launches;
        if (refuses_launch) throw ddl::error(ddl::errc::system, name, how.rank, -1, "nothing can be launched");
        join();
        latest_ = how.stream;
        if (!how.together) {  // one after the other: a block that waited for another would not return
            for (int block = 0; block < shape.blocks; ++block) {
                ddl::without_meetings<ddl::host_block> space{{how.rank, block, shape.blocks, ddl::timeout{0}}};
                body(space);
                if (space.missing() >= 0) std::terminate();
            }
            return;
        }
        if (breaks) {
            broken_ = true;
            return;
        }
        running_ = shape.blocks;
        for (int block = 0; block < shape.blocks; ++block)
            blocks_.emplace_back([this, body, shape, block, how] {
                own_block space{{how.rank, block, shape.blocks, how.limit}, &missed_, before_fold};
                if (delay > 0) ::usleep(static_cast<useconds_t>(delay * 1e6));
                while (held) ::usleep(1000);
                body(space);
                if (space.missing() >= 0) give_up(space.missing());
                --running_;
            });
    }

    int identified = 0;
    int exports = 0;
    int opens = 0;
    int closes = 0;
    int launches = 0;
    int marked = 0;  // moments that nothing has followed yet
    int opens_before_refusal = -1;
    bool refuses_launch = false;
    bool breaks = false;  // with the next grid whose blocks meet others
    bool tells_numbers = true;
    double delay = 0;                // of each block of a grid, seconds
    std::atomic<bool> held = false;  // no block begins
    double lag_until = 0;            // when the stream comes to
    std::function<void()> lag;       // this
    std::function<void()> before_open;
    std::function<void()> before_fold;     // of each block, at the first packet
    std::function<void()> when_giving_up;  // first

private:
    struct allocation {
        ddl::exported_memory what;
        ddl::descriptor file;
    };
    /// Stops waiting when somebody has given up, and does something else before its work.
    struct own_block : ddl::host_block {
        own_block(ddl::host_block block, const std::atomic<int>* gave_up, std::function<void()> before)
            : host_block{block}, missed{gave_up}, before_work{std::move(before)} {}
        template <class Ready, class Missing>
        bool wait(const Ready& ready, const Missing& missing) {
            return host_block::wait([&] { return ready() || *missed >= 0; }, missing) && *missed < 0;
        }
        ddl::kernel::packet load(const std::byte* from) {
            if (const auto act = std::exchange(before_work, nullptr)) act();
            return host_block::load(from);
        }
        const std::atomic<int>* missed;
        std::function<void()> before_work;
    };

    ddl::descriptor& file_of(const ddl::exported_memory& what) {
        for (allocation& each : memory_)
            if (each.what.first == what.first) return each.file;
        std::terminate();
    }
    void join() {
        for (std::thread& block : blocks_) block.join();
        blocks_.clear();
    }

    int gpu_;
    std::vector<allocation> memory_;
    std::uint64_t last_id_ = 0;
    std::vector<std::thread> blocks_;
    std::atomic<int> running_ = 0;
    std::atomic<int> missed_ = -1;
    bool broken_ = false;
    stream latest_ = 0;  // that of the last grid
};

template <class Host>
using grid_of_files = ddl::ipc_grid<Host, device_of_files>;

/// Elements in memory of a device.
template <class Element>
class device_values {
public:
    device_values(device_of_files& device, std::size_t count,
                  ddl::exported_memory::way how = ddl::exported_memory::by_handle, std::size_t offset = 0,
                  void* place = nullptr)
        : device_{device}, first_{device.take((count + offset + 1) * sizeof(Element), how, place)},
          values_{reinterpret_cast<Element*>(first_) + offset, count} {}
    device_values(const device_values&) = delete;
    device_values& operator=(const device_values&) = delete;
    ~device_values() { device_.give(first_); }

    Element* data() noexcept { return values_.data(); }
    std::size_t size() const noexcept { return values_.size(); }
    std::span<Element> span() const noexcept { return values_; }
    void* first() const noexcept { return first_; }

private:
    device_of_files& device_;
    std::byte* first_;
    std::span<Element> values_;
};

static_assert(ddl::ipc_device<device_of_files>);
static_assert(ddl::grid_transport<grid_of_files<ddl::threads>>);
