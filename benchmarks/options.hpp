// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>

#include "policies.hpp"
#include "settings.hpp"

inline constexpr int most_ranks = 4096;
inline constexpr const char* transports = "threads|shared_memory|mpi|cluster";

/// One word that may stand on the command line.
struct option {
    std::string name;
    std::string value;  // what stands for its value in the help; empty if it takes none
    std::string meaning;
    void (*apply)(settings& asked, const option& self, const std::string& value);
};

[[noreturn]] inline void refuse(const option& self, const std::string& value, const std::string& expected) {
    throw usage_error(self.name + " is '" + value + "'; it takes " + expected);
}

/// `value` if it is one of `names`, which are separated by `|`.
inline std::string one_of(const std::string& names, const option& self, const std::string& value) {
    const bool plain = !value.empty() && value.find('|') == std::string::npos;
    if (!plain || ("|" + names + "|").find("|" + value + "|") == std::string::npos) refuse(self, value, names);
    return value;
}

/// A whole number not below `least`; with `K`, `M` or `G` behind it that many times 1024, 1024² or 1024³.
template <class Number>
Number whole(Number least, const option& self, const std::string& value) {
    const std::string expected = "a whole number from " + std::to_string(least);
    const char* const end = value.data() + value.size();
    std::uint64_t number = 0;
    const auto [rest, failed] = std::from_chars(value.data(), end, number);
    int shift = 0;
    if (failed == std::errc{} && end - rest == 1) shift = *rest == 'K' ? 10 : *rest == 'M' ? 20 : *rest == 'G' ? 30 : 0;
    if (failed != std::errc{} || rest + (shift != 0 ? 1 : 0) != end) refuse(self, value, expected);
    // a quarter of the type's range: the sum of a few such numbers is still in it
    const std::uint64_t most = (static_cast<std::uint64_t>(std::numeric_limits<Number>::max()) / 4) >> shift;
    if (number > most) refuse(self, value, expected + " to " + std::to_string(most << shift));
    if (static_cast<Number>(number << shift) < least) refuse(self, value, expected);
    return static_cast<Number>(number << shift);
}

inline double seconds_in(const option& self, const std::string& value) {
    double number = 0;
    const char* const end = value.data() + value.size();
    const auto [rest, failed] = std::from_chars(value.data(), end, number);
    if (failed != std::errc{} || rest != end || !(number > 0) || !std::isfinite(number))
        refuse(self, value, "seconds above 0");
    return number;
}

inline const std::vector<option>& options() {
    static const std::vector<option> all{
        {"--transport", transports, "how the ranks reach each other (threads)",
         [](settings& s, const option& o, const std::string& v) { s.transport = one_of(transports, o, v); }},
        {"--ranks", "N", "threads and shared_memory: how many ranks to start (2)",
         [](settings& s, const option& o, const std::string& v) { s.ranks = whole(1, o, v); }},
        {"--schedule", names_of(schedules), "who exchanges what with whom (tuned)",
         [](settings& s, const option& o, const std::string& v) { s.schedule = one_of(names_of(schedules), o, v); }},
        {"--element", names_of(elements), "what a value is (float)",
         [](settings& s, const option& o, const std::string& v) { s.element = one_of(names_of(elements), o, v); }},
        {"--op", names_of(ops), "how two values become one (sum)",
         [](settings& s, const option& o, const std::string& v) { s.op = one_of(names_of(ops), o, v); }},
        {"--min-bytes", "BYTES", "the first size; 1K is 1024, 1M and 1G likewise (4)",
         [](settings& s, const option& o, const std::string& v) { s.min_bytes = whole(std::size_t{1}, o, v); }},
        {"--max-bytes", "BYTES", "sizes end here (16M)",
         [](settings& s, const option& o, const std::string& v) { s.max_bytes = whole(std::size_t{1}, o, v); }},
        {"--factor", "N", "each size is N times the one before (4)",
         [](settings& s, const option& o, const std::string& v) { s.factor = whole(std::size_t{2}, o, v); }},
        {"--warmup", "CALLS", "calls of each kind before the clock counts (5)",
         [](settings& s, const option& o, const std::string& v) { s.warmup = whole(0, o, v); }},
        {"--iterations", "CALLS", "timed calls of each kind (20)",
         [](settings& s, const option& o, const std::string& v) { s.iterations = whole(1, o, v); }},
        {"--seconds", "TIME", "instead: as many calls as fit in about this time for each size, 5 at least",
         [](settings& s, const option& o, const std::string& v) { s.seconds = seconds_in(o, v); }},
        {"--buffers", "private|mapped", "mapped: ddl::buffer, memory that peers can map (private)",
         [](settings& s, const option& o, const std::string& v) {
             s.mapped = one_of("private|mapped", o, v) == "mapped";
         }},
        {"--in-place", "", "the result replaces the input (both, unless one of the two is named)",
         [](settings& s, const option&, const std::string&) { s.in_place = true; }},
        {"--out-of-place", "", "the result goes to a buffer of its own",
         [](settings& s, const option&, const std::string&) { s.out_of_place = true; }},
        {"--offset", "ELEMENTS", "a second row of each size, its buffers so far after the start of a page; 0: none (1)",
         [](settings& s, const option& o, const std::string& v) { s.offset = whole(std::size_t{0}, o, v); }},
        {"--check", "on|off", "compare every result with an oracle, between the timed calls (on)",
         [](settings& s, const option& o, const std::string& v) { s.check = one_of("on|off", o, v) == "on"; }},
        {"--mpi", "", "add a row of MPI_Allreduce, in turns with ours; under an MPI launcher",
         [](settings& s, const option&, const std::string&) { s.against_mpi = true; }},
        {"--json", "FILE", "write settings and rows there as well",
         [](settings& s, const option&, const std::string& v) { s.json = v; }},
    };
    return all;
}

