# SPDX-License-Identifier: Apache-2.0
"""What ddl makes of tensors and of torch's ops."""

import pyddl
import torch
from pyddl import elements
from torch.distributed import ReduceOp

BYTES = elements.NAMES.index("uint8")  # what data that only moves is
_ELEMENTS = {getattr(torch, name): number for number, name in enumerate(elements.NAMES) if hasattr(torch, name)}
_OPS = {ReduceOp.SUM: pyddl.DDL_OP_SUM, ReduceOp.AVG: pyddl.DDL_OP_AVERAGE, ReduceOp.PRODUCT: pyddl.DDL_OP_PRODUCT,
        ReduceOp.MIN: pyddl.DDL_OP_MIN, ReduceOp.MAX: pyddl.DDL_OP_MAX, ReduceOp.BAND: pyddl.DDL_OP_BIT_AND,
        ReduceOp.BOR: pyddl.DDL_OP_BIT_OR, ReduceOp.BXOR: pyddl.DDL_OP_BIT_XOR}
_OF_BOOL = {ReduceOp.SUM: pyddl.DDL_OP_LOGICAL_OR, ReduceOp.PRODUCT: pyddl.DDL_OP_LOGICAL_AND,
            ReduceOp.MIN: pyddl.DDL_OP_LOGICAL_AND, ReduceOp.MAX: pyddl.DDL_OP_LOGICAL_OR,
            ReduceOp.BAND: pyddl.DDL_OP_LOGICAL_AND, ReduceOp.BOR: pyddl.DDL_OP_LOGICAL_OR,
            ReduceOp.BXOR: pyddl.DDL_OP_LOGICAL_XOR}
_WIDER = dict.fromkeys((torch.int8, torch.uint8, torch.int16), torch.int32)  # whose last bits are those of the narrow product
_MOVEMENTS = ("broadcast", "all_gather", "gather", "scatter", "all_to_all")
# what the library has reduce and reduce_scatter of; the rest is an allreduce
_ROOTED_OPS = (pyddl.DDL_OP_SUM, pyddl.DDL_OP_AVERAGE, pyddl.DDL_OP_MIN, pyddl.DDL_OP_MAX)
_ROOTED_TYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64)


def element_and_op(dtype, op):
    """The numbers of the library for a combination of tensors. Throws `ValueError` with what is wrong."""
    if dtype not in _ELEMENTS:
        raise ValueError(f"tensor has dtype {dtype}, which ddl moves and does not combine; convert it, to torch.float16 for instance")
    op = getattr(op, "op", op)
    number = (_OF_BOOL if dtype == torch.bool else _OPS).get(op)
    if number is None:
        raise ValueError(f"tensor has dtype {dtype}, of which there is no {str(op).rpartition('.')[2]}; scale the tensor yourself, or "
                         "take another ReduceOp")
    return _ELEMENTS[dtype], number


def has_rooted(dtype, kind):
    """Whether the library can leave such a result on one rank alone, or in parts."""
    return kind[1] in _ROOTED_OPS and dtype in _ROOTED_TYPES


def in_bytes(why):
    """An error. Where it is of data that only moves, it counts bytes, which the library takes for elements."""
    if isinstance(why, pyddl.Mismatch) and str(why).partition(",")[0] in _MOVEMENTS:
        return pyddl.Mismatch(str(why).replace(" elements,", " bytes,"))
    return why


def in_order(tensors, op=None):
    """Each tensor itself if its elements lie in their order, next to each other, else a copy where they do; if they are to be
    combined by an op that the library has for wider elements alone, a copy of such. Throws `ValueError` for what has no elements in
    memory."""
    data = [_in_order(each) for each in tensors]
    if op is not None and getattr(op, "op", op) == ReduceOp.PRODUCT:
        return [each.to(_WIDER.get(each.dtype, each.dtype)) for each in data]
    return data


def _in_order(tensor):
    if tensor.layout is not torch.strided:
        raise ValueError(f"tensor is of layout {tensor.layout}; pass a dense one")
    if tensor.device.type not in ("cpu", "cuda"):
        raise ValueError(f"tensor lies on device {tensor.device}; copy it to the host, or to a GPU of CUDA")
    if tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg():
        return tensor
    return tensor.detach().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)


def put_back(tensors, data):
    """Copies to each tensor what is elsewhere."""
    for tensor, each in zip(tensors, data):
        if each is not tensor:
            tensor.detach().copy_(each.view(tensor.shape))


def bytes_of(tensor):
    """How many its elements have."""
    return tensor.numel() * tensor.element_size()


def await_producers(tensors):
    """Waits for what the current streams of GPUs still do to tensors."""
    for device in {each.device for each in tensors if each.is_cuda}:
        torch.cuda.current_stream(device).synchronize()
