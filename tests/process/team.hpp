// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/buffer.hpp>
#include <ddl/op/ops.hpp>
#include <ddl/transport/shared_memory.hpp>

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "brought.hpp"
#include "children.hpp"

// Processes that run collectives over shared memory, what each rank brings to them, and what must come out.

/// One process a rank, which all run `body(node)`; fails the case for each that does not return.
template <class Body>
void run_team(int size, Body body, double limit = 60) {
    children ranks(240);
    const std::string job = fresh_job();
    for (int rank = 0; rank < size; ++rank)
        ranks.start([&, rank] {
            ddl::shared_memory node{job, rank, size, ddl::timeout{limit}};
            body(node);
        });
    const std::vector<outcome> results = ranks.finish();
    for (std::size_t rank = 0; rank < results.size(); ++rank)
        BOOST_TEST(results[rank].how == outcome::returned,
                   "of " << size << " ranks, rank " << rank << " " << results[rank]);
}

/// Where a buffer lies: in the process alone, where peers can map it, or on some ranks the one and on some the other.
enum class memory { own, mapped, mixed };

/// `count` elements in memory of a kind, `offset` elements behind the start of what was allocated.
template <class Element>
class room {
public:
    room(ddl::shared_memory& node, memory kind, std::size_t count, std::size_t offset = 0)
        : count_{count}, offset_{offset}, mapped_{node, is_mapped(node, kind) ? count + offset : 0},
          own_(is_mapped(node, kind) ? 0 : count + offset) {}
    std::span<Element> all() { return {(own_.empty() ? mapped_.data() : own_.data()) + offset_, count_}; }

private:
    static bool is_mapped(const ddl::shared_memory& node, memory kind) {
        return kind == memory::mapped || (kind == memory::mixed && node.rank() % 2 == 0);
    }
    std::size_t count_;
    std::size_t offset_;
    ddl::buffer<Element> mapped_;
    std::vector<Element> own_;
};

/// Fills `place` with what `rank` brings from place `first` on.
template <class Element>
void fill(std::span<Element> place, int rank, std::size_t first = 0) {
    for (std::size_t i = 0; i < place.size(); ++i) place[i] = brought<Element>(rank, first + i);
}

template <class Element>
std::vector<Element> values_of(int rank, std::size_t count, std::size_t first = 0) {
    std::vector<Element> values(count);
    fill(std::span{values}, rank, first);
    return values;
}

inline void fail_at(const char* what, std::size_t count, std::size_t i) {
    throw std::runtime_error(std::string{what} + " of " + std::to_string(count) + " elements is wrong at " +
                             std::to_string(i));
}

/// `got` is, from place `first` on, the fold of what all `size` ranks brought, each known by `who(rank)`. Exact, but for
/// floating sums: they are within the error of any order of additions.
template <class Op, class Element, class Who>
void expect_fold(const char* what, std::span<const Element> got, int size, Op op, Who who, std::size_t first = 0) {
    using wide = std::conditional_t<std::is_integral_v<Element> || std::is_same_v<Element, line>, Element, long double>;
    constexpr bool rounds =
        std::is_same_v<wide, long double> && (std::is_same_v<Op, ddl::sum> || std::is_same_v<Op, ddl::average>);
    for (std::size_t i = 0; i < got.size(); ++i) {
        wide exact = static_cast<wide>(brought<Element>(who(0), first + i));
        [[maybe_unused]] long double magnitude = 0;
        if constexpr (rounds) magnitude = std::abs(exact);
        for (int rank = 1; rank < size; ++rank) {
            const wide next = static_cast<wide>(brought<Element>(who(rank), first + i));
            exact = op(exact, next);
            if constexpr (rounds) magnitude += std::abs(next);
        }
        exact = static_cast<wide>(ddl::finish(op, exact, size));
        if constexpr (rounds) {
            const long double ulp = std::is_same_v<Element, ddl::half>          ? 1.0L / 1024
                                    : std::is_same_v<Element, ddl::bfloat16>    ? 1.0L / 128
                                    : std::is_same_v<Element, ddl::float8_e5m2> ? 1.0L / 4
                                                                                : std::numeric_limits<float>::epsilon();
            if (!(std::abs(static_cast<wide>(got[i]) - exact) <= ulp * size * magnitude)) fail_at(what, got.size(), i);
        } else {
            if (!(static_cast<wide>(got[i]) == exact)) fail_at(what, got.size(), i);
        }
    }
}
template <class Op, class Element>
void expect_fold(const char* what, std::span<Element> got, int size, Op op, std::size_t first = 0) {
    expect_fold(
        what, std::span<const Element>{got}, size, op, [](int rank) { return rank; }, first);
}

/// `got` is what `rank` brought from place `first` on.
template <class Element>
void expect_values(const char* what, std::span<Element> got, int rank, std::size_t first = 0) {
    for (std::size_t i = 0; i < got.size(); ++i)
        if (!(got[i] == brought<Element>(rank, first + i))) fail_at(what, got.size(), i);
}

/// All ranks hold the same bits.
template <class Element>
void expect_same_bits(ddl::shared_memory& node, std::span<Element> got) {
    std::uint64_t hash = 14'695'981'039'346'656'037U;
    for (const std::byte each : std::as_bytes(got))
        hash = (hash ^ static_cast<std::uint64_t>(each)) * 1'099'511'628'211U;
    for (const std::uint64_t theirs : node.exchange(hash, {"compare"})) EXPECT(theirs == hash);
}

/// The call throws an error of this kind, with these words in it.
template <class Call>
void expect_error(ddl::errc code, const char* words, Call call) {
    try {
        call();
    } catch (const ddl::error& failure) {
        if (failure.code() == code && std::strstr(failure.what(), words) != nullptr) return;
        throw std::runtime_error(std::string{"expected '"} + words + "', got: " + failure.what());
    }
    throw std::runtime_error(std::string{"expected '"} + words + "', and nothing was thrown");
}
