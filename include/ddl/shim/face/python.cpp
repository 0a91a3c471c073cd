// SPDX-License-Identifier: Apache-2.0
#include <ddl/shim/ddl.h>

#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <utility>

// Methods of Python that call this library without ctypes between, and without Python.h: one library serves every CPython
// from 3.9 on. It goes by functions of the stable ABI alone, and by two structs that are part of it; no object is looked into.
// In a process without Python these functions are null, and nobody asks for a method.
extern "C" {
struct PyObject;
using Py_ssize_t = std::ptrdiff_t;
struct Py_buffer {
    void* buf;
    PyObject* obj;
    Py_ssize_t len, itemsize;
    int readonly, ndim;
    char* format;
    Py_ssize_t *shape, *strides, *suboffsets;
    void* internal;
};
[[gnu::weak]] extern PyObject _Py_NoneStruct;
[[gnu::weak]] extern PyObject* PyExc_Exception;
[[gnu::weak]] void Py_DecRef(PyObject*);
[[gnu::weak]] void PyErr_Clear();
[[gnu::weak]] int PyErr_ExceptionMatches(PyObject*);
[[gnu::weak]] PyObject* PyErr_Occurred();
[[gnu::weak]] void* PyEval_SaveThread();
[[gnu::weak]] void PyEval_RestoreThread(void*);
[[gnu::weak]] PyObject* PyLong_FromLong(long);
[[gnu::weak]] Py_ssize_t PyLong_AsSsize_t(PyObject*);
[[gnu::weak]] void* PyLong_AsVoidPtr(PyObject*);
[[gnu::weak]] Py_ssize_t PyTuple_Size(PyObject*);
[[gnu::weak]] PyObject* PyTuple_GetItem(PyObject*, Py_ssize_t);  // borrowed, as is the next
[[gnu::weak]] PyObject* PyDict_GetItemString(PyObject*, const char*);
[[gnu::weak]] Py_ssize_t PyDict_Size(PyObject*);
[[gnu::weak]] PyObject* PyUnicode_InternFromString(const char*);
[[gnu::weak]] PyObject* PyObject_GetAttr(PyObject*, PyObject*);
[[gnu::weak]] PyObject* PyObject_GetAttrString(PyObject*, const char*);
[[gnu::weak]] PyObject* PyObject_Call(PyObject*, PyObject*, PyObject*);
[[gnu::weak]] PyObject* PyObject_CallMethod(PyObject*, const char*, const char*, ...);
[[gnu::weak]] int PyObject_CheckBuffer(PyObject*);
[[gnu::weak]] int PyObject_GetBuffer(PyObject*, Py_buffer*, int);
[[gnu::weak]] void PyBuffer_Release(Py_buffer*);
}

namespace {

bool python_is_here() noexcept {
    const auto all = [](auto*... each) { return (... && (each != nullptr)); };
    return all(&_Py_NoneStruct, &PyExc_Exception, Py_DecRef, PyErr_Clear, PyErr_ExceptionMatches, PyErr_Occurred,
               PyEval_SaveThread, PyEval_RestoreThread, PyLong_FromLong, PyLong_AsSsize_t, PyLong_AsVoidPtr,
               PyTuple_Size, PyTuple_GetItem, PyDict_GetItemString, PyDict_Size, PyUnicode_InternFromString,
               PyObject_GetAttr, PyObject_GetAttrString, PyObject_Call, PyObject_CallMethod, PyObject_CheckBuffer,
               PyObject_GetBuffer, PyBuffer_Release);
}

// The names of attributes, once Python has asked for a method.
PyObject* handle_name = nullptr;
PyObject* address_name = nullptr;  // which nothing but memory of `malloc` has
PyObject* nbytes_name = nullptr;

/// How many calls this thread has made.
thread_local std::atomic<unsigned long> calls{0};

/// The arguments of a method, by their names in Python.
enum argument { x, n, type, op, root, arguments };
constexpr const char* argument_names[arguments] = {"x", "n", "type", "op", "root"};

/// A call whose arguments leave no question.
struct plain_call {
    void* handle = nullptr;
    void* data = nullptr;
    std::size_t count = 0;
    ddl_element element = 0;
    int op = DDL_SUM;
    int root = 0;
};

struct method {
    const char* name;
    const char* long_way;
    int takes;  // so many of the next
    argument order[arguments];
    ddl_status (*run)(const plain_call& asked);

