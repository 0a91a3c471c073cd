// SPDX-License-Identifier: Apache-2.0
// expect: ddl: the rounds of this schedule do not add up to this collective; ask ddl::prove_allreduce why, see docs/adding_a_schedule.md
#include <ddl/allreduce.hpp>
#include <ddl/schedule/hierarchical.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

/// All to rank 0 and back: an allreduce of as many chunks as ranks, of which none has its own in the middle.
struct to_the_first_and_back : ddl::recursive_doubling {
    static constexpr int chunks(int size) { return size; }
    static constexpr int rounds(int size) { return size == 1 ? 0 : 2; }
    static constexpr ddl::transfer_list<64> round(int rank, int size, int k) {
        ddl::transfer_list<64> all;
        for (int peer = 1; peer < size; ++peer) {
            if (rank == 0 && k == 0) all.push({ddl::action::receive_reduce, peer, 0, size});
            if (rank == 0 && k == 1) all.push({ddl::action::send, peer, 0, size});
        }
        if (rank != 0) all.push({k == 0 ? ddl::action::send : ddl::action::receive, 0, 0, size});
        return all;
    }
};
static_assert(ddl::proves_allreduce<to_the_first_and_back>(5) && ddl::has_halves<to_the_first_and_back>);

void call(ddl::threads& team, std::vector<float>& data) {
#ifdef DDL_WRONG
    ddl::allreduce<ddl::hierarchical<to_the_first_and_back, ddl::ring>>(team, data);
#else
    ddl::allreduce<to_the_first_and_back>(team, data);
#endif
}
