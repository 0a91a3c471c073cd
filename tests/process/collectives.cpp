// SPDX-License-Identifier: Apache-2.0
#include <ddl/all_gather.hpp>
#include <ddl/all_to_all.hpp>
#include <ddl/allreduce.hpp>
#include <ddl/barrier.hpp>
#include <ddl/broadcast.hpp>
#include <ddl/gather.hpp>
#include <ddl/reduce.hpp>
#include <ddl/reduce_scatter.hpp>
#include <ddl/scatter.hpp>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include <sys/resource.h>
#include <utility>

#include "../collective/under_sanitizers.hpp"
#include "team.hpp"

namespace data = boost::unit_test::data;

namespace {
constexpr memory all_kinds[] = {memory::own, memory::mapped, memory::mixed};
constexpr std::size_t window = ddl::membership::window_bytes;

/// Numbers of ranks; the first three of them where every byte is looked at.
auto sizes(std::vector<int> all) {
    if (under_address_sanitizer) all.resize(3);
    return data::make(std::move(all));
}

/// Reduces `count` elements out of place and in place, in buffers of a kind, and looks at every bit that may have changed.
template <class Schedule, class Element, class Op>
void allreduce_both_ways(ddl::shared_memory& node, memory kind, std::size_t count, std::size_t offset, Op op) {
    room<Element> in{node, kind, count, offset};
    room<Element> out{node, kind, count, offset};
    fill(in.all(), node.rank());
    ddl::allreduce<Schedule>(node, in.all(), out.all(), op);
    expect_fold("allreduce", out.all(), node.size(), op);
    expect_same_bits(node, out.all());
    expect_values("the input of allreduce", in.all(), node.rank());
    ddl::allreduce<Schedule>(node, in.all(), op);
    EXPECT(count == 0 || std::memcmp(in.all().data(), out.all().data(), in.all().size_bytes()) == 0);
}

/// Lengths at which something changes: none, fewer than ranks, as many, what fits a slot, a window and several.
std::vector<std::size_t> lengths(int size, std::size_t element_bytes) {
    const auto ranks = static_cast<std::size_t>(size);
    std::vector<std::size_t> all{0, 1, ranks - 1, ranks, ranks + 1, 1000};
    for (const std::size_t bytes : {std::size_t{8192}, window / 2, 2 * window + 12'345})
        for (const std::size_t more : {0U, 1U}) all.push_back(bytes / element_bytes + more);
    return all;
}
}  // namespace

BOOST_DATA_TEST_CASE(allreduce_of_any_length_from_any_memory, sizes({1, 2, 3, 4, 5, 6, 7, 8, 9}), size) {
    run_team(size, [size](ddl::shared_memory& node) {
        for (const memory kind : all_kinds)
            for (const std::size_t count : lengths(size, sizeof(float)))
                allreduce_both_ways<ddl::tuned, float>(node, kind, count, count % 3, ddl::sum{});
    });
}

BOOST_DATA_TEST_CASE(allreduce_by_every_schedule, sizes({1, 2, 3, 4, 5, 8}), size) {
    run_team(size, [](ddl::shared_memory& node) {
        const auto by = [&]<class Schedule>(Schedule) {
            for (const std::size_t count : {0U, 1U, 7U, 1000U, 200'003U})
                allreduce_both_ways<Schedule, float>(node, memory::own, count, 1, ddl::sum{});
            allreduce_both_ways<Schedule, std::uint16_t>(node, memory::mapped, 5000, 3, ddl::sum{});
        };
        by(ddl::direct{});
        by(ddl::ring{});
        by(ddl::multi_ring<2>{});
        by(ddl::recursive_doubling{});
        by(ddl::recursive_halving{});
        by(ddl::tree{});
        by(ddl::hierarchical<ddl::direct, ddl::ring>{});
        by(ddl::hierarchical<ddl::ring, ddl::recursive_halving>{});
    });
}

BOOST_AUTO_TEST_CASE(allreduce_by_every_kind_of_op) {
    run_team(4, [](ddl::shared_memory& node) {
        for (const memory kind : all_kinds)
            for (const std::size_t count : {5U, 3000U, 300'000U}) {
                allreduce_both_ways<ddl::tuned, double>(node, kind, count, 0, ddl::maximum{});
                allreduce_both_ways<ddl::tuned, std::int8_t>(node, kind, count, 5, ddl::bit_xor{});
                allreduce_both_ways<ddl::tuned, ddl::half>(node, kind, count, 1, ddl::average{});
                allreduce_both_ways<ddl::recursive_doubling, ddl::half>(node, kind, count, 1, ddl::average{});
                allreduce_both_ways<ddl::tuned, ddl::bfloat16>(node, kind, count, 1, ddl::average{});
                allreduce_both_ways<ddl::tuned, ddl::float8_e5m2>(node, kind, count, 1, ddl::average{});
                allreduce_both_ways<ddl::tuned, line>(node, kind, count, 1, compose{});
                allreduce_both_ways<ddl::recursive_doubling, line>(node, kind, count, 1, compose{});
            }
    });
}

BOOST_AUTO_TEST_CASE(allreduce_of_elements_larger_than_a_window) {
    struct huge {
        std::uint32_t values[200'000];
    };
    struct add {
        huge operator()(const huge& a, const huge& b) const {
            huge sum;
            for (std::size_t i = 0; i < std::size(sum.values); ++i) sum.values[i] = a.values[i] + b.values[i];
            return sum;
        }
    };
    run_team(3, [](ddl::shared_memory& node) {
        // an op returns its element on the stack, and a sanitizer lets no two such temporaries share their place
        rlimit stack;
        EXPECT(::getrlimit(RLIMIT_STACK, &stack) == 0);
        stack.rlim_cur = std::min(stack.rlim_max, rlim_t{100} << 20);
        EXPECT(::setrlimit(RLIMIT_STACK, &stack) == 0);
        constexpr std::size_t length = std::size(huge{}.values);
        std::vector<huge> in(2);
        std::vector<huge> out(2);
        const std::span<std::uint32_t> flat_in{in[0].values, 2 * length};
        const std::span<std::uint32_t> flat_out{out[0].values, 2 * length};
        fill(flat_in, node.rank());
        ddl::allreduce(node, in, out, add{});
        expect_fold("allreduce", flat_out, node.size(), ddl::sum{});
        ddl::broadcast(node, in, 2);
        expect_values("broadcast", flat_in, 2);
        expect_error(ddl::errc::invalid_argument, "do not fit a window",
                     [&] { ddl::allreduce<ddl::recursive_doubling>(node, in, add{}); });
        ddl::allreduce(node, in, out, add{});
    });
}

BOOST_AUTO_TEST_CASE(allreduce_n_takes_tensors_of_all_lengths_in_one_exchange) {
    run_team(5, [](ddl::shared_memory& node) {
        for (const std::size_t scale : {1U, 100U, 10'000U}) {
            std::vector<std::vector<float>> tensors;
            for (const std::size_t length : {3U, 0U, 1U, 17U})
                tensors.push_back(values_of<float>(node.rank(), length * scale, length));
            ddl::allreduce_n(node, tensors);
            for (const std::size_t i : {0U, 1U, 2U, 3U})
                expect_fold("allreduce_n", std::span{tensors[i]}, node.size(), ddl::sum{},
                            std::vector<std::size_t>{3, 0, 1, 17}[i]);
        }
        ddl::allreduce_n(node, std::vector<std::span<float>>{});
    });
}

namespace {
/// `Schedule` where it has a program for a collective, else the transport's own.
template <class Schedule, ddl::collective What>
using or_tuned = std::conditional_t<ddl::offers<Schedule, What>, Schedule, ddl::tuned>;

/// Runs all collectives but allreduce, with buffers of a kind, by `Schedule` where it has a program for them.
template <class Schedule>
void every_other(ddl::shared_memory& node, memory kind, std::size_t count, int root) {
    const int rank = node.rank();
    const int size = node.size();
    const auto ranks = static_cast<std::size_t>(size);
    const auto [first, own] = ddl::block(count, size, rank);
    room<float> whole{node, kind, count, 1};
    room<float> block{node, kind, own, 2};

    fill(whole.all(), rank);
    ddl::reduce_scatter<Schedule>(node, whole.all(), block.all());
    expect_fold("reduce_scatter", block.all(), size, ddl::sum{}, first);
    expect_values("the input of reduce_scatter", whole.all(), rank);
    ddl::reduce_scatter<Schedule>(node, whole.all());
    expect_fold("reduce_scatter in place", whole.all().subspan(first, own), size, ddl::sum{}, first);

    const auto expect_blocks = [&](const char* what) {
        for (int peer = 0; peer < size; ++peer) {
            const auto [begin, length] = ddl::block(count, size, peer);
            expect_values(what, whole.all().subspan(begin, length), peer, begin);
        }
    };
    fill(block.all(), rank, first);
    ddl::all_gather<Schedule>(node, block.all(), whole.all());
    expect_blocks("all_gather");
    fill(whole.all(), rank + 100);
    fill(whole.all().subspan(first, own), rank, first);
    ddl::all_gather<Schedule>(node, whole.all());
    expect_blocks("all_gather in place");

    fill(whole.all(), rank);
    room<float> out{node, kind, rank == root ? count : 0};
    ddl::reduce<or_tuned<Schedule, ddl::collective::reduce>>(node, whole.all(), out.all(), ddl::sum{}, root);
    expect_fold("reduce", out.all(), size, ddl::sum{});
    expect_values("the input of reduce", whole.all(), rank);
    ddl::broadcast<or_tuned<Schedule, ddl::collective::broadcast>>(node, whole.all(), root);
    expect_values("broadcast", whole.all(), root);

    ddl::barrier<Schedule>(node);
    using rooted = or_tuned<Schedule, ddl::collective::gather>;
    fill(block.all(), rank, first);
    fill(whole.all(), rank + 100);
    ddl::gather_plan<float, ddl::direct, ddl::shared_memory>{node, block.all().data(), whole.all().data(), count,
                                                             root}();
    if (rank == root) expect_blocks("gather of uneven blocks");
    else expect_values("gather elsewhere than at the root", whole.all(), rank + 100);
    const std::size_t each = count / ranks;
    room<float> even{node, kind, each * ranks};
    room<float> given{node, kind, each};
    fill(given.all(), rank, 7);
    ddl::gather<rooted>(node, given.all(), rank == root ? even.all() : std::span<float>{}, root);
    for (std::size_t peer = 0; peer < ranks && rank == root; ++peer)
        expect_values("gather", even.all().subspan(peer * each, each), static_cast<int>(peer), 7);
    fill(even.all(), rank);
    ddl::scatter<rooted>(node, rank == root ? even.all() : std::span<float>{}, given.all(), root);
    expect_values("scatter", given.all(), root, static_cast<std::size_t>(rank) * each);

    using exchange = or_tuned<Schedule, ddl::collective::all_to_all>;
    room<float> crossed{node, kind, each * ranks};
    const auto expect_crossed = [&](const char* what, std::span<float> got) {
        for (std::size_t peer = 0; peer < ranks; ++peer)
            expect_values(what, got.subspan(peer * each, each), static_cast<int>(peer),
                          static_cast<std::size_t>(rank) * each);
    };
    fill(even.all(), rank);
    ddl::all_to_all<exchange>(node, even.all(), crossed.all());
    expect_crossed("all_to_all", crossed.all());
    ddl::all_to_all<exchange>(node, even.all());
    expect_crossed("all_to_all in place", even.all());
}
}  // namespace

BOOST_DATA_TEST_CASE(all_other_collectives_of_any_length_from_any_memory, sizes({1, 2, 3, 5, 8}), size) {
    run_team(size, [size](ddl::shared_memory& node) {
        for (const memory kind : all_kinds)
            for (const std::size_t count : lengths(size, sizeof(float)))
                every_other<ddl::tuned>(node, kind, count, static_cast<int>(count) % size);
    });
}

BOOST_DATA_TEST_CASE(all_other_collectives_by_named_schedules, sizes({1, 2, 3, 6}), size) {
    run_team(size, [size](ddl::shared_memory& node) {
        for (const std::size_t count : {0U, 1U, 100U, 30'000U, 400'001U}) {
            const int root = static_cast<int>(count) % size;
            every_other<ddl::ring>(node, memory::own, count, root);
            every_other<ddl::recursive_halving>(node, memory::mixed, count, root);
            every_other<ddl::hierarchical<ddl::direct, ddl::ring>>(node, memory::own, count, root);
        }
    });
}

BOOST_DATA_TEST_CASE(groups_of_a_split_reduce_in_the_order_of_their_keys, sizes({1, 2, 5, 8}), size) {
    run_team(size, [size](ddl::shared_memory& node) {
        const int color = node.rank() % 2;
        ddl::shared_memory group = node.split(color, -node.rank());
        const int last = (size - 1 - color) / 2 * 2 + color;
        const auto member = [&](int place) { return last - 2 * place; };
        for (const memory kind : all_kinds)
            for (const std::size_t count : {3U, 4000U, 300'001U}) {
                room<line> in{node, kind, count};  // the parent's memory, which the group can map too
                room<line> out{group, kind, count};
                fill(in.all(), node.rank());
                ddl::allreduce(group, in.all(), out.all(), compose{});
                expect_fold("allreduce", std::span<const line>{out.all()}, group.size(), compose{}, member);
                ddl::broadcast(group, in.all(), group.size() - 1);
                expect_values("broadcast", in.all(), member(group.size() - 1));
                ddl::barrier(node);
            }
        ddl::shared_memory again = group.split(0, 0);
        every_other<ddl::tuned>(again, memory::mixed, 1000, 0);
    });
}

BOOST_AUTO_TEST_SUITE(nonblocking)

BOOST_DATA_TEST_CASE(calls_are_carried_out_in_their_order, data::make({1, 2, 4}), size) {
    run_team(size, [](ddl::shared_memory& node) {
        for (const std::size_t count : {10U, 10'000U, 500'000U}) {
            auto in = values_of<float>(node.rank(), count);
            std::vector<float> reduced(count);
            const auto [first, own] = ddl::block(count, node.size(), node.rank());
            std::vector<float> block(own);
            std::vector<float> all(count);
            std::vector<float> copied = in;
            const ddl::request sum = ddl::allreduce_async(node, in, reduced);
            const ddl::request scattered = ddl::reduce_scatter_async(node, in, block);
            const ddl::request gathered = ddl::all_gather_async(node, block, all);
            const ddl::request spread = ddl::broadcast_async(node, copied, node.size() - 1);
            const ddl::request met = ddl::barrier_async(node);
            met.wait();
            for (const auto& each : {sum, scattered, gathered, spread}) EXPECT(each.test());
            expect_fold("allreduce", std::span{reduced}, node.size(), ddl::sum{});
            expect_fold("reduce_scatter", std::span{block}, node.size(), ddl::sum{}, first);
            expect_fold("all_gather", std::span{all}, node.size(), ddl::sum{});
            expect_values("broadcast", std::span{copied}, node.size() - 1);
        }
    });
}

BOOST_AUTO_TEST_CASE(a_blocking_call_comes_after_those_that_are_pending) {
    run_team(4, [](ddl::shared_memory& node) {
        auto values = values_of<double>(node.rank(), 400'000);
        for (int turn = 0; turn < 5; ++turn) {
            const ddl::request highest = ddl::allreduce_async(node, values, ddl::maximum{});
            ddl::broadcast(node, values, 3);  // of what the first has made
            EXPECT(highest.test());
        }
        expect_fold("allreduce", std::span{values}, node.size(), ddl::maximum{});
    });
}

BOOST_AUTO_TEST_CASE(calls_that_pack_their_values_do_not_meet_in_the_same_memory) {
    run_team(2, [](ddl::shared_memory& node) {
        constexpr std::size_t count = 200'000;
        for (int turn = 0; turn < 10; ++turn) {
            auto first = values_of<float>(node.rank(), count);
            auto crossed = values_of<float>(node.rank(), count);
            auto packed = values_of<float>(node.rank() + 7, count);
            std::vector<std::span<float>> tensors{packed};
            const ddl::request before = ddl::allreduce_async(node, first);
            const ddl::request under_way = ddl::allreduce_n_async(node, tensors);
            ddl::all_to_all(node, crossed);
            under_way.wait();
            before.wait();
            expect_fold("allreduce_n", std::span<const float>{packed}, 2, ddl::sum{},
                        [](int rank) { return rank + 7; });
            for (const int peer : {0, 1})
                expect_values("all_to_all",
                              std::span{crossed}.subspan(static_cast<std::size_t>(peer) * count / 2, count / 2), peer,
                              static_cast<std::size_t>(node.rank()) * count / 2);
            const ddl::request again = ddl::allreduce_n_async(node, std::vector<std::span<float>>{first});
            ddl::allreduce_n(node, std::vector<std::span<float>>{crossed});
            again.wait();
        }
    });
}

BOOST_AUTO_TEST_CASE(communicators_go_on_side_by_side_in_any_order) {
    run_team(4, [](ddl::shared_memory& node) {
        ddl::shared_memory one = node.split(0, 0);
        ddl::shared_memory other = node.split(0, 0);
        for (int turn = 0; turn < 10; ++turn) {
            auto a = values_of<float>(node.rank(), 100'000);
            auto b = values_of<float>(node.rank(), 7000);
            std::vector<ddl::request> both;
            const bool turned = node.rank() % 2 == turn % 2;
            if (turned) both.push_back(ddl::allreduce_async(other, b));
            both.push_back(ddl::allreduce_async(one, a));
            if (!turned) both.push_back(ddl::allreduce_async(other, b));
            for (const auto& each : both) each.wait();
            expect_fold("allreduce", std::span{a}, 4, ddl::sum{});
            expect_fold("allreduce", std::span{b}, 4, ddl::sum{});
        }
    });
}

BOOST_AUTO_TEST_CASE(what_is_pending_is_carried_out_before_a_communicator_ends) {
    run_team(3, [](ddl::shared_memory& node) {
        std::vector<std::vector<float>> all(20, values_of<float>(node.rank(), 20'000));
        {
            ddl::shared_memory group = node.split(0, 0);
            for (auto& each : all) ddl::allreduce_async(group, each);
        }
        for (auto& each : all) expect_fold("allreduce", std::span{each}, 3, ddl::sum{});
    });
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(ranks_that_disagree)

namespace {
/// Every rank gets a mismatch with these words in it, whoever it is that differs, and the next call is as good as ever.
template <class Call>
void all_learn_of(ddl::shared_memory& node, const char* words, Call call) {
    for (int odd = 0; odd < node.size(); ++odd) {
        expect_error(ddl::errc::mismatch, words, [&] { call(node.rank() == odd); });
        allreduce_both_ways<ddl::tuned, float>(node, memory::mixed, 5000, 0, ddl::sum{});
    }
}
}  // namespace

BOOST_DATA_TEST_CASE(all_learn_of_it_and_go_on, data::make({2, 3, 5}), size) {
    run_team(size, [](ddl::shared_memory& node) {
        for (const std::size_t count : {100U, 100'000U}) {
            std::vector<float> values(count + 1);
            const std::span<float> all{values.data(), count};
            all_learn_of(node, "elements, this rank",
                         [&](bool odd) { ddl::allreduce(node, odd ? std::span{values} : all); });
            all_learn_of(node, "pass equal types", [&](bool odd) {
                odd ? ddl::allreduce(node, std::vector<std::int32_t>(count)) : ddl::allreduce(node, all);
            });
            all_learn_of(node, "pass equal ops", [&](bool odd) {
                odd ? ddl::allreduce(node, all, ddl::maximum{}) : ddl::allreduce(node, all);
            });
            all_learn_of(node, "name the same schedule", [&](bool odd) {
                odd ? ddl::allreduce<ddl::ring>(node, all) : ddl::allreduce<ddl::tree>(node, all);
            });
            all_learn_of(node, "pass equal roots", [&](bool odd) { ddl::broadcast(node, all, odd ? 1 : 0); });
            all_learn_of(node, "call the same collectives in the same order",
                         [&](bool odd) { odd ? ddl::broadcast(node, all) : ddl::allreduce(node, all); });
            all_learn_of(node, "tensors of other sizes", [&](bool odd) {
                const std::size_t cut = odd ? 1 : 2;
                ddl::allreduce_n(node, std::vector{all.first(cut), all.subspan(cut)});
            });
            all_learn_of(node, "equal counts",
                         [&](bool odd) { ddl::allreduce_async(node, odd ? std::span{values} : all).wait(); });
        }
    });
}

BOOST_AUTO_TEST_CASE(a_rank_with_invalid_arguments_knows_why_and_the_others_that_it_is_so) {
    run_team(3, [](ddl::shared_memory& node) {
        std::vector<float> in(5000);
        std::vector<float> out(5001);
        for (int odd = 0; odd < 3; ++odd) {
            const bool wrong = node.rank() == odd;
            const auto code = wrong ? ddl::errc::invalid_argument : ddl::errc::mismatch;
            const std::span<float> fits{out.data(), in.size()};
            expect_error(code, wrong ? "out holds 5001 elements, and needs 5000" : "invalid arguments",
                         [&] { ddl::allreduce(node, in, wrong ? std::span{out} : fits); });
            expect_error(code, wrong ? "root is 3; name a rank from 0 to 2" : "invalid arguments",
                         [&] { ddl::broadcast(node, in, wrong ? 3 : 0); });
            allreduce_both_ways<ddl::tuned, float>(node, memory::own, 5000, 0, ddl::sum{});
        }
    });
}

BOOST_AUTO_TEST_CASE(nothing_is_written_where_they_disagree) {
    run_team(2, [](ddl::shared_memory& node) {
        for (const memory kind : all_kinds)
            for (const std::size_t count : {10U, 100'000U}) {
                room<float> values{node, kind, count};
                fill(values.all(), node.rank());
                const auto few = values.all().first(count - static_cast<std::size_t>(node.rank()));
                expect_error(ddl::errc::mismatch, "equal counts", [&] { ddl::allreduce(node, few); });
                expect_values("what a mismatch leaves", values.all(), node.rank());
            }
    });
}

BOOST_AUTO_TEST_SUITE_END()