    static ddl_communicator* ranks(const plain_call& asked) { return static_cast<ddl_communicator*>(asked.handle); }
};
constexpr method methods[] = {
    {"allreduce",
     "_long_allreduce",
     4,
     {x, n, type, op},
     [](const plain_call& asked) {
         return ddl_run_allreduce(method::ranks(asked), asked.data, asked.data, asked.count, asked.element, asked.op);
     }},
    {"broadcast",
     "_long_broadcast",
     4,
     {x, root, n, type},
     [](const plain_call& asked) {
         return ddl_run_broadcast(method::ranks(asked), asked.data, asked.count, asked.element, asked.root);
     }},
    {"reduce",
     "_long_reduce",
     5,
     {x, root, n, type, op},
     [](const plain_call& asked) {
         void* const out = ddl_get_rank(method::ranks(asked)) == asked.root ? asked.data : nullptr;
         return ddl_run_reduce(method::ranks(asked), asked.data, out, asked.count, asked.element, asked.op, asked.root);
     }},
    {"barrier", "_long_barrier", 0, {}, [](const plain_call& asked) { return ddl_run_barrier(method::ranks(asked)); }},
    {"__call__",
     "_long___call__",
     0,
     {},
     [](const plain_call& asked) { return ddl_run_plan(static_cast<ddl_plan*>(asked.handle)); }},
};

/// What a buffer's format says, if it is of one native value; -1 for all else.
ddl_element element_of(const char* format, Py_ssize_t bytes) noexcept {
    const int size = bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3;
    if (std::strcmp(format, "Zf") == 0) return DDL_COMPLEX_FLOAT;
    if (std::strcmp(format, "Zd") == 0) return DDL_COMPLEX_DOUBLE;
    if (format[0] == '\0' || format[1] != '\0') return -1;
    switch (format[0]) {
        case '?': return DDL_BOOL;
        case 'e': return DDL_HALF;
        case 'f': return DDL_FLOAT;
        case 'd': return DDL_DOUBLE;
        case 'b':
        case 'h':
        case 'i':
        case 'l':
        case 'q': return DDL_INT8 + 2 * size;
        case 'B':
        case 'H':
        case 'I':
        case 'L':
        case 'Q': return DDL_UINT8 + 2 * size;
        default: return -1;
    }
}

/// By a DDL_TYPE of Python's.
constexpr ddl_element types[] = {DDL_FLOAT,  DDL_HALF,     DDL_DOUBLE, DDL_INT8,          DDL_UINT8,
                                 DDL_INT16,  DDL_UINT16,   DDL_INT32,  DDL_UINT32,        DDL_INT64,
                                 DDL_UINT64, DDL_BFLOAT16, DDL_BOOL,   DDL_COMPLEX_FLOAT, DDL_COMPLEX_DOUBLE};

/// Reads the arguments of one call of a method. What is not plain is the long way's affair.
///
/// Where it asks for an attribute, or for a buffer, code in Python may run, so not all of it is noexcept.
class reader {
public:
    enum class finding { plain, not_plain, raised };

    reader(const method& asked, PyObject* self, PyObject* positional, PyObject* named) noexcept
        : asked_{asked}, self_{self}, positional_{positional}, named_{named} {}
    reader(const reader&) = delete;
    reader& operator=(const reader&) = delete;

    /// To be called at the end. No destructor does it: Python may end a thread that wants to go on, by unwinding it.
    void let_go() {
        if (held_) PyBuffer_Release(&buffer_);
    }

    finding operator()(plain_call& call) {
        call.handle = pointer(self_, handle_name);
        if (call.handle != nullptr && sort() && (asked_.takes == 0 || read(call))) return finding::plain;
        if (PyErr_Occurred() != nullptr) {
            if (PyErr_ExceptionMatches(PyExc_Exception) == 0) return finding::raised;  // such as KeyboardInterrupt
            PyErr_Clear();
        }
        return finding::not_plain;
    }

private:
    /// An attribute that is an int, as an address; null if there is none.
    static void* pointer(PyObject* of, PyObject* name) {
        PyObject* const value = PyObject_GetAttr(of, name);
        if (value == nullptr) return nullptr;
        void* const address = PyLong_AsVoidPtr(value);
        Py_DecRef(value);
        return address;
    }

    /// Puts each value to its name. A name that comes twice, or is none, leaves one over.
    bool sort() noexcept {
        const Py_ssize_t in_order = PyTuple_Size(positional_);
        Py_ssize_t left = in_order + (named_ == nullptr ? 0 : PyDict_Size(named_));
        for (int i = 0; i < asked_.takes && left > 0; ++i) {
            PyObject*& place = given_[asked_.order[i]];
            if (i < in_order) place = PyTuple_GetItem(positional_, i);
            else place = PyDict_GetItemString(named_, argument_names[asked_.order[i]]);
            left -= place != nullptr;
        }
        return left == 0;
    }

