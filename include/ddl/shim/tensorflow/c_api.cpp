// SPDX-License-Identifier: Apache-2.0
#include <ddl/shim/tensorflow/c_api.hpp>

#include <cstring>
#include <dlfcn.h>
#include <iterator>
#include <link.h>

namespace ddl::shim::tensorflow {
namespace {

constexpr const char* first_function = "TF_NewOpDefinitionBuilder";

/// Whether the process has TensorFlow's functions, and the handle in which `dlsym` finds them. Python loads extension modules so that
/// their symbols are not those of the process, and their names and folders change from version to version.
bool is_loaded(void*& library) noexcept {
    library = RTLD_DEFAULT;
    if (::dlsym(library, first_function) != nullptr) return true;
    struct search {
        const char* paths[256];
        std::size_t count;
    } found{};
    // only listed here: in this loop a lock is held that another thread wants while it loads a library
    ::dl_iterate_phdr(
        [](dl_phdr_info* library, std::size_t, void* data) {
            auto& [paths, count] = *static_cast<search*>(data);
            const char* const slash = std::strrchr(library->dlpi_name, '/');
            const char* const file = slash == nullptr ? library->dlpi_name : slash + 1;
            if (std::strstr(file, "tensorflow") != nullptr) paths[count++] = library->dlpi_name;
            return count < std::size(paths) ? 0 : 1;
        },
        &found);
    for (std::size_t i = 0; i < found.count; ++i) {
        library = ::dlopen(found.paths[i], RTLD_LAZY | RTLD_NOLOAD);
        if (library == nullptr) continue;
        if (::dlsym(library, first_function) != nullptr) return true;  // and it stays loaded as long as we do
        ::dlclose(library);
    }
    return false;
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
