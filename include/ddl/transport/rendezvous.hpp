// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/local_socket.hpp>
#include <ddl/transport/patience.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <poll.h>
#include <string_view>
#include <vector>

namespace ddl {

/// How the processes of a job on one host, started in any order, find each other and come to share a file.
///
/// Rank 0 takes the job's name, and loses it at the latest when its process ends. The others greet it there, are handed
/// the file, prepare themselves and report ready; when all are, all go.
///
///     rank 0:  claim()  host(file)                others:  attend() -> file  await_all()
///
/// A rank that ends or gives up on the way, comes twice, or counts the ranks differently ends the rendezvous for all
/// who came. Members throw `errc::timeout` with the names of the missing when the deadline has passed.
class rendezvous {
public:
    rendezvous(std::string_view job, int rank, int size, timeout limit)
        : job_{job}, rank_{rank}, size_{size}, limit_{limit.seconds}, deadline_{now() + limit.seconds} {
        if (job.empty() || job.size() > local_socket::longest_name)
            throw error(errc::invalid_argument, operation, rank, -1, "the job's name has %zu characters; use 1 to %zu",
                        job.size(), local_socket::longest_name);
    }

    /// Rank 0: takes the name. A previous run may just be ending, so it waits while another process has it.
    void claim() {
        name_ = open_socket();
        while (!bind(name_)) {
            if (expired()) throw failure(errc::timeout, name_in_use());
            nap();
        }
        if (::listen(name_.number(), SOMAXCONN) != 0) throw refused_by_system(operation, rank_, "listen");
    }

    /// Rank 0: hands out the file, and returns when all ranks are ready. `present(rank)` tells who need not be missed.
    template <class Present>
    void host(const descriptor& file, Present present) {
        int absent = size_ - 1;
        while (absent > 0) {
            std::vector<pollfd> watched{{name_.number(), POLLIN, 0}};
            for (const guest& each : guests_) watched.push_back({each.socket.number(), POLLIN, 0});
            if (!wait(watched)) end(errc::timeout, missing(present, limit_));
            for (std::size_t i = 0; i < guests_.size(); ++i)
                if (watched[i + 1].revents != 0 && hear(guests_[i], file, present)) --absent;
            std::erase_if(guests_, [](const guest& each) { return !each.socket; });
            if (watched[0].revents == 0) continue;
            // strangers may come for ever
            if (absent > 0 && now() >= deadline_ + 1) end(errc::timeout, missing(present, limit_));
            admit();
        }
        for (const guest& each : guests_) say(each.socket, note{.what = note::go});
        // from here nobody can connect, yet the name stays taken; who still waits is another run's, and tries again
        ::shutdown(name_.number(), SHUT_RDWR);
        guests_.clear();
        while (name_.accept()) {}
    }

    /// Rank 0: what keeps the name from other runs for as long as it is open.
    local_socket take_name() noexcept { return std::move(name_); }

    /// The others: wait for rank 0, which may start later, and get the file.
    descriptor attend() {
        for (;; nap()) {
            if (connect()) {
                note answer;
                descriptor file;
                if (!hear(answer, file)) throw failure(errc::timeout, unanswered());
                if (answer.what == note::refusal) throw failure(answer.code, answer.words);
                if (answer.what == note::file && file) return file;
                if (answer.what == note::file) {
                    errno = EMFILE;  // the system lets go of a file for which no descriptor is left
                    throw refused_by_system(operation, rank_, "recvmsg");
                }
            }
            if (expired()) throw failure(errc::timeout, unanswered());
        }
    }

    /// The others: report ready, and return when all ranks are.
    template <class Present>
    void await_all(Present present) {
        say(socket_, note{.what = note::ready});
        note answer;
        descriptor nothing;
        if (!hear(answer, nothing)) {
            say(socket_, note{.what = note::impatient, .limit = limit_});
            deadline_ += 1;  // for rank 0 to say who is missing, to all in the same words
            if (!hear(answer, nothing)) throw failure(errc::timeout, missing(present, limit_));
        }
        if (answer.what == note::refusal) throw failure(answer.code, answer.words);
        if (answer.what != note::go)
            throw failure(errc::peer_lost, about("rank 0 ended while the ranks met; start the job again"));
        socket_.close();
    }

