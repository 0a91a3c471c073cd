// SPDX-License-Identifier: Apache-2.0
// Compiled as programs are that may fuse a product and a sum.
// on x86-64: -O3 -mavx2 -mfma -mf16c
#include <ddl/element/complex.hpp>
#include <ddl/element/elements.hpp>
#include <ddl/kernel/fold.hpp>
#include <ddl/op/ops.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstring>
#include <random>
#include <vector>

namespace kernel = ddl::kernel;

namespace {

/// Compilers fuse either product with the sum, to other bits.
struct squares {
    template <class Type>
    constexpr Type operator()(const Type& a, const Type& b) const {
        return static_cast<Type>(a * a + b * b);
    }
};
struct halved_squares : squares {
    template <class Type>
    constexpr Type finish(const Type& all, int ranks) const {
        return static_cast<Type>(all * all - static_cast<Type>(static_cast<float>(ranks)) * all);
    }
};

template <class Element>
Element drawn(std::mt19937& random) {
    const auto number = [&] { return static_cast<float>(static_cast<int>(random())) / 2e9f; };
    if constexpr (requires { Element{1.0f, 1.0f}.imag(); }) return Element{number(), number()};
    else return static_cast<Element>(number());
}

template <class Element>
bool same(const Element* a, const Element* b, std::size_t count) {
    return std::memcmp(static_cast<const void*>(a), b, count * sizeof(Element)) == 0;
}

/// Vectors of some ranks, each somewhere in a cache line.
template <class Element>
struct vectors_of_ranks {
    std::vector<std::vector<Element>> rooms;
    std::vector<std::size_t> firsts;
    vectors_of_ranks(int ranks, std::size_t count) {
        std::mt19937 random(static_cast<unsigned>(count) * 8 + static_cast<unsigned>(ranks));
        for (int rank = 0; rank < ranks; ++rank) {
            firsts.push_back(random() % 16);
            rooms.emplace_back(count + 16);
            for (Element& each : rooms.back()) each = drawn<Element>(random);
        }
    }
    Element* at(int rank) {
        const auto which = static_cast<std::size_t>(rank);
        return rooms[which].data() + firsts[which];
    }
};

const std::size_t counts[] = {1, 2, 3, 6, 15, 16, 31, 64, 100, 127, 128, 191, 400, 511, 513, 1100, 5000};

template <class Element, class Op>
void folds_alike_in_every_place(Op op) {
    for (const int ranks : {2, 3, 5})
        for (const std::size_t count : counts) {
            vectors_of_ranks<Element> first{ranks, count};
            std::vector<Element> apart(count + 16);
            Element* const out = apart.data() + count % 16;
            kernel::fold([&](int s) { return first.at(s); }, ranks, out, count, op, ranks);
            for (int place = 0; place < ranks; ++place) {
                vectors_of_ranks<Element> again{ranks, count};
                kernel::fold([&](int s) { return again.at(s); }, ranks, again.at(place), count, op, ranks);
                BOOST_TEST(same(again.at(place), out, count),
                           ddl::element_name<Element>() << ' ' << ddl::op_name<Op>() << ' ' << count << " elements of "
                                                        << ranks << " ranks in place of rank " << place);
            }
            vectors_of_ranks<Element> all{ranks, count};
            kernel::fold<Element>([&](int s) { return all.at(s); }, ranks, [&](int t) { return all.at(t); }, ranks,
                                  count, op, ranks);
            for (int place = 0; place < ranks; ++place)
                BOOST_TEST(same(all.at(place), out, count), ddl::element_name<Element>()
                                                                << ' ' << ddl::op_name<Op>() << ' ' << count
                                                                << " elements of " << ranks << " ranks to all");
        }
}

template <class Element, class Op>
void combines_alike_on_either_side(Op op) {
    using kernel::side;
    for (const std::size_t count : counts) {
        vectors_of_ranks<Element> left{2, count}, right{2, count}, apart{2, count};
        std::vector<Element> out(count), last(count);
        kernel::combine<side::left>(left.at(0), left.at(1), count, op);
        kernel::combine<side::right>(right.at(1), right.at(0), count, op);
        kernel::combine<side::left>(apart.at(0), apart.at(1), out.data(), count, op);
        BOOST_TEST(same(left.at(1), out.data(), count), count << " elements, in place of the right ones");
        BOOST_TEST(same(right.at(0), out.data(), count), count << " elements, in place of the left ones");
        kernel::finish(out.data(), last.data(), count, op, 2);
        kernel::finish(out.data(), out.data(), count, op, 2);
        BOOST_TEST(same(last.data(), out.data(), count), count << " elements, finished in place");
    }
}

bool is_compiled_for_this_machine() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return true;
    BOOST_TEST_MESSAGE("skipped: this machine does not fuse");
    return false;
#else
    return true;
#endif
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_may_be_fused_is_fused_alike_wherever_results_go) {
    if (!is_compiled_for_this_machine()) return;
    folds_alike_in_every_place<std::complex<float>>(ddl::product{});
    folds_alike_in_every_place<std::complex<double>>(ddl::product{});
    folds_alike_in_every_place<float>(squares{});
    folds_alike_in_every_place<float>(halved_squares{});
    folds_alike_in_every_place<ddl::half>(squares{});
    folds_alike_in_every_place<ddl::bfloat16>(halved_squares{});
}

BOOST_AUTO_TEST_CASE(and_on_whichever_side_it_arrives) {
    if (!is_compiled_for_this_machine()) return;
    combines_alike_on_either_side<std::complex<float>>(ddl::product{});
    combines_alike_on_either_side<float>(squares{});
    combines_alike_on_either_side<double>(halved_squares{});
}
