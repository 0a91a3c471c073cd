// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/schedule/combinators.hpp>
#include <ddl/schedule/schedule.hpp>

namespace ddl {

/// Recursive doubling: pairs exchange everything they have, at distances 1, 2, 4, ...
///
/// Of `p` ranks `2^q` take part, `q` the largest that fits: of the first `2 (p - 2^q)` ranks every even one first hands
/// its operand to its right neighbour and gets the result at the end. Those that take part beside each other then lie on different
/// cores or nodes also where ranks are dealt out to two of them in turn.
///
/// Cost: `floor(log2 p)` steps (2 more where `p` is no power of two); `n ceil(log2 p)` bytes sent a rank. For short messages.
/// Order: keeps rank order, for what is exchanged always lies side by side.
/// Source: Thakur, Rabenseifner and Gropp, Int. J. High Perform. Comput. Appl. 19(1), 2005, section 4.5.
struct recursive_doubling {
    static constexpr const char* name = "recursive_doubling";
    static constexpr int chunks(int) noexcept { return 1; }
    static constexpr int rounds(int size) noexcept { return steps(size) + (excess(size) > 0 ? 2 : 0); }

    static constexpr transfer_list<2> round(int rank, int size, int k) noexcept {
        const int folded = excess(size);
        const bool in_pairs = rank < 2 * folded;
        if (folded > 0 && (k == 0 || k == rounds(size) - 1)) {
            if (!in_pairs) return {};
            const bool odd = rank % 2 != 0;
            if (k == 0) return {{{odd ? action::receive_reduce : action::send, odd ? rank - 1 : rank + 1, 0}}, 1};
            return {{{odd ? action::send : action::receive, odd ? rank - 1 : rank + 1, 0}}, 1};
        }
        if (in_pairs && rank % 2 == 0) return {};
        const int other = place(rank, size) ^ (1 << (k - (folded > 0 ? 1 : 0)));
        const int peer = other < folded ? 2 * other + 1 : other + folded;
        return {{{action::send, peer, 0}, {action::receive_reduce, peer, 0}}, 2};
    }

    /// Where `rank` stands among those that take part; a rank that is folded away, where its neighbour does.
    static constexpr int place(int rank, int size) noexcept {
        const int folded = excess(size);
        return rank < 2 * folded ? rank / 2 : rank - folded;
    }

private:
    static constexpr int steps(int size) noexcept { return ceil_log2(size + 1) - 1; }
    static constexpr int excess(int size) noexcept { return size - (1 << steps(size)); }
};

template <>
inline constexpr bool of_the_library<recursive_doubling> = true;
static_assert(schedule<recursive_doubling> && !has_halves<recursive_doubling>);

}  // namespace ddl
