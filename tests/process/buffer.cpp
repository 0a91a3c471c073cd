// SPDX-License-Identifier: Apache-2.0
#include <ddl/buffer.hpp>
#include <ddl/transport/shared_memory.hpp>
#include <ddl/transport/threads.hpp>

#include <boost/test/unit_test.hpp>

#include <numeric>
#include <optional>
#include <ranges>
#include <span>
#include <thread>

#include "children.hpp"

static_assert(std::ranges::contiguous_range<ddl::buffer<float>> && std::ranges::sized_range<ddl::buffer<float>>);
static_assert(std::ranges::contiguous_range<const ddl::buffer<float>>);
static_assert(std::convertible_to<ddl::buffer<float>&, std::span<float>>, "collectives take spans");
static_assert(std::convertible_to<const ddl::buffer<float>&, std::span<const float>>);
static_assert(std::movable<ddl::buffer<float>> && !std::copy_constructible<ddl::buffer<float>>);
static_assert(!ddl::offers_memory<ddl::threads>, "threads map all there is");
static_assert(ddl::offers_memory<ddl::shared_memory>);

namespace {
const ddl::call_site here{"test"};

template <class Body>
void run(int size, Body body) {
    const std::string job = fresh_job();
    children ranks;
    for (int rank = 0; rank < size; ++rank)
        ranks.start([&, rank] {
            ddl::shared_memory node{job, rank, size, ddl::timeout{100}};
            body(node);
        });
    for (const outcome& result : ranks.finish()) BOOST_TEST(result.how == outcome::returned, result);
}

template <class Call>
bool throws(ddl::errc code, Call call) {
    try {
        call();
    } catch (const ddl::error& failure) { return failure.code() == code; }
    return false;
}

/// Whether all ranks of `with` read in this rank's `data` what it wrote, and it reads what they all added.
void show(ddl::shared_memory& with, std::span<int> data) {
    const auto rank = static_cast<std::size_t>(with.rank());
    const auto size = static_cast<std::size_t>(with.size());
    const std::uint64_t mine = with.address_of(data.data(), data.size_bytes());
    EXPECT(mine != 0);
    std::iota(data.begin(), data.end(), with.rank());
    const auto addresses = with.exchange(mine, here);
    for (int peer = 0; peer < with.size(); ++peer) {
        const auto theirs =
            reinterpret_cast<int*>(with.mapped(peer, addresses[static_cast<std::size_t>(peer)], data.size_bytes()));
        for (std::size_t i = rank; i < data.size(); i += size) {
            EXPECT(theirs[i] == peer + static_cast<int>(i));
            theirs[i] += 1'000;
        }
    }
    with.exchange(0, here);
    for (std::size_t i = 0; i < data.size(); ++i) EXPECT(data[i] == 1'000 + with.rank() + static_cast<int>(i));
    with.exchange(0, here);
}
}  // namespace

BOOST_AUTO_TEST_CASE(starts_with_zeros_even_where_others_were_before) {
    run(1, [](ddl::shared_memory& node) {
        for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, std::size_t{1'000'000}}) {
            for (int turn = 0; turn < 3; ++turn) {
                ddl::buffer<int> memory{node, count};
                EXPECT(memory.size() == count && !memory.empty());
                for (const int element : memory) EXPECT(element == 0);
                std::ranges::fill(memory, 7);
            }
        }
        EXPECT(ddl::buffer<int>(node, 0).empty());
    });
}

BOOST_AUTO_TEST_CASE(is_seen_by_all_ranks) {
    run(4, [](ddl::shared_memory& node) {
        for (const std::size_t count : {std::size_t{1}, std::size_t{5000}, std::size_t{1'000'000}}) {
            ddl::buffer<int> memory{node, count};
            show(node, memory);
            std::vector<int, ddl::shared_allocator<int>> same(count, ddl::shared_allocator<int>{node});
            show(node, same);
        }
    });
}

BOOST_AUTO_TEST_CASE(longer_than_a_view_is_seen_by_all_ranks) {
    run(2, [](ddl::shared_memory& node) {
        ddl::buffer<int> before{node, 100};
        ddl::buffer<int> memory{node, 17'000'000};
        ddl::buffer<int> after{node, 100};
        show(node, std::span{memory}.first(100));
        show(node, std::span{memory}.last(1000));
        show(node, before);
        show(node, after);
    });
}

