// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

/// A buffer that lies one element off its alignment, between elements that nobody may touch.
template <class Element>
class guarded {
public:
    explicit guarded(std::size_t count)
        : count_{count}, all_{std::make_unique<Element[]>(count + 2 * margin)}, before_(margin * sizeof(Element)) {
        std::memset(static_cast<void*>(all_.get()), canary, (count + 2 * margin) * sizeof(Element));
        std::memset(before_.data(), canary, before_.size());
    }
    /// Filled with `value(i)`.
    template <class Value>
    guarded(std::size_t count, Value value) : guarded{count} {
        for (std::size_t i = 0; i < count; ++i) data()[i] = static_cast<Element>(value(i));
    }

    Element* data() noexcept { return all_.get() + margin; }
    const Element* data() const noexcept { return all_.get() + margin; }
    std::size_t size() const noexcept { return count_; }
    Element& operator[](std::size_t i) noexcept { return data()[i]; }
    const Element& operator[](std::size_t i) const noexcept { return data()[i]; }

    /// Whether nothing around it has changed.
    bool intact() const noexcept {
        return std::memcmp(all_.get(), before_.data(), before_.size()) == 0 &&
               std::memcmp(data() + count_, before_.data(), before_.size()) == 0;
    }
    /// Whether the buffer itself holds what it was born with, where no value was given.
    bool untouched() const noexcept {
        for (std::size_t i = 0; i < count_; ++i)
            if (std::memcmp(data() + i, before_.data(), sizeof(Element)) != 0) return false;
        return intact();
    }

private:
    static constexpr std::size_t margin = 17;
    static constexpr int canary = 0x01;  // a value of every type, `bool` too

    std::size_t count_;
    std::unique_ptr<Element[]> all_;
    std::vector<unsigned char> before_;
};
