// SPDX-License-Identifier: Apache-2.0
#include <ddl/shim/companion.hpp>
#include <ddl/shim/ddl_mpi.hpp>
#include <ddl/shim/ibm/error_line.hpp>
#include <ddl/shim/last_error.hpp>
#include <ddl/transport/mpi_runtime.hpp>

#include <map>
#include <mutex>
#include <string>

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
        static const vocabulary& known = *new vocabulary{made()};  // stays: a program's own destructors may still call
        return known;
    }

private:
    static vocabulary made() {
        vocabulary known{{{MPI_FLOAT, DDL_FLOAT},
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
        for (const MPI_Datatype each : {MPI_REAL, MPI_REAL4, MPI_REAL8, MPI_DOUBLE_PRECISION})
            known.add(each, {{4, DDL_FLOAT}, {8, DDL_DOUBLE}});
        for (const MPI_Datatype each :
             {MPI_INTEGER, MPI_INTEGER1, MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8, MPI_AINT, MPI_OFFSET, MPI_COUNT})
            known.add(each, {{1, DDL_INT8}, {2, DDL_INT16}, {4, DDL_INT32}, {8, DDL_INT64}});
        for (const MPI_Datatype each : {MPI_COMPLEX, MPI_COMPLEX8, MPI_COMPLEX16, MPI_DOUBLE_COMPLEX,
                                        MPI_CXX_FLOAT_COMPLEX, MPI_CXX_DOUBLE_COMPLEX})
            known.add(each, {{8, DDL_COMPLEX_FLOAT}, {16, DDL_COMPLEX_DOUBLE}});
        known.add(MPI_CXX_BOOL, {{sizeof(bool), DDL_BOOL}});
        return known;
    }

    /// A type that is as long as another compiler made it: the element of that size, if there is one. An MPI without that
    /// language may know no such type.
    void add(MPI_Datatype type, const std::map<int, ddl_element>& of_size) {
        int size = 0;
        if (type == MPI_DATATYPE_NULL || MPI_Type_size(type, &size) != MPI_SUCCESS) return;
        if (const auto found = of_size.find(size); found != of_size.end()) elements.emplace(type, found->second);
    }
};

template <class Handle>
int number_of(const std::map<Handle, int>& known, Handle asked) {
    const auto found = known.find(asked);
    return found == known.end() ? -1 : found->second;
}

std::string name_of(MPI_Datatype type) {
    char name[MPI_MAX_OBJECT_NAME] = "";
    int length = 0;
    if (type != MPI_DATATYPE_NULL) MPI_Type_get_name(type, name, &length);
    return *name != '\0' ? name : "this MPI_Datatype";
}

void require(int code, const char* call) { mpi_runtime::check(code, call, "allreduce_mpi", -1); }

/// A communicator of ours for each of MPI's, closed when MPI frees it or ends.
class kept_communicators {
public:
    static kept_communicators& here() {
        static kept_communicators& kept = *new kept_communicators;  // stays: MPI may still call back
        return kept;
    }

    /// All ranks of `ranks` call it; opens one the first time, and sets its options, until they make sense. Other threads may open
    /// theirs meanwhile, in any order: what waits for peers holds no lock but that of its own communicator.
    ddl_communicator* of(MPI_Comm ranks, const char* options, ddl_status& status) {
        kept& own = place_of(ranks);
        const std::lock_guard lock{own.opens};
        if (own.is_ready) [[likely]]
            return own.ranks;
        if (own.ranks == nullptr) {
            ddl_communicator* made = nullptr;
            status = ddl_open_mpi(&ranks, 0, &made);
            if (status == DDL_OK && ranks != MPI_COMM_SELF)
                require(MPI_Comm_set_attr(ranks, key(), this), "MPI_Comm_set_attr");
            own.ranks = made;
        }
        if (status == DDL_OK) status = ddl_set_options(own.ranks, options);
        own.is_ready = status == DDL_OK;
        if (own.is_ready) return own.ranks;
        this_thread(status, ddl_last_error());
        told_of("allreduce_mpi", status);
        if (own.ranks != nullptr) {  // the others, who wait in the call, hear of options that make no sense
            const std::string words = last_error().c_str();
            constexpr ddl_op none = -1;
            ddl_run_allreduce(own.ranks, nullptr, nullptr, 0, DDL_FLOAT, none);
            this_thread(status, words.c_str());
        }
        return nullptr;
    }

private:
    struct kept {
        std::mutex opens;
        ddl_communicator* ranks = nullptr;
        bool is_ready = false;  // its options are set
    };

    /// Stays where it is until MPI frees the communicator.
    kept& place_of(MPI_Comm ranks) {
        (void)key();
        const std::lock_guard lock{mutex_};
        return open_[ranks];
    }

    int key() {
        static const int made = [this] {
            int key = MPI_KEYVAL_INVALID;
            require(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, freed, &key, nullptr), "MPI_Comm_create_keyval");
            require(MPI_Comm_set_attr(MPI_COMM_SELF, key, this), "MPI_Comm_set_attr");  // freed first when MPI ends
            return key;
        }();
        return made;
    }

    /// MPI may hold a lock of its own meanwhile, which whoever holds ours must not wait for.
    static int freed(MPI_Comm ranks, int, void*, void*) {
        std::map<MPI_Comm, kept> ended;
        {
            kept_communicators& all = here();
            const std::lock_guard lock{all.mutex_};
            if (ranks == MPI_COMM_SELF) ended.swap(all.open_);
            else ended.insert(all.open_.extract(ranks));
        }
        for (auto& [of_mpi, own] : ended) ddl_close(own.ranks);
        return MPI_SUCCESS;
    }

    std::mutex mutex_;  // of what follows, and never held while anybody waits
    std::map<MPI_Comm, kept> open_;
};

}  // namespace

