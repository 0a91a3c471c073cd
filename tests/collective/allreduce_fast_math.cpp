// SPDX-License-Identifier: Apache-2.0
// Compiled as programs are whose terms and quotients a compiler may put otherwise, in each loop as it likes.
// on x86-64: -O3 -ffast-math
// not under: address thread
#include <ddl/allreduce.hpp>

#include <boost/test/unit_test.hpp>

#include <cstring>
#include <vector>

#include "places.hpp"

namespace {

struct mixed {
    static constexpr bool commutative = true;
    constexpr float operator()(float left, float right) const {
        return (left + right) * 0.7f + left * 0.3f * right + right * left * 0.1f;
    }
};
struct quotients {
    static constexpr bool commutative = true;
    constexpr float operator()(float left, float right) const { return left + 1 / right + 1 / left + right; }
};

/// Ranks call in place or not, and so by loops that are not the same.
template <class Schedule, class Place, class Op>
void same_on_all_ranks(int size, std::size_t count) {
    std::vector<std::vector<float>> results(static_cast<std::size_t>(size));
    Place::run(size, [&](auto& ranks) {
        std::vector<float> values(count);
        for (std::size_t i = 0; i < count; ++i)
            values[i] =
                1 + static_cast<float>((i * 2654435761U + static_cast<std::size_t>(ranks.rank()) * 40503U) % 100'003) /
                        77'777;
        std::vector<float>& result = results[static_cast<std::size_t>(ranks.rank())];
        result = values;
        if (ranks.rank() % 2 == 0) ddl::allreduce<Schedule>(ranks, result, Op{});
        else ddl::allreduce<Schedule>(ranks, values, result, Op{});
    });
    for (const std::vector<float>& each : results)
        BOOST_TEST(std::memcmp(each.data(), results[0].data(), count * sizeof(float)) == 0,
                   size << " ranks, " << count << " elements");
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_rank_has_the_same_bits) {
    for (const int size : {2, 3, 4, 5})
        for (const std::size_t count : {3U, 12U, 20U, 70U, 200U, 1021U, 3000U}) {
            same_on_all_ranks<ddl::tuned, places::threads, mixed>(size, count);
            same_on_all_ranks<ddl::tuned, places::threads, quotients>(size, count);
            same_on_all_ranks<ddl::tuned, places::messages<1>, mixed>(size, count);
            same_on_all_ranks<ddl::recursive_doubling, places::messages<1>, quotients>(size, count);
        }
}
