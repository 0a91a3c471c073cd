// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "generator.hpp"

/// A handwritten digit: 8 rows of 8 pixels, 0 for paper and 1 for ink, and what its writer meant.
struct digit {
    std::array<float, 64> pixels;
    std::size_t label;
};

/// Digits to learn from, and others to be tested with.
struct digits {
    static constexpr std::size_t for_the_test = 360;

    std::vector<digit> training;
    std::vector<digit> test;

    /// Reads the file of `data/README.md`. The split is a shuffle with a fixed seed: the same wherever it is made.
    explicit digits(const std::string& path) {
        std::ifstream file{path};
        if (!file) throw std::runtime_error("there is no " + path + "; name the path of examples/data/optdigits.csv");
        for (digit next{}; read(file, next);) training.push_back(next);
        if (!file.eof() || training.size() <= for_the_test)
            throw std::runtime_error(path + " holds something else than digits from line " +
                                     std::to_string(training.size() + 1) + " on");
        generator{1998}.shuffle(training);
        test.assign(training.end() - for_the_test, training.end());
        training.resize(training.size() - for_the_test);
    }

private:
    /// A line: 64 pixels of 0 to 16 and the label, with commas between them.
    static bool read(std::ifstream& file, digit& into) {
        char comma = ',';
        for (float& pixel : into.pixels) {
            if (!(file >> pixel >> comma) || comma != ',') return false;
            pixel /= 16;
        }
        return file >> into.label && into.label < 10;
    }
};
