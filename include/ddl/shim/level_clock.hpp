// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/patience.hpp>

namespace ddl::shim {

/// How long a rank was in the rounds of each level of its schedule, in seconds, waits for peers included.
class level_clock {
public:
    static constexpr int levels = 4;

    /// From now on the rank is in this level; -1: in none.
    void enter(int level) noexcept {
        const double here = now();
        if (level_ >= 0) seconds_[level_] += here - since_;
        level_ = level;
        since_ = here;
    }
    int level() const noexcept { return level_; }
    double seconds(int level) const noexcept { return seconds_[level]; }

private:
    double seconds_[levels] = {};
    double since_ = 0;
    int level_ = -1;
};

}  // namespace ddl::shim
