// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/call.hpp>
#include <ddl/schedule/chain.hpp>
#include <ddl/schedule/cost.hpp>
#include <ddl/schedule/direct.hpp>
#include <ddl/schedule/few_or_many.hpp>
#include <ddl/schedule/halving_direct_or.hpp>
#include <ddl/schedule/hierarchical.hpp>
#include <ddl/schedule/recursive_doubling.hpp>
#include <ddl/schedule/recursive_halving.hpp>
#include <ddl/schedule/ring.hpp>
#include <ddl/schedule/rooted.hpp>
#include <ddl/schedule/selected.hpp>
#include <ddl/schedule/tree.hpp>
#include <ddl/transport/staging_transport.hpp>

#include <algorithm>
#include <limits>

namespace ddl {

/// "The schedule that suits the transport and the op": what a call takes when it names none.
struct tuned {
    static constexpr const char* name = "tuned";
};

/// What `tuned` stands for. Over memory `direct`, which runs fused; over messages few steps for short vectors and few bytes
/// for long ones. Ops that do not commute get schedules that keep rank order. Specialise it to tune for a machine.
template <collective What, bool Commutes, class Transport>
struct default_schedule {
    using type = direct;
};

/// The link under a transport of messages. Specialise it for a machine, in every program of a job alike:
/// `template <> inline constexpr ddl::link_cost ddl::link_of<ddl::mpi>{.message = 1e-6, .byte = 4e-11, .combined = 4e-11};`
template <class Transport>
inline constexpr link_cost link_of = links::hundred_gigabit;

/// Doubling up to about the length at which halving becomes cheaper over `Transport`. Asked of eight ranks: more move it little.
/// From half of that up to eight times as much the number of ranks decides: the more there are, the later so many messages pay.
/// On one host, where they cost little, they pay sooner; not where ranks share cores, and pass messages whole. Where each has a core,
/// halving pays soonest of all, and `direct` where ranks do not halve well; of two it saves the copies of a whole vector.
template <class Transport>
inline constexpr std::size_t halving_pays =
    crossover(allreduce_program<recursive_doubling>(8), allreduce_program<recursive_halving>(8), link_of<Transport>);
inline constexpr int any_number = std::numeric_limits<int>::max();
template <class Transport>
using doubling_then_halving = selected<
    own_core_at_most<halving_pays<Transport> / 2, 2, 2, recursive_doubling>,
    own_core_at_most<static_cast<std::size_t>(-1), 2, 2, recursive_halving>,
    own_core_at_most<halving_pays<Transport> / 16, 3, 3, recursive_doubling>,
    own_core_at_most<3 * halving_pays<Transport> / 2, 3, 3, direct>,
    own_core_at_most<3 * halving_pays<Transport> / 16, 4, any_number, recursive_doubling>,
    own_core_at_most<3 * halving_pays<Transport> / 8, 4, any_number, halving_direct_or<0, recursive_doubling>>,
    own_core_at_most<2 * halving_pays<Transport>, 5, 7, direct>,
    own_core_at_most<static_cast<std::size_t>(-1), 4, 4, recursive_halving>,
    own_core_at_most<static_cast<std::size_t>(-1), 8, any_number, recursive_halving>,
    at_most<3 * halving_pays<Transport> / 8, recursive_doubling>,
    crowded_at_most<6 * halving_pays<Transport>, 8, 8, tree, nearer::neighbours>,
    at_most<halving_pays<Transport> / 2, recursive_doubling>,
    crowded_at_most<4 * halving_pays<Transport>, 8, 8, recursive_halving, nearer::halves_apart>,
    crowded_at_most<2 * halving_pays<Transport>, 3, 3, tree>, crowded_at_most<6 * halving_pays<Transport>, 5, 7, tree>,
    long_whole_at_most<8 * halving_pays<Transport>, 3, 3, tree>,
    long_whole_at_most<6 * halving_pays<Transport>, 5, 7, tree>,
    long_whole_at_most<8 * halving_pays<Transport>, 8, 8, tree, nearer::neighbours>,
    near_at_most<2 * halving_pays<Transport>, 6, 7, direct>,
    near_at_most<3 * halving_pays<Transport> / 2, 8, 8, direct>,
    at_most<halving_pays<Transport>, halving_direct_or<0, recursive_doubling>>,
    at_most<2 * halving_pays<Transport>, halving_direct_or<5, recursive_doubling>>,
    at_most<8 * halving_pays<Transport>, halving_direct_or<7, recursive_halving>>, otherwise<recursive_halving>>;

/// About the length from which to halve a broadcast becomes cheaper than a tree.
template <class Transport>
inline constexpr std::size_t halving_a_broadcast_pays =
    crossover(tree::broadcast(8, 0), broadcast_program<recursive_halving>(8, 0), link_of<Transport>);

/// `First`, then a tree up to about the length at which halving becomes cheaper; among few ranks of one host up to `Near` bytes, and
/// `NearEight` of eight, which halve well; of two there always, for half of a message is no sooner there than all of it. From 2 MiB on
/// a chain, along which few ranks of one host pass pieces that stay in their caches.
template <class Transport, std::size_t Near, std::size_t NearEight, class... First>
using tree_then_halving =
    selected<First..., near_at_most<static_cast<std::size_t>(-1), 2, 2, tree>, near_at_most<Near, 3, 7, tree>,
             near_at_most<NearEight, 8, 8, tree>, at_most<halving_a_broadcast_pays<Transport>, tree>,
             at_most<std::max(halving_a_broadcast_pays<Transport> + 1, std::size_t{1} << 21), recursive_halving>,
             near_at_most<static_cast<std::size_t>(-1), 3, 8, chain<16>>, otherwise<recursive_halving>>;

template <message_transport Transport>
struct default_schedule<collective::allreduce, true, Transport> {
    using type = doubling_then_halving<Transport>;
};
template <message_transport Transport>
struct default_schedule<collective::allreduce, false, Transport> {
    using type = selected<at_most<32768, recursive_doubling>, otherwise<direct>>;
};
template <message_transport Transport>
struct default_schedule<collective::reduce_scatter, true, Transport> {
    using type = recursive_halving;
};
/// Choices of few ranks of one host, up to so many KiB: of those that have a core each, of those that share cores and pass messages
/// whole, and of those that pass only long ones whole.
struct near_choices {
    static constexpr std::size_t any_length = static_cast<std::size_t>(-1);
    template <std::size_t Kibibytes>
    static constexpr std::size_t bytes = Kibibytes == any_length ? any_length : Kibibytes * 1024;
    template <std::size_t Kibibytes, int Least, int Most, class Schedule>
    using own_core = own_core_at_most<bytes<Kibibytes>, Least, Most, Schedule>;
    template <std::size_t Kibibytes, int Least, int Most, class Schedule, nearer... Close>
    using crowded = crowded_at_most<bytes<Kibibytes>, Least, Most, Schedule, Close...>;
    template <std::size_t Kibibytes, int Least, int Most, class Schedule, nearer... Close>
    using long_whole = long_whole_at_most<bytes<Kibibytes>, Least, Most, Schedule, Close...>;
};

template <message_transport Transport>
struct default_schedule<collective::reduce, true, Transport> : private near_choices {
    // Three ranks that have a core each reach the root in one round, and so do five that bring more than 2 KiB.
    using type = tree_then_halving<Transport, (1 << 17), (1 << 17), own_core_at_most<256, 3, 3, tree>,
                                   own_core<256, 3, 3, direct>, own_core<2, 5, 5, tree>, own_core<128, 5, 5, direct>,
                                   long_whole<any_length, 3, 3, tree>, long_whole<1024, 4, 7, tree>,
                                   long_whole<1024, 8, 8, tree, nearer::neighbours>>;
};

template <bool Commutes, message_transport Transport>
struct default_schedule<collective::all_gather, Commutes, Transport> : private near_choices {
    // Few ranks of one host get the blocks of a long vector from where they are, in one round, sooner than in ever longer parts.
    // Where they share cores another round is a wait for a core, and so do those of all that does not ride in it; of four, seven
    // and eight ranks, which halve well, only while it is short.
    using type =
        selected<own_core<12, 3, 3, recursive_halving>, own_core<512, 3, 3, direct>,
                 own_core<16, 5, 6, recursive_halving>, own_core<8192, 5, 6, direct>,
                 crowded<8, 3, 3, recursive_halving>, crowded<12, 4, 4, recursive_halving>,
                 crowded<16, 5, 6, recursive_halving>, crowded<24, 7, 7, recursive_halving>, crowded<64, 4, 4, direct>,
                 crowded<64, 7, 7, direct>, crowded<8192, 3, 3, direct>, crowded<8192, 5, 6, direct>,
                 long_whole<8, 3, 3, recursive_halving>, long_whole<12, 4, 4, recursive_halving>,
                 long_whole<16, 5, 6, recursive_halving>, long_whole<24, 7, 7, recursive_halving>,
                 long_whole<28, 8, 8, recursive_halving>, long_whole<64, 8, 8, direct>, long_whole<64, 4, 4, direct>,
                 long_whole<128, 4, 4, direct, nearer::halves_apart>, long_whole<128, 7, 7, direct>,
                 long_whole<8192, 3, 3, direct>, long_whole<8192, 5, 6, direct>, at_most<(8 << 20), recursive_halving>,
                 near_at_most<any_length, 3, 8, direct>, otherwise<recursive_halving>>;
};
template <bool Commutes, message_transport Transport>
struct default_schedule<collective::broadcast, Commutes, Transport> : private near_choices {
    // The root reaches two others that have a core each in one round, and four with what is long. Where ranks share cores and pass
    // messages whole, each copies what is long for itself, and waits for no other that must have it first.
    using type =
        tree_then_halving<Transport, (1 << 19), (1 << 18), own_core_at_most<256, 3, 3, tree>,
                          own_core<1024, 3, 3, direct>, own_core<64, 5, 5, tree>, own_core<512, 5, 5, direct>,
                          crowded<2, 3, 3, tree>, crowded<12, 4, 4, tree>, crowded<1024, 5, 7, tree>,
                          crowded<12, 8, 8, tree>, crowded<512, 4, 4, direct, nearer::halves_apart>,
                          crowded<1536, 4, 4, recursive_halving, nearer::halves_apart>,
                          crowded<any_length, 3, 8, direct>, long_whole<2, 3, 3, tree>, long_whole<12, 4, 4, tree>,
                          long_whole<48, 5, 7, tree>, long_whole<12, 8, 8, tree>, long_whole<any_length, 3, 8, direct>>;
};
template <bool Commutes, message_transport Transport>
struct default_schedule<collective::gather, Commutes, Transport> {
    using type = selected<at_most<65536, tree>, otherwise<direct>>;
};
template <bool Commutes, message_transport Transport>
struct default_schedule<collective::scatter, Commutes, Transport> {
    using type = selected<at_most<65536, tree>, otherwise<direct>>;
};
template <bool Commutes, message_transport Transport>
struct default_schedule<collective::all_to_all, Commutes, Transport> {
    using type =
        selected<at_most<(1 << 20), direct>, near_at_most<static_cast<std::size_t>(-1), 2, 8, direct>, otherwise<ring>>;
};

/// Levels whose innermost is a library that carries whole collectives.
template <class Transport>
concept library_inside = stacked_transport<Transport> && requires {
    std::remove_reference_t<decltype(std::declval<Transport&>().node())>::chooses_schedule;
};

/// A level a schedule: long vectors are reduced inside, then across. How short ones travel is the wire's affair. Among few
/// nodes the longest go round in a ring: partners that never change keep their connections at full speed.
template <class Outer, class Short, class Longest>
using levels_for_long = selected<at_most<16384, Short>, at_most<std::size_t{4} << 20, hierarchical<direct, Outer>>,
                                 otherwise<hierarchical<direct, few_or_many<16, Longest, Outer>>>>;
template <clustered_transport Transport>
struct default_schedule<collective::allreduce, true, Transport> {
    using type = levels_for_long<recursive_halving, recursive_doubling, ring>;
};
template <clustered_transport Transport>
struct default_schedule<collective::allreduce, false, Transport> {
    using type = selected<at_most<32768, recursive_doubling>, otherwise<direct>>;  // whose ranks may not be consecutive
};
template <collective What, bool Commutes, stacked_transport Transport>
    requires(What != collective::broadcast)
struct default_schedule<What, Commutes, Transport> {
    using type =
        std::conditional_t<library_inside<Transport>, tuned,
                           hierarchical<direct, std::conditional_t<Commutes, recursive_halving, recursive_doubling>>>;
};

template <bool Commutes, stacked_transport Transport>
struct default_schedule<collective::broadcast, Commutes, Transport> {
    using type = tuned;  // each level's own
};

template <collective What, bool Commutes, staging_transport Transport>
struct default_schedule<What, Commutes, Transport> {
    using type = tuned;  // that of the transport under it
};

template <class Schedule, collective What, class Op, class Transport>
struct resolution {
    using type = Schedule;
};
template <collective What, class Op, class Transport>
struct resolution<tuned, What, Op, Transport> {
    using type = typename default_schedule<What, commutes<Op> || std::same_as<Op, no_op>, Transport>::type;
};
/// `Schedule`, or what `tuned` stands for in this call.
template <class Schedule, collective What, class Op, class Transport>
using resolved = typename resolution<Schedule, What, Op, Transport>::type;

/// What a plan runs: the schedule that was named, or the transport's own. A cluster decides when it knows its nodes.
template <class Schedule, collective What, class Op, class Transport>
using schedule_of =
    std::conditional_t<clustered_transport<Transport>, Schedule, resolved<Schedule, What, Op, Transport>>;

}  // namespace ddl
