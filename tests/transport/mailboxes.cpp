// SPDX-License-Identifier: Apache-2.0
// not under: thread
#include <ddl/transport/mailboxes.hpp>

#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <new>

namespace {
bool no_memory = false;
}

// not inline: g++ would take what it sees for a mismatch
// NOLINTBEGIN(misc-new-delete-overloads)
[[gnu::noinline]] void* operator new[](std::size_t bytes) {
    if (no_memory) throw std::bad_alloc{};
    if (void* const data = std::malloc(bytes)) return data;
    throw std::bad_alloc{};
}
[[gnu::noinline]] void operator delete[](void* data) noexcept { std::free(data); }
[[gnu::noinline]] void operator delete[](void* data, std::size_t) noexcept { std::free(data); }
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
