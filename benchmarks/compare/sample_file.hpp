// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <memory>
#include <stdexcept>

#include "../json.hpp"
#include "../machine.hpp"
#include "harness.hpp"

namespace compare {

/// The samples as the driver reads them: a line of JSON for the run, then one for each cell.
class sample_file {
public:
    /// No file, no line: of all ranks one writes.
    sample_file(const std::string& path, const std::string& peer, int ranks) {
        if (path.empty()) return;
        file_.reset(std::fopen(path.c_str(), "w"));
        if (!file_) throw std::runtime_error("cannot write '" + path + "'");
        write(json_object{}
                  .add("peer", peer)
                  .add("ranks", ranks)
                  .add("element", std::string{element_name})
                  .add("op", std::string{op_name})
                  .add("host", host_name())
                  .add("caches", caches())
                  .add("compiler", compiler())
                  .value());
    }

    void add(const cell& asked, std::size_t calls, const std::vector<samples>& found) {
        if (!file_) return;
        json_array contenders;
        for (const samples& each : found)
            contenders.add(json_object{}
                               .add("name", each.name)
                               .add("seconds", list(each.seconds))
                               .add("probes", list(each.probes))
                               .add("wrong", each.wrong)
                               .value());
        json one_line = contenders.value();
        std::erase(one_line.text, '\n');
        write(json_object{}
                  .add("collective", asked.collective)
                  .add("bytes", asked.count * sizeof(element))
                  .add("elements", asked.count)
                  .add("offset", asked.offset)
                  .add("place", std::string{asked.in_place ? "in" : "out"})
                  .add("calls_a_sample", calls)
                  .add("contenders", one_line)
                  .value());
    }

private:
    static json list(const std::vector<double>& values) {
        json whole{nullptr};
        whole.text = "[";
        for (const double each : values) whole.text += (whole.text.size() > 1 ? ", " : "") + json{each}.text;
        whole.text += "]";
        return whole;
    }
    void write(const json& value) {
        if (std::fprintf(file_.get(), "%s\n", value.text.c_str()) < 0 || std::fflush(file_.get()) != 0)
            throw std::runtime_error("cannot write the samples");
    }

    struct close {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    std::unique_ptr<std::FILE, close> file_;
};

}  // namespace compare
