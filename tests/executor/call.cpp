// SPDX-License-Identifier: Apache-2.0
#include <ddl/executor/call.hpp>
#include <ddl/executor/direct_limits.hpp>
#include <ddl/op/ops.hpp>
#include <ddl/schedule/ring.hpp>
#include <ddl/schedule/tree.hpp>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <ostream>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace data = boost::unit_test::data;
using ddl::call;
using ddl::collective;
using ddl::describe;
using ddl::errc;
using ddl::mismatch;

namespace {

struct reading {
    float value;
    int sensor;
};
struct op_with_a_name_that_is_longer_than_there_is_room {
    static constexpr const char* name = "op_with_a_name_that_is_longer_than_there_is_room";
    float operator()(float a, float) const { return a; }
};

const call ours = describe<ddl::sum, float, ddl::ring>(collective::allreduce, 100, 0);

struct difference {
    call theirs;
    const char* words;
};
std::ostream& operator<<(std::ostream& out, const difference& d) { return out << d.words; }

call refused() {
    call result;
    result.what = collective::refused;
    return result;
}
const call rooted = describe<ddl::sum, float, ddl::ring>(collective::reduce, 100, 0);
const call grouped = describe<ddl::sum, float, ddl::ring>(collective::allreduce_n, 100, 1234);

const call limited = [] {
    call result = ours;
    result.limits = ddl::direct_limits{.one_shot = 1}.fingerprint();
    return result;
}();

struct ring_of_extents : ddl::ring {
    static std::uint32_t fingerprint() { return extents; }
    static inline std::uint32_t extents = 0;
};
call of_extents(std::uint32_t extents) {
    ring_of_extents::extents = extents;
    return describe<ddl::sum, float, ring_of_extents>(collective::allreduce, 100, 0);
}

const difference differences[] = {
    {limited,
     "allreduce, rank 3, round 0: rank 1 was compiled with other limits; include the same tuning header in every "
     "program of the job"},
    {describe<ddl::sum, float, ddl::ring>(collective::allreduce, 99, 0),
     "allreduce, rank 3, round 0: rank 1 brings 99 elements, this rank 100; pass equal counts on every rank"},
    {describe<ddl::sum, double, ddl::ring>(collective::allreduce, 100, 0),
     "allreduce, rank 3, round 0: rank 1 brings elements of type float64 (8 bytes), this rank float32 (4 bytes); "
     "pass equal types on every rank"},
    {[] {
         call of_that_size = describe<ddl::sum, float, ddl::ring>(collective::allreduce, 100, 0);
         ++of_that_size.element;
         return of_that_size;
     }(),
     "allreduce, rank 3, round 0: rank 1 brings another float32 of 4 bytes; pass equal types on every rank, built by one "
     "compiler"},
    {describe<ddl::maximum, float, ddl::ring>(collective::allreduce, 100, 0),
     "allreduce, rank 3, round 0: rank 1 reduces with maximum, this rank with sum; pass equal ops on every rank"},
    {[] {
         call of_that_name = describe<ddl::sum, float, ddl::ring>(collective::allreduce, 100, 0);
         ++of_that_name.op;
         return of_that_name;
     }(),
     "allreduce, rank 3, round 0: rank 1 reduces with another op named sum; pass equal ops on every rank, built by one "
     "compiler"},
    {describe<ddl::sum, float, ddl::tree>(collective::allreduce, 100, 0),
     "allreduce, rank 3, round 0: rank 1 calls with another schedule; name the same schedule on every rank"},
    {describe<ddl::no_op, float, ddl::ring>(collective::broadcast, 100, 0),
     "allreduce, rank 3, round 0: rank 1 calls broadcast, this rank allreduce; "
     "call the same collectives in the same order on every rank"},
    {refused(), "allreduce, rank 3, round 0: rank 1 has called with invalid arguments; see its own error"},
};

/// A communicator of which only the announcement of a failure is asked.
struct announcer {
    std::string announced;
    errc code{};
    int rank() const { return 2; }
    void fail(errc why, const char* words) {
        announced = words;
        code = why;
    }
};

}  // namespace

static_assert(std::is_trivially_copyable_v<ddl::call_record>, "it travels in slots and messages");
static_assert(ddl::checked::compares && !ddl::unchecked::compares);

