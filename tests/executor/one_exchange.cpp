// SPDX-License-Identifier: Apache-2.0
#include <ddl/all_gather.hpp>
#include <ddl/all_to_all.hpp>
#include <ddl/allreduce.hpp>
#include <ddl/barrier.hpp>
#include <ddl/broadcast.hpp>
#include <ddl/element/half.hpp>
#include <ddl/gather.hpp>
#include <ddl/op/average.hpp>
#include <ddl/reduce.hpp>
#include <ddl/reduce_scatter.hpp>
#include <ddl/scatter.hpp>
#include <ddl/transport/recording.hpp>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <span>
#include <string>
#include <vector>

#include "../collective/require.hpp"

namespace data = boost::unit_test::data;

/// As ranks of one host cut messages where pieces pay.
template <>
inline constexpr ddl::segmenting ddl::segments_of<ddl::recording>{
    .bytes = std::size_t{60} << 10, .depth = 16, .short_message = std::size_t{16} << 10, .short_bytes = 3968};

namespace {

using ddl::recording;

/// Bytes of what this rank has sent since its log was cleared, if both ways that was a message under a mark, and pieces behind it of what
/// is longer.
std::size_t bytes_of_one_exchange(const recording& ranks) {
    constexpr int behind_mark = static_cast<int>(ddl::message_tag::behind_mark);
    std::size_t marks = 0, bytes = 0, pieces = 0;
    for (const recording::event& each : ranks.log()) {
        require(each.tag == recording::marked || each.tag == behind_mark, "no mark");
        marks += each.tag == recording::marked;
        if (each.kind == recording::direction::receive) continue;
        bytes += each.bytes;
        ++pieces;
    }
    require(marks == 2, std::to_string(marks) + " marks");
    require(pieces == std::max<std::size_t>(1, (bytes + 3967) / 3968), std::to_string(pieces) + " messages");
    return bytes;
}

template <class Body>
void between_two(Body body, std::uint64_t seed = 1) {
    recording::run(2, body, {.seed = seed, .delays = true, .eager_limit = 0, .marks = true});
}

/// Element `i` of `rank`, and the sum of those of both.
int value_of(int rank, std::size_t i) { return 100 * (rank + 1) + static_cast<int>(i); }
int sum_of(std::size_t i) { return value_of(0, i) + value_of(1, i); }

template <class Element = int>
std::vector<Element> values_of(int rank, std::size_t count, std::size_t first = 0) {
    std::vector<Element> result(count);
    for (std::size_t i = 0; i < count; ++i) result[i] = static_cast<Element>(value_of(rank, first + i));
    return result;
}
template <class Range>
void require_sums(const Range& values, std::size_t first = 0) {
    for (std::size_t i = 0; i < values.size(); ++i) require(values[i] == sum_of(first + i), "another sum");
}
void require_bytes(const recording& ranks, std::size_t elements) {
    const std::size_t sent = bytes_of_one_exchange(ranks);
    require(sent == elements * sizeof(int), std::to_string(sent) + " bytes");
}

}  // namespace

BOOST_DATA_TEST_CASE(each_reduction_of_two_ranks_that_is_short_is_one_message_of_each,
                     data::make({0, 1, 2, 5, 900, 993, 3'001, 4'096}), length) {
    const auto count = static_cast<std::size_t>(length);
    between_two([&](recording& ranks) {
        const int rank = ranks.rank();
        std::vector<int> in_place = values_of(rank, count);
        ddl::allreduce(ranks, in_place);
        require_sums(in_place);
        require_bytes(ranks, count);

        const std::vector<int> in = values_of(rank, count);
        std::vector<int> out(count);
        ranks.clear_log();
        ddl::allreduce(ranks, in, out);
        require_sums(out);
        require_bytes(ranks, count);

        for (const int root : {0, 1}) {
            std::vector<int> total(rank == root ? count : 0);
            ranks.clear_log();
            ddl::reduce(ranks, in, total, ddl::sum{}, root);
            require_sums(total);
            require_bytes(ranks, rank == root ? 0 : count);
        }

        const ddl::block_of own = ddl::block(count, 2, rank);
        std::vector<int> block(own.count);
        ranks.clear_log();
        ddl::reduce_scatter(ranks, in, block);
        require_sums(block, own.first);
        require_bytes(ranks, count - own.count);
    });
}

