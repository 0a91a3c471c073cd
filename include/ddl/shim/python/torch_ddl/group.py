# SPDX-License-Identifier: Apache-2.0
"""The collectives of a process group of torch.distributed: those of a communicator of pyddl.

torch calls some methods from Python and some, for DistributedDataParallel, from C++, by names that change with its versions, so
some have two. Data that only moves goes as bytes, whatever its dtype. Tensors whose elements do not lie in their order are copied,
there and back.
"""

import ctypes

import pyddl
import torch
from torch.distributed.distributed_c10d import (AllgatherOptions, AllreduceCoalescedOptions, AllreduceOptions, AllToAllOptions,
                                                BarrierOptions, BroadcastOptions, GatherOptions, ReduceOptions,
                                                ReduceScatterOptions, ScatterOptions)

from .calls import Calls, collective
from .overloads import TensorLists, Tensors
from .tensors import BYTES, await_producers, bytes_of, element_and_op, has_rooted, in_order, put_back
from .work import UNSET, Work


class Group(Calls):
    """The collectives, as torch calls them."""

    # ---- combinations

    @collective("all_reduce", "tensor op timeout")
    def allreduce(self, tensors: Tensors, opts=AllreduceOptions()):
        if len(tensors) != 1:
            return self._allreduce_several(tensors, opts)
        data = in_order(tensors, opts.reduceOp)
        kind = element_and_op(data[0].dtype, opts.reduceOp)
        return self._carry_out(opts, [_in_place(data[0], kind)], tensors, data)

    @collective("all_reduce")
    def allreduce_coalesced(self, tensors: Tensors, opts=AllreduceCoalescedOptions()):
        return self._allreduce_several(tensors, opts)

    def _allreduce_several(self, tensors, opts):
        data, kinds = in_order(tensors, opts.reduceOp), {}
        for each in data:
            kinds.setdefault(element_and_op(each.dtype, opts.reduceOp), []).append(each)
        calls = [("allreduce_n", (ctypes.c_void_p * len(some))(*[each.data_ptr() for each in some]),
                  (ctypes.c_size_t * len(some))(*[each.numel() for each in some]), len(some), *kind)
                 for kind, some in kinds.items()]
        return self._carry_out(opts, calls, tensors, data)

    @collective("reduce", "tensor root op timeout")
    def reduce(self, tensors: Tensors, opts=ReduceOptions()):
        data = in_order(tensors, opts.reduceOp)
        kind = element_and_op(data[0].dtype, opts.reduceOp)
        if self.rank() != opts.rootRank:  # its tensor stays as it is
            tensors = []
        if has_rooted(data[0].dtype, kind):
            target = data[0].data_ptr() if tensors else None
            call = ("reduce", data[0].data_ptr(), target, data[0].numel(), *kind, opts.rootRank)
        else:
            data = data if tensors else [data[0].clone()]
            call = _in_place(data[0], kind)
        return self._carry_out(opts, [call], tensors, data)

    @collective("reduce_scatter")
    def reduce_scatter_single(self, outputTensor, inputTensor, opts=ReduceScatterOptions()):
        self._check_whole("input", inputTensor, "output", outputTensor)
        part, data = in_order([outputTensor, inputTensor], opts.reduceOp)
        kind = element_and_op(data.dtype, opts.reduceOp)
        if has_rooted(data.dtype, kind):
            call = ("reduce_scatter", data.data_ptr(), part.data_ptr(), data.numel(), *kind)
        else:
            data = data.clone()
            part = data.view(self._size, -1)[self.rank()]
            call = _in_place(data, kind)
        return self._carry_out(opts, [call], [outputTensor], [part, data])

    @collective("reduce_scatter", "output input op timeout")
    def reduce_scatter(self, output_tensors: Tensors, input_tensors: TensorLists, opts=ReduceScatterOptions()):
        self._check_list("input_list", input_tensors[0], output_tensors[0])
        return self.reduce_scatter_single(output_tensors[0], _joined(input_tensors[0]), opts)

    def reduce_scatter_single_coalesced(self, outputs, inputs, opts=ReduceScatterOptions()):
        return self._all([self.reduce_scatter_single(*each, opts) for each in zip(outputs, inputs)])

    # ---- movements

    @collective("broadcast", "tensor root timeout")
    def broadcast(self, tensors: Tensors, opts=BroadcastOptions()):
        data = in_order(tensors)
        calls = [("broadcast", each.data_ptr(), bytes_of(each), BYTES, opts.rootRank) for each in data]
        return self._carry_out(opts, calls, tensors, tensors if self.rank() == opts.rootRank else data, *data)

    @collective("all_gather")
    def all_gather_single(self, output, input, opts=AllgatherOptions()):
        self._check_whole("output", output, "input", input)
        whole, data = in_order([output, input])
        call = ("all_gather", data.data_ptr(), whole.data_ptr(), bytes_of(whole), BYTES)
        return self._carry_out(opts, [call], [output], [whole, data])

    @collective("all_gather", "output_tensors input_tensor timeout")
    def allgather(self, output_tensors: TensorLists, input_tensors: Tensors, opts=AllgatherOptions()):
        self._check_list("tensor_list", output_tensors[0], input_tensors[0])
        data, = in_order(input_tensors)
        whole = self._room(data)
        call = ("all_gather", data.data_ptr(), whole.data_ptr(), bytes_of(whole), BYTES)
        return self._carry_out(opts, [call], output_tensors[0], whole, data)

    def all_gather_single_coalesced(self, outputs, inputs, opts=AllgatherOptions()):
        return self._all([self.all_gather_single(*each, opts) for each in zip(outputs, inputs)])

    def allgather_coalesced(self, output_lists, input_list, opts=AllgatherOptions()):  # output_lists[rank][tensor]
        return self._all([self.allgather([parts], [source], opts) for parts, source in zip(zip(*output_lists), input_list)])

    @collective("gather", "output_tensors input_tensor root timeout")
    def gather(self, output_tensors: TensorLists, input_tensors: Tensors, opts=GatherOptions()):
        data, parts, whole = in_order(input_tensors)[0], [], None
        if self.rank() == opts.rootRank:
            parts = output_tensors[0]
            self._check_list("gather_list", parts, data)
            whole = self._room(data)
        call = ("gather", data.data_ptr(), _address(whole), bytes_of(data) * self._size, BYTES, opts.rootRank)
        return self._carry_out(opts, [call], parts, () if whole is None else whole, data)

    @collective("gather")
    def gather_single(self, output, input, opts=GatherOptions()):
        outputs = [output] if self.rank() == opts.rootRank else []
        if outputs:
            self._check_whole("output", output, "input", input)
        whole, data = in_order(outputs), in_order([input])[0]
        call = ("gather", data.data_ptr(), _address(whole[0] if whole else None), bytes_of(data) * self._size, BYTES, opts.rootRank)
        return self._carry_out(opts, [call], outputs, whole, data)

    @collective("scatter", "output_tensor input_tensors root timeout")
    def scatter(self, output_tensors: Tensors, input_tensors: TensorLists, opts=ScatterOptions()):
        data, whole = in_order(output_tensors), None
        if self.rank() == opts.rootRank:
            self._check_list("scatter_list", input_tensors[0], output_tensors[0])
            whole = _joined(input_tensors[0])
        call = ("scatter", _address(whole), data[0].data_ptr(), bytes_of(data[0]) * self._size, BYTES, opts.rootRank)
        return self._carry_out(opts, [call], output_tensors, data, whole)

    @collective("all_to_all", "output input output_split_sizes input_split_sizes timeout")
    def all_to_all_single(self, output, input, output_split_sizes=(), input_split_sizes=(), opts=AllToAllOptions()):
        if output_split_sizes or input_split_sizes:
            return self.alltoall(self._split("output", output, output_split_sizes), self._split("input", input, input_split_sizes), opts)
        self._check_whole("output", output, "input", input, blocks=1)
        self._check_whole("input", input)
        data, = in_order([input])
        target = torch.empty_like(data)
        call = ("all_to_all", data.data_ptr(), target.data_ptr(), bytes_of(data), BYTES)
        return self._carry_out(opts, [call], [output], [target], data)

    @collective("all_to_all")
    def alltoall(self, output_tensors: Tensors, input_tensors: Tensors, opts=AllToAllOptions()):
        """Parts of any lengths travel as if all were as long as the longest of any rank, for which the call waits."""
        for name, parts in (("output", output_tensors), ("input", input_tensors)):
            if len(parts) != self._size or len({each.dtype for each in [*output_tensors, *input_tensors]}) != 1:
                raise ValueError(f"{name} has {len(parts)} parts; pass one for each of the {self._size} ranks, "
                                 "all of one dtype")
        counts = torch.tensor([[each.numel() for each in parts] for parts in (input_tensors, output_tensors)])
        every = torch.empty((self._size, *counts.shape), dtype=counts.dtype)  # [rank][0 sends, 1 expects][peer]
        try:
            call = ("all_gather", counts.data_ptr(), every.data_ptr(), bytes_of(every), BYTES)
            self._carry_out(opts, [call], [], [], counts, every).wait()
        except pyddl.Mismatch as why:
            raise pyddl.Mismatch(f"{why}; where that is all_to_all, pass splits on every rank or on none") from None
        for target, peer in (every[:, 0] != every[:, 1].T).nonzero().flip(1).tolist()[:1]:
            raise pyddl.Mismatch(f"all_to_all, rank {self.rank()}: rank {peer} sends {every[peer, 0, target]} elements to rank "
                                 f"{target}, which expects {every[target, 1, peer]}; pass splits that agree")
        rooms = input_tensors[0].new_empty((2, self._size, int(every.max())))
        for room, part in zip(rooms[0], input_tensors):
            room[:part.numel()].copy_(part.detach().reshape(-1))
        arrived = [room[:part.numel()] for room, part in zip(rooms[1], output_tensors)]
        call = ("all_to_all", rooms[0].data_ptr(), rooms[1].data_ptr(), bytes_of(rooms[0]), BYTES)
        return self._carry_out(opts, [call], output_tensors, arrived, rooms)

    @collective("barrier", "timeout")
    def barrier(self, opts=BarrierOptions()):
        return self._carry_out(opts, [("barrier",)], [], [])

    @torch.compiler.disable
    def monitored_barrier(self, timeout=None, wait_all_ranks=False):  # pylint: disable=unused-argument  # one that is late is named
        self._run([("barrier",)], timeout or UNSET)
        self._sweep()

    # ---- from one rank to another

    @torch.compiler.disable
    def send(self, tensors, dstRank, tag=0):
        return self._carry(tensors, self.rank(), self._other("send", dstRank), tag)

    @torch.compiler.disable
    def recv(self, tensors, srcRank, tag=0):
        return self._carry(tensors, self._other("recv", srcRank), self.rank(), tag)

    def recv_anysource(self, _tensors, _tag=0):
        raise pyddl.Unsupported(f"recv, rank {self.rank()}: ddl receives from a rank that it knows; name the source")

    def _other(self, name, rank):
        if rank == self.rank() or not 0 <= rank < self._size:
            raise ValueError(f"{name}, rank {self.rank()}: rank {rank} is no other of the {self._size} ranks; name one of them, and "
                             "copy what is for this rank itself")
        return rank

    def _carry(self, tensors, source, target, tag):
        data = in_order(tensors)
        await_producers(data)
        messages = [self._pairs.carry(each, source, target, tag) for each in data]
        if source == self.rank():
            return self._kept(Work(messages, tensors, None, self._waiter))
        work = Work(messages, tensors, lambda: put_back(tensors, data), self._waiter)
        work.source = source
        return self._kept(work)

    # names that older versions of torch call
    _allgather_base = all_gather_single
    _reduce_scatter_base = reduce_scatter_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    alltoall_base = all_to_all_single
    gather_into_tensor = gather_single


def _in_place(tensor, kind):
    return ("allreduce", tensor.data_ptr(), tensor.data_ptr(), tensor.numel(), *kind)


def _joined(parts):
    """Parts of one length, of whatever shapes, as one tensor."""
    return torch.stack([each.reshape(-1) for each in parts])


def _address(tensor):
    return None if tensor is None else tensor.data_ptr()
