// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/over_grid.hpp>
#include <ddl/transport/cuda_peer.cuh>

#include "random_values.cuh"

/// `ranks` virtual ranks on the first GPU, each with an input and an output of `count` elements.
template <class Element>
class problem {
public:
    problem(int ranks, std::size_t count, std::uint64_t seed)
        : team_{std::vector<int>(static_cast<std::size_t>(ranks), 0), "benchmark"}, count_{count} {
        places.size = ranks;
        how.faults = team_.faults();
        how.nanoseconds = 5'000'000'000;
        for (int rank = 0; rank < ranks; ++rank) {
            how.ranks[rank] = static_cast<unsigned char>(rank);
            places.windows[rank] = team_.windows()[rank];
            for (auto* const place : {&inputs_, &outputs_}) place->emplace_back(count * sizeof(Element));
            places.in[rank] = inputs_.back().as<Element>();
            places.out[rank] = outputs_.back().as<Element>();
        }
        refill(seed);
    }

    /// Gives all ranks other inputs.
    void refill(std::uint64_t seed) {
        seed_ = seed;
        for (int rank = 0; rank < places.size; ++rank)
            fill_with_random_values(inputs_[static_cast<std::size_t>(rank)].template as<Element>(), count_, seed, rank);
        require_success(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    }

    /// No output is a sum any more.
    void wipe() {
        for (int rank = 0; rank < places.size; ++rank)
            require_success(cudaMemset(places.out[rank], 0xff, bytes()), "cudaMemset");
        // for the collective's stream need not wait for the default one
        require_success(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    }

    /// Throws unless `enqueue()`, once, makes every rank's output the sum.
    template <class Enqueue>
    void check(const std::string& what, const Enqueue& enqueue) {
        wipe();
        enqueue();
        require_sums(what);
    }

    template <class Body>
    int most_blocks() const {
        return team_.most_blocks(reinterpret_cast<const void*>(&ddl::run_on_device<Body>));
    }
    std::size_t bytes() const noexcept { return count_ * sizeof(Element); }

    /// Enqueues one collective of all ranks.
    template <class Body>
    void launch(const Body& body, ddl::grid_shape shape, cudaStream_t stream) {
        Body argument = body;
        void* arguments[] = {&argument, &how};
        require_success(
            cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(&ddl::run_on_device<Body>),
                                        dim3(static_cast<unsigned>(shape.blocks), static_cast<unsigned>(places.size)),
                                        dim3(static_cast<unsigned>(shape.threads)), arguments, 0, stream),
            "cudaLaunchCooperativeKernel");
    }

    /// Throws unless every rank's output is the sum, and no block has missed another.
    void require_sums(const std::string& what) {
        for (int rank = 0; rank < places.size; ++rank)
            ::require_sums(places.out[rank], count_, seed_, places.size, what);
        for (int rank = 0; rank < places.size; ++rank)
            if (team_.faults()[rank] != 0) throw std::runtime_error(what + ": a block waited in vain");
    }

    ddl::grid_ranks<Element> places;
    ddl::device_launch how;

private:
    ddl::cuda_team team_;
    std::size_t count_;
    std::uint64_t seed_ = 0;
    std::vector<device_memory> inputs_;
    std::vector<device_memory> outputs_;
};
