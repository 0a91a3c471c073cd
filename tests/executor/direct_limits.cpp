// SPDX-License-Identifier: Apache-2.0
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <string>
#include <vector>

// A machine's own: what a header of benchmarks/tune says, here of a transport that only this program has.
struct tuned_threads : ddl::threads {
    explicit tuned_threads(ddl::threads&& from) : ddl::threads{std::move(from)} {}
};
template <>
inline constexpr ddl::direct_limits ddl::limits_of<tuned_threads>{.one_shot = 100'000, .mapped = 50'000};

namespace {

template <class Transport>
std::string explained(Transport& team, std::size_t count) {
    std::vector<float> values(count);
    return ddl::explain(ddl::allreduce_init(team, values)).c_str();
}
bool says(const std::string& line, const char* words) { return line.find(words) != std::string::npos; }

}  // namespace

static_assert(ddl::direct_limits{}.fingerprint() == ddl::limits_of<ddl::threads>.fingerprint());
static_assert(ddl::direct_limits{.one_shot = 1}.fingerprint() != ddl::direct_limits{.mapped = 1}.fingerprint());
static_assert(ddl::direct_limits{.one_shot = 1}.fingerprint() != ddl::direct_limits{}.fingerprint());
static_assert(ddl::direct_limits{}.for_processor(true, false).fingerprint() !=
              ddl::direct_limits{}.for_processor(false, false).fingerprint());
static_assert(ddl::direct_limits{}.for_processor(true, false).fingerprint() !=
              ddl::direct_limits{}.for_processor(true, true).fingerprint());
static_assert(ddl::direct_limits{.one_shot = 1, .mapped = 2, .spread = 3}.for_processor(true, false).spread == 3);
static_assert(ddl::direct_limits{.areas = 8}.for_processor(true, true).areas == 8);

BOOST_AUTO_TEST_CASE(limits_that_a_program_specialises_take_effect) {
    std::string known;
    std::string tuned;
    std::string longer;
    ddl::threads::run(1, [&](ddl::threads& team) {
        known = explained(team, 10'000);
        tuned_threads own{team.split(0, 0)};
        tuned = explained(own, 10'000);
        longer = explained(own, 20'000);
    });
    BOOST_TEST(says(known, "fused and mapped"), known);
    BOOST_TEST(says(tuned, "one-shot: so few bytes"), tuned);
    BOOST_TEST(says(longer, "fused and mapped"), longer);
}

BOOST_AUTO_TEST_CASE(ranks_with_other_limits_do_not_run_together) {
    std::atomic<int> refused = 0;
    ddl::threads::run(2, [&](ddl::threads& team) {
        tuned_threads own{team.split(0, team.rank())};
        std::vector<float> values(10'000, 1.0F);
        try {
            if (team.rank() == 0) ddl::allreduce(own, values);
            else ddl::allreduce(static_cast<ddl::threads&>(own), values);
        } catch (const ddl::error& failure) {
            if (failure.code() == ddl::errc::mismatch && says(failure.what(), "was compiled with other limits"))
                ++refused;
        }
        ddl::allreduce(own, values);  // nothing was written, and the communicator is as good as before
        if (values[9999] != 2.0F) refused = -1;
    });
    BOOST_TEST(refused == 2);
}
