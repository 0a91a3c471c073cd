// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/error.hpp>

#include <cerrno>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace ddl {

/// A file descriptor that is closed when it is let go of. A value that moves.
///
/// Its number is above those of the standard streams, which a daemon has closed and writes to all the same.
class descriptor {
public:
    descriptor() noexcept = default;
    explicit descriptor(int number) noexcept : number_{above_streams(number)} {}
    descriptor(descriptor&& from) noexcept : number_{std::exchange(from.number_, -1)} {}
    descriptor& operator=(descriptor&& from) noexcept {
        std::swap(number_, from.number_);
        return *this;
    }
    ~descriptor() {
        if (number_ >= 0) ::close(number_);
    }

    explicit operator bool() const noexcept { return number_ >= 0; }
    int number() const noexcept { return number_; }
    void close() noexcept { descriptor{std::move(*this)}; }

private:
    /// -1, and `errno`, if there is none left.
    static int above_streams(int number) noexcept {
        if (number < 0 || number > STDERR_FILENO) return number;
        const int above = ::fcntl(number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        const int refusal = errno;
        ::close(number);
        errno = refusal;
        return above;
    }

    int number_ = -1;
};

/// What `call` left in `errno`, in the words of the system.
inline error refused_by_system(const char* operation, int rank, const char* call) {
    const std::error_code reason{errno, std::generic_category()};
    return error(errc::system, operation, rank, -1, "%s: %s", call, reason.message().c_str());
}

}  // namespace ddl