BOOST_AUTO_TEST_CASE(of_the_world_is_seen_in_a_group_and_the_other_way_round) {
    run(4, [](ddl::shared_memory& node) {
        ddl::shared_memory group = node.split(node.rank() % 2, -node.rank());
        ddl::buffer<int> of_world{node, 1000};
        ddl::buffer<int> of_group{group, 1000};
        show(group, of_world);
        show(node, of_group);
        show(group, of_group);
    });
}

BOOST_AUTO_TEST_CASE(a_part_of_it_has_an_address_too) {
    run(2, [](ddl::shared_memory& node) {
        ddl::buffer<int> memory{node, 10'000};
        show(node, std::span{memory}.subspan(777, 5000));
        const auto whole = node.address_of(memory.data(), 40'000);
        EXPECT(node.address_of(memory.data() + 10, 4) == whole + 40);
    });
}

BOOST_AUTO_TEST_CASE(other_memory_has_none) {
    run(2, [](ddl::shared_memory& node) {
        int on_stack[4] = {};
        std::vector<int> on_heap(100'000);
        EXPECT(node.address_of(on_stack, sizeof on_stack) == 0);
        EXPECT(node.address_of(on_heap.data(), 400'000) == 0);
        EXPECT(node.address_of(nullptr, 0) == 0);
        EXPECT(node.address_of(node.window(1 - node.rank()), 8) == 0 || node.rank() == 0);
        node.exchange(0, here);
    });
}

BOOST_AUTO_TEST_CASE(outlives_its_communicator) {
    run(1, [](ddl::shared_memory& node) {
        std::optional<ddl::shared_memory> moved{std::move(node)};
        ddl::buffer<int> memory{*moved, 100'000};
        moved.reset();
        std::ranges::fill(memory, 1);
        EXPECT(std::accumulate(memory.begin(), memory.end(), 0) == 100'000);
    });
}

BOOST_AUTO_TEST_CASE(one_that_was_moved_from_has_none_and_says_so) {
    run(1, [](ddl::shared_memory& node) {
        const ddl::shared_memory moved{std::move(node)};
        EXPECT(throws(ddl::errc::broken, [&] { ddl::buffer<int>(node, 10); }));
        EXPECT(throws(ddl::errc::broken, [&] { node.allocator(); }));
        EXPECT(throws(ddl::errc::broken, [&] { node.allocate(10); }));
        ddl::buffer<int>(moved, 10);
    });
}

BOOST_AUTO_TEST_CASE(that_ranks_keep_does_not_make_them_look_alive) {
    const std::string job = fresh_job();
    children ranks;
    for (int rank = 0; rank < 2; ++rank)
        ranks.start([&, rank] {
            std::optional<ddl::shared_memory> node{std::in_place, job, rank, 2, ddl::timeout{100}};
            ddl::buffer<int> memory{*node, 10};
            if (rank == 0) node->exchange(0, here);
            node.reset();
            sleep_for(1);
        });
    const auto results = ranks.finish();
    BOOST_TEST(results[0].is(ddl::errc::peer_lost), results[0]);
    BOOST_TEST(results[1].how == outcome::returned, results[1]);
}

BOOST_AUTO_TEST_CASE(moves_and_frees_what_it_had) {
    run(1, [](ddl::shared_memory& node) {
        ddl::buffer<int> a{node, 10};
        const int* const data = a.data();
        a[3] = 5;
        ddl::buffer<int> b{std::move(a)};
        EXPECT(b.data() == data && b.size() == 10 && b[3] == 5);
        ddl::buffer<int> c{node, 20};
        const int* const freed = c.data();
        c = std::move(b);
        EXPECT(c.data() == data && c.size() == 10);
        EXPECT(ddl::buffer<int>(node, 20).data() == freed);
    });
}

BOOST_AUTO_TEST_CASE(memory_is_used_again_and_is_the_same_for_the_peers) {
    run(2, [](ddl::shared_memory& node) {
        std::uint64_t highest = 0;
        for (int turn = 0; turn < 50; ++turn) {
            ddl::buffer<int> memory{node, 100'000 + 1000 * static_cast<std::size_t>(turn % 7)};
            show(node, memory);
            const std::uint64_t address = node.address_of(memory.data(), 4) % ddl::shared_heap::region_bytes;
            highest = address > highest ? address : highest;
        }
        EXPECT(highest < (std::uint64_t{1} << 24));
    });
}

BOOST_AUTO_TEST_CASE(many_of_them_do_not_overlap_and_leave_no_gaps) {
    run(1, [](ddl::shared_memory& node) {
        std::vector<std::optional<ddl::buffer<unsigned>>> all(2000);
        unsigned random = 12345;
        for (int turn = 0; turn < 6000; ++turn) {
            random = random * 1664525 + 1013904223;
            auto& one = all[(random >> 8) % all.size()];
            if (one) {
                for (const unsigned element : *one) EXPECT(element == one->size());
                one.reset();
            } else {
                one.emplace(node, 1 + (random >> 4) % 4000);
                std::ranges::fill(*one, static_cast<unsigned>(one->size()));
            }
        }
        all.clear();
        // one piece again: the lowest address serves a long allocation
        ddl::buffer<unsigned> small{node, 1};
        const std::uint64_t lowest = node.address_of(small.data(), 4);
        ddl::buffer<unsigned> large{node, 2'000'000};
        EXPECT(node.address_of(large.data(), 4) == lowest + ddl::shared_heap::page);
    });
}

BOOST_AUTO_TEST_CASE(more_than_the_machine_has_is_an_error_and_the_rest_goes_on) {
    run(2, [](ddl::shared_memory& node) {
        const auto memory =
            static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
        for (const std::size_t bytes : {4 * memory, std::size_t{1} << 60, ~std::size_t{0}}) {
            EXPECT(throws(ddl::errc::out_of_memory, [&] { ddl::buffer<char>{node, bytes}; }));
        }
        EXPECT(throws(ddl::errc::out_of_memory, [&] { ddl::buffer<double>{node, ~std::size_t{0} / 4}; }));
        ddl::buffer<int> little{node, 1000};
        show(node, little);
    });
}

BOOST_AUTO_TEST_CASE(two_threads_allocate_at_once) {
    run(1, [](ddl::shared_memory& node) {
        bool right[2] = {true, true};
        const auto work = [&](std::size_t which) {
            for (std::size_t turn = 0; turn < 500; ++turn) {
                ddl::buffer<std::size_t> memory{node, 1 + turn * 7 % 3000};
                std::ranges::fill(memory, which);
                for (const std::size_t element : memory) right[which] = right[which] && element == which;
                right[which] = right[which] && node.address_of(memory.data(), 8) != 0;
            }
        };
        std::thread other{work, 0};
        work(1);
        other.join();
        EXPECT(right[0] && right[1]);
    });
}

BOOST_AUTO_TEST_CASE(an_element_whose_constructor_throws_costs_no_memory) {
    run(1, [](ddl::shared_memory& node) {
        struct refuses {
            refuses() { throw std::runtime_error("no"); }
        };
        const std::byte* const next = node.allocate(100);
        node.deallocate(const_cast<std::byte*>(next), 100);
        try {
            ddl::buffer<refuses> none{node, 100};
        } catch (const std::runtime_error&) {}
        EXPECT(reinterpret_cast<const std::byte*>(ddl::buffer<char>(node, 100).data()) == next);
    });
}

BOOST_AUTO_TEST_CASE(over_threads_it_is_ordinary_memory) {
    ddl::threads::run(2, [](ddl::threads& team) {
        ddl::buffer<double> memory{team, 1000};
        std::vector<double, ddl::shared_allocator<double>> same(1000, ddl::shared_allocator<double>{team});
        for (const double element : memory) EXPECT(element == 0);
        EXPECT(team.address_of(memory.data(), 8000) != 0);
        EXPECT(ddl::shared_allocator<int>{team} == ddl::shared_allocator<double>{team});
    });
}
