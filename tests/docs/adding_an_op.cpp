// SPDX-License-Identifier: Apache-2.0
// The snippets of docs/adding_an_op.md that are not in examples/own_op.cpp.
// prints: geometric mean 2.82843, norm 2, mean of points 1.5 3
#include <ddl/allreduce.hpp>
#include <ddl/transport/threads.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

//! [finish]
/// The geometric mean: the product of all ranks, then its root.
struct geometric_mean {
    static constexpr bool commutative = true;
    static constexpr const char* name = "geometric_mean";
    template <class Element>
    using accumulator = double;  // what travels and is combined; a product outgrows float soon

    constexpr double operator()(double left, double right) const { return left * right; }
    template <class Value>  // std::pow is not constexpr: only a template may be so where it calls that
    constexpr Value finish(Value product, int ranks) const {
        return std::pow(product, 1.0 / ranks);
    }
};
static_assert(ddl::combines<geometric_mean, float> && ddl::finishes<geometric_mean, float>);
//! [finish]

//! [element]
struct point {
    float x;
    float y;
    friend constexpr point operator+(point a, point b) { return {a.x + b.x, a.y + b.y}; }
    friend constexpr point operator/(point a, double n) {
        return {static_cast<float>(a.x / n), static_cast<float>(a.y / n)};
    }
};
template <>
struct ddl::naming<point> {
    static constexpr const char* name = "point";  // for errors and ddl::explain
};
static_assert(ddl::element<point> && ddl::combines<ddl::sum, point> && ddl::combines<ddl::average, point>);
//! [element]

int main() {
    ddl::threads::run(4, [](ddl::threads& team) {
        std::vector<float> powers(3, static_cast<float>(1 << team.rank()));
        ddl::allreduce(team, powers, geometric_mean{});

        //! [commutative]
        std::vector<float> lengths(3, 1.0F);
        const auto norm = ddl::commutative([](float left, float right) { return std::hypot(left, right); });
        ddl::allreduce<ddl::ring>(team, lengths, norm);  // without ddl::commutative this would not compile
        //! [commutative]

        const auto rank = static_cast<float>(team.rank());
        std::vector<point> points(3, point{rank, 2 * rank});
        ddl::allreduce(team, points, ddl::average{});
        if (team.rank() == 0)
            std::printf("geometric mean %g, norm %g, mean of points %g %g\n", static_cast<double>(powers[0]),
                        static_cast<double>(lengths[0]), static_cast<double>(points[0].x),
                        static_cast<double>(points[0].y));
    });
}
