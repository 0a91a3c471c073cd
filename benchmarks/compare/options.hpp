// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness.hpp"

namespace compare {

/// What the driver asks of this program. Cells are words: `collective:count:offset:in` or `...:out`.
struct options {
    std::string out;
    std::vector<std::string> transports;  // ours
    bool several_hosts = false;           // ranks then meet over the wire, and go where the scheduler wants them
    std::size_t floor_bytes = std::size_t{1} << 20;
    effort allowed;
    std::vector<cell> cells;
};

inline double number_in(const std::string& words) {
    double value = 0;
    const auto [rest, failed] = std::from_chars(words.data(), words.data() + words.size(), value);
    if (failed != std::errc{} || rest != words.data() + words.size() || value < 0)
        throw std::invalid_argument("'" + words + "' is no number; the driver writes these words");
    return value;
}

inline cell cell_in(const std::string& words) {
    std::vector<std::string> fields{""};
    for (const char each : words)
        if (each == ':') fields.emplace_back();
        else fields.back() += each;
    if (fields.size() != 4) throw std::invalid_argument("'" + words + "' is no cell; write allreduce:1024:0:in");
    const tensor_list model = tensors_of(fields[0]);
    const auto count = model.all().empty() ? static_cast<std::size_t>(number_in(fields[1])) : model.total();
    return {fields[0], count, static_cast<std::size_t>(number_in(fields[2])), fields[3] == "in", model.all()};
}

inline options parse(const std::vector<std::string>& words) {
    options asked;
    for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
        const std::string& name = words[i];
        const std::string& value = words[i + 1];
        if (name == "--out") asked.out = value;
        else if (name == "--transport") asked.transports.push_back(value);
        else if (name == "--hosts") asked.several_hosts = value == "several";
        else if (name == "--floor-bytes") asked.floor_bytes = static_cast<std::size_t>(number_in(value));
        else if (name == "--seconds") asked.allowed.seconds = number_in(value);
        else if (name == "--least") asked.allowed.least = static_cast<int>(number_in(value));
        else if (name == "--most") asked.allowed.most = static_cast<int>(number_in(value));
        else if (name == "--settling") asked.allowed.settling = static_cast<int>(number_in(value));
        else if (name == "--probes") asked.allowed.probes = static_cast<int>(number_in(value));
        else if (name == "--slots") asked.allowed.slots = static_cast<std::size_t>(number_in(value));
        else if (name == "--cell") asked.cells.push_back(cell_in(value));
        else throw std::invalid_argument("there is no option '" + name + "'");
    }
    if (words.size() % 2 != 0) throw std::invalid_argument("'" + words.back() + "' needs a value");
    if (asked.transports.empty()) asked.transports = {"shared_memory"};
    return asked;
}

}  // namespace compare
