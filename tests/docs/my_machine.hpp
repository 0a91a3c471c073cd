// SPDX-License-Identifier: Apache-2.0
// Limits and schedules of ddl for one machine: Intel(R) Xeon(R) Processor,
// 2 cores, caches L1d 48 KiB, L2 2048 KiB, L3 491520 KiB; host vm.
// Measured 2026-11-21, 2 ranks, g++ 12.2.0, -O3 -march=native, by:
// python3 benchmarks/tune
//
// Include it in every source file of every program of a job; before or after ddl's own headers does not matter.
// Ranks of which some go without it get an error. See docs/tuning.md.
#pragma once

#include <ddl/executor/direct_limits.hpp>
#include <ddl/executor/tuning.hpp>

namespace ddl {
class threads;
class shared_memory;
}  // namespace ddl

// allreduce, medians in us:
//       bytes  one_shot  staged  mapped
//          64    0.2442  0.5396  0.4694
//         128    0.2485   0.548  0.4581
//         256    0.2573  0.5515  0.4668
//         512    0.3282  0.5686  0.3809
//        1024    0.5501  0.6538  0.4625
//        2048    0.8941  0.7957  0.6888
//        4096     1.138   1.064  0.7916
//        8192     1.956   1.582  0.9975
//       16384      3.52   2.626   1.517
//       32768     4.342   4.348   2.459
//       65536     7.862   5.673   3.153
//      131072     14.77   10.48   5.278
// all-gather, medians in us:
//       bytes  staged  mapped
//          64  0.2229   0.209
//         128  0.2546  0.4679
//         256   0.271  0.4779
//         512  0.3625  0.4995
//        1024   0.413  0.5304
//        2048  0.5702  0.6149
//        4096  0.8766  0.7529
//        8192    1.21   1.133
//       16384   2.044   1.932
//       32768   3.544   3.589
//       65536   4.579    5.16
//      131072   8.764   7.589
//      262144   17.17   14.64
//      524288   33.35   28.17
//     1048576   71.25   60.31
template <>
inline constexpr ddl::direct_limits ddl::limits_of<ddl::threads>{
    .one_shot = 1024,
    .mapped = 1024,
    .mapped_move = 4096,
    .segment = 65536,
};

// allreduce, medians in us:
//       bytes  one_shot  staged  one_shot of mapped  mapped
//          64    0.2352   0.445              0.2537  0.5658
//         128    0.2622  0.4592              0.2771  0.4712
//         256    0.2729  0.4706              0.2821  0.4967
//         512    0.3148  0.4763              0.3296  0.4756
//        1024    0.5471  0.5896              0.5199  0.5093
//        2048    0.8981  0.7181              0.8824  0.7458
//        4096     1.153    1.02               1.153  0.8392
//        8192     1.965   1.559               1.949   1.078
//       16384      3.39   2.664               3.385    1.56
//       32768     4.191   4.325               4.186   2.516
//       65536     7.848   5.769               7.869   3.149
//      131072     15.09   10.67               15.11   5.351
// all-gather, medians in us:
//       bytes  staged  mapped
//          64  0.2332  0.2348
//         128  0.2653  0.5299
//         256  0.3675  0.5381
//         512  0.3962  0.5516
//        1024  0.4443  0.5777
//        2048  0.5859  0.6577
//        4096  0.9126  0.8109
//        8192   1.217   1.226
//       16384   2.066   1.934
//       32768   3.115   3.381
//       65536   4.674   5.096
//      131072   8.817   7.684
//      262144   16.81   14.73
//      524288   34.06   29.33
//     1048576   76.95   61.58
// allreduce, staged in segments of so many bytes, medians in us:
//       bytes  16384  32768  65536  131072
//      262144   29.5  23.69  20.76   20.58
//     1048576  118.3  101.5  83.22   84.12
//     4194304  512.3  393.1  394.5   396.7
//    16777216   2110   1639   1626    1637
//! [limits]
template <>
inline constexpr ddl::direct_limits ddl::limits_of<ddl::shared_memory>{
    .one_shot = 1024,
    .mapped = 1024,
    .mapped_move = 131072,
    .segment = 65536,
};
//! [limits]
