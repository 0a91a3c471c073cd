// SPDX-License-Identifier: Apache-2.0
#include <ddl/allreduce.hpp>
#include <ddl/barrier.hpp>
#include <ddl/transport/threads.hpp>

#include <cstdlib>
#include <vector>

#ifdef CONSUMER_USES_MPI
#include <mpi.h>

#include <dlfcn.h>
#endif
#ifdef CONSUMER_USES_SOLVER
#include "solver.hpp"
#endif

namespace {
void require(bool as_it_should_be) {
    if (!as_it_should_be) std::abort();
}
}  // namespace

int main() {
#ifdef CONSUMER_USES_SOLVER
    require(&what_it_throws() == &typeid(ddl::error));  // by which libc++ knows what a handler catches
#endif
#ifdef CONSUMER_USES_MPI
    int initialized = 0;
    MPI_Initialized(&initialized);
    require(initialized == 0);
    MPI_Init(nullptr, nullptr);
    void* const plugin = dlopen(CONSUMER_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    require(plugin != nullptr);
    require(reinterpret_cast<float (*)()>(dlsym(plugin, "add_up"))() == 1);
    const auto add_up_on = reinterpret_cast<void (*)(ddl::threads&, std::vector<float>&)>(dlsym(plugin, "add_up_on"));
    ddl::threads::run(2, [&](ddl::threads& team) {  // the communicator goes on when who made its first call is gone
        std::vector<float> v(5, 1);
        add_up_on(team, v);
        ddl::barrier(team);
        if (team.rank() == 0) {
            dlclose(plugin);
            require(dlopen(CONSUMER_PLUGIN, RTLD_NOW | RTLD_NOLOAD) == nullptr);
        }
        ddl::barrier(team);
        ddl::allreduce_async(team, v).wait();
        require(v[4] == 4);
    });
    MPI_Finalize();
#endif
    ddl::threads::run(3, [](ddl::threads& team) {
        std::vector<float> v(5, float(team.rank() + 1));
        ddl::allreduce(team, v);
        require(v[4] == 6);
#ifdef CONSUMER_USES_SOLVER
        std::vector<float> theirs(5, 1);
        const auto ours = ddl::allreduce_async(team, v);
        begin_to_add(team, theirs).wait();
        ours.wait();
        require(v[4] == 18 && theirs[4] == 3);
#endif
    });
}