BOOST_DATA_TEST_CASE(so_is_each_that_only_moves, data::make({0, 1, 2, 5, 900, 993, 1'985, 3'001, 4'096}), length) {
    const auto each = static_cast<std::size_t>(length);
    between_two([&](recording& ranks) {
        const int rank = ranks.rank();
        const std::vector<int> block = values_of(rank, each);
        std::vector<int> all(2 * each);
        const auto require_both = [&] {
            for (std::size_t i = 0; i < all.size(); ++i)
                require(all[i] == (i < each ? value_of(0, i) : value_of(1, i - each)), "another block");
            all.assign(2 * each, -1);
        };
        ddl::all_gather(ranks, block, all);
        require_both();
        require_bytes(ranks, each);

        std::span<int> place{all.data() + static_cast<std::size_t>(rank) * each, each};
        std::copy(block.begin(), block.end(), place.begin());
        ranks.clear_log();
        ddl::all_gather(ranks, place, all);
        require_both();
        require_bytes(ranks, each);

        for (const int root : {0, 1}) {
            std::vector<int> here = values_of(rank, each);
            ranks.clear_log();
            ddl::broadcast(ranks, here, root);
            require(here == values_of(root, each), "not the root's");
            require_bytes(ranks, rank == root ? each : 0);

            std::vector<int> gathered(rank == root ? 2 * each : 0);
            ranks.clear_log();
            ddl::gather(ranks, block, gathered, root);
            if (rank == root) {
                all = gathered;
                require_both();
            }
            require_bytes(ranks, rank == root ? 0 : each);

            const std::vector<int> whole = values_of(root, rank == root ? 2 * each : 0);
            std::vector<int> part(each);
            ranks.clear_log();
            ddl::scatter(ranks, whole, part, root);
            require(part == values_of(root, each, static_cast<std::size_t>(rank) * each), "another block");
            require_bytes(ranks, rank == root ? each : 0);
        }

        const auto require_exchanged = [&](const std::vector<int>& blocks) {
            for (std::size_t i = 0; i < each; ++i)
                for (const int from : {0, 1})
                    require(blocks[static_cast<std::size_t>(from) * each + i] ==
                                value_of(from, static_cast<std::size_t>(rank) * each + i),
                            "another block");
        };
        std::vector<int> leaving = values_of(rank, 2 * each);
        std::vector<int> came(2 * each);
        ranks.clear_log();
        ddl::all_to_all(ranks, leaving, came);
        require_exchanged(came);
        require_bytes(ranks, each);
        ranks.clear_log();
        ddl::all_to_all(ranks, leaving);
        require_exchanged(leaving);
        require_bytes(ranks, each);

        ranks.clear_log();
        ddl::barrier(ranks);
        require_bytes(ranks, 0);
    });
}

BOOST_AUTO_TEST_CASE(narrow_elements_travel_as_accumulators_and_ops_are_finished) {
    between_two([](recording& ranks) {
        std::vector<ddl::half> narrow(7, ddl::half(static_cast<float>(ranks.rank() + 1)));
        ddl::allreduce(ranks, narrow, ddl::average{});
        for (const ddl::half each : narrow) require(static_cast<float>(each) == 1.5F, "another average");
        require(bytes_of_one_exchange(ranks) == 7 * sizeof(float), "no accumulators");
        std::vector<double> wide(7, ranks.rank());
        ddl::allreduce(ranks, wide, ddl::average{});
        require(wide == std::vector<double>(7, 0.5), "another average");
        narrow.assign(3'001, ddl::half(static_cast<float>(ranks.rank() + 1)));
        ranks.clear_log();
        ddl::allreduce(ranks, narrow, ddl::average{});
        for (const ddl::half each : narrow) require(static_cast<float>(each) == 1.5F, "another average");
        require(bytes_of_one_exchange(ranks) == 3'001 * sizeof(float), "no accumulators");
    });
}

BOOST_AUTO_TEST_CASE(longer_ones_and_those_of_a_schedule_that_does_not_ride_are_several) {
    between_two([](recording& ranks) {
        std::vector<int> values(10'000, 1);
        ddl::allreduce(ranks, values);
        require(values == std::vector<int>(10'000, 2), "another sum");
        require(ranks.log().size() > 2, "one exchange");
        ranks.clear_log();
        values.assign(100, 1);
        ddl::allreduce<ddl::ring>(ranks, values);
        require(values == std::vector<int>(100, 2), "another sum");
        require(ranks.log().size() > 2, "one exchange");
    });
}

BOOST_DATA_TEST_CASE(one_exchange_meets_a_call_of_another_kind_and_nothing_is_lost_or_left_over,
                     data::make({10U, 993U, 3'001U}) * data::make({1U, 2U, 3U}), length, seed) {
    const auto all_meet = [&](recording& ranks) {
        const std::size_t count = length;
        std::vector<int> few = values_of(ranks.rank(), count);
        std::vector<int> many = values_of(ranks.rank(), 300'000);
        const auto differs = [&](const auto& call) {
            require(error_of(call).code() == ddl::errc::mismatch, "no mismatch");
            require(few == values_of(ranks.rank(), count) && many == values_of(ranks.rank(), 300'000), "lost");
        };
        for (const int odd : {0, 1}) {
            const bool is_odd = ranks.rank() == odd;
            // what meets it: more or less that rides, fewer pieces or more behind a mark or a head, halves, a comparison alone
            for (const std::size_t other : {11U, 1'000U, 2'500U, 3'000U, 4'000U, 6'000U, 20'000U, 300'000U}) {
                differs([&] { ddl::allreduce(ranks, is_odd ? std::span{few} : std::span{many}.first(other)); });
                std::vector<int> sums =
                    values_of(ranks.rank(), 3'000);  // at once: what was left over would be met by these
                ddl::allreduce(ranks, sums);
                require_sums(sums);
            }
            differs([&] { is_odd ? ddl::barrier(ranks) : ddl::broadcast(ranks, many, 0); });
            differs([&] { is_odd ? ddl::barrier(ranks) : ddl::broadcast(ranks, few, 0); });
            differs([&] { is_odd ? ddl::broadcast(ranks, few, 1) : ddl::broadcast(ranks, few, 0); });
            differs([&] { is_odd ? ddl::broadcast(ranks, few, 1) : ddl::allreduce<ddl::ring>(ranks, few); });
            std::vector<int> sums = few;
            ddl::allreduce(ranks, sums);
            require_sums(sums);
        }
    };
    between_two(all_meet, seed);
}
