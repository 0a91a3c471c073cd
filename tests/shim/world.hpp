// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/shim/ddl.h>

#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <string>
#include <vector>

// The ranks of a test: those that the launcher started, over whatever transport that calls for.

/// All ranks, open as long as the program's tests run.
struct world_of_test {
    world_of_test() {
        if (ddl_open_environment(&ranks) != DDL_OK) throw std::runtime_error(ddl_last_error());
        rank = ddl_get_rank(ranks);
        size = ddl_get_size(ranks);
    }
    ~world_of_test() { ddl_close(ranks); }

    static world_of_test& get() {
        static world_of_test opened;
        return opened;
    }

    ddl_communicator* ranks = nullptr;
    int rank = -1;
    int size = 0;
};

inline ddl_communicator* world() { return world_of_test::get().ranks; }
inline int rank() { return world_of_test::get().rank; }
inline int size() { return world_of_test::get().size; }

/// The call succeeds; if not, the test says why.
#define REQUIRE_OK(...)                                                                  \
    do {                                                                                 \
        const ddl_status status_ = (__VA_ARGS__);                                        \
        BOOST_TEST_REQUIRE(status_ == DDL_OK, #__VA_ARGS__ << ": " << ddl_last_error()); \
    } while (false)

/// The call fails with this status and these words, and the ranks can go on.
inline void expect_failure(ddl_status expected, const char* words, ddl_status status) {
    BOOST_TEST(status == expected, ddl_name_status(status)
                                       << " instead of " << ddl_name_status(expected) << ": " << ddl_last_error());
    const std::string heard = ddl_last_error();
    BOOST_TEST(heard.find(words) != std::string::npos, "'" << words << "' is not in: " << heard);
}

/// What rank `from` brings at place `i`: small whole numbers, which every element holds.
inline int brought(int from, std::size_t i) {
    return static_cast<int>((static_cast<std::size_t>(from) * 3 + i) % 5) + 1;
}

template <class Element>
std::vector<Element> values_of(int from, std::size_t count, std::size_t first = 0) {
    std::vector<Element> values(count);
    for (std::size_t i = 0; i < count; ++i)
        values[i] = static_cast<Element>(static_cast<float>(brought(from, first + i)));
    return values;
}

/// The sum over all ranks at place `i`.
inline int summed(std::size_t i) {
    int total = 0;
    for (int from = 0; from < size(); ++from) total += brought(from, i);
    return total;
}
