// SPDX-License-Identifier: Apache-2.0
// expect: ddl: an element must be trivially copyable, and nothing in it const or volatile; pass plain values, or a struct of them
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

#ifdef DDL_WRONG
struct sample {
    const int value;
#else
struct sample {
    int value;
#endif
    friend sample operator+(sample a, sample b) { return {a.value + b.value}; }
};
void call(ddl::threads& team, std::vector<sample>& samples) { ddl::allreduce(team, samples); }
