// SPDX-License-Identifier: Apache-2.0
#include <ddl/allreduce.hpp>
#include <ddl/barrier.hpp>
#include <ddl/reduce.hpp>

#include <boost/test/unit_test.hpp>

#include <tuple>

#include "oracle.hpp"
#include "places.hpp"

namespace {

using every_place = std::tuple<places::threads, places::processes, places::messages<1>, places::messages<2>,
                               places::messages<4>, places::levels<ddl::threads, ddl::recording, 2>>;

using ranks_of_memory = std::tuple<places::threads, places::processes>;

/// Of four ranks one calls `call(ranks, true)`, the rest `call(ranks, false)`. The rest must hear `to_the_rest`, `%` stands for the one that differs; the one must hear `to_the_one`, of which `%` stands for the lowest of the
/// rest. Afterwards the communicator works.
template <class Place, class Call>
void disagree(const std::string& to_the_rest, const std::string& to_the_one, Call call) {
    for (const int one : {0, 2, 3})
        Place::run(4, [&](auto& ranks) {
            const bool alone = ranks.rank() == one;
            std::string words = alone ? to_the_one : to_the_rest;
            words.replace(words.find('%'), 1, std::to_string(alone ? (one == 0 ? 1 : 0) : one));
            const ddl::error failure = error_of([&] { call(ranks, alone); });
            require(failure.code() == ddl::errc::mismatch, failure.what());
            require(failure.rank() == ranks.rank(), "it is the error of another rank");
            require(std::string(failure.what()).find(words) != std::string::npos, failure.what());
            for (const std::size_t count :
                 {3U, 300U, 50'000U}) {  // over private memory: in the notice, in one shot, in segments
                std::vector<int> data(count, 1);
                ddl::allreduce(ranks, data);
                require(data == std::vector<int>(count, 4), "it is out of order afterwards");
            }
        });
}

/// `count` elements that every rank brings others of, so that a fold shows.
std::vector<float> operand(const auto& ranks, std::size_t count) {
    return std::vector<float>(count, static_cast<float>(ranks.rank() + 1));
}

/// An allreduce that fails, and leaves its operand as it was.
void allreduce_in_vain(auto& ranks, std::size_t count) {
    auto data = operand(ranks, count);
    try {
        ddl::allreduce(ranks, data);
    } catch (const ddl::error&) {
        require(data == operand(ranks, count), "the operand is lost");
        throw;
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(of_counts, Place, every_place) {
    disagree<Place>("rank % brings 99 elements, this rank 100; pass equal counts on every rank",
                    "rank % brings 100 elements, this rank 99; pass equal counts on every rank",
                    [](auto& ranks, bool differs) { allreduce_in_vain(ranks, differs ? 99 : 100); });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(of_counts_of_which_one_is_short_and_one_long, Place, every_place) {
    disagree<Place>("rank % brings 5 elements, this rank 50000", "rank % brings 50000 elements, this rank 5",
                    [](auto& ranks, bool differs) { allreduce_in_vain(ranks, differs ? 5 : 50'000); });
    disagree<Place>("rank % brings 50000 elements, this rank 5", "rank % brings 5 elements, this rank 50000",
                    [](auto& ranks, bool differs) { allreduce_in_vain(ranks, differs ? 50'000 : 5); });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(of_counts_that_are_sent_in_other_numbers_of_pieces, Place, every_place) {
    disagree<Place>("rank % brings 2000 elements, this rank 12000", "rank % brings 12000 elements, this rank 2000",
                    [](auto& ranks, bool differs) {
                        auto data = operand(ranks, differs ? 2000 : 12'000);
                        const auto finally = data;
                        const ddl::error reduced = error_of([&] { ddl::reduce(ranks, data, ddl::sum{}, 1); });
                        require(reduced.code() == ddl::errc::mismatch && data == finally, reduced.what());
                        ddl::allreduce<ddl::recursive_doubling>(ranks, data);
                    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(of_counts_of_which_halves_are_sent, Place, every_place) {
    for (const std::size_t other : {7U, 2000U, 20'001U, 50'000U})
        disagree<Place>("rank % brings " + std::to_string(other) + " elements, this rank 20000",
                        "rank % brings 20000 elements, this rank " + std::to_string(other),
                        [other](auto& ranks, bool differs) {
                            auto data = operand(ranks, differs ? other : 20'000);
                            const auto finally = data;
                            const ddl::error reduced = error_of([&] { ddl::allreduce(ranks, data, ddl::maximum{}); });
                            require(reduced.code() == ddl::errc::mismatch && data == finally, reduced.what());
                            ddl::allreduce<ddl::recursive_halving>(ranks, data);
                        });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(of_types, Place, every_place) {
    disagree<Place>("rank % brings elements of type float64 (8 bytes), this rank float32 (4 bytes); pass equal types",
                    "rank % brings elements of type float32 (4 bytes), this rank float64 (8 bytes); pass equal types",
                    [](auto& ranks, bool differs) {
                        std::vector<float> narrow(4);
                        std::vector<double> wide(4);
                        if (differs) ddl::allreduce(ranks, wide);
                        else ddl::allreduce(ranks, narrow);
                    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(of_ops, Place, every_place) {
    disagree<Place>("rank % reduces with maximum, this rank with sum; pass equal ops on every rank",
                    "rank % reduces with sum, this rank with maximum; pass equal ops on every rank",
                    [](auto& ranks, bool differs) {
                        std::vector<float> data(4);
                        if (differs) ddl::allreduce(ranks, data, ddl::maximum{});
                        else ddl::allreduce(ranks, data);
                    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(of_roots, Place, every_place) {
    disagree<Place>("rank % names root 1, this rank 2; pass equal roots on every rank",
                    "rank % names root 2, this rank 1; pass equal roots on every rank", [](auto& ranks, bool differs) {
                        std::vector<float> data(4);
                        ddl::reduce<ddl::direct>(ranks, data, ddl::sum{}, differs ? 1 : 2);
                    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(of_schedules, Place, every_place) {
    disagree<Place>("rank % calls with another schedule; name the same schedule on every rank",
                    "rank % calls with another schedule; name the same schedule on every rank",
                    [](auto& ranks, bool differs) {
                        std::vector<float> data(4);
                        if (differs) ddl::allreduce<ddl::ring>(ranks, data);
                        else ddl::allreduce<ddl::recursive_doubling>(ranks, data);
                    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(of_the_order_of_calls, Place, every_place) {
    disagree<Place>(
        "rank % calls barrier, this rank allreduce; call the same collectives in the same order on every rank",
        "rank % calls allreduce, this rank barrier; call the same collectives in the same order on every rank",
        [](auto& ranks, bool differs) {
            std::vector<float> data(4);
            if (differs) ddl::barrier(ranks);
            else ddl::allreduce(ranks, data);
        });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(of_tensors_that_are_as_many_elements_in_all, Place, every_place) {
    disagree<Place>("rank % brings tensors of other sizes; pass tensors of equal sizes in equal order on every rank",
                    "rank % brings tensors of other sizes; pass tensors of equal sizes in equal order on every rank",
                    [](auto& ranks, bool differs) {
                        std::vector<std::vector<float>> tensors(2);
                        tensors[0].resize(differs ? 3 : 4);
                        tensors[1].resize(differs ? 4 : 3);
                        ddl::allreduce_n(ranks, tensors);
                    });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(of_a_split_and_a_collective_of_which_the_lowest_rank_is_named, Place, ranks_of_memory) {
    disagree<Place>("rank % ", "rank % calls a collective, this rank split; call the same in the same order",
                    [](auto& ranks, bool splits) {
                        if (splits) ranks.split(0, 0);
                        else ddl::barrier(ranks);
                    });
}
