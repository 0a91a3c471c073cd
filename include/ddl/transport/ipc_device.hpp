// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/concepts.hpp>
#include <ddl/transport/descriptor.hpp>
#include <ddl/transport/patience.hpp>

#include <array>

namespace ddl {

/// Memory of a device as other processes come to it. Plain bytes: peers read them where they lie.
struct exported_memory {
    enum way : std::uint32_t {
        by_handle,  // bytes that any process of this host can open
        by_file,    // an open file, to be sent
    };
    std::uint64_t first = 0;  // the address in its own process
    std::uint64_t bytes = 0;
    std::uint64_t id = 0;  // of the allocation, never used again in that process; 0 if nobody can tell it from the next
    way how = by_handle;
    std::array<std::byte, 64> handle{};

    bool holds(std::uint64_t address) const noexcept { return address - first < bytes; }
};

/// How a grid is launched.
template <class Stream>
struct ipc_launch {
    Stream stream;
    int rank;
    bool together;  // the blocks of all ranks run at the same time and meet; else nobody's block waits
    timeout limit;
};

/// What `ipc_grid` asks of a GPU, and nothing else: so the whole protocol runs in tests over memory of the host.
///
/// Members throw `ddl::error`, unless they are marked. A device belongs to one rank, and owns what it allocates.
template <class Device>
concept ipc_device = requires(Device& device, const Device& constant, typename Device::stream stream,
                              const exported_memory& what, exported_memory& whole, const descriptor& file,
                              std::byte* mapped, const void* data, const call_site& where, int rank) {
    { Device::name } -> std::convertible_to<const char*>;
    { constant.identity() } -> std::same_as<std::array<std::byte, 16>>;     // equal for ranks that share a GPU
    { constant.most_blocks() } -> std::same_as<int>;                        // that run at the same time
    { device.allocate_window(std::size_t{}) } -> std::same_as<std::byte*>;  // zeroed; freed with the device
    { device.identify("in", data, std::size_t{}, where, rank) } -> std::same_as<exported_memory>;  // still without
    device.export_handle(whole);                                                                   // what this adds
    { device.export_file(what) } -> std::same_as<descriptor>;
    { device.open(what, file) } -> std::same_as<std::byte*>;
    device.close(mapped, what);                              // noexcept
    device.require_free(stream, where, rank);                // throws if no grid can be launched there now
    { device.has_caught_up(stream) } -> std::same_as<bool>;  // with all that the stream was given
    { device.is_idle() } -> std::same_as<bool>;              // the grid that was launched last has ended
    { device.missed() } -> std::same_as<int>;                // the rank that a grid waited for in vain, or -1
    device.give_up(rank);                                    // noexcept: blocks that wait for it stop waiting
    device.mark(stream).follow(stream);                      // orders it, of another thread, behind that of this one
};

}  // namespace ddl
