// SPDX-License-Identifier: Apache-2.0
#include <ddl/allreduce.hpp>
#include <ddl/barrier.hpp>
#include <ddl/broadcast.hpp>
#include <ddl/reduce_scatter.hpp>
#include <ddl/schedule/multi_ring.hpp>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <latch>
#include <tuple>

#include "oracle.hpp"
#include "places.hpp"

namespace data = boost::unit_test::data;

namespace {

using every_place = std::tuple<places::threads, places::processes, places::messages<1>,
                               places::levels<ddl::threads, ddl::recording, 2>>;

/// How long ranks wait for one that never comes.
const ddl::timeout soon{under_thread_sanitizer ? 2.0 : 0.5};
/// The same where all who wait must have come by then, for they are not to be blamed.
const ddl::timeout later{2.0};

/// An op that fails on one rank.
struct broken_sum {
    static constexpr bool commutative = true;
    bool fails;
    float operator()(float a, float b) const {
        if (fails) throw std::domain_error("no such sum");
        return a + b;
    }
};

/// Where a rank that never comes stays until the others are done with waiting for it: it has not left.
class absence {
public:
    explicit absence(int ranks) : others_{ranks - 1} {}
    template <class Body>
    void of(bool absent, const Body& body) {
        if (absent) {
            others_.wait();
            return;
        }
        struct end {
            std::latch& others;
            ~end() { others.count_down(); }
        } const done{others_};
        body();
    }

private:
    std::latch others_;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Every call of a broken communicator throws, and does not wait for anybody: that would end by a timeout.
template <class Ranks>
void require_broken(Ranks& ranks) {
    for (int i = 0; i < 3; ++i) {
        std::vector<float> data(3);
        const ddl::error failure = error_of([&] { ddl::allreduce(ranks, data); });
        require(failure.code() == ddl::errc::broken, std::string("a broken communicator says ") + failure.what());
        require(std::string(failure.what()).find("broken since an earlier call [") != std::string::npos,
                failure.what());
    }
}

/// What all ranks but rank 1 meet when that one's op throws.
template <class Schedule>
constexpr auto a_throwing_op(std::size_t count) {
    return [count](auto& ranks) {
        const guarded<float> in{count, [&](std::size_t i) { return small_value(ranks.rank(), i); }};
        guarded<float> out{count};
        bool own_exception = false;
        ddl::error failure = error_of([&] {
            try {
                ddl::allreduce<Schedule>(ranks, in, out, broken_sum{ranks.rank() == 1});
            } catch (const std::domain_error&) { own_exception = true; }
        });
        require_values(
            in, [&](std::size_t i) { return small_value(ranks.rank(), i); }, "the input");
        if (ranks.rank() == 1) {
            require(own_exception, "the exception of the op is the caller's to catch");
        } else {
            require(failure.code() == ddl::errc::broken || failure.code() == no_error, failure.what());
            // a rank that had all it needed hears of it in its next call
            if (failure.code() == no_error) failure = error_of([&] { ddl::barrier(ranks); });
            require(std::string(failure.what()).find("an exception ended the call half done") != std::string::npos,
                    failure.what());
        }
        require_broken(ranks);
    };
}

/// An op that fails on one rank with an error of ours, as a transport may.
struct refused_sum {
    static constexpr bool commutative = true;
    bool fails;
    float operator()(float a, float b) const {
        if (fails) throw ddl::error(ddl::errc::system, "mmap", 1, -1, "no memory can be mapped");
        return a + b;
    }
};

/// An op that fails on one rank when all that ranks bring is folded.
struct broken_at_last {
    static constexpr bool commutative = true;
    bool fails;
    float operator()(float a, float b) const { return a + b; }
    float finish(float all, int) const {
        if (fails) throw std::domain_error("no such end");
        return all;
    }
};

struct huge {
    int values[10'000];
};
struct first_of_two {
    static constexpr bool commutative = true;
    huge operator()(const huge& a, const huge&) const { return a; }
};

/// A sum of values that one rank cannot widen.
struct delicate {
    double value;
    delicate() = default;
    explicit delicate(float from) : value{from} {
        if (refuses) throw std::domain_error("not this one");
    }
    explicit operator float() const { return static_cast<float>(value); }
    static thread_local bool refuses;
};
thread_local bool delicate::refuses = false;
struct add_delicate {
    static constexpr bool commutative = true;
    template <class>
    using accumulator = delicate;
    delicate operator()(const delicate& a, const delicate& b) const {
        delicate all;
        all.value = a.value + b.value;
        return all;
    }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_conversion_that_throws_breaks_the_call_on_all_ranks) {
    const auto start = std::chrono::steady_clock::now();
    for (const std::size_t count : {100u, 8000u, 50'000u})  // with the contract, by halves, behind it
        places::messages<1>::run(4, [count](auto& ranks) {
            std::vector<float> data(count);
            delicate::refuses = ranks.rank() == 1;
            bool refused = false;
            const ddl::error failure = error_of([&] {
                try {
                    ddl::allreduce<ddl::recursive_halving>(ranks, data, add_delicate{});
                    ddl::allreduce<ddl::recursive_doubling>(ranks, data, add_delicate{});
                } catch (const std::domain_error&) { refused = true; }
            });
            require(ranks.rank() == 1 ? refused : failure.code() == ddl::errc::broken, failure.what());
        });
    BOOST_TEST(seconds_since(start) < patient.seconds, "they waited for the timeout");
}

BOOST_AUTO_TEST_CASE(so_does_an_op_that_throws_at_last_however_long_the_vector_is) {
    for (const int size : {2, 3, 4})
        for (const std::size_t count : {5u, 3000u, 50'000u})
            places::messages<4>::run(size, [count](auto& ranks) {
                std::vector<float> data(count), block(ddl::block(count, ranks.size(), ranks.rank()).count);
                auto other = ranks.split(0, ranks.rank());
                const auto breaks = [&](auto& broken, const auto& call) {
                    bool refused = false;
                    ddl::error failure = error_of([&] {
                        try {
                            call(broken_at_last{ranks.rank() == 1});
                        } catch (const std::domain_error&) { refused = true; }
                    });
                    require(refused == (ranks.rank() == 1), "not one rank's exception");
                    if (refused) return;
                    if (failure.code() == no_error) failure = error_of([&] { ddl::barrier(broken); });
                    require(failure.code() == ddl::errc::broken, failure.what());
                };
                breaks(ranks, [&](auto op) { ddl::allreduce(ranks, data, op); });
                breaks(other, [&](auto op) { ddl::reduce_scatter(other, data, block, op); });
            });
}

BOOST_AUTO_TEST_CASE(an_op_that_throws_while_short_blocks_are_folded_breaks_the_call_on_all_ranks) {
    const auto start = std::chrono::steady_clock::now();
    for (const int size : {3, 4})
        for (const std::size_t count : {5u, 100u})
            places::messages<4>::run(size, [count](auto& ranks) {
                const std::vector<float> in(count, 1);
                std::vector<float> out(ddl::block(count, ranks.size(), ranks.rank()).count, -7);
                const std::vector<float> untouched = out;
                bool own_exception = false;
                ddl::error failure = error_of([&] {
                    try {
                        ddl::reduce_scatter(ranks, in, out, broken_sum{ranks.rank() == 1});
                    } catch (const std::domain_error&) { own_exception = true; }
                });
                require(own_exception == (ranks.rank() == 1), "whose op throws has its exception");
                if (own_exception) require(out == untouched, "it has written");
                else if (failure.code() == no_error) failure = error_of([&] { ddl::barrier(ranks); });
                require(own_exception || std::string(failure.what()).find("an exception ended the call half done") !=
                                             std::string::npos,
                        failure.what());
                require_broken(ranks);
            });
    BOOST_TEST(seconds_since(start) < patient.seconds, "they waited for the timeout");
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_op_that_throws_breaks_the_call_on_all_ranks, Place, every_place) {
    for (const std::size_t count : {100u, 5000u, 50'000u}) Place::run(4, a_throwing_op<ddl::tuned>(count));
    Place::run(4, a_throwing_op<ddl::ring>(50'000));
}

using those_that_tell_at_once =
    std::tuple<places::threads, places::messages<1>, places::levels<ddl::threads, ddl::recording, 2>>;

BOOST_AUTO_TEST_CASE_TEMPLATE(an_error_of_ours_is_the_others_in_its_words, Place, those_that_tell_at_once) {
    Place::run(4, [](auto& ranks) {
        std::vector<float> data(50'000);
        ddl::error failure = error_of([&] { ddl::allreduce(ranks, data, refused_sum{ranks.rank() == 1}); });
        if (failure.code() == no_error) failure = error_of([&] { ddl::barrier(ranks); });  // it had all that it needed
        require(failure.code() == ddl::errc::system, failure.what());
        require(std::string(failure.what()).find("mmap, rank 1: no memory can be mapped") != std::string::npos,
                failure.what());
        require_broken(ranks);
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_rank_that_leaves_takes_the_others_with_it, Place, every_place) {
    const auto start = std::chrono::steady_clock::now();
    BOOST_CHECK_THROW(Place::run(4,
                                 [](auto& ranks) {
                                     if (ranks.rank() == 1) throw std::domain_error("it has enough");
                                     std::vector<float> data(4);
                                     const ddl::error failure = error_of([&] {
                                         for (int i = 0; i < 3; ++i) ddl::allreduce(ranks, data);
                                     });
                                     require(failure.code() != no_error, "they went on without it");
                                 }),
                      std::domain_error);
    BOOST_TEST(seconds_since(start) < patient.seconds, "they waited for the timeout");
}

BOOST_AUTO_TEST_CASE(a_rank_that_never_comes_is_named) {
    const auto absent = [](auto words, absence& of_rank_1) {
        return [words, &of_rank_1](auto& ranks) {
            of_rank_1.of(ranks.rank() == 1, [&] {
                constexpr std::size_t count = 5000;
                const guarded<float> in{count, [&](std::size_t i) { return small_value(ranks.rank(), i); }};
                guarded<float> out{count};
                require_error(ddl::errc::timeout, words, [&] { ddl::allreduce(ranks, in, out); });
                require_values(
                    in, [&](std::size_t i) { return small_value(ranks.rank(), i); }, "the input");
                require(out.untouched(), "the output");
                require_broken(ranks);
            });
        };
    };
    absence among_threads{3}, among_processes{3}, among_messages{2};
    places::threads::run(3, absent("rank 1 did not arrive within", among_threads), later);
    places::processes::run(3, absent("rank 1 did not arrive within", among_processes), later);
    places::messages<1>::run(2, absent("rank 1 did not answer within", among_messages), later);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_rank_that_never_comes_ends_every_wait, Place, every_place) {
    for (const int absent : {0, 1, 3}) {
        absence of_one{4};
        Place::run(
            4,
            [&](auto& ranks) {
                of_one.of(ranks.rank() == absent, [&] {
                    std::vector<float> data(5000);
                    const ddl::error failure = error_of([&] { ddl::allreduce(ranks, data); });
                    require(failure.code() == ddl::errc::timeout, failure.what());
                    require_broken(ranks);
                });
            },
            soon);
    }
}

BOOST_AUTO_TEST_CASE(a_timeout_names_the_operation_the_rank_and_the_round) {
    absence of_rank_0{2};
    places::threads::run(
        2,
        [&](auto& ranks) {
            of_rank_0.of(ranks.rank() == 0, [&] {
                const ddl::error failure = error_of([&] { ddl::barrier(ranks); });
                require(std::string(failure.operation()) == "barrier", failure.operation());
                require(failure.rank() == 1 && failure.round() == 0, failure.what());
                require(std::string(failure.what()).find("barrier, rank 1, round 0: rank 0 did not") == 0,
                        failure.what());
            });
        },
        ddl::timeout{0.2});
}

BOOST_AUTO_TEST_CASE(who_loses_patience_leaves_no_buffer_that_a_peer_still_folds) {
    std::atomic<bool> left{false};
    std::atomic<bool> folds_past_it{false};
    ddl::threads::run(
        2,
        [&](ddl::threads& team) {
            const auto slow = ddl::commutative([&](float a, float b) {
                if (a != 7 && b != 7) return a + b;
                for (ddl::patience waiting{patient}; !team.has_failed() && !(waiting.pause() && waiting.expired());) {}
                std::this_thread::sleep_for(std::chrono::milliseconds(100));
                if (left) folds_past_it = true;
                return a + b;
            });
            if (team.rank() == 0) team.set_timeout(ddl::timeout{0.05});
            {
                std::vector<float> data(100'000, 1);
                if (team.rank() == 0) data[60'000] = 7;  // in the block that the other folds
                const ddl::error failure = error_of([&] { ddl::allreduce(team, data, slow); });
                require(team.rank() == 1 || failure.code() == ddl::errc::timeout, failure.what());
            }
            if (team.rank() == 0) left = true;
        },
        patient);
    BOOST_TEST(!folds_past_it);
}

BOOST_AUTO_TEST_CASE(a_thread_that_has_left_is_not_waited_for) {
    const auto body = [](auto& ranks) {
        auto part = ranks.split(0, ranks.rank());
        ddl::barrier(part);  // whoever has done its part may leave before the others look
        if (ranks.rank() == 1) return;
        for (auto* each : {&part, static_cast<decltype(&part)>(&ranks)}) {
            std::vector<float> data(5000);
            const ddl::error failure = error_of([&] { ddl::allreduce(*each, data); });
            // the first who sees it tells the other; what befell the whole is no news to the part
            require(failure.code() == ddl::errc::peer_lost, failure.what());
            require(std::string(failure.what()).find("rank 1 has ended") != std::string::npos, failure.what());
            require_broken(*each);
        }
    };
    const auto start = std::chrono::steady_clock::now();
    ddl::threads::run(3, body, patient);
    BOOST_TEST(seconds_since(start) < patient.seconds, "they waited for the timeout");
}

BOOST_AUTO_TEST_CASE(the_exception_of_an_op_is_thrown_by_run_whoever_leaves_first) {
    const auto run = [] {
        ddl::threads::run(
            4,
            [](ddl::threads& team) {
                std::vector<float> data(100'000, 1);
                ddl::allreduce(team, data, broken_sum{team.rank() == 1});
                ddl::barrier(team);
            },
            patient);
    };
    for (int turn = 0; turn < 20; ++turn) BOOST_CHECK_THROW(run(), std::domain_error);
}

BOOST_DATA_TEST_CASE(a_rank_that_dies_after_any_number_of_messages_is_missed, data::xrange(0, 7), sends) {
    ddl::recording::run(3,
                        [&](ddl::recording& ranks) {
                            constexpr std::size_t count = 30'000;
                            const guarded<float> in{count, [&](std::size_t i) { return small_value(ranks.rank(), i); }};
                            guarded<float> out{count};
                            const auto call = [&] {
                                ddl::allreduce<ddl::ring>(ranks, in, out);
                                ddl::barrier(ranks);
                                ddl::barrier(ranks);
                            };
                            if (ranks.rank() == 1) {
                                ranks.die(static_cast<std::size_t>(sends));
                                error_of(call);
                                return;
                            }
                            const ddl::error failure = error_of(call);
                            require(failure.code() == ddl::errc::timeout || failure.code() == ddl::errc::broken,
                                    failure.what());
                            require_values(
                                in, [&](std::size_t i) { return small_value(ranks.rank(), i); }, "the input");
                            require_broken(ranks);
                        },
                        {.delays = true, .eager_limit = 0, .limit = ddl::timeout{soon.seconds / 2}});
}

BOOST_AUTO_TEST_CASE(elements_that_fit_no_window_are_refused_on_every_rank) {
    places::threads::run(4, [](auto& ranks) {
        const auto in = std::make_unique<huge[]>(4);
        const auto out = std::make_unique<huge[]>(4);
        ddl::allreduce_plan<first_of_two, huge, ddl::ring, ddl::threads> step{ranks, in.get(), out.get(), 4};
        require_error(ddl::errc::invalid_argument, "do not fit a window of", step);
        ddl::barrier(ranks);  // as good as before
    });
}
