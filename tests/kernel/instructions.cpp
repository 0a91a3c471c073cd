// SPDX-License-Identifier: Apache-2.0
// Nothing of the abstraction is left in the machine code: this program counts, under valgrind, the instructions of our loops
// and of the same loops written by hand. Valgrind knows no AVX-512, so the AVX2 loops are what runs.
// not under: address undefined thread
#define BOOST_TEST_NO_MAIN
#include <ddl/element/elements.hpp>
#include <ddl/kernel/combine.hpp>
#include <ddl/kernel/fold.hpp>
#include <ddl/op/ops.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

#if defined(__x86_64__)

namespace {

constexpr std::size_t repeats = 200, block = 64, tile = 1024;
volatile std::size_t asked = 20'000;  // what no compiler may know

[[gnu::target("avx2"), gnu::noinline]] void add(const float* __restrict arrived, float* __restrict ours,
                                                std::size_t elements) {
    const std::size_t whole = elements / block * block;
    for (std::size_t i = 0; i < whole; i += block)
        for (std::size_t j = 0; j < block; ++j) ours[i + j] = ours[i + j] + arrived[i + j];
    for (std::size_t i = whole; i < elements; ++i) ours[i] = ours[i] + arrived[i];
}

[[gnu::target("avx2"), gnu::noinline]] void add_into(const float* __restrict a, const float* __restrict b,
                                                     float* __restrict out, std::size_t elements) {
    const std::size_t whole = elements / block * block;
    for (std::size_t i = 0; i < whole; i += block)
        for (std::size_t j = 0; j < block; ++j) out[i + j] = a[i + j] + b[i + j];
    for (std::size_t i = whole; i < elements; ++i) out[i] = a[i] + b[i];
}

[[gnu::target("avx2"), gnu::noinline]] void add_into_both(float* __restrict a, float* __restrict b,
                                                          std::size_t elements) {
    const std::size_t whole = elements / block * block;
    for (std::size_t i = 0; i < whole; i += block)
        for (std::size_t j = 0; j < block; ++j) a[i + j] = b[i + j] = a[i + j] + b[i + j];
    for (std::size_t i = whole; i < elements; ++i) a[i] = b[i] = a[i] + b[i];
}

void fold_by_hand(const float* a, const float* b, float* out, std::size_t count) {
    if (ddl::kernel::makes_in_place()) return add_into(a, b, out, count);
    float sums[tile];
    for (std::size_t at = 0; at < count; at += tile) {
        const std::size_t here = count - at < tile ? count - at : tile;
        add_into(a + at, b + at, sums, here);
        std::memcpy(out + at, sums, here * sizeof(float));
    }
}

template <class Narrow>
void fold_narrow(std::size_t count) {
    static std::vector<Narrow> a(count, Narrow(1.0f)), b(count, Narrow(2.0f)), out(count, Narrow(0.0f));
    ddl::kernel::fold([&](int s) { return s == 0 ? a.data() : b.data(); }, 2, out.data(), count, ddl::sum{}, 2);
}

template <class Op = ddl::sum, class Element>
void fold_to_both(Element* a, Element* b, std::size_t count) {
    ddl::kernel::fold<Element>([&](int s) { return s == 0 ? a : b; }, 2, [&](int t) { return t == 0 ? a : b; }, 2,
                               count, Op{}, 2);
}

template <class Narrow, class Op = ddl::sum>
void fold_narrow_to_both(std::size_t count) {
    static std::vector<Narrow> a(count, Narrow(0.0f)), b(count, Narrow(0.0f));
    fold_to_both<Op>(a.data(), b.data(), count);
}

/// Runs the loop of that name; nothing but the start of the program if there is none. Behind a `+` results lie half a page further.
int run(std::string_view name) {
    const std::size_t count = asked;
    const std::size_t past = name.starts_with('+') ? 512 : 0;
    if (past > 0) name.remove_prefix(1);
    std::vector<float> a(count, 1.0f), b(count, 2.0f), room(count + past);
    float* const out = room.data() + past;
    const std::array<const float*, 2> sources = {a.data(), b.data()};
    for (std::size_t i = 0; i < repeats; ++i) {
        if (name == "combine") ddl::kernel::combine<ddl::kernel::side::right>(a.data(), b.data(), count, ddl::sum{});
        if (name == "combine by hand") add(a.data(), b.data(), count);
        if (name == "fold")
            ddl::kernel::fold([&](int s) { return sources[static_cast<std::size_t>(s)]; }, 2, out, count, ddl::sum{},
                              2);
        if (name == "fold by hand") fold_by_hand(a.data(), b.data(), out, count);
        if (name == "fold to both") fold_to_both(a.data(), b.data(), count);
        if (name == "fold to both by hand") add_into_both(a.data(), b.data(), count);
        if (name == "bfloat16 fold to both") fold_narrow_to_both<ddl::bfloat16>(count);
        if (name == "half fold to both") fold_narrow_to_both<ddl::half>(count);
        if (name == "bfloat16 maximum to both") fold_narrow_to_both<ddl::bfloat16, ddl::maximum>(count);
        if (name == "float8 minimum to both") fold_narrow_to_both<ddl::float8_e4m3, ddl::minimum>(count);
        if (name == "bfloat16 fold") fold_narrow<ddl::bfloat16>(count);
        if (name == "half fold") fold_narrow<ddl::half>(count);
    }
    return b[0] + out[0] > 0.0f ? 0 : 1;
}

/// How many instructions this program takes with that argument, 0 if that cannot be found out.
double instructions(const std::string& name) {
    char self[4096] = {};
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) return 0;
    const std::string command =
        "valgrind --tool=callgrind --callgrind-out-file=/dev/null '" + std::string{self} + "' 'loop:" + name + "' 2>&1";
    std::FILE* const answer = popen(command.c_str(), "r");
    if (answer == nullptr) return 0;
    double found = 0;
    char line[4096];
    while (std::fgets(line, sizeof line, answer) != nullptr)
        if (const char* const at = std::strstr(line, "Collected : ")) found = std::atof(at + 12);
    return pclose(answer) == 0 ? found : 0;
}

