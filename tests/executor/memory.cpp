// SPDX-License-Identifier: Apache-2.0
#include <ddl/executor/memory.hpp>
#include <ddl/schedule/direct.hpp>

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <functional>

#include "../collective/places.hpp"
#include "../collective/require.hpp"

namespace {

ddl::call calling(std::size_t count) {
    return ddl::describe<ddl::no_op, int, ddl::direct>(ddl::collective::barrier, count, 0);
}

/// Threads that are told when to look for a peer's notice, and that say when they wait for a peer's hands off their buffers.
class watched : public ddl::threads {
public:
    explicit watched(ddl::threads&& team) noexcept : ddl::threads{std::move(team)} {}

    std::function<void()> before_notices = [] {};
    std::function<void()> while_waiting = [] {};

    void await_notice(int peer, const ddl::call_site& where) {
        before_notices();
        ddl::threads::await_notice(peer, where);
    }
    bool lost(int) const {
        while_waiting();
        return false;
    }
};
void run_watched(int ranks, const std::function<void(watched&)>& body) {
    places::threads::run(ranks, [&](ddl::threads& team) {
        watched one{std::move(team)};
        body(one);
    });
}

void until(const std::function<bool()>& fact) {
    for (ddl::patience waiting{patient}; !fact();)
        require(!waiting.pause() || !waiting.expired(), "it never came so far");
}
/// What a rank does that is asleep between two looks at a notice: the notice has come meanwhile, a failure too, and it hears that.
void hear_of_the_failure(watched& ranks) {
    until([&] { return ranks.has_failed(); });
    ranks.listen({"a look at last"});
}

/// The last rank looks late, at a call that the others have left with `theirs`: it hears of their failure, and waits for nobody.
void the_last_looks_when_all_have_left(std::size_t count_of_the_last, ddl::errc theirs) {
    for (const int size : {2, 3, 4}) {
        std::atomic<int> over{0};
        run_watched(size, [&](watched& ranks) {
            const bool is_late = ranks.rank() == size - 1;
            if (is_late) ranks.before_notices = [&] { hear_of_the_failure(ranks); };
            bool waited = false;
            ranks.while_waiting = [&] { waited = true; };
            const ddl::error failure = error_of([&] {
                ddl::memory_call{ranks, calling(is_late ? count_of_the_last : 7), true}.enter();
            });
            require(failure.code() == (is_late ? ddl::errc::system : theirs), failure.what());
            require(!is_late || !waited, "it waits in vain");
            if (!is_late && ++over == size - 1) ranks.fail(ddl::errc::system, "left with its error");
        });
    }
}

}  // namespace

// A rank that leaves a call waits for those who touch its buffers, and for nobody else: they may have left long before.
BOOST_AUTO_TEST_CASE(nobody_waits_for_ranks_that_have_left_by_a_mismatch) {
    the_last_looks_when_all_have_left(8, ddl::errc::mismatch);
}
BOOST_AUTO_TEST_CASE(nobody_waits_for_ranks_whose_call_is_over) { the_last_looks_when_all_have_left(7, no_error); }

BOOST_AUTO_TEST_CASE(nobody_leaves_while_a_peer_touches_its_buffers) {
    std::atomic<bool> touched{false};
    std::atomic<bool> waits{false};
    std::atomic<bool> untouched{false};
    std::atomic<bool> left{false};
    run_watched(2, [&](watched& ranks) {
        ddl::memory_call here{ranks, calling(7), true};
        if (ranks.rank() == 1) {
            ranks.before_notices = [&] {
                until([&] { return touched.load(); });
                ranks.fail(ddl::errc::system, "the device says no");
                ranks.listen({"after its own failure"});
            };
            ranks.while_waiting = [&] { waits = true; };
            require_error(ddl::errc::broken, "the device says no", [&] { here.announce(); });
            require(untouched, "it left too soon");
            left = true;
        } else {
            here.announce();
            require_error(ddl::errc::system, "the device says no", [&] {
                here.share([&] {
                    touched = true;
                    until([&] { return waits || left; });
                    untouched = true;
                });
            });
        }
    });
}

BOOST_AUTO_TEST_CASE(nobody_touches_buffers_of_a_rank_that_has_left) {
    std::atomic<int> in_the_call{0};
    std::atomic<bool> left{false};
    run_watched(3, [&](watched& ranks) {
        ddl::memory_call here{ranks, calling(7), true};
        if (ranks.rank() == 1) {
            ranks.before_notices = [&] {
                until([&] { return in_the_call == 2; });
                ranks.fail(ddl::errc::system, "the device says no");
                ranks.listen({"after its own failure"});
            };
            require_error(ddl::errc::broken, "the device says no", [&] { here.announce(); });
            left = true;
        } else {
            ranks.before_notices = [&, counted = false]() mutable {
                if (!std::exchange(counted, true)) ++in_the_call;
                until([&] { return left.load(); });
            };
            here.announce();
            require_error(ddl::errc::system, "the device says no",
                          [&] { here.share([] { require(false, "the buffers are gone"); }); });
        }
    });
}

BOOST_AUTO_TEST_CASE(nor_those_of_a_rank_whose_own_work_has_failed) {
    std::atomic<bool> announced{false};
    std::atomic<bool> left{false};
    run_watched(2, [&](watched& ranks) {
        ddl::memory_call here{ranks, calling(7), true};
        here.announce();
        if (ranks.rank() == 0) announced = true;
        until([&] { return (ranks.rank() == 0 ? left : announced).load(); });
        const ddl::error failure = error_of([&] {
            here.share([&] {
                require(ranks.rank() == 1, "the buffers are gone");
                throw ddl::error(ddl::errc::system, "test", 1, -1, "an op fails");
            });
        });
        require(failure.code() == ddl::errc::system, failure.what());
        left = true;
    });
}

BOOST_AUTO_TEST_CASE(what_is_carried_and_staged_is_there_when_all_have_announced) {
    const auto body = [](auto& ranks) {
        for (int round = 0; round < 100; ++round) {
            ddl::memory_call here{ranks, calling(1), true};
            const int said = 1000 * round + ranks.rank();
            ranks.turn_staging();
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
