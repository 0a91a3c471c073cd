// SPDX-License-Identifier: Apache-2.0
#include <ddl/allreduce.hpp>
#include <ddl/barrier.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <cstring>
#include <new>
#include <span>
#include <sys/mman.h>

#include "oracle.hpp"
#include "places.hpp"
#include "staged_threads.hpp"

namespace data = boost::unit_test::data;

namespace {

/// Runs `body` with staged ranks over `Place`.
template <class Place, class Body>
void staged_over(int ranks, std::size_t chunk_bytes, int slots, Body body) {
    Place::run(ranks, [&](auto& host) {
        staged_threads team{host, chunk_bytes, slots};
        body(team);
    });
}

/// Zeros, which take no memory until they are written.
struct reserved_bytes {
    std::span<unsigned char> all;
    explicit reserved_bytes(std::size_t count) {
        void* const first =
            ::mmap(nullptr, count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (first == MAP_FAILED) throw std::bad_alloc{};
        all = {static_cast<unsigned char*>(first), count};
    }
    reserved_bytes(const reserved_bytes&) = delete;
    reserved_bytes& operator=(const reserved_bytes&) = delete;
    ~reserved_bytes() { ::munmap(all.data(), all.size()); }
};

/// Sums of random values in chunks of many lengths, the first of which holds them all, have the same bits.
template <class Place, class Schedule, class Element>
void same_bits_in_any_chunks(int ranks, bool left_to_right) {
    constexpr std::size_t count = 1501;
    std::vector<guarded<Element>> whole;
    for (int rank = 0; rank < ranks; ++rank) whole.emplace_back(count);
    for (const std::size_t chunk_bytes : {1U << 20, 4096U, 1000U, 302U})
        staged_over<Place>(ranks, chunk_bytes, 3, [&](auto& team) {
            guarded<Element>& first = whole[static_cast<std::size_t>(team.rank())];
            guarded<Element> in{count, [&](std::size_t i) { return random_element<Element>(team.rank(), i); }};
            guarded<Element> out{count};
            ddl::allreduce<Schedule>(team, in, out);
            if (chunk_bytes >= count * sizeof(Element)) std::swap(first, out);
            else
                require_bits(
                    out, [&](std::size_t i) { return first[i]; }, "other bits in other chunks");
        });
    for (int rank = 0; rank < ranks; ++rank)
        require_bits(
            whole[static_cast<std::size_t>(rank)],
            [&](std::size_t i) { return left_to_right ? sum_in_rank_order<Element>(ranks, i) : whole[0][i]; },
            "other bits than those of all ranks, or of the fold in rank order");
}

}  // namespace

BOOST_DATA_TEST_CASE(in_rank_order_the_bits_are_the_same_in_any_chunks, data::make({2, 3, 5}), ranks) {
    same_bits_in_any_chunks<places::threads, ddl::direct, float>(ranks, true);
    same_bits_in_any_chunks<places::threads, ddl::direct, ddl::bfloat16>(ranks, true);
    same_bits_in_any_chunks<places::messages<>, ddl::recursive_doubling, float>(ranks, false);
    same_bits_in_any_chunks<places::messages<>, ddl::recursive_doubling, ddl::bfloat16>(ranks, false);
}

BOOST_DATA_TEST_CASE(chunks_pass_through_any_number_of_slots, data::make({1, 2, 3}) * data::make({1, 2, 4}), ranks,
                     slots) {
    const auto body = [](auto& team) {
        for (const std::size_t count : {0U, 1U, 255U, 256U, 257U, 1024U, 5000U}) {
            const auto expected = sums_of_small_values(team.size(), count);
            const auto wanted = [&](std::size_t i) { return expected[i]; };
            auto in = small_values<float>(team.rank(), count);
            guarded<float> out{count};
            const std::size_t before = team.fetched;
            ddl::allreduce(team, in, out);
            require_values(out, wanted, "beside");
            require(team.fetched - before == count * sizeof(float), "each element is fetched once");
            require(team.stored == team.fetched, "and stored once");
            ddl::allreduce<ddl::ring>(team, in, ddl::sum{});
            require_values(in, wanted, "in place");
        }
    };
    staged_over<places::threads>(ranks, 1024, slots, body);
    staged_over<places::messages<>>(ranks, 1024, slots, body);
}

BOOST_AUTO_TEST_CASE(an_element_longer_than_a_chunk_is_a_chunk) {
    staged_over<places::threads>(2, 3, 2, [](auto& team) {
        std::vector<double> values{1, 2, 3};
        ddl::allreduce(team, values);
        require(values == std::vector<double>{2, 4, 6}, "sums");
    });
}

BOOST_AUTO_TEST_CASE(ranks_that_disagree_on_the_length_are_told_before_anything_is_stored) {
    for (const std::size_t more : {std::size_t{1}, std::size_t{100}, std::size_t{1} << 32, std::size_t{3} << 32})
        staged_over<places::threads>(2, 64, 2, [more](auto& team) {
            const std::size_t count = team.rank() == 0 ? 100 : 100 + more;
            const reserved_bytes values{count};  // of which few are ever touched
            std::memset(values.all.data(), 1, 100);
            require_error(ddl::errc::mismatch, "brings another number of elements",
                          [&] { ddl::allreduce(team, values.all); });
            require(team.stored == 0, "nothing was stored");
            for (const unsigned char value : values.all.first(100)) require(value == 1, "nothing has changed");
        });
    staged_over<places::threads>(2, 64, 2, [](auto& team) {
        const std::size_t count = team.rank() == 0 ? 100U : 101U;
        std::vector<std::vector<int>> tensors{std::vector<int>(count), std::vector<int>(201 - count)};
        require_error(ddl::errc::mismatch, "brings tensors of other sizes", [&] { ddl::allreduce_n(team, tensors); });
    });
}

BOOST_AUTO_TEST_CASE(a_copy_that_fails_is_told_to_those_who_wait_for_it) {
    constexpr int copies = 2 * 5;  // of five chunks, in and out
    const auto body = [](auto& team) {
        for (int which = 0; which < copies; ++which) {
            std::vector<int> values(5 * 16, 1);
            const bool fails = team.rank() == 1;
            if (fails) team.copies_until_one_fails = which;
            const auto call = [&] { ddl::allreduce(team, values); };
            if (fails) require_error(ddl::errc::system, "the device says no", call);
            else if (which < copies - 1) require_error(ddl::errc::mismatch, "see its own error", call);
            else call();  // the last chunk was reduced: nobody waits any more
            team.copies_until_one_fails = -1;
            values.assign(80, 1);
            ddl::allreduce(team, values);
            require(values == std::vector<int>(80, 3), "the communicator is as good as before");
        }
    };
    staged_over<places::threads>(3, 64, 2, body);
    staged_over<places::messages<>>(3, 64, 2, body);
}

BOOST_AUTO_TEST_CASE(tensors_plans_and_requests_are_staged_too) {
    staged_over<places::threads>(3, 64, 2, [](auto& team) {
        std::vector<std::vector<int>> tensors{std::vector<int>(40, 1), {}, std::vector<int>(3, 2)};
        ddl::allreduce_n(team, tensors);
        require(tensors[0] == std::vector<int>(40, 3) && tensors[2] == std::vector<int>(3, 6), "sums");
        auto plan = ddl::allreduce_init(team, tensors[0], ddl::maximum{});
        plan();
        ddl::allreduce_async(team, tensors[0]).wait();
        require(tensors[0] == std::vector<int>(40, 9), "a sum");
        ddl::barrier(team);
        const std::string words = ddl::explain(plan);
        require(words.find("through host memory in chunks of 64 bytes, 2 on their way, each over threads: direct") !=
                    std::string::npos,
                words);
    });
}
