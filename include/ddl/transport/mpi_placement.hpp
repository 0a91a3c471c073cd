// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/kernel/hand_back.hpp>
#include <ddl/transport/mpi_runtime.hpp>
#include <ddl/transport/mpi_trial.hpp>
#include <ddl/transport/segmenting.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#if __has_include(<mpi.h>)

namespace ddl {

/// Where the ranks of a communicator run, as far as this one knows, and how messages between those of one host are best cut.
class mpi_placement {
public:
    /// How messages are cut where all ranks are on one host and pieces pay, and where they do not.
    ///
    /// What is no longer than `short_bytes` passes through memory that both processes have mapped; for what is longer most libraries
    /// wait for the receiver, who has the system copy it from the sender's memory. In pieces a message is copied twice and waits
    /// for nobody: up to some length that takes less time, up to a greater one if the sender's core is not busy receiving
    /// meanwhile, or is the receiver's. Open MPI has a quicker way yet for the shortest.
#ifdef OPEN_MPI
    static constexpr segmenting host_segments{.bytes = std::size_t{1} << 20,
                                              .depth = 40,
                                              .short_message = std::size_t{128} << 10,
                                              .short_bytes = 3968,
                                              .short_exchange = std::size_t{32} << 10,
                                              .short_beside = std::size_t{80} << 10,
                                              .short_load = std::size_t{16} << 10,
                                              .long_operand = std::size_t{1} << 20,
                                              .quick_message = 512,
                                              .quick_bytes = 256,
                                              .combining = std::size_t{1} << 20};
    /// Where pieces that go one way pay for less, as on AMD's processors before Zen 5.
    static constexpr segmenting older_segments = [] {
        segmenting cut = host_segments;
        cut.short_message = std::size_t{24} << 10;
        return cut;
    }();
    static constexpr segmenting whole_segments{.bytes = std::size_t{1} << 20,
                                               .depth = 40,
                                               .short_message = std::size_t{16} << 10,
                                               .short_bytes = 3968,
                                               .short_exchange = std::size_t{8} << 10,
                                               .short_beside = std::size_t{24} << 10,
                                               .short_load = std::size_t{32} << 10,
                                               .quick_message = 512,
                                               .quick_bytes = 256,
                                               .combining = std::size_t{1} << 20};
#else
#if defined(MPICH_NUMVERSION) && !defined(I_MPI_VERSION)
    // the longest that is passed so: MPICH 5 counts its own words with it
    static constexpr std::size_t quick_piece = MPICH_NUMVERSION < 50'000'000 ? 8192 : 8064;
    static constexpr segmenting whole_segments{.bytes = std::size_t{1} << 20,
                                               .depth = 40,
                                               .short_message = std::size_t{32} << 10,
                                               .short_bytes = quick_piece,
                                               .short_exchange = std::size_t{16} << 10,
                                               .short_beside = std::size_t{24} << 10,
                                               .short_load = std::size_t{48} << 10,
                                               .combining = std::size_t{1} << 20};
#else
    static constexpr std::size_t quick_piece = 8064;
    static constexpr segmenting whole_segments{
        .bytes = std::size_t{1} << 20, .depth = 40, .combining = std::size_t{1} << 20};
#endif
    static constexpr segmenting host_segments{.bytes = std::size_t{1} << 20,
                                              .depth = 40,
                                              .short_message = std::size_t{128} << 10,
                                              .short_bytes = quick_piece,
                                              .short_load = std::size_t{16} << 10,
                                              .combining = std::size_t{1} << 20};
    static constexpr segmenting older_segments = host_segments;
#endif

    mpi_placement() = default;
    /// All ranks call it; blocks.
    explicit mpi_placement(const mpi_group& all) {
        MPI_Comm neighbours = MPI_COMM_NULL;
        all.check(MPI_Comm_split_type(all.ranks, MPI_COMM_TYPE_SHARED, all.rank, MPI_INFO_NULL, &neighbours),
                  "MPI_Comm_split_type");
        int members = 0;
        all.check(MPI_Comm_size(neighbours, &members), "MPI_Comm_size");
        place here{all.rank, bound_core()};
        all.check(MPI_Bcast(&here.host, 1, MPI_INT, 0, neighbours), "MPI_Bcast");
        all.check(MPI_Comm_free(&neighbours), "MPI_Comm_free");
        look_around(all, here);
        ranks_of_host_ = members;
        one_host_ = members == all.size;
        uncrowded_ = one_host_ && cores_for(all.size) >= all.size && !bound_together_;
        if (one_host_ && all.size > 1) try_pieces(all);
    }

