// SPDX-License-Identifier: Apache-2.0
// Work goes on while a collective is under way, and there are four ways to learn that it is done.
// prints: waited: 3
// prints: tested: 9
// prints: called back: 27
// prints: polled: 81
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <atomic>
#include <cstdio>
#include <exception>
#include <poll.h>
#include <vector>

void work_on_something_else() {}

int main() {
    ddl::threads::run(3, [](ddl::threads& team) {
        std::vector<float> values(100'000, 1);
        const auto report = [&](const char* how) {
            if (team.rank() == 0) std::printf("%s: %g\n", how, values.back());
        };

        //! [wait]
        const auto sum = ddl::allreduce_async(team, values);  // a ddl::request
        work_on_something_else();                             // `values` belongs to the collective until it is done
        sum.wait();                                           // throws what the collective throws
        //! [wait]
        report("waited");

        //! [test]
        const auto next = ddl::allreduce_async(team, values);
        while (!next.test()) work_on_something_else();
        //! [test]
        report("tested");

        //! [on_completion]
        std::atomic<bool> done = false;
        const auto third = ddl::allreduce_async(team, values);
        third.on_completion([&done](const std::exception_ptr&) {  // on the thread that carried it out
            done = true;
            done.notify_one();
        });
        done.wait(false);
        third.wait();  // returns at once, or throws
        //! [on_completion]
        report("called back");

        //! [descriptor]
        const auto last = ddl::allreduce_async(team, values);
        pollfd event{last.descriptor(), POLLIN, 0};  // beside the sockets of an event loop
        while (::poll(&event, 1, -1) != 1) {}
        last.wait();  // returns at once, or throws
        //! [descriptor]
        report("polled");
    });
}
