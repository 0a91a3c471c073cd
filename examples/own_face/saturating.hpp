// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/schedule/program.hpp>

#include <cstdint>

/// A colour of an image, an op on it: sums that stop at white; and a schedule: see ../own_schedule.cpp.
struct pixel {
    std::uint8_t red, green, blue;
};

struct saturating_sum {
    static constexpr bool commutative = true;
    constexpr pixel operator()(pixel a, pixel b) const {
        return {add(a.red, b.red), add(a.green, b.green), add(a.blue, b.blue)};
    }

private:
    static constexpr std::uint8_t add(int a, int b) { return static_cast<std::uint8_t>(a + b > 255 ? 255 : a + b); }
};

struct chain {
    static constexpr const char* name = "chain";
    static constexpr int chunks(int) { return 1; }
    static constexpr int rounds(int size) { return 2 * (size - 1); }
    static constexpr ddl::transfer_list<1> round(int rank, int size, int k) {
        const bool upwards = k < size - 1;
        const int from = upwards ? k : 2 * (size - 1) - k;
        const int to = upwards ? from + 1 : from - 1;
        if (rank == from) return {{{ddl::action::send, to, 0}}, 1};
        if (rank == to) return {{{upwards ? ddl::action::receive_reduce : ddl::action::receive, from, 0}}, 1};
        return {};
    }
};
