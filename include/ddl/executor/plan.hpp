// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/element/elements.hpp>
#include <ddl/executor/arguments.hpp>
#include <ddl/executor/compose.hpp>
#include <ddl/executor/explain.hpp>
#include <ddl/executor/over_cluster.hpp>
#include <ddl/executor/over_device_messages.hpp>
#include <ddl/executor/over_grid.hpp>
#include <ddl/executor/over_levels.hpp>
#include <ddl/executor/over_memory.hpp>
#include <ddl/executor/over_messages.hpp>
#include <ddl/executor/over_staging.hpp>
#include <ddl/schedule/multi_ring.hpp>
#include <ddl/transport/request.hpp>

#include <new>

namespace ddl {

/// One line on a plan: schedule, transport, chunks, protocol, and why.
template <class Plan>
text explain(const Plan& plan) {
    return plan.explanation();
}

/// What `push()` gives, which puts a call by for later. If there is no memory for that, the others hear of it, who would wait for
/// this rank in the call.
template <class Checking, class Transport, class Push>
request put_by(Transport& ranks, const Push& push) {
    try {
        return push();
    } catch (const std::bad_alloc&) {}
    const error lack(errc::out_of_memory, "start", rank_in(ranks), -1, "no memory is left");
    if constexpr (checking_policy<Checking>)
        if (!Checking::compares) {  // nobody would look for a refusal
            ranks.queue().drain();
            ranks.fail(lack.code(), lack.what());
        }
    refuse<Checking>(ranks, lack);
}

/// Hands a plan, or a call and the `Checking` it is made with, to the communicator's queue. It is copied; its buffers are not.
///
/// A transport whose calls return before their work is done offers `defer()`: called here, in the caller's thread, and its
/// `begin()` and `end()` around the call in that of the queue. The request is done when its `done()` says so.
template <class Checking, class Transport, class Call>
auto start(Transport& ranks, Call call) {
    if constexpr (!communicator<Transport>) {
        call();  // in which `compose` complains
        return request{};
    } else if constexpr (requires { ranks.defer().done(); }) {
        auto work = prepared<Checking>(ranks, [&] { return ranks.defer(); });
        return put_by<Checking>(ranks, [&] {
            return ranks.queue().push(
                [&ranks, run = std::move(call), work]() mutable {
                    prepared<Checking>(ranks, [&] { work.begin(); });
                    run();
                    work.end();
                },
                [work]() mutable { return work.done(); });
        });
    } else {
        return put_by<Checking>(ranks,
                                [&] { return ranks.queue().push([run = std::move(call)]() mutable { run(); }); });
    }
}
/// What `allreduce_init` and the like return.
template <class Plan>
concept startable = requires(Plan& plan) {
    typename Plan::checking;
    plan.ranks();
    plan();
};

/// The same of a plan, by the queue of the plan's own communicator.
template <class Plan>
auto start(Plan plan) {
    if constexpr (!startable<Plan>) {
        static_assert(startable<Plan>, "ddl: this is no plan; pass what ddl::allreduce_init or another _init returns");
        return request{};
    } else {
        auto& ranks = plan.ranks();
        return start<typename Plan::checking>(ranks, std::move(plan));
    }
}
/// `ranks` must be that communicator: in the queue of another one the plan would run beside the calls of its own.
template <class Transport, class Plan>
auto start(Transport& ranks, Plan plan) {
    if constexpr (startable<Plan>)
        if (static_cast<const void*>(&ranks) != static_cast<const void*>(&plan.ranks()))
            refuse<typename Plan::checking>(
                plan.ranks(), error(errc::invalid_argument, "start", rank_in(plan.ranks()), -1,
                                    "the plan is of another communicator; pass the one that it was made with"));
    return start(std::move(plan));
}

}  // namespace ddl
