// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/error.hpp>
#include <ddl/transport/call_queue.hpp>
#include <ddl/transport/fault.hpp>
#include <ddl/transport/patience.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <unistd.h>
#include <vector>

// MPI's C++ bindings are long gone from the standard: without them headers are quick and free of warnings.
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif
#if __has_include(<mpi.h>)  // without MPI there is nothing here, so that this header, too, compiles alone
#include <mpi.h>

namespace ddl {

/// MPI as this process has it: who starts and ends it, its return codes as errors, and what it sends for us when we
/// are gone.
///
/// MPI can be started and ended once in a process. Who starts it ends it: a program that called `MPI_Init` keeps that
/// duty, and if `start` had to do it, MPI is finalised when the process exits, or unloads the library that did, once pending
/// calls have been carried out. Errors of MPI then return; a program that started MPI itself decides that with the error
/// handler of MPI_COMM_WORLD, where MPICH's `MPI_Test` looks for it.
class mpi_runtime {
public:
    /// Whether MPI calls are allowed at all.
    static bool is_up() noexcept {
        int started = 0;
        int finalised = 0;
        return MPI_Initialized(&started) == MPI_SUCCESS && started != 0 && MPI_Finalized(&finalised) == MPI_SUCCESS &&
               finalised == 0;
    }
    /// Whether they were, and are no more: MPI does not start again.
    static bool is_over() noexcept {
        int finalised = 0;
        return MPI_Finalized(&finalised) == MPI_SUCCESS && finalised != 0;
    }
    /// Whether they are allowed no more, told by MPI when it ends: to look costs less than to ask. MPI is up.
    static const std::atomic<bool>& ended() {
        static end_of_mpi end;
        return end.has_come;
    }

    /// Starts MPI if nobody did. Throws if MPI knows of none of the processes that the launcher started beside this one.
    static void start() {
        static const session ours;
        if (!is_up()) return;  // it has ended, which its users are told
        int size = 0;
        check(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size", "mpi", -1);
        for (const char* const variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
            if (const char* const said = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): nothing here sets any
                size == 1 && said != nullptr && std::atoi(said) > 1)
                throw error(
                    errc::system, "mpi", -1, -1,
                    "a launcher has started %.9s processes, and MPI knows of this one alone; take the launcher of "
                    "the MPI that this was built with",
                    said);
    }

    /// Throws unless `code` is success. `operation` is the collective under way, `call` the MPI function.
    static void check(int code, const char* call, const char* operation, int rank) {
        if (code == MPI_SUCCESS) [[likely]]
            return;
        throw error(errc::system, operation, rank, -1, "%s refused: %s", call, reason(code).c_str());
    }

    /// A duplicate of `ranks`. All ranks call it; blocks until they have, which MPI_Comm_dup would without a
    /// deadline. Throws if some do not come before it: `ranks` is then of no more use to make anything of.
    static MPI_Comm duplicate(MPI_Comm ranks, timeout limit, const char* operation) {
        int rank = -1;
        int size = 0;
        check(MPI_Comm_rank(ranks, &rank), "MPI_Comm_rank", operation, rank);
        check(MPI_Comm_size(ranks, &size), "MPI_Comm_size", operation, rank);
        struct pending {
            MPI_Comm duplicate = MPI_COMM_NULL;
            MPI_Request made = MPI_REQUEST_NULL;
        };
        auto copy = std::make_unique<pending>();
        check(MPI_Comm_idup(ranks, &copy->duplicate, &copy->made), "MPI_Comm_idup", operation, rank);
        patience waiting{limit};
        for (int done = 0;;) {
            check(MPI_Test(&copy->made, &done, MPI_STATUS_IGNORE), "MPI_Test", operation, rank);
            if (done != 0) break;
            if (!waiting.pause() || !waiting.expired()) continue;
            static_cast<void>(copy.release());  // MPI cannot take it back, and writes there should they come after all
            throw error(errc::timeout, operation, rank, -1,
                        "not all %d ranks have arrived within %g s; make it on every rank, or set a longer timeout",
                        size, waiting.limit());
        }
        return copy->duplicate;
    }

    /// Whether any thread may call MPI at any time.
    static bool any_thread() noexcept {
        int level = MPI_THREAD_SINGLE;
        return MPI_Query_thread(&level) == MPI_SUCCESS && level == MPI_THREAD_MULTIPLE;
    }

    /// Sends `bytes` to all ranks but `rank`, now or later, without a wait and without an error. May throw `bad_alloc`.
    static void send_to_all(const std::vector<char>& bytes, int tag, MPI_Comm ranks, int rank, int size) {
        farewells& kept = farewells::all();
        const std::lock_guard lock{kept.mutex};
        farewell& mine = kept.list.emplace_back(farewell{bytes, {}});
        mine.under_way.reserve(static_cast<std::size_t>(size));
        for (int peer = 0; peer < size; ++peer) {
            MPI_Request sent = MPI_REQUEST_NULL;
            if (peer != rank && MPI_Isend(mine.bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, peer, tag, ranks,
                                          &sent) == MPI_SUCCESS)
                mine.under_way.push_back(sent);
        }
    }
    /// Forgets what has been sent.
    static void sweep() noexcept {
        farewells& kept = farewells::all();
        const std::lock_guard lock{kept.mutex};
        kept.list.remove_if([](farewell& one) {
            int done = 0;
            const int code =
                MPI_Testall(static_cast<int>(one.under_way.size()), one.under_way.data(), &done, MPI_STATUSES_IGNORE);
            return code == MPI_SUCCESS && done != 0;
        });
    }

    /// One that no call of the job has given before.
    static std::uint64_t new_number() noexcept {
        static std::atomic<std::uint64_t> given{0};
        const auto process = static_cast<std::uint64_t>(::getpid());
        const auto moment = static_cast<std::uint64_t>(now() * 1e9);
        return (moment ^ process << 40) + given.fetch_add(1);
    }

private:
    /// What MPI says of `code`: of several lines the first, and the last, where MPICH names the cause after all functions.
    static text reason(int code) noexcept {
        char words[MPI_MAX_ERROR_STRING] = "it does not say why";
        int length = 0;
        MPI_Error_string(code, words, &length);
        std::string_view said{words};
        while (said.ends_with('\n')) said.remove_suffix(1);
        const std::size_t first = std::min(said.find('\n'), said.size());
        text kept;
        kept.append("%.*s", static_cast<int>(first), said.data());
        if (first == said.size()) return kept;
        said.remove_prefix(said.rfind('\n') + 1);
        kept.append(" %.*s", static_cast<int>(said.size()), said.data());
        return kept;
    }

    /// What hangs on MPI_COMM_SELF MPI_Finalize removes first, and tells. It goes with the library that holds this code.
    struct end_of_mpi {
        end_of_mpi() {
            const auto tell = [](MPI_Comm, int, void* flag, void*) {
                static_cast<std::atomic<bool>*>(flag)->store(true, std::memory_order_relaxed);
                return MPI_SUCCESS;
            };
            check(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, tell, &key, nullptr), "MPI_Comm_create_keyval", "mpi",
                  -1);
            check(MPI_Comm_set_attr(MPI_COMM_SELF, key, &has_come), "MPI_Comm_set_attr", "mpi", -1);
        }
        end_of_mpi(const end_of_mpi&) = delete;
        end_of_mpi& operator=(const end_of_mpi&) = delete;
        ~end_of_mpi() {
            if (::getpid() != process || !is_up()) return;
            MPI_Comm_delete_attr(MPI_COMM_SELF, key);
            MPI_Comm_free_keyval(&key);
        }
        std::atomic<bool> has_come{false};
        int key = MPI_KEYVAL_INVALID;
        const ::pid_t process = ::getpid();
    };

