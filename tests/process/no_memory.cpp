// SPDX-License-Identifier: Apache-2.0
// What is done where the process has no memory or descriptor left: the others hear of it, and no thread ends the process.
#include <ddl/allreduce.hpp>
#include <ddl/barrier.hpp>
#include <ddl/transport/call_queue.hpp>
#include <ddl/transport/file_post.hpp>
#include <ddl/transport/recording.hpp>
#include <ddl/transport/shared_memory.hpp>
#include <ddl/transport/threads.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <latch>
#include <new>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <thread>
#include <tuple>
#include <unistd.h>
#include <vector>

#include "children.hpp"

namespace {
thread_local int granted = -1;  // before one is refused to this thread; below 0 nothing is
thread_local bool is_first = false;
thread_local std::size_t longest_aligned = static_cast<std::size_t>(-1);  // that this thread gets
std::atomic<bool> refuses_others = false;
int sent_before = -1;  // messages before one of this process is refused; below 0 none is
bool accepts = true;
bool takes_files = true;

bool is_refused() noexcept { return (granted >= 0 && granted-- == 0) || (refuses_others && !is_first); }

/// Three ranks that run `body(communicator)`, and leave when all are done with it.
struct in_processes {
    template <class Body>
    static std::vector<outcome> run(const Body& body) {
        const std::string job = fresh_job();
        children ranks;
        for (int rank = 0; rank < 3; ++rank)
            ranks.start([&, rank] {
                ddl::shared_memory node{job, rank, 3, ddl::timeout{20}};
                ddl::shared_memory end{job + "-end", rank, 3, ddl::timeout{60}};
                const outcome result = children::run([&] { body(node); });
                granted = -1;
                ddl::barrier(end);
                if (result.how == outcome::threw_error) throw ddl::error(result.code, "", -1, -1, "%s", result.words);
                EXPECT(result.how == outcome::returned);
            });
        return ranks.finish();
    }
};
/// The same in threads of this process.
template <class Transport>
struct in_threads {
    template <class Body>
    static std::vector<outcome> run(const Body& body) {
        std::vector<outcome> results(3);
        std::latch done{3};
        const auto on_rank = [&](Transport& team) {
            team.set_timeout(ddl::timeout{20});
            results[static_cast<std::size_t>(team.rank())] = children::run([&] { body(team); });
            granted = -1;
            done.arrive_and_wait();
        };
        Transport::run(3, on_rank);
        return results;
    }
};
using those_that_share_memory = std::tuple<in_threads<ddl::threads>, in_processes>;
using every_place = std::tuple<in_threads<ddl::threads>, in_processes, in_threads<ddl::recording>>;

/// Refuses rank 1 memory once, each time later in `call(ranks, from_here)`, until it no longer comes to that: the others meet `told`.
template <class Place, class Call>
void all_hear(ddl::errc told, const char* words, const Call& call) {
    int allocations = 0;
    for (;; ++allocations) {
        const std::vector<outcome> results =
            Place::run([&](auto& ranks) { call(ranks, [&] { granted = ranks.rank() == 1 ? allocations : -1; }); });
        if (results[1].how == outcome::returned) break;
        BOOST_TEST_REQUIRE((results[1].is(ddl::errc::out_of_memory) && results[1].mentions("no memory is left")),
                           allocations << ": " << results[1]);
        for (const std::size_t other : {0U, 2U})
            BOOST_TEST_REQUIRE((results[other].is(told) && results[other].mentions(words)),
                               allocations << ": " << results[other]);
    }
    BOOST_TEST(allocations > 0);
}
}  // namespace

// not inline: g++ would take what it sees for a mismatch
[[gnu::noinline]] void* operator new(std::size_t bytes) {
    if (!is_refused())
        if (void* const memory = std::malloc(bytes)) return memory;
    throw std::bad_alloc{};
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
    const auto each = static_cast<std::size_t>(alignment);
    if (bytes <= longest_aligned)
        if (void* const memory = std::aligned_alloc(each, (bytes + each - 1) / each * each)) return memory;
    throw std::bad_alloc{};
}
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

