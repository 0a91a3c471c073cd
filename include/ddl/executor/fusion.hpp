// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/contiguous.hpp>
#include <ddl/kernel/copy.hpp>
#include <ddl/transport/concepts.hpp>
#include <ddl/transport/staging_transport.hpp>

#include <cstdint>
#include <iterator>

namespace ddl {

/// How many bytes of short tensors travel together, and from which length on a tensor is not short: packing it would cost more
/// than the call that it saves.
struct fusion_limits {
    std::size_t together;
    std::size_t alone;
};
inline constexpr fusion_limits never_packed{1, 0};  // no host may pack what lies in a GPU
template <class Transport>
inline constexpr fusion_limits fusion_limits_of{std::size_t{4} << 20, std::size_t{1} << 20};
template <memory_transport Transport>
inline constexpr fusion_limits fusion_limits_of<Transport>{std::size_t{1} << 18, std::size_t{1} << 15};
template <staging_transport Transport>
inline constexpr fusion_limits fusion_limits_of<Transport> = never_packed;

/// Many tensors as few vectors: long ones as they are, short ones packed together.
template <class Element, class Tensors>
class fusion {
public:
    fusion(Tensors& tensors, const fusion_limits& limits) : tensors_{tensors}, limits_{limits} {
        for (auto&& each : tensors_) {
            if (is_long(each)) any_long_ = true;
            else short_ones_ += size_of(each);
            sizes_ = sizes_ * 16777619U + static_cast<std::uint32_t>(size_of(each)) + 1;
        }
    }

    /// A hash of all lengths, for ranks to compare.
    std::uint32_t sizes() const noexcept { return sizes_; }

    /// Elements of the buffer that short tensors are packed into.
    std::size_t room() const noexcept {
        const std::size_t most = (limits_.together + limits_.alone) / sizeof(Element) + 1;
        return short_ones_ < most ? short_ones_ : most;
    }

    /// Calls `reduce(data, count)` for each vector, at least once. `packed` has `room()`.
    template <class Reduce>
    void each_vector(Element* packed, Reduce reduce) const {
        for (auto&& each : tensors_)
            if (is_long(each)) reduce(data_of(each), size_of(each));
        if (any_long_ && short_ones_ == 0) return;
        auto next = std::begin(tensors_);
        const auto end = std::end(tensors_);
        do {
            const auto first = next;
            std::size_t count = 0;
            for (; next != end && count * sizeof(Element) < limits_.together; ++next) {
                if (is_long(*next)) continue;
                kernel::copy<Element>(data_of(*next), packed + count, size_of(*next));
                count += size_of(*next);
            }
            if (count != 0 || !any_long_) reduce(packed, count);
            std::size_t at = 0;
            for (auto each = first; each != next; ++each) {
                if (is_long(*each)) continue;
                kernel::copy<Element>(packed + at, data_of(*each), size_of(*each));
                at += size_of(*each);
            }
        } while (next != end);
    }

private:
    template <class Tensor>
    bool is_long(const Tensor& each) const {
        return size_of(each) * sizeof(Element) >= limits_.alone;
    }

    Tensors& tensors_;
    fusion_limits limits_;
    std::size_t short_ones_ = 0;  // elements
    std::uint32_t sizes_ = 0;
    bool any_long_ = false;
};

}  // namespace ddl
