// SPDX-License-Identifier: Apache-2.0
// ddl_MDR.so: the operators of IBM DDL for TensorFlow. tf.load_op_library makes init, bcast, all_reduce and all_reduce_n of it.
#include <ddl/shim/tensorflow/kernels.hpp>
#include <ddl/shim/tensorflow/ranks.hpp>
#include <ddl/shim/tensorflow/reference.hpp>

#include <cstdio>
#include <initializer_list>

namespace ddl::shim::tensorflow {
namespace {

// ---- what TensorFlow's types are in ddl.h

struct known_type {
    data_type type;
    const char* name;
    ddl_element element;
    bool is_added;  // and not only moved
};
constexpr known_type known_types[] = {{of_float, "float", DDL_FLOAT, true},
                                      {of_half, "half", DDL_HALF, true},
                                      {of_bfloat16, "bfloat16", DDL_BFLOAT16, true},
                                      {of_double, "double", DDL_DOUBLE, true},
                                      {of_int32, "int32", DDL_INT32, true},
                                      {of_int64, "int64", DDL_INT64, true},
                                      {of_bool, "bool", DDL_BOOL, false},
                                      {of_int8, "int8", DDL_INT8, false},
                                      {of_uint8, "uint8", DDL_UINT8, false},
                                      {of_int16, "int16", DDL_INT16, false},
                                      {of_uint16, "uint16", DDL_UINT16, false},
                                      {of_uint32, "uint32", DDL_UINT32, false},
                                      {of_uint64, "uint64", DDL_UINT64, false},
                                      {of_complex_float, "complex64", DDL_COMPLEX_FLOAT, true},
                                      {of_complex_double, "complex128", DDL_COMPLEX_DOUBLE, true}};

ddl_element element_of(data_type type, const char* operation) {
    for (const known_type& each : known_types)
        if (each.type == type) return each.element;
    throw failure::refused(unimplemented, operation, -1, "type %d is none of ddl's; convert it to float",
                           static_cast<int>(type));
}

std::size_t count_of(const held_tensor& tensor, ddl_element element) {
    return tensor.bytes() / ddl_size_element(element);
}

// ---- kernels

/// Starts DDL, and answers who this rank is.
struct init {
    std::string mode;

    explicit init(attributes given) : mode{given.string("mode")} {}

    void operator()(const run& here) const {
        const held_tensor preferred = here.input(0);
        if (preferred.bytes() != sizeof(std::int32_t))
            throw failure::refused(invalid_argument, "Init", -1,
                                   "user_gpuid has %zu bytes; pass one int32, -1 for no preference", preferred.bytes());
        const numbers answer = ranks::here().start(mode, *static_cast<const std::int32_t*>(preferred.data()));
        int output = 0;
        for (const std::int32_t each : {answer.rank, answer.size, answer.local_rank, answer.local_size, answer.gpu}) {
            const held_tensor out = here.new_output(output++, of_int32, {}, sizeof each);
            *static_cast<std::int32_t*>(out.data()) = each;
        }
    }
};

/// The tensor of rank 0, on every rank.
struct bcast {
    explicit bcast(attributes) {}

    void operator()(const run& here) const {
        ddl_communicator* const all = ranks::here().started("Bcast");
        const ranks::turn turn{ranks::here()};
        const held_tensor out = here.output_with_input(0);
        const ddl_element element = element_of(out.type(), "Bcast");
        require(ddl_run_broadcast(all, out.data(), count_of(out, element), element, 0));
    }
};

/// The sum or average of each input over all ranks: AllReduce of one, AllReduceN of several in one exchange.
struct all_reduce {
    bool average;
    bool is_plain;
    float tolerance;

    explicit all_reduce(attributes given)
        : average{given.string("op") == "avg"}, is_plain{given.truth("mpi")}, tolerance{given.number("check")} {
        if (!(tolerance >= 0))
            throw failure::refused(invalid_argument, "AllReduce", -1, "check is %g; pass 0 or more",
                                   static_cast<double>(tolerance));
    }

