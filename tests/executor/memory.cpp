// SPDX-License-Identifier: Apache-2.0
#include <ddl/executor/memory.hpp>
#include <ddl/schedule/direct.hpp>

#include <boost/test/unit_test.hpp>

#include "../collective/places.hpp"
#include "../collective/require.hpp"

namespace {

ddl::call calling(std::size_t count) {
    return ddl::describe<ddl::no_op, int, ddl::direct>(ddl::collective::barrier, count, 0);
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_is_carried_and_staged_is_there_when_all_have_announced) {
    const auto body = [](auto& ranks) {
        for (int round = 0; round < 100; ++round) {
            ddl::memory_call here{ranks, calling(1), true};
            const int said = 1000 * round + ranks.rank();
            *here.template staged<int>(ranks.rank(), 0, 1, 3) = -said;
            here.announce(&said, sizeof said);
            for (int peer = 0; peer < ranks.size(); ++peer) {
                int heard = 0;
                std::memcpy(&heard, here.carried(peer), sizeof heard);
                require(heard == 1000 * round + peer, "another notice");
                require(*here.template staged<int>(peer, 0, 1, 3) == -heard, "staged for another call");
            }
            here.end();
        }
    };
    places::threads::run(3, body);
    places::processes::run(3, body);
}

BOOST_AUTO_TEST_CASE(ranks_whose_calls_differ_all_hear_of_it) {
    const auto body = [](auto& ranks) {
        const auto failure = error_of([&] {
            ddl::memory_call{ranks, calling(ranks.rank() == 1 ? 8 : 7), true}.enter();
        });
        require(failure.code() == ddl::errc::mismatch, "it was not noticed");
        ddl::memory_call{ranks, calling(7), true}.enter();                                        // and go on
        ddl::memory_call{ranks, calling(static_cast<std::size_t>(ranks.rank())), false}.enter();  // unless nobody looks
    };
    places::threads::run(3, body);
    places::processes::run(3, body);
}

BOOST_AUTO_TEST_CASE(calls_that_agree_have_one_fingerprint_and_others_another) {
    const ddl::call known = calling(7);
    BOOST_TEST(fingerprint(known) == fingerprint(calling(7)));
    const auto differs = [&](auto change) {
        ddl::call other = known;
        change(other);
        BOOST_TEST(!other.agrees(known));
        BOOST_TEST(fingerprint(other) != fingerprint(known));
    };
    differs([](ddl::call& what) { ++what.count; });
    differs([](ddl::call& what) { what.count += std::uint64_t{1} << 32; });
    differs([](ddl::call& what) { what.what = ddl::collective::broadcast; });
    differs([](ddl::call& what) { ++what.root; });
    differs([](ddl::call& what) { ++what.op; });
    differs([](ddl::call& what) { ++what.element; });
    differs([](ddl::call& what) { ++what.schedule; });
    differs([](ddl::call& what) { ++what.element_bytes; });
}