extern "C" DDL_API int ddl_allreduce_mpi(const char* options, void* data, size_t count, MPI_Datatype type, MPI_Op op,
                                         MPI_Comm communicator) {
    ddl_status status = DDL_OK;
    const ddl_status asked = guarded(this_thread, "allreduce_mpi", [&] {
        if (!mpi_runtime::is_up())
            throw error(errc::invalid_argument, "allreduce_mpi", -1, -1,
                        mpi_runtime::is_over() ? "MPI has ended in this process; call before MPI_Finalize"
                                               : "MPI is not running; call MPI_Init first");
        ddl_communicator* const ranks = kept_communicators::here().of(communicator, options, status);
        if (ranks == nullptr) return;
        const vocabulary& known = vocabulary::of_mpi();
        const ddl_element element = number_of(known.elements, type);
        const ddl_op combined = number_of(known.ops, op);
        void* const there = data == MPI_IN_PLACE ? nullptr : data;  // refused as that is, on all ranks
        status = ddl_run_allreduce(ranks, there, there, count, element, combined);
        if (status == DDL_INVALID_ARGUMENT && data == MPI_IN_PLACE)  // in the caller's words
            refused(status, "allreduce", ddl_get_rank(ranks),
                    "data is MPI_IN_PLACE, which says not where; pass the buffer itself, for the result replaces it");
        else if (status == DDL_INVALID_ARGUMENT && element < 0)
            refused(status, "allreduce", ddl_get_rank(ranks), "ddl has no element for %s; pass one such as MPI_FLOAT",
                    name_of(type).c_str());
        else if (status == DDL_INVALID_ARGUMENT && combined < 0)
            refused(status, "allreduce", ddl_get_rank(ranks),
                    "ddl has no op for this MPI_Op; pass one such as MPI_SUM");
        else if (status != DDL_OK) this_thread(status, ddl_last_error());
    });
    if (asked != DDL_OK) status = asked;
    if (status != DDL_OK) ddl_keep_error(last_error().c_str());
    return failed(status, last_error().c_str());
}