BOOST_AUTO_TEST_CASE(equal_calls_agree) {
    BOOST_TEST(ours.agrees(ours));
    BOOST_TEST(ours.agrees(describe<ddl::sum, float, ddl::ring>(collective::allreduce, 100, 0)));
    BOOST_TEST((describe<ddl::sum, int, ddl::ring>(collective::allreduce, 1, 0)
                    .agrees(describe<ddl::sum, signed, ddl::ring>(collective::allreduce, 1, 0))));
}

BOOST_AUTO_TEST_CASE(what_a_schedule_is_told_at_run_time_is_a_part_of_the_call) {
    BOOST_TEST(of_extents(1).agrees(of_extents(1)));
    BOOST_TEST(!of_extents(1).agrees(of_extents(2)));
    BOOST_TEST(ddl::fingerprint(of_extents(1)) != ddl::fingerprint(of_extents(2)));
    const ddl::error found = mismatch(of_extents(1), 3, of_extents(2), 1);
    BOOST_TEST(found.what() ==
               std::string("allreduce, rank 3, round 0: rank 1 was given other extents; pass the same -mode in "
                           "the options of every rank"));
}

BOOST_DATA_TEST_CASE(one_difference_is_a_mismatch_in_words_that_name_it, data::make(differences), each) {
    BOOST_TEST(!ours.agrees(each.theirs));
    BOOST_TEST(!each.theirs.agrees(ours));
    const ddl::error found = mismatch(ours, 3, each.theirs, 1);
    BOOST_TEST(found.what() == std::string(each.words));
    BOOST_TEST((found.code() == errc::mismatch));
    BOOST_TEST(found.operation() == std::string("allreduce"));
    BOOST_TEST(found.rank() == 3);
    BOOST_TEST(found.round() == 0);
}

BOOST_AUTO_TEST_CASE(another_root) {
    const ddl::error found = mismatch(rooted, 0, describe<ddl::sum, float, ddl::ring>(collective::reduce, 100, 2), 1);
    BOOST_TEST(
        found.what() ==
        std::string("reduce, rank 0, round 0: rank 1 names root 2, this rank 0; pass equal roots on every rank"));
}

BOOST_AUTO_TEST_CASE(tensors_of_other_sizes) {
    const ddl::error found =
        mismatch(grouped, 0, describe<ddl::sum, float, ddl::ring>(collective::allreduce_n, 100, 1235), 1);
    BOOST_TEST(found.what() == std::string("allreduce_n, rank 0, round 0: rank 1 brings tensors of other sizes; "
                                           "pass tensors of equal sizes in equal order on every rank"));
}

BOOST_AUTO_TEST_CASE(what_the_ranks_call_is_named_before_what_they_bring) {
    const call other = describe<ddl::maximum, double, ddl::tree>(collective::reduce, 99, 4);
    const std::string words = mismatch(ours, 3, other, 1).what();
    BOOST_TEST(words.find("calls reduce, this rank allreduce") != std::string::npos, words);
}

static_assert(ddl::element_fingerprint<long>() ==
                  ddl::element_fingerprint<std::conditional_t<sizeof(long) == 8, long long, int>>(),
              "they are spelled unlike");
static_assert(ddl::element_fingerprint<int>() != ddl::element_fingerprint<unsigned>());
static_assert(ddl::element_fingerprint<bool>() != ddl::element_fingerprint<unsigned char>());

BOOST_AUTO_TEST_CASE(a_struct_of_another_size_is_another_element) {
    const call other = describe<ddl::no_op, reading, ddl::ring>(collective::broadcast, 5, 0);
    const call mine = describe<ddl::no_op, float, ddl::ring>(collective::broadcast, 5, 0);
    const std::string words = mismatch(mine, 0, other, 1).what();
    BOOST_TEST(words.find("type struct (8 bytes), this rank float32 (4 bytes)") != std::string::npos, words);
}