    struct session {
        session() {
            int started = 0;
            check(MPI_Initialized(&started), "MPI_Initialized", "mpi", -1);
            if (started != 0) return;
            int level = MPI_THREAD_SINGLE;
            check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level), "MPI_Init_thread", "mpi", -1);
            is_ours = true;
            for (const MPI_Comm ranks :
                 {MPI_COMM_WORLD, MPI_COMM_SELF})  // MPICH asks them when a message under way fails
                check(MPI_Comm_set_errhandler(ranks, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler", "mpi", -1);
        }
        session(const session&) = delete;
        session& operator=(const session&) = delete;
        ~session() {
            if (!is_ours || ::getpid() != process || !is_up()) return;  // MPI of a process that forked is that one's
            call_queue::drain_all();  // whose communicators may go later, or never, and whose calls may be in MPI
            sweep();
            MPI_Finalize();
        }
        bool is_ours = false;
        const ::pid_t process = ::getpid();
    };

    /// Messages that nobody waits for, and whose bytes must outlive them.
    struct farewell {
        std::vector<char> bytes;
        std::vector<MPI_Request> under_way;
    };
    struct farewells {
        static farewells& all() {
            static farewells& kept = *new farewells;  // stays: MPI may send until it is finalised
            return kept;
        }
        std::mutex mutex;
        std::list<farewell> list;
    };
};

/// Rank `rank` of `size` in `ranks`, where `tag` is free. `operation` is for errors.
struct mpi_group {
    MPI_Comm ranks;
    int rank;
    int size;
    int tag;
    const char* operation;
    void check(int code, const char* call) const { mpi_runtime::check(code, call, operation, rank); }

    /// What `ask()` gives, if it gives something on all ranks; else all of them throw: one that did so alone would leave the others in
    /// MPI, which knows no deadline. All ranks call it; blocks.
    template <class Ask>
    auto all_or_none(const Ask& ask) const {
        std::optional<decltype(ask())> answer;
        std::exception_ptr complaint;
        try {
            answer = ask();
        } catch (...) { complaint = std::current_exception(); }
        const int sensible = answer ? 1 : 0;
        int all = 0;
        check(MPI_Allreduce(&sensible, &all, 1, MPI_INT, MPI_MIN, ranks), "MPI_Allreduce");
        if (complaint) std::rethrow_exception(complaint);
        if (all == 0) throw senseless_elsewhere({operation}, rank);
        return *answer;
    }
};

}  // namespace ddl

#endif
