// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/refusal.hpp>
#include <ddl/op/op.hpp>
#include <ddl/schedule/proof.hpp>
#include <ddl/schedule/rooted.hpp>

#include <atomic>
#include <cstdint>
#include <new>

namespace ddl {

/// The rounds in which a schedule carries a collective.
template <class Schedule, collective What>
constexpr auto program_of(int size, int root) {
    if constexpr (What == collective::reduce_scatter) return reduce_scatter_program<Schedule>(size);
    else if constexpr (What == collective::all_gather) return all_gather_program<Schedule>(size);
    else if constexpr (What == collective::broadcast) return broadcast_program<Schedule>(size, root);
    else if constexpr (What == collective::reduce) return reduce_program<Schedule>(size, root);
    else if constexpr (What == collective::gather) return Schedule::gather(size, root);
    else if constexpr (What == collective::scatter) return Schedule::scatter(size, root);
    else if constexpr (What == collective::all_to_all) return Schedule::all_to_all(size);
    else return allreduce_program<Schedule>(size);
}

/// Whether rounds do what the collective promises; those that reduce also in rank order, if that is asked for.
template <collective What, operand_order Order = operand_order::any, program Program>
constexpr proof prove(const Program& rounds, int root) {
    if constexpr (What == collective::reduce_scatter) return prove_reduce_scatter<Order>(rounds);
    else if constexpr (What == collective::all_gather) return prove_all_gather(rounds);
    else if constexpr (What == collective::broadcast) return prove_broadcast(rounds, root);
    else if constexpr (What == collective::reduce) return prove_reduce<Order>(rounds, root);
    else if constexpr (What == collective::gather) return prove_gather(rounds, root);
    else if constexpr (What == collective::scatter) return prove_scatter(rounds, root);
    else if constexpr (What == collective::all_to_all) return prove_all_to_all(rounds);
    else return prove_allreduce<Order>(rounds);
}

/// Throws if `rounds`, which `Schedule` gives for the ranks of a call, are not the collective. The compiler has asked that for few
/// numbers of ranks. Of schedules that are not the library's it is asked for those at hand, unless the last that were found to be fine
/// are the same; nor is it asked of more than a million values, a chunk of a rank each, which would be felt, nor without memory
/// for it. All ranks find the same.
template <collective What, class Op, class Schedule, program Program>
void require_proof(const Program& rounds, int rank, const shape& ranks, int root) {
    if constexpr (!of_the_library<Schedule>) {
        constexpr long long most_values = 1 << 20;
        constexpr operand_order order =
            std::same_as<Op, no_op> || commutes<Op> ? operand_order::any : operand_order::ranks;
        static constinit std::atomic<std::uint64_t> fine[16] = {};  // the last of each of some roots
        std::uint64_t asked = static_cast<std::uint64_t>(ranks.size()) << 32 | static_cast<std::uint32_t>(root);
        const auto mix = [&asked](std::uint64_t word) { asked = (asked ^ word) * 0x9e37'79b9'7f4a'7c15; };
        for (int group = 1; group < ranks.groups(); ++group) mix(static_cast<std::uint64_t>(ranks.first(group)));
        if constexpr (requires { Schedule::fingerprint(); }) mix(Schedule::fingerprint());
        std::atomic<std::uint64_t>& last = fine[root % 16];
        if (last.load(std::memory_order_relaxed) == asked) return;
        const auto refuse = [&](const char* flaw, const proof& at) {
            throw error(errc::invalid_argument, to_string(What), rank, -1,
                        "the rounds of %s do not add up among %d ranks: %s (rank %d, round %d, chunk %d); see "
                        "docs/adding_a_schedule.md",
                        schedule_name<Schedule>(), ranks.size(), flaw, at.rank, at.round, at.chunk);
        };
        if (rounds.size() != ranks.size()) refuse("they are for another number", {});
        if (static_cast<long long>(ranks.size()) * chunks_of(rounds) > most_values) return;
        try {
            if (const proof found = prove<What, order>(rounds, root); !found) refuse(to_string(found.what), found);
        } catch (const std::bad_alloc&) { return; }
        last.store(asked, std::memory_order_relaxed);
    }
}

/// `rounds`, once they are known to be the collective. If they are not, ranks that make another call learn that this one has left.
template <collective What, class Op, class Schedule, class Checking, class Transport, program Program>
const Program& proved_rounds(Transport& ranks, const Program& rounds, int root = 0) {
    if constexpr (!of_the_library<Schedule>)
        prepared<Checking>(ranks, [&] { require_proof<What, Op, Schedule>(rounds, ranks.rank(), ranks.size(), root); });
    return rounds;
}

}  // namespace ddl