/// The options and what they mean.
inline std::string options_explained() {
    std::string text;
    for (const option& each : options())
        text += "  " + each.name + (each.value.empty() ? "" : " " + each.value) + "\n        " + each.meaning + "\n";
    return text;
}

/// What contradicts itself is refused before a rank is started.
inline void require_sense(const settings& asked, bool counted) {
    std::size_t element_bytes = 1;
    with_choice(elements, asked.element, [&]<class Element>() { element_bytes = sizeof(Element); });
    if (asked.min_bytes < element_bytes)
        throw usage_error("--min-bytes is " + std::to_string(asked.min_bytes) + ", less than one " + asked.element +
                          "; it takes " + std::to_string(element_bytes) + " or more");
    if (asked.max_bytes < asked.min_bytes)
        throw usage_error("--max-bytes is " + std::to_string(asked.max_bytes) + ", below --min-bytes " +
                          std::to_string(asked.min_bytes));
    if (counted && asked.seconds > 0)
        throw usage_error("--iterations and --seconds both say how long; give one of them");
    if (asked.ranks.value_or(1) > most_ranks)
        throw usage_error("--ranks is " + std::to_string(*asked.ranks) + "; it takes 1 to " +
                          std::to_string(most_ranks));
    if (asked.offset * element_bytes >= page_bytes)
        throw usage_error("--offset is " + std::to_string(asked.offset) + ", beyond the page; it takes 0 to " +
                          std::to_string(page_bytes / element_bytes - 1));
    const bool starts_ranks = asked.transport == "threads" || asked.transport == "shared_memory";
    if (asked.ranks && !starts_ranks)
        throw usage_error("--ranks is for threads and shared_memory; with " + asked.transport +
                          " the launcher says how many: mpirun -n N");
    if (asked.against_mpi && asked.transport == "threads")
        throw usage_error("--mpi compares processes; pass --transport shared_memory, mpi or cluster");
    if (asked.against_mpi && asked.element == "bfloat16")
        throw usage_error("--mpi has no bfloat16, for MPI has none; pass --element float, double or int32");
    if (asked.json.empty()) return;
    std::FILE* const file = std::fopen(asked.json.c_str(), "a");  // now, not when all has been measured
    if (file == nullptr) throw usage_error("--json: cannot write '" + asked.json + "': " + std::strerror(errno));
    std::fclose(file);
}

/// Throws `usage_error` at the first word that is not understood, and if the words contradict each other.
inline settings parse(const std::vector<std::string>& words) {
    settings asked;
    asked.in_place = asked.out_of_place = false;
    std::vector<std::string> seen;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::size_t equals = words[i].find('=');
        const std::string name = words[i].substr(0, equals);
        const auto known =
            std::find_if(options().begin(), options().end(), [&](const option& o) { return o.name == name; });
        if (known == options().end())
            throw usage_error("there is no option '" + name + "'; --help lists those there are");
        if (std::find(seen.begin(), seen.end(), name) != seen.end()) throw usage_error(name + " is given twice");
        seen.push_back(name);
        std::string value;
        if (known->value.empty()) {
            if (equals != std::string::npos) throw usage_error(name + " takes no value");
        } else if (equals != std::string::npos) {
            value = words[i].substr(equals + 1);
        } else if (i + 1 < words.size() && words[i + 1].rfind("--", 0) != 0) {
            value = words[++i];
        }
        if (value.empty() && !known->value.empty()) throw usage_error(name + " needs a value: " + known->value);
        known->apply(asked, *known, value);
    }
    if (!asked.in_place && !asked.out_of_place) asked.in_place = asked.out_of_place = true;
    require_sense(asked, std::find(seen.begin(), seen.end(), "--iterations") != seen.end());
    return asked;
}
