// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdio>

namespace ddl {

/// A line of text in place: what errors and `explain` are made of, without an allocation and without `<string>`.
///
/// Longer text is cut at `capacity`. Converts to anything that is made from a C string, `std::string` for one.
class text {
public:
    static constexpr std::size_t capacity = 383;

    text() noexcept = default;

    [[gnu::format(printf, 2, 3)]] text& append(const char* format, ...) noexcept {
        std::va_list arguments;
        va_start(arguments, format);
        append(format, arguments);
        va_end(arguments);
        return *this;
    }
    text& append(const char* format, std::va_list arguments) noexcept {
        const int written = std::vsnprintf(characters_ + length_, capacity + 1 - length_, format, arguments);
        if (written > 0) length_ += static_cast<std::size_t>(written);
        if (length_ > capacity) length_ = capacity;
        return *this;
    }

    const char* c_str() const noexcept { return characters_; }
    std::size_t size() const noexcept { return length_; }

    template <class String>
        requires requires { String::npos; }  // std::string and std::string_view
    operator String() const {
        return String(characters_);
    }

private:
    char characters_[capacity + 1] = {};
    std::size_t length_ = 0;
};

}  // namespace ddl
