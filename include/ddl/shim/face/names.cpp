// SPDX-License-Identifier: Apache-2.0
#include <ddl/shim/companion.hpp>
#include <ddl/shim/last_error.hpp>
#include <ddl/shim/registry.hpp>

using ddl::shim::registry;

extern "C" {

const char* ddl_last_error(void) { return ddl::shim::last_error().c_str(); }
DDL_API void ddl_keep_error(const char* words) noexcept { ddl::shim::last_error() = ddl::text{}.append("%s", words); }

const char* ddl_name_status(ddl_status status) {
    constexpr const char* names[] = {
        "DDL_OK",     "DDL_MISMATCH", "DDL_PEER_LOST",   "DDL_TIMEOUT",    "DDL_INVALID_ARGUMENT", "DDL_OUT_OF_MEMORY",
        "DDL_SYSTEM", "DDL_BROKEN",   "DDL_UNSUPPORTED", "DDL_INTERRUPTED"};
    return status >= 0 && status < static_cast<int>(std::size(names)) ? names[status] : "no status of ddl";
}

const char* ddl_version(void) { return DDL_SHIM_VERSION; }

ddl_element ddl_find_element(const char* name) { return name == nullptr ? -1 : registry::here().element(name); }
ddl_op ddl_find_op(const char* name) { return name == nullptr ? -1 : registry::here().op(name); }
const char* ddl_name_element(ddl_element element) { return registry::here().element_name(element); }
const char* ddl_name_op(ddl_op op) { return registry::here().op_name(op); }
size_t ddl_size_element(ddl_element element) { return registry::here().element_bytes(element); }

size_t ddl_first_of_block(size_t count, int size, int rank) {
    return size < 1 || rank < 0 || rank >= size ? 0 : ddl::block(count, size, rank).first;
}
size_t ddl_count_of_block(size_t count, int size, int rank) {
    return size < 1 || rank < 0 || rank >= size ? 0 : ddl::block(count, size, rank).count;
}

}  // extern "C"
