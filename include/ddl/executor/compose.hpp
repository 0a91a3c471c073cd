// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/proved_program.hpp>
#include <ddl/executor/tuning.hpp>
#include <ddl/transport/carries_calls.hpp>
#include <ddl/transport/device_messages.hpp>
#include <ddl/transport/grid_transport.hpp>
#include <ddl/transport/staging_transport.hpp>

namespace ddl {

/// Whether a schedule, or every choice of a `selected`, can carry a collective at all.
template <class Schedule, collective What>
inline constexpr bool offers = [] {
    if constexpr (What == collective::allreduce || What == collective::barrier) return schedule<Schedule>;
    else if constexpr (What == collective::reduce_scatter || What == collective::all_gather)
        return has_halves<Schedule>;
    else if constexpr (What == collective::broadcast) return broadcasts<Schedule>;
    else if constexpr (What == collective::reduce) return reduces<Schedule>;
    else if constexpr (What == collective::gather) return gathers<Schedule>;
    else if constexpr (What == collective::scatter) return scatters<Schedule>;
    else return exchanges<Schedule>;
}();
template <class... Choices, collective What>
inline constexpr bool offers<selected<Choices...>, What> = (offers<typename Choices::type, What> && ...);

template <class Schedule>
inline constexpr bool is_schedule = schedule<Schedule>;
template <>
inline constexpr bool is_schedule<tuned> = true;  // of a cluster, which decides when it knows its nodes
template <collective What>
inline constexpr bool offers<tuned, What> = true;
template <class... Choices>
inline constexpr bool is_schedule<selected<Choices...>> = (schedule<typename Choices::type> && ...);

/// Programs of more chunks are not asked in calls: compilers limit what they evaluate at once.
inline constexpr int most_proved_chunks = 32;

/// Whether the rounds do what the collective promises.
template <class Schedule, collective What>
constexpr bool adds_up(int size, int root) {
    const auto rounds = program_of<Schedule, What>(size, root);
    if (chunks_of(rounds) > most_proved_chunks) return true;
    return bool(prove<What>(rounds, root));
}
/// Whether one rank of a collective is another than the rest; it is asked for the first and the last.
template <collective What>
inline constexpr bool has_root = What == collective::broadcast || What == collective::reduce ||
                                 What == collective::gather || What == collective::scatter;
template <class Schedule, collective What, int Size>
inline constexpr bool proved_among =
    adds_up<Schedule, What>(Size, 0) && (!has_root<What> || adds_up<Schedule, What>(Size, Size - 1));

/// Reads the transfers of a schedule among 3 ranks, as a proof does.
template <textbook Schedule>
constexpr bool read_through() {
    const auto rounds = allreduce_program<Schedule>(3);
    if (chunks_of(rounds) > most_proved_chunks) return true;
    for (int rank = 0; rank < 3; ++rank)
        for (int round = 0; round < rounds.rounds(); ++round)
            for (int i = 0; i < rounds.width(rank, round); ++i) static_cast<void>(rounds.at(rank, round, i));
    return true;
}
template <class Schedule>
struct part_is_readable;

/// Whether the compiler can: of a schedule, of each choice, and of all the parts of one that is made of others. A composed one need not
/// be known to it.
template <class Schedule>
concept readable = !textbook<Schedule> || requires { typename std::bool_constant<read_through<Schedule>()>; };
template <class Schedule>
inline constexpr bool all_readable = every_choice<Schedule>::of(
    []<class S>(std::type_identity<S> = {}) { return readable<S> && parts_of<S>::template all<part_is_readable>; });
template <class Schedule>
struct part_is_readable : std::bool_constant<all_readable<Schedule>> {};

/// Whether the compiler knows the program of a composed schedule, which may depend on what is said at run time.
template <class Schedule, collective What>
concept known_rounds =
    textbook<Schedule> || requires { typename std::integral_constant<int, program_of<Schedule, What>(3, 0).rounds()>; };

template <class Schedule>
struct part_is_proved;

/// The same among some of 2 to 5, each asked alone, for a schedule may be for few numbers of ranks; and of all the parts of one that is
/// made of others.
template <class Schedule, collective What>
inline constexpr bool proved = every_choice<Schedule>::of([]<class S>(std::type_identity<S> = {}) {
    if constexpr (!parts_of<S>::template all<part_is_proved>) return false;
    else if constexpr (!known_rounds<S, What>) return true;
    else if constexpr (proved_among<S, What, 3>)
        return true;  // most end here, and what is not looked at is not evaluated
    else return proved_among<S, What, 4> || proved_among<S, What, 5> || proved_among<S, What, 2>;
});
template <collective What>
inline constexpr bool proved<tuned, What> = true;
template <class Schedule>
struct part_is_proved {
    static constexpr bool value = [] {
        if constexpr (has_halves<Schedule>)
            return proved<Schedule, collective::reduce_scatter> && proved<Schedule, collective::all_gather>;
        else return proved<Schedule, collective::allreduce>;
    }();
};

/// Whether a schedule combines operands in rank order in this collective: asked of the proof, for 2 to 7 ranks.
template <class Schedule, collective What>
inline constexpr bool in_rank_order =
    every_choice<Schedule>::of([]<class S>(std::type_identity<S> = {}) {  // an argument, or nvcc warns
        if constexpr (What != collective::reduce_scatter && What != collective::reduce) return keeps_rank_order<S>;
        else if constexpr (!parts_of<S>::template all<order_is_kept>) return false;
        else {
            for (int size = 2; size <= 7; ++size)
                if constexpr (What == collective::reduce_scatter) {
                    if (!prove_reduce_scatter<operand_order::ranks>(reduce_scatter_program<S>(size))) return false;
                } else {
                    for (int root = 0; root < size; ++root)
                        if (!prove_reduce<operand_order::ranks>(reduce_program<S>(size, root), root)) return false;
                }
            return true;
        }
    });

/// What may be named over levels with a library inside: the schedule across nodes, in a hierarchy whose inner is the library's.
template <class Schedule>
concept across_a_library = std::same_as<Schedule, tuned> || std::same_as<typename Schedule::inner, direct>;

/// Holds the policies of a call against each other. The first mismatch is the only error a user sees.
template <collective What, class Op, class Element, class Schedule, class Transport, class Checking = checked>
consteval bool compose() {
    constexpr bool reduces_values = !std::same_as<Op, no_op>;
    // over levels a reduction is an allreduce of which the others drop the result
    constexpr collective ordered_as = stacked_transport<Transport> ? collective::allreduce : What;
    if constexpr (std::same_as<Element, refused_element>) {
        return false;  // which has been said
    } else if constexpr (std::is_const_v<Transport> && communicator<std::remove_const_t<Transport>>) {
        static_assert(!std::is_const_v<Transport>,
                      "ddl: this communicator is const, and calls change it; pass one that is not");
    } else if constexpr (!communicator<Transport>) {
        static_assert(communicator<Transport>,
                      "ddl: this is no transport; pass a ddl::threads, ddl::shared_memory, ddl::mpi or ddl::cluster");
    } else if constexpr (!carries_calls<Transport>) {
        static_assert(carries_calls<Transport>,
                      "ddl: this communicator has neither messages nor memory; "
                      "static_assert(ddl::message_transport<yours>) says what is missing");
    } else if constexpr (std::is_const_v<Element>) {
        static_assert(!std::is_const_v<Element>, "ddl: the output is const; pass a range that can be written to");
    } else if constexpr (std::is_pointer_v<Element> || std::is_array_v<Element>) {
        static_assert(!std::is_pointer_v<Element> && !std::is_array_v<Element>,
                      "ddl: pointers and arrays are no elements; pass one span of all the values");
    } else if constexpr (!element<Element>) {
        static_assert(
            element<Element>,
            "ddl: an element must be trivially copyable, and nothing in it const or volatile; pass plain values, or a struct of them");
    } else if constexpr (!arguments_of<Schedule>::fit) {
        arguments_of<Schedule>::complain();
    } else if constexpr (!is_schedule<Schedule>) {
        static_assert(is_schedule<Schedule>,
                      "ddl: this is no schedule; write ddl::ring, or see docs/adding_a_schedule.md");
    } else if constexpr (misnamed<Schedule>) {
        static_assert(!misnamed<Schedule>,
                      "ddl: this schedule has a name that cannot be read; write static constexpr const char* name");
    } else if constexpr (!all_readable<Schedule>) {
        static_assert(
            all_readable<Schedule>,
            "ddl: the compiler cannot run this schedule for 3 ranks; make chunks, rounds and round constexpr, and keep "
            "to what their arrays hold");
    } else if constexpr (!checking_policy<Checking>) {
        static_assert(checking_policy<Checking>,
                      "ddl: after the schedule comes ddl::checked or ddl::unchecked; pass an op as an argument");
    } else if constexpr (requires { Transport::chooses_schedule; } && !std::same_as<Schedule, direct>) {
        static_assert(std::same_as<Schedule, direct>, "ddl: NCCL chooses its schedule itself; name none");
    } else if constexpr (library_inside<Transport> && What != collective::allreduce && What != collective::reduce &&
                         What != collective::broadcast && What != collective::barrier) {
        static_assert(
            !library_inside<Transport>,
            "ddl: ddl::layered with NCCL inside carries allreduce, reduce, broadcast and barrier; call over its "
            "levels");
    } else if constexpr (library_inside<Transport> && !across_a_library<Schedule>) {
        static_assert(
            across_a_library<Schedule>,
            "ddl: NCCL chooses its schedule inside a node itself; write ddl::hierarchical<ddl::direct, Outer>, "
            "or name none");
    } else if constexpr (stacked_transport<Transport> && What != collective::allreduce && What != collective::reduce &&
                         What != collective::broadcast && What != collective::barrier) {
        static_assert(!stacked_transport<Transport>,
                      "ddl: ddl::layered carries allreduce, reduce, broadcast and barrier; pass a ddl::cluster");
    } else if constexpr (staging_transport<Transport>) {
        using host = std::remove_reference_t<decltype(std::declval<Transport&>().host())>;
        return compose<What, Op, Element, schedule_of<Schedule, What, Op, host>, host, Checking>();
    } else if constexpr (device_message_transport<Transport> && !std::same_as<Schedule, direct>) {
        static_assert(std::same_as<Schedule, direct>,
                      "ddl: messages of device memory go to all ranks at once; write ddl::direct, or name no schedule");
    } else if constexpr (grid_transport<Transport> && !std::same_as<Schedule, direct>) {
        static_assert(std::same_as<Schedule, direct>,
                      "ddl: ranks on GPUs fold in one launch; write ddl::direct, or name no schedule");
    } else if constexpr (!stacked_transport<Transport> && !offers<Schedule, What>) {
        static_assert(
            offers<Schedule, What>,
            "ddl: this schedule has no program for this collective; write ddl::direct, or see docs/quick_reference.md");
    } else if constexpr (!proved<Schedule, ordered_as>) {
        static_assert(
            proved<Schedule, ordered_as>,
            "ddl: the rounds of this schedule do not add up to this collective; ask ddl::prove_allreduce why, "
            "see docs/adding_a_schedule.md");
    } else if constexpr (reduces_values) {
        if constexpr (misnamed<Op>)
            static_assert(!misnamed<Op>,
                          "ddl: this op has a name that cannot be read; write static constexpr const char* name");
        else if constexpr (names_commutative<Op> && !says_commutative<Op>)
            static_assert(
                says_commutative<Op>,
                "ddl: this op has a commutative that cannot be read; write static constexpr bool commutative");
        else if constexpr (!combines<Op, Element>)
            static_assert(combines<Op, Element>,
                          "ddl: this op has no meaning for this element; pick another, or give yours an operator()");
        else if constexpr (!element<accumulator_t<Op, Element>>)
            static_assert(
                element<accumulator_t<Op, Element>>,
                "ddl: this op accumulates in what is no element; name an accumulator that is trivially copyable");
        else if constexpr (names_finish<Op, Element> && !finishes<Op, Element>)
            static_assert(
                finishes<Op, Element>,
                "ddl: this op has a finish that cannot be called; write finish(accumulated, ranks) const, which "
                "returns what converts to the element");
        else if constexpr (commutes<Op> || std::same_as<Schedule, tuned>) return true;
        else if constexpr (!in_rank_order<Schedule, ordered_as>)
            static_assert(in_rank_order<Schedule, ordered_as>,
                          "ddl: this schedule rotates the operands; write ddl::recursive_doubling, or "
                          "mark the op with ddl::commutative");
        else return true;
    } else {
        return true;
    }
    return false;
}

}  // namespace ddl
