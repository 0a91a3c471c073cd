// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Random numbers that are the same on every machine, which those of `<random>`'s distributions are not.
/// Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014 (SplitMix64).
class generator {
public:
    explicit generator(std::uint64_t seed) : state_{seed} {}

    std::uint64_t operator()() {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
        return z ^ (z >> 31);
    }

    /// A number from `-bound` to `bound`.
    float within(float bound) { return bound * (static_cast<float>((*this)() >> 40) / 8388608.0F - 1.0F); }

    /// Puts the elements of `range` in a random order (Fisher and Yates).
    template <class Range>
    void shuffle(Range& range) {
        for (auto left = range.size(); left > 1; --left) {
            const auto chosen = (*this)() % left;
            const auto kept = range[left - 1];
            range[left - 1] = range[chosen];
            range[chosen] = kept;
        }
    }

private:
    std::uint64_t state_;
};