    bool read(plain_call& call) {
        Py_ssize_t kind = -1;
        if (!open(given_[x]) || !number(type, true, kind) || kind >= static_cast<Py_ssize_t>(std::size(types)))
            return false;
        const ddl_element own =
            of_malloc_ ? (kind < 0 ? DDL_FLOAT : types[kind]) : element_of(buffer_.format, buffer_.itemsize);
        if (own < 0 || (kind >= 0 && types[kind] != own)) return false;
        const auto each = static_cast<Py_ssize_t>(ddl_size_element(own));
        Py_ssize_t count = buffer_.len / each;
        if (!number(n, true, count) || count > buffer_.len / each) return false;
        call.data = buffer_.buf;
        call.count = static_cast<std::size_t>(count);
        call.element = own;
        return small(op, call.op) && small(root, call.root);
    }

    /// Takes hold of the bytes of a buffer, or finds those of memory of `malloc`, which has no type.
    bool open(PyObject* data) {
        constexpr int writable = 0x1, format = 0x4, contiguous = 0x98;  // in the order of C or Fortran
        if (data == nullptr) return false;
        of_malloc_ = PyObject_CheckBuffer(data) == 0;
        if (of_malloc_) {
            buffer_.buf = pointer(data, address_name);
            if (buffer_.buf == nullptr) return false;
            buffer_.len = static_cast<Py_ssize_t>(reinterpret_cast<std::intptr_t>(pointer(data, nbytes_name)));
            return buffer_.len >= 0 && PyErr_Occurred() == nullptr;
        }
        held_ = PyObject_GetBuffer(data, &buffer_, writable | format | contiguous) == 0;
        return held_ && buffer_.format != nullptr;
    }

    /// An int from 0 on; where none is given `value` stays as it is.
    bool number(argument which, bool may_be_none, Py_ssize_t& value) noexcept {
        PyObject* const given = given_[which];
        if (given == nullptr || (may_be_none && given == &_Py_NoneStruct)) return true;
        value = PyLong_AsSsize_t(given);  // -1 of what is no int
        return value >= 0;
    }
    bool small(argument which, int& value) noexcept {
        Py_ssize_t wide = value;
        const bool plain = number(which, false, wide) && wide <= INT_MAX;
        value = static_cast<int>(wide);
        return plain;
    }

    const method& asked_;
    PyObject* self_;
    PyObject* positional_;
    PyObject* named_;
    PyObject* given_[arguments] = {};
    Py_buffer buffer_{};
    bool held_ = false;
    bool of_malloc_ = false;
};

/// A method as Python calls it. While it runs other threads of Python do, too.
template <int Which>
PyObject* called(PyObject* self, PyObject* positional, PyObject* named) {
    constexpr const method& asked = methods[Which];
    plain_call call;
    reader read{asked, self, positional, named};
    const reader::finding found = read(call);
    if (found == reader::finding::plain) {
        calls.fetch_add(1, std::memory_order_relaxed);
        void* const thread = PyEval_SaveThread();
        const ddl_status status = asked.run(call);
        PyEval_RestoreThread(thread);
        read.let_go();
        return status == DDL_OK ? PyLong_FromLong(0) : PyObject_CallMethod(self, "_check", "i", status);
    }
    if (found == reader::finding::raised) return nullptr;  // before a buffer was held
    read.let_go();
    PyObject* const long_way = PyObject_GetAttrString(self, asked.long_way);
    if (long_way == nullptr) return nullptr;
    PyObject* const result = PyObject_Call(long_way, positional, named);
    Py_DecRef(long_way);
    return result;
}

using function = PyObject* (*)(PyObject*, PyObject*, PyObject*);
template <int... Which>
function find(const char* name, std::integer_sequence<int, Which...>) noexcept {
    function found = nullptr;
    ((std::strcmp(name, methods[Which].name) == 0 ? void(found = called<Which>) : void()), ...);
    return found;
}

}  // namespace

extern "C" {

/// Where the number of plain calls stands that the calling thread has made. Others may read it as long as that lives.
DDL_API const unsigned long* ddl_python_calls();
const unsigned long* ddl_python_calls() {
    static_assert(sizeof calls == sizeof(unsigned long));
    return reinterpret_cast<const unsigned long*>(&calls);
}

/// The function of a method of pyddl.Communicator, METH_VARARGS | METH_KEYWORDS; null if there is none of that name, or the
/// interpreter does not export what it calls. `self` has the handle in `_handle`, a `_check(status)` that throws, and what
/// takes the arguments that are not plain in `_long_<name>`.
DDL_API void* ddl_python_method(const char* name);
void* ddl_python_method(const char* name) {
    if (!python_is_here()) return nullptr;
    if (handle_name == nullptr) handle_name = PyUnicode_InternFromString("_handle");
    if (address_name == nullptr) address_name = PyUnicode_InternFromString("_ddl_malloc_address");
    if (nbytes_name == nullptr) nbytes_name = PyUnicode_InternFromString("nbytes");
    if (handle_name == nullptr || address_name == nullptr || nbytes_name == nullptr) return nullptr;
    return reinterpret_cast<void*>(find(name, std::make_integer_sequence<int, static_cast<int>(std::size(methods))>{}));
}

}  // extern "C"
