// SPDX-License-Identifier: Apache-2.0
#include <boost/test/unit_test.hpp>

#include <tuple>

#include "drawn_calls.hpp"
#include "sweep.hpp"

namespace {
using every_place = std::tuple<places::threads, places::processes, places::messages<1>, places::messages<2>>;
}

BOOST_AUTO_TEST_CASE_TEMPLATE(calls_in_any_sequence, Place, every_place) {
    for (const int size : rank_counts<Place>())
        Place::run(size, [&](auto& ranks) {
            drawn_calls calling{ranks, static_cast<unsigned>(size), 100'000};
            calling.make(under_a_sanitizer ? 30 : 60);
        });
}
