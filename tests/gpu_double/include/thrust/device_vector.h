// SPDX-License-Identifier: Apache-2.0
#pragma once
// Vectors in memory of the double's devices. All they do goes through cudaMemcpy, on the default stream.

#include <thrust/execution_policy.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <vector>

namespace thrust {

template <class Element>
class device_ptr {
public:
    explicit device_ptr(Element* place) : place_{place} {}
    Element* get() const { return place_; }

private:
    Element* place_;
};
template <class Element>
Element* raw_pointer_cast(device_ptr<Element> place) {
    return place.get();
}
template <class Element>
Element* raw_pointer_cast(Element* place) {
    return place;
}

inline void require(cudaError_t status) {
    if (status != cudaSuccess) throw std::bad_alloc{};
}

/// An element on a device, read and written by itself.
template <class Element>
class device_reference {
public:
    explicit device_reference(Element* place) : place_{place} {}
    operator Element() const {
        Element value{};
        require(cudaMemcpy(&value, place_, sizeof value, cudaMemcpyDefault));
        return value;
    }
    device_reference& operator=(Element value) {
        require(cudaMemcpy(place_, &value, sizeof value, cudaMemcpyDefault));
        return *this;
    }

private:
    Element* place_;
};

/// A place in a vector on a device.
template <class Element>
struct device_iterator {
    Element* place;
    friend std::ptrdiff_t operator-(device_iterator left, device_iterator right) { return left.place - right.place; }
};

/// Reads a device's elements all at once.
template <class Element>
std::vector<Element> fetched(device_iterator<Element> first, device_iterator<Element> last) {
    std::vector<Element> values(static_cast<std::size_t>(last - first));
    if (!values.empty())
        require(cudaMemcpy(values.data(), first.place, values.size() * sizeof(Element), cudaMemcpyDefault));
    return values;
}
template <class Element, class Output>
Output copy(device_iterator<Element> first, device_iterator<Element> last, Output out) {
    const std::vector<Element> values = fetched(first, last);
    return std::copy(values.begin(), values.end(), out);
}
template <class Element>
bool equal(device_iterator<Element> first, device_iterator<Element> last, device_iterator<Element> other) {
    return fetched(first, last) == fetched(other, {other.place + (last - first)});
}

/// A vector in memory that `Allocate` gives.
template <class Element, auto Allocate>
class vector_of {
public:
    using value_type = Element;

    vector_of() = default;
    explicit vector_of(std::size_t count) : vector_of(count, Element{}) {}
    vector_of(std::size_t count, Element value) { assign(count, value); }
    vector_of(const std::vector<Element>& values) { hold(values); }
    vector_of(const vector_of& other) : vector_of(fetched(other.begin(), other.end())) {}
    vector_of(vector_of&& other) noexcept
        : data_{std::exchange(other.data_, nullptr)}, count_{std::exchange(other.count_, 0)} {}
    vector_of& operator=(vector_of other) noexcept {
        std::swap(data_, other.data_);
        std::swap(count_, other.count_);
        return *this;
    }
    ~vector_of() { static_cast<void>(cudaFree(data_)); }

    operator std::vector<Element>() const { return fetched(begin(), end()); }
    void assign(std::size_t count, Element value) { hold(std::vector<Element>(count, value)); }

    device_ptr<Element> data() { return device_ptr<Element>{data_}; }
    device_ptr<const Element> data() const { return device_ptr<const Element>{data_}; }
    std::size_t size() const { return count_; }
    device_iterator<Element> begin() const { return {data_}; }
    device_iterator<Element> end() const { return {data_ + count_}; }
    device_reference<Element> operator[](std::size_t i) { return device_reference<Element>{data_ + i}; }
    friend bool operator==(const vector_of& left, const vector_of& right) {
        return fetched(left.begin(), left.end()) == fetched(right.begin(), right.end());
    }

private:
    void hold(const std::vector<Element>& values) {
        require(cudaFree(std::exchange(data_, nullptr)));
        count_ = 0;
        void* place = nullptr;
        require(Allocate(&place, values.size() * sizeof(Element)));
        data_ = static_cast<Element*>(place);
        count_ = values.size();
        if (count_ != 0) require(cudaMemcpy(data_, values.data(), count_ * sizeof(Element), cudaMemcpyDefault));
    }

    Element* data_ = nullptr;
    std::size_t count_ = 0;
};

inline cudaError_t allocate_device(void** data, std::size_t bytes) { return cudaMalloc(data, bytes); }
inline cudaError_t allocate_managed(void** data, std::size_t bytes) { return cudaMallocManaged(data, bytes); }

template <class Element>
using device_vector = vector_of<Element, &allocate_device>;
template <class Element>
using universal_vector = vector_of<Element, &allocate_managed>;
template <class Element>
using host_vector = std::vector<Element>;

}  // namespace thrust
