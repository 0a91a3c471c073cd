// SPDX-License-Identifier: Apache-2.0
#include <ddl/executor/direct_fold.hpp>
#include <ddl/op/sum.hpp>
#include <ddl/schedule/direct.hpp>
#include <ddl/transport/threads.hpp>

#include <boost/test/unit_test.hpp>

#include "../collective/oracle.hpp"
#include "../collective/places.hpp"

using ddl::protocol;

/// Whatever the processor: 4096 bytes are short, and yet announced as what can be mapped.
template <>
inline constexpr ddl::direct_limits ddl::limits_of<private_memory>{.one_shot = 4096, .mapped = 4096};
/// And ranks that stage some vectors in segments, though all can map them.
struct mapped_late : ddl::threads {
    explicit mapped_late(ddl::threads&& from) : ddl::threads{std::move(from)} {}
};
template <>
inline constexpr ddl::direct_limits ddl::limits_of<mapped_late>{.one_shot = 2048, .mapped = 5120};
/// And ranks that have a core each, whatever the machine.
struct on_own_cores : ddl::threads {
    explicit on_own_cores(ddl::threads&& from) : ddl::threads{std::move(from)} {}
    static bool uncrowded() noexcept { return true; }
};
template <>
inline constexpr ddl::direct_limits ddl::limits_of<on_own_cores>{.one_shot = 2048, .mapped = 5120};

namespace {

const auto everybody = [](int) { return true; };

template <class Ranks, class Element, class Op, class Takes>
protocol fold(Ranks& ranks, const ddl::call& what, const Element* in, Element* out, std::size_t count, const Op& op,
              Takes takes) {
    return ddl::direct_fold(ddl::memory_call{ranks, what, true}, in, out, count, op, takes);
}

/// Sums small values in a fused call; the protocol that it took.
template <class Ranks, class Takes>
protocol sum(Ranks& ranks, std::size_t count, Takes takes) {
    const auto in = small_values<int>(ranks.rank(), count);
    guarded<int> out{count};
    const ddl::call what = ddl::describe<ddl::sum, int, ddl::direct>(ddl::collective::allreduce, count, 0);
    const protocol way = fold(ranks, what, in.data(), out.data(), count, ddl::sum{}, takes);
    const auto expected = sums_of_small_values(ranks.size(), count);
    if (takes(ranks.rank()))
        require_values(
            out, [&](std::size_t i) { return expected[i]; }, ddl::to_string(way));
    else require(out.untouched(), "a result where none was wanted");
    return way;
}

struct large {
    int values[20'000];
};
struct alignas(128) aligned_row {
    int values[32];
};
/// Counts operands that do not lie as their type asks for.
struct add_rows {
    mutable int misplaced = 0;
    aligned_row operator()(const aligned_row& a, const aligned_row& b) const {
        for (const aligned_row* each : {&a, &b}) misplaced += reinterpret_cast<std::uintptr_t>(each) % 128 != 0;
        aligned_row all = a;
        for (std::size_t k = 0; k < std::size(all.values); ++k) all.values[k] += b.values[k];
        return all;
    }
};
struct add_large {
    large operator()(const large& a, const large& b) const {
        large all = a;
        for (std::size_t k = 0; k < std::size(all.values); ++k) all.values[k] += b.values[k];
        return all;
    }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_few_values_travel_in_the_notice) {
    const auto body = [](auto& ranks) {
        for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{12}})
            require(sum(ranks, count, everybody) == protocol::in_notice, "up to 48 bytes");
        require(sum(ranks, 13, everybody) != protocol::in_notice, "one element more");
    };
    places::threads::run(3, body);
    places::processes::run(3, body);
}

BOOST_AUTO_TEST_CASE(short_vectors_that_peers_cannot_map_are_staged_once) {
    const std::size_t most = ddl::limits_of<private_memory>.one_shot / sizeof(int);
    places::processes::run(3, [=](auto& ranks) {
        for (const std::size_t count : {std::size_t{13}, std::size_t{500}, most})
            require(sum(ranks, count, everybody) == protocol::one_shot, "a step is saved");
        for (const std::size_t count : {most + 1, std::size_t{50'000}, std::size_t{200'003}})
            require(sum(ranks, count, everybody) == protocol::staged, "every rank folds a block");
    });
}

