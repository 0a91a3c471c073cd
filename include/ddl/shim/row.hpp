// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/all_gather.hpp>
#include <ddl/all_to_all.hpp>
#include <ddl/allreduce.hpp>
#include <ddl/barrier.hpp>
#include <ddl/broadcast.hpp>
#include <ddl/gather.hpp>
#include <ddl/reduce.hpp>
#include <ddl/reduce_scatter.hpp>
#include <ddl/scatter.hpp>
#include <ddl/shim/numbers.hpp>
#include <ddl/shim/task.hpp>

#include <span>
#include <vector>

namespace ddl::shim {

/// One collective that a library can carry out: how it was asked for in the list, and the functions that do it.
struct row {
    collective what;
    ddl_element element;  // numbers of ddl.h; -1 for a type of the user's, which then goes by its name
    ddl_op op;
    std::size_t element_bytes;
    const char* transport;
    const char* element_name;
    const char* op_name;  // nullptr where data only moves
    const char* schedule_name;
    ddl_status (*run)(void* transport, const task& asked, const listener& heard) noexcept;
    text (*explain)(void* transport, const task& asked);
};

/// What the type of a plan says.
template <class Plan>
struct described;
template <template <class, class, class, class, class> class Plan, class Op, class Element, class Schedule,
          class Transport, class Checking>
struct described<Plan<Op, Element, Schedule, Transport, Checking>> {
    using op = Op;
    using element = Element;
    using schedule = Schedule;
    using transport = Transport;
};
template <template <class, class, class, class> class Plan, class Element, class Schedule, class Transport,
          class Checking>
struct described<Plan<Element, Schedule, Transport, Checking>> {
    using op = no_op;
    using element = Element;
    using schedule = Schedule;
    using transport = Transport;
};

/// The plan of a task. Plans differ in whether they take an op, a root, and an `in` beside an `out`.
template <class Plan>
Plan plan_of(void* transport, const task& asked) {
    using element = typename described<Plan>::element;
    using op = typename described<Plan>::op;
    auto& ranks = *static_cast<typename described<Plan>::transport*>(transport);
    const auto* const in = static_cast<const element*>(asked.in);
    auto* const out = static_cast<element*>(asked.out);
    if constexpr (requires { Plan{ranks, in, out, asked.count, op{}, asked.root}; })
        return Plan{ranks, in, out, asked.count, op{}, asked.root};
    else if constexpr (requires { Plan{ranks, in, out, asked.count, op{}}; })
        return Plan{ranks, in, out, asked.count, op{}};
    else if constexpr (requires { Plan{ranks, in, out, asked.count, asked.root}; })
        return Plan{ranks, in, out, asked.count, asked.root};
    else if constexpr (requires { Plan{ranks, in, out, asked.count}; }) return Plan{ranks, in, out, asked.count};
    else return Plan{ranks, out, asked.count, asked.root};
}

/// The many tensors of an allreduce_n, as ranges.
template <class Element>
std::vector<std::span<Element>> tensors_of(const task& asked) {
    std::vector<std::span<Element>> tensors(asked.tensors);
    for (std::size_t i = 0; i < asked.tensors; ++i)
        tensors[i] = {static_cast<Element*>(asked.data[i]), asked.counts[i]};
    return tensors;
}

/// The row of a plan's type. `What` is `allreduce_n` for the form of `allreduce_plan` that takes many tensors.
template <collective What, class Plan>
constexpr row row_of(const char* transport, const char* element_name, const char* op_name,
                     const char* schedule_name) noexcept {
    using types = described<Plan>;
    using element = typename types::element;
    row result{What,
               element_number<element>,
               op_number<typename types::op>,
               sizeof(element),
               transport,
               element_name,
               op_name,
               schedule_name,
               nullptr,
               nullptr};
    result.run = [](void* ranks, const task& asked, const listener& heard) noexcept {
        return guarded(heard, to_string(What), [&] {
            if constexpr (What == collective::allreduce_n) {
                auto& team = *static_cast<typename types::transport*>(ranks);
                allreduce_n<typename types::schedule>(
                    team, prepared<checked>(team, [&] { return tensors_of<element>(asked); }), typename types::op{});
            } else plan_of<Plan>(ranks, asked)();
        });
    };
    result.explain = [](void* ranks, const task& asked) { return plan_of<Plan>(ranks, asked).explanation(); };
    return result;
}

}  // namespace ddl::shim
