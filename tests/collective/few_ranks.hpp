// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/allreduce.hpp>

#include "oracle.hpp"
#include "places.hpp"

/// Lengths of a vector that take each way there is: with the announcement or the contract, and past it.
template <class Element>
std::vector<std::size_t> few_lengths() {
    return {3, 8192 / sizeof(Element) + 130};
}

/// Allreduces `value(rank, i)` by `op` where few ranks live, by a schedule of each kind of executor: fused, by messages, and walked,
/// the last for sums and what finishes alone: walks know nothing else of an op. `wanted(ranks, i)` is what must come out.
template <class Element, class Op, class Value, class Wanted>
void on_few_ranks(Op op, Value value, Wanted wanted) {
    const auto check = [&]<class Schedule>(auto& ranks) {
        for (const std::size_t count : few_lengths<Element>()) {
            guarded<Element> data{count, [&](std::size_t i) { return value(ranks.rank(), i); }};
            ddl::allreduce<Schedule>(ranks, data, op);
            const std::string label = std::string(std::remove_reference_t<decltype(ranks)>::name) + ", " +
                                      ddl::op_name<Op>() + " of " + ddl::element_name<Element>() + ", " +
                                      std::to_string(ranks.size()) + " ranks";
            require_values(
                data, [&](std::size_t i) { return wanted(ranks.size(), i); }, label);
        }
    };
    for (const int size : {2, 3, 5}) {
        places::threads::run(size, [&](auto& ranks) { check.template operator()<ddl::tuned>(ranks); });
        if constexpr (std::same_as<Op, ddl::sum> || ddl::finishes<Op, Element>)
            places::processes::run(size, [&](auto& ranks) { check.template operator()<ddl::ring>(ranks); });
        places::messages<1>::run(size, [&](auto& ranks) { check.template operator()<ddl::recursive_doubling>(ranks); });
    }
}

/// What `fold(accumulated, value(rank, i))` makes of the ranks from first to last, in a type of the test's own choice.
template <class Wide, class Value, class Fold>
auto folded(Value value, Fold fold) {
    return [=](int ranks, std::size_t i) {
        Wide all = static_cast<Wide>(value(0, i));
        for (int rank = 1; rank < ranks; ++rank) all = static_cast<Wide>(fold(all, static_cast<Wide>(value(rank, i))));
        return all;
    };
}