extern "C" ssize_t sendmsg(int to, const msghdr* message, int flags) {
    if (sent_before < 0 || sent_before-- != 0) return ::syscall(SYS_sendmsg, to, message, flags);
    errno = ENOBUFS;
    return -1;
}
extern "C" int accept4(int at, sockaddr* from, socklen_t* length, int flags) {
    if (accepts) return static_cast<int>(::syscall(SYS_accept4, at, from, length, flags));
    errno = EMFILE;
    return -1;
}
extern "C" ssize_t recvmsg(int from, msghdr* message, int flags) {
    if (!takes_files) message->msg_controllen = 0;  // the system lets go of them, as where no descriptor is left
    return ::syscall(SYS_recvmsg, from, message, flags);
}

BOOST_AUTO_TEST_CASE(a_rank_without_memory_is_not_waited_for_while_ranks_meet) {
    int times_told = 0;
    for (int allocations = 0;; ++allocations) {
        const std::string job = fresh_job();
        const marks comes;
        children ranks;
        ranks.start([&] {
            EXPECT(comes.wait_for(1));
            granted = allocations;
            ddl::shared_memory node{job, 0, 2, ddl::timeout{20}};
            granted = -1;
            node.exchange(0, {"test"});
        });
        ranks.start([&] {
            comes.leave();
            ddl::shared_memory node{job, 1, 2, ddl::timeout{20}};
            node.exchange(0, {"test"});
        });
        const std::vector<outcome> results = ranks.finish();
        if (results[0].how == outcome::returned) break;
        BOOST_TEST_REQUIRE(results[0].how == outcome::threw_other, allocations << ": " << results[0]);
        const bool told = results[1].is(ddl::errc::out_of_memory) && results[1].mentions("rank 0 gave up");
        times_told += told;
        BOOST_TEST_REQUIRE((told || results[1].is(ddl::errc::peer_lost)), allocations << ": " << results[1]);
    }
    BOOST_TEST(times_told > 0);
}

BOOST_AUTO_TEST_CASE(nor_is_one_that_the_system_lets_say_nothing) {
    for (const int lacks : {0, 1}) {
        for (int sent = 0;; ++sent) {
            const std::string job = fresh_job();
            children ranks;
            for (const int rank : {0, 1, 2})
                ranks.start([&, rank] {
                    if (rank == lacks) sent_before = sent;
                    ddl::shared_memory node{job, rank, 3, ddl::timeout{20}};
                    sent_before = -1;
                    node.exchange(0, {"test"});
                });
            const std::vector<outcome> results = ranks.finish();
            const outcome& failed = results[static_cast<std::size_t>(lacks)];
            if (failed.how == outcome::returned) {
                BOOST_TEST(sent > 1);
                break;
            }
            BOOST_TEST_REQUIRE((failed.is(ddl::errc::system) && failed.mentions("sendmsg: ")), sent << ": " << failed);
            for (const outcome& each : results)
                BOOST_TEST_REQUIRE((each.is(ddl::errc::system) || each.is(ddl::errc::peer_lost)), sent << ": " << each);
        }
    }
}

BOOST_AUTO_TEST_CASE(nor_is_one_that_has_no_descriptor_left_for_the_file) {
    const std::string job = fresh_job();
    children ranks;
    for (const int rank : {0, 1})
        ranks.start([&, rank] {
            takes_files = rank == 0;
            ddl::shared_memory{job, rank, 2, ddl::timeout{20}};
        });
    const std::vector<outcome> results = ranks.finish();
    for (const outcome& each : results) {
        BOOST_TEST(each.is(ddl::errc::system), each);
        BOOST_TEST(each.mentions("recvmsg: Too many open files"), each);
    }
    BOOST_TEST(results[0].mentions("rank 1 gave up"), results[0]);
}

BOOST_AUTO_TEST_CASE(files_for_which_no_descriptor_is_left_are_not_lost_in_silence) {
    const ddl::file_post sender{0};
    const ddl::file_post receiver{1};
    const ddl::descriptor file{::memfd_create("file", MFD_CLOEXEC)};
    for (bool* const allows : {&accepts, &takes_files}) {
        sender.send(receiver.address(), 0, file);
        *allows = false;
        const outcome result = children::run([&] { receiver.receive(); });
        *allows = true;
        BOOST_TEST(result.is(ddl::errc::system), result);
        BOOST_TEST(result.mentions(": Too many open files"), result);
    }
    BOOST_TEST(receiver.receive().has_value(), "the first still lay there");
    BOOST_TEST(!receiver.receive().has_value());
}

