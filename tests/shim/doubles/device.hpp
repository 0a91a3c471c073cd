// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <dlfcn.h>
#include <new>
#include <stdexcept>
#include <vector>

#include "cuda.hpp"

// What a program has of a GPU, by the driver's double; DDL_TEST_CUDA is its file.

/// The driver's double, loaded as programs load the driver.
struct loaded_driver {
    loaded_driver() : library{::dlopen(DDL_TEST_CUDA, RTLD_NOW)} {
        if (library == nullptr) throw std::runtime_error(::dlerror());
    }
    template <class Function>
    Function* find(const char* name) const {
        return reinterpret_cast<Function*>(::dlsym(library, name));
    }
    void* library;
};
inline const loaded_driver& driver() {
    static const loaded_driver its;
    return its;
}
inline cuda_double& seen() {
    static auto& its = *driver().find<cuda_double>("double_of_cuda");
    return its;
}

/// What a thread has after cudaSetDevice.
struct chosen_device {
    chosen_device() {
        driver().find<int(void**, int)>("cuDevicePrimaryCtxRetain")(&context, 0);
        driver().find<int(void*)>("cuCtxPushCurrent_v2")(context);
    }
    chosen_device(const chosen_device&) = delete;
    chosen_device& operator=(const chosen_device&) = delete;
    ~chosen_device() { driver().find<int(void**)>("cuCtxPopCurrent_v2")(&context); }
    void* context = nullptr;
};

/// Elements in a device, where only copies reach them.
template <class Element = float>
class device {
public:
    explicit device(const std::vector<Element>& values, bool managed = false) : count_{values.size()} {
        const std::size_t room = bytes() + 1;
        const int status =
            managed ? driver().find<int(unsigned long long*, std::size_t, unsigned)>("cuMemAllocManaged")(&at_, room, 1)
                    : driver().find<int(unsigned long long*, std::size_t)>("cuMemAlloc_v2")(&at_, room);
        if (status != 0) throw std::bad_alloc{};
        copy(at_, address(values.data()));
    }
    device(const device&) = delete;
    device& operator=(const device&) = delete;
    ~device() { driver().find<int(unsigned long long)>("cuMemFree_v2")(at_); }

    Element* data() const { return reinterpret_cast<Element*>(at_); }
    std::vector<Element> get() const {
        std::vector<Element> values(count_);
        copy(address(values.data()), at_);
        return values;
    }

private:
    static unsigned long long address(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }
    std::size_t bytes() const { return count_ * sizeof(Element); }
    void copy(unsigned long long to, unsigned long long from) const {
        const chosen_device chosen;
        driver().find<int(unsigned long long, unsigned long long, std::size_t)>("cuMemcpy")(to, from, bytes());
    }

    unsigned long long at_ = 0;
    std::size_t count_;
};
