// SPDX-License-Identifier: Apache-2.0
// expect: ddl: the rounds of this schedule do not add up to this collective; ask ddl::prove_allreduce why, see docs/adding_a_schedule.md
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <type_traits>
#include <vector>

struct late_ring {
    static constexpr auto allreduce(int size) {
        const auto whole = ddl::allreduce_program<ddl::ring>(size);
        return ddl::rest_of<std::remove_const_t<decltype(whole)>>{whole, 1};
    }
};

#ifdef DDL_WRONG
void call(ddl::threads& team, std::vector<float>& data) { ddl::allreduce<late_ring>(team, data); }
#else
void call(ddl::threads& team, std::vector<float>& data) { ddl::allreduce<ddl::ring>(team, data); }
#endif
