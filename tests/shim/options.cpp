// SPDX-License-Identifier: Apache-2.0
#include <ddl/shim/options.hpp>

#include <boost/test/unit_test.hpp>

#include <ostream>
#include <string>

namespace {

struct reading {
    bool understood;
    ddl::shim::options given;
    std::string why;
    bool refuses(const char* words) const { return !understood && why.find(words) != std::string::npos; }
};

reading read(const char* words, int ranks) {
    reading result{};
    ddl::text why;
    result.understood = ddl::shim::options_reader{ranks, why}.read(words, result.given);
    result.why = why.c_str();
    return result;
}

}  // namespace

BOOST_AUTO_TEST_CASE(no_options_leave_everything_to_ddl) {
    for (const char* const words : {"", "  ", "\t"}) {
        const reading result = read(words, 6);
        BOOST_TEST(result.understood);
        BOOST_TEST(std::string{ddl::shim::schedule_of_mode(result.given, false)} == "tuned");
    }
}

BOOST_AUTO_TEST_CASE(a_mode_is_a_letter_and_extents_innermost_first) {
    const reading result = read("-mode b:4x2x3", 24);
    BOOST_TEST(result.understood, result.why);
    BOOST_TEST(result.given.mode == 'b');
    BOOST_TEST(result.given.levels == 3);
    BOOST_TEST(result.given.extents[0] == 4);
    BOOST_TEST(result.given.extents[2] == 3);
    BOOST_TEST(result.given.extents[3] == 1);
    BOOST_TEST(result.given.depth() == 3);
}

BOOST_AUTO_TEST_CASE(what_launchers_write_is_understood) {
    BOOST_TEST(read("-mode p:4x1x1x1 ", 4).understood);  // ends in a blank
    BOOST_TEST(read("-mode r:4", 4).understood);
    BOOST_TEST(read("-mode b:4x1", 4).understood);
    BOOST_TEST(read("-mode 4x8x2", 64).understood);
    BOOST_TEST(read("-mode p", 5).understood);
    const reading all = read("-mode p:6x4x1x1 -dump_iter 100 -dev_sync 1 -rebind_iter 50 -dbg_level 2", 24);
    BOOST_TEST(all.understood, all.why);
    BOOST_TEST(all.given.dump_iter == 100);
    BOOST_TEST(all.given.dev_sync == 1);
    BOOST_TEST(all.given.rebind_iter == 50);
    BOOST_TEST(all.given.dbg_level == 2);
}

BOOST_AUTO_TEST_CASE(the_product_of_the_extents_is_the_number_of_ranks) {
    const reading result = read("-mode b:4x2", 6);
    BOOST_TEST(result.why.starts_with("invalid dim size=8, but there are 6 ranks"), result.why);
    BOOST_TEST(result.why.find("4x2") != std::string::npos, result.why);
    BOOST_TEST(read("-mode b:2147483647x2147483647x2147483647x2", 6).refuses("invalid dim size="));
}

BOOST_AUTO_TEST_CASE(of_two_modes_the_last_one_counts) {
    const reading result = read("-mode p:2x2x1x1 -mode r:4", 4);
    BOOST_TEST(result.understood, result.why);
    BOOST_TEST(result.given.mode == 'r');
    BOOST_TEST(result.given.levels == 1);
    BOOST_TEST(result.given.depth() == 1);
    BOOST_TEST(read("-mode b:2x2 -mode r", 4).given.depth() == 0);
    BOOST_TEST(read("-mode b:2x2 -mode r", 4).given.levels == 0);
    for (const char* const words : {"-mode b:7x11 -mode p", "-mode b:7x11 -mode b:2x2"})  // the first one does not
        BOOST_TEST(read(words, 4).understood, read(words, 4).why);
    BOOST_TEST(read("-mode b:2x2 -dump_iter 2 -mode b:3x2", 4).refuses("invalid dim size=6"));
    BOOST_TEST(read("-mode b:2x2 -mode b:3x2", 4).refuses("that number: b:3x2"));
}

BOOST_AUTO_TEST_CASE(what_makes_no_sense_is_named) {
    BOOST_TEST(read("-mode z:4", 4).refuses("one letter of bnrmcp, not: z:4"));
    BOOST_TEST(read("-mode b4", 4).refuses("a colon"));
    for (const char* const extents :
         {"-mode b:", "-mode b:0x4", "-mode b:4x", "-mode b:-4", "-mode b:4y1", "-mode b:2x2x1x1x1"})
        BOOST_TEST(read(extents, 4).refuses("one to four numbers"), extents);
    BOOST_TEST(read("-mode", 4).refuses("no value: -mode"));
    for (const char* const words : {"-fast 1", "-fast", "-dev_sync 1 -fast"})
        BOOST_TEST(read(words, 4).refuses("no option of DDL is called: -fast"), read(words, 4).why);
    BOOST_TEST(read("-dev_sync 3", 4).refuses("a number from 0 to 2"));
    BOOST_TEST(read("-dump_iter many", 4).refuses("-dump_iter takes a number"));
    BOOST_TEST(read("-dump_iter -1", 4).why == "-dump_iter takes a number from 0 to 2147483647, not: -1");
}

BOOST_AUTO_TEST_CASE(letters_choose_schedules) {
    const auto schedule = [](const char* words, bool on_nodes) {
        return std::string{ddl::shim::schedule_of_mode(read(words, 4).given, on_nodes)};
    };
    BOOST_TEST(schedule("-mode b:2x2", false) == "enhanced");
    BOOST_TEST(schedule("-mode n:2x2", true) == "enhanced_on_nodes");
    BOOST_TEST(schedule("-mode b:4", false) == "tuned");  // one level: nothing to nest
    BOOST_TEST(schedule("-mode r:4", false) == "rings");
    BOOST_TEST(schedule("-mode c:4", false) == "halvings");
    BOOST_TEST(schedule("-mode m:2x2", true) == "halvings_on_nodes");
    BOOST_TEST(schedule("-mode p:2x2", true) == "tuned");
}
