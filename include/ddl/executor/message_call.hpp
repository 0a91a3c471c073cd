// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/contract.hpp>
#include <ddl/executor/messages.hpp>
#include <ddl/executor/partition.hpp>
#include <ddl/executor/proved_program.hpp>
#include <ddl/kernel/fold.hpp>

namespace ddl {

/// The bytes of `length` elements. Whether they are only read is the program's affair: a send reads, a receive writes.
template <class Element>
byte_range bytes_of(const Element* data, std::size_t length) noexcept {
    return {reinterpret_cast<std::byte*>(const_cast<Element*>(data)), length * sizeof(Element)};
}

/// `message_run`'s way to fold arrived bytes and those `before` into ours: the one or the other are ours, or both stay as they
/// are.
template <class Accumulator, class Op>
auto combine_bytes(const Op& op) {
    return [&op](kernel::side side, const std::byte* arrived, const std::byte* before, std::byte* ours,
                 std::size_t bytes) {
        const auto fold = [&]<kernel::side Side>() {
            const auto* const from = reinterpret_cast<const Accumulator*>(arrived);
            auto* const to = reinterpret_cast<Accumulator*>(ours);
            const std::size_t count = bytes / sizeof(Accumulator);
            constexpr auto other = Side == kernel::side::left ? kernel::side::right : kernel::side::left;
            if (before == ours) kernel::combine<Side>(from, to, count, op);
            else if (arrived == ours)
                kernel::combine<other>(reinterpret_cast<const Accumulator*>(before), to, count, op);
            else kernel::combine<Side>(from, reinterpret_cast<const Accumulator*>(before), to, count, op);
        };
        if (side == kernel::side::left) fold.template operator()<kernel::side::left>();
        else fold.template operator()<kernel::side::right>();
    };
}

/// Nothing is combined.
inline constexpr auto no_combine = [](kernel::side, const std::byte*, const std::byte*, std::byte*, std::size_t) {};

/// `place` for chunks that cut a vector evenly.
struct even_chunks {
    partition cut;
    std::size_t length(const transfer& t) const noexcept { return cut.first(t.chunk + t.count) - cut.first(t.chunk); }
    template <class Element>
    byte_range operator()(Element* work, const transfer& t) const noexcept {
        return bytes_of(work + cut.first(t.chunk), length(t));
    }
};

/// Nothing else is to be done while messages are under way.
inline constexpr auto no_meanwhile = [](int) {};

/// What ranks of `wire` compare of a call: in passing, though nobody asked, what must be the same.
template <class Checking, class Transport>
[[gnu::always_inline]] inline call compared(const Transport& wire, call what) noexcept {
    if constexpr (!Checking::compares) what.op = what.element = what.schedule = what.extents = 0;
    what.limits = cut_fingerprint(wire);
    return what;
}

/// One call over messages: opens the communicator, compares the call, runs programs, and leaves word if it is cut short.
template <class Checking, message_transport Transport>
class message_call {
public:
    message_call(Transport& wire, const call& what)
        : wire_{wire}, what_{compared<Checking>(wire, what)},
          print_{fingerprint(what_)},  // here, where most of it is known
          where_{to_string(what.what), 0}, half_done_{wire} {
        wire_.begin(where_);
        half_done_.begin(where_);
    }

    /// Compares the call over all ranks.
    void compare() {
        if (!Checking::compares || wire_.size() == 1) return;
        const load_cut nothing = load_cut::none(wire_);
        compare_and_carry({wire_, 0}, contract_load{nothing}, no_join);
    }

    /// Compares the call, and moves a payload on the way. Where it is then.
    template <class Load>
    const std::byte* compare_and_carry(const contract_room& room, const Load& load, const joining& join) {
        return half_done_.comparing(
            [&] { return compare_calls(wire_, what_, print_, where_, room, load, telling(join)); });
    }
    /// Compares the call, and moves blocks on the way.
    template <class Rider>
    void compare_and_ride(Rider rider) {
        half_done_.comparing([&] { ddl::compare_and_ride(wire_, what_, print_, where_, rider); });
    }

    /// Compares the call, and sends `leaving(peer)` to each other rank on the way: see `compare_directly`.
    template <class Leaving>
    void compare_directly(const contract_room& room, const Leaving& leaving) {
        half_done_.comparing([&] { ddl::compare_directly(wire_, what_, print_, where_, room, leaving); });
    }

    /// Compares the call, and exchanges blocks on the way: see `exchange_behind_heads`.
    template <class Outgoing, class Takes, class Incoming>
    void compare_and_exchange(const contract_room& room, const load_cut& gives, const Outgoing& outgoing,
                              const Takes& takes, const Incoming& incoming) {
        half_done_.comparing([&] {
            exchange_behind_heads(wire_, what_, print_, where_, room, gives, outgoing, takes, incoming,
                                  [&](const auto& act) { telling(act)(); });
        });
    }

    /// `act` as one that leaves word if it throws: before messages are given up, which may last.
    template <class Act>
    auto telling(const Act& act) {
        return [this, act](auto... of_payload) {
            try {
                act(of_payload...);
            } catch (...) {
                half_done_.tell();
                throw;
            }
        };
    }

    /// `program`, once it is known to be the collective: if not, all ranks throw, and nothing has been sent.
    template <collective What, class Op, class Schedule, program Program>
    const Program& proved_rounds(const Program& program, int root = 0) {
        try {
            require_proof<What, Op, Schedule>(program, wire_.rank(), wire_.size(), root);
        } catch (...) {
            end();
            throw;
        }
        return program;
    }

    /// Scratch for `elements` accumulators and a run of `program`; call once, before `run`.
    template <class Accumulator, class Place>
    Accumulator* reserve(const program_view& program, std::size_t elements, const Place& place) {
        const std::size_t work = whole_lines(elements * sizeof(Accumulator));
        constexpr bool combines = requires(const transfer& t) { place.length(t); };
        const auto measure = [&](const transfer& t) {
            if constexpr (combines) return place.length(t) * sizeof(Accumulator);
            else return std::size_t{0};
        };
        room_ = message_run<Transport>::needed(wire_, program, measure, sizeof(Accumulator));
        if (!combines) room_.chunks = 0;  // nothing is: there is no input apart
        std::byte* const all = wire_.scratch(work + room_.bytes());
        scratch_ = all + work;
        return reinterpret_cast<Accumulator*>(all);
    }

    /// Runs `program` over `work`; `place(work, transfer)` is where the chunks of a transfer lie. `input`: see `message_run`.
    template <class Accumulator, class Place>
    void run(const program_view& program, Accumulator* work, const Place& place, const combination& combine,
             const function_view<void(int)>& meanwhile = no_meanwhile, const input_view* input = nullptr) {
        const auto in_work = [&](const transfer& t) { return place(work, t); };
        message_run<Transport> moving{wire_, where_, room_, scratch_};
        try {
            moving.run(program, in_work, sizeof(Accumulator), combine, meanwhile, input);
        } catch (...) {
            half_done_.tell();  // before `moving` gives up on its messages, which may last
            throw;
        }
    }

    void end() noexcept { half_done_.end(); }

private:
    Transport& wire_;
    call what_;
    std::uint64_t print_;
    call_site where_;
    half_done<Transport> half_done_;
    typename message_run<Transport>::room room_;
    std::byte* scratch_ = nullptr;
};

}  // namespace ddl
