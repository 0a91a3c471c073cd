// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/concepts.hpp>

#include <array>
#include <memory>
#include <new>

namespace ddl {

/// The scratch of a transport whose peers map nothing: a block on the heap for each use, which grows and never shrinks.
class heap_scratch {
public:
    std::byte* at_least(std::size_t bytes, scratch_for use) {
        block& kept = blocks_[static_cast<std::size_t>(use)];
        if (bytes > kept.bytes) {
            kept = {};
            const std::size_t wanted = bytes + bytes / 2;
            kept.data.reset(static_cast<std::byte*>(::operator new(wanted, std::align_val_t{alignment})));
            kept.bytes = wanted;
        }
        return kept.data.get();
    }

private:
    static constexpr std::size_t alignment = 4096;
    struct aligned_delete {
        void operator()(std::byte* data) const noexcept { ::operator delete(data, std::align_val_t{alignment}); }
    };
    struct block {
        std::unique_ptr<std::byte, aligned_delete> data;
        std::size_t bytes = 0;
    };
    std::array<block, scratch_uses> blocks_;
};

}  // namespace ddl
