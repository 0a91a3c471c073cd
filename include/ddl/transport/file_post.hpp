// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/local_socket.hpp>

#include <atomic>
#include <cstdint>
#include <optional>

namespace ddl {

/// Open files sent among processes of one host that know each other's `address()`. No member blocks: what was sent lies at
/// the receiver's, who looks there when it knows by other means that the sender is done. The system lets few be under way.
class file_post {
public:
    struct address_type {
        char name[48] = {};
    };
    struct letter {
        std::int32_t from = -1;   // a rank
        std::uint32_t index = 0;  // which of its files
    };
    struct parcel {
        letter what;
        descriptor file;
    };

    explicit file_post(int rank) : rank_{rank} {
        socket_ = local_socket::open();
        if (!socket_) throw refused_by_system("file_post", rank, "socket");
        // numbers of processes repeat where containers share a network: whoever finds a name taken takes the next one
        static std::atomic<unsigned> turn{0};  // and none is used again
        for (;;) {
            std::snprintf(address_.name, sizeof address_.name, "files-%d-%u", static_cast<int>(::getpid()), turn++);
            errno = socket_.bind(address_.name);
            if (errno == 0) break;
            if (errno != EADDRINUSE) throw refused_by_system("file_post", rank, "bind");
        }
        if (::listen(socket_.number(), SOMAXCONN) != 0) throw refused_by_system("file_post", rank, "listen");
    }

    const address_type& address() const noexcept { return address_; }
    /// Whether the one of that address has gone, if only with its process.
    static bool gone(const address_type& address) noexcept {
        const local_socket way = local_socket::open();
        return way && way.connect(address.name) == ECONNREFUSED;
    }

    void send(const address_type& to, std::uint32_t index, const descriptor& file) const {
        const local_socket way = local_socket::open();
        if (!way) throw refused_by_system("file_post", rank_, "socket");
        errno = way.connect(to.name);
        if (errno != 0) throw refused_by_system("file_post", rank_, "connect");
        errno = way.send(letter{rank_, index}, &file);
        if (errno != 0) throw refused_by_system("file_post", rank_, "sendmsg");
    }

    /// One of those that have come, from this user's processes; none if there is none.
    std::optional<parcel> receive() const {
        while (const local_socket way = socket_.accept()) {
            parcel next;
            if (way.user() != ::geteuid() || way.receive(next.what, next.file) != local_socket::arrival::message)
                continue;
            if (next.file) return next;
            errno = EMFILE;  // the system lets go of a file for which no descriptor is left
            throw refused_by_system("file_post", rank_, "recvmsg");
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
            throw refused_by_system("file_post", rank_, "accept");
        return std::nullopt;
    }

private:
    int rank_;
    local_socket socket_;
    address_type address_;
};

}  // namespace ddl
