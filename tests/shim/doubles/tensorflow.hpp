// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

// A double of TensorFlow's C interface: it keeps what a library registers, and tests make the rest, such as the inputs of a kernel.
// It runs no graph, knows no device and does not read the words of definitions.

struct TF_Status {
    int code = 0;
    std::string words;
};
struct TF_Tensor {
    int type = 0;
    std::vector<std::int64_t> extents;
    std::shared_ptr<std::vector<std::byte>> memory;
};
struct TF_ShapeHandle {
    std::string words;
};
struct TF_ShapeInferenceContext {
    std::vector<TF_ShapeHandle> inputs;
    std::map<int, TF_ShapeHandle> outputs;
};
struct TF_OpDefinitionBuilder {
    std::string name;
    std::vector<std::string> inputs;
    std::vector<std::string> outputs;
    std::vector<std::string> attributes;
    bool is_stateful = false;
    void (*shapes)(TF_ShapeInferenceContext*, TF_Status*) = nullptr;
};
struct TF_OpKernelConstruction {
    std::map<std::string, std::variant<std::string, float, bool>> attributes;
    TF_Status failure;
};
struct TF_OpKernelContext {
    std::vector<TF_Tensor> inputs;
    std::map<int, TF_Tensor> outputs;
    TF_Status failure;
};
struct TF_KernelBuilder {
    std::string operation;
    std::string device;
    void* (*create)(TF_OpKernelConstruction*) = nullptr;
    void (*compute)(void*, TF_OpKernelContext*) = nullptr;
    void (*destroy)(void*) = nullptr;
    std::map<std::string, int> types;
    std::vector<std::string> on_host;
};

/// What tests see of the double: its symbol `double_of_tensorflow`.
struct tensorflow_double {
    std::map<std::string, TF_OpDefinitionBuilder> definitions;
    std::vector<TF_KernelBuilder> kernels;
    int tensors = 0;       // handed out and not given back
    int statuses = 0;      // the same
    int shapes = 0;        // the same
    int forwarded = 0;     // outputs that took the memory of an input
    bool refuses = false;  // to register anything
};
extern "C" tensorflow_double double_of_tensorflow;
