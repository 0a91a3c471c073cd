// SPDX-License-Identifier: Apache-2.0
#include <ddl/shim/ddl_mpi.hpp>
#include <ddl/shim/ibm/error_line.hpp>
#include <ddl/shim/last_error.hpp>
#include <ddl/transport/mpi_runtime.hpp>

#include <map>
#include <mutex>

using namespace ddl::shim;
using ddl::errc;
using ddl::error;
using ddl::mpi_runtime;

namespace {

/// What MPI calls the elements and ops of ddl.h. Handles of MPI are no constants in every MPI, so the tables are made late.
struct vocabulary {
    std::map<MPI_Datatype, ddl_element> elements;
    std::map<MPI_Op, ddl_op> ops;

    static const vocabulary& of_mpi() {
        static const vocabulary known{{{MPI_FLOAT, DDL_FLOAT},
                                       {MPI_DOUBLE, DDL_DOUBLE},
                                       {MPI_SIGNED_CHAR, DDL_INT8},
                                       {MPI_UNSIGNED_CHAR, DDL_UINT8},
                                       {MPI_SHORT, DDL_INT16},
                                       {MPI_UNSIGNED_SHORT, DDL_UINT16},
                                       {MPI_INT, DDL_INT32},
                                       {MPI_UNSIGNED, DDL_UINT32},
                                       {MPI_LONG, sizeof(long) == 8 ? DDL_INT64 : DDL_INT32},
                                       {MPI_UNSIGNED_LONG, sizeof(long) == 8 ? DDL_UINT64 : DDL_UINT32},
                                       {MPI_LONG_LONG, DDL_INT64},
                                       {MPI_UNSIGNED_LONG_LONG, DDL_UINT64},
                                       {MPI_INT8_T, DDL_INT8},
                                       {MPI_UINT8_T, DDL_UINT8},
                                       {MPI_INT16_T, DDL_INT16},
                                       {MPI_UINT16_T, DDL_UINT16},
                                       {MPI_INT32_T, DDL_INT32},
                                       {MPI_UINT32_T, DDL_UINT32},
                                       {MPI_INT64_T, DDL_INT64},
                                       {MPI_UINT64_T, DDL_UINT64},
                                       {MPI_C_BOOL, DDL_BOOL},
                                       {MPI_C_FLOAT_COMPLEX, DDL_COMPLEX_FLOAT},
                                       {MPI_C_DOUBLE_COMPLEX, DDL_COMPLEX_DOUBLE}},
                                      {{MPI_SUM, DDL_SUM},
                                       {MPI_PROD, DDL_PRODUCT},
                                       {MPI_MIN, DDL_MINIMUM},
                                       {MPI_MAX, DDL_MAXIMUM},
                                       {MPI_BAND, DDL_BIT_AND},
                                       {MPI_BOR, DDL_BIT_OR},
                                       {MPI_BXOR, DDL_BIT_XOR},
                                       {MPI_LAND, DDL_LOGICAL_AND},
                                       {MPI_LOR, DDL_LOGICAL_OR},
                                       {MPI_LXOR, DDL_LOGICAL_XOR}}};
        return known;
    }
};

template <class Handle>
int number_of(const std::map<Handle, int>& known, Handle asked) {
    const auto found = known.find(asked);
    return found == known.end() ? -1 : found->second;
}

void require(int code, const char* call) { mpi_runtime::check(code, call, "allreduce_mpi", -1); }

/// A communicator of ours for each of MPI's, closed when MPI frees it or ends.
class kept_communicators {
public:
    static kept_communicators& here() {
        static kept_communicators& kept = *new kept_communicators;  // stays: MPI may still call back
        return kept;
    }

    /// All ranks of `ranks` call it; opens one the first time.
    ddl_communicator* of(MPI_Comm ranks, const char* options, ddl_status& status) {
        const std::lock_guard lock{mutex_};
        if (key_ == MPI_KEYVAL_INVALID) {
            require(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, freed, &key_, nullptr), "MPI_Comm_create_keyval");
            require(MPI_Comm_set_attr(MPI_COMM_SELF, key_, this), "MPI_Comm_set_attr");  // freed first when MPI ends
        }
        const auto found = open_.find(ranks);
        if (found != open_.end()) return found->second;
        ddl_communicator* made = nullptr;
        status = ddl_open_mpi(&ranks, 0, &made);
        if (status == DDL_OK) status = ddl_set_options(made, options);
        if (status != DDL_OK) {
            this_thread(status, ddl_last_error());
            ddl_close(made);
            return nullptr;
        }
        open_[ranks] = made;
        if (ranks != MPI_COMM_SELF) require(MPI_Comm_set_attr(ranks, key_, this), "MPI_Comm_set_attr");
        return made;
    }

private:
    static int freed(MPI_Comm ranks, int, void*, void*) {
        kept_communicators& kept = here();
        const std::lock_guard lock{kept.mutex_};
        const bool all = ranks == MPI_COMM_SELF;
        for (auto place = kept.open_.begin(); place != kept.open_.end();)
            if (all || place->first == ranks) {
                ddl_close(place->second);
                place = kept.open_.erase(place);
            } else {
                ++place;
            }
        return MPI_SUCCESS;
    }

    std::mutex mutex_;
    int key_ = MPI_KEYVAL_INVALID;
    std::map<MPI_Comm, ddl_communicator*> open_;
};

}  // namespace

extern "C" DDL_API int ddl_allreduce_mpi(const char* options, void* data, size_t count, MPI_Datatype type, MPI_Op op,
                                         MPI_Comm communicator) {
    ddl_status status = DDL_OK;
    const ddl_status asked = guarded(this_thread, "allreduce_mpi", [&] {
        if (!mpi_runtime::is_up())
            throw error(errc::invalid_argument, "allreduce_mpi", -1, -1, "MPI is not running; call MPI_Init first");
        ddl_communicator* const ranks = kept_communicators::here().of(communicator, options, status);
        if (ranks == nullptr) return;
        const vocabulary& known = vocabulary::of_mpi();
        status = ddl_run_allreduce(ranks, data, data, count, number_of(known.elements, type), number_of(known.ops, op));
        if (status != DDL_OK) this_thread(status, ddl_last_error());
    });
    if (asked != DDL_OK) return failed(asked, last_error().c_str());
    return failed(status, last_error().c_str());
}
