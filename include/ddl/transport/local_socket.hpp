// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/own_descriptor.hpp>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <sys/socket.h>
#include <sys/un.h>

namespace ddl {

/// A socket for whole messages, and for open files, between processes of one host. No member blocks.
///
/// Its name is abstract: no file, seen in this network namespace only, gone with the process that has it, which one made by fork
/// neither keeps nor speaks for.
class local_socket {
public:
    static constexpr std::size_t longest_name = 80;

    local_socket() noexcept = default;
    static local_socket open() noexcept {
        return local_socket{
            [] { return descriptor{::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)}; }};
    }

    explicit operator bool() const noexcept { return static_cast<bool>(socket_); }
    int number() const noexcept { return socket_.number(); }
    void close() noexcept { socket_.close(); }

    /// These two return 0 or what `errno` said. Names of different users differ.
    int bind(std::string_view name) const noexcept {
        const address to{name};
        return ::bind(number(), to.generic(), to.length) == 0 ? 0 : errno;
    }
    int connect(std::string_view name) const noexcept {
        const address to{name};
        return ::connect(number(), to.generic(), to.length) == 0 ? 0 : errno;
    }

    /// The next who connected; if there is none, no socket.
    local_socket accept() const noexcept {
        return local_socket{
            [this] { return descriptor{::accept4(number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)}; }};
    }

    /// The user at the other end.
    uid_t user() const noexcept {
        ucred peer{};
        socklen_t length = sizeof peer;
        return ::getsockopt(number(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 ? peer.uid : static_cast<uid_t>(-1);
    }

    /// Sends a message, with a file if one is given. Returns 0 or what `errno` said, as where the other end is closed.
    template <class Message>
    int send(const Message& words, const descriptor* file = nullptr) const noexcept {
        iovec part{const_cast<Message*>(&words), sizeof words};
        ancillary room;
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        if (file != nullptr) {
            message.msg_control = room.bytes;
            message.msg_controllen = sizeof room.bytes;
            cmsghdr* const head = CMSG_FIRSTHDR(&message);
            head->cmsg_level = SOL_SOCKET;
            head->cmsg_type = SCM_RIGHTS;
            head->cmsg_len = CMSG_LEN(sizeof(int));
            const int sent = file->number();
            std::memcpy(CMSG_DATA(head), &sent, sizeof sent);
        }
        while (::sendmsg(number(), &message, MSG_NOSIGNAL) < 0)
            if (errno != EINTR) return errno;
        return 0;
    }

    enum class arrival { none, message, end };

    /// The next message, and the file that came with it. `end` if the other end is closed or says something else.
    template <class Message>
    arrival receive(Message& words, descriptor& file) const noexcept {
        iovec part{&words, sizeof words};
        ancillary room;
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = room.bytes;
        message.msg_controllen = sizeof room.bytes;
        ssize_t bytes = 0;
        do bytes = ::recvmsg(number(), &message, MSG_CMSG_CLOEXEC);
        while (bytes < 0 && (errno == EINTR || errno == ECONNRESET));  // a reset is said once; last words come after it
        if (bytes < 0) return errno == EAGAIN ? arrival::none : arrival::end;
        const cmsghdr* const head = CMSG_FIRSTHDR(&message);
        if (head != nullptr && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) {
            int received = -1;
            std::memcpy(&received, CMSG_DATA(head), sizeof received);
            file = descriptor{received};
        }
        return bytes == sizeof words ? arrival::message : arrival::end;
    }

private:
    template <class Open>
    explicit local_socket(const Open& open) noexcept : socket_{open} {}

    struct address {
        explicit address(std::string_view name) noexcept {
            to.sun_family = AF_UNIX;  // the path begins with a zero byte, which makes it abstract
            const int user = std::snprintf(to.sun_path + 1, 24, "ddl-%u-", unsigned{::geteuid()});
            const std::size_t before = 1 + static_cast<std::size_t>(user);
            std::memcpy(to.sun_path + before, name.data(), name.size());
            length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + before + name.size());
        }
        const sockaddr* generic() const noexcept { return reinterpret_cast<const sockaddr*>(&to); }
        sockaddr_un to{};
        socklen_t length;
    };
    static_assert(1 + 23 + longest_name <= sizeof(sockaddr_un::sun_path));

    struct ancillary {
        alignas(cmsghdr) char bytes[CMSG_SPACE(sizeof(int))] = {};
    };

    own_descriptor socket_;
};

}  // namespace ddl
