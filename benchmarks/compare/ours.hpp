// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/all_gather.hpp>
#include <ddl/all_to_all.hpp>
#include <ddl/allreduce.hpp>
#include <ddl/barrier.hpp>
#include <ddl/broadcast.hpp>
#include <ddl/buffer.hpp>
#include <ddl/reduce.hpp>
#include <ddl/reduce_scatter.hpp>

#include <span>

#include "contender.hpp"

namespace compare {

/// The harness's own barrier and maximum, over ranks that outlive it.
template <class Transport>
meeting meeting_of(Transport& ranks) {
    return {ranks.rank(), ranks.size(), [&ranks] { ddl::barrier(ranks); },
            [&ranks](double* values, std::size_t count) {
                ddl::allreduce(ranks, std::span{values, count}, ddl::maximum{});
            }};
}

/// The library's call of a cell, written as a user writes it.
template <class Transport>
collective_call our_call(Transport& world, const cell& asked) {
    const std::size_t count = asked.count;
    const std::size_t block = ddl::block(count, world.size(), world.rank()).count;
    using input = std::span<const element>;
    using output = std::span<element>;
    if (!asked.tensors.empty())
        return [&world, tensors = asked.tensors](const element*, element* out) {
            std::vector<output> all;
            for (const tensor& each : tensors) all.emplace_back(out + each.first, each.count);
            ddl::allreduce_n(world, all, op{});
        };
    if (asked.collective == "barrier") return [&world](const element*, element*) { ddl::barrier(world); };
    if (asked.collective == "broadcast")
        return [&world, count](const element*, element* out) { ddl::broadcast(world, output{out, count}); };
    if (asked.collective == "reduce_scatter")
        return [=, &world](const element* in, element* out) {
            ddl::reduce_scatter(world, input{in, count}, output{out, block}, op{});
        };
    if (asked.collective == "all_gather")
        return [=, &world](const element* in, element* out) {
            ddl::all_gather(world, input{in, block}, output{out, count});
        };
    if (asked.collective == "all_to_all" && asked.in_place)
        return [&world, count](const element*, element* out) { ddl::all_to_all(world, output{out, count}); };
    if (asked.collective == "all_to_all")
        return [&world, count](const element* in, element* out) {
            ddl::all_to_all(world, input{in, count}, output{out, count});
        };
    if (asked.collective == "reduce" && asked.in_place)
        return [&world, count](const element*, element* out) { ddl::reduce(world, output{out, count}, op{}); };
    if (asked.collective == "reduce")
        return [&world, count](const element* in, element* out) {
            ddl::reduce(world, input{in, count}, output{out, count}, op{});
        };
    if (asked.collective == "allreduce_async")
        return [&world, count](const element* in, element* out) {
            ddl::allreduce_async(world, input{in, count}, output{out, count}, op{}).wait();
        };
    if (asked.in_place)
        return [&world, count](const element*, element* out) { ddl::allreduce(world, output{out, count}, op{}); };
    return [&world, count](const element* in, element* out) {
        ddl::allreduce(world, input{in, count}, output{out, count}, op{});
    };
}

/// Ours with buffers of the caller's own.
template <class Transport>
contender ours_private(Transport& world, const std::string& name) {
    return {name + " private", [&world](const cell& asked) { return our_call(world, asked); }};
}

/// Ours, a call for each tensor of a model.
template <class Transport>
contender ours_one_by_one(Transport& world, const std::string& name) {
    const auto prepare = [&world](const cell& asked) -> collective_call {
        if (asked.tensors.empty()) return {};
        return [&world, tensors = asked.tensors](const element*, element* out) {
            for (const tensor& each : tensors)
                ddl::allreduce(world, std::span<element>{out + each.first, each.count}, op{});
        };
    };
    return {name + " one by one", prepare};
}

/// Ours with buffers that `world` gave, which peers can map.
template <class Transport>
contender ours_mapped(Transport& world, const std::string& name) {
    contender same = ours_private(world, name);
    same.name = name + " mapped";
    same.memory_kind = name;
    same.memory = [&world](std::size_t count) {
        const auto whole = std::make_shared<ddl::buffer<element>>(world, count);
        return std::shared_ptr<element>{whole, whole->data()};
    };
    return same;
}

}  // namespace compare
