// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "ranks.hpp"

/// Processes that are ranks of one job, and children of this one, which only waits for them.
class rank_processes {
public:
    /// Each runs `body(rank)`, which does not throw, and exits with what it returns.
    rank_processes(int ranks, const std::function<ending(int)>& body) {
        std::fflush(nullptr);  // else each child writes it again
        const pid_t parent = ::getpid();
        for (int rank = 0; rank < ranks; ++rank) {
            const pid_t started = ::fork();
            if (started < 0) {
                end_all();
                throw std::runtime_error(std::string("cannot start a process: ") + std::strerror(errno));
            }
            if (started == 0) {
                ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a rank ends with this process, whatever ended that
                if (::getppid() != parent) ::_exit(static_cast<int>(ending::refused));
                const ending how = body(rank);
                std::fflush(nullptr);
                ::_exit(static_cast<int>(how));
            }
            running_.push_back(started);
        }
    }
    rank_processes(const rank_processes&) = delete;
    rank_processes& operator=(const rank_processes&) = delete;
    ~rank_processes() { end_all(); }

    /// The worst of their endings. Once one has failed the others, who lose it, have 10 seconds to notice.
    ending wait() {
        ending worst = ending::right;
        double patience = 10;
        constexpr useconds_t nap = 10'000;
        while (!running_.empty() && patience > 0) {
            const ending how = next_ending(worst != ending::refused);
            worst = std::max(worst, how);
            if (worst != ending::refused) continue;
            ::usleep(nap);
            patience -= 1e-6 * nap;
        }
        return worst;
    }

private:
    ending next_ending(bool blocks) {
        int status = 0;
        const pid_t ended = ::waitpid(-1, &status, blocks ? 0 : WNOHANG);
        if (ended < 0 && errno == ECHILD) running_.clear();  // somebody made the system forget them
        if (ended <= 0) return running_.empty() ? ending::refused : ending::right;
        running_.erase(std::remove(running_.begin(), running_.end(), ended), running_.end());
        if (WIFEXITED(status) && WEXITSTATUS(status) < 2) return static_cast<ending>(WEXITSTATUS(status));
        if (WIFSIGNALED(status))
            std::fprintf(stderr, "allreduce_bench: a rank was ended by signal %d\n", WTERMSIG(status));
        return ending::refused;
    }

    void end_all() {
        for (const pid_t each : running_) ::kill(each, SIGKILL);
        for (const pid_t each : running_) ::waitpid(each, nullptr, 0);
        running_.clear();
    }

    std::vector<pid_t> running_;
};
