// SPDX-License-Identifier: Apache-2.0
#include <ddl/shim/process_end.hpp>
#include <ddl/shim/tensorflow/failure.hpp>
#include <ddl/shim/tensorflow/ranks.hpp>

#include <functional>
#include <set>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace ddl::shim::tensorflow {
namespace {

std::int64_t name_of_host() {
    char name[256] = "";
    ::gethostname(name, sizeof name - 1);
    return static_cast<std::int64_t>(std::hash<std::string_view>{}(name));
}

/// The GPU of this rank, once all ranks of the host have said which they prefer. All ranks call it.
std::int32_t agreed_gpu(ddl_communicator* world, int preferred) {
    struct wish {
        std::int64_t host;
        std::int64_t gpu;
    };
    const wish own{name_of_host(), preferred};
    const auto size = static_cast<std::size_t>(ddl_get_size(world));
    std::vector<wish> wishes(size);
    require(ddl_run_all_gather(world, &own, wishes.data(), 2 * size, DDL_INT64), "Init");
    std::set<std::int64_t> taken;
    for (const wish& each : wishes) {
        if (each.host != own.host) continue;
        const bool exists = each.gpu >= 0 && each.gpu < ddl_get_local_size(world);
        if (!exists || !taken.insert(each.gpu).second) return ddl_get_local_rank(world);
    }
    return preferred;
}

/// When the process ends.
void leave(int status) {
    ddl_communicator* const world = ranks::here().world();
    tell_of_end(world, status);
    ddl_interrupt(world);  // a thread may still wait in an operator
    ddl_close(world);
}

/// Throws unless the options make sense. The others, who meet in what comes next, hear of it.
void set_options(ddl_communicator* world, const char* words) {
    try {
        require(ddl_set_options(world, words), "Init");
    } catch (const failure&) {
        constexpr ddl_op none = -1;
        ddl_run_allreduce(world, nullptr, nullptr, 0, DDL_FLOAT, none);
        throw;
    }
}

}  // namespace

ranks& ranks::here() {
    static ranks& kept = *new ranks;  // stays: other threads may still call while the process ends
    return kept;
}

numbers ranks::start(const std::string& mode, int preferred_gpu) {
    const std::lock_guard lock{changes_};
    if (world_ != nullptr) {
        if (mode != mode_)
            throw failure::refused(failed_precondition, "Init", numbers_.rank,
                                   "DDL was started with mode \"%.80s\", and now it is \"%.80s\"; start it once in a "
                                   "process",
                                   mode_.c_str(), mode.c_str());
        return numbers_;
    }
    ddl_communicator* opened = nullptr;
    require(ddl_open_environment(&opened), "Init");
    try {
        set_options(opened, mode.c_str());
        numbers_ = {ddl_get_rank(opened), ddl_get_size(opened), ddl_get_local_rank(opened), ddl_get_local_size(opened),
                    agreed_gpu(opened, preferred_gpu)};
        mode_ = mode;
    } catch (...) {
        ddl_close(opened);
        throw;
    }
    world_ = opened;
    process_ = ::getpid();
    at_end_of_this_process<leave>();
    return numbers_;
}

ddl_communicator* ranks::world() {
    const std::lock_guard lock{changes_};
    return world_;
}

ddl_communicator* ranks::started(const char* operation) {
    if (const int process = process_; process != 0 && process != ::getpid())
        throw failure::refused(failed_precondition, operation, -1,
                               "this process is a fork of a rank, and none itself; run the operator there");
    ddl_communicator* const open = world();
    if (open == nullptr)
        throw failure::refused(failed_precondition, operation, -1,
                               "DDL is not started; run the operator init first, in a session of its own");
    return open;
}

ranks::turn::turn(ranks& all) : all_{all} {
    std::unique_lock lock{all_.turns_};
    const std::uint64_t mine = all_.came_++;
    all_.next_turn_.wait(lock, [&] { return all_.done_ == mine; });
}

ranks::turn::~turn() {
    {
        const std::lock_guard lock{all_.turns_};
        ++all_.done_;
    }
    all_.next_turn_.notify_all();
}

}  // namespace ddl::shim::tensorflow
