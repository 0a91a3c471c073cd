# SPDX-License-Identifier: Apache-2.0
"""Which objects are arrays: layouts, protocols, memory; and which are refused, with what words."""


def test_any_contiguous_layout(python):
    python("""
base = np.arange(24, dtype=np.float32)
for data in (base.copy(), base.reshape(2, 3, 4).copy(), np.asfortranarray(base.reshape(4, 6)),
             base.reshape(2, 3, 4).copy().transpose(2, 0, 1), base.copy().reshape(1, 24, 1)[:, :, :], np.float32(base[:1].copy()),
             base.copy()[3:9], base.reshape(6, 4).copy()[2:4], np.zeros((0, 5), np.float32), np.zeros((3, 1)).T,
             np.array(5.0)):
    before = data.copy()
    pyddl.allreduce(data)
    same(data, before)
    pyddl.allreduce(data, data.size, op=pyddl.DDL_OP_MAX)
    same(data, before)
""")


def test_fortran_arrays_are_reduced_where_they_lie(ranks):
    ranks(2, """
data = np.asfortranarray(np.arange(12.).reshape(3, 4) + rank)
pyddl.allreduce(data)
same(data, np.arange(12.).reshape(3, 4) * 2 + 1)
data = np.zeros((2, 3, 4), np.int32).transpose(1, 2, 0)
data[:] = np.arange(24).reshape(3, 4, 2) + rank
pyddl.allreduce(data)
same(data, np.arange(24).reshape(3, 4, 2) * 2 + 1)
""")


def test_a_part_of_an_array(python):
    python("""
data = np.ones(10, np.float64)
pyddl.allreduce(data, 4)
pyddl.allreduce(data, 0)
pyddl.allreduce(data, np.int64(10), pyddl.DDL_TYPE_DOUBLE, pyddl.DDL_OP_SUM)
same(data, np.ones(10))
""")


def test_what_is_no_such_array_is_refused_with_a_reason(python):
    python("""
strided = np.zeros(20, np.float32)[::2]
locked = np.zeros(5, np.float32)
locked.flags.writeable = False
other_order = np.zeros(3, np.dtype(np.float32).newbyteorder())
cases = [
    (strided, ValueError, "is strided (shape (10,), strides (8,))"),
    (np.zeros((4, 4))[:, 1], ValueError, "is strided"),
    (np.zeros(4)[::-1], ValueError, "is strided"),
    (np.broadcast_to(np.zeros(1), (4,)), ValueError, "is read-only"),
    (locked, ValueError, "is read-only, and the result would replace it"),
    (other_order, ValueError, "bytes are in the other order"),
    (np.zeros(3, np.dtype("U4")), ValueError, "has dtype <U4"),
    (np.array([None]), ValueError, "has dtype object"),
    (np.zeros(3, np.longdouble), ValueError, "has dtype"),
    (np.zeros(3, [("a", "f4")]), ValueError, "has dtype"),
    ([1.0, 2.0], TypeError, "is of type list"),
    (1.0, TypeError, "is of type float"),
    (None, TypeError, "is of type NoneType"),
    ("text", TypeError, "is of type str"),
    (b"bytes", ValueError, "is read-only"),
    (np.zeros(3).mean(), ValueError, "is a NumPy scalar, which no result can replace; pass an array"),
    (np.bool_(True), ValueError, "is a NumPy scalar"),
]
for x, kind, words in cases:
    with refused(kind, "allreduce, rank 0: x ", words):
        pyddl.allreduce(x)
    if "read-only" not in words and "scalar" not in words:  # that of the root is not replaced
        with refused(kind, "broadcast, rank 0: x ", words):
            pyddl.broadcast(x)
    with refused(kind, "plan_allreduce, rank 0: x ", words):
        pyddl.plan_allreduce(x)
    with refused(kind, "allreduce_async, rank 0: x ", words):
        pyddl.allreduce_async(x)
pyddl.all_gather(locked, np.zeros(5, np.float32))  # what is only read may be read-only
""")


