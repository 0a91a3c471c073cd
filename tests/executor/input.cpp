// SPDX-License-Identifier: Apache-2.0
// Calls over messages whose input is apart from their output: what no message has changed is sent, and combined, from there.
#include <ddl/allreduce.hpp>
#include <ddl/reduce.hpp>
#include <ddl/reduce_scatter.hpp>
#include <ddl/transport/recording.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "../collective/oracle.hpp"
#include "../collective/sweep.hpp"
#include "own_schedules.hpp"

namespace {

/// Ranks that note from where they send.
struct noting : ddl::recording {
    explicit noting(ddl::recording&& from) : ddl::recording{std::move(from)} {}
    ticket send(int peer, const void* data, std::size_t bytes, int tag) {
        const char* const first = static_cast<const char*>(data);
        from_input += input <= first && first < input + input_bytes;
        ++sent;
        return ddl::recording::send(peer, data, bytes, tag);
    }
    ticket receive(int peer, void* data, std::size_t bytes, int tag) {
        const char* const first = static_cast<const char*>(data);
        to_output += output <= first && first < output + output_bytes;
        return ddl::recording::receive(peer, data, bytes, tag);
    }
    template <class Range>
    void watch_output(const Range& range) {
        output = reinterpret_cast<const char*>(range.data());
        output_bytes = range.size() * sizeof(*range.data());
        to_output = 0;
    }
    template <class Range>
    void watch(const Range& range) {
        input = reinterpret_cast<const char*>(range.data());
        input_bytes = range.size() * sizeof(*range.data());
        sent = from_input = 0;
    }
    const char* input = nullptr;
    std::size_t input_bytes = 0;
    int sent = 0;
    int from_input = 0;
    const char* output = nullptr;
    std::size_t output_bytes = 0;
    int to_output = 0;
};

/// The same on one host.
struct noting_near : noting {
    using noting::noting;
    static constexpr bool on_one_host() noexcept { return true; }
};

/// The sum, out of place and in place, and how many of its messages left the input.
template <class Schedule, class Ranks>
int sums(Ranks& ranks, std::size_t count) {
    const guarded<int> data = small_values<int>(ranks.rank(), count);
    guarded<int> out{count};
    ranks.watch(data);
    ddl::allreduce<Schedule, ddl::unchecked>(ranks, data, out);
    const int left_input = ranks.from_input;
    const auto wanted = sums_of_small_values(ranks.size(), count);
    const auto sum = [&](std::size_t i) { return static_cast<int>(wanted[i]); };
    require_values(out, sum, labelled<Schedule>("allreduce", ranks, count));
    require_values(
        data, [&](std::size_t i) { return small_value(ranks.rank(), i); }, "the input");
    return left_input;
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_has_not_changed_leaves_the_input) {
    ddl::recording::run(4, [](ddl::recording& team) {
        noting ranks{team.split(0, team.rank())};
        require(sums<ddl::ring>(ranks, 4000) == 1, "the first message of six");
        require(sums<ddl::recursive_halving>(ranks, 4000) == 1, "the first half");
        require(sums<ddl::direct>(ranks, 4000) == 3, "a block to each");
        require(sums<own::gossip>(ranks, 4000) == 3, "all of it, as it was before the round that changes it");
    });
}

BOOST_AUTO_TEST_CASE(chunks_that_are_sent_or_combined_together_may_have_changed_in_part) {
    ddl::recording::run(3, [](ddl::recording& team) {
        noting ranks{team.split(0, team.rank())};
        for (const std::size_t count : {1U, 2U, 17U, 5000U, 100'003U}) sums<own::crossing>(ranks, count);
    });
}

BOOST_AUTO_TEST_CASE(a_rank_alone_copies_its_input) {
    ddl::recording::run(1, [](ddl::recording& team) {
        noting ranks{team.split(0, 0)};
        sums<ddl::ring>(ranks, 1000);
        std::vector<int> all(10, 3), own(10);
        ddl::reduce_scatter(ranks, all, own);
        require(own == all, "its block");
    });
}

BOOST_AUTO_TEST_CASE(a_reduce_scatter_copies_no_block_that_only_leaves) {
    ddl::recording::run(4, [](ddl::recording& team) {
        noting ranks{team.split(0, team.rank())};
        const guarded<int> data = small_values<int>(ranks.rank(), 40'001);
        const ddl::block_of mine = ddl::block(40'001, 4, ranks.rank());
        guarded<int> out{mine.count};
        const auto wanted = sums_of_small_values(4, 40'001);
        const auto scatter_by = [&]<class Schedule>() {
            ranks.watch(data);
            ddl::reduce_scatter<Schedule, ddl::unchecked>(ranks, data, out);
            require_values(
                out, [&](std::size_t i) { return static_cast<int>(wanted[mine.first + i]); }, Schedule::name);
            return ranks.from_input;
        };
        require(scatter_by.template operator()<ddl::direct>() == ranks.sent, "blocks for the others leave as they are");
        require(scatter_by.template operator()<ddl::recursive_halving>() > 0, "half of them");
    });
}

namespace {
/// Of two words the left one, then the right one. It says that it commutes, to show where operands stand.
struct one_after_the_other {
    static constexpr bool commutative = true;
    unsigned operator()(unsigned a, unsigned b) const {
        unsigned shift = 0;
        while (b >> shift != 0) shift += 4;
        return a << shift | b;
    }
};
}  // namespace

BOOST_AUTO_TEST_CASE(on_one_host_an_operand_arrives_where_the_result_goes) {
    for (const int root : {0, 1})
        ddl::recording::run(2, [root](ddl::recording& team) {
            noting_near ranks{team.split(0, team.rank())};
            const std::vector<unsigned> data(5000, static_cast<unsigned>(ranks.rank() + 1));
            std::vector<unsigned> out(5000);
            ranks.watch_output(out);
            ddl::reduce<ddl::tree, ddl::unchecked>(ranks, data, out, one_after_the_other{}, root);
            require(ranks.rank() != root || out == std::vector<unsigned>(5000, 0x12), "in another order");
            require(ranks.to_output == (ranks.rank() == root), "it arrives elsewhere");
            require(data == std::vector<unsigned>(5000, static_cast<unsigned>(ranks.rank() + 1)), "the input");
        });
    ddl::recording::run(4, [](ddl::recording& team) {
        noting_near ranks{team.split(0, team.rank())};
        for (const std::size_t count : {1U, 5U, 4000U, 100'003U}) {
            sums<ddl::ring>(ranks, count);
            sums<ddl::recursive_halving>(ranks, count);
            sums<ddl::direct>(ranks, count);
            sums<ddl::tree>(ranks, count);
            sums<own::gossip>(ranks, count);
        }
    });
    ddl::recording::run(3, [](ddl::recording& team) {
        noting_near ranks{team.split(0, team.rank())};
        for (const std::size_t count : {1U, 2U, 17U, 5000U, 100'003U}) sums<own::crossing>(ranks, count);
    });
}
