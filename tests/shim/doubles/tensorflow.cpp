// SPDX-License-Identifier: Apache-2.0
#include "tensorflow.hpp"

#include <cstring>
#include <functional>
#include <numeric>

tensorflow_double double_of_tensorflow;

namespace {

constexpr int invalid_argument = 3;
constexpr int not_found = 5;

void set(TF_Status* status, int code, const char* words) {
    status->code = code;
    status->words = words;
}

std::size_t bytes_of(int type) {
    static const std::map<int, std::size_t> bytes{{1, 4},  {2, 8},  {3, 4},  {4, 1},   {5, 2},  {6, 1},  {8, 8}, {9, 8},
                                                  {10, 1}, {14, 2}, {17, 2}, {18, 16}, {19, 2}, {22, 4}, {23, 8}};
    return bytes.at(type);
}

TF_Tensor* handed_out(const TF_Tensor& tensor) {
    ++double_of_tensorflow.tensors;
    return new TF_Tensor{tensor};
}

/// The attribute of that name and type; nullptr, with a status that says so, if there is none.
template <class Value>
const Value* found(const TF_OpKernelConstruction* kernel, const char* name, TF_Status* status) {
    const auto place = kernel->attributes.find(name);
    const Value* const value = place == kernel->attributes.end() ? nullptr : std::get_if<Value>(&place->second);
    set(status, value == nullptr ? not_found : 0, value == nullptr ? name : "");
    return value;
}

}  // namespace

