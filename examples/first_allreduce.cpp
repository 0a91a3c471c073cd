// SPDX-License-Identifier: Apache-2.0
// The shortest program: four ranks, which are threads of this process, add up their gradients.
// prints: every rank holds 10 10 10 ...
//! [first_allreduce]
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <cstdio>
#include <vector>

int main() {
    ddl::threads::run(4, [](ddl::threads& team) {
        std::vector<float> gradient(1'000'000, static_cast<float>(team.rank() + 1));
        ddl::allreduce(team, gradient);  // in place, by ddl::sum
        if (team.rank() == 0) std::printf("every rank holds %g %g %g ...\n", gradient[0], gradient[1], gradient[2]);
    });
}
//! [first_allreduce]
