# SPDX-License-Identifier: Apache-2.0
"""A process group of torch.distributed, but for its collectives: how it ends, what its calls are handed, and how they go."""

import functools

import pyddl
import torch
from pyddl.pending import Request
from torch.distributed import ProcessGroup

from . import NAME
from .overloads import in_lists
from .pairs import Pairs
from .tensors import await_producers, in_bytes, put_back
from .work import UNSET, Limit, Waiter, Work


def collective(name, other_way=""):
    """A method that waits for others, who are told if this rank finds a mistake before it calls. `other_way`: that of `in_lists`."""
    def decorate(method):
        arguments_of = in_lists(method, other_way)

        @functools.wraps(method)
        def call(self, *given, **more):
            try:
                return method(self, *arguments_of(given, more))
            except Exception as why:  # pylint: disable=broad-except  # the others wait, whatever it is
                if isinstance(why, pyddl.Error) or hasattr(why, "told"):
                    told = in_bytes(why)
                    if told is why:
                        raise
                    raise told from None
                refusal = self._ranks._refused(name, "the", why)
                refusal.told = True
                raise refusal from None
        return torch.compiler.disable(call)
    return decorate


class Calls(ProcessGroup):
    """`ranks`: the communicator, which ends with the group. `signs`: those of `announce`. `seconds`: its timeout. `closed`: told of
    the end, then."""

    def __init__(self, ranks, store, signs, name, seconds, closed):
        super().__init__(ranks.rank, ranks.size)
        self._ranks, self._size, self._store, self._closed = ranks, ranks.size, store, closed
        self._name, self._description = name, "undefined"
        self._seconds = seconds
        self._waiter = Waiter()
        self._pairs = Pairs(store, ranks.rank, seconds)
        self._receives, self._sends = signs
        self._together = None  # the works of a block of coalesced calls
        self._works = {}  # those under way, as keys: one that the caller drops would wait for the others as it goes

    def getBackendName(self):
        return NAME

    def getGroupName(self):
        return self._name

    def setGroupName(self, name):
        self._name = name

    def getGroupDesc(self):
        return self._description

    def setGroupDesc(self, description):
        self._description = description

    supports_splitting = False  # asked where a script names a device_id

    def get_group_store(self):
        return self._store

    @property
    def _device_types(self):
        return [torch.device("cpu"), torch.device("cuda")]

    def _get_backend(self, _device):
        return self

    def set_timeout(self, timeout):
        """How long a wait for another rank may take from now on."""
        self._seconds = timeout.total_seconds()
        self._ranks.set_timeout(self._seconds)
        self._pairs.set_timeout(self._seconds)

    def abort(self):
        """Ends the call that waits, here and on the other ranks; the group is broken afterwards."""
        self._ranks.interrupt()
        self._pairs.interrupt()

    def give_up(self):
        """The same for what is under way, if anything is: the process ends, and waits for no other."""
        self._sweep()
        if self._works:
            self._ranks.interrupt()
        self._pairs.interrupt()

    def shutdown(self):
        """Waits for what is under way, but for messages that have not come, and closes the communicator."""
        if self._ranks._handle is not None:
            self._receives.close()
            self._pairs.give_up_receiving()
            self._waiter.stop()
            self._pairs.close()
            self._ranks.close()
            self._sends.close()
            self._sweep()
            self._closed(self)

    # ---- how a call goes

    def _carry_out(self, opts, calls, tensors, data, *more):
        """`tensors` get what is in `data` when the calls are done; `more` lives as long."""
        kept = (tensors, data, more)
        await_producers(each for each in (*tensors, *data, *more) if each is not None)
        if getattr(opts, "asyncOp", True):
            limit = Limit(f"{calls[0][0]}, rank {self.rank()}", opts.timeout, self._ranks.abort) if opts.timeout > UNSET else None
            requests = [Request(self._ranks, call, arguments, kept) for call, *arguments in calls]
            work = Work(requests, tensors, lambda: put_back(tensors, data), self._waiter, limit, self._sweep)
        else:
            self._run(calls, opts.timeout)
            try:
                put_back(tensors, data)
            except Exception as why:
                why.told = True  # the others wait no longer
                raise
            work = Work([], tensors)
        self._works[work] = None
        self._sweep()
        return self._kept(work)

    def _run(self, calls, timeout):
        """Each by a timeout of its own, if there is one."""
        if timeout > UNSET:
            self._ranks.set_timeout(timeout.total_seconds())
        try:
            for call, *arguments in calls:
                self._ranks._run(call, *arguments)
        finally:
            if timeout > UNSET:
                self._ranks.set_timeout(self._seconds)

    def _sweep(self):
        """Lets go of works that are done, which come to that in their order."""
        for each in list(self._works):
            if not each.is_over(0):
                break
            self._works.pop(each, None)  # a callback may have done so, too

    def _kept(self, work):
        if self._together is not None:
            self._together.append(work)
        return work

    def _all(self, works):
        return Work(works, [tensor for each in works for tensor in each.tensors], None, self._waiter, sweep=self._sweep)

    def _start_coalescing(self, _device):
        self._together = []

    def _end_coalescing(self, _device):
        works, self._together = self._together, None
        return self._all(works)

    # ---- what calls are handed

    def _room(self, part):
        """Where as many of a tensor as there are ranks go."""
        return torch.empty((self._size, *part.shape), dtype=part.dtype, device=part.device)

    def _check_whole(self, name, whole, part_name="", part=None, blocks=None):
        blocks = blocks or self._size
        if whole.numel() % blocks:
            raise ValueError(f"{name} has {whole.numel()} elements; pass a multiple of the {blocks} ranks")
        if part is not None and (part.numel() * blocks, part.dtype) != (whole.numel(), whole.dtype):
            raise ValueError(f"{part_name} has {part.numel()} elements of {part.dtype}, and {name} {whole.numel()} of {whole.dtype}; "
                             f"pass {whole.numel() // blocks} of {whole.dtype}")

    def _check_list(self, name, parts, tensor):
        if len(parts) != self._size or any((each.numel(), each.dtype) != (tensor.numel(), tensor.dtype) for each in parts):
            raise ValueError(f"{name} is to hold {self._size} tensors, one for each rank, of {tensor.numel()} elements of {tensor.dtype}")

    def _split(self, name, tensor, rows):
        if tensor.dim() == 0:
            raise ValueError(f"{name} is a tensor of no dimensions, which has no rows to split; pass one of one dimension or more")
        if not rows:
            rows = [tensor.shape[0] // self._size] * self._size
        if sum(rows) != tensor.shape[0]:
            raise ValueError(f"{name} has {tensor.shape[0]} rows, and its splits are {list(rows)}; pass splits of that sum")
        return tensor.split(list(rows))