extern "C" {

TF_Status* TF_NewStatus() {
    ++double_of_tensorflow.statuses;
    return new TF_Status;
}
void TF_DeleteStatus(TF_Status* status) {
    --double_of_tensorflow.statuses;
    delete status;
}
void TF_SetStatus(TF_Status* status, int code, const char* words) { set(status, code, words); }
int TF_GetCode(const TF_Status* status) { return status->code; }
const char* TF_Message(const TF_Status* status) { return status->words.c_str(); }

TF_OpDefinitionBuilder* TF_NewOpDefinitionBuilder(const char* name) {
    auto* const made = new TF_OpDefinitionBuilder;
    made->name = name;
    return made;
}
void TF_OpDefinitionBuilderAddInput(TF_OpDefinitionBuilder* to, const char* words) { to->inputs.emplace_back(words); }
void TF_OpDefinitionBuilderAddOutput(TF_OpDefinitionBuilder* to, const char* words) { to->outputs.emplace_back(words); }
void TF_OpDefinitionBuilderAddAttr(TF_OpDefinitionBuilder* to, const char* words) {
    to->attributes.emplace_back(words);
}
void TF_OpDefinitionBuilderSetIsStateful(TF_OpDefinitionBuilder* to, bool is) { to->is_stateful = is; }
void TF_OpDefinitionBuilderSetShapeInferenceFunction(TF_OpDefinitionBuilder* to,
                                                     void (*shapes)(TF_ShapeInferenceContext*, TF_Status*)) {
    to->shapes = shapes;
}
void TF_RegisterOpDefinition(TF_OpDefinitionBuilder* made, TF_Status* status) {
    const std::unique_ptr<TF_OpDefinitionBuilder> owned{made};
    if (double_of_tensorflow.refuses) return set(status, invalid_argument, "no operator is wanted");
    set(status, 0, "");
    double_of_tensorflow.definitions[made->name] = *made;
}

std::int64_t TF_ShapeInferenceContextNumInputs(TF_ShapeInferenceContext* asked) {
    return static_cast<std::int64_t>(asked->inputs.size());
}
TF_ShapeHandle* TF_NewShapeHandle() {
    ++double_of_tensorflow.shapes;
    return new TF_ShapeHandle;
}
void TF_DeleteShapeHandle(TF_ShapeHandle* shape) {
    --double_of_tensorflow.shapes;
    delete shape;
}
TF_ShapeHandle* TF_ShapeInferenceContextScalar(TF_ShapeInferenceContext*) {
    ++double_of_tensorflow.shapes;
    return new TF_ShapeHandle{"scalar"};
}
void TF_ShapeInferenceContextGetInput(TF_ShapeInferenceContext* asked, int i, TF_ShapeHandle* shape,
                                      TF_Status* status) {
    set(status, 0, "");
    *shape = asked->inputs.at(static_cast<std::size_t>(i));
}
void TF_ShapeInferenceContextSetOutput(TF_ShapeInferenceContext* asked, int i, TF_ShapeHandle* shape,
                                       TF_Status* status) {
    set(status, 0, "");
    asked->outputs[i] = *shape;
}

TF_KernelBuilder* TF_NewKernelBuilder(const char* operation, const char* device,
                                      void* (*create)(TF_OpKernelConstruction*),
                                      void (*compute)(void*, TF_OpKernelContext*), void (*destroy)(void*)) {
    return new TF_KernelBuilder{operation, device, create, compute, destroy, {}, {}};
}
void TF_KernelBuilder_TypeConstraint(TF_KernelBuilder* to, const char* attribute, int type, TF_Status* status) {
    set(status, 0, "");
    to->types[attribute] = type;
}
void TF_KernelBuilder_HostMemory(TF_KernelBuilder* to, const char* argument) { to->on_host.emplace_back(argument); }
void TF_RegisterKernelBuilder(const char*, TF_KernelBuilder* made, TF_Status* status) {
    const std::unique_ptr<TF_KernelBuilder> owned{made};
    set(status, 0, "");
    double_of_tensorflow.kernels.push_back(*made);
}

void TF_OpKernelConstruction_Failure(TF_OpKernelConstruction* kernel, TF_Status* status) { kernel->failure = *status; }
void TF_OpKernelConstruction_GetAttrSize(TF_OpKernelConstruction* kernel, const char* name, std::int32_t* elements,
                                         std::int32_t* bytes, TF_Status* status) {
    const auto* const value = found<std::string>(kernel, name, status);
    *elements = -1;
    *bytes = value == nullptr ? 0 : static_cast<std::int32_t>(value->size());
}
void TF_OpKernelConstruction_GetAttrString(TF_OpKernelConstruction* kernel, const char* name, char* to,
                                           std::size_t capacity, TF_Status* status) {
    if (const auto* const value = found<std::string>(kernel, name, status)) std::memcpy(to, value->data(), capacity);
}
void TF_OpKernelConstruction_GetAttrFloat(TF_OpKernelConstruction* kernel, const char* name, float* to,
                                          TF_Status* status) {
    if (const auto* const value = found<float>(kernel, name, status)) *to = *value;
}
void TF_OpKernelConstruction_GetAttrBool(TF_OpKernelConstruction* kernel, const char* name, unsigned char* to,
                                         TF_Status* status) {
    if (const auto* const value = found<bool>(kernel, name, status)) *to = *value ? 1 : 0;
}

int TF_NumInputs(TF_OpKernelContext* run) { return static_cast<int>(run->inputs.size()); }
void TF_GetInput(TF_OpKernelContext* run, int i, TF_Tensor** tensor, TF_Status* status) {
    set(status, 0, "");
    *tensor = handed_out(run->inputs.at(static_cast<std::size_t>(i)));
}
TF_Tensor* TF_AllocateOutput(TF_OpKernelContext* run, int i, int type, const std::int64_t* extents, int axes,
                             std::size_t bytes, TF_Status* status) {
    set(status, 0, "");
    run->outputs[i] = {type, {extents, extents + axes}, std::make_shared<std::vector<std::byte>>(bytes)};
    return handed_out(run->outputs[i]);
}
TF_Tensor* TF_ForwardInputOrAllocateOutput(TF_OpKernelContext* run, const int* candidates, int count, int i,
                                           const std::int64_t* extents, int axes, int* forwarded, TF_Status* status) {
    for (int each = 0; each < count; ++each)
        if (TF_Tensor& in = run->inputs.at(static_cast<std::size_t>(candidates[each])); in.memory.use_count() == 1) {
            set(status, 0, "");
            ++double_of_tensorflow.forwarded;
            *forwarded = candidates[each];
            run->outputs[i] = {in.type, {extents, extents + axes}, in.memory};
            return handed_out(run->outputs[i]);
        }
    *forwarded = -1;
    const int type = run->inputs.at(static_cast<std::size_t>(i)).type;
    const auto elements = std::accumulate(extents, extents + axes, std::int64_t{1}, std::multiplies{});
    return TF_AllocateOutput(run, i, type, extents, axes, static_cast<std::size_t>(elements) * bytes_of(type), status);
}
void TF_OpKernelContext_Failure(TF_OpKernelContext* run, TF_Status* status) { run->failure = *status; }

int TF_TensorType(const TF_Tensor* tensor) { return tensor->type; }
int TF_NumDims(const TF_Tensor* tensor) { return static_cast<int>(tensor->extents.size()); }
std::int64_t TF_Dim(const TF_Tensor* tensor, int axis) { return tensor->extents.at(static_cast<std::size_t>(axis)); }
void* TF_TensorData(const TF_Tensor* tensor) { return tensor->memory->data(); }
std::size_t TF_TensorByteSize(const TF_Tensor* tensor) { return tensor->memory->size(); }
void TF_DeleteTensor(TF_Tensor* tensor) {
    --double_of_tensorflow.tensors;
    delete tensor;
}

}  // extern "C"
