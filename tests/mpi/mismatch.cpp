// SPDX-License-Identifier: Apache-2.0
// ranks: 2 3 4 5
// mpich-ranks: 2 3
#include <ddl/all_gather.hpp>
#include <ddl/allreduce.hpp>
#include <ddl/barrier.hpp>
#include <ddl/broadcast.hpp>
#include <ddl/reduce.hpp>

#include "world.hpp"

// Ranks that disagree: every one of them gets an error that says about what, and the communicator is as good as before.

using mpi_for_all_cases = mpi_with_threads<MPI_THREAD_MULTIPLE>;
BOOST_TEST_GLOBAL_FIXTURE(mpi_for_all_cases);

namespace {
template <class Transport>
void expect_usable(Transport& ranks) {
    for (const std::size_t count : {10U, 20'000U}) {
        auto values = values_of<std::uint32_t>(ranks.rank(), count);
        ddl::allreduce(ranks, values);
        BOOST_TEST((values == fold_of<std::uint32_t>(ranks.size(), count, ddl::sum{})));
    }
}

/// `call(odd)` with `odd` on one rank only: each in turn.
template <class Transport, class Call>
void expect_mismatch(Transport& ranks, const char* words, Call call) {
    for (int odd = 0; odd < ranks.size(); ++odd) {
        const ddl::error failure = error_of([&] { call(ranks.rank() == odd); });
        BOOST_TEST(says(failure, ddl::errc::mismatch, words), Transport::name << ": " << failure.what());
        expect_usable(ranks);
    }
}
/// Vectors that travel in the messages of the comparison, beside them in one piece and in several, as them by halves, short and
/// long ones, and behind them.
constexpr std::size_t lengths[] = {20, 100, 3000, 10'000, 100'000, 200'000};
}  // namespace

BOOST_AUTO_TEST_CASE(in_the_number_of_elements) {
    on_every_transport([](auto& ranks) {
        for (const std::size_t count : lengths) {
            expect_mismatch(ranks, "pass equal counts on every rank",
                            [&](bool odd) { ddl::allreduce(ranks, std::vector<float>(count + odd)); });
            expect_mismatch(ranks, "pass equal counts on every rank",
                            [&](bool odd) { ddl::broadcast(ranks, std::vector<float>(odd ? count : 2 * count)); });
        }
    });
}

BOOST_AUTO_TEST_CASE(in_the_type_of_elements) {
    on_every_transport([](auto& ranks) {
        for (const std::size_t count : lengths)
            expect_mismatch(ranks, "pass equal types on every rank", [&](bool odd) {
                odd ? ddl::allreduce(ranks, std::vector<std::int32_t>(count))
                    : ddl::allreduce(ranks, std::vector<float>(count));
            });
    });
}

BOOST_AUTO_TEST_CASE(in_the_op) {
    on_every_transport([](auto& ranks) {
        for (const std::size_t count : lengths)
            expect_mismatch(ranks, "pass equal ops on every rank", [&](bool odd) {
                std::vector<float> values(count);
                odd ? ddl::allreduce(ranks, values, ddl::maximum{}) : ddl::allreduce(ranks, values, ddl::sum{});
            });
    });
}

BOOST_AUTO_TEST_CASE(in_the_root) {
    on_every_transport([](auto& ranks) {
        for (const std::size_t count : lengths) {
            std::vector<float> values(count);
            expect_mismatch(ranks, "pass equal roots on every rank",
                            [&](bool odd) { ddl::broadcast(ranks, values, odd ? 1 : 0); });
            expect_mismatch(ranks, "pass equal roots on every rank",
                            [&](bool odd) { ddl::reduce(ranks, values, ddl::sum{}, odd ? 0 : 1); });
        }
    });
}

BOOST_AUTO_TEST_CASE(in_the_schedule) {
    on_every_transport([](auto& ranks) {
        for (const std::size_t count : lengths) {
            std::vector<float> values(count);
            expect_mismatch(ranks, "name the same schedule on every rank", [&](bool odd) {
                odd ? ddl::allreduce<ddl::ring>(ranks, values) : ddl::allreduce<ddl::recursive_doubling>(ranks, values);
            });
            expect_mismatch(ranks, "name the same schedule on every rank", [&](bool odd) {
                odd ? ddl::allreduce<ddl::hierarchical<ddl::direct, ddl::ring>>(ranks, values)
                    : ddl::allreduce<ddl::tree>(ranks, values);
            });
        }
    });
}

BOOST_AUTO_TEST_CASE(in_the_order_of_calls) {
    on_every_transport([](auto& ranks) {
        for (const std::size_t count : lengths) {
            std::vector<float> values(count);
            expect_mismatch(ranks, "call the same collectives in the same order on every rank",
                            [&](bool odd) { odd ? ddl::broadcast(ranks, values) : ddl::allreduce(ranks, values); });
            expect_mismatch(ranks, "call the same collectives in the same order on every rank",
                            [&](bool odd) { odd ? ddl::barrier(ranks) : ddl::all_gather(ranks, values); });
            expect_mismatch(ranks, "call the same collectives in the same order on every rank",
                            [&](bool odd) { odd ? ddl::barrier(ranks) : ddl::reduce(ranks, values); });
        }
    });
}

BOOST_AUTO_TEST_CASE(in_the_sizes_of_tensors) {
    on_every_transport([](auto& ranks) {
        for (const std::size_t count : lengths) {
            std::vector<float> values(count);
            expect_mismatch(ranks, "pass tensors of equal sizes in equal order on every rank", [&](bool odd) {
                const std::span<float> all{values};
                ddl::allreduce_n(ranks, std::vector{all.first(odd ? 2 : 3), all.subspan(odd ? 2 : 3)});
            });
        }
    });
}

BOOST_AUTO_TEST_CASE(of_calls_in_the_background) {
    on_every_transport([](auto& ranks) {
        for (const std::size_t count : lengths) {
            std::vector<float> values(count + 1);
            expect_mismatch(ranks, "pass equal counts on every rank", [&](bool odd) {
                ddl::allreduce_async(ranks, std::span{values.data(), count + odd}).wait();
            });
        }
    });
}

BOOST_AUTO_TEST_CASE(because_the_arguments_of_one_rank_make_no_sense) {
    on_every_transport([](auto& ranks) {
        for (int odd = 0; odd < ranks.size(); ++odd)
            for (const std::size_t count : lengths) {
                const bool wrong = ranks.rank() == odd;
                const std::vector<float> in(count);
                std::vector<float> out(count + wrong);
                const ddl::error length = error_of([&] { ddl::allreduce(ranks, in, out); });
                BOOST_TEST((length.code() == (wrong ? ddl::errc::invalid_argument : ddl::errc::mismatch)),
                           length.what());
                const ddl::error root = error_of([&] { ddl::broadcast(ranks, out, wrong ? -1 : 0); });
                BOOST_TEST((root.code() == (wrong ? ddl::errc::invalid_argument : ddl::errc::mismatch)), root.what());
                BOOST_TEST((wrong || says(root, ddl::errc::mismatch,
                                          "rank " + std::to_string(odd) + " has called with invalid arguments")),
                           root.what());
                expect_usable(ranks);
            }
    });
}

BOOST_AUTO_TEST_CASE(writes_no_result) {
    on_every_transport([](auto& ranks) {
        for (const std::size_t count : lengths) {
            const auto before = values_of<float>(ranks.rank(), count - static_cast<std::size_t>(ranks.rank()));
            auto values = before;
            BOOST_TEST((error_of([&] { ddl::allreduce(ranks, values); }).code() == ddl::errc::mismatch));
            BOOST_TEST((error_of([&] { ddl::reduce(ranks, values); }).code() == ddl::errc::mismatch));
            BOOST_TEST((error_of([&] { ddl::broadcast(ranks, values); }).code() == ddl::errc::mismatch));
            BOOST_TEST((values == before));
        }
    });
}
