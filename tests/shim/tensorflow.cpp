// SPDX-License-Identifier: Apache-2.0
// ranks: 1 2 3
// mpi-ranks: 2
// tensorflow: a double
// rows: few
#include "doubles/tensorflow.hpp"

#include <ddl/element/bfloat16.hpp>
#include <ddl/element/half.hpp>
#include <ddl/shim/ddl.h>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "heard.hpp"

namespace {

/// TensorFlow and the operators, as a process of Python loads them: first one, then the other, neither for all to see.
struct loaded {
    loaded() {
        void* const tensorflow = opened(DDL_TEST_TENSORFLOW);
        seen = static_cast<tensorflow_double*>(::dlsym(tensorflow, "double_of_tensorflow"));
        operators = opened(DDL_TEST_OPERATORS);
    }
    static void* opened(const char* path) {
        void* const library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) throw std::runtime_error(::dlerror());
        return library;
    }
    static loaded& get() {
        static loaded once;
        return once;
    }
    tensorflow_double* seen;
    void* operators;
};

tensorflow_double& seen() { return *loaded::get().seen; }

using attributes = std::map<std::string, std::variant<std::string, float, bool>>;

constexpr int of_float = 1, of_int32 = 3, of_complex_float = 8, of_int64 = 9, of_bfloat16 = 14, of_complex_double = 18,
              of_half = 19;
template <class Element>
constexpr int type_of = std::is_same_v<Element, float>                  ? of_float
                        : std::is_same_v<Element, std::int32_t>         ? of_int32
                        : std::is_same_v<Element, std::int64_t>         ? of_int64
                        : std::is_same_v<Element, std::complex<float>>  ? of_complex_float
                        : std::is_same_v<Element, std::complex<double>> ? of_complex_double
                        : std::is_same_v<Element, ddl::bfloat16>        ? of_bfloat16
                                                                        : of_half;

template <class Element>
TF_Tensor tensor(std::initializer_list<Element> values) {
    auto memory = std::make_shared<std::vector<std::byte>>(values.size() * sizeof(Element));
    if (values.size() != 0) std::memcpy(memory->data(), values.begin(), memory->size());
    return {type_of<Element>, {static_cast<std::int64_t>(values.size())}, memory};
}

template <class Element>
std::vector<Element> values_of(const TF_Tensor& tensor) {
    std::vector<Element> values(tensor.memory->size() / sizeof(Element));
    if (!values.empty()) std::memcpy(values.data(), tensor.memory->data(), tensor.memory->size());
    return values;
}

/// A kernel, made and run as TensorFlow does it.
struct kernel {
    kernel(const char* operation, const attributes& given, int type = 0, const char* device = "CPU") {
        for (const TF_KernelBuilder& each : seen().kernels)
            if (each.operation == operation && each.device == device && (type == 0 || each.types.at("T") == type))
                builder = &each;
        BOOST_TEST_REQUIRE(builder != nullptr, operation << " has no kernel");
        construction.attributes = given;
        made = builder->create(&construction);
    }
    kernel(const kernel&) = delete;
    kernel& operator=(const kernel&) = delete;
    ~kernel() {
        if (made != nullptr) builder->destroy(made);
    }
    TF_OpKernelContext operator()(std::vector<TF_Tensor> inputs) const {
        TF_OpKernelContext run{std::move(inputs), {}, {}};
        builder->compute(made, &run);
        return run;
    }
    const TF_KernelBuilder* builder = nullptr;
    TF_OpKernelConstruction construction;
    void* made = nullptr;
};

TF_OpKernelContext init(int preferred_gpu = -1, const std::string& mode = "") {
    return kernel{"Init", {{"mode", mode}, {"pci", true}}}({tensor<std::int32_t>({preferred_gpu})});
}

/// This rank, once Init has run.
struct numbers {
    numbers() {
        const TF_OpKernelContext run = init();
        BOOST_TEST_REQUIRE(run.failure.code == 0, run.failure.words);
        for (const auto& [output, value] : run.outputs) all.push_back(values_of<std::int32_t>(value).at(0));
    }
    std::vector<std::int32_t> all;
};
const std::vector<std::int32_t>& ranks() {
    static const numbers ours;
    return ours.all;
}
int rank() { return ranks().at(0); }
int size() { return ranks().at(1); }

attributes reducing(const char* op, bool mpi = false, float check = 0) {
    return {{"op", std::string{op}}, {"mpi", mpi}, {"check", check}};
}

