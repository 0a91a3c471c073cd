// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/allreduce.hpp>
#include <ddl/element/elements.hpp>
#include <ddl/schedule/multi_ring.hpp>

#include <cstdint>

#include "choice.hpp"

// What is compiled in: for each transport, every schedule for every element and op.

inline constexpr std::tuple schedules{
    choice<ddl::tuned>{"tuned"},
    choice<ddl::direct>{"direct"},
    choice<ddl::ring>{"ring"},
    choice<ddl::recursive_doubling>{"recursive_doubling"},
    choice<ddl::recursive_halving>{"recursive_halving"},
    choice<ddl::tree>{"tree"},
    choice<ddl::multi_ring<2>>{"multi_ring"},
    choice<ddl::hierarchical<ddl::direct, ddl::ring>>{"hierarchical"},
};

inline constexpr std::tuple elements{
    choice<float>{"float"},
    choice<double>{"double"},
    choice<std::int32_t>{"int32"},
    choice<ddl::bfloat16>{"bfloat16"},
};

inline constexpr std::tuple ops{
    choice<ddl::sum>{"sum"},
    choice<ddl::maximum>{"max"},
};