    void operator()(const run& here) const {
        const int tensors = here.count_inputs();
        const char* const operation = tensors == 1 ? "AllReduce" : "AllReduceN";
        ddl_communicator* const all = ranks::here().started(operation);
        const ranks::turn turn{ranks::here()};
        std::vector<held_tensor> in;  // where it is wanted afterwards
        std::vector<held_tensor> out;
        std::vector<reduced> forms;
        std::vector<void*> data;
        std::vector<std::size_t> counts;
        for (int i = 0; i < tensors; ++i) {
            if (is_plain || tolerance > 0) in.push_back(here.input(i));
            out.push_back(is_plain ? here.output_like_input(i) : here.output_with_input(i));
            const ddl_element element = element_of(out.back().type(), operation);
            forms.push_back({operation, out.size() - 1, all, count_of(out.back(), element), element, average});
            data.push_back(out.back().data());
            counts.push_back(forms.back().count);
        }
        if (!is_plain) {
            const ddl_op op = average ? DDL_AVERAGE : DDL_SUM;
            const ddl_element element = forms.front().element;
            require(tensors == 1 ? ddl_run_allreduce(all, data[0], data[0], counts[0], element, op)
                                 : ddl_run_allreduce_n(all, data.data(), counts.data(), counts.size(), element, op));
        }
        for (std::size_t i = 0; i < in.size(); ++i)
            if (is_plain) reduce_plainly(forms[i], in[i].data(), data[i]);
            else check_against_plain(forms[i], in[i].data(), data[i], static_cast<double>(tolerance));
    }
};

// ---- shapes

void scalars(shape_question* asked, status* answer) {
    for (int output = 0; output < 5 && api().get_code(answer) == ok; ++output) {
        shape* const scalar = api().scalar(asked);
        api().set_output_shape(asked, output, scalar, answer);
        api().delete_shape(scalar);
    }
}

void those_of_inputs(shape_question* asked, status* answer) {
    shape* const each = api().new_shape();
    for (int i = 0; i < api().count_inputs_of_shape(asked) && api().get_code(answer) == ok; ++i) {
        api().get_input_shape(asked, i, each, answer);
        if (api().get_code(answer) == ok) api().set_output_shape(asked, i, each, answer);
    }
    api().delete_shape(each);
}

// ---- what TensorFlow is told when it loads this library

using words = std::initializer_list<const char*>;

void define(const char* name, words inputs, words outputs, words given, void (*shapes)(shape_question*, status*)) {
    definition* const made = api().new_definition(name);
    for (const char* const each : given) api().add_attribute(made, each);
    for (const char* const each : inputs) api().add_input(made, each);
    for (const char* const each : outputs) api().add_output(made, each);
    api().set_is_stateful(made, true);  // it is never folded, joined with another or left out
    api().set_shape_function(made, shapes);
    const outcome done;
    api().register_definition(made, done);
    done.require();
}

/// A kernel for the host, and one for GPUs, which takes its tensors on the host too. `typed` tells whether it has a type T.
template <class Kernel>
void implement(const char* name, words arguments, bool typed, bool adds) {
    using functions = functions_of<Kernel>;
    for (const char* const device : {"CPU", "GPU"})
        for (const known_type& each : known_types) {
            if (!typed && &each != known_types) break;  // once is enough
            if (adds && !each.is_added) continue;
            registration* const made =
                api().new_kernel(name, device, functions::create, functions::compute, functions::destroy);
            const outcome done;
            if (typed) {
                api().constrain_type(made, "T", each.type, done);
                done.require();
            }
            if (*device == 'G')
                for (const char* const argument : arguments) api().keep_on_host(made, argument);
            api().register_kernel(name, made, done);
            done.require();
        }
}

std::string types(bool added) {
    std::string all;
    for (const known_type& each : known_types)
        if (!added || each.is_added) all += std::string{all.empty() ? "T: {" : ", "} + each.name;
    return all + "}";
}

void register_all() {
    define("Init", {"user_gpuid: int32"},
           {"rank: int32", "size: int32", "local_rank: int32", "local_size: int32", "local_gpuid: int32"},
           {"mode: string", "pci: bool = true"}, scalars);
    implement<init>("Init", {"user_gpuid", "rank", "size", "local_rank", "local_size", "local_gpuid"}, false, false);

    const std::string moved = types(false);
    define("Bcast", {"input: T"}, {"output: T"}, {moved.c_str()}, those_of_inputs);
    implement<bcast>("Bcast", {"input", "output"}, true, false);

    const std::string added = types(true);
    constexpr const char *op = "op: {'sum', 'avg'}", *mpi = "mpi: bool = false", *check = "check: float = 0.0";
    define("AllReduce", {"input: T"}, {"output: T"}, {op, added.c_str(), mpi, check}, those_of_inputs);
    implement<all_reduce>("AllReduce", {"input", "output"}, true, true);
    define("AllReduceN", {"input: N*T"}, {"output: N*T"}, {"N: int >= 1", op, added.c_str(), mpi, check},
           those_of_inputs);
    implement<all_reduce>("AllReduceN", {"input", "output"}, true, true);
}

/// Where no TensorFlow is loaded there is nobody to tell, and nothing happens.
[[gnu::constructor]] void enter() noexcept {
    const char* missing = nullptr;
    if (!api().find(missing)) {
        if (missing != nullptr)
            std::fprintf(stderr, "[ERROR DDL-1-6] ddl_MDR.so: this TensorFlow has no %s; take a later one\n", missing);
        return;
    }
    try {
        register_all();
    } catch (const std::exception& why) {
        std::fprintf(stderr, "[ERROR DDL-1-6] ddl_MDR.so: TensorFlow took no operators: %s\n", why.what());
    }
}

}  // namespace
}  // namespace ddl::shim::tensorflow

/// The ranks of the operators, for Python, which ends their waits; NULL before Init.
extern "C" DDL_API ddl_communicator* ddl_tensorflow_ranks() { return ddl::shim::tensorflow::ranks::here().world(); }
