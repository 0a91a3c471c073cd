// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/shim/tensorflow/c_api.hpp>
#include <ddl/shim/tensorflow/failure.hpp>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

/// What a kernel is made from and runs on, as values that clean up behind themselves.
namespace ddl::shim::tensorflow {

/// The functions that the library found when it was loaded: TensorFlow hands a kernel no place for them.
inline c_api& api() noexcept {
    static constinit c_api found{};
    return found;
}

/// Where TensorFlow's functions tell how they went.
class outcome {
public:
    outcome() : status_{api().new_status()} {}
    outcome(const outcome&) = delete;
    outcome& operator=(const outcome&) = delete;
    ~outcome() { api().delete_status(status_); }

    operator status*() const noexcept { return status_; }
    void require() const {
        if (const code kind = api().get_code(status_); kind != ok) throw failure{kind, api().message(status_)};
    }

private:
    status* status_;
};

/// A tensor of TensorFlow's; its elements lie on the host, in their order.
class held_tensor {
public:
    explicit held_tensor(tensor* held) : held_{held, api().delete_tensor} {}

    void* data() const noexcept { return api().data(held_.get()); }
    std::size_t bytes() const noexcept { return api().bytes(held_.get()); }
    data_type type() const noexcept { return api().type_of(held_.get()); }
    std::vector<std::int64_t> extents() const {
        std::vector<std::int64_t> all;
        for (int axis = 0; axis < api().count_axes(held_.get()); ++axis) all.push_back(api().extent(held_.get(), axis));
        return all;
    }

private:
    std::unique_ptr<tensor, void (*)(tensor*)> held_;
};

/// One run of a kernel.
class run {
public:
    explicit run(context* its) noexcept : its_{its} {}

    int count_inputs() const noexcept { return api().count_inputs(its_); }
    held_tensor input(int index) const {
        const outcome done;
        tensor* found = nullptr;
        api().get_input(its_, index, &found, done);
        done.require();
        return held_tensor{found};
    }
    held_tensor new_output(int index, data_type type, const std::vector<std::int64_t>& extents,
                           std::size_t bytes) const {
        const outcome done;
        tensor* const made =
            api().allocate_output(its_, index, type, extents.data(), static_cast<int>(extents.size()), bytes, done);
        done.require();
        return held_tensor{made};
    }
    /// Output `index`, of the form of that input.
    held_tensor output_like_input(int index) const {
        const held_tensor in = input(index);
        return new_output(index, in.type(), in.extents(), in.bytes());
    }
    /// The same with the elements of that input: its very memory, if nobody else wants that.
    held_tensor output_with_input(int index) const {
        const std::vector<std::int64_t> extents = input(index).extents();  // held for longer it would be in use
        const outcome done;
        int forwarded = -1;
        held_tensor made{api().forward_or_allocate(its_, &index, 1, index, extents.data(),
                                                   static_cast<int>(extents.size()), &forwarded, done)};
        done.require();
        if (forwarded != index && made.bytes() != 0) std::memcpy(made.data(), input(index).data(), made.bytes());
        return made;
    }

private:
    context* its_;
};

/// The attributes of a kernel under construction.
class attributes {
public:
    explicit attributes(construction* its) noexcept : its_{its} {}

    std::string string(const char* name) const {
        const outcome done;
        std::int32_t elements = 0;
        std::int32_t bytes = 0;
        api().get_attribute_size(its_, name, &elements, &bytes, done);
        done.require();
        std::string value(static_cast<std::size_t>(bytes), '\0');
        api().get_string(its_, name, value.data(), value.size(), done);
        done.require();
        return value;
    }
    float number(const char* name) const {
        const outcome done;
        float value = 0;
        api().get_float(its_, name, &value, done);
        done.require();
        return value;
    }
    bool truth(const char* name) const {
        const outcome done;
        unsigned char value = 0;
        api().get_bool(its_, name, &value, done);
        done.require();
        return value != 0;
    }

private:
    construction* its_;
};

/// Runs `body`; what it throws is told by `tell`, for between libraries there are no exceptions.
template <class Body, class Tell>
void told(Body body, Tell tell) noexcept {
    code kind = ok;
    std::string words;
    try {
        body();
        return;
    } catch (const failure& why) {
        kind = why.kind();
        words = why.what();
    } catch (const std::bad_alloc&) {
        kind = resource_exhausted;
        words = "no memory";
    } catch (const std::exception& why) {
        kind = internal;
        words = why.what();
    }
    const outcome failed;
    api().set_status(failed, kind, words.c_str());
    tell(failed);
}

/// The three functions that TensorFlow calls of a `Kernel`, which is made from `attributes` and called with a `run`.
template <class Kernel>
struct functions_of {
    static void* create(construction* its) noexcept {
        Kernel* made = nullptr;
        told([&] { made = new Kernel{attributes{its}}; },
             [&](const outcome& why) { api().fail_construction(its, why); });
        return made;
    }
    static void compute(void* kernel, context* its) noexcept {
        told([&] { (*static_cast<const Kernel*>(kernel))(run{its}); },
             [&](const outcome& why) { api().fail(its, why); });
    }
    static void destroy(void* kernel) noexcept { delete static_cast<Kernel*>(kernel); }
};

}  // namespace ddl::shim::tensorflow
