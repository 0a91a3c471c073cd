// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>
#include <unistd.h>
#include <utility>

/// What the process writes to stderr while this lives.
class heard {
public:
    heard() : kept_{::dup(2)}, file_{std::tmpfile()} { ::dup2(::fileno(file_), 2); }
    heard(const heard&) = delete;
    heard& operator=(const heard&) = delete;
    ~heard() {
        stop();
        std::fclose(file_);
    }
    std::string words() {
        stop();
        std::string result(4096, '\0');
        std::rewind(file_);
        result.resize(std::fread(result.data(), 1, result.size(), file_));
        return result;
    }

private:
    void stop() {
        if (kept_ < 0) return;
        std::fflush(stderr);
        ::dup2(kept_, 2);
        ::close(std::exchange(kept_, -1));
    }
    int kept_;
    std::FILE* file_;
};

/// Why a call of IBM's interface does not fail with a line of that number that holds these words; "" if it does.
template <class Call>
std::string lacks_line(int number, const char* words, Call call) {
    heard lines;
    const int status = call();
    const std::string line = lines.words();
    if (status == 0) return "it has not failed";
    if (line.starts_with("[ERROR DDL-1-" + std::to_string(number) + "] ") && line.find(words) != std::string::npos &&
        line.ends_with(")\n") && line.find("(host ") != std::string::npos)
        return "";
    return "no line " + std::to_string(number) + " with '" + words + "': " + line;
}
