// SPDX-License-Identifier: Apache-2.0
#include <ddl/element/bfloat16.hpp>
#include <ddl/element/half.hpp>
#include <ddl/shim/tensorflow/failure.hpp>
#include <ddl/shim/tensorflow/mpi_sum.hpp>
#include <ddl/shim/tensorflow/reference.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace ddl::shim::tensorflow {
namespace {

/// Calls `act` with a value of the element that a number of ddl.h stands for.
template <class Act>
void with_element(const reduced& tensor, Act act) {
    switch (tensor.element) {
        case DDL_FLOAT: return act(float{});
        case DDL_DOUBLE: return act(double{});
        case DDL_HALF: return act(half{});
        case DDL_BFLOAT16: return act(bfloat16{});
        case DDL_INT32: return act(std::int32_t{});
        case DDL_INT64: return act(std::int64_t{});
        case DDL_COMPLEX_FLOAT: return act(std::complex<float>{});
        case DDL_COMPLEX_DOUBLE: return act(std::complex<double>{});
        default:
            throw failure::refused(unimplemented, tensor.operation, ddl_get_rank(tensor.ranks),
                                   "element %d has no plain reduction; convert it to float", tensor.element);
    }
}

template <class Element>
constexpr bool is_complex =
    std::is_same_v<Element, std::complex<float>> || std::is_same_v<Element, std::complex<double>>;

/// What MPI adds in place of an element: it knows no 16 bit floats, and averages of integers are of sums that do not wrap.
template <class Element>
using known_to_mpi = std::conditional_t<
    std::is_integral_v<Element>, std::int64_t,
    std::conditional_t<std::is_convertible_v<Element, float> && sizeof(Element) == 2, float, Element>>;

/// The sum of MPI, in the library of ddl's that is built with it; nullptr while ddl does not use MPI here.
mpi_sum* found_mpi_sum(ddl_communicator* ranks) noexcept {
    const char* const transport = ddl_get_transport(ranks);
    if (transport == nullptr || std::strcmp(transport, "cluster") != 0) return nullptr;
    void* const library = ::dlopen(DDL_SHIM_COMPANION, RTLD_LAZY | RTLD_NOLOAD);
    return library == nullptr ? nullptr : reinterpret_cast<mpi_sum*>(::dlsym(library, "ddl_sum_by_mpi"));
}

std::int64_t greatest_of_all(ddl_communicator* ranks, std::int64_t value) {
    require(ddl_run_allreduce(ranks, &value, &value, 1, DDL_INT64, DDL_MAXIMUM));
    return value;
}

/// MPI would crash, or wait for ever, where ranks bring different vectors.
void require_one_form(const reduced& tensor) {
    const auto count = static_cast<std::int64_t>(tensor.count);
    for (const std::int64_t each : {count, std::int64_t{tensor.element}})
        if (greatest_of_all(tensor.ranks, each) != -greatest_of_all(tensor.ranks, -each))
            throw failure::refused(invalid_argument, tensor.operation, ddl_get_rank(tensor.ranks),
                                   "ranks bring different counts or types, this one %zu of element %d; pass equal ones",
                                   tensor.count, tensor.element);
}

template <class Element>
Element averaged(Element sum, int size) {
    if constexpr (is_complex<Element>) return sum / static_cast<typename Element::value_type>(size);
    else return static_cast<Element>(sum / static_cast<Element>(size));
}

template <class Element>
void reduce_by_mpi(const reduced& tensor, mpi_sum* sum, std::vector<known_to_mpi<Element>> sums, Element* out) {
    using known = known_to_mpi<Element>;
    constexpr std::size_t parts = is_complex<known> ? 2 : 1;  // of a complex number, which are added each
    constexpr ddl_element element = std::is_integral_v<known>                ? DDL_INT64
                                    : sizeof(known) == parts * sizeof(float) ? DDL_FLOAT
                                                                             : DDL_DOUBLE;
    std::string words;
    const listener heard{[](void* to, ddl_status, const char* its) noexcept { *static_cast<std::string*>(to) = its; },
                         &words};
    const ddl_status status = sum(sums.data(), parts * sums.size(), element, heard);
    if (status != DDL_OK) throw failure{code_of(status), words};
    const int size = tensor.average ? ddl_get_size(tensor.ranks) : 1;
    std::transform(sums.begin(), sums.end(), out,
                   [&](known each) { return static_cast<Element>(averaged(each, size)); });
}

template <class Element>
void reduce_gathered(const reduced& tensor, const Element* in, Element* out) {
    using wide = std::conditional_t<std::is_integral_v<Element>, std::uint64_t,  // integers wrap
                                    std::conditional_t<is_complex<Element>, std::complex<double>, double>>;
    constexpr std::size_t most = std::size_t{1} << 16;  // elements of each rank at once
    const int size = ddl_get_size(tensor.ranks);
    const int divisor = tensor.average ? size : 1;
    std::vector<Element> all;
    for (std::size_t first = 0; first < tensor.count; first += most) {
        const std::size_t part = std::min(most, tensor.count - first);
        all.resize(part * static_cast<std::size_t>(size));
        require(ddl_run_all_gather(tensor.ranks, in + first, all.data(), all.size() * sizeof(Element), DDL_UINT8),
                tensor.operation);
        for (std::size_t i = 0; i < part; ++i) {
            wide sum{};
            for (std::size_t each = i; each < all.size(); each += part) sum += static_cast<wide>(all[each]);
            if constexpr (std::is_integral_v<Element>)
                out[first + i] = static_cast<Element>(averaged(static_cast<std::int64_t>(sum), divisor));
            else out[first + i] = static_cast<Element>(static_cast<known_to_mpi<Element>>(averaged(sum, divisor)));
        }
    }
}

template <class Element>
void reduce_plainly_of(const reduced& tensor, const Element* in, Element* out) {
    mpi_sum* const sum = found_mpi_sum(tensor.ranks);
    std::vector<known_to_mpi<Element>> sums;
    if (sum != nullptr)
        sums.assign(in, in + tensor.count);  // before ranks begin to wait for each other, for want of memory
    require_one_form(tensor);
    if (sum != nullptr) reduce_by_mpi(tensor, sum, std::move(sums), out);
    else reduce_gathered(tensor, in, out);
}

template <class Element>
bool differs(Element result, Element plain, double tolerance) {
    using exact = std::conditional_t<std::is_integral_v<Element>, long double,
                                     std::conditional_t<is_complex<Element>, std::complex<double>, double>>;
    const auto wide = static_cast<exact>(result), expected = static_cast<exact>(plain);
    return wide != expected && !(std::abs((wide - expected) / expected) <= tolerance);  // a NaN is true
}

template <class Element>
text shown(Element value, int digits) {
    if constexpr (is_complex<Element>)
        return text{}.append("%.*g%+.*gj", digits, static_cast<double>(value.real()), digits,
                             static_cast<double>(value.imag()));
    else return text{}.append("%.*g", digits, static_cast<double>(value));
}

std::atomic<unsigned> dumps{0};  // of all types

/// Writes what differs; returns the name of the file, "" if it cannot be written.
template <class Element>
std::string dump(const reduced& tensor, double tolerance, const Element* in, const Element* result,
                 const std::vector<Element>& plain) {
    const std::string path =
        "ddl.dump." + std::to_string(ddl_get_rank(tensor.ranks)) + "." + std::to_string(dumps.fetch_add(1));
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{std::fopen(path.c_str(), "w"), std::fclose};
    if (file == nullptr) return "";
    std::fprintf(file.get(), "# %s, tensor %zu, rank %d of %d: %s of %zu elements, check=%g\n", tensor.operation,
                 tensor.index, ddl_get_rank(tensor.ranks), ddl_get_size(tensor.ranks), tensor.average ? "avg" : "sum",
                 tensor.count, tolerance);
    std::fprintf(file.get(), "# element input ddl plain\n");
    for (std::size_t i = 0; i < tensor.count; ++i)
        if (differs(result[i], plain[i], tolerance))
            std::fprintf(file.get(), "%zu %s %s %s\n", i, shown(in[i], 17).c_str(), shown(result[i], 17).c_str(),
                         shown(plain[i], 17).c_str());
    return std::ferror(file.get()) != 0 ? "" : path;
}

template <class Element>
void check_of(const reduced& tensor, const Element* in, const Element* result, double tolerance) {
    std::vector<Element> plain(tensor.count);
    reduce_plainly_of(tensor, in, plain.data());
    std::size_t wrong = 0;
    std::size_t first = 0;
    for (std::size_t i = tensor.count; i-- > 0;)
        if (differs(result[i], plain[i], tolerance)) {
            ++wrong;
            first = i;
        }
    const std::string path = wrong == 0 ? "" : dump(tensor, tolerance, in, result, plain);
    const std::int64_t worst = greatest_of_all(tensor.ranks, static_cast<std::int64_t>(wrong));
    if (worst == 0) return;
    const int rank = ddl_get_rank(tensor.ranks);
    if (wrong == 0)
        throw failure::refused(internal, tensor.operation, rank,
                               "tensor %zu is as it should be here, and differs on another rank; see there",
                               tensor.index);
    throw failure::refused(internal, tensor.operation, rank,
                           "%zu of %zu elements of tensor %zu differ from the plain reduction by more than check=%g, "
                           "first element %zu: %s instead of %s; %s%s",
                           wrong, tensor.count, tensor.index, tolerance, first, shown(result[first], 9).c_str(),
                           shown(plain[first], 9).c_str(),
                           path.empty() ? "a dump could not be written here" : "all are in ", path.c_str());
}

}  // namespace

void reduce_plainly(const reduced& tensor, const void* in, void* out) {
    with_element(tensor, [&]<class Element>(Element) {
        reduce_plainly_of(tensor, static_cast<const Element*>(in), static_cast<Element*>(out));
    });
}

void check_against_plain(const reduced& tensor, const void* in, const void* result, double tolerance) {
    with_element(tensor, [&]<class Element>(Element) {
        check_of(tensor, static_cast<const Element*>(in), static_cast<const Element*>(result), tolerance);
    });
}

}  // namespace ddl::shim::tensorflow
