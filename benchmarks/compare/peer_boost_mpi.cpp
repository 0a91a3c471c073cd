// SPDX-License-Identifier: Apache-2.0
// Boost.MPI over the MPI that it was built with.
#include <ddl/transport/mpi_runtime.hpp>

#include <boost/mpi.hpp>
#include <boost/version.hpp>

#include <cstdlib>
#include <type_traits>

#include "peer.hpp"

namespace compare {
namespace {

namespace mpi = boost::mpi;
using fold = std::conditional_t<std::is_same_v<op, ddl::sum>, std::plus<element>, mpi::maximum<element>>;

collective_call call_of(const cell& asked) {
    const int count = static_cast<int>(asked.count);
    const auto world = std::make_shared<mpi::communicator>();
    const bool root = world->rank() == 0;
    if (asked.collective == "barrier") return [=](const element*, element*) { world->barrier(); };
    if constexpr (std::is_arithmetic_v<element>) {
        const int each = count / world->size();
        const bool even = count % world->size() == 0;
        if (!asked.tensors.empty())
            return [=, tensors = asked.tensors](const element*, element* out) {
                for (const tensor& each : tensors)
                    mpi::all_reduce(*world, mpi::inplace_t<element*>{out + each.first}, static_cast<int>(each.count),
                                    fold{});
            };
        if (asked.collective == "broadcast")
            return [=](const element*, element* out) { mpi::broadcast(*world, out, count, 0); };
        if (asked.collective == "all_gather" && even)
            return [=](const element* in, element* out) { mpi::all_gather(*world, in, each, out); };
        if (asked.collective == "all_to_all" && !asked.in_place)
            return [=](const element* in, element* out) { mpi::all_to_all(*world, in, each, out); };
        if (asked.collective == "reduce" && !asked.in_place)
            return [=](const element* in, element* out) {
                if (root) mpi::reduce(*world, in, count, out, fold{}, 0);
                else mpi::reduce(*world, in, count, fold{}, 0);
            };
        if (asked.collective == "allreduce" && asked.in_place)
            return [=](const element*, element* out) {
                mpi::all_reduce(*world, mpi::inplace_t<element*>{out}, count, fold{});
            };
        if (asked.collective == "allreduce")
            return [=](const element* in, element* out) { mpi::all_reduce(*world, in, count, out, fold{}); };
    }
    return {};  // it has no reduce-scatter, and no bfloat16
}

}  // namespace

peer::peer(int& count, char**& words) {
    int level = MPI_THREAD_SINGLE;
    MPI_Init_thread(&count, &words, MPI_THREAD_FUNNELED, &level);
}
peer::~peer() { MPI_Finalize(); }
void peer::give_up() const {
    MPI_Abort(MPI_COMM_WORLD, 2);
    std::abort();
}
std::string peer::version() const {
    char words[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(words, &length);
    const std::string below = words;
    return "Boost.MPI " BOOST_LIB_VERSION " over " + below.substr(0, below.find_first_of(",\n"));
}
std::vector<contender> peer::contenders() const { return {{"peer", call_of}}; }

}  // namespace compare
