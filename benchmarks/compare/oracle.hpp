// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/plan.hpp>  // block

#include <algorithm>
#include <cstdint>

#include "../values.hpp"
#include "cell.hpp"

namespace compare {

/// What each rank brings to a call, and what the call must leave: computed in `double`, one operand after another.
class oracle {
public:
    oracle(const cell& asked, int rank, int size) : asked_{asked}, rank_{rank}, size_{size} {}

    /// Elements that this rank brings.
    std::size_t incoming() const {
        return asked_.collective == "all_gather" ? own().count : asked_.collective == "barrier" ? 0 : asked_.count;
    }
    /// Elements of the result on this rank.
    std::size_t outgoing() const {
        if (asked_.collective == "barrier" || (asked_.collective == "reduce" && rank_ != 0)) return 0;
        return asked_.collective == "reduce_scatter" ? own().count : asked_.count;
    }

    void write(element* in, std::uint32_t call) const { write_contribution(in, incoming(), rank_, call); }

    /// Writes over what is left of an earlier result: who has read it holds its cache lines, and a contender may have let its peer.
    void spoil(element* out) const { std::fill_n(out, outgoing(), nearest<element>(-1)); }

    /// How many elements of the result are wrong.
    std::size_t wrong(const element* out, std::uint32_t call) const {
        std::size_t found = 0;
        for (std::size_t i = 0; i < outgoing(); ++i) found += out[i] == nearest<element>(expected(i, call)) ? 0U : 1U;
        return found;
    }

private:
    ddl::block_of own() const { return ddl::block(asked_.count, size_, rank_); }

    double expected(std::size_t i, std::uint32_t call) const {
        if (asked_.collective == "broadcast") return contribution(0, i, call);
        if (asked_.collective == "all_gather") {
            int owner = 0;
            while (i >= ddl::block(asked_.count, size_, owner).first + ddl::block(asked_.count, size_, owner).count)
                ++owner;
            return contribution(owner, i - ddl::block(asked_.count, size_, owner).first, call);
        }
        if (asked_.collective == "all_to_all") {
            const std::size_t each = asked_.count / static_cast<std::size_t>(size_);
            return contribution(static_cast<int>(i / each), static_cast<std::size_t>(rank_) * each + i % each, call);
        }
        const std::size_t at = asked_.collective == "reduce_scatter" ? own().first + i : i;
        double folded = contribution(0, at, call);
        for (int rank = 1; rank < size_; ++rank)
            folded = op{}(folded, static_cast<double>(contribution(rank, at, call)));
        return folded;
    }

    const cell& asked_;
    int rank_;
    int size_;
};

}  // namespace compare