/// The run failed with this code of TensorFlow's, and these words.
void expect_failure(int code, const std::string& words, const TF_OpKernelContext& run) {
    BOOST_TEST(run.failure.code == code, run.failure.code << ": " << run.failure.words);
    BOOST_TEST(run.failure.words.find(words) != std::string::npos,
               "'" << words << "' is not in: " << run.failure.words);
}

/// A current folder of this process's own.
struct own_folder {
    own_folder() {
        char name[] = "/tmp/ddl-dump-XXXXXX";
        here = ::mkdtemp(name);
        std::filesystem::current_path(here);
    }
    ~own_folder() {
        std::filesystem::current_path(before);
        std::filesystem::remove_all(here);
    }
    std::vector<std::string> lines_of_dump() const {
        std::vector<std::string> lines;
        for (const auto& file : std::filesystem::directory_iterator{here}) {
            BOOST_TEST(file.path().filename().string().starts_with("ddl.dump." + std::to_string(rank()) + "."));
            std::ifstream text{file.path()};
            for (std::string line; std::getline(text, line);) lines.push_back(line);
        }
        return lines;
    }
    std::filesystem::path before = std::filesystem::current_path();
    std::filesystem::path here;
};

}  // namespace

/// Does `act` in a process of its own, which has loaded nothing yet; it returns whether all is well.
template <class Act>
bool child_does(Act act) {
    const ::pid_t child = ::fork();
    if (child == 0) ::_exit(act() ? 0 : 1);
    int status = -1;
    ::waitpid(child, &status, 0);
    return status == 0;
}

void* operators_alone() { return loaded::opened(DDL_TEST_OPERATORS); }

BOOST_AUTO_TEST_SUITE(loading)

BOOST_AUTO_TEST_CASE(where_no_tensorflow_is_nothing_happens) {
    BOOST_TEST(child_does([] {
        heard lines;
        const auto ranks_of =
            reinterpret_cast<ddl_communicator* (*)()>(::dlsym(operators_alone(), "ddl_tensorflow_ranks"));
        return ranks_of != nullptr && ranks_of() == nullptr && lines.words().empty();
    }));
}

BOOST_AUTO_TEST_CASE(a_tensorflow_that_lacks_a_function_is_named) {
    BOOST_TEST(child_does([] {
        heard lines;
        loaded::opened(DDL_TEST_TENSORFLOW_OF_OLD);
        operators_alone();
        return lines.words() == "[ERROR DDL-1-6] ddl_MDR.so: this TensorFlow has no TF_NewStatus; take a later one\n";
    }));
}

BOOST_AUTO_TEST_CASE(a_tensorflow_that_takes_no_operator_is_heard) {
    BOOST_TEST(child_does([] {
        heard lines;
        static_cast<tensorflow_double*>(::dlsym(loaded::opened(DDL_TEST_TENSORFLOW), "double_of_tensorflow"))->refuses =
            true;
        operators_alone();
        return lines.words() == "[ERROR DDL-1-6] ddl_MDR.so: TensorFlow took no operators: no operator is wanted\n";
    }));
}

BOOST_AUTO_TEST_CASE(the_operators_are_those_of_ibm) {
    using words = std::vector<std::string>;
    const auto& all = seen().definitions;
    BOOST_TEST(all.size() == 4U);
    BOOST_TEST((all.at("Init").inputs == words{"user_gpuid: int32"}));
    BOOST_TEST((all.at("Init").outputs ==
                words{"rank: int32", "size: int32", "local_rank: int32", "local_size: int32", "local_gpuid: int32"}));
    BOOST_TEST((all.at("Init").attributes == words{"mode: string", "pci: bool = true"}));
    BOOST_TEST((all.at("Bcast").inputs == words{"input: T"}));
    BOOST_TEST((all.at("Bcast").outputs == words{"output: T"}));
    for (const char* const name : {"AllReduce", "AllReduceN"}) {
        const bool several = all.at(name).name == "AllReduceN";
        BOOST_TEST((all.at(name).inputs == words{several ? "input: N*T" : "input: T"}));
        BOOST_TEST((all.at(name).outputs == words{several ? "output: N*T" : "output: T"}));
        const words& attributes = all.at(name).attributes;
        for (const char* const wanted : {"op: {'sum', 'avg'}", "mpi: bool = false", "check: float = 0.0",
                                         "T: {float, half, bfloat16, double, int32, int64, complex64, complex128}"})
            BOOST_TEST(std::ranges::count(attributes, wanted) == 1, wanted);
        BOOST_TEST(std::ranges::count(attributes, "N: int >= 1") == (several ? 1 : 0));
    }
    for (const auto& [name, each] : all) BOOST_TEST(each.is_stateful, name << " may be left out");
}

