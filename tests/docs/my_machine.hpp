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
//          64    0.2502  0.5793  0.5831
//         128    0.2497  0.5709  0.6237
//         256    0.2701  0.5954   0.647
//         512     0.331  0.6183  0.5405
//        1024    0.5013  0.6758  0.6554
//        2048    0.8735  0.8297  0.7972
//        4096     1.144   1.078  0.8864
//        8192     1.952    1.63   1.095
//       16384     3.546   2.656   1.619
//       32768     4.384   4.368   2.543
//       65536     7.956   5.729   3.223
//      131072     14.89   10.62   5.305
// all-gather and broadcast of so many bytes from a rank, medians in us:
//       bytes  staged  mapped
//          64  0.2459   0.485
//         128  0.3027  0.4905
//         256  0.3197  0.5071
//         512  0.3636  0.5096
//        1024  0.4907  0.6022
//        2048  0.7191  0.7276
//        4096  0.9559   1.011
//        8192   1.634   1.607
//       16384   3.046   2.734
//       32768   5.084   4.451
//       65536   7.929   6.574
//      131072   13.82   11.55
//      262144      29    21.3
//      524288   60.39   42.86
template <>
inline constexpr ddl::direct_limits ddl::limits_of<ddl::threads>{
    .one_shot = 1024,
    .mapped = 2048,
    .mapped_move = 8192,
    .segment = 65536,
};

// allreduce, medians in us:
//       bytes  one_shot  staged  one_shot of mapped  mapped
//          64    0.2234  0.4758               0.236  0.5574
//         128     0.247  0.4951              0.2545  0.5048
//         256    0.2679  0.5149              0.2854  0.5303
//         512    0.3332  0.5187               0.346  0.5115
//        1024    0.5154  0.6565               0.541  0.5526
//        2048    0.8843  0.7281              0.9041  0.7291
//        4096     1.159  0.9961               1.161  0.8289
//        8192     1.998   1.567               2.011  0.9938
//       16384     3.457   2.699               3.454   1.526
//       32768     4.304   4.336               4.267   2.568
//       65536     8.192   5.824               8.001    3.14
//      131072     15.14   10.54               14.99   5.375
// all-gather and broadcast of so many bytes from a rank, medians in us:
//       bytes  staged  mapped
//          64  0.3009  0.4453
//         128  0.3195  0.4542
//         256  0.3558  0.4708
//         512  0.3562  0.4821
//        1024  0.4999  0.5684
//        2048  0.7531  0.6972
//        4096  0.9616  0.9823
//        8192   1.718   1.542
//       16384   2.864   2.693
//       32768   4.854   4.351
//       65536   7.978    6.54
//      131072   13.63   11.43
//      262144    28.8   21.34
//      524288   60.95   42.75
// allreduce, staged in segments of so many bytes, medians in us:
//       bytes  16384  32768  65536  131072
//      262144  29.06  23.29  20.03   19.96
//     1048576  116.5  100.4  80.89      82
//     4194304  503.3  387.2  383.8   387.8
//    16777216   2126   1691   1662    1674
//! [limits]
template <>
inline constexpr ddl::direct_limits ddl::limits_of<ddl::shared_memory>{
    .one_shot = 1024,
    .mapped = 2048,
    .mapped_move = 4096,
    .segment = 65536,
};
//! [limits]
