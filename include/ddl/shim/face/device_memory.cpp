// SPDX-License-Identifier: Apache-2.0
#include <ddl/error.hpp>
#include <ddl/shim/device_memory.hpp>
#include <ddl/shim/forks.hpp>

#include <atomic>
#include <cstdint>
#include <dlfcn.h>
#include <link.h>

namespace ddl::shim {
namespace {

// Of cuda.h, whose numbers never change.
enum status { success = 0, out_of_memory = 2, not_initialized = 3, deinitialized = 4, stub = 34, no_device = 100 };
enum attribute { context = 1, kind = 2, managed = 8, ordinal = 9 };
constexpr unsigned device_kind = 2;
constexpr unsigned portable = 1;
constexpr unsigned without_time = 2;  // of events, which then cost less

unsigned long long address_of(const void* data) noexcept { return reinterpret_cast<std::uintptr_t>(data); }

/// How many libraries this process has ever loaded.
unsigned long long libraries_so_far() noexcept {
    unsigned long long loaded = 0;
    ::dl_iterate_phdr(
        [](dl_phdr_info* first, std::size_t, void* result) {
            *static_cast<unsigned long long*>(result) = first->dlpi_adds;
            return 1;
        },
        &loaded);
    return loaded;
}

}  // namespace

const device_memory* device_memory::here() noexcept {
    static std::atomic<const device_memory*> found{nullptr};
    static std::atomic<unsigned long long> looked{0};  // when so many libraries were loaded
    if (const device_memory* const known = found.load(std::memory_order_acquire)) return known;
    const std::lock_guard lock{forks::held_off()};  // to ask takes a lock of the loader
    const unsigned long long now = libraries_so_far();
    if (looked.load(std::memory_order_relaxed) == now) return nullptr;
    if (void* const driver = ::dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW)) {
        static device_memory its;
        static const bool is_complete = its.find_all(driver);
        if (is_complete) found.store(&its, std::memory_order_release);
    }
    looked.store(now, std::memory_order_relaxed);
    return found.load(std::memory_order_acquire);
}

bool device_memory::find_all(void* driver) noexcept {
    const auto find = [driver]<class... Arguments>(function<Arguments...>& one) {
        one.call = reinterpret_cast<int (*)(Arguments...)>(::dlsym(driver, one.name));
        return one.call != nullptr;
    };
    const auto all = [&](auto&... each) { return (... && find(each)); };
    return all(words_, locate_, start_, count_, current_, make_current_, device_, retain_, release_, push_, pop_,
               synchronize_, copy_, make_stream_, end_stream_, make_event_, end_event_, mark_, await_, fetch_, store_,
               pin_, unpin_);
}

template <class... Declared, class... Arguments>
void device_memory::call(const function<Declared...>& what, Arguments... arguments) const {
    const int status = what.call(arguments...);
    if (status == success) return;
    const char* words = nullptr;
    if (words_.call(status, &words) != success || words == nullptr) words = "an error that it does not know";
    throw error(status == out_of_memory ? errc::out_of_memory : errc::system, what.name, -1, -1,
                "the CUDA driver says %d, %s; see what the device did before", status, words);
}

device_memory::located device_memory::locate(const void* data) const {
    located result;
    int asked[] = {kind, ordinal, managed, context};
    void* answers[] = {&result.kind, &result.device, &result.managed, &result.context};
    const int status = locate_.call(4, asked, answers, address_of(data));
    for (const int nobody_has_any : {not_initialized, deinitialized, stub, no_device})
        if (status == nobody_has_any) return {};
    if (status != success) call(locate_, 4U, asked, answers, address_of(data));  // which throws the words
    return result;
}

void device_memory::choose(int number) const {
    int devices = 0;
    void* chosen = nullptr;
    const bool is_up = start_.call(0) == success && count_.call(&devices) == success;
    if (!is_up || devices == 0 || (current_.call(&chosen) == success && chosen != nullptr)) return;
    int device = 0;
    call(device_, &device, number % devices);
    call(retain_, &chosen, device);  // for as long as the process lives
    call(make_current_, chosen);
}

bool device_memory::holds(const void* data) const {
    const located place = locate(data);
    return place.kind == device_kind && place.managed == 0;
}
void* device_memory::context_of(const void* data) const {
    located place = locate(data);
    if (place.context != nullptr) return place.context;
    int device = 0;  // memory of a pool belongs to no context
    call(device_, &device, place.device);
    call(retain_, &place.context, device);
    call(release_, device);  // the memory's owner keeps it too
    return place.context;
}
void device_memory::enter(void* context) const { call(push_, context); }
void device_memory::leave() const noexcept {
    void* left = nullptr;
    pop_.call(&left);
}
void device_memory::synchronize() const { call(synchronize_); }
void device_memory::copy(void* to, const void* from, std::size_t bytes) const {
    call(copy_, address_of(to), address_of(from), bytes);
}
void* device_memory::make_stream() const {
    void* made = nullptr;
    call(make_stream_, &made, 0U);
    return made;
}
void* device_memory::make_event() const {
    void* made = nullptr;
    call(make_event_, &made, without_time);
    return made;
}
void device_memory::end_stream(void* stream) const noexcept { end_stream_.call(stream); }
void device_memory::end_event(void* event) const noexcept { end_event_.call(event); }
void device_memory::fetch(void* host, const void* device, std::size_t bytes, void* stream) const {
    call(fetch_, host, address_of(device), bytes, stream);
}
void device_memory::store(void* device, const void* host, std::size_t bytes, void* stream) const {
    call(store_, address_of(device), host, bytes, stream);
}
void device_memory::mark(void* event, void* stream) const { call(mark_, event, stream); }
void device_memory::await(void* event) const { call(await_, event); }
bool device_memory::pin(void* host, std::size_t bytes) const noexcept {
    return pin_.call(host, bytes, portable) == success;
}
void device_memory::unpin(void* host) const noexcept { unpin_.call(host); }

}  // namespace ddl::shim
