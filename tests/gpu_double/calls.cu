// SPDX-License-Identifier: Apache-2.0
// Calls keep to their streams. And each call of the runtime that a job makes fails once: the job must say so by the call's name and
// its device, or end well where nobody could be told; and never hang.
#include <ddl/all_to_all.hpp>
#include <ddl/allreduce.hpp>
#include <ddl/barrier.hpp>
#include <ddl/transport/cuda_ipc_device.cuh>
#include <ddl/transport/cuda_peer.cuh>
#include <ddl/transport/staged.cuh>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "../collective/require.hpp"
#include "../gpu/gpu_test.cuh"
#include "failing_calls.hpp"

namespace {

void peers() {
    ddl::cuda_peer::run(
        2,
        [](ddl::cuda_peer& team) {
            const ones data;
            all_told.listen_to([&] {
                ddl::allreduce(team, data.values());
                auto queued = team.on(cudaStreamPerThread);
                ddl::allreduce_async(queued, data.values()).wait();
                ddl::allreduce_n(queued, std::vector{data.values()});
                queued.wait();
            });
            require(data.last() == 8, "three sums");
        },
        ddl::timeout{10});
}
void stages() {
    ddl::threads::run(
        2,
        [](ddl::threads& host) {
            const ones data;
            all_told.listen_to([&] {
                ddl::staged team{host, ddl::staging_shape{.chunk_bytes = 1 << 14, .streams = 2}};
                ddl::allreduce(team, data.values());
                auto queued = team.on(cudaStreamPerThread);
                ddl::allreduce_async(queued, data.values()).wait();
            });
            require(data.last() == 4, "two sums");
        },
        ddl::timeout{10});
}

/// Each rank has work on a stream of its own, some of it slow, before a call and after it: of zeros nothing but zeros may come.
void calls_keep_to_their_streams() {
    ddl::cuda_peer::run(
        3,
        [](ddl::cuda_peer& team) {
            const auto good = [&](cudaError_t status) {
                ddl::require_cuda(status, "streams", team.rank(), team.device());
            };
            const ones data;
            cudaStream_t stream = nullptr;
            void* pinned = nullptr;
            good(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
            good(cudaHostAlloc(&pinned, ones::count * sizeof(float), 0));
            auto* const seen = static_cast<float*>(pinned);
            auto queued = team.on(stream);
            for (int turn = 0; turn < 6; ++turn) {
                std::fill_n(seen, ones::count, 1.0F);
                good(cudaMemcpyAsync(data.values().data(), seen, ones::count * sizeof(float), cudaMemcpyHostToDevice,
                                     stream));
                if (team.rank() == turn % team.size())
                    good(cudaLaunchHostFunc(
                        stream, [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds{3}); }, nullptr));
                good(cudaMemsetAsync(data.values().data(), 0, ones::count * sizeof(float), stream));
                ddl::allreduce(queued, data.values());
                good(cudaMemcpyAsync(seen, data.values().data(), ones::count * sizeof(float), cudaMemcpyDeviceToHost,
                                     stream));
                queued.wait();
                require(std::count(seen, seen + ones::count, 0.0F) == ones::count,
                        "a call came before what its stream was given");
            }
            good(cudaFreeHost(pinned));
            good(cudaStreamDestroy(stream));
        },
        ddl::timeout{10});
}

/// Two GPUs that meet, and one rank's body leaves when its grid has not begun: the other's stops at once, and says why. In the
/// team of the body, and in one split from it.
void a_body_that_leaves_stops_its_peers(bool in_a_part) {
    if (ddl::require_devices("gpu_double.calls") < 2) return;
    // which outlive the body: memory can be freed, and a team left, when all grids have ended
    std::optional<ones> data[2];
    std::optional<ddl::cuda_peer> teams[2];
    std::atomic<bool> launched{false};
    std::atomic<bool> goes_on{false};
    std::string left;
    try {
        ddl::cuda_peer::run(
            2,
            [&](ddl::cuda_peer& whole) {
                const auto good = [&](cudaError_t status) {
                    ddl::require_cuda(status, "streams", whole.rank(), whole.device());
                };
                std::optional<ddl::cuda_peer>& kept = teams[whole.rank()];
                ddl::cuda_peer& team = in_a_part ? kept.emplace(whole.split(0, whole.rank())) : whole;
                const std::span<float> values = data[team.rank()].emplace().values();
                cudaStream_t stream = nullptr;
                good(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
                auto queued = team.on(stream);
                if (team.rank() == 1)
                    good(cudaLaunchHostFunc(
                        stream,
                        [](void* flag) {
                            while (!*static_cast<std::atomic<bool>*>(flag))
                                std::this_thread::sleep_for(std::chrono::milliseconds{1});
                        },
                        &goes_on));
                const ddl::request sum = ddl::allreduce_async(queued, values);
                ddl::allreduce(queued, values);
                if (team.rank() == 1) {
                    while (!launched) std::this_thread::yield();
                    throw std::logic_error("of its own");
                }
                launched = true;
                team.set_timeout(ddl::timeout{0.2});  // to wait for grids of peers; blocks have been told another
                const ddl::error of_request = error_of([&] { sum.wait(); });
                const ddl::error of_stream = error_of([&] { queued.wait(); });
                goes_on = true;
                require(std::strstr(of_request.what(), "left with an exception") != nullptr, of_request.what());
                require(std::strstr(of_stream.what(), "left with an exception") != nullptr, of_stream.what());
            },
            ddl::timeout{600});
    } catch (const std::logic_error& first) { left = first.what(); }
    require(left == "of its own", "a body's exception is what the run throws");
}

/// Tensors that say when they are looked at.
struct watched_tensors {
    std::vector<std::span<float>> all;
    std::function<void()> looked_at;

    auto begin() const {
        looked_at();
        return all.begin();
    }
    auto end() const { return all.end(); }
};

/// Two GPUs that meet, and one rank fails when the other has launched, with blocks that would wait for long: that grid, which may
/// reach the buffers of both, is told to stop, though only the hosts have heard of the failure.
void no_grid_outlives_a_call_that_fails() {
    if (ddl::require_devices("gpu_double.calls") < 2) return;
    cudaStream_t streams[2] = {};
    ddl::cuda_peer::run(
        2,
        [&](ddl::cuda_peer& team) {
            const ones data;
            cudaStream_t& stream = streams[team.rank()];
            ddl::require_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "streams", team.rank(), 0);
            auto queued = team.on(stream);
            int looks = 0;
            ddl::allreduce_n(queued, watched_tensors{{data.values()}, [&] { ++looks; }});
            queued.wait();
            ddl::barrier(team);
            const auto fails_at_the_last = [&] {  // where a rank launches
                if (--looks != 0 || team.rank() == 0) return;
                while (cudaStreamQuery(streams[0]) == cudaSuccess) std::this_thread::yield();
                static_cast<void>(cudaGetLastError());
                throw ddl::error(ddl::errc::system, "test", 1, -1, "a tensor that is none");
            };
            const ddl::error failure = error_of([&] {
                ddl::allreduce_n(queued, watched_tensors{{data.values()}, fails_at_the_last});
            });
            require(failure.code() != no_error, "the call ended well");
            for (ddl::patience waiting{ddl::timeout{30}}; cudaStreamQuery(stream) != cudaSuccess;) {
                static_cast<void>(cudaGetLastError());
                require(!waiting.pause() || !waiting.expired(), "its grid still runs");
            }
        },
        ddl::timeout{90});
}

/// Ranks of which not all are captured, or those of one GPU each by itself: all are told, and the next call goes well, of a team
/// that shares their GPUs, too.
void captures_apart(int ranks, const std::vector<int>& of_ranks) {
    ddl::cuda_peer::run(
        ranks,
        [&](ddl::cuda_peer& team) {
            const auto good = [&](cudaError_t status) {
                ddl::require_cuda(status, "captures", team.rank(), team.device());
            };
            const ones data;
            cudaStream_t stream = nullptr;
            good(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
            float sum = 1;
            ddl::cuda_peer part = team.split(0, team.rank());
            for (const int captures : of_ranks) {
                const bool is_captured = team.rank() < captures;
                if (is_captured) good(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
                require_error(ddl::errc::invalid_argument,
                              "is under another stream capture, or under none; capture on no rank or on all, in one "
                              "capture on all ranks of a GPU",
                              [&] { ddl::allreduce(team.on(stream), data.values()); });
                cudaGraph_t graph = nullptr;
                if (is_captured) good(cudaStreamEndCapture(stream, &graph));
                if (graph != nullptr) good(cudaGraphDestroy(graph));
                for (ddl::cuda_peer* const each : {&part, &team}) {
                    ddl::allreduce(*each, data.values());
                    require(data.last() == (sum *= static_cast<float>(team.size())), "a sum afterwards");
                }
            }
            good(cudaStreamDestroy(stream));
        },
        ddl::timeout{10});
}

/// What a graph cannot hold is refused, and spoils neither the capture nor the team: a wait, and a request of a default stream, which
/// is another one for the thread that carries it out.
void captures_refuse_what_is_not_captured() {
    ddl::cuda_peer::run(
        2,
        [&](ddl::cuda_peer& team) {
            const auto good = [&](cudaError_t status) {
                ddl::require_cuda(status, "captures", team.rank(), team.device());
            };
            const ones data;
            auto queued = team.on(cudaStreamPerThread);
            cudaGraph_t graph = nullptr;
            ddl::barrier(team);  // no capture suffers a copy by the legacy stream of its GPU
            good(cudaStreamBeginCapture(cudaStreamPerThread, cudaStreamCaptureModeRelaxed));
            require_error(ddl::errc::invalid_argument, "under capture", [&] { queued.wait(); });
            require_error(ddl::errc::invalid_argument, "a default stream is under capture",
                          [&] { ddl::allreduce_async(queued, data.values()).wait(); });
            good(cudaStreamEndCapture(cudaStreamPerThread, &graph));
            ddl::barrier(team);
            good(cudaGraphDestroy(graph));
            require(data.last() == 1, "something has run");
            ddl::allreduce(queued, data.values());
            queued.wait();
            require(data.last() == 2, "a sum afterwards");
        },
        ddl::timeout{10});
}

/// Setting it would make its primary context current, where the program may have made another one so.
void a_device_that_is_current_is_left_alone() {
    static_cast<void>(cuda_double::calls());
    { const ddl::device_scope scope{0, 0}; }
    require(cuda_double::calls()["cudaSetDevice"] == 0, "the current device was set");
}

/// Of tensors that lie in one allocation the runtime is asked once, and again where the next one lies elsewhere.
void an_allocation_is_asked_for_once() {
    ddl::cuda_peer::run(2, [](ddl::cuda_peer& team) {
        const ones first;
        const ones second;
        const auto asked = [&](const std::vector<std::span<float>>& tensors) {
            ddl::barrier(team);
            if (team.rank() == 0) static_cast<void>(cuda_double::calls());
            ddl::barrier(team);
            ddl::allreduce_n(team, tensors);
            ddl::barrier(team);
            const int times = team.rank() == 0 ? cuda_double::calls()["cudaPointerGetAttributes"] : 0;
            ddl::barrier(team);
            return times;
        };
        const std::span<float> all = first.values();
        const int apart = asked({all.first(ones::count / 2), second.values(), all.subspan(ones::count / 2)});
        const int together = asked({all.first(1), all.subspan(1, 5), all.subspan(ones::count - 1)});
        require(team.rank() != 0 || (apart == 2 * 3 && together == 2), "the runtime is asked for each allocation");
        require(first.last() == 4 && second.last() == 2, "the sums");
    });
}

void devices_that_cannot_take_part() {
    const auto refused = [](const char* words) {
        require_error(ddl::errc::system, words, [] { ddl::cuda_peer::run(2, [](ddl::cuda_peer&) {}); });
    };
    cuda_double::set_abilities(true, false);
    refused("CUDA device 0 runs no cooperative launch");
    cuda_double::set_abilities(false, true);
    if (ddl::require_devices("gpu_double.calls") > 1)
        refused("CUDA device 0 cannot reach the memory of device 1; use ddl::staged");
    else ddl::cuda_peer::run(2, [](ddl::cuda_peer&) {});  // who need not
    cuda_double::set_abilities(true, true);
}

}  // namespace

int main() {
    return on_a_gpu("gpu_double.calls", [] {
        calls_keep_to_their_streams();
        a_body_that_leaves_stops_its_peers(false);
        a_body_that_leaves_stops_its_peers(true);
        no_grid_outlives_a_call_that_fails();
        captures_apart(3, {1, 3});
        captures_apart(2, {1});
        captures_refuse_what_is_not_captured();
        a_device_that_is_current_is_left_alone();
        an_allocation_is_asked_for_once();
        devices_that_cannot_take_part();
        every_call_may_fail("cuda_peer", peers);
        every_call_may_fail("staged", stages);
    });
}
