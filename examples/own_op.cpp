// SPDX-License-Identifier: Apache-2.0
// An op of one's own, on a struct of one's own. It has a state, and the order of its operands matters.
// prints: all maps together take 1 to 41606
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

//! [element]
/// A map of numbers: `x` becomes `factor * x + summand`.
struct affine {
    std::uint64_t factor;
    std::uint64_t summand;
};
//! [element]

//! [op]
/// First one map, then the other. Nothing marks it as commutative, so ddl keeps the operands in the order of the ranks.
struct followed_by {
    static constexpr const char* name = "followed_by";  // for errors and ddl::explain; may be left out
    std::uint64_t modulus;                              // the op's state: equal on all ranks

    constexpr affine operator()(const affine& first, const affine& then) const {
        return {then.factor * first.factor % modulus, (then.factor * first.summand + then.summand) % modulus};
    }
};
static_assert(ddl::combines<followed_by, affine> && !ddl::commutes<followed_by>);
//! [op]

int main() {
    bool right = true;
    ddl::threads::run(4, [&right](ddl::threads& team) {
        const auto rank = static_cast<std::uint64_t>(team.rank());
        //! [call]
        std::array<affine, 1> map{affine{75 + rank, 74}};
        ddl::allreduce(team, map, followed_by{65537});  // the default schedule keeps the order of the ranks
        // ddl::allreduce<ddl::ring> does not: with this op it would not compile
        //! [call]
        if (rank != 0) return;
        const std::uint64_t together = (map[0].factor * 1 + map[0].summand) % 65537;
        std::uint64_t one_by_one = 1;
        for (std::uint64_t factor = 75; factor < 75 + 4; ++factor) one_by_one = (factor * one_by_one + 74) % 65537;
        std::printf("all maps together take 1 to %llu\n", static_cast<unsigned long long>(together));
        right = together == one_by_one;
    });
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