def test_an_array_that_no_result_replaces_may_be_read_only(ranks):
    ranks(2, """
mine = np.full(4, 1.0 + rank)
mine.flags.writeable = rank == 0
for call in (lambda x: pyddl.broadcast(x, 1), lambda x: pyddl.broadcast_async(x, 1).wait()):
    other = np.zeros(4) if rank == 0 else mine
    call(other)
    same(other, np.full(4, 2.0))
for mine in (mine, mine[:1] if rank == 0 else mine[0]):
    expected = mine + 2.0 if rank == 0 else mine
    pyddl.reduce(mine, 0)
    same(mine, expected)
letters = bytearray(4) if rank == 0 else b"abcd"
pyddl.broadcast(letters, 1)
assert letters == b"abcd"
mine = np.zeros(4)
mine.flags.writeable = rank == 1
for act in (lambda: pyddl.broadcast(mine, 1), lambda: pyddl.broadcast_async(mine, 1).wait(), lambda: pyddl.reduce(mine, 0)):
    with refused(ValueError if rank == 0 else pyddl.Mismatch, "x is read-only, and the result would replace it" if rank == 0 else ""):
        act()
""")


def test_counts_types_and_ops(python):
    python("""
data = np.zeros(10, np.float32)
for n, kind, words in ((11, ValueError, "n is 11; x holds 10 elements of type float32"),
                       (-1, ValueError, "n is -1"), (2**63, ValueError, "n is 9223372036854775808"), (2**200, ValueError, "n is"),
                       (3.0, TypeError, "n is 3.0; pass an integer"), ("3", TypeError, "n is '3'")):
    with refused(kind, "allreduce, rank 0: " + words):
        pyddl.allreduce(data, n)
for type, kind, words in ((pyddl.DDL_TYPE_DOUBLE, ValueError, "x has elements of type float32, and type says float64"),
                          (99, ValueError, "type is 99; pass a DDL_TYPE constant"), (-1, ValueError, "type is -1; pass"),
                          ("float", TypeError, "type is 'float'"), (2**70, ValueError, "type is")):
    with refused(kind, "allreduce, rank 0: " + words):
        pyddl.allreduce(data, 10, type)
for op, kind, words in ((-1, pyddl.InvalidArgument, "allreduce"), (99, ValueError, "allreduce"), (2**32, ValueError, "op is 4294967296"),
                        ("sum", TypeError, "op is 'sum'"), (None, TypeError, "op is None"), (0.0, TypeError, "op is 0.0")):
    with refused(kind, words):
        pyddl.allreduce(data, op=op)
with refused(pyddl.Unsupported, "allreduce, rank 0"):
    pyddl.allreduce(data, op=pyddl.DDL_OP_BIT_XOR)
for root in (1, -1, 2**31, 2**40, "0", None):
    with refused((ValueError, TypeError), "broadcast"):
        pyddl.broadcast(data, root)
same(data, np.zeros(10))
pyddl.allreduce(data, 10, pyddl.DDL_TYPE_FLOAT, pyddl.DDL_OP_SUM)
""")


