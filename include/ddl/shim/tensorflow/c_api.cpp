// SPDX-License-Identifier: Apache-2.0
#include <ddl/shim/loaded_library.hpp>
#include <ddl/shim/tensorflow/c_api.hpp>

#include <dlfcn.h>

namespace ddl::shim::tensorflow {
namespace {

constexpr const char* first_function = "TF_NewOpDefinitionBuilder";

/// Whether the process has TensorFlow's functions, and the handle in which `dlsym` finds them: it stays loaded as long as we do.
bool is_loaded(void*& library) noexcept {
    library = RTLD_DEFAULT;
    if (::dlsym(library, first_function) != nullptr) return true;
    library = loaded_library("tensorflow", first_function);
    return library != nullptr;
}

/// Takes functions out of a library, until one is missing.
struct taker {
    void* library = nullptr;
    const char* missing = nullptr;

    template <class Function>
    taker& take(Function*& function, const char* name) noexcept {
        if (missing != nullptr) return *this;
        function = reinterpret_cast<Function*>(::dlsym(library, name));
        if (function == nullptr) missing = name;
        return *this;
    }
};

}  // namespace

bool c_api::find(const char*& missing) noexcept {
    missing = nullptr;
    taker from{};
    if (!is_loaded(from.library)) return false;
    from.take(new_status, "TF_NewStatus")
        .take(delete_status, "TF_DeleteStatus")
        .take(set_status, "TF_SetStatus")
        .take(get_code, "TF_GetCode")
        .take(message, "TF_Message")
        .take(new_definition, first_function)
        .take(add_input, "TF_OpDefinitionBuilderAddInput")
        .take(add_output, "TF_OpDefinitionBuilderAddOutput")
        .take(add_attribute, "TF_OpDefinitionBuilderAddAttr")
        .take(set_is_stateful, "TF_OpDefinitionBuilderSetIsStateful")
        .take(set_shape_function, "TF_OpDefinitionBuilderSetShapeInferenceFunction")
        .take(register_definition, "TF_RegisterOpDefinition")
        .take(count_inputs_of_shape, "TF_ShapeInferenceContextNumInputs")
        .take(new_shape, "TF_NewShapeHandle")
        .take(delete_shape, "TF_DeleteShapeHandle")
        .take(scalar, "TF_ShapeInferenceContextScalar")
        .take(get_input_shape, "TF_ShapeInferenceContextGetInput")
        .take(set_output_shape, "TF_ShapeInferenceContextSetOutput")
        .take(new_kernel, "TF_NewKernelBuilder")
        .take(constrain_type, "TF_KernelBuilder_TypeConstraint")
        .take(keep_on_host, "TF_KernelBuilder_HostMemory")
        .take(register_kernel, "TF_RegisterKernelBuilder")
        .take(fail_construction, "TF_OpKernelConstruction_Failure")
        .take(get_attribute_size, "TF_OpKernelConstruction_GetAttrSize")
        .take(get_string, "TF_OpKernelConstruction_GetAttrString")
        .take(get_float, "TF_OpKernelConstruction_GetAttrFloat")
        .take(get_bool, "TF_OpKernelConstruction_GetAttrBool")
        .take(count_inputs, "TF_NumInputs")
        .take(get_input, "TF_GetInput")
        .take(allocate_output, "TF_AllocateOutput")
        .take(forward_or_allocate, "TF_ForwardInputOrAllocateOutput")
        .take(fail, "TF_OpKernelContext_Failure")
        .take(type_of, "TF_TensorType")
        .take(count_axes, "TF_NumDims")
        .take(extent, "TF_Dim")
        .take(data, "TF_TensorData")
        .take(bytes, "TF_TensorByteSize")
        .take(delete_tensor, "TF_DeleteTensor");
    missing = from.missing;
    return missing == nullptr;
}

}  // namespace ddl::shim::tensorflow
