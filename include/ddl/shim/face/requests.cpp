// SPDX-License-Identifier: Apache-2.0
#include <ddl/shim/objects.hpp>

#include <cmath>
#include <poll.h>
#include <utility>

using namespace ddl::shim;

namespace {

using handles = handle<ddl_request>;

/// Calls `use(progress)` for a request that is held.
template <class Use>
ddl_status with_request(ddl_request* request, const char* operation, Use use) noexcept {
    const handles::user here{request};
    if (!here)
        return refused(DDL_INVALID_ARGUMENT, operation, -1,
                       "this is %sno request; start a collective, and use its request until ddl_free_request",
                       marked::instead(request));
    progress& call = *request->call;
    if (request->forks != forks::so_far() && !call.done.is_over()) return refused_to_child(operation, -1);
    ddl_status status = DDL_OK;
    const ddl_status asked = guarded(this_thread, operation, [&] { status = use(call); });
    return asked != DDL_OK ? asked : status;
}

ddl_status outcome(const progress& call) noexcept {
    return call.status == DDL_OK ? DDL_OK : this_thread(call.status, call.words.c_str());
}

/// Waits for `seconds` at most: the event of the request becomes readable when it is done.
bool done_within(const progress& call, double seconds) {
    if (call.done.test()) return true;
    if (!(seconds > 0)) return false;
    const double end = ddl::now() + seconds;
    pollfd watched{call.done.descriptor(), POLLIN, 0};
    for (double left = seconds; left > 0; left = end - ddl::now()) {
        const int milliseconds = static_cast<int>(std::ceil(std::min(left, 1e6) * 1000));
        if (::poll(&watched, 1, milliseconds) != 0) break;
    }
    return call.done.test();
}

ddl_status wait(ddl_request* request, const char* operation, double seconds, int* done) noexcept {
    if (done == nullptr)
        return refused(DDL_INVALID_ARGUMENT, operation, -1, "done is NULL; pass where the answer is to go");
    *done = 0;
    return with_request(request, operation, [&](progress& call) -> ddl_status {
        if (!done_within(call, seconds)) return DDL_OK;
        *done = 1;
        return outcome(call);
    });
}

}  // namespace

extern "C" {

ddl_status ddl_wait_request(ddl_request* request) {
    return with_request(request, "wait_request", [](progress& call) -> ddl_status {
        call.done.wait();
        return outcome(call);
    });
}

ddl_status ddl_wait_request_for(ddl_request* request, double seconds, int* done) {
    return wait(request, "wait_request_for", seconds, done);
}
ddl_status ddl_test_request(ddl_request* request, int* done) { return wait(request, "test_request", 0, done); }

ddl_status ddl_on_completion(ddl_request* request, ddl_callback then, void* context) {
    if (then == nullptr)
        return refused(DDL_INVALID_ARGUMENT, "on_completion", -1, "the callback is NULL; pass a function");
    return with_request(request, "on_completion", [&](progress& call) -> ddl_status {
        call.done.on_completion([kept = request->call, then, context](std::exception_ptr) {
            struct calling_back {
                bool before = std::exchange(is_calling_back, true);
                ~calling_back() { is_calling_back = before; }
            } const meanwhile;
            then(kept->status, kept->words.c_str(), context);
        });
        return DDL_OK;
    });
}

ddl_status ddl_get_descriptor(ddl_request* request, int* descriptor) {
    if (descriptor == nullptr)
        return refused(DDL_INVALID_ARGUMENT, "get_descriptor", -1, "descriptor is NULL; pass where it is to go");
    return with_request(request, "get_descriptor", [&](progress& call) -> ddl_status {
        *descriptor = call.done.descriptor();
        return DDL_OK;
    });
}

ddl_status ddl_free_request(ddl_request* request) {
    if (request == nullptr) return DDL_OK;
    if (!handles::alive(request) || !handles::bury(request))
        return refused(DDL_INVALID_ARGUMENT, "free_request", -1, "this is %sno request; free each once",
                       marked::instead(request));
    handles::leave(request);
    return DDL_OK;
}

}  // extern "C"
