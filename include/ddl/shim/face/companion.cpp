// SPDX-License-Identifier: Apache-2.0
#include <ddl/shim/companion.hpp>
#include <ddl/shim/loaded_library.hpp>

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <string>
#include <system_error>

namespace ddl::shim {
namespace {

/// The folder of this library, with a slash behind it; "" if the system does not know.
std::string found_folder() {
    Dl_info own{};
    if (::dladdr(reinterpret_cast<void*>(&load_companion), &own) == 0 || own.dli_fname == nullptr) return "";
    std::error_code unknown;
    return std::filesystem::absolute(own.dli_fname, unknown).remove_filename().string();
}

/// The same, found when this library is loaded: its path may be a relative one, and programs go to other folders.
const std::string& own_folder() {
    static const std::string& folder = *new std::string{found_folder()};
    return folder;
}
[[maybe_unused]] const std::string& found_in_time = own_folder();

/// `MPI_Initialized` or `MPI_Finalized` of a library that this process has loaded, however it did.
using asked_of_mpi = int (*)(int*);
asked_of_mpi found_in_mpi(const char* function) noexcept {
    void* const library = loaded_library("libmpi", function);
    if (library == nullptr) return nullptr;
    void* const its = ::dlsym(library, function);
    ::dlclose(library);  // it was loaded before, and stays
    return reinterpret_cast<asked_of_mpi>(its);
}

bool is_set(const char* variable) noexcept { return *value_of(variable) != '\0'; }

const companion* found_companion(text& why) noexcept {
    constexpr std::string_view file = DDL_SHIM_COMPANION;  // written by ddl_add_shim
    if (file.empty()) {
        why.append("this library was built without MPI");
        return nullptr;
    }
    try {
        const std::string path = own_folder() + std::string{file};
        void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) {
            why.append("%s", ::dlerror());
            return nullptr;
        }
        const auto entry = reinterpret_cast<decltype(&ddl_companion)>(::dlsym(library, "ddl_companion"));
        const companion* const found = entry == nullptr ? nullptr : entry(companion_build);
        if (found == nullptr) why.append("%s is of another build", path.c_str());
        return found;
    } catch (const std::exception& failure) {
        why.append("%s", failure.what());
        return nullptr;
    }
}

}  // namespace

const char* value_of(const char* variable) noexcept {
    const char* const value = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): nothing here sets any
    return value == nullptr ? "" : value;
}

const companion* load_companion(text& why) noexcept {
    static text reason;
    static const companion* const found = found_companion(reason);
    if (found == nullptr) why = reason;
    return found;
}

bool mpi_is_loaded() noexcept { return found_in_mpi("MPI_Initialized") != nullptr; }

bool mpi_is_up() noexcept {
    const asked_of_mpi initialized = found_in_mpi("MPI_Initialized");
    const asked_of_mpi finalized = found_in_mpi("MPI_Finalized");
    int started = 0;
    int ended = 0;
    return initialized != nullptr && finalized != nullptr && initialized(&started) == 0 && started != 0 &&
           finalized(&ended) == 0 && ended == 0;
}

bool launched_by_mpi() noexcept {
    if (is_set("PMIX_RANK") || is_set("PMI_RANK") || is_set("PMI_FD")) return true;
    return is_set("OMPI_COMM_WORLD_SIZE") && !is_set("RANK");  // with RANK it is a launcher that only looks like one
}

bool ranks_are_of_mpi() noexcept {
    if (is_set("DDL_TRANSPORT")) return std::strcmp(value_of("DDL_TRANSPORT"), "mpi") == 0;
    if (mpi_is_up()) return true;
    if (is_set("RANK") && is_set("WORLD_SIZE") && is_set("DDL_JOB")) return false;
    return launched_by_mpi();
}

const char* ranks_inside_of_one() noexcept {
    const bool by_pmi = is_set("PMI_SIZE");  // ddlrun passes on no such word of a launcher around it
    if (std::strncmp(value_of("DDL_JOB"), "ddlrun-", 7) != 0 || (!by_pmi && !is_set("PMIX_RANK"))) return nullptr;
    const char* const size = value_of(by_pmi ? "PMI_SIZE" : "OMPI_COMM_WORLD_SIZE");
    const char* const rank = value_of(by_pmi ? "PMI_RANK" : "OMPI_COMM_WORLD_RANK");
    if (std::atoi(size) < 2 || is_set("TORCHELASTIC_RUN_ID"))
        return nullptr;  // torchrun, inside of it, names its ranks anew
    return std::strcmp(value_of("WORLD_SIZE"), size) == 0 && std::strcmp(value_of("RANK"), rank) == 0 ? nullptr : size;
}

}  // namespace ddl::shim

extern "C" {

/// The same, for pyddl.
DDL_API int ddl_ranks_are_of_mpi();
int ddl_ranks_are_of_mpi() { return ddl::shim::ranks_are_of_mpi() ? 1 : 0; }

}  // extern "C"
