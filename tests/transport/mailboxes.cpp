// SPDX-License-Identifier: Apache-2.0
// not under: thread
#include <ddl/transport/mailboxes.hpp>

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <new>

namespace {
bool no_memory = false;
}

// NOLINTBEGIN(misc-new-delete-overloads)
void* operator new[](std::size_t bytes) {
    if (no_memory) throw std::bad_alloc{};
    return ::operator new(bytes);
}
void operator delete[](void* data) noexcept { ::operator delete(data); }
void operator delete[](void* data, std::size_t) noexcept { ::operator delete(data); }
// NOLINTEND(misc-new-delete-overloads)

BOOST_AUTO_TEST_CASE(a_message_that_cannot_be_put_by_stays_with_its_sender) {
    const int sent = 42;
    ddl::mailbox::message one{0, 1, 0, &sent, sizeof sent, sizeof sent};
    no_memory = true;
    BOOST_CHECK_THROW(one.leaves_sender(), std::bad_alloc);
    no_memory = false;
    int came = 0;
    BOOST_TEST(one.reaches(reinterpret_cast<std::byte*>(&came)));
    BOOST_TEST(came == 42);
}
