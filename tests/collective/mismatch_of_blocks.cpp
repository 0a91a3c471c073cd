// SPDX-License-Identifier: Apache-2.0
// Ranks that disagree while payload travels with the messages that compare the calls: in rounds, or from each rank to each.
#include <ddl/all_gather.hpp>
#include <ddl/all_to_all.hpp>
#include <ddl/allreduce.hpp>
#include <ddl/barrier.hpp>
#include <ddl/gather.hpp>
#include <ddl/reduce.hpp>
#include <ddl/reduce_scatter.hpp>
#include <ddl/scatter.hpp>

#include <boost/test/unit_test.hpp>

#include <concepts>
#include <functional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "places.hpp"
#include "require.hpp"

namespace {

constexpr std::size_t long_block = 4000;  // elements: it follows the message that says what is called

using every_place = std::tuple<places::messages<1>, places::messages<2>, places::messages<4>>;

/// One of `size` ranks calls something else than the rest, each in turn: nothing is written, and all hear of it.
template <class Place, class Call>
void disagree(const char* name, Call call) {
    const bool most = std::same_as<Place, places::messages<4>>;   // more ranks where they take the least time
    const bool least = std::same_as<Place, places::messages<2>>;  // and few where each send lasts until it is received
    const std::vector<int> sizes = least  ? std::vector{3}
                                   : most ? (under_a_sanitizer ? std::vector{3, 4} : std::vector{3, 4, 7, 8})
                                   : under_a_sanitizer ? std::vector{3}
                                                       : std::vector{3, 4};
    for (const int size : sizes)
        Place::run(size, [&](auto& ranks) {
            const auto p = static_cast<std::size_t>(size);
            constexpr std::size_t each = 5;
            const int rank = ranks.rank();
            const auto at = [&](int root, std::size_t length) { return std::vector<int>(rank == root ? length : 0); };
            const std::vector<std::function<void()>> others{[&] { ddl::barrier(ranks); },
                                                            [&] {
                                                                std::vector<float> longer(3000);
                                                                ddl::allreduce(ranks, longer);
                                                            },
                                                            [&] {
                                                                std::vector<float> longest(20'000);
                                                                ddl::allreduce(ranks, longest);
                                                            },
                                                            [&] {
                                                                std::vector<int> data(each), root(each);
                                                                ddl::reduce<ddl::tree>(ranks, data, root, ddl::sum{},
                                                                                       size - 1);
                                                            },
                                                            [&] {
                                                                std::vector<int> block(each + 1), all((each + 1) * p);
                                                                ddl::all_gather(ranks, block, all);
                                                            },
                                                            [&] {
                                                                std::vector<int> block(each);
                                                                auto all = at(size - 1, each * p);
                                                                ddl::scatter(ranks, all, block, size - 1);
                                                            },
                                                            [&] {
                                                                std::vector<int> all((long_block + 1) * p), out(all);
                                                                ddl::all_to_all(ranks, all, out);
                                                            }};
            for (int one = 0; one<size; one += size> 4 ? 3 : 1)
                for (std::size_t other = 0; other < others.size(); ++other) {
                    const std::string where = std::string(name) + ", rank " + std::to_string(rank) + " of " +
                                              std::to_string(size) + ", of which rank " + std::to_string(one) +
                                              " differs, in way " + std::to_string(other);
                    std::vector<int> out(each * p, -7);
                    const ddl::error failure = error_of([&] {
                        if (rank == one) others[other]();
                        else call(ranks, each, out);
                    });
                    require(failure.code() == ddl::errc::mismatch, where + ": " + failure.what());
                    require(out == std::vector<int>(each * p, -7), where + ": written");
                    std::vector<int> ones(other, 1);
                    ddl::allreduce(ranks, ones);
                    require(ones == std::vector<int>(other, size), where + ": out of order afterwards");
                }
        });
}

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(of_an_all_gather, Place, every_place) {
    disagree<Place>("all_gather", [](auto& ranks, std::size_t each, std::vector<int>& out) {
        const std::vector<int> block(each, 1);
        ddl::all_gather(ranks, block, out);
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(of_a_gather, Place, every_place) {
    disagree<Place>("gather", [](auto& ranks, std::size_t each, std::vector<int>& out) {
        const std::vector<int> block(each, 1);
        std::vector<int> none;
        ddl::gather(ranks, block, ranks.rank() == 0 ? out : none, 0);
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(of_a_scatter, Place, every_place) {
    disagree<Place>("scatter", [](auto& ranks, std::size_t each, std::vector<int>& out) {
        const std::vector<int> all(ranks.rank() == 0 ? out.size() : 0, 1);
        const std::span<int> block{out.data(), each};
        ddl::scatter(ranks, all, block, 0);
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(of_a_reduce_scatter, Place, every_place) {
    disagree<Place>("reduce_scatter", [](auto& ranks, std::size_t each, std::vector<int>& out) {
        const std::vector<int> all(out.size(), 1);
        const std::span<int> block{out.data(), each};
        ddl::reduce_scatter(ranks, all, block);
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(of_an_all_to_all, Place, every_place) {
    disagree<Place>("all_to_all", [](auto& ranks, std::size_t, std::vector<int>& out) {
        const std::vector<int> all(out.size(), 1);
        ddl::all_to_all(ranks, all, out);
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(of_an_all_to_all_of_long_blocks, Place, every_place) {
    disagree<Place>("all_to_all of long blocks", [](auto& ranks, std::size_t, std::vector<int>& out) {
        const std::vector<int> all(long_block * static_cast<std::size_t>(ranks.size()), 1);
        std::vector<int> result(all.size(), -7);
        const ddl::error failure = error_of([&] { ddl::all_to_all(ranks, all, result); });
        out[0] = result == std::vector<int>(all.size(), -7) ? -7 : 0;
        throw failure;
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(of_an_all_gather_of_long_blocks, Place, every_place) {
    disagree<Place>("all_gather of long blocks", [](auto& ranks, std::size_t, std::vector<int>& out) {
        const std::vector<int> block(long_block, 1);
        std::vector<int> result(long_block * static_cast<std::size_t>(ranks.size()), -7);
        const ddl::error failure = error_of([&] { ddl::all_gather<ddl::direct>(ranks, block, result); });
        out[0] = result == std::vector<int>(result.size(), -7) ? -7 : 0;
        throw failure;
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(of_an_allreduce_in_rounds, Place, every_place) {
    disagree<Place>("allreduce in rounds", [](auto& ranks, std::size_t, std::vector<int>& out) {
        const std::vector<int> in(2500, 1);
        std::vector<int> result(2500, -7);
        const ddl::error failure = error_of([&] { ddl::allreduce(ranks, in, result); });
        out[0] = result == std::vector<int>(2500, -7) ? -7 : 0;
        throw failure;
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(of_an_allreduce_by_halves, Place, every_place) {
    // of 4 and 8 ranks the first half follows in pieces, and shorter parts are the messages themselves
    disagree<Place>("allreduce by halves", [](auto& ranks, std::size_t, std::vector<int>& out) {
        const std::vector<int> in(40'000, 1);
        std::vector<int> result(40'000, -7);
        const ddl::error failure = error_of([&] { ddl::allreduce<ddl::recursive_halving>(ranks, in, result); });
        out[0] = result == std::vector<int>(40'000, -7) ? -7 : 0;
        throw failure;
    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(of_several_in_rounds_and_several_in_one_step, Place, every_place) {
    for (const int size : {5, 7})
        for (int shift = 0; shift < 4; ++shift)
            Place::run(size, [&](auto& ranks) {
                const std::string where = "rank " + std::to_string(ranks.rank()) + " of " + std::to_string(size) +
                                          ", shifted by " + std::to_string(shift);
                std::vector<int> block(5, 1), all(5 * static_cast<std::size_t>(size), -7), result(10'000, -7);
                const std::vector<int> in(10'000, 1);
                const std::vector<int> blocks(long_block * static_cast<std::size_t>(size), 1);
                std::vector<int> exchanged(blocks.size(), -7);
                const ddl::error failure = error_of([&] {
                    switch ((ranks.rank() + shift) % 4) {
                        case 0: return ddl::barrier(ranks);
                        case 1: return ddl::all_gather(ranks, block, all);
                        case 2: return ddl::all_to_all(ranks, blocks, exchanged);
                        default: return ddl::allreduce(ranks, in, result);
                    }
                });
                require(failure.code() == ddl::errc::mismatch, where + ": " + failure.what());
                require(all == std::vector<int>(all.size(), -7), where + ": gathered");
                require(result == std::vector<int>(result.size(), -7), where + ": reduced");
                require(exchanged == std::vector<int>(exchanged.size(), -7), where + ": exchanged");
                ddl::allreduce(ranks, block);
                require(block == std::vector<int>(block.size(), size), where + ": out of order afterwards");
            });
}
