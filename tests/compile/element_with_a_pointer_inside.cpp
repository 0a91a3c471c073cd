// SPDX-License-Identifier: Apache-2.0
// expect: ddl: an element must be trivially copyable, and nothing in it const or volatile; pass plain values, or a struct of them
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <string>
#include <vector>

#ifdef DDL_WRONG
struct label {
    std::string text;
    friend label operator+(const label& a, const label& b) { return {a.text + b.text}; }
};
void call(ddl::threads& team, std::vector<label>& labels) { ddl::allreduce(team, labels); }
#else
struct label {
    char text[8];
    friend label operator+(const label& a, const label&) { return a; }
};
void call(ddl::threads& team, std::vector<label>& labels) { ddl::allreduce(team, labels); }
#endif
