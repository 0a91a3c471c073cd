// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

// So that the thread sanitizer takes no order from the lock of the double, but only that which streams and events make.
extern "C" {
[[gnu::weak]] void AnnotateIgnoreSyncBegin(const char* file, int line);
[[gnu::weak]] void AnnotateIgnoreSyncEnd(const char* file, int line);
[[gnu::weak]] void AnnotateIgnoreReadsBegin(const char* file, int line);
[[gnu::weak]] void AnnotateIgnoreReadsEnd(const char* file, int line);
[[gnu::weak]] void AnnotateIgnoreWritesBegin(const char* file, int line);
[[gnu::weak]] void AnnotateIgnoreWritesEnd(const char* file, int line);
[[gnu::weak]] void __tsan_acquire(void* place);
[[gnu::weak]] void __tsan_release(void* place);
}

struct CUmemPoolHandle_st {
    int device;
    std::set<int> open_to{};
    bool over = false;  // what it gave may live on
};

namespace cuda_double {

/// What a stream has been given: done after what its stream was given before, and after `after`.
struct task {
    std::function<void()> work;
    std::vector<std::shared_ptr<task>> after;
    bool done = false;

    void come_after() const {
        if (__tsan_acquire != nullptr) __tsan_acquire(const_cast<task*>(this));
    }
    void come_before() const {
        if (__tsan_release != nullptr) __tsan_release(const_cast<task*>(this));
    }
};
using task_ref = std::shared_ptr<task>;

/// What a capture has taken down so far. Indices grow along the edges.
struct node {
    std::function<void()> work;
    std::vector<std::size_t> after;
};
struct capture {
    unsigned long long id;
    cudaStreamCaptureMode mode;
    std::thread::id owner;
    CUstream_st* origin;
    std::vector<node> nodes{};
    bool broken = false;
    bool over = false;
};

struct device {
    int number = 0;
    int free_blocks = 0;
    bool prepared = false;            // it was some thread's current device
    cudaError_t fault = cudaSuccess;  // which stays
    std::set<int> peers{};            // that it may reach
    CUstream_st* legacy = nullptr;
    CUmemPoolHandle_st* pool = nullptr;
};

/// Memory that CUDA knows of.
struct allocation {
    std::uintptr_t first;
    std::size_t bytes;
    cudaMemoryType type;
    int device;
    unsigned long long id;
    int file = -1;                             // what holds the bytes; -1: the process
    CUmemPoolHandle_st* pool = nullptr;        // of cudaMallocAsync
    CUmemGenericAllocationHandle created = 0;  // of cuMemCreate
    bool opened = false;                       // of another process
    std::set<int> open_to{};                   // devices that may reach what was created
};

/// Memory of cuMemCreate.
struct created_memory {
    int file;
    std::size_t bytes;
    int device;
    CUmemAllocationHandleType types;
    unsigned long long id;
    int holders;
};

/// All that the double knows. Its lock is held in each call.
class machine {
public:
    static machine& get() {
        static machine& one = *new machine;  // never destroyed, as streams outlive the end of main
        return one;
    }
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<device> devices;
    int processors;
    std::set<CUstream_st*> streams;
    std::set<CUevent_st*> events;
    std::set<std::shared_ptr<capture>> captures;
    std::map<std::uintptr_t, allocation> memory;
    std::map<CUmemGenericAllocationHandle, created_memory> created;
    std::deque<CUmemPoolHandle_st> pools;
    unsigned long long last_id = 0;
    bool reach_each_other = true;
    bool launch_cooperatively = true;
    std::minstd_rand random;

    /// What the next failing call is.
    std::string failing_name;
    int failing_after = -1;
    cudaError_t failing_status = cudaSuccess;
    std::map<std::string, int> counts;
    int errors_left = 0;  // by threads that have ended

    /// The allocation that all of these bytes lie in; null if there is none.
    allocation* find(const void* data, std::size_t bytes = 1);

private:
    machine();
};

/// Holds the lock of the machine.
class lock {
public:
    lock() {
        unobserved(true);
        held_ = std::unique_lock{machine::get().mutex};
    }
    ~lock() {
        held_ = {};
        unobserved(false);
    }
    lock(const lock&) = delete;
    lock& operator=(const lock&) = delete;

    template <class Predicate>
    void wait(Predicate predicate) {
        machine::get().changed.wait(held_, predicate);
    }
    /// Runs `work` without the lock.
    template <class Work>
    void without(Work work) {
        held_.unlock();
        unobserved(false);
        work();
        unobserved(true);
        held_.lock();
    }
    /// Waits until all of these are done, and comes after them.
    void await(const std::vector<task_ref>& tasks) {
        wait([&] {
            for (const task_ref& each : tasks)
                if (!each->done) return false;
            return true;
        });
        without([&] {
            for (const task_ref& each : tasks) each->come_after();
        });
    }

private:
    static void unobserved(bool begins) {
        if (AnnotateIgnoreSyncBegin == nullptr) return;
        (begins ? AnnotateIgnoreSyncBegin : AnnotateIgnoreSyncEnd)(__FILE__, __LINE__);
        (begins ? AnnotateIgnoreReadsBegin : AnnotateIgnoreReadsEnd)(__FILE__, __LINE__);
        (begins ? AnnotateIgnoreWritesBegin : AnnotateIgnoreWritesEnd)(__FILE__, __LINE__);
    }
    std::unique_lock<std::mutex> held_;
};

/// What a call may meet: a capture that forbids it, the fault of the current device.
enum class asks { nothing, no_fault, no_fault_nor_capture };

/// The current device of this thread, and its last error.
int& current();
cudaError_t& last_error();
/// Whether a call may be made at all.
cudaError_t admit(const char* name, asks what);
/// Whether captures forbid this thread what is not safe in them. Those are broken then.
cudaError_t forbidden_by_captures();

/// A call of the runtime's: `body(lock)` gives its status.
template <class Body>
cudaError_t called(const char* name, asks what, Body body) {
    lock held;
    cudaError_t status = admit(name, what);
    if (status == cudaSuccess) status = body(held);
    if (status != cudaSuccess) last_error() = status;
    return status;
}

/// The stream behind a handle of this thread; null if there is none.
CUstream_st* stream_of(cudaStream_t handle);
CUstream_st* new_stream(int device, bool blocking, bool legacy);
/// Gives a stream something to do, and a capture of it a node.
cudaError_t enqueue(CUstream_st* stream, std::function<void()> work, std::vector<task_ref> after = {});
/// What all streams of a device were given last.
std::vector<task_ref> last_of_all(int device);

}  // namespace cuda_double

struct CUstream_st {
    int device;
    bool blocking;
    bool legacy;
    std::deque<cuda_double::task_ref> waiting{};
    cuda_double::task_ref last{};
    bool closing = false;
    std::shared_ptr<cuda_double::capture> taken{};
    std::vector<std::size_t> heads{};  // nodes that the next comes after
};
struct CUevent_st {
    int device;
    cuda_double::task_ref last{};
    std::shared_ptr<cuda_double::capture> taken{};  // where it was recorded last
    std::vector<std::size_t> heads{};
};
struct CUgraph_st {
    std::vector<cuda_double::node> nodes;
};
struct CUgraphExec_st {
    std::shared_ptr<const std::vector<cuda_double::node>> nodes;
    int device;
};
