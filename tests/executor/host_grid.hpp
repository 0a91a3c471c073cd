// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/op/op.hpp>
#include <ddl/transport/grid_window.hpp>
#include <ddl/transport/host_block.hpp>

#include <boost/test/data/test_case.hpp>

#include <atomic>
#include <cstdint>
#include <deque>
#include <thread>
#include <vector>

#include "../collective/under_sanitizers.hpp"

/// Numbers of ranks of a grid, each of which brings a thread for each block.
inline auto grid_sizes() {
    return boost::unit_test::data::make(under_a_sanitizer ? std::vector{1, 2, 3, 5, 8}
                                                          : std::vector{1, 2, 3, 4, 5, 6, 7, 8, 9});
}

/// Windows of some ranks, and threads for each block of each rank: what a GPU does in one launch.
class host_grid {
public:
    explicit host_grid(int ranks) : ranks_{ranks} {
        for (int rank = 0; rank < ranks; ++rank) memory_.emplace_back(ddl::grid_window::bytes(ranks) / 8);
    }

    int size() const noexcept { return ranks_; }
    ddl::grid_window window(int rank) { return {memory_[static_cast<std::size_t>(rank)].data(), ranks_}; }

    template <class Element>
    ddl::grid_ranks<Element> places(std::vector<std::vector<Element>>& in, std::vector<std::vector<Element>>& out,
                                    std::size_t offset = 0) {
        ddl::grid_ranks<Element> result;
        result.size = ranks_;
        for (int rank = 0; rank < ranks_; ++rank) {
            const auto at = static_cast<std::size_t>(rank);
            result.windows[rank] = memory_[at].data();
            result.in[rank] = in[at].data() + offset;
            result.out[rank] = out[at].data() + offset;
        }
        return result;
    }

    /// The ranks that somebody missed, one entry for each block that did.
    template <class Body>
    std::vector<int> run(const Body& body, int blocks, ddl::timeout limit = ddl::timeout{60}, int absent = -1) {
        std::vector<int> missing(static_cast<std::size_t>(ranks_ * blocks), -1);
        std::deque<ddl::host_threads> together;
        std::vector<std::thread> threads;
        for (int block = 0; block < blocks; ++block)
            for (int rank = 0; rank < ranks_; ++rank) {
                if (rank == absent) continue;
                auto* const mine = &together.emplace_back(threads_of_a_block_);
                for (int thread = 0; thread < threads_of_a_block_; ++thread)
                    threads.emplace_back([&, rank, block, thread, mine] {
                        ddl::host_block space{rank, block, blocks, limit, *mine, static_cast<std::size_t>(thread)};
                        body(space);
                        if (const int missed = space.missing(); missed >= 0)
                            std::atomic_ref{missing[static_cast<std::size_t>(rank * blocks + block)]} = missed;
                    });
            }
        for (std::thread& thread : threads) thread.join();
        std::erase(missing, -1);
        return missing;
    }

private:
    int ranks_;
    int threads_of_a_block_ =
        ranks_ == 3 ? 3 : 1;  // so that all bodies run in blocks of several, and are quickly through
    std::vector<std::vector<std::uint64_t>> memory_;
};

/// Values of every rank, and what folding them in rank order gives: the sequential oracle.
template <class Element, class Make>
std::vector<std::vector<Element>> values_of_ranks(int ranks, std::size_t count, Make make) {
    std::vector<std::vector<Element>> all(static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank)
        for (std::size_t i = 0; i < count; ++i) all[static_cast<std::size_t>(rank)].push_back(make(rank, i));
    return all;
}
template <class Op, class Element>
std::vector<Element> folded(const std::vector<std::vector<Element>>& all, const Op& op) {
    using accumulator = ddl::accumulator_t<Op, Element>;
    std::vector<Element> result;
    for (std::size_t i = 0; i < all[0].size(); ++i) {
        accumulator sum = static_cast<accumulator>(all[0][i]);
        for (std::size_t rank = 1; rank < all.size(); ++rank) sum = op(sum, static_cast<accumulator>(all[rank][i]));
        result.push_back(static_cast<Element>(ddl::finish(op, sum, static_cast<int>(all.size()))));
    }
    return result;
}

/// Whether two vectors have the same bytes.
template <class Element>
bool same_bytes(const std::vector<Element>& left, const std::vector<Element>& right) {
    return left.size() == right.size() &&
           (left.empty() || std::memcmp(left.data(), right.data(), left.size() * sizeof(Element)) == 0);
}