BOOST_AUTO_TEST_CASE(a_description_holds_what_the_call_was_made_with) {
    BOOST_TEST(ours.count == 100u);
    BOOST_TEST(ours.element_bytes == 4u);
    BOOST_TEST(ours.names->op == std::string("sum"));
    BOOST_TEST(ours.names->element == std::string("float32"));
    const call moves = describe<ddl::no_op, float, ddl::ring>(collective::broadcast, 100, 7);
    BOOST_TEST(moves.root == 7);
    BOOST_TEST(moves.op == 0u, "what only moves data has no op");
    BOOST_TEST(moves.names->op == std::string());
}

BOOST_AUTO_TEST_CASE(what_others_are_told_holds_the_same) {
    const ddl::call_record told = ours;
    BOOST_TEST(told.agrees(ours));
    BOOST_TEST(ddl::fingerprint(told) == ddl::fingerprint(ours));
    BOOST_TEST(told.names.op == std::string("sum"));
    BOOST_TEST(told.names.element == std::string("float32"));
}

BOOST_AUTO_TEST_CASE(a_long_name_is_cut_and_still_told_apart) {
    const call mine =
        describe<op_with_a_name_that_is_longer_than_there_is_room, float, ddl::ring>(collective::allreduce, 100, 0);
    BOOST_TEST(mine.names->op == std::string("op_with_a_name_that_is_"));
    BOOST_TEST(!mine.agrees(ours));
}

BOOST_AUTO_TEST_CASE(every_collective_has_its_name) {
    BOOST_TEST(to_string(collective::allreduce) == std::string("allreduce"));
    BOOST_TEST(to_string(collective::all_to_all) == std::string("all_to_all"));
    BOOST_TEST(to_string(collective::allreduce_n) == std::string("allreduce_n"));
    BOOST_TEST(to_string(collective::refused) == std::string("refused"));
    BOOST_TEST(to_string(collective::timed) == std::string("timed allreduce"));
}

BOOST_AUTO_TEST_CASE(a_call_left_half_done_is_announced) {
    announcer ranks;
    try {
        ddl::half_done guard{ranks};
        guard.begin({"allreduce", 0});
        throw std::runtime_error("the user's op");
    } catch (const std::runtime_error&) {}
    BOOST_TEST(ranks.announced == "allreduce, rank 2: an exception ended the call half done");
}

BOOST_AUTO_TEST_CASE(an_error_of_ours_is_announced_in_its_words) {
    const auto ended_by = [](errc code) {
        announcer ranks;
        BOOST_CHECK_THROW(ddl::half_done{ranks}.during(
                              {"allreduce", 0}, [&] { throw ddl::error(code, "memfd", 2, -1, "no file is left"); }),
                          ddl::error);
        BOOST_TEST(ranks.announced == "memfd, rank 2: no file is left");
        return ranks.code;
    };
    for (const errc code : {errc::system, errc::out_of_memory, errc::timeout}) BOOST_TEST((ended_by(code) == code));
    BOOST_TEST((ended_by(errc::mismatch) == errc::broken), "after a mismatch all can go on");
}

BOOST_AUTO_TEST_CASE(so_is_one_of_the_system_while_calls_are_compared_and_no_other) {
    const auto ended_by = [](errc code) {
        announcer ranks;
        ddl::half_done guard{ranks};
        guard.begin({"allreduce", 0});
        const auto compare = [&] { throw ddl::error(code, "send", 2, -1, "it refuses"); };
        BOOST_CHECK_THROW(guard.comparing(compare), ddl::error);
        return ranks.announced;
    };
    BOOST_TEST(ended_by(errc::system) == "send, rank 2: it refuses");
    BOOST_TEST(ended_by(errc::mismatch) == "");
}

BOOST_AUTO_TEST_CASE(what_is_no_error_of_ours_is_announced_in_general) {
    announcer ranks;
    BOOST_CHECK_THROW(ddl::half_done{ranks}.during({"allreduce", 0}, [] { throw std::bad_alloc{}; }), std::bad_alloc);
    BOOST_TEST(ranks.announced == "allreduce, rank 2: an exception ended the call half done");
    BOOST_TEST((ranks.code == errc::broken));
}

BOOST_AUTO_TEST_CASE(a_call_that_has_not_begun_or_has_ended_is_not) {
    announcer ranks;
    { ddl::half_done never_begun{ranks}; }
    {
        ddl::half_done guard{ranks};
        guard.begin({"allreduce", 0});
        guard.end();
    }
    BOOST_TEST(ranks.announced == "");
}
