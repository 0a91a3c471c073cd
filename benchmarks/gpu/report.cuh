// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/patience.hpp>

#include <cstdio>
#include <string>

/// The rows of a run, and the time that it may take. A part whose estimate is beyond what is left is left out, and says so.
class report {
public:
    explicit report(double seconds) : end_{ddl::now() + seconds} {}

    template <class... Values>
    void row(const char* format, Values... values) {
        char line[768];
        std::snprintf(line, sizeof line, format, values...);
        std::fprintf(stderr, "%s\n", line);
        std::printf("%s\n", line);
        std::fflush(stdout);  // at once, lest a failure takes it away
    }

    /// Whether there is time for a part that moves so many bytes at so many a second.
    bool has_time_for(const std::string& what, double bytes, double rate) {
        const double seconds = bytes / rate;
        if (ddl::now() + seconds <= end_) return true;
        row("%s: left out, for its bytes take %.1f s or more, which are not left", what.c_str(), seconds);
        return false;
    }

private:
    double end_;
};
