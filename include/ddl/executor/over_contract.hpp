// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/contract_exchange.hpp>
#include <ddl/executor/contract_gather.hpp>
#include <ddl/executor/contract_halving.hpp>
#include <ddl/executor/contract_scatter.hpp>
#include <ddl/executor/message_call.hpp>
#include <ddl/kernel/copy.hpp>
#include <ddl/kernel/fold.hpp>
#include <ddl/schedule/direct.hpp>
#include <ddl/schedule/recursive_halving.hpp>
#include <ddl/schedule/tree.hpp>

#include <bit>

// The collectives whose payload goes with the contract.
namespace ddl {

/// Whether payload can travel with the contract: the schedule of the call is `Carries`, which `tuned` takes for payload so short.
/// Whether one does, its `load_cut` says.
template <class Chosen, class Carries, class Accumulator>
inline constexpr bool suits_contract =
    std::same_as<Chosen, Carries> && alignof(Accumulator) <= contract_room::alignment;

/// The schedule whose short blocks ride with the contract: the one that `tuned` takes for them.
template <collective What>
struct rider_of {
    using schedule = tree;
};
template <>
struct rider_of<collective::reduce_scatter> {
    using schedule = recursive_halving;
};
template <>
struct rider_of<collective::all_gather> {
    using schedule = recursive_halving;
};
template <>
struct rider_of<collective::all_to_all> {
    using schedule = direct;
};
template <collective What, class Chosen, class Value>
inline constexpr bool suits_riding = suits_contract<Chosen, typename rider_of<What>::schedule, Value>;

/// How a vector of `count` values travels whole.
template <class Value, message_transport Transport>
load_cut whole_load(const Transport& wire, std::size_t count, flow way) noexcept {
    return {wire, count * sizeof(Value), sizeof(Value), way};
}

/// Whether a contract's rounds are those of a tree, and saved if payload goes with them, so that the copy of a long one pays.
template <message_transport Transport>
bool rounds_pay(const Transport& wire) noexcept {
    const auto ranks = static_cast<unsigned>(wire.size());
    return ranks > 2 && std::has_single_bit(ranks);
}

/// Whether a payload that would go with a contract of ranks of one host leaves whole without it, from where the system copies it.
template <message_transport Transport>
bool leaves_whole(const Transport& wire, const load_cut& cut) noexcept {
    const segmenting& how = cut_of(wire);
    return cut.pieces > 0 && how.cores_move() && cut.bytes > how.longest_short(passage::one_way);
}

/// Whether what flows from or to a root follows a contract in pieces at no loss. Among a power of two of ranks that have a core each that is
/// no longer than what may ride. Other numbers take two rounds more, and each a copy: there none does, or where ranks share cores, and
/// messages cost little, what is no longer.
template <class Transport>
bool pieces_keep_up(const Transport& wire, const load_cut& cut) noexcept {
    if (cut.pieces == 0) return true;
    const company ranks = company_of(wire);
    const bool in_pairs = std::has_single_bit(static_cast<unsigned>(ranks.ranks));
    if (ranks.own_cores) return in_pairs && cut.bytes <= longest_rider;
    return in_pairs || !ranks.messages_cost_little() || cut.bytes <= longest_rider;
}

/// Whether a broadcast that travels so is copied, for nothing is written before all agree: the copy of a long one pays where it
/// saves rounds, and leaves in the first, but for one that leaves whole.
template <message_transport Transport>
bool copies_pay(const Transport& wire, const load_cut& cut) noexcept {
    return cut.fits() && !leaves_whole(wire, cut) && pieces_keep_up(wire, cut) &&
           (cut.bytes <= (std::size_t{16} << 10) || rounds_pay(wire));
}

/// Whether the payload of a call of `count` values fits into the rounds of a contract, of a collective of blocks by that schedule.
template <collective What, class Value, message_transport Transport>
bool fits_rounds(const Transport& wire, std::size_t count) noexcept {
    if constexpr (What == collective::all_gather || What == collective::gather)
        return gathered_rider::fits(wire, count, sizeof(Value));
    else if constexpr (What == collective::reduce_scatter)
        return scattered_blocks_ride(wire, count, sizeof(Value)) || load_cut::rides(wire, count * sizeof(Value));
    else if constexpr (What == collective::all_to_all)
        return exchanged_rider::fits(wire, count / static_cast<std::size_t>(wire.size()) * sizeof(Value));
    else return load_cut::rides(wire, count * sizeof(Value));
}

/// Whether blocks of `count` values in all, which could go directly, ride in rounds for they are sooner: of four to eight ranks that
/// have a core each, if they are a power of two or all of their messages are quick ones. Not if blocks alone are, and rounds carry
/// long parts of all: among four ranks, or in an all-to-all, whose rounds carry a half each.
template <collective What, class Value, message_transport Transport>
bool rounds_are_sooner(const Transport& wire, std::size_t count) noexcept {
    if constexpr (What == collective::gather || What == collective::scatter) return false;
    const company ranks = company_of(wire);
    if (!ranks.own_cores || ranks.ranks < 4 || ranks.close != nearer::neighbours) return false;
    if (!fits_rounds<What, Value>(wire, count)) return false;
    const std::size_t quick = cut_of(wire).quick_bytes;
    if (count * sizeof(Value) <= quick) return true;
    const bool blocks_are_quick = partition{count, ranks.ranks}.longest() * sizeof(Value) <= quick;
    return std::has_single_bit(static_cast<unsigned>(ranks.ranks)) &&
           !(blocks_are_quick && (ranks.ranks == 4 || What == collective::all_to_all));
}

/// Whether blocks of `count` values in all ride in messages from each rank to each.
template <collective What, class Value, message_transport Transport>
bool blocks_go_directly(const Transport& wire, std::size_t count) noexcept {
    return load_cut::rides_directly(wire, partition{count, wire.size()}.longest() * sizeof(Value)) &&
           !rounds_are_sooner<What, Value>(wire, count);
}

/// Whether that payload goes with the contract.
template <collective What, class Value, message_transport Transport>
bool rides(const Transport& wire, std::size_t count) noexcept {
    return blocks_go_directly<What, Value>(wire, count) || fits_rounds<What, Value>(wire, count);
}

/// Whether operands of `Op` are folded so: rounds that begin halves apart do not keep rank order. A reduction that leaves
/// whole is copied only where that saves rounds.
template <class Op, message_transport Transport>
bool folds_fit(const Transport& wire, const load_cut& cut, flow way) noexcept {
    const bool in_order = commutes<Op> || cut.direct || first_pairs(wire) == nearer::neighbours;
    return cut.fits() && in_order &&
           (way == flow::among_all || (pieces_keep_up(wire, cut) && (rounds_pay(wire) || !leaves_whole(wire, cut))));
}

/// Whether a payload of `count` elements is halved beside the contract.
template <class Chosen, class Accumulator, message_transport Transport>
bool halves_fit_contract(const Transport& wire, std::size_t count) noexcept {
    if constexpr (requires { wire.dealt_in_turn(); })
        if (wire.dealt_in_turn() && first_pairs(wire) == nearer::neighbours)
            return false;  // to exchange long halves with those that lie close saves more
    if constexpr (suits_contract<Chosen, recursive_halving, Accumulator>)
        return halving_load<Transport>{wire, {count, wire.size()}, sizeof(Accumulator), nullptr}.fits();
    else return false;
}

/// The elements as accumulators: where they are, or converted to where they leave from.
template <class Accumulator, class Element>
const std::byte* operands_in(const contract_room& room, const Element* in, std::size_t count) {
    if constexpr (std::same_as<Accumulator, Element>) return reinterpret_cast<const std::byte*>(in);
    else kernel::convert(in, reinterpret_cast<Accumulator*>(room.own), count);
    return room.own;
}

/// A contract's way to fold ours and what has arrived.
template <class Accumulator, class Op>
auto join_bytes(const Op& op) {
    return [combine = combine_bytes<Accumulator>(op)](testimony of, const std::byte* ours, const std::byte* arrived,
                                                      std::byte* to, std::size_t bytes) {
        if (of == testimony::below) combine(kernel::side::left, arrived, ours, to, bytes);
        else if (of == testimony::above) combine(kernel::side::right, arrived, ours, to, bytes);
    };
}

/// Where accumulators are folded at last: where the result goes, unless they are of another type.
template <class Accumulator, class Element>
std::byte* result_in(Element* out) noexcept {
    if constexpr (std::same_as<Accumulator, Element>) return reinterpret_cast<std::byte*>(out);
    else return nullptr;
}

/// Folds the vectors of all ranks while their calls are compared. The accumulated result where `way` takes it, once all agree; it may
/// be in `out` there. What the op does with it belongs to the call, which has not ended.
template <class Op, class Element, class Checking, message_transport Transport>
[[gnu::always_inline]] inline const accumulator_t<Op, Element>* fold_with_contract(
    message_call<Checking, Transport>& here, Transport& wire, const load_cut& cut, const Element* in, Element* out,
    std::size_t count, const Op& op, flow way, int root) {
    using accumulator = accumulator_t<Op, Element>;
    const contract_room room{wire, cut.bytes};
    const std::byte* const result = here.compare_and_carry(
        room, contract_load{cut, way, root, operands_in<accumulator>(room, in, count), result_in<accumulator>(out)},
        join_bytes<accumulator>(op));
    return reinterpret_cast<const accumulator*>(result);
}

/// Gathers the blocks of all ranks into `out`, `own` of this one, while their calls are compared: on all ranks, or on `root`.
template <class Element, class Checking, message_transport Transport>
void gather_with_contract(message_call<Checking, Transport>& here, Transport& wire, const Element* own, Element* out,
                          std::size_t count, flow way, int root) {
    const partition blocks{count, wire.size()};
    const int rank = wire.rank();
    const std::size_t length = blocks.length(rank);
    const bool takes = way == flow::among_all || rank == root;
    if (way == flow::among_all ? blocks_go_directly<collective::all_gather, Element>(wire, count)
                               : blocks_go_directly<collective::gather, Element>(wire, count)) {
        const contract_room room{wire, 0};
        const riding_part block{room.arrival(rank), length * sizeof(Element)};
        kernel::copy(own, reinterpret_cast<Element*>(block.body), length);
        here.compare_directly(room, [&](int peer) {
            return way == flow::among_all || peer == root ? block : riding_part{block.body, 0};
        });
        here.end();
        for (int r = 0; takes && r < wire.size(); ++r)
            kernel::copy(reinterpret_cast<const Element*>(room.arrival(r)), out + blocks.first(r), blocks.length(r));
        return;
    }
    const gathered_rider rider{{wire, count * sizeof(Element)}, blocks, sizeof(Element)};
    kernel::copy(own, reinterpret_cast<Element*>(rider.block(rank)), length);
    here.compare_and_ride(rider);
    here.end();
    if (takes) kernel::copy(reinterpret_cast<const Element*>(rider.block(0)), out, count);
}

/// Sends each rank its block of what lies at `data`, as `Value`s, while calls are compared. In `room.arrival` are those that
/// came then, and in the slots those that left.
template <class Value, class Element, class Checking, message_transport Transport>
void send_blocks(message_call<Checking, Transport>& here, const contract_room& room, const partition& blocks,
                 const Element* data) {
    const std::size_t longest = blocks.longest() * sizeof(Value);
    for (int r = 0; r < blocks.parts; ++r)
        kernel::convert(data + blocks.first(r), reinterpret_cast<Value*>(room.slot(r, longest)), blocks.length(r));
    here.compare_directly(room, [&](int peer) {
        return riding_part{room.slot(peer, longest), blocks.length(peer) * sizeof(Value)};
    });
}

/// Folds the vectors of all ranks so, of which each finishes its own block into `out`.
template <class Op, class Element, class Checking, message_transport Transport>
void reduce_scatter_with_contract(message_call<Checking, Transport>& here, Transport& wire, const Element* in,
                                  Element* out, std::size_t count, const Op& op) {
    using accumulator = accumulator_t<Op, Element>;
    const partition blocks{count, wire.size()};
    const int rank = wire.rank();
    const accumulator* own = nullptr;
    if (blocks_go_directly<collective::reduce_scatter, accumulator>(wire, count)) {
        const std::size_t longest = blocks.longest() * sizeof(accumulator);
        const contract_room room{wire, contract_room::with_slots(wire.size(), longest)};
        send_blocks<accumulator>(here, room, blocks, in);
        kernel::copy(room.slot(rank, longest), room.arrival(rank), blocks.length(rank) * sizeof(accumulator));
        own = reinterpret_cast<const accumulator*>(fold_as_by_doubling(
            room, wire.size(), blocks.length(rank) * sizeof(accumulator), here.telling(join_bytes<accumulator>(op))));
    } else if (scattered_blocks_ride(wire, count, sizeof(accumulator))) {
        const auto combine = here.telling(combine_bytes<accumulator>(op));
        using rider = scattered_rider<decltype(combine)>;
        const rider all{
            {wire, contract_room::with_packed(count * sizeof(accumulator))}, blocks, sizeof(accumulator), combine};
        kernel::convert(in, reinterpret_cast<accumulator*>(all.block(0)), count);
        here.compare_and_ride(all);
        own = reinterpret_cast<const accumulator*>(all.block(rank));
    } else {
        const auto cut = whole_load<accumulator>(wire, count, flow::among_all);
        own = fold_with_contract<Op, Element>(here, wire, cut, in, nullptr, count, op, flow::among_all, 0) +
              blocks.first(rank);
    }
    kernel::finish(own, out, blocks.length(rank), op, wire.size());
    here.end();
}

/// Exchanges the blocks of an all-to-all while the calls are compared.
template <class Element, class Checking, message_transport Transport>
void exchange_with_contract(message_call<Checking, Transport>& here, Transport& wire, const Element* in, Element* out,
                            std::size_t count) {
    const std::size_t bytes = count * sizeof(Element);
    const int size = wire.size();
    if (blocks_go_directly<collective::all_to_all, Element>(wire, count)) {
        const partition blocks{count, size};
        const std::size_t each = bytes / static_cast<std::size_t>(size);
        const contract_room room{wire, contract_room::with_slots(size, each)};
        send_blocks<Element>(here, room, blocks, in);
        here.end();
        for (int r = 0; r < size; ++r)
            kernel::copy(reinterpret_cast<const Element*>(r == wire.rank() ? room.slot(r, each) : room.arrival(r)),
                         out + blocks.first(r), blocks.longest());
        return;
    }
    const exchanged_rider rider{
        {wire, contract_room::with_packed(bytes)}, size, bytes / static_cast<std::size_t>(size)};
    kernel::copy(reinterpret_cast<const std::byte*>(in), rider.slot(0), bytes);
    here.compare_and_ride(rider);
    here.end();
    kernel::copy(rider.slot(0), reinterpret_cast<std::byte*>(out), bytes);
}

/// How a block of `count` elements follows the heads of a direct exchange.
template <class Element, class Transport>
load_cut block_cut(const Transport& wire, std::size_t count) noexcept {
    return load_cut::of_part(cut_of(wire), count * sizeof(Element), sizeof(Element), passage::both_ways);
}

/// Whether blocks of `Element`s follow heads. A shorter one may be cut finer than the longest.
template <class Element, class Transport>
bool blocks_follow(const Transport& wire, const partition& blocks) noexcept {
    const std::size_t longest = blocks.longest();
    const auto follow = [&](std::size_t count) { return blocks_follow(wire.size(), block_cut<Element>(wire, count)); };
    return follow(longest) && (longest * static_cast<std::size_t>(blocks.parts) == blocks.count || follow(longest - 1));
}

/// Exchanges blocks of `each` elements while calls are compared. In place those that leave are copied before.
template <class Element, class Checking, message_transport Transport>
void exchange_blocks_with_contract(message_call<Checking, Transport>& here, Transport& wire, const Element* in,
                                   Element* out, std::size_t each) {
    const int rank = wire.rank();
    const auto ranks = static_cast<std::size_t>(wire.size());
    const load_cut cut = block_cut<Element>(wire, each);
    const contract_room room{wire, in == out ? ranks * cut.bytes : 0};
    const auto place = [&](int peer) { return static_cast<std::size_t>(peer) * cut.bytes; };
    auto* const to = reinterpret_cast<std::byte*>(out);
    const auto* from = reinterpret_cast<const std::byte*>(in);
    if (in == out) {
        kernel::copy(from, room.own, ranks * cut.bytes);
        from = room.own;
    }
    here.compare_and_exchange(
        room, cut, [&](int peer) { return from + place(peer); }, [&](int) { return cut; },
        [&](int peer) { return to + place(peer); });
    here.end();
    if (in != out) kernel::copy(from + place(rank), to + place(rank), cut.bytes);
}

/// Gathers blocks of `count` elements in all so.
template <class Element, class Checking, message_transport Transport>
void gather_blocks_with_contract(message_call<Checking, Transport>& here, Transport& wire, const Element* own,
                                 Element* out, std::size_t count) {
    const partition blocks{count, wire.size()};
    const int rank = wire.rank();
    here.compare_and_exchange(
        {wire, 0}, block_cut<Element>(wire, blocks.length(rank)),
        [&](int) { return reinterpret_cast<const std::byte*>(own); },
        [&](int peer) { return block_cut<Element>(wire, blocks.length(peer)); },
        [&](int peer) { return reinterpret_cast<std::byte*>(out + blocks.first(peer)); });
    here.end();
    kernel::copy(own, out + blocks.first(rank), blocks.length(rank));
}

/// Takes the elements of `root` to all ranks while their calls are compared. Where they are, once all agree.
template <class Element, class Checking, message_transport Transport>
const std::byte* carry_from_root(message_call<Checking, Transport>& here, Transport& wire, const load_cut& cut,
                                 const Element* data, int root) {
    const auto* const own = reinterpret_cast<const std::byte*>(data);
    const std::byte* const result =
        here.compare_and_carry({wire, cut.bytes}, contract_load{cut, flow::from_root, root, own}, no_join);
    here.end();
    return result;
}

/// Takes the elements of `root` to all ranks so, of which each copies its own block to `out`.
template <class Element, class Checking, message_transport Transport>
void scatter_with_contract(message_call<Checking, Transport>& here, Transport& wire, const Element* in, Element* out,
                           std::size_t count, int root) {
    const partition blocks{count, wire.size()};
    const int rank = wire.rank();
    if (blocks_go_directly<collective::scatter, Element>(wire, count)) {
        const std::size_t longest = blocks.longest() * sizeof(Element);
        const contract_room room{wire, contract_room::with_slots(wire.size(), longest)};
        if (rank == root) send_blocks<Element>(here, room, blocks, in);
        else here.compare_directly(room, [&](int) { return riding_part{room.own, 0}; });
        here.end();
        const std::byte* const own = rank == root ? room.slot(rank, longest) : room.arrival(root);
        return kernel::copy(reinterpret_cast<const Element*>(own), out, blocks.length(rank));
    }
    const auto cut = whole_load<Element>(wire, count, flow::from_root);
    const auto* const all = reinterpret_cast<const Element*>(carry_from_root(here, wire, cut, in, root));
    kernel::copy(all + blocks.first(rank), out, blocks.length(rank));
}

/// An allreduce whose first half goes with the contract: nothing is written to `out` before all agree.
template <class Op, class Element, class Checking, message_transport Transport>
void halve_with_contract(message_call<Checking, Transport>& here, Transport& wire, const Element* in, Element* out,
                         std::size_t count, const Op& op) {
    using accumulator = accumulator_t<Op, Element>;
    const partition chunks{count, wire.size()};
    const contract_room room{wire, count * sizeof(accumulator)};
    const nearer close = first_pairs(wire);
    const auto program = gather_after_halving(wire.size(), close);
    const int own = left_by_halving(wire.rank(), wire.size(), program.rounds(), close).first;
    Element* const block = out + chunks.first(own);
    const std::byte* const result = here.compare_and_carry(
        room,
        halving_load<Transport>{wire, chunks, sizeof(accumulator), operands_in<accumulator>(room, in, count),
                                result_in<accumulator>(block)},
        join_bytes<accumulator>(op));
    kernel::finish(reinterpret_cast<const accumulator*>(result), block, chunks.length(own), op, wire.size());
    const auto place = even_chunks{chunks};
    here.template reserve<Element>(program, 0, place);
    here.run(program, out, place, no_combine);
    here.end();
}

}  // namespace ddl
