// SPDX-License-Identifier: Apache-2.0
#include <ddl/transport/staging_shape.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <cstdlib>
#include <string>

#include "../collective/require.hpp"

namespace data = boost::unit_test::data;

namespace {

constexpr const char* chunk = "DL_COMM_PIPELINE_CHUNK_KB";
constexpr const char* streams = "DL_COMM_NUM_CUDA_STREAMS";

/// Sets a variable, or takes it away.
void say(const char* variable, const char* words) {
    if (words == nullptr) unsetenv(variable);
    else setenv(variable, words, 1);
}

ddl::staging_shape said(const char* kilobytes, const char* number) {
    say(chunk, kilobytes);
    say(streams, number);
    return ddl::staging_shape::from_environment();
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_environment_says_how_vectors_are_staged) {
    const auto is = [](ddl::staging_shape shape, std::size_t chunk_bytes, int number) {
        BOOST_TEST(shape.chunk_bytes == chunk_bytes);
        BOOST_TEST(shape.streams == number);
    };
    is(said(nullptr, nullptr), 0, 4);
    is(said("", ""), 0, 4);
    is(said("64", "9"), 65'536, 9);
    is(said("1000000", "1"), 1'024'000'000, 1);
}

BOOST_AUTO_TEST_CASE(chunks_are_an_eighth_of_what_passes_unless_somebody_says_so) {
    constexpr std::size_t mebi = std::size_t{1} << 20;
    constexpr ddl::staging_shape unsaid;
    static_assert(unsaid.chunk_of(0) == mebi);
    static_assert(unsaid.chunk_of(8 * mebi) == mebi);
    static_assert(unsaid.chunk_of(20 * mebi) == 5 * mebi / 2);
    static_assert(unsaid.chunk_of(20 * mebi + 70'001) == 5 * mebi / 2, "whole steps");
    static_assert(unsaid.chunk_of(1024 * mebi) == 4 * mebi);
    for (const std::size_t bytes : {std::size_t{0}, mebi, 100 * mebi})
        BOOST_TEST(said("64", nullptr).chunk_of(bytes) == 65'536U);
}

BOOST_DATA_TEST_CASE(what_is_no_number_of_it_is_refused,
                     data::make({chunk, streams}) *
                         data::make({"0", "-1", "1000001", "64k", "x", "99999999999999999999"}),
                     variable, words) {
    say(variable, words);
    require_error(ddl::errc::invalid_argument,
                  std::string{variable} + " is \"" + words + "\"; it takes a number from 1 to",
                  [] { ddl::staging_shape::from_environment(); });
    say(variable, nullptr);
}
