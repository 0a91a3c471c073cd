// SPDX-License-Identifier: Apache-2.0
// Of plans that another source file instantiates nothing is compiled here, not even to be put in line.
#include <ddl/all_gather.hpp>
#include <ddl/all_to_all.hpp>
#include <ddl/allreduce.hpp>
#include <ddl/broadcast.hpp>
#include <ddl/gather.hpp>
#include <ddl/reduce.hpp>
#include <ddl/reduce_scatter.hpp>
#include <ddl/scatter.hpp>
#include <ddl/transport/threads.hpp>

#include <vector>

struct no_schedule {};  // which an error says where a run is compiled

extern template class ddl::allreduce_plan<ddl::sum, float, no_schedule, ddl::threads>;
extern template class ddl::reduce_plan<ddl::sum, float, no_schedule, ddl::threads>;
extern template class ddl::reduce_scatter_plan<ddl::sum, float, no_schedule, ddl::threads>;
extern template class ddl::all_gather_plan<float, no_schedule, ddl::threads>;
extern template class ddl::broadcast_plan<float, no_schedule, ddl::threads>;
extern template class ddl::gather_plan<float, no_schedule, ddl::threads>;
extern template class ddl::scatter_plan<float, no_schedule, ddl::threads>;
extern template class ddl::all_to_all_plan<float, no_schedule, ddl::threads>;

void call(ddl::threads& team, std::vector<float>& part, std::vector<float>& whole) {
    ddl::allreduce<no_schedule>(team, whole);
    ddl::reduce<no_schedule>(team, whole);
    ddl::reduce_scatter<no_schedule>(team, whole, part);
    ddl::all_gather<no_schedule>(team, part, whole);
    ddl::broadcast<no_schedule>(team, whole);
    ddl::gather<no_schedule>(team, part, whole);
    ddl::scatter<no_schedule>(team, whole, part);
    ddl::all_to_all<no_schedule>(team, whole);
}