def test_pairs_of_arrays(python):
    python("""
whole, part = np.zeros(10, np.float32), np.zeros(10, np.float32)
with refused(ValueError, "reduce_scatter, rank 0: out holds 9 elements, and of 10 this rank has 10"):
    pyddl.reduce_scatter(whole, part[:9])
with refused(ValueError, "all_gather, rank 0: x holds 9 elements"):
    pyddl.all_gather(part[:9], whole)
with refused(ValueError, "out has elements of type float64, and x of float32"):
    pyddl.all_to_all(whole, np.zeros(10))
with refused(ValueError, "scatter, rank 0: out is read-only"):
    part.flags.writeable = False
    pyddl.scatter(whole, part)
for call, name in ((pyddl.gather, "out"), (pyddl.scatter, "x")):
    for n, kind, words in ((9, ValueError, f"n is 9; {name} holds 10 elements; pass that number"), (-1, ValueError, f"n is -1; {name} holds 10"),
                           ("10", TypeError, "n is '10'; pass an integer")):
        with refused(kind, f"{call.__name__}, rank 0: {words}"):
            call(whole, np.zeros(10, np.float32), 0, n)
    call(whole, np.zeros(10, np.float32), 0, np.int64(10))
with refused(ValueError, "allreduce_n, rank 0: tensors are of types float32, float64"):
    pyddl.allreduce_n([whole, np.zeros(3)])
for call in (pyddl.allreduce_n, pyddl.allreduce_n_async):
    for tensors, said in ((whole, "one array"), (np.array(1.0), "one array"), (None, "of type NoneType"),
                          (pyddl.malloc(64, 64)[1], "of type Memory")):
        with refused(TypeError, f"{call.__name__}, rank 0: tensors is {said}; pass a list of arrays"):
            call(tensors)
    with refused(TypeError, f"{call.__name__}, rank 0: tensors[1] is of type list; pass a NumPy array"):
        call([whole, [1.0]])
    with refused(TypeError, f"{call.__name__}, rank 0: op is 'sum'; pass an integer"):
        call([whole], "sum")
pyddl.allreduce_n(np.ones((2, 3)))  # a list of its rows
for arguments, kind, words in (((10, 1), ValueError, "rank 1 of 1"), ((-1,), ValueError, "rank 0 of 1, count -1"), ((10**30,), ValueError, f"count is {10**30}; "),
                               ((1.5,), TypeError, "count is 1.5; "), (("a",), TypeError, "count is 'a'; "),
                               ((1, "a"), TypeError, "rank is 'a'; "), ((1, 2**32), ValueError, "rank is 4294967296; ")):
    with refused(kind, f"block, rank 0: {words}"):
        pyddl.block(*arguments)
assert pyddl.block(np.int64(7), np.int8(0)) == 7
""")


def test_buffers_and_interfaces(ranks):
    ranks(2, """
import array, ctypes
for make in (lambda: array.array("f", [1, 2, 3]), lambda: memoryview(array.array("f", [1, 2, 3])),
             lambda: (ctypes.c_float * 3)(1, 2, 3)):
    data = make()
    pyddl.allreduce(data)
    assert list(data) == [2, 4, 6]
class Interface:
    def __init__(self, array, **changes):
        self.array = array
        self.__array_interface__ = {**array.__array_interface__, **changes}
data = np.ones((2, 3), np.float64)
pyddl.allreduce(Interface(data))
same(data, np.full((2, 3), 2.0))
for changes, words in (({"data": (data.ctypes.data, True)}, "is read-only"), ({"typestr": ">f8"}, "other order"),
                       ({"strides": (64, 8)}, "is strided"), ({"typestr": "|V3"}, "type '|V3'"), ({"typestr": "??"}, "not know"),
                       ({"typestr": "<f4,("}, "not know"),
                       *((each, "has an array interface that makes no sense: ") for each in (
                           {"typestr": None}, {"typestr": float}, {"shape": None}, {"shape": (-1,)}, {"shape": (1.5,)}, {"data": 7}, {"data": ("x", False)},
                           {"data": (None, False)}, {"data": (-8, False)}, {"shape": (1 << 62, 8)}, {"strides": 4}, {"strides": "ab"},
                           {"strides": (8,)}))):
    with refused(ValueError, f"allreduce, rank {rank}: x ", words):
        pyddl.allreduce(Interface(data, **changes))
for name in ("n", "type", "op"):
    with refused(TypeError, f"allreduce, rank {rank}: {name} is array([0]); pass an integer"):
        pyddl.allreduce(data, **{name: np.array([0])})
same(data, np.full((2, 3), 2.0))
""")


