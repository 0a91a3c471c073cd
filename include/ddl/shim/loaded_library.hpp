// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <dlfcn.h>
#include <iterator>
#include <link.h>

namespace ddl::shim {

/// A library that this process has loaded, in whose file's name stands `word`, and which has `function`: a handle, which the caller
/// closes, or nullptr. Extension modules of Python are loaded so that their symbols are not those of the process; and names and folders
/// of libraries change from version to version.
inline void* loaded_library(const char* word, const char* function) noexcept {
    struct search {
        const char* word;
        const char* paths[256];
        std::size_t count;
    } found{word, {}, 0};
    // only listed here: in this loop a lock is held that another thread wants while it loads a library
    ::dl_iterate_phdr(
        [](dl_phdr_info* library, std::size_t, void* data) {
            auto& [wanted, paths, count] = *static_cast<search*>(data);
            const char* const slash = std::strrchr(library->dlpi_name, '/');
            const char* const file = slash == nullptr ? library->dlpi_name : slash + 1;
            if (std::strstr(file, wanted) != nullptr) paths[count++] = library->dlpi_name;
            return count < std::size(paths) ? 0 : 1;
        },
        &found);
    for (std::size_t i = 0; i < found.count; ++i) {
        void* const library = ::dlopen(found.paths[i], RTLD_LAZY | RTLD_NOLOAD);
        if (library == nullptr) continue;
        if (::dlsym(library, function) != nullptr) return library;
        ::dlclose(library);
    }
    return nullptr;
}

}  // namespace ddl::shim