BOOST_AUTO_TEST_CASE(buffers_that_all_can_map_are_not_staged) {
    const std::size_t least = (ddl::limits_here<ddl::threads>::all().mapped + sizeof(int) - 1) / sizeof(int);
    places::threads::run(3, [=](auto& ranks) {
        require(sum(ranks, least - 1, everybody) != protocol::mapped, "a short copy costs less");
        require(sum(ranks, least, everybody) == protocol::mapped, "it was staged");
        require(sum(ranks, 50'000, everybody) == protocol::mapped, "it was staged");
    });
}

BOOST_AUTO_TEST_CASE(between_short_vectors_and_those_worth_mapping_they_are_staged) {
    places::threads::run(3, [](auto& world) {
        mapped_late ranks{world.split(0, world.rank())};
        for (int round = 0; round < 3; ++round) {
            require(sum(ranks, 512, everybody) == protocol::one_shot, "2048 bytes");
            require(sum(ranks, 513, everybody) == protocol::staged, "one element more");
            require(sum(ranks, 1279, everybody) == protocol::staged, "up to 5120 bytes");
            require(sum(ranks, 1280, everybody) == protocol::mapped, "from there on");
        }
    });
}

BOOST_AUTO_TEST_CASE(many_ranks_that_have_a_core_each_fold_only_shorter_ones_whole) {
    const auto longest = [](int size, std::size_t most, auto takes) {
        places::threads::run(size, [=](auto& world) {
            on_own_cores ranks{world.split(0, world.rank())};
            require(sum(ranks, most, takes) == protocol::one_shot, "so much is read soon");
            require(sum(ranks, most + 1, takes) == protocol::staged, "one element more");
        });
    };
    longest(5, 512, everybody);
    longest(7, 341, everybody);
    longest(7, 512, [](int rank) { return rank == 2; });
}

BOOST_AUTO_TEST_CASE(all_ranks_know_alike_whether_they_have_a_core_each) {
    for (const int size : {1, 2, 9}) {
        const bool have = ddl::cores_for(size) >= size;
        const auto body = [=](auto& ranks) {
            require(ranks.uncrowded() == have, "as their founder");
            auto part = ranks.split(ranks.rank() % 2, 0);
            require(part.uncrowded() == have, "and as the whole");
        };
        places::threads::run(size, body);
        places::processes::run(size, body);
    }
}

BOOST_AUTO_TEST_CASE(one_buffer_that_cannot_be_mapped_stages_them_all) {
    places::processes::run(3, [](auto& ranks) {
        for (const std::size_t count : {std::size_t{1024}, std::size_t{5000}, std::size_t{200'003}}) {
            auto* const mapped =
                reinterpret_cast<int*>(ranks.scratch(2 * count * sizeof(int), ddl::scratch_for::fusion));
            std::vector<int> own(2 * count);
            int* const buffer = ranks.rank() == 1 ? own.data() : mapped;
            for (std::size_t i = 0; i < count; ++i) buffer[i] = small_value(ranks.rank(), i);
            const ddl::call what = ddl::describe<ddl::sum, int, ddl::direct>(ddl::collective::allreduce, count, 0);
            const auto way =
                fold(ranks, what, static_cast<const int*>(buffer), buffer + count, count, ddl::sum{}, everybody);
            require(way == (count == 1024 ? protocol::one_shot : protocol::staged), "one could not be mapped");
            const auto expected = sums_of_small_values(3, count);
            for (std::size_t i = 0; i < count; ++i) require(buffer[count + i] == expected[i], "another sum");
        }
    });
}

BOOST_AUTO_TEST_CASE(operands_may_lie_otherwise_on_each_rank) {
    places::processes::run(3, [](auto& ranks) {
        const auto skipped = static_cast<std::size_t>(ranks.rank()) * 7 + 3;
        for (const std::size_t count : {std::size_t{1000}, std::size_t{50'000}, std::size_t{200'003}}) {
            std::vector<int> values(skipped + count + 1, -1);
            for (std::size_t i = 0; i < count; ++i) values[skipped + i] = small_value(ranks.rank(), i);
            const ddl::call what = ddl::describe<ddl::sum, int, ddl::direct>(ddl::collective::allreduce, count, 0);
            int* const own = values.data() + skipped;
            fold(ranks, what, static_cast<const int*>(own), own, count, ddl::sum{}, everybody);
            const auto expected = sums_of_small_values(3, count);
            for (std::size_t i = 0; i < count; ++i) require(own[i] == expected[i], "another sum");
            require(own[-1] == -1 && own[count] == -1, "they are not ours");
        }
    });
}

BOOST_AUTO_TEST_CASE(staged_elements_are_aligned_as_their_type_asks_for) {
    places::processes::run(3, [](auto& ranks) {
        for (const std::size_t count : {std::size_t{5}, std::size_t{100}, std::size_t{3001}}) {
            std::vector<aligned_row> rows(count);
            for (std::size_t i = 0; i < count; ++i) rows[i].values[7] = small_value(ranks.rank(), i);
            const ddl::call what =
                ddl::describe<add_rows, aligned_row, ddl::direct>(ddl::collective::allreduce, count, 0);
            const add_rows op;
            fold(ranks, what, static_cast<const aligned_row*>(rows.data()), rows.data(), count, op, everybody);
            require(op.misplaced == 0, "an operand lies where none may");
            const auto expected = sums_of_small_values(3, count);
            for (std::size_t i = 0; i < count; ++i) require(rows[i].values[7] == expected[i], "another sum");
        }
    });
}

BOOST_AUTO_TEST_CASE(the_result_goes_to_those_that_take_it) {
    const auto body = [](auto& ranks) {
        for (const std::size_t count : std::initializer_list<std::size_t>{10, 5000, 100'003}) {
            sum(ranks, count, [](int rank) { return rank == 1; });
            sum(ranks, count, [](int rank) { return rank != 1; });
        }
    };
    places::threads::run(4, body);
    places::processes::run(4, body);
}

BOOST_AUTO_TEST_CASE(elements_too_large_for_the_windows_pass_through_memory_that_all_can_map) {
    const auto body = [](auto& ranks) {
        const auto in = std::make_unique<large[]>(3);
        const auto out = std::make_unique<large[]>(3);
        for (int i = 0; i < 3; ++i)
            for (int& each : in[static_cast<std::size_t>(i)].values) each = ranks.rank() + i;
        const ddl::call what = ddl::describe<add_large, large, ddl::direct>(ddl::collective::allreduce, 3, 0);
        const auto way = fold(ranks, what, static_cast<const large*>(in.get()), out.get(), 3, add_large{}, everybody);
        require(way == protocol::mapped, "it cannot have been staged");
        for (int i = 0; i < 3; ++i)
            for (const int each : out[static_cast<std::size_t>(i)].values) require(each == 3 + 3 * i, "another sum");
    };
    places::threads::run(3, body);
    places::processes::run(3, body);
}
