// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/error.hpp>
#include <ddl/transport/patience.hpp>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

/// What became of a child: how its body left, and in which words.
struct outcome {
    enum kind { returned, threw_error, threw_other, killed };
    kind how = killed;
    ddl::errc code = ddl::errc::broken;
    char words[512] = {};

    bool is(ddl::errc expected) const { return how == threw_error && code == expected; }
    bool mentions(const char* what) const { return std::strstr(words, what) != nullptr; }
};

inline std::ostream& operator<<(std::ostream& out, const outcome& result) {
    constexpr const char* names[] = {"returned", "threw ddl::error: ", "threw: ", "was killed"};
    return out << names[result.how] << result.words;
}

/// Processes that run one function each and tell how it went. No child can outlive its seconds, nor hang the parent.
class children {
public:
    explicit children(unsigned seconds = 240) : seconds_{seconds} {}
    children(const children&) = delete;
    children& operator=(const children&) = delete;
    ~children() { finish(); }

    void start(const std::function<void()>& body) {
        int ends[2];
        if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
        const pid_t child = ::fork();
        if (child < 0) throw std::runtime_error("no fork");
        if (child == 0) {
            for (int signal : {SIGALRM, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTERM})
                std::signal(signal, SIG_DFL);
            ::alarm(seconds_);
            const outcome result = run(body);
            (void)!::write(ends[1], &result, sizeof result);
            ::_exit(0);
        }
        ::close(ends[1]);
        running_.push_back({child, ends[0]});
    }

    void signal(std::size_t index, int number) { ::kill(running_[index].process, number); }
    void kill(std::size_t index) { signal(index, SIGKILL); }
    void kill_all() {
        for (const auto& each : running_) ::kill(each.process, SIGKILL);
    }

    /// Waits for all. In the order of `start`.
    std::vector<outcome> finish() {
        std::vector<outcome> results;
        const double deadline = ddl::now() + seconds_ + 5;
        for (const auto& each : running_) {
            outcome result;
            pollfd watched{each.report, POLLIN, 0};
            const double left = deadline - ddl::now();
            const int ready = ::poll(&watched, 1, left > 0 ? static_cast<int>(left * 1000) : 0);
            if (ready != 1) ::kill(each.process, SIGKILL);
            outcome read;
            if (ready == 1 && ::read(each.report, &read, sizeof read) == sizeof read) result = read;
            ::close(each.report);
            ::waitpid(each.process, nullptr, 0);
            results.push_back(result);
        }
        running_.clear();
        return results;
    }

    /// How it goes in this process.
    static outcome run(const std::function<void()>& body) {
        outcome result;
        try {
            body();
            result.how = outcome::returned;
        } catch (const ddl::error& failure) {
            result.how = outcome::threw_error;
            result.code = failure.code();
            std::strncpy(result.words, failure.what(), sizeof result.words - 1);
        } catch (const std::exception& failure) {
            result.how = outcome::threw_other;
            std::strncpy(result.words, failure.what(), sizeof result.words - 1);
        }
        return result;
    }

private:
    struct process {
        pid_t process;
        int report;
    };

    unsigned seconds_;
    std::vector<process> running_;
};

/// For the bodies of children, where Boost.Test is not at hand.
inline void expect(bool holds, const char* what) {
    if (!holds) throw std::runtime_error(what);
}
#define EXPECT(...) expect((__VA_ARGS__), #__VA_ARGS__)

/// A name that no other test, and no other run of this one, uses.
inline std::string fresh_job() {
    static int count = 0;
    return "test-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
}

/// Files of ours where named shared memory would lie. Other programs may make files there meanwhile.
inline std::vector<std::string> left_behind() {
    std::vector<std::string> names;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", none))
        if (const std::string file = entry.path().filename();
            file.starts_with("ddl") || file.find("test-" + std::to_string(::getpid()) + "-") != std::string::npos)
            names.push_back(file);
    std::sort(names.begin(), names.end());
    return names;
}

/// Marks that children leave and their parent waits for.
class marks {
public:
    marks() {
        if (::pipe(ends_) != 0) throw std::runtime_error("no pipe");
    }
    marks(const marks&) = delete;
    marks& operator=(const marks&) = delete;
    ~marks() {
        ::close(ends_[0]);
        ::close(ends_[1]);
    }
    void leave() const { (void)!::write(ends_[1], "x", 1); }
    /// False if one of `count` marks does not come within 100 seconds.
    bool wait_for(int count) const {
        for (char mark; count > 0; --count) {
            pollfd watched{ends_[0], POLLIN, 0};
            if (::poll(&watched, 1, 100'000) != 1 || ::read(ends_[0], &mark, 1) != 1) return false;
        }
        return true;
    }

private:
    int ends_[2];
};

inline void sleep_for(double seconds) { ::usleep(static_cast<useconds_t>(seconds * 1e6)); }