    /// Tells the others what made this rank leave before the end.
    void give_up(const error& why) noexcept {
        if (rank_ != 0) {
            note words = refusal(why.code(), why.what());
            words.rank = rank_;  // of which rank 0 may not have heard
            socket_.send(words);
        } else if (name_) turn_away(why.code(), about("rank 0 gave up [%s]", why.what()));
    }

private:
    static constexpr const char* operation = "shared_memory";

    /// All that is said. One layout of the shared memory has one `magic`.
    struct note {
        enum kind : std::int32_t { nothing, greeting, file, ready, impatient, go, refusal };
        char magic[8] = {'d', 'd', 'l', ' ', 's', 'h', 'm', '2'};
        kind what = nothing;
        std::int32_t rank = -1;
        std::int32_t size = 0;
        double limit = 0;
        errc code = errc::broken;
        char words[text::capacity + 1] = {};
    };
    static note refusal(errc code, const char* why) noexcept {
        note words{.what = note::refusal, .code = code};
        std::snprintf(words.words, sizeof words.words, "%s", why);
        return words;
    }
    struct guest {
        local_socket socket;
        int rank = -1;  // until it has greeted
    };

    error failure(errc code, const text& words) const { return failure(code, words.c_str()); }
    error failure(errc code, const char* words) const { return error(code, operation, rank_, -1, "%s", words); }
    [[gnu::format(printf, 2, 3)]] text about(const char* format, ...) const {
        text words;
        words.append("job \"%.*s\": ", static_cast<int>(job_.size()), job_.data());
        std::va_list arguments;
        va_start(arguments, format);
        words.append(format, arguments);
        va_end(arguments);
        return words;
    }
    text name_in_use() const {
        return about("another process was still rank 0 of it after %g s; wait for its end, or choose another name",
                     limit_);
    }

    bool expired() const noexcept { return now() >= deadline_; }
    static void nap() noexcept {
        const timespec time{0, 2'000'000};
        ::nanosleep(&time, nullptr);
    }

    /// False if the deadline passed first.
    bool wait(std::vector<pollfd>& watched) const {
        for (;;) {
            const double left = (deadline_ - now()) * 1000;
            const int milliseconds = left <= 0 ? 0 : left > 1e9 ? 1'000'000'000 : static_cast<int>(left) + 1;
            const int heard = ::poll(watched.data(), watched.size(), milliseconds);
            if (heard > 0) return true;  // what has come is heard, however late
            if (heard < 0 && errno != EINTR) throw refused_by_system(operation, rank_, "poll");
            if (heard == 0 && expired()) return false;
        }
    }

    /// Who has closed the other end has left word why, which is heard, or has ended.
    void say(const local_socket& to, const note& words, const descriptor* file = nullptr) const {
        const int refusal = to.send(words, file);
        for (const int none : {0, EPIPE, ECONNRESET, ECONNREFUSED, ENOTCONN})
            if (refusal == none) return;
        errno = refusal;
        throw refused_by_system(operation, rank_, "sendmsg");
    }

    local_socket open_socket() const {
        local_socket socket = local_socket::open();
        if (!socket) throw refused_by_system(operation, rank_, "socket");
        return socket;
    }
    /// False if another process has the name.
    bool bind(const local_socket& socket) const {
        const int refusal = socket.bind(job_);
        if (refusal != 0 && refusal != EADDRINUSE) throw refused_by_system(operation, rank_, "bind");
        return refusal == 0;
    }

