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
#include <ddl/transport/host_block.hpp>
#include <ddl/transport/recording.hpp>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "fold_in_rank_order.hpp"
#include "oracle.hpp"
#include "staged_threads.hpp"

namespace data = boost::unit_test::data;

namespace {

/// Messages of devices without a GPU: their memory is the host's, their blocks run one after the other.
class device_messages {
public:
    static constexpr const char* name = "device messages";
    device_messages(ddl::recording& wire, bool takes) : wire_{wire}, staged_{wire, 4096, 2}, takes_{takes} {}

    int rank() const { return wire_.rank(); }
    int size() const { return wire_.size(); }
    void begin(const ddl::call_site& where) { wire_.begin(where); }
    ddl::call_queue& queue() noexcept { return wire_.queue(); }
    void fail(ddl::errc code, const char* words) noexcept { wire_.fail(code, words); }
    std::byte* scratch(std::size_t bytes, ddl::scratch_for use) { return staged_.scratch(bytes, use); }

    ddl::recording& wire() noexcept { return wire_; }
    staged_threads<ddl::recording>& through_host() noexcept { return staged_; }
    bool takes_device_memory() const noexcept { return takes_; }
    int most_blocks() const noexcept { return blocks; }
    std::byte* device_scratch(std::size_t bytes) {
        if (is_full) throw ddl::error(ddl::errc::out_of_memory, name, rank(), -1, "no room for %zu bytes", bytes);
        memory_.resize(bytes);
        return memory_.data();
    }
    void require_reachable(const char* which, const void* data, std::size_t bytes, const ddl::call_site& where) const {
        if (bytes != 0 && data == out_of_reach)
            throw ddl::error(ddl::errc::invalid_argument, where.operation, rank(), -1, "%s is out of reach", which);
    }
    void drain(const ddl::call_site&) { ++drains; }
    static void copy(std::byte* to, const std::byte* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
    template <class Body>
    void fold(const Body& body, ddl::grid_shape shape, int ranks) {
        ++folds;
        for (int rank = 0; rank < ranks; ++rank)
            for (int block = 0; block < shape.blocks; ++block) {
                ddl::without_meetings<ddl::host_block> space{{rank, block, shape.blocks, ddl::timeout{0}}};
                body(space);
            }
    }

    const void* out_of_reach = nullptr;
    bool is_full = false;
    int drains = 0;
    int folds = 0;
    int blocks = 3;

private:
    ddl::recording& wire_;
    staged_threads<ddl::recording> staged_;
    bool takes_;
    std::vector<std::byte> memory_;
};
static_assert(ddl::device_message_transport<device_messages>);

}  // namespace

BOOST_DATA_TEST_CASE(vectors_are_folded_where_they_arrive, data::make({1, 2, 3, 5}) * data::make({true, false}), ranks,
                     takes) {
    ddl::recording::run(ranks, [&](ddl::recording& wire) {
        device_messages team{wire, takes};
        int calls = 0;
        for (const std::size_t count : {0U, 1U, 4U, 1000U, 40'001U}) {
            const auto expected = sums_of_small_values(team.size(), count);
            const auto wanted = [&](std::size_t i) { return expected[i]; };
            const auto before = small_values<float>(team.rank(), count);
            auto in = small_values<float>(team.rank(), count);
            guarded<float> out{count};
            ddl::allreduce(team, in, out);
            require_values(out, wanted, "beside");
            require_values(
                in, [&](std::size_t i) { return before[i]; }, "the input stays");
            ddl::allreduce<ddl::direct>(team, in, ddl::sum{});
            require_values(in, wanted, "in place");
            calls += count != 0 ? 2 : 0;
        }
        require(team.drains == (takes ? calls : 0), "the device is waited for where it sends");
        require(takes ? team.folds > 0 : team.folds == 0, "folded on the device, or on the host");
        ddl::barrier(team);
    });
}

BOOST_DATA_TEST_CASE(the_bits_are_the_same_for_any_grid, data::make({2, 3, 5}), ranks) {
    ddl::recording::run(ranks, [&](ddl::recording& wire) {
        device_messages team{wire, true};
        constexpr std::size_t counts[] = {3, 1000, 40'001};
        for (team.blocks = 1; team.blocks <= 5; ++team.blocks) {
            require_fold_in_rank_order<float>(team, counts);
            require_fold_in_rank_order<ddl::bfloat16>(team, counts);
        }
    });
}

BOOST_DATA_TEST_CASE(blocks_go_to_those_who_take_them, data::make({1, 2, 3, 5}) * data::make({true, false}), ranks,
                     takes) {
    ddl::recording::run(ranks, [&](ddl::recording& wire) {
        device_messages team{wire, takes};
        const int rank = team.rank();
        for (const std::size_t count : {0U, 2U, 1000U, 1003U}) {
            const auto own = ddl::block(count, team.size(), rank);
            const auto sums = sums_of_small_values(team.size(), count);
            const auto sum = [&](std::size_t i) { return sums[i]; };
            auto values = small_values<float>(rank, count);
            guarded<float> mine{own.count};
            ddl::reduce_scatter(team, values, mine);
            require_values(
                mine, [&](std::size_t i) { return sums[own.first + i]; }, "reduce_scatter");
            guarded<float> all{count};
            ddl::all_gather(team, mine, all);
            require_values(all, sum, "all_gather");
            auto in_place = small_values<float>(rank, count);
            ddl::reduce_scatter(team, in_place, ddl::sum{});
            ddl::all_gather(team, in_place);
            require_values(in_place, sum, "both in place");

            for (int root = 0; root < team.size(); ++root) {
                guarded<float> whole{count};
                const auto at_root = [&](auto wanted, const char* name) {
                    if (rank == root) require_values(whole, wanted, name);
                    else require(whole.untouched(), name);
                };
                ddl::reduce(team, values, whole, ddl::sum{}, root);
                at_root(sum, "reduce");
                auto passed = small_values<float>(rank, count);
                ddl::broadcast(team, passed, root);
                const auto of_root = [&](std::size_t i) { return small_value(root, i); };
                require_values(passed, of_root, "broadcast");
                ddl::scatter_plan<float, ddl::direct, device_messages>{team, passed.data(), mine.data(), count, root}();
                require_values(
                    mine, [&](std::size_t i) { return of_root(own.first + i); }, "scatter");
                ddl::gather_plan<float, ddl::direct, device_messages>{team, mine.data(), whole.data(), count, root}();
                at_root(of_root, "gather");
            }
        }
    });
}

BOOST_DATA_TEST_CASE(pairs_of_blocks_are_exchanged, data::make({1, 2, 3, 5}) * data::make({true, false}), ranks,
                     takes) {
    ddl::recording::run(ranks, [&](ddl::recording& wire) {
        device_messages team{wire, takes};
        for (const std::size_t each : {0U, 1U, 700U}) {
            const std::size_t count = each * static_cast<std::size_t>(team.size());
            const auto wanted = exchanged_values(team.rank(), each);
            auto values = small_values<float>(team.rank(), count);
            guarded<float> out{count};
            ddl::all_to_all(team, values, out);
            require_values(out, wanted, "beside");
            ddl::all_to_all(team, values);
            require_values(values, wanted, "in place");
        }
    });
}

namespace {
/// Rank 1 meets `code` and `words` once `trouble` is its, the others learn of it, and the next call is as good as any.
template <class Trouble>
void a_refusal_is_told(ddl::errc code, const char* words, Trouble trouble) {
    ddl::recording::run(3, [&](ddl::recording& wire) {
        device_messages team{wire, true};
        std::vector<int> values(10, 1);
        const bool refuses = team.rank() == 1;
        if (refuses) trouble(team, values.data());
        require_error(refuses ? code : ddl::errc::mismatch, refuses ? words : "see its own error",
                      [&] { ddl::allreduce(team, values); });
        team.out_of_reach = nullptr;
        team.is_full = false;
        ddl::allreduce(team, values);
        require(values == std::vector<int>(10, 3), "a sum");
    });
}
}  // namespace

BOOST_AUTO_TEST_CASE(memory_out_of_reach_is_refused_and_the_others_are_told) {
    a_refusal_is_told(ddl::errc::invalid_argument, "in is out of reach",
                      [](device_messages& team, int* data) { team.out_of_reach = data; });
}

BOOST_AUTO_TEST_CASE(a_device_without_room_is_told_to_the_others) {
    a_refusal_is_told(ddl::errc::out_of_memory, "no room for",
                      [](device_messages& team, int*) { team.is_full = true; });
}

BOOST_AUTO_TEST_CASE(ranks_whose_wires_differ_are_told) {
    ddl::recording::run(2, [](ddl::recording& wire) {
        device_messages team{wire, wire.rank() == 0};
        std::vector<int> values(10, 1);
        require_error(ddl::errc::mismatch, "rank ", [&] { ddl::allreduce(team, values); });
    });
}
