// SPDX-License-Identifier: Apache-2.0
#include <ddl/element/half.hpp>
#include <ddl/op/fingerprint.hpp>
#include <ddl/op/maximum.hpp>
#include <ddl/op/sum.hpp>

#include <boost/test/unit_test.hpp>

#include <string>

using ddl::type_fingerprint;

struct sum {};  // the user's own
template <class... Types>
struct list {};

namespace {
template <class Type>
struct box {};
}  // namespace

static_assert(type_fingerprint<ddl::sum>() != type_fingerprint<ddl::maximum>(), "two ops are told apart");
static_assert(type_fingerprint<ddl::sum>() != type_fingerprint<::sum>(), "also when they share a name");
static_assert(type_fingerprint<float>() != type_fingerprint<double>(), "two elements are told apart");
static_assert(type_fingerprint<ddl::half>() != type_fingerprint<unsigned short>());
static_assert(type_fingerprint<box<box<float>>>() != type_fingerprint<box<float>>(), "and what they are made of");

// Written down, for each compiler must come to the same number: ranks may be built by different ones.
static_assert(type_fingerprint<ddl::sum>() == 0xfbd81052);
static_assert(type_fingerprint<float>() == 0xfc646a9d);
static_assert(type_fingerprint<ddl::commutative_op<ddl::commutative_op<ddl::sum>>>() == 0x1b43c102);
// to g++ the first is a list<long int, short int, long unsigned int, ...>
static_assert(type_fingerprint<list<long, short, unsigned long, unsigned, long long, char, unsigned char, int>>() ==
              0xf1bf2316);

static_assert(ddl::words_fingerprint("list<long unsigned int>") == ddl::words_fingerprint("list<unsigned long>"));
static_assert(ddl::words_fingerprint("short int]") == ddl::words_fingerprint("short]"));
static_assert(ddl::words_fingerprint("short int") == ddl::words_fingerprint("short"));
static_assert(ddl::words_fingerprint("print<uint>") != ddl::words_fingerprint("print<unsigned>"));
static_assert(ddl::words_fingerprint("<__int128 unsigned>") == ddl::words_fingerprint("<unsigned __int128>"));
static_assert(ddl::words_fingerprint("<A>") != ddl::words_fingerprint("<unsigned>"), "no letter stands for an integer");
static_assert(ddl::words_fingerprint("<D>") != ddl::words_fingerprint("<long>"));
static_assert(ddl::words_fingerprint("<\x01>") != ddl::words_fingerprint("<unsigned>"));
static_assert(type_fingerprint<list<long>>() != type_fingerprint<list<unsigned long>>());
static_assert(type_fingerprint<list<long>>() != type_fingerprint<list<long long>>());
static_assert(type_fingerprint<list<long>>() != type_fingerprint<list<long, long>>());
static_assert(type_fingerprint<list<int>>() != type_fingerprint<list<short>>());
static_assert(type_fingerprint<list<unsigned char>>() != type_fingerprint<list<char>>());
static_assert(type_fingerprint<list<signed char>>() != type_fingerprint<list<char>>());
static_assert(type_fingerprint<list<long double>>() != type_fingerprint<list<double>>());

BOOST_AUTO_TEST_CASE(the_spelling_ends_the_sentence) {
    const std::string sentence = ddl::spelling<ddl::sum>::sentence();
    BOOST_TEST(sentence.ends_with("Type = ddl::sum]"), sentence);
}
