// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

/// The oracle of all narrow formats: every number of the format, made from its definition in `double`, and a search.
class nearest {
public:
    /// `codes` is how many magnitudes are numbers; one more, which is infinity's place, follows where that rounds.
    nearest(int exponent_bits, int fraction_bits, unsigned codes) {
        const int bias = (1 << (exponent_bits - 1)) - 1;
        for (unsigned code = 0; code < codes; ++code) {
            const int exponent = static_cast<int>(code >> fraction_bits);
            const unsigned fraction = code & ((1u << fraction_bits) - 1u);
            const unsigned significand = exponent == 0 ? fraction : fraction + (1u << fraction_bits);
            values_.push_back(std::ldexp(significand, std::max(exponent, 1) - bias - fraction_bits));
        }
    }

    unsigned codes() const { return static_cast<unsigned>(values_.size()); }
    double value(unsigned code) const { return values_[code]; }

    /// The code nearest to `magnitude`, of two the even one, and the last one for all that lies above.
    unsigned code(double magnitude) const {
        const auto above = std::lower_bound(values_.begin(), values_.end(), magnitude);
        if (above == values_.end()) return codes() - 1;
        const unsigned upper = static_cast<unsigned>(above - values_.begin());
        if (*above == magnitude) return upper;
        const double to_upper = values_[upper] - magnitude;
        const double to_lower = magnitude - values_[upper - 1];
        if (to_upper == to_lower) return upper % 2 == 0 ? upper : upper - 1;
        return to_upper < to_lower ? upper : upper - 1;
    }

    /// Where rounding goes wrong if it does: each number, each middle of two, the floats beside these, some between.
    std::vector<float> questions() const {
        std::vector<float> all = {0.0f, 3.4e38f, 1.4e-45f, 1.0e-38f, 5.0e-40f};
        std::mt19937 random{7};
        for (unsigned code = 0; code + 1 < codes(); ++code) {
            const float number = static_cast<float>(value(code));
            const float middle = static_cast<float>((value(code) + value(code + 1)) / 2);
            for (const float question : {number, middle}) {
                all.push_back(question);
                all.push_back(std::nextafter(question, INFINITY));
                if (question > 0) all.push_back(std::nextafter(question, 0.0f));
            }
            std::uniform_real_distribution<double> between{value(code), value(code + 1)};
            for (int draw = 0; draw < 4; ++draw) all.push_back(static_cast<float>(between(random)));
        }
        return all;
    }

private:
    std::vector<double> values_;
};
