// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/error.hpp>
#include <ddl/topology/caches.hpp>

#include <hwloc.h>

#include <cstddef>
#include <memory>
#include <type_traits>

namespace ddl {

/// This machine as hwloc sees it, for programs that link it (`-lhwloc`): read when it is made, nothing is ever bound.
///
/// It knows caches where the C library does not, and which of them the calling thread is near. To have a communicator go
/// by it: `ranks.set_caches(ddl::hwloc_machine{}.near_caches())`.
class hwloc_machine {
public:
    /// Throws `errc::system` if hwloc cannot read the machine. Takes some milliseconds.
    hwloc_machine() {
        hwloc_topology_t read = nullptr;
        if (::hwloc_topology_init(&read) == 0) topology_.reset(read);
        if (!topology_ || ::hwloc_topology_load(read) != 0)
            throw error(errc::system, "hwloc_machine", -1, -1,
                        "hwloc cannot read this machine; see what hwloc-info says, or go by ddl::caches");
    }

    /// Cores and nodes of memory that this process may use.
    int cores() const noexcept { return count(HWLOC_OBJ_CORE); }
    int numa_nodes() const noexcept { return count(HWLOC_OBJ_NUMANODE); }

    /// The caches over the first core that the calling thread is bound to; of what hwloc does not see either, what
    /// `caches::of_this_machine` says.
    caches near_caches() const noexcept {
        const caches known = caches::of_this_machine();
        const std::size_t second = size_of(HWLOC_OBJ_L2CACHE, known.second);
        const std::size_t last = size_of(HWLOC_OBJ_L3CACHE, known.last);
        return {second, last > second ? last : second};
    }

private:
    struct destroy {
        void operator()(hwloc_topology_t read) const noexcept { ::hwloc_topology_destroy(read); }
    };
    struct free_set {
        void operator()(hwloc_bitmap_t set) const noexcept { ::hwloc_bitmap_free(set); }
    };

    int count(hwloc_obj_type_t kind) const noexcept {
        const int found = ::hwloc_get_nbobjs_by_type(topology_.get(), kind);
        return found > 0 ? found : 1;
    }

    std::size_t size_of(hwloc_obj_type_t kind, std::size_t otherwise) const noexcept {
        const std::unique_ptr<std::remove_pointer_t<hwloc_bitmap_t>, free_set> own{::hwloc_bitmap_alloc()};
        if (!own || ::hwloc_get_cpubind(topology_.get(), own.get(), HWLOC_CPUBIND_THREAD) != 0) return otherwise;
        const int first = ::hwloc_bitmap_first(own.get());
        const hwloc_obj_t unit =
            first < 0 ? nullptr : ::hwloc_get_pu_obj_by_os_index(topology_.get(), static_cast<unsigned>(first));
        const hwloc_obj_t cache =
            unit == nullptr ? nullptr : ::hwloc_get_ancestor_obj_by_type(topology_.get(), kind, unit);
        return cache == nullptr || cache->attr->cache.size == 0 ? otherwise
                                                                : static_cast<std::size_t>(cache->attr->cache.size);
    }

    std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, destroy> topology_;
};

}  // namespace ddl
