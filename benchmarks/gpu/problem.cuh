// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/executor/over_grid.hpp>
#include <ddl/transport/cuda_peer.cuh>

#include <cmath>
#include <string>

#include "timing.cuh"

/// A value from -1 to 1 for element `i` of `rank`: a hash, which any thread can ask for.
__host__ __device__ inline float random_value(std::uint64_t seed, int rank, std::size_t i) {
    std::uint64_t x =
        seed + (static_cast<std::uint64_t>(rank) + 1) * 0x9e37'79b9'7f4a'7c15ULL + i * 0xbf58'476d'1ce4'e5b9ULL;
    x = (x ^ (x >> 30)) * 0xbf58'476d'1ce4'e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d0'49bb'1331'11ebULL;
    return static_cast<float>(static_cast<std::int64_t>(x >> 40)) / 8388608.0F - 1.0F;
}

template <class Element>
__global__ void fill(Element* to, std::size_t count, std::uint64_t seed, int rank) {
    for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count;
         i += std::size_t{gridDim.x} * blockDim.x)
        to[i] = static_cast<Element>(random_value(seed, rank, i));
}

/// Counts the elements that are further from the sum in double precision than a rounding of `float` for each operand, whose
/// sums stay below the number of ranks, and one of `Element`: `precision` of the value, `least` near zero.
template <class Element>
__global__ void compare(const Element* got, std::size_t count, std::uint64_t seed, int ranks, double precision,
                        double least, unsigned long long* wrong) {
    for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count;
         i += std::size_t{gridDim.x} * blockDim.x) {
        double exact = 0;
        for (int rank = 0; rank < ranks; ++rank)
            exact += static_cast<double>(static_cast<float>(static_cast<Element>(random_value(seed, rank, i))));
        const double distance = fabs(static_cast<double>(static_cast<float>(got[i])) - exact);
        // a NaN is no distance at all
        if (!(distance <= precision * fabs(exact) + ranks * ranks * 6e-8 + least)) atomicAdd(wrong, 1ULL);
    }
}

/// `ranks` virtual ranks on the first GPU, each with an input and an output of `count` elements.
template <class Element>
class problem {
public:
    problem(int ranks, std::size_t count, std::uint64_t seed)
        : team_{std::vector<int>(static_cast<std::size_t>(ranks), 0), "benchmark"}, count_{count}, seed_{seed},
          wrong_{sizeof(unsigned long long)} {
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
        for (int rank = 0; rank < places.size; ++rank) {
            fill<<<1024, 256>>>(inputs_[static_cast<std::size_t>(rank)].template as<Element>(), count_, seed, rank);
            require_success(cudaGetLastError(), "fill");
        }
        require_success(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    }

    /// Throws unless `enqueue()`, once, makes every rank's output the sum, whatever was there before.
    template <class Enqueue>
    void check(const std::string& what, const Enqueue& enqueue) {
        for (int rank = 0; rank < places.size; ++rank)
            require_success(cudaMemset(places.out[rank], 0xff, bytes()), "cudaMemset");
        // for the collective's stream need not wait for the default one
        require_success(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        enqueue();
        require_sums(what);
    }

    int most_blocks() const noexcept { return team_.most_blocks(); }
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
        constexpr double precision = sizeof(Element) == 4 ? 1.2e-7 : sizeof(Element) == 2 ? 0.00391 : 0.0626;
        constexpr double least = sizeof(Element) == 1 ? 0.001 : 0.0;  // half the distance of the smallest numbers
        require_success(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        unsigned long long wrong = 0;
        require_success(cudaMemset(wrong_.as<void>(), 0, sizeof wrong), "cudaMemset");
        for (int rank = 0; rank < places.size; ++rank) {
            compare<<<1024, 256>>>(places.out[rank], count_, seed_, places.size, precision, least,
                                   wrong_.as<unsigned long long>());
            require_success(cudaGetLastError(), "compare");
        }
        require_success(cudaMemcpy(&wrong, wrong_.as<void>(), sizeof wrong, cudaMemcpyDeviceToHost), "cudaMemcpy");
        for (int rank = 0; rank < places.size; ++rank)
            if (team_.faults()[rank] != 0) throw std::runtime_error(what + ": a block waited in vain");
        if (wrong != 0) throw std::runtime_error(what + ": " + std::to_string(wrong) + " elements are wrong");
    }

    ddl::grid_ranks<Element> places;
    ddl::device_launch how;

private:
    ddl::cuda_team team_;
    std::size_t count_;
    std::uint64_t seed_;
    device_memory wrong_;
    std::vector<device_memory> inputs_;
    std::vector<device_memory> outputs_;
};
