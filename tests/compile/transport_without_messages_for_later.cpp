// SPDX-License-Identifier: Apache-2.0
// expect: ddl: this communicator has neither messages nor memory; static_assert(ddl::message_transport<yours>) says what is missing
#include <ddl/gather.hpp>
#include <ddl/transport/recording.hpp>

#include <vector>

struct without_a_limit : ddl::recording {
    void limit() = delete;
};

#ifdef DDL_WRONG
using transport = without_a_limit;
#else
using transport = ddl::recording;
#endif
void call(transport& team, std::vector<float>& in, std::vector<float>& out) {
    ddl::gather_async(team, in, out, 1).wait();  // counts and root are looked at, too, and refused
}
