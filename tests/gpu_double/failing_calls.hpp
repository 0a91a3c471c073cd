// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/allreduce.hpp>
#include <ddl/broadcast.hpp>
#include <ddl/transport/cuda_status.cuh>
#include <ddl/transport/patience.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../collective/require.hpp"

// Jobs in which a call of the runtime, or the driver, fails: they must say so by its name and device, or end well where nobody
// could be told; and never hang.

/// Ones on a device, that no failing call is spent on.
class ones {
public:
    static constexpr std::size_t count = 20'000;
    ones() {
        const cuda_double::spared aside;
        static_cast<void>(cudaMalloc(&data_, count * sizeof(float)));
        const std::vector<float> values(count, 1.0F);
        static_cast<void>(cudaMemcpy(data_, values.data(), count * sizeof(float), cudaMemcpyDefault));
    }
    ones(const ones&) = delete;
    ones& operator=(const ones&) = delete;
    ~ones() {
        const cuda_double::spared aside;
        static_cast<void>(cudaFree(data_));
    }
    std::span<float> values() const { return {data_, count}; }
    float last() const {
        const cuda_double::spared aside;
        float value = 0;
        static_cast<void>(cudaMemcpy(&value, data_ + count - 1, sizeof value, cudaMemcpyDefault));
        return value;
    }

private:
    float* data_ = nullptr;
};

/// Those that give back, or wait for, what a job leaves, too, where there is nobody to tell.
inline constexpr std::string_view quiet_calls[] = {
    "cudaSetDevice",      "cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaThreadExchangeStreamCaptureMode",
    "cudaFree",           "cudaFreeHost",          "cudaEventDestroy",      "cudaStreamDestroy",
    "ncclCommFinalize",   "ncclCommDestroy",       "ncclCommGetAsyncError", "cudaFreeAsync",
    "cudaMemPoolDestroy", "cudaIpcCloseMemHandle", "cuMemGetAddressRange",
};

/// A call of this name, when it has been made so often.
struct failing_call {
    std::string name;
    int before;

    void expect() const { cuda_double::fail(name.c_str(), before, cudaErrorLaunchFailure); }
    std::string where() const { return name + " " + std::to_string(before) + ": "; }

    /// Whether `text`, of all that the job threw, tells of it. Throws if it had to.
    bool was_told(const std::string& where, bool has_thrown, const std::string& text,
                  std::string_view also_quiet = {}) const {
        if (!has_thrown) {
            const bool is_quiet =
                std::find(std::begin(quiet_calls), std::end(quiet_calls), name) != std::end(quiet_calls);
            require(is_quiet || name == also_quiet, where + "nobody was told");
            return false;
        }
        std::string told_as = name;  // without what a version, or flags, add
        for (const char* const ending : {"ByVersion", "WithFlags"})
            if (told_as.ends_with(ending)) told_as.resize(told_as.size() - std::strlen(ending));
        const auto says = [&](std::string_view words) { return text.find(words) != std::string::npos; };
        const bool is_told =
            name.starts_with("nccl")  // which ddl tells by the collective
                ? says("NCCL says unhandled cuda error")
                : says(told_as) && says("CUDA device ") &&
                      (says("cudaErrorLaunchFailure") || says("unspecified launch failure") || says("error 719"));
        require(is_told, where + "told as " + text);
        return true;
    }
};

/// What a job calls when all goes well, up to so often of a name: requests are looked at again and again.
template <class Job>
std::vector<failing_call> calls_of(Job job, int most) {
    job();
    static_cast<void>(cuda_double::calls());
    job();
    std::vector<failing_call> result;
    for (const auto& [name, number] : cuda_double::calls())
        for (int before = 0; before < std::min(number, most); ++before) result.push_back({name, before});
    return result;
}

/// What the ranks of a job have thrown, and its caller was told.
class told {
public:
    void add(const char* text) {
        const std::lock_guard lock{mutex_};
        texts_ += std::string{text} + "\n";
    }
    std::string take() { return std::exchange(texts_, {}); }

    /// Runs a rank, or a job.
    template <class Body>
    void listen_to(Body body) {
        try {
            body();
        } catch (const std::exception& failure) {
            add(failure.what());
            throw;
        }
    }

private:
    std::mutex mutex_;
    std::string texts_;
};
inline told all_told;

/// `job`, of ranks that are threads, with one of its calls failing: each in turn, of each name.
template <class Job>
void every_call_may_fail(const char* what, Job job, std::string_view also_quiet = {}) {
    const std::vector<failing_call> list = calls_of(job, 40);
    require(cuda_double::errors_left() == 0, "an error stays where none was thrown");
    bool once_slow = false;
    int heard = 0;
    for (std::size_t i = 0; i < list.size(); ++i) {
        const auto start = std::chrono::steady_clock::now();
        list[i].expect();
        const ddl::error failure = error_of([&] { all_told.listen_to(job); });
        const bool happened = cuda_double::failed();
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
        const std::string text = all_told.take();
        const std::string where = std::string{what} + ", " + list[i].where();
        const bool slow = seconds.count() >= 5;
        require(!slow || !once_slow, where + "somebody waited in vain: " + text);
        once_slow = slow;
        if (slow) --i;  // a machine may be busy for a while, but hardly in the same call again
        else if (happened) heard += list[i].was_told(where, failure.code() != no_error, text, also_quiet);
        require(cuda_double::errors_left() == 0, where + "an error stays for whoever asks next");
    }
    std::printf("%s: %zu calls failed, %d of them were told\n", what, list.size(), heard);
}

/// `job`, of ranks that are processes, with a call of the last one failing: each in turn. All processes call it, and meet in
/// `control`.
template <class Control, class Job>
void every_call_of_a_process_may_fail(const char* what, Control& control, Job job) {
    const int last = control.size() - 1;
    const bool is_last = control.rank() == last;
    const std::vector<failing_call> list = calls_of(job, 6);
    int number = static_cast<int>(list.size());
    ddl::broadcast(control, std::span{&number, 1}, last);
    bool once_slow = false;
    int heard = 0;
    for (int i = 0; i < number; ++i) {
        const failing_call& one = list[is_last ? static_cast<std::size_t>(i) : 0];
        const double start = ddl::now();
        if (is_last) one.expect();
        const ddl::error failure = error_of(job);
        const bool happened = is_last && cuda_double::failed();
        const std::string where = std::string{what} + ", " + one.where();
        int slow = ddl::now() - start >= 5;
        ddl::allreduce(control, std::span{&slow, 1}, ddl::maximum{});
        require(slow == 0 || !once_slow, where + "somebody waited in vain: " + failure.what());
        once_slow = slow != 0;
        if (slow != 0) --i;  // a machine may be busy for a while, but hardly in the same call again
        else if (happened) heard += one.was_told(where, failure.code() != no_error, failure.what());
        require(cuda_double::errors_left() == 0, where + "an error stays for whoever asks next");
    }
    if (is_last) std::printf("%s: %d calls failed, %d of them were told\n", what, number, heard);
}
