// SPDX-License-Identifier: Apache-2.0
#include <ddl/allreduce.hpp>
#include <ddl/buffer.hpp>

#include <boost/test/unit_test.hpp>

#include <array>
#include <list>
#include <span>
#include <tuple>

#include "oracle.hpp"
#include "places.hpp"
#include "require.hpp"

namespace {

using every_place = std::tuple<places::threads, places::processes, places::messages<1>,
                               places::levels<ddl::threads, ddl::recording, 1>>;

/// Tensors of these lengths are filled, reduced and compared.
template <class Schedule, class Ranks>
void sums(Ranks& ranks, const std::vector<std::size_t>& sizes) {
    std::vector<guarded<float>> tensors;
    std::size_t at = 0;
    for (const std::size_t size : sizes) {
        tensors.emplace_back(size, [&](std::size_t i) { return small_value(ranks.rank(), at + i); });
        at += size;
    }
    ddl::allreduce_n<Schedule>(ranks, tensors);
    const auto expected = sums_of_small_values(ranks.size(), at);
    at = 0;
    for (const auto& tensor : tensors) {
        require_values(
            tensor, [&](std::size_t i) { return expected[at + i]; }, "a tensor");
        at += tensor.size();
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(tensors_of_unlike_sizes_are_reduced_in_place, Place, every_place) {
    for (const int size : {1, 2, 3, 5})
        Place::run(size, [](auto& ranks) {
            sums<ddl::tuned>(ranks, {1, 100, 3, 77});
            sums<ddl::tuned>(ranks, {2000, 1, 3000});
            sums<ddl::ring>(ranks, {20'000, 5});
            sums<ddl::tuned>(ranks, {0, 5, 0, 0, 7, 0});  // empty ones
            sums<ddl::tuned>(ranks, {0});
            sums<ddl::tuned>(ranks, {});  // none at all
            sums<ddl::tuned>(ranks, std::vector<std::size_t>(500, 3));
        });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(long_tensors_go_alone_and_short_ones_in_groups, Place, every_place) {
    Place::run(3, [](auto& ranks) {
        constexpr ddl::fusion_limits limits = ddl::fusion_limits_of<std::remove_cvref_t<decltype(ranks)>>;
        constexpr std::size_t alone = limits.alone / sizeof(float);
        constexpr std::size_t together = limits.together / sizeof(float);
        sums<ddl::tuned>(ranks, {alone});
        sums<ddl::tuned>(ranks, {5, alone + 1, 0, alone - 1, 7, 2 * alone});
        std::vector<std::size_t> groups(together / (alone - 1) + 3, alone - 1);
        groups.insert(groups.begin() + 2, 3 * alone);
        groups.push_back(1);
        sums<ddl::tuned>(ranks, groups);
        groups.push_back(alone);  // after the last group
        sums<ddl::tuned>(ranks, groups);
    });
}

BOOST_AUTO_TEST_CASE(tensors_that_differ_are_noticed_whichever_goes_first) {
    places::threads::run(2, [](auto& ranks) {
        std::vector<std::vector<float>> tensors{std::vector<float>(50'000), std::vector<float>(3)};
        tensors[1].resize(ranks.rank() == 0 ? 3 : 4);
        const auto failure = error_of([&] { ddl::allreduce_n(ranks, tensors); });
        require(failure.code() == ddl::errc::mismatch, "the long ones are equal, the short ones not");
    });
}

BOOST_AUTO_TEST_CASE(any_range_of_ranges_will_do) {
    places::threads::run(2, [](auto& ranks) {
        std::list<std::vector<int>> list{{1}, {2, 3}};
        ddl::allreduce_n(ranks, list, ddl::product{});
        require(list == std::list<std::vector<int>>{{1}, {4, 9}}, "a list of vectors");
        std::vector<int> flat{1, 2, 3, 4};
        const std::vector<std::span<int>> views{std::span{flat}.first(2), std::span{flat}.last(1)};
        ddl::allreduce_n(ranks, views);
        require(flat == std::vector<int>{2, 4, 3, 8}, "a vector of views");
        ddl::allreduce_n(ranks, std::vector<std::span<int>>{flat});
        require(flat == std::vector<int>{4, 8, 6, 16}, "views made on the spot");
    });
}

BOOST_AUTO_TEST_CASE(one_exchange_carries_all_short_ones) {
    ddl::recording::run(4, [](auto& ranks) {
        std::vector<std::vector<float>> tensors(50, std::vector<float>(3));
        ranks.clear_log();
        ddl::allreduce_n(ranks, tensors);
        const std::size_t of_all = ranks.log().size();
        std::vector<float> packed(150);
        ranks.clear_log();
        ddl::allreduce(ranks, packed);
        require(ranks.log().size() == of_all, "more messages than for one tensor");
    });
}

BOOST_AUTO_TEST_CASE(without_blocking_the_elements_stay_where_they_are) {
    places::threads::run(3, [](auto& ranks) {
        std::vector<std::vector<int>> tensors{{1, 2}, {}, {3}};
        const auto under_way =
            ddl::allreduce_n_async(ranks, std::vector<std::span<int>>(tensors.begin(), tensors.end()));
        under_way.wait();
        require(tensors == std::vector<std::vector<int>>{{3, 6}, {}, {9}}, "other sums");
        ddl::allreduce_n_async(ranks, tensors).wait();
        require(tensors == std::vector<std::vector<int>>{{9, 18}, {}, {27}}, "a vector of vectors");
        ddl::allreduce_n_async(ranks, std::span(tensors).first(1)).wait();
        require(tensors == std::vector<std::vector<int>>{{27, 54}, {}, {27}}, "a view of vectors");

        std::list<std::vector<int>> list{{1}, {2, 3}};
        ddl::allreduce_n_async(ranks, list).wait();
        require(list == std::list<std::vector<int>>{{3}, {6, 9}}, "a list of vectors");
        std::array<std::array<int, 2>, 2> arrays{{{1, 2}, {3, 4}}};
        ddl::allreduce_n_async(ranks, arrays).wait();
        require(arrays == std::array<std::array<int, 2>, 2>{{{3, 6}, {9, 12}}}, "an array of arrays");
        int matrix[2][2] = {{1, 2}, {3, 4}};
        ddl::allreduce_n_async(ranks, matrix).wait();
        require(matrix[0][0] == 3 && matrix[0][1] == 6 && matrix[1][0] == 9 && matrix[1][1] == 12, "a matrix");
        std::vector<ddl::buffer<int>> buffers;
        buffers.emplace_back(ranks, 2)[1] = 5;
        ddl::allreduce_n_async(ranks, buffers).wait();
        require(buffers[0][0] == 0 && buffers[0][1] == 15, "a vector of buffers");
        struct plain {
            int values[2];
            int* data() { return values; }
            std::size_t size() const { return 2; }
        };
        std::vector<plain> plains{{{1, 2}}};
        ddl::allreduce_n_async(ranks, plains).wait();
        require(plains[0].values[0] == 3 && plains[0].values[1] == 6, "a vector of a program's own arrays");
        const std::span<int> views[] = {std::span(matrix[1])};
        ddl::allreduce_n_async(ranks, views).wait();
        require(matrix[0][0] == 3 && matrix[1][0] == 27 && matrix[1][1] == 36, "an array of views");
    });
}