def test_what_is_only_read_stays_alive(python):
    """Of an object whose interface describes something that is made anew each time."""
    python("""
import weakref
span = pyddl.arrays.span_of(np.float64(7), writable=False)
others = [np.zeros(1) for _ in range(50)]  # which take what is free
assert span.count == 1 and all(each.ctypes.data != span.address for each in others)
out, scalar = np.zeros(1), np.float64(7)
pyddl.all_gather(scalar, out)
assert out[0] == 7
_, memory = pyddl.malloc(64, 64)
pyddl.memcpy_host_to_device(memory, scalar)
assert memory.array(1, np.float64)[0] == 7
class Interface(dict):
    pass
class MadeAnew:
    @property
    def __array_interface__(self):
        made = np.arange(3.0)
        said.append(weakref.ref(made))
        return Interface(made.__array_interface__, owner=made)
said = []
span = pyddl.arrays.span_of(MadeAnew())
assert said[0]() is not None
del span
assert said[0]() is None
""")


def test_interfaces_whose_data_are_a_buffer(python):
    """As images of PIL have it."""
    python("""
class Interface:
    def __init__(self, data, shape):
        self.__array_interface__ = {"typestr": "|u1", "shape": shape, "data": data, "version": 3}
for length in (2, 4):
    data = bytearray(range(200, 200 + length))
    span = pyddl.arrays.span_of(Interface(data, (length, 1)))
    assert span.count == length and span.address == np.frombuffer(data, np.uint8).ctypes.data
    pyddl.broadcast(Interface(data, (length,)))
    with refused(ValueError, "allreduce, rank 0: x is read-only"):
        pyddl.allreduce(Interface(bytes(data), (length,)))
    out = np.zeros(length, np.uint8)
    pyddl.memcpy_host_to_device(pyddl.malloc(64, 64)[1], Interface(bytes(data), (length,)))
with refused(ValueError, "x has an array interface that makes no sense"):
    pyddl.broadcast(Interface([data, False], (2,)))
""")


def test_dlpack(ranks):
    ranks(2, """
class Tensor:
    "Offers DLPack alone."
    def __init__(self, array): self.array = array
    def __dlpack__(self, **more): return self.array.__dlpack__(**more)
    def __dlpack_device__(self): return self.array.__dlpack_device__()
for dtype in "int8 uint16 int64 float16 float32 float64 complex64".split():
    data = np.ones((4, 5), dtype)
    pyddl.allreduce(Tensor(data))
    same(data, np.full((4, 5), 2, dtype))
data = np.asfortranarray(np.ones((4, 5), np.float32))
pyddl.allreduce(Tensor(data))
same(data, np.full((4, 5), 2))
with refused(ValueError, "is strided"):
    pyddl.allreduce(Tensor(np.zeros((4, 4), np.float32)[:, ::2]))
locked = np.zeros(3, np.float32)
locked.flags.writeable = False
with refused(ValueError, "__dlpack__" if np.lib.NumpyVersion(np.__version__) < "2.1.0" else "is read-only"):
    pyddl.allreduce(Tensor(locked))
class Nothing:
    def __dlpack__(self): return 5
with refused(ValueError, "gives no DLPack tensor"):
    pyddl.allreduce(Nothing())
""")


