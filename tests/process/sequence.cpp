// SPDX-License-Identifier: Apache-2.0
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>

#include "../collective/drawn_calls.hpp"
#include "team.hpp"

namespace data = boost::unit_test::data;

BOOST_DATA_TEST_CASE(calls_in_any_sequence, data::make({1, 2, 3, 4, 5, 8}), size) {
    run_team(size, [size](ddl::shared_memory& node) {
        drawn_calls calling{node, static_cast<unsigned>(size), 100'000};
        calling.make(60);
    });
}