BOOST_AUTO_TEST_CASE(nonblocking_calls_need_none_in_their_thread) {
    children ranks;
    ranks.start([] {
        is_first = true;
        refuses_others = true;
        ddl::call_queue queue;
        std::atomic<int> calls = 0;
        for (int i = 0; i < 100; ++i) queue.push([&] { ++calls; }).descriptor();  // for none of which this thread waits
        queue.push([&] { ++calls; }, [] { return true; }).wait();
        int looks = 0;
        queue.push([&] { ++calls; }, [&] { return ++looks == 5; }).wait();
        EXPECT(calls == 102 && looks == 5);
    });
    const std::vector<outcome> results = ranks.finish();
    BOOST_TEST(results[0].how == outcome::returned, results[0]);
}

namespace {
/// Longer than what a rank stages of a call.
struct long_element {
    int values[100'000];
};
struct added {
    static constexpr bool commutative = true;
    long_element operator()(const long_element& a, const long_element& b) const noexcept {
        long_element both;
        std::transform(std::begin(a.values), std::end(a.values), std::begin(b.values), std::begin(both.values),
                       std::plus{});
        return both;
    }
};

template <class Checking>
void one_rank_cannot_stand_in() {
    children ranks;
    ranks.start([] {
        ddl::threads::run(
            2,
            [](ddl::threads& team) {
                std::vector<long_element> data(2);
                if (team.rank() == 1) longest_aligned = 100'000;
                bool failed = false;
                try {
                    ddl::allreduce<ddl::direct, Checking>(team, data, added{});
                } catch (const std::exception&) { failed = true; }
                EXPECT(failed);
            },
            ddl::timeout{60});
    });
    const std::vector<outcome> results = ranks.finish();
    BOOST_TEST(results[0].how == outcome::returned, results[0]);
}
}  // namespace

BOOST_AUTO_TEST_CASE(what_cannot_be_staged_is_not_folded_without_a_rank_that_has_no_memory_for_it) {
    one_rank_cannot_stand_in<ddl::checked>();
    one_rank_cannot_stand_in<ddl::unchecked>();
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_others_hear_of_a_split_that_lacks_it, Place, those_that_share_memory) {
    all_hear<Place>(ddl::errc::out_of_memory, "a peer gave up [split, rank 1: no memory is left]",
                    [](auto& ranks, auto from_here) {
                        ddl::barrier(ranks);
                        from_here();
                        auto part = ranks.split(0, -ranks.rank());
                        granted = -1;
                        ddl::barrier(part);
                        ddl::barrier(ranks);
                    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_nonblocking_call_that_cannot_be_put_by_is_refused, Place, every_place) {
    all_hear<Place>(ddl::errc::mismatch, "see its own error", [](auto& ranks, auto from_here) {
        int before = 1, value = 1;
        const auto earlier = ddl::allreduce_async(ranks, std::span{&before, 1});
        const auto call = [&] {
            from_here();
            const auto made = ddl::allreduce_async(ranks, std::span{&value, 1});
            granted = -1;
            made.wait();
        };
        const outcome result = children::run(call);
        granted = -1;
        ddl::barrier(ranks);  // as good as before
        EXPECT(earlier.test() && before == 3);
        if (result.how == outcome::threw_error) throw ddl::error(result.code, "", -1, -1, "%s", result.words);
        EXPECT(result.how == outcome::returned && value == 3);
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(one_that_is_not_compared_breaks_the_communicator, Place, every_place) {
    all_hear<Place>(ddl::errc::out_of_memory, "[start, rank 1: no memory is left]", [](auto& ranks, auto from_here) {
        int value = 1;
        from_here();
        const auto made = ddl::allreduce_async<ddl::tuned, ddl::unchecked>(ranks, std::span{&value, 1});
        granted = -1;
        made.wait();
        EXPECT(value == 3);
        ddl::barrier(ranks);
    });
}