void compare(const std::string& loop) {
    const double start = instructions("none");
    if (start == 0) {
        BOOST_TEST_MESSAGE("skipped: valgrind is missing, or cannot run this program");
        return;
    }
    // ours copies backwards where results lie just above what it has on the stack, which depends on the environment
    const double ours = std::min(instructions(loop), instructions('+' + loop)) - start,
                 by_hand = instructions(loop + " by hand") - start;
    BOOST_TEST_MESSAGE(loop << ": " << ours << " instructions, by hand " << by_hand);
    BOOST_TEST(by_hand > 0.0);
    BOOST_TEST(ours < 1.02 * by_hand, ours << " instructions, " << by_hand << " by hand");
}

/// One element at a time takes 15 instructions an element and more.
void expect_vectors(const std::string& loop) {
    const double start = instructions("none");
    if (start == 0) {
        BOOST_TEST_MESSAGE("skipped: valgrind is missing, or cannot run this program");
        return;
    }
    const double each = (instructions(loop) - start) / static_cast<double>(repeats * asked);
    BOOST_TEST_MESSAGE(loop << ": " << each << " instructions an element");
    BOOST_TEST((0.0 < each && each < 6.0), each << " instructions an element");
}

/// How many functions with such a name this program has; -1 if that cannot be found out.
int functions_named(const std::string& name) {
    char self[4096] = {};
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) return -1;
    std::FILE* const answer = popen(("nm -C '" + std::string{self} + "' 2>&1").c_str(), "r");
    if (answer == nullptr) return -1;
    int found = 0;
    std::string line(1 << 16, '\0');
    while (std::fgets(line.data(), static_cast<int>(line.size()), answer) != nullptr)
        found += std::strstr(line.c_str(), name.c_str()) != nullptr ? 1 : 0;
    return pclose(answer) == 0 ? found : -1;
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_converts_vectors_is_part_of_the_loops_that_use_it) {
    if (functions_named("main") < 1) {
        BOOST_TEST_MESSAGE("skipped: nm is missing, or cannot read this program");
        return;
    }
    for (const char* const name : {"::set_words(", "::subnormal(", "half_vectors<8ul>::", "half_vectors<16ul>::"})
        BOOST_TEST(functions_named(name) == 0, name << " is called for each vector");
}

BOOST_AUTO_TEST_CASE(combine_takes_the_instructions_of_a_loop_written_by_hand) { compare("combine"); }
BOOST_AUTO_TEST_CASE(a_fold_of_two_takes_those_of_loops_written_by_hand) { compare("fold"); }
BOOST_AUTO_TEST_CASE(so_does_one_to_the_places_of_both) { compare("fold to both"); }
BOOST_AUTO_TEST_CASE(narrow_elements_are_widened_and_rounded_on_vectors) {
    expect_vectors("bfloat16 fold");
    expect_vectors("half fold");
    expect_vectors("bfloat16 fold to both");
    expect_vectors("half fold to both");
}
BOOST_AUTO_TEST_CASE(narrow_elements_are_compared_on_vectors_where_both_places_get_the_result) {
    expect_vectors("bfloat16 maximum to both");
    expect_vectors("float8 minimum to both");
}

#else
static int run(std::string_view) { return 0; }
BOOST_AUTO_TEST_CASE(nothing_is_counted_on_other_machines) {}
#endif

int main(int argc, char** argv) {
    const std::string_view wanted = argc > 1 ? argv[1] : "";
    if (wanted.substr(0, 5) == "loop:") return run(wanted.substr(5));
    return boost::unit_test::unit_test_main([] { return true; }, argc, argv);
}
