// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

using benchmark_clock = std::chrono::steady_clock;

/// Seconds that `call` takes on this rank.
template <class Call>
double seconds_of(Call&& call) {
    const auto start = benchmark_clock::now();
    call();
    return std::chrono::duration<double>(benchmark_clock::now() - start).count();
}

/// An allreduce bound to its buffers. `timed` runs it once and looks at the clock as near to it as can be.
struct prepared_call {
    std::function<double()> timed;
    std::string explanation;
};

/// One of those that do the same work and take turns, call by call: the library, or MPI.
struct contender {
    std::string name;
    std::function<prepared_call(const void* in, void* out, std::size_t count)> prepare;
};
