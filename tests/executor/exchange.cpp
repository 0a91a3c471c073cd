// SPDX-License-Identifier: Apache-2.0
// All-to-alls whose output is their input, on all ranks or on some.
#include <ddl/all_to_all.hpp>
#include <ddl/transport/recording.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "../collective/oracle.hpp"
#include "../collective/places.hpp"

// Ranks that know themselves to be on one host.
struct housed : ddl::recording {
    explicit housed(ddl::recording&& from) : ddl::recording{std::move(from)} {}
    static constexpr bool on_one_host() noexcept { return true; }
    std::byte* scratch(std::size_t bytes, ddl::scratch_for use = ddl::scratch_for::arrivals) {
        most_scratch = std::max(most_scratch, bytes);
        return ddl::recording::scratch(bytes, use);
    }
    std::size_t most_scratch = 0;
};

// The same whose short messages go in pieces, as those of MPI do.
struct in_pieces : housed {
    using housed::housed;
    static constexpr ddl::segmenting host_segments{.bytes = std::size_t{1} << 20,
                                                   .depth = 4,
                                                   .short_message = std::size_t{16} << 10,
                                                   .short_bytes = 3968,
                                                   .short_exchange = std::size_t{8} << 10,
                                                   .short_beside = std::size_t{24} << 10,
                                                   .quick_message = 512,
                                                   .quick_bytes = 256};
};
// The same one of whose slices goes in pieces.
struct in_long_pieces : housed {
    using housed::housed;
    static constexpr ddl::segmenting host_segments{.bytes = std::size_t{1} << 20,
                                                   .depth = 4,
                                                   .short_message = std::size_t{2} << 20,
                                                   .short_bytes = std::size_t{64} << 10};
};

namespace {

enum class placed { here, apart, some_here };

/// `each` elements from every rank to every rank.
template <class Schedule = ddl::tuned, class Ranks>
void exchanges(Ranks& ranks, std::size_t each, placed how) {
    const std::size_t count = each * static_cast<std::size_t>(ranks.size());
    guarded<int> data = small_values<int>(ranks.rank(), count);
    const bool in_place = how == placed::here || (how == placed::some_here && ranks.rank() % 2 != 0);
    guarded<int> out{in_place ? 0 : count};
    if (in_place) ddl::all_to_all<Schedule>(ranks, data);
    else ddl::all_to_all<Schedule>(ranks, data, out);
    require_values(in_place ? data : out, exchanged_values(ranks.rank(), each),
                   "rank " + std::to_string(ranks.rank()) + ", blocks of " + std::to_string(each));
}

}  // namespace

BOOST_AUTO_TEST_CASE(messages_of_blocks_that_are_longer_than_a_slice) {
    for (const int size : under_thread_sanitizer ? std::vector{3} : std::vector{2, 3, 4})
        ddl::recording::run(size, [](ddl::recording& team) {
            housed ranks{team.split(0, team.rank())};
            constexpr std::size_t slice = ddl::block_slices{true}.bytes() / sizeof(int);
            for (const std::size_t each : {slice, 2 * slice - 1, 2 * slice, 2 * slice + 1, 3 * slice + 5})
                for (const placed how : {placed::here, placed::apart, placed::some_here}) {
                    exchanges<ddl::ring>(ranks, each, how);
                    exchanges<ddl::direct>(ranks, each, how);
                }
        });
}

template <class Ranks>
void rests_of_blocks(std::initializer_list<std::size_t> rests) {
    for (const int size : {2, 3})
        ddl::recording::run(size, [&](ddl::recording& team) {
            Ranks ranks{team.split(0, team.rank())};
            constexpr std::size_t slice = ddl::block_slices{true}.bytes() / sizeof(int);
            for (const std::size_t rest : rests)
                for (const placed how : {placed::here, placed::some_here})
                    exchanges<ddl::direct>(ranks, slice + rest, how);
        });
}

BOOST_AUTO_TEST_CASE(the_rest_of_a_block_is_cut_alike_on_both_ends) {
    rests_of_blocks<in_pieces>({1, 100, 1500, 2049, 6144, 6145, 200'000});
    rests_of_blocks<in_long_pieces>({0, 1500, 200'000, 262'145, 800'000});
}

BOOST_AUTO_TEST_CASE(in_place_no_more_is_copied_than_a_few_slices) {
    ddl::recording::run(3, [](ddl::recording& team) {
        housed ranks{team.split(0, team.rank())};
        const std::size_t slice = ddl::block_slices{true}.bytes();
        exchanges(ranks, 10 * slice / sizeof(int), placed::here);
        require(ranks.most_scratch < 3 * slice, "a slice for each of two peers");
    });
}

BOOST_AUTO_TEST_CASE(memory_that_all_can_map_is_exchanged_where_it_lies) {
    for (const int size : under_a_sanitizer ? std::vector{1, 2, 3} : std::vector{1, 2, 3, 4, 7})
        places::threads::run(size, [](auto& ranks) {
            for (const std::size_t each : {500U, 3001U, 70'000U})
                for (const placed how : {placed::here, placed::some_here}) exchanges(ranks, each, how);
        });
}

BOOST_AUTO_TEST_CASE(memory_that_not_all_ranks_have_mapped_is_staged) {
    for (const int size : {2, 3, 5})
        places::processes::run(size, [](auto& ranks) {
            const std::size_t each = 9001, count = each * static_cast<std::size_t>(ranks.size());
            auto* const mapped = reinterpret_cast<int*>(ranks.scratch(count * sizeof(int), ddl::scratch_for::fusion));
            std::vector<int> alone(count);
            for (const int first_alone : {0, 1, ranks.size()}) {
                const std::span<int> data{ranks.rank() < first_alone ? mapped : alone.data(), count};
                for (std::size_t i = 0; i < count; ++i) data[i] = small_value(ranks.rank(), i);
                ddl::all_to_all(ranks, data);
                const auto wanted = exchanged_values(ranks.rank(), each);
                for (std::size_t i = 0; i < count; ++i) require(data[i] == wanted(i), "another value");
            }
        });
}