    /// Rank 0: lets in who connected, if it is one of this user's processes.
    void admit() {
        local_socket socket = name_.accept();
        if (!socket && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
            throw refused_by_system(operation, rank_, "accept");
        if (socket && socket.user() == ::geteuid()) guests_.push_back({std::move(socket)});
    }

    /// Rank 0: hears what a guest has to say; true if it is ready.
    template <class Present>
    bool hear(guest& from, const descriptor& file, Present present) {
        note words;
        descriptor nothing;
        const local_socket::arrival what = from.socket.receive(words, nothing);
        if (what == local_socket::arrival::none) return false;
        if (what == local_socket::arrival::end) {
            from.socket.close();
            if (from.rank >= 0)
                end(errc::peer_lost, about("rank %d ended while the ranks met; start the job again", from.rank));
            return false;
        }
        const bool is_ours = std::memcmp(words.magic, note{}.magic, sizeof words.magic) == 0;
        if (is_ours && words.what == note::refusal)
            end(words.code, about("rank %d gave up [%s]", words.rank, words.words));
        if (from.rank >= 0 && words.what == note::impatient) end(errc::timeout, missing(present, words.limit));
        if (from.rank >= 0) return words.what == note::ready;
        if (!is_ours || words.what != note::greeting)
            end(errc::mismatch, about("a process with another version of ddl came; build all ranks with the same one"));
        if (words.size != size_ || words.rank < 1 || words.rank >= size_)
            end(errc::mismatch, about("rank %d came with %d ranks in all, rank 0 with %d; pass one size everywhere",
                                      words.rank, words.size, size_));
        for (const guest& other : guests_)
            if (other.rank == words.rank)
                end(errc::mismatch,
                    about("rank %d came twice; give each process a rank of its own, each job its own name",
                          words.rank));
        from.rank = words.rank;
        say(from.socket, note{.what = note::file}, &file);
        return false;
    }

    /// Rank 0: ends the rendezvous for all who came.
    [[noreturn]] void end(errc code, const text& why) {
        turn_away(code, why);
        throw failure(code, why);
    }
    void turn_away(errc code, const text& why) noexcept {
        const note words = refusal(code, why.c_str());
        for (const guest& each : guests_)
            if (each.socket) each.socket.send(words);
        // who is not in yet tries after each nap: rank 0 stays for some, so that they need not wait for the deadline
        for (int naps = 0; naps < 50; ++naps, nap())
            for (int each = 0; each < size_; ++each) {
                const local_socket waiting = name_.accept();
                if (!waiting) break;
                waiting.send(words);
            }
        guests_.clear();
        name_.close();
    }

    /// The others: greet rank 0. False if it is not there (yet).
    bool connect() {
        socket_ = open_socket();
        const int refusal = socket_.connect(job_);
        if (refusal == ECONNREFUSED || refusal == EAGAIN || refusal == EINTR) return false;
        if (refusal != 0) throw refused_by_system(operation, rank_, "connect");
        if (const uid_t user = socket_.user(); user != ::geteuid())
            throw failure(errc::system,
                          about("user %u has taken the name; choose another one", static_cast<unsigned>(user)));
        say(socket_, note{.what = note::greeting, .rank = rank_, .size = size_});
        return true;
    }

    /// The others: the next note of rank 0, `nothing` if it ended. False if the deadline passed first.
    bool hear(note& answer, descriptor& file) const {
        std::vector<pollfd> watched{{socket_.number(), POLLIN, 0}};
        while (wait(watched)) {
            const local_socket::arrival what = socket_.receive(answer, file);
            if (what == local_socket::arrival::none) continue;
            if (what == local_socket::arrival::end) answer.what = note::nothing;
            return true;
        }
        return false;
    }

    /// Why rank 0 did not answer. If the name can be had, nobody has it.
    text unanswered() {
        if (!bind(open_socket())) return name_in_use();
        return about("rank 0 did not start within %g s; start all %d ranks on this host, or set a longer timeout",
                     limit_, size_);
    }

    template <class Present>
    text missing(Present present, double limit) const {
        constexpr int most_named = 8;
        text names;
        int count = 0;
        for (int peer = 0; peer < size_; ++peer) {
            if (peer == rank_ || present(peer)) continue;
            if (++count <= most_named) names.append(count == 1 ? "%d" : ", %d", peer);
        }
        if (count > most_named) names.append(" and %d more", count - most_named);
        if (count == 0) return about("all ranks came, but were not ready within %g s; set a longer timeout", limit);
        return about("rank%s %s did not start within %g s; start all %d ranks on this host, or set a longer timeout",
                     count == 1 ? "" : "s", names.c_str(), limit, size_);
    }

    std::string_view job_;
    int rank_;
    int size_;
    double limit_;
    double deadline_;
    local_socket name_;          // rank 0's
    std::vector<guest> guests_;  // rank 0's
    local_socket socket_;        // the others' way to rank 0
};

}  // namespace ddl
