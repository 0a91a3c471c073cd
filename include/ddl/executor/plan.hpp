// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/contiguous.hpp>
#include <ddl/element/elements.hpp>
#include <ddl/executor/compose.hpp>
#include <ddl/executor/explain.hpp>
#include <ddl/executor/over_cluster.hpp>
#include <ddl/executor/over_device_messages.hpp>
#include <ddl/executor/over_grid.hpp>
#include <ddl/executor/over_levels.hpp>
#include <ddl/executor/over_memory.hpp>
#include <ddl/executor/over_messages.hpp>
#include <ddl/executor/over_staging.hpp>
#include <ddl/executor/refusal.hpp>
#include <ddl/schedule/multi_ring.hpp>

namespace ddl {

/// This rank, and how many there are. What is no communicator, which `compose` says, has a rank alone.
template <class Transport>
int rank_in(Transport& ranks) {
    if constexpr (communicator<Transport>) return ranks.rank();
    else return 0;
}
template <class Transport>
int ranks_in(Transport& ranks) {
    if constexpr (communicator<Transport>) return ranks.size();
    else return 1;
}

/// Whether ranks have a device, as those of GPUs and of what stands for them: they take ranges that lie there.
template <class Transport>
inline constexpr bool has_device =
    grid_transport<Transport> || staging_transport<Transport> || device_message_transport<Transport> ||
    requires(Transport& ranks) { ranks.device(); };
template <stacked_transport Transport>
inline constexpr bool has_device<Transport> =
    has_device<std::remove_reference_t<decltype(std::declval<Transport&>().node())>>;

/// A class, so that ranges of several types print one error.
template <class Transport>
struct reaches_device_ranges {
    static_assert(has_device<Transport>,
                  "ddl: this range lies in a device, and these ranks know the host's memory alone; wrap them in "
                  "ddl::staged, or pass a span of what the host reaches");
};

/// Where the elements lie that a call is given.
template <class Transport, contiguous Range>
constexpr auto data_for(Transport&, Range& range) noexcept {
    if constexpr (device_range<Range>) static_cast<void>(reaches_device_ranges<Transport>{});
    return data_of(range);
}

/// This rank's arguments make no sense. Lets the others know, who would wait for it in the call, then throws.
template <class Checking, class Transport>
[[noreturn]] void refuse(Transport& ranks, const error& reason) {
    tell_refusal<Checking>(ranks);
    throw reason;
}

/// `name` must hold `wanted` elements.
template <class Checking, class Transport>
void require_count(Transport& ranks, collective what, const char* name, std::size_t held, std::size_t wanted,
                   const char* because) {
    if (held == wanted) return;
    refuse<Checking>(ranks, error(errc::invalid_argument, to_string(what), rank_in(ranks), -1,
                                  "%s holds %zu elements, and needs %zu, %s", name, held, wanted, because));
}

/// `root` must be a rank.
template <class Checking, class Transport>
void require_root(Transport& ranks, collective what, int root) {
    if (0 <= root && root < ranks_in(ranks)) return;
    refuse<Checking>(ranks, error(errc::invalid_argument, to_string(what), rank_in(ranks), -1,
                                  "root is %d; name a rank from 0 to %d", root, ranks_in(ranks) - 1));
}

/// The block of `count` elements that is `rank`'s in reduce-scatter, all-gather, gather and scatter.
struct block_of {
    std::size_t first;
    std::size_t count;
};
constexpr block_of block(std::size_t count, int size, int rank) noexcept {
    const partition blocks{count, size};
    return {blocks.first(rank), blocks.length(rank)};
}

/// One line on a plan: schedule, transport, chunks, protocol, and why.
template <class Plan>
text explain(const Plan& plan) {
    return plan.explanation();
}

/// Hands a plan, or a call and the `Checking` it is made with, to the communicator's queue. It is copied; its buffers are not.
///
/// A transport whose calls return before their work is done offers `defer()`: called here, in the caller's thread, and its
/// `begin()` and `end()` around the call in that of the queue. The request is done when its `done()` says so.
template <class Checking, class Transport, class Call>
auto start(Transport& ranks, Call call) {
    if constexpr (!communicator<Transport>) {
        call();  // in which `compose` complains
    } else if constexpr (requires { ranks.defer().done(); }) {
        auto work = prepared<Checking>(ranks, [&] { return ranks.defer(); });
        return ranks.queue().push(
            [&ranks, call = std::move(call), work]() mutable {
                prepared<Checking>(ranks, [&] { work.begin(); });
                call();
                work.end();
            },
            [work]() mutable { return work.done(); });
    } else {
        return ranks.queue().push([call = std::move(call)]() mutable { call(); });
    }
}
/// The same of a plan, by the queue of the plan's own communicator.
template <class Plan>
auto start(Plan plan) {
    auto& ranks = plan.ranks();
    return start<typename Plan::checking>(ranks, std::move(plan));
}
/// `ranks` must be that communicator: in the queue of another one the plan would run beside the calls of its own.
template <class Transport, class Plan>
auto start(Transport& ranks, Plan plan) {
    if (static_cast<const void*>(&ranks) != static_cast<const void*>(&plan.ranks()))
        refuse<typename Plan::checking>(
            plan.ranks(), error(errc::invalid_argument, "start", rank_in(plan.ranks()), -1,
                                "the plan is of another communicator; pass the one that it was made with"));
    return start(std::move(plan));
}

}  // namespace ddl
