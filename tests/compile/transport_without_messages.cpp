// SPDX-License-Identifier: Apache-2.0
// expect: ddl: this communicator has neither messages nor memory; static_assert(ddl::message_transport<yours>) says what is missing
#include <ddl/allreduce.hpp>
#include <ddl/transport/recording.hpp>

#include <vector>

struct without_a_limit : ddl::recording {
    void limit() = delete;
};

#ifdef DDL_WRONG
void call(without_a_limit& team, std::vector<float>& data) { ddl::allreduce(team, data); }
#else
void call(ddl::recording& team, std::vector<float>& data) { ddl::allreduce(team, data); }
#endif