def test_arrays_on_a_gpu_by_a_double_of_the_driver(ranks, cuda_double):
    ranks(2, cuda_double + """
from tensors import OnDevice
driver = pyddl.cuda.memory()
data = OnDevice(np.arange(1000, dtype=np.float32))
pyddl.allreduce(data)
same(data.get(), np.arange(1000) * 2)
pyddl.broadcast(data, 1, n=5)
pyddl.allreduce_async(data).wait()
pyddl.plan_allreduce(data)()
pyddl.allreduce_n([data, data.array])
same(data.get(), np.arange(1000) * 16)
whole = OnDevice(np.zeros(2000, np.float32))
pyddl.all_gather(data, whole)
same(whole.get(), np.tile(np.arange(1000) * 16, 2))
size, memory = pyddl.malloc(64, 4000)
pyddl.memcpy_host_to_device(memory, data)
other = OnDevice(np.zeros(1000, np.float32))
pyddl.memcpy_device_to_host(other, memory)
same(other.get(), np.arange(1000) * 16)
fails_at = (ctypes.c_int * 5).in_dll(driver._driver, "double_of_cuda")
fails_at[4] = rank == 0
with refused(pyddl.SystemRefusal if rank == 0 else pyddl.Mismatch,
             "cuMemcpyDtoHAsync_v2: the CUDA driver says 700, an illegal" if rank == 0 else "see its own error"):
    pyddl.allreduce(data)
pyddl.broadcast(data)
same(data.get(), np.arange(1000) * 16)
plan = pyddl.plan_allreduce(data)
data.__cuda_array_interface__["stream"] = 78 if rank == 0 else None
for act in (lambda: pyddl.allreduce(data), lambda: pyddl.allreduce_n([data]), plan):
    with refused(RuntimeError if rank == 0 else pyddl.Mismatch,
                 "cuStreamSynchronize failed with status 1 " if rank == 0 else "see its own error"):
        act()
data.__cuda_array_interface__["stream"] = None
plan()
same(data.get(), np.arange(1000) * 32)
""")


def test_memory_of_a_pool_by_a_double_of_the_driver(python, cuda_double):
    python(cuda_double + """
from tensors import OnDevice
data = OnDevice(np.arange(1000, dtype=np.float32))
other = OnDevice(np.zeros(1000, np.float32))
(ctypes.c_int * 6).in_dll(pyddl.cuda.memory()._driver, "double_of_cuda")[5] = 1
size, memory = pyddl.malloc(64, 4000)
pyddl.memcpy_host_to_device(memory, data)
pyddl.allreduce(data)
pyddl.memcpy_device_to_host(other, memory)
same(other.get(), np.arange(1000))
pyddl.allreduce(OnDevice(np.zeros(0, np.float32)))
""")


def test_the_producer_is_awaited_where_the_array_lies(python):
    """Context 100 is current; the array is of 200, or, as memory of a pool, of none."""
    python("""
import ctypes
import pyddl.cuda
class Driver:
    def __init__(self, of_memory, device=1): self.of_memory, self.device, self.contexts, self.awaited = of_memory, device, [100], []
    def cuInit(self, flags): return 0
    def cuPointerGetAttributes(self, count, asked, answers, address):
        ctypes.c_uint64.from_address(answers[list(asked).index(1)]).value = self.of_memory
        ctypes.c_int.from_address(answers[list(asked).index(9)]).value = self.device
        return 0
    def cuDeviceGet(self, device, number): device._obj.value = 10 + number.value; return 0
    def cuDevicePrimaryCtxRetain(self, context, device): context._obj.value = 20 * device.value; return 0
    def cuDevicePrimaryCtxRelease_v2(self, device): return 0
    def cuCtxPushCurrent_v2(self, context): self.contexts.append(context.value); return 0
    def cuCtxPopCurrent_v2(self, context): context._obj.value = self.contexts.pop(); return 0
    def cuCtxGetCurrent(self, context): context._obj.value = self.contexts[-1]; return 0
    def cuCtxSynchronize(self): self.awaited.append(self.contexts[-1]); return 0
for driver, context in ((Driver(200), 200), (Driver(0), 220), (Driver(0, -2), 100)):
    memory = pyddl.cuda.Memory(driver)
    for stream in (None, 1, 2): memory.await_producer(stream, 4096)
    assert driver.awaited == [context] * 3 and driver.contexts == [100], driver.awaited
""")


def test_a_gpu_array_without_a_driver_is_refused(python):
    python("""
import pyddl.cuda
pyddl.cuda.LIBRARY = "libno-such-driver.so"
class OnDevice:
    __cuda_array_interface__ = dict(np.zeros(3).__array_interface__)
with refused(ValueError, "allreduce, rank 0: x lies in the memory of a GPU, and the CUDA driver cannot be loaded"):
    pyddl.allreduce(OnDevice())
""")