BOOST_AUTO_TEST_CASE(every_type_has_a_kernel_on_each_device_and_its_tensors_on_the_host) {
    std::map<std::string, std::set<int>> types;
    for (const TF_KernelBuilder& each : seen().kernels) {
        const std::string place = each.operation + " " + each.device;
        const bool is_new = types[place].insert(each.types.contains("T") ? each.types.at("T") : 0).second;
        BOOST_TEST(is_new, place << " has two kernels of one type");
        const std::size_t arguments = each.operation == "Init" ? 6 : 2;
        BOOST_TEST(each.on_host.size() == (each.device == "GPU" ? arguments : 0));
    }
    for (const char* const device : {" CPU", " GPU"}) {
        BOOST_TEST((types[std::string{"Init"} + device] == std::set<int>{0}));
        BOOST_TEST(types[std::string{"Bcast"} + device].size() == 15U);
        for (const char* const name : {"AllReduce", "AllReduceN"})
            BOOST_TEST((types[name + std::string{device}] == std::set<int>{1, 2, 3, 8, 9, 14, 18, 19}));
    }
}

BOOST_AUTO_TEST_CASE(outputs_have_the_shapes_of_inputs) {
    TF_Status status;
    TF_ShapeInferenceContext of_init{{{"[]"}}, {}};
    seen().definitions.at("Init").shapes(&of_init, &status);
    BOOST_TEST(of_init.outputs.size() == 5U);
    for (const auto& [output, shape] : of_init.outputs) BOOST_TEST(shape.words == "scalar");
    TF_ShapeInferenceContext of_several{{{"[2,?]"}, {"[]"}, {"?"}}, {}};
    seen().definitions.at("AllReduceN").shapes(&of_several, &status);
    for (int i = 0; i < 3; ++i)
        BOOST_TEST(of_several.outputs.at(i).words == of_several.inputs[static_cast<std::size_t>(i)].words);
    BOOST_TEST(seen().shapes == 0);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(running)

BOOST_AUTO_TEST_CASE(before_init_there_is_an_error) {
    const kernel broadcasting{"Bcast", {}, of_float};
    expect_failure(9, "Bcast: DDL is not started; run the operator init first", broadcasting({tensor({1.0f})}));
    const kernel adding{"AllReduce", reducing("sum"), of_float};
    expect_failure(9, "AllReduce: DDL is not started; run the operator init first", adding({tensor({1.0f})}));
}

BOOST_AUTO_TEST_CASE(init_refuses_what_makes_no_sense) {
    const kernel starting{"Init", {{"mode", std::string{}}, {"pci", true}}};
    expect_failure(3, "Init: user_gpuid has 0 bytes; pass one int32", starting({tensor<std::int32_t>({})}));
    ::setenv("DDL_TRANSPORT", "pigeon", 1);
    expect_failure(3, "Init: DDL_TRANSPORT is \"pigeon\"", init());
    ::unsetenv("DDL_TRANSPORT");
    ddl_communicator* world = nullptr;
    BOOST_TEST_REQUIRE(ddl_open_environment(&world) == DDL_OK);
    const bool is_first = ddl_get_rank(world) == 0;
    const std::string begin = "Init, rank " + std::to_string(ddl_get_rank(world));
    ddl_close(world);
    expect_failure(3, begin + ": invalid dim size=", init(-1, "-mode b:7x7"));
    // of a mode that is wrong on one rank all hear
    const TF_OpKernelContext on_one = init(-1, is_first ? "-mode b:7x7" : "");
    expect_failure(3, begin, on_one);
    expect_failure(3, is_first ? "invalid dim size=" : "see its own error", on_one);
    const kernel without{"Init", {{"pci", true}}};
    BOOST_TEST((without.made == nullptr && without.construction.failure.code != 0));
}

BOOST_AUTO_TEST_CASE(init_says_who_a_rank_is_and_again_the_same) {
    BOOST_TEST_REQUIRE(ranks().size() == 5U);
    const char* launched = "1";
    for (const char* const name : {"WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE"})
        if (const char* const value = std::getenv(name)) launched = value;
    BOOST_TEST(size() == std::atoi(launched));
    BOOST_TEST((rank() >= 0 && rank() < size()));
    BOOST_TEST((ranks()[2] == rank() && ranks()[3] == size() && ranks()[4] == rank()));
    const TF_OpKernelContext again = init(5);
    BOOST_TEST(again.failure.code == 0, again.failure.words);
    BOOST_TEST(values_of<std::int32_t>(again.outputs.at(4)).at(0) == rank());
    expect_failure(9, "DDL was started with mode \"\", and now it is \"-mode r\"; start it once", init(-1, "-mode r"));
}

BOOST_AUTO_TEST_CASE(bcast_gives_the_tensor_of_rank_0) {
    ranks();
    const kernel broadcasting{"Bcast", {}, of_float};
    const auto mine = static_cast<float>(rank() + 1);
    const TF_OpKernelContext run = broadcasting({tensor({mine, 7.0f})});
    BOOST_TEST_REQUIRE(run.failure.code == 0, run.failure.words);
    BOOST_TEST((values_of<float>(run.outputs.at(0)) == std::vector{1.0f, 7.0f}));
    const TF_OpKernelContext empty = broadcasting({tensor<float>({})});
    BOOST_TEST(empty.failure.code == 0, empty.failure.words);
}

BOOST_AUTO_TEST_CASE(one_tensor_is_added_or_averaged) {
    const int total = size() * (size() + 1) / 2;
    for (const char* const device : {"CPU", "GPU"})
        for (const bool average : {false, true}) {
            const kernel adding{"AllReduce", reducing(average ? "avg" : "sum"), of_float, device};
            const TF_OpKernelContext run = adding({tensor({static_cast<float>(rank() + 1), 2.0f})});
            BOOST_TEST_REQUIRE(run.failure.code == 0, run.failure.words);
            const auto divisor = static_cast<float>(average ? size() : 1);
            const std::vector expected{static_cast<float>(total) / divisor,
                                       2.0f * static_cast<float>(size()) / divisor};
            BOOST_TEST((values_of<float>(run.outputs.at(0)) == expected));
        }
}

BOOST_AUTO_TEST_CASE(several_tensors_go_in_one_exchange_and_an_empty_one_too) {
    ranks();
    const kernel adding{"AllReduceN", reducing("sum"), of_int64};
    const auto mine = std::int64_t{rank()};
    const TF_OpKernelContext run =
        adding({tensor<std::int64_t>({mine, 1}), tensor<std::int64_t>({}), tensor<std::int64_t>({mine << 40})});
    BOOST_TEST_REQUIRE(run.failure.code == 0, run.failure.words);
    const std::int64_t total = std::int64_t{size()} * (size() - 1) / 2;
    BOOST_TEST((values_of<std::int64_t>(run.outputs.at(0)) == std::vector<std::int64_t>{total, size()}));
    BOOST_TEST(run.outputs.at(1).memory->empty());
    BOOST_TEST((values_of<std::int64_t>(run.outputs.at(2)) == std::vector<std::int64_t>{total << 40}));
}

BOOST_AUTO_TEST_CASE(an_input_that_somebody_else_wants_stays_as_it_is) {
    ranks();
    const kernel adding{"AllReduce", reducing("sum"), of_float};
    const TF_Tensor kept = tensor({1.0f, 2.0f});
    const int before = seen().forwarded;
    BOOST_TEST(adding({kept}).failure.code == 0);
    BOOST_TEST((seen().forwarded == before && values_of<float>(kept) == std::vector{1.0f, 2.0f}));
    std::vector<TF_Tensor> nobodys;
    nobodys.push_back(tensor({1.0f, 2.0f}));
    BOOST_TEST(adding(std::move(nobodys)).failure.code == 0);
    BOOST_TEST(seen().forwarded == before + 1);  // of another nothing is copied
}

template <class Element>
void adds_what_the_library_adds(ddl_element element) {
    ddl_communicator* world = nullptr;
    BOOST_TEST_REQUIRE(ddl_open_environment(&world) == DDL_OK);
    Element value{};
    const bool is_added = ddl_run_allreduce(world, &value, &value, 1, element, DDL_SUM) == DDL_OK;
    ddl_close(world);
    const auto mine = static_cast<Element>(static_cast<float>(rank() + 1));
    const kernel adding{"AllReduce", reducing("sum"), type_of<Element>};
    const TF_OpKernelContext run = adding({tensor({mine})});
    BOOST_TEST(run.failure.code == (is_added ? 0 : 12), run.failure.words);
    const auto total = static_cast<float>(size() * (size() + 1)) / 2;
    if (is_added) BOOST_TEST(static_cast<float>(values_of<Element>(run.outputs.at(0)).at(0)) == total);
    const kernel plainly{"AllReduce", reducing("avg", true), type_of<Element>};  // of the other way there is all
    const TF_OpKernelContext plain = plainly({tensor({mine})});
    BOOST_TEST_REQUIRE(plain.failure.code == 0, plain.failure.words);
    const auto expected = static_cast<Element>(total / static_cast<float>(size()));  // rounded toward zero, if whole
    BOOST_TEST(static_cast<float>(values_of<Element>(plain.outputs.at(0)).at(0)) == static_cast<float>(expected));
}

BOOST_AUTO_TEST_CASE(types_are_those_of_the_library) {
    ranks();
    adds_what_the_library_adds<float>(DDL_FLOAT);
    adds_what_the_library_adds<std::int64_t>(DDL_INT64);
    adds_what_the_library_adds<std::int32_t>(DDL_INT32);
    adds_what_the_library_adds<ddl::half>(DDL_HALF);
    adds_what_the_library_adds<ddl::bfloat16>(DDL_BFLOAT16);
}

/// Also that its own result passes the check, and what it is told of one that does not.
template <class Element>
void adds_complex_numbers() {
    ranks();
    using part = typename Element::value_type;
    const auto all = static_cast<part>(size()), total = static_cast<part>(size() * (size() + 1)) / 2;
    const Element mine{static_cast<part>(rank() + 1), -2};
    for (const bool average : {false, true})
        for (const bool plain : {false, true}) {
            const kernel adding{"AllReduce", reducing(average ? "avg" : "sum", plain, plain ? 0.0F : 1e-6F),
                                type_of<Element>};
            const TF_OpKernelContext run = adding({tensor({mine, Element{0, std::numeric_limits<part>::infinity()}})});
            if (!plain && run.failure.code == 12) continue;  // where the libraries hold few rows
            BOOST_TEST_REQUIRE(run.failure.code == 0, run.failure.words);
            const part divisor = average ? all : 1;
            const std::vector expected{Element{total / divisor, -2 * all / divisor},
                                       Element{0, std::numeric_limits<part>::infinity()}};
            BOOST_TEST((values_of<Element>(run.outputs.at(0)) == expected));
        }
    const own_folder folder;
    const kernel checking{"AllReduce", reducing("sum", false, 0.5f), type_of<Element>};
    const TF_OpKernelContext run = checking({tensor({Element{1, std::numeric_limits<part>::quiet_NaN()}})});
    if (run.failure.code == 12) return;
    expect_failure(13, "1 of 1 elements of tensor 0 differ", run);
    BOOST_TEST(folder.lines_of_dump().at(2).starts_with("0 1+nanj "));
}

BOOST_AUTO_TEST_CASE(complex_numbers_are_added_and_checked) {
    adds_complex_numbers<std::complex<float>>();
    adds_complex_numbers<std::complex<double>>();
}

BOOST_AUTO_TEST_CASE(threads_take_turns) {
    ranks();
    const kernel adding{"AllReduce", reducing("sum", false, 0.5f), of_float};
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int each = 0; each < 4; ++each)
        threads.emplace_back([&] {
            for (int step = 0; step < 20; ++step) {
                const TF_OpKernelContext run = adding({tensor({2.0f, 4.0f})});
                const auto all = static_cast<float>(size());
                if (run.failure.code != 0 || values_of<float>(run.outputs.at(0)) != std::vector{2 * all, 4 * all})
                    ++wrong;
            }
        });
    for (std::thread& each : threads) each.join();
    BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_CASE(ranks_that_differ_are_all_told_and_go_on) {
    ranks();
    if (size() == 1) return;
    auto different = [](int elements) {
        TF_Tensor made = tensor({0.0f});
        made.extents = {elements};
        made.memory->resize(sizeof(float) * static_cast<std::size_t>(elements));
        return made;
    };
    const kernel adding{"AllReduce", reducing("sum"), of_float};
    expect_failure(3, "elements, this rank", adding({different(3 + rank())}));
    const kernel plainly{"AllReduce", reducing("sum", true), of_float};
    expect_failure(3, "AllReduce, rank " + std::to_string(rank()) + ": ranks bring different counts or types, this one",
                   plainly({different(3 + rank())}));
    const kernel broadcasting{"Bcast", {}, of_float};
    expect_failure(3, "elements, this rank", broadcasting({different(3 + rank())}));
    BOOST_TEST(adding({tensor({1.0f})}).failure.code == 0);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(checking)

BOOST_AUTO_TEST_CASE(what_agrees_passes) {
    ranks();
    const kernel adding{"AllReduceN", reducing("avg", false, 1e-6f), of_float};
    const TF_OpKernelContext run = adding({tensor({0.0f, 3.0f, -1.5f}), tensor({static_cast<float>(rank())})});
    BOOST_TEST(run.failure.code == 0, run.failure.words);
}

BOOST_AUTO_TEST_CASE(what_is_no_number_fails_and_is_dumped) {
    ranks();
    const own_folder folder;
    const kernel adding{"AllReduce", reducing("sum", false, 0.5f), of_float};
    const float mine = rank() == 0 ? std::numeric_limits<float>::quiet_NaN() : 1.0f;
    expect_failure(
        13, "1 of 2 elements of tensor 0 differ from the plain reduction by more than check=0.5, first element 1",
        adding({tensor({1.0f, mine})}));
    const std::vector<std::string> lines = folder.lines_of_dump();
    BOOST_TEST_REQUIRE(lines.size() == 3U);
    BOOST_TEST((lines[0].starts_with("# AllReduce, tensor 0, rank ") && lines[1] == "# element input ddl plain"));
    BOOST_TEST(lines[2].starts_with("1 "));
    BOOST_TEST(adding({tensor({1.0f})}).failure.code == 0);
}

BOOST_AUTO_TEST_CASE(a_rank_that_finds_nothing_hears_of_one_that_does) {
    ranks();
    if (size() != 3) return;  // the sum of three that floats round
    const own_folder folder;
    const kernel adding{"AllReduce", reducing("sum", false, rank() == 1 ? 2.0f : 0.5f), of_float};
    const float mine = rank() == 0 ? 1e8f : rank() == 1 ? 1.0f : -1e8f;
    expect_failure(13, rank() == 1 ? "differs on another rank" : "0 instead of 1; all are in ddl.dump.",
                   adding({tensor({mine})}));
    BOOST_TEST(folder.lines_of_dump().size() == (rank() == 1 ? 0U : 3U));
}

BOOST_AUTO_TEST_CASE(a_folder_that_takes_no_file_is_said_so) {
    ranks();
    const own_folder folder;
    std::filesystem::remove(folder.here);
    const kernel adding{"AllReduce", reducing("sum", false, 0.5f), of_float};
    expect_failure(13, "a dump could not be written here",
                   adding({tensor({std::numeric_limits<float>::infinity(), NAN})}));
}

BOOST_AUTO_TEST_CASE(a_check_below_zero_is_refused) {
    const kernel adding{"AllReduce", reducing("sum", false, -1.0f), of_float};
    BOOST_TEST((adding.made == nullptr && adding.construction.failure.code == 3));
    BOOST_TEST(adding.construction.failure.words == "AllReduce: check is -1; pass 0 or more");
}

BOOST_AUTO_TEST_CASE(a_fork_is_no_rank) {
    rank();  // which is started
    BOOST_TEST(child_does([] {
        const TF_OpKernelContext run = kernel{"Bcast", {}, of_float}({tensor<float>({1})});
        return run.failure.code == 9 && run.failure.words.find("Bcast: this process is a fork of a rank") == 0;
    }));
}

BOOST_AUTO_TEST_CASE(averages_of_great_integers_are_checked_without_wrapping) {
    rank();
    constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();
    for (const bool plain : {false, true}) {
        const kernel average{"AllReduce", reducing("avg", plain, plain ? 0.0F : 0.001F), of_int32};
        const TF_OpKernelContext run = average({tensor<std::int32_t>({most, -most})});
        if (!plain && run.failure.code == 12) continue;  // where the libraries hold few rows
        BOOST_TEST(run.failure.code == 0, run.failure.words);
        BOOST_TEST(values_of<std::int32_t>(run.outputs.at(0)) == (std::vector<std::int32_t>{most, -most}));
    }
}

BOOST_AUTO_TEST_CASE(all_is_given_back) {
    BOOST_TEST((seen().tensors == 0 && seen().statuses == 0 && seen().shapes == 0));
}

BOOST_AUTO_TEST_SUITE_END()