    int ranks_of_host() const noexcept { return ranks_of_host_; }
    bool on_one_host() const noexcept { return one_host_; }
    bool uncrowded() const noexcept { return uncrowded_; }
    bool dealt_in_turn() const noexcept { return dealt_in_turn_; }
    /// By the processor: elsewhere a line that another core has stored to is fetched soon enough to be passed once more.
    static bool pieces_pay() noexcept { return kernel::readers_hold_up_writers(); }
    const segmenting* segments_here() const noexcept { return here_ ? &*here_ : nullptr; }
    bool beside(int peer) const noexcept {
        return !beside_.empty() && std::binary_search(beside_.begin(), beside_.end(), peer);
    }
    /// Takes the cores of a part for shared where those of the `whole` are.
    void crowd_as(const mpi_placement& whole) noexcept {
        if (uncrowded_ && whole.one_host_ && !whole.uncrowded_) cut_by_processor();
        uncrowded_ = uncrowded_ && whole.uncrowded_;
    }

private:
    /// Where a rank runs: `host` is the first rank there, `core` the one that it is bound to or -1.
    struct place {
        int host;
        int core;
        /// How much of a machine two ranks share.
        int shares(const place& other) const noexcept {
            return host != other.host ? 0 : core < 0 || core != other.core ? 1 : 2;
        }
    };
    /// Learns where the others run. All ranks call it.
    void look_around(const mpi_group& all, const place& here) {
        static_assert(sizeof(place) == 2 * sizeof(int));
        std::vector<place> places(static_cast<std::size_t>(all.size));
        all.check(MPI_Allgather(&here, 2, MPI_INT, places.data(), 2, MPI_INT, all.ranks), "MPI_Allgather");
        const std::size_t half = places.size() / 2;
        int by_neighbours = 0, by_halves = 0;
        for (std::size_t rank = 0; rank < half; ++rank) {
            by_neighbours += places[2 * rank].shares(places[2 * rank + 1]);
            by_halves += places[rank].shares(places[rank + half]);
        }
        dealt_in_turn_ = by_halves > by_neighbours;
        for (int rank = 0; rank < all.size; ++rank)
            if (rank != all.rank && here.shares(places[static_cast<std::size_t>(rank)]) == 2) beside_.push_back(rank);
        const auto by_core = [](const place& one, const place& other) {
            return std::pair{one.host, one.core} < std::pair{other.host, other.core};
        };
        std::sort(places.begin(), places.end(), by_core);
        bound_together_ = std::adjacent_find(places.begin(), places.end(), [](const place& one, const place& other) {
                              return one.shares(other) == 2;
                          }) != places.end();
    }

    /// Finds up to which length messages go in pieces. Where ranks share cores a trial would take long, and be chance: there the
    /// processor decides. All ranks call it, and get the same.
    void try_pieces(const mpi_group& all) {
        int share = uncrowded_ ? 0 : 1;
        all.check(MPI_Bcast(&share, 1, MPI_INT, 0, all.ranks), "MPI_Bcast");
        uncrowded_ = share == 0;
        if (share != 0) return cut_by_processor();
        segmenting cut = pieces_pay() ? host_segments : whole_segments;
        const std::size_t piece = cut.short_bytes;
        if (piece == 0) return;
        unsigned long long longest[2] = {};
        if (all.rank < 2) {
            mpi_trial between{all, piece, host_segments.short_message};
            const auto find = [&](passage way, double bar) {
                const std::size_t least = pieces_pay() ? piece : whole_segments.longest_short(way);
                return between.longest(way, least, host_segments.longest_short(way), pieces_pay() ? bar : sure);
            };
            // a broadcast, which folds nothing while pieces come, gains less by them than is found here
            longest[0] = find(passage::one_way, 0.9);
            longest[1] = find(passage::both_ways, 1);
        }
        all.check(MPI_Bcast(longest, 2, MPI_UNSIGNED_LONG_LONG, 0, all.ranks), "MPI_Bcast");
        cut.short_message = static_cast<std::size_t>(longest[0]);
        cut.short_exchange = static_cast<std::size_t>(longest[1]);
        here_ = cut;
    }

    void cut_by_processor() noexcept {
        here_.reset();
        if (pieces_pay() && !kernel::string_moves_take_lines()) here_ = older_segments;
    }

    /// Where pieces should not pay, by the processor, a trial that says so must be no chance.
    static constexpr double sure = 0.8;

    int ranks_of_host_ = 1;
    bool one_host_ = false;
    bool uncrowded_ = false;
    bool dealt_in_turn_ = false;
    bool bound_together_ = false;  // some ranks to one core
    std::optional<segmenting> here_;
    std::vector<int> beside_;  // the other ranks of this one's core, in order
};

}  // namespace ddl

#endif
