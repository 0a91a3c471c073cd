// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/shim/ddl.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>

namespace ddl::shim::tensorflow {

/// What the operator Init answers.
struct numbers {
    std::int32_t rank;
    std::int32_t size;
    std::int32_t local_rank;
    std::int32_t local_size;
    std::int32_t gpu;
};

/// The ranks of this process's operators, from the first Init to the end of the process.
class ranks {
public:
    static ranks& here();

    /// Meets the other ranks; all of them call it. A later call with the same mode answers the same, and meets nobody.
    ///
    /// A rank gets the GPU that it prefers if all ranks of its host prefer different ones of as many as they are, else the GPU of
    /// its local rank.
    numbers start(const std::string& mode, int preferred_gpu);

    /// Throws where nobody has called `start`, and in a process that such a one has made by fork.
    ddl_communicator* started(const char* operation);
    /// The same; nullptr there.
    ddl_communicator* world();

    /// One operator at a time, in the order in which they came: TensorFlow runs several side by side, and one may be several calls,
    /// in between which no other's may fall.
    class turn {
    public:
        explicit turn(ranks& all);
        turn(const turn&) = delete;
        turn& operator=(const turn&) = delete;
        ~turn();

    private:
        ranks& all_;
    };

private:
    std::atomic<int> process_{0};  // that called `start`
    std::mutex changes_;
    ddl_communicator* world_ = nullptr;
    std::string mode_;
    numbers numbers_{};

    std::mutex turns_;
    std::condition_variable next_turn_;
    std::uint64_t came_ = 0;
    std::uint64_t done_ = 0;
};

}  // namespace ddl::shim::tensorflow
