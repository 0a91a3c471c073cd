// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/element/elements.hpp>

#include <cstdint>
#include <stdexcept>
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
__global__ void compare_sums(const Element* got, std::size_t count, std::uint64_t seed, int ranks, double precision,
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

/// Gives `rank` its input.
template <class Element>
void fill_with_random_values(Element* to, std::size_t count, std::uint64_t seed, int rank) {
    fill<<<1024, 256>>>(to, count, seed, rank);
    require_success(cudaGetLastError(), "fill");
}

/// Throws unless `got` is the sum of the inputs of so many ranks. Waits for the GPU before it looks.
template <class Element>
void require_sums(const Element* got, std::size_t count, std::uint64_t seed, int ranks, const std::string& what) {
    constexpr double precision = sizeof(Element) == 4 ? 1.2e-7 : sizeof(Element) == 2 ? 0.00391 : 0.0626;
    constexpr double least = sizeof(Element) == 1 ? 0.001 : 0.0;  // half the distance of the smallest numbers
    const device_memory wrong{sizeof(unsigned long long)};
    require_success(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    unsigned long long found = 0;
    require_success(cudaMemset(wrong.as<void>(), 0, sizeof found), "cudaMemset");
    compare_sums<<<1024, 256>>>(got, count, seed, ranks, precision, least, wrong.as<unsigned long long>());
    require_success(cudaGetLastError(), "compare_sums");
    require_success(cudaMemcpy(&found, wrong.as<void>(), sizeof found, cudaMemcpyDeviceToHost), "cudaMemcpy");
    if (found != 0) throw std::runtime_error(what + ": " + std::to_string(found) + " elements are wrong");
}
