// SPDX-License-Identifier: Apache-2.0
// expect: ddl: the rounds of this schedule do not add up to this collective; ask ddl::prove_allreduce why, see docs/adding_a_schedule.md
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

#ifdef DDL_WRONG
constexpr int room = 1;
#else
constexpr int room = 8;
#endif
struct exchange_with_all {
    static constexpr int chunks(int) { return 1; }
    static constexpr int rounds(int) { return 1; }
    static constexpr ddl::transfer_list<room> round(int rank, int size, int) {
        ddl::transfer_list<room> list;
        for (int step = 1; step < size; ++step) {
            list.push({ddl::action::send, (rank + step) % size, 0});
            list.push({ddl::action::receive_reduce, (rank + size - step) % size, 0});
        }
        return list;
    }
};
void call(ddl::threads& team, std::vector<float>& data) { ddl::allreduce<exchange_with_all>(team, data); }
