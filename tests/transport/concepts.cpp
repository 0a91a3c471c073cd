// SPDX-License-Identifier: Apache-2.0
#include <ddl/transport/concepts.hpp>
#include <ddl/transport/layered.hpp>
#include <ddl/transport/recording.hpp>
#include <ddl/transport/threads.hpp>

#include <boost/test/unit_test.hpp>

#include "../collective/private_memory.hpp"

static_assert(!ddl::communicator<int>);
static_assert(ddl::communicator<ddl::threads> && ddl::communicator<ddl::recording>);
static_assert(ddl::memory_transport<ddl::threads> && !ddl::message_transport<ddl::threads>);
static_assert(ddl::message_transport<ddl::recording> && !ddl::memory_transport<ddl::recording>);
static_assert(ddl::memory_transport<private_memory>, "a user's transport stands beside ours as an equal");
static_assert(!ddl::stacked_transport<ddl::threads> && !ddl::clustered_transport<ddl::threads>);

// A transport that lacks one thing is none: its culprit is named by the concept's own line.
struct without_a_limit : ddl::recording {
    void limit() = delete;
};
static_assert(ddl::communicator<without_a_limit> && !ddl::message_transport<without_a_limit>);
struct with_a_limit_without_a_unit : ddl::recording {
    double limit() const noexcept { return 1; }
};
static_assert(!ddl::message_transport<with_a_limit_without_a_unit>);
struct without_a_ticket_for_nothing : ddl::recording {
    struct ticket {
        explicit ticket(int);
    };
    ticket send(int, const void*, std::size_t, int);
    ticket receive(int, void*, std::size_t, int);
    bool test(ticket&);
    void cancel(ticket&) noexcept;
};
static_assert(!ddl::message_transport<without_a_ticket_for_nothing>, "the executor keeps room for tickets to come");
struct without_windows : ddl::threads {
    void window(int) = delete;
};
static_assert(ddl::communicator<without_windows> && !ddl::memory_transport<without_windows>);
struct that_cannot_fail : ddl::threads {
    void fail() = delete;
};
static_assert(!ddl::communicator<that_cannot_fail>, "silence is a defect");

BOOST_AUTO_TEST_CASE(all_facts_are_checked_by_the_compiler) { BOOST_TEST(true); }
