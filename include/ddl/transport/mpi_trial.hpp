// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/mpi_runtime.hpp>
#include <ddl/transport/patience.hpp>
#include <ddl/transport/segmenting.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

#if __has_include(<mpi.h>)

namespace ddl {

/// Messages between ranks 0 and 1 of a group, whole and in pieces: which take less time?
///
/// What leaves has just been stored to and what comes is read, as in a collective: a copy by the system finds other lines in the
/// caches then than one of bytes that nobody has touched. Both ranks call each function, with the same arguments.
class mpi_trial {
public:
    /// Of messages of up to `longest` bytes, in pieces of `piece`.
    mpi_trial(const mpi_group& all, std::size_t piece, std::size_t longest)
        : all_{all}, piece_{piece}, out_(longest), in_(longest), under_way_(2 * (longest / piece + 1)) {
        // libraries take the memory that messages pass through in turn: what is new to a process comes first
        for (std::size_t pieces = 0; pieces < 128; pieces += longest / piece)
            static_cast<void>(seconds(passage::both_ways, longest, piece));
    }

    /// The longest message that pieces pay for, if they do for shorter ones: at least `least` and at most `most` bytes. They pay if they
    /// take less than `bar` of the time.
    std::size_t longest(passage way, std::size_t least, std::size_t most, double bar) {
        std::size_t found = least;
        bool failed = false;  // one length may by chance
        for (const std::size_t pages : {2U, 3U, 4U, 6U, 8U, 12U, 16U, 24U, 32U}) {
            const std::size_t bytes = 4096 * pages;
            if (bytes <= least || bytes > most) continue;
            const bool pay = pays(way, bytes, bar);
            if (failed && !pay) break;
            failed = !pay;
            if (pay) found = bytes;
        }
        return found;
    }

private:
    /// Whether a message of `bytes` takes less in pieces, as rank 0 finds.
    bool pays(passage way, std::size_t bytes, double bar) {
        constexpr int trials = 4;
        double whole = 1, cut = 1;  // seconds
        for (int i = 0; i < trials; ++i) {
            whole = std::min(whole, seconds(way, bytes, bytes));
            cut = std::min(cut, seconds(way, bytes, piece_));
        }
        int pay = cut < bar * whole ? 1 : 0;
        if (all_.rank == 0) all_.check(MPI_Send(&pay, 1, MPI_INT, 1, all_.tag, all_.ranks), "MPI_Send");
        else all_.check(MPI_Recv(&pay, 1, MPI_INT, 0, all_.tag, all_.ranks, MPI_STATUS_IGNORE), "MPI_Recv");
        return pay != 0;
    }

    /// What both ways take, at a time or one after the other.
    double seconds(passage way, std::size_t bytes, std::size_t piece) {
        for (std::size_t i = 0; i < bytes; i += line) ++out_[i];
        const double start = now();
        if (way == passage::both_ways) pass(bytes, piece, true, true);
        else
            for (const bool turn : {false, true}) {
                const bool sends = (all_.rank == 1) == turn;
                pass(bytes, piece, sends, !sends);
            }
        const double taken = now() - start;
        for (std::size_t i = 0; i < bytes; i += line) out_[i] = static_cast<char>(out_[i] ^ in_[i]);
        return taken;
    }

    /// Passes `bytes` in pieces of `piece`, this way or that or both.
    void pass(std::size_t bytes, std::size_t piece, bool sends, bool receives) {
        int count = 0;
        const auto each = [&](const auto& begin) {
            for (std::size_t at = 0; at < bytes; at += piece)
                begin(at, static_cast<int>(std::min(piece, bytes - at)),
                      &under_way_[static_cast<std::size_t>(count++)]);
        };
        if (receives)
            each([&](std::size_t at, int length, MPI_Request* request) {
                all_.check(MPI_Irecv(in_.data() + at, length, MPI_BYTE, 1 - all_.rank, all_.tag, all_.ranks, request),
                           "MPI_Irecv");
            });
        if (sends)
            each([&](std::size_t at, int length, MPI_Request* request) {
                all_.check(MPI_Isend(out_.data() + at, length, MPI_BYTE, 1 - all_.rank, all_.tag, all_.ranks, request),
                           "MPI_Isend");
            });
        all_.check(MPI_Waitall(count, under_way_.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    }

    static constexpr std::size_t line = 64;

    const mpi_group& all_;
    std::size_t piece_;
    std::vector<char> out_, in_;
    std::vector<MPI_Request> under_way_;
};

}  // namespace ddl

#endif
