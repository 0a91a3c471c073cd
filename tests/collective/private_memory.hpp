// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/threads.hpp>

#include <array>
#include <utility>

/// Threads that pretend to be processes: the buffers of the caller cannot be mapped, only what the communicator hands out.
class private_memory : public ddl::threads {
public:
    static constexpr const char* name = "private memory";

    explicit private_memory(ddl::threads&& team) noexcept : ddl::threads{std::move(team)} {}

    std::byte* scratch(std::size_t bytes, ddl::scratch_for use = ddl::scratch_for::arrivals) {
        std::byte* const data = ddl::threads::scratch(bytes, use);
        handed_out_[static_cast<std::size_t>(use)] = {data, bytes};
        return data;
    }
    std::uint64_t address_of(const void* data, std::size_t bytes) const noexcept {
        const auto first = reinterpret_cast<std::uintptr_t>(data);
        for (const auto& [start, length] : handed_out_) {
            const auto base = reinterpret_cast<std::uintptr_t>(start);
            if (base <= first && first + bytes <= base + length) return ddl::threads::address_of(data, bytes);
        }
        return 0;
    }

private:
    std::array<std::pair<std::byte*, std::size_t>, ddl::scratch_uses> handed_out_{};
};

static_assert(ddl::memory_transport<private_memory>);
