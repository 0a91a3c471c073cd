// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>

namespace ddl {

/// How ranks are grouped, innermost level first: `shape{4, 3}` is 3 nodes of 4 ranks, `shape{12}` or `12` a flat dozen.
///
/// Ranks of a group are consecutive. Groups may be uneven: `shape::ragged({4}, 11)` has a last group of 3, and
/// `shape::listed(firsts, groups)` any sizes, read from a table that the caller keeps alive. A value; copies are cheap.
class shape {
public:
    static constexpr int max_levels = 8;

    constexpr shape(int size) noexcept : size_{size}, extents_{size > 0 ? size : 1}, levels_{1} {}

    constexpr shape(std::initializer_list<int> extents) noexcept : size_{1}, extents_{}, levels_{0} {
        for (const int extent : extents) {
            extents_[levels_++] = extent;
            size_ *= extent;
        }
    }

    /// `size` ranks in groups of the given extents, of which the last group of each level may stay incomplete.
    static constexpr shape ragged(std::initializer_list<int> extents, int size) noexcept {
        shape result{size};
        result.levels_ = 0;
        int covered = 1;
        for (const int extent : extents) {
            result.extents_[result.levels_++] = extent;
            covered *= extent;
        }
        if (covered < size) result.extents_[result.levels_++] = (size + covered - 1) / covered;
        return result;
    }

    /// Two levels of `groups` groups; group `g` holds ranks `firsts[g]` to `firsts[g + 1] - 1`.
    static constexpr shape listed(const int* firsts, int groups) noexcept {
        shape result{firsts[groups]};
        result.levels_ = 2;
        result.extents_[0] = 0;
        for (int g = 0; g < groups; ++g)
            if (firsts[g + 1] - firsts[g] > result.extents_[0]) result.extents_[0] = firsts[g + 1] - firsts[g];
        result.extents_[1] = groups;
        result.firsts_ = firsts;
        return result;
    }

    constexpr int size() const noexcept { return size_; }
    /// Schedules that do not look at the grouping take the number of ranks.
    constexpr operator int() const noexcept { return size_; }
    constexpr int levels() const noexcept { return levels_; }
    constexpr int extent(int level) const noexcept { return extents_[level]; }

    /// Groups of the innermost level.
    constexpr int groups() const noexcept {
        return firsts_ != nullptr ? extents_[1] : (size_ + extents_[0] - 1) / extents_[0];
    }
    /// Ranks of the largest group.
    constexpr int largest_group() const noexcept { return extents_[0] < size_ ? extents_[0] : size_; }
    constexpr int first(int group) const noexcept { return firsts_ != nullptr ? firsts_[group] : group * extents_[0]; }
    constexpr int group_size(int group) const noexcept {
        if (firsts_ != nullptr) return firsts_[group + 1] - firsts_[group];
        const int left = size_ - group * extents_[0];
        return left < extents_[0] ? left : extents_[0];
    }
    constexpr int group_of(int rank) const noexcept {
        if (firsts_ == nullptr) return rank / extents_[0];
        int low = 0;
        int high = extents_[1];
        while (high - low > 1) {
            const int middle = (low + high) / 2;
            (firsts_[middle] <= rank ? low : high) = middle;
        }
        return low;
    }

    /// The groups as ranks of the next level.
    constexpr shape outer() const noexcept {
        shape result{groups()};
        if (levels_ <= 2 || firsts_ != nullptr) return result;
        result.levels_ = levels_ - 1;
        for (int level = 1; level < levels_; ++level) result.extents_[level - 1] = extents_[level];
        return result;
    }

    /// The same ranks in at least `levels` levels: a flat shape is cut into groups of about the `levels`-th root of it.
    constexpr shape with_levels(int levels) const noexcept {
        if (levels_ >= levels || firsts_ != nullptr) return *this;
        shape result{size_};
        result.levels_ = levels;
        int root = 1;
        while (power(root, levels) < size_) ++root;
        for (int level = 0; level < levels; ++level) result.extents_[level] = root;
        return result;
    }

private:
    static constexpr long long power(int base, int exponent) noexcept {
        long long result = 1;
        for (; exponent > 0; --exponent) result *= base;
        return result;
    }

    int size_;
    int extents_[max_levels];
    int levels_;
    const int* firsts_ = nullptr;
};

}  // namespace ddl
