// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

/// The part of TensorFlow's C interface that the operators stand on, declared anew: functions that have stayed as they are in TensorFlow 2, so
/// that a library built without TensorFlow serves all of its versions. They are looked for in the process that loads it.
namespace ddl::shim::tensorflow {

// TensorFlow's own objects, which only it looks into.
struct status;
struct tensor;
struct definition;    // of an operator
struct registration;  // of a kernel
struct construction;  // of a kernel, under way
struct context;       // of a run of a kernel
struct shape_question;
struct shape;

/// The numbers of TensorFlow for what elements are.
enum data_type : int {
    of_float = 1,
    of_double = 2,
    of_int32 = 3,
    of_uint8 = 4,
    of_int16 = 5,
    of_int8 = 6,
    of_complex_float = 8,
    of_int64 = 9,
    of_bool = 10,
    of_bfloat16 = 14,
    of_uint16 = 17,
    of_complex_double = 18,
    of_half = 19,
    of_uint32 = 22,
    of_uint64 = 23,
};

/// The numbers of TensorFlow for what goes wrong. Two are left out: on `aborted` and `unavailable` sessions that recover by
/// themselves try again and again.
enum code : int {
    ok = 0,
    cancelled = 1,
    invalid_argument = 3,
    deadline_exceeded = 4,
    resource_exhausted = 8,
    failed_precondition = 9,
    unimplemented = 12,
    internal = 13,
};

/// TensorFlow's functions, by their names without `TF_`.
struct c_api {
    status* (*new_status)();
    void (*delete_status)(status*);
    void (*set_status)(status*, code, const char* words);
    code (*get_code)(const status*);
    const char* (*message)(const status*);

    definition* (*new_definition)(const char* name);
    void (*add_input)(definition*, const char* words);
    void (*add_output)(definition*, const char* words);
    void (*add_attribute)(definition*, const char* words);
    void (*set_is_stateful)(definition*, bool);
    void (*set_shape_function)(definition*, void (*)(shape_question*, status*));
    void (*register_definition)(definition*, status*);

    std::int64_t (*count_inputs_of_shape)(shape_question*);
    shape* (*new_shape)();
    void (*delete_shape)(shape*);
    shape* (*scalar)(shape_question*);
    void (*get_input_shape)(shape_question*, int, shape*, status*);
    void (*set_output_shape)(shape_question*, int, shape*, status*);

    registration* (*new_kernel)(const char* operation, const char* device, void* (*create)(construction*),
                                void (*compute)(void*, context*), void (*destroy)(void*));
    void (*constrain_type)(registration*, const char* attribute, data_type, status*);
    void (*keep_on_host)(registration*, const char* argument);
    void (*register_kernel)(const char* name, registration*, status*);

    void (*fail_construction)(construction*, status*);
    void (*get_attribute_size)(construction*, const char* name, std::int32_t* elements, std::int32_t* bytes, status*);
    void (*get_string)(construction*, const char* name, char* value, std::size_t capacity, status*);
    void (*get_float)(construction*, const char* name, float* value, status*);
    void (*get_bool)(construction*, const char* name, unsigned char* value, status*);

    int (*count_inputs)(context*);
    void (*get_input)(context*, int, tensor**, status*);
    tensor* (*allocate_output)(context*, int, data_type, const std::int64_t* extents, int axes, std::size_t bytes,
                               status*);
    tensor* (*forward_or_allocate)(context*, const int* candidates, int count, int output, const std::int64_t* extents,
                                   int axes, int* forwarded, status*);
    void (*fail)(context*, status*);

    data_type (*type_of)(const tensor*);
    int (*count_axes)(const tensor*);
    std::int64_t (*extent)(const tensor*, int axis);
    void* (*data)(const tensor*);
    std::size_t (*bytes)(const tensor*);
    void (*delete_tensor)(tensor*);

    /// The functions of the TensorFlow that this process has loaded. False if there is none, or if it lacks one: `missing` is then
    /// the name of that, or nullptr.
    bool find(const char*& missing) noexcept;
};

}  // namespace ddl::shim::tensorflow
