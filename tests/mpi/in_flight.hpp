// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/all_gather.hpp>
#include <ddl/all_to_all.hpp>
#include <ddl/allreduce.hpp>
#include <ddl/barrier.hpp>
#include <ddl/broadcast.hpp>
#include <ddl/reduce_scatter.hpp>

#include "world.hpp"

// What must hold of nonblocking collectives whether a thread carries them out or the call itself.

inline constexpr std::size_t lengths[] = {10, 5000, 200'000};

/// Each call works on what the one before has made.
template <class Transport>
void many_calls_in_flight(Transport& ranks) {
    for (const std::size_t count : lengths) {
        const auto expected = fold_of<std::uint32_t>(ranks.size(), count, ddl::sum{});
        auto reduced = values_of<std::uint32_t>(ranks.rank(), count);
        std::vector<std::uint32_t> block(ddl::block(count, ranks.size(), ranks.rank()).count);
        std::vector<std::uint32_t> gathered(count);
        auto spread = values_of<std::uint32_t>(ranks.rank(), count);
        std::vector<ddl::request> all;
        all.push_back(ddl::allreduce_async(ranks, reduced));
        all.push_back(ddl::reduce_scatter_async(ranks, reduced, block, ddl::maximum{}));
        all.push_back(ddl::all_gather_async(ranks, block, gathered));
        all.push_back(ddl::allreduce_n_async(ranks, std::vector<std::span<std::uint32_t>>{spread}));
        all.push_back(ddl::broadcast_async(ranks, spread, ranks.size() - 1));
        all.push_back(ddl::barrier_async(ranks));
        all.back().wait();
        for (const auto& each : all) BOOST_TEST(each.test());
        BOOST_TEST((reduced == expected));
        BOOST_TEST((gathered == expected));
        BOOST_TEST((spread == expected));
    }
}

/// Blocking calls that use memory of the communicator as those before them do.
template <class Transport>
void blocking_calls_between(Transport& ranks) {
    const auto size = static_cast<std::size_t>(ranks.size());
    for (const std::size_t each : lengths) {
        const std::size_t count = each / size * size;
        const auto expected = fold_of<std::uint32_t>(ranks.size(), count, ddl::sum{});
        auto first = values_of<std::uint32_t>(ranks.rank(), count);
        auto second = first;
        auto packed = first;
        const ddl::request pending = ddl::allreduce_n_async(ranks, std::vector<std::span<std::uint32_t>>{packed});
        ddl::allreduce_n(ranks, std::vector<std::span<std::uint32_t>>{first});
        BOOST_TEST(pending.test());
        const ddl::request again = ddl::allreduce_async(ranks, packed, ddl::minimum{});
        ddl::all_to_all(ranks, packed);
        again.wait();
        ddl::allreduce(ranks, second);
        BOOST_TEST((first == expected));
        BOOST_TEST((second == expected));
        for (std::size_t i = 0; i < count; ++i)
            if (packed[i] != expected[static_cast<std::size_t>(ranks.rank()) * (count / size) + i % (count / size)]) {
                BOOST_ERROR("all_to_all of what was pending is wrong at " << i);
                break;
            }
    }
}

template <class Transport>
void communicators_that_end(Transport& ranks) {
    const std::size_t count = 20'000;
    std::vector<std::vector<std::uint32_t>> all(10, values_of<std::uint32_t>(ranks.rank(), count));
    {
        auto group = ranks.split(0, 0);
        for (auto& each : all) ddl::allreduce_async(group, each);
    }
    for (const auto& each : all) BOOST_TEST((each == fold_of<std::uint32_t>(ranks.size(), count, ddl::sum{})));
}
