# SPDX-License-Identifier: Apache-2.0
"""What a call is handed: arrays become spans of elements, numbers are looked at, and what makes no sense is refused.

A refusal names the call, the rank and the argument. The other ranks wait in their calls, so they are told as well; but not of a
plan, which is made without them.
"""

import ctypes

from . import arrays, elements
from .elements import OF_TYPE
from .library import functions
from .memory import Memory


class Arguments:
    """The part of a communicator that examines arguments; `_handle`, `_rank`, `_size` and `_run` are the communicator's."""

    def _refused(self, call, argument, why):
        """The exception for a call that never came to the library. The others wait in theirs, and are told, unless it is a
        plan's making, or another that is this rank's own affair.

        `why` is what is wrong with an argument, or what an object's own code threw, which is passed on as it is.
        """
        if self._size > 1 and self._handle is not None and not call.startswith(("plan_", "block", "set_")):
            functions.run_allreduce(self._handle, None, None, 1, -1, -1)
        for kind in (TypeError, ValueError):
            if isinstance(why, kind):
                return kind(f"{call}, rank {self._rank}: {argument} {why}")
        return why

    def _number(self, call, value, name, bits=32):
        try:
            return arrays.index(value, bits)
        except Exception as why:  # pylint: disable=broad-except  # the others wait, whatever it is
            raise self._refused(call, name, why) from None

    def _span(self, call, x, n, element, argument="x", writable=True):
        """A `Span` of the elements that take part."""
        if element is not None:
            number = self._number(call, element, "type")
            element = OF_TYPE.get(number)
            if element is None:
                raise self._refused(call, "type", ValueError(f"is {number}; pass a DDL_TYPE constant"))
        try:
            span = self._resolve(x, element, writable)
        except Exception as why:  # pylint: disable=broad-except  # the others wait, whatever it is
            raise self._refused(call, argument, why) from None
        if n is not None:
            count = self._number(call, n, "n", 64)
            if not 0 <= count <= span.count:
                raise self._refused(call, "n", ValueError(f"is {count}; {argument} holds {span.count} elements of type "
                                                          f"{elements.name_of(span.element)}"))
            span.count = count
        return span

    @staticmethod
    def _resolve(x, element, writable):
        if isinstance(x, Memory):
            element = elements.FLOAT if element is None else element
            return arrays.Span(x.used(), x.nbytes // elements.SIZES[element], element, x)
        span = arrays.span_of(x, writable)
        if element is not None and element != span.element:
            raise ValueError(f"has elements of type {elements.name_of(span.element)}, and type says "
                             f"{elements.name_of(element)}; pass the type that it has")
        return span

    def _listed(self, call, tensors):
        try:
            return arrays.listed(tensors)
        except Exception as why:  # pylint: disable=broad-except
            raise self._refused(call, "tensors", why) from None

    def _several(self, call, tensors, op):
        """Their spans, which are to live as long as the call, and its arguments."""
        op = self._number(call, op, "op")
        spans = [self._span(call, tensor, None, None, f"tensors[{place}]") for place, tensor in enumerate(tensors)]
        if len({span.element for span in spans}) > 1:
            names = sorted({elements.name_of(span.element) for span in spans})
            raise self._refused(call, "tensors", ValueError(f"are of types {', '.join(names)}; pass tensors of one type"))
        pointers = (ctypes.c_void_p * max(len(spans), 1))(*[span.address for span in spans])
        counts = (ctypes.c_size_t * max(len(spans), 1))(*[span.count for span in spans])
        of_none = elements.INT32 if op >= elements.DDL_OP_BIT_AND else elements.FLOAT  # one that has the op
        return spans, (pointers, counts, len(spans), spans[0].element if spans else of_none, op)

    def _blocks(self, call, x, out, whole, more=(), n=None):
        """A call with two arrays, of which number `whole` is the whole vector; None: both are. It has `n` elements, if that is said."""
        source = self._span(call, x, None, None, writable=False)
        target = self._span(call, out, None, None, "out")
        self._agree(call, source, target)
        count = (source.count, target.count)[whole or 0]
        if n is not None and (said := self._number(call, n, "n", 64)) != count:
            raise self._refused(call, "n", ValueError(f"is {said}; {('x', 'out')[whole or 0]} holds {count} elements; pass that "
                                                      "number on every rank"))
        wanted = count if whole is None else self.block(count)
        part = target.count if whole in (0, None) else source.count
        if part != wanted:
            raise self._refused(call, "x" if whole == 1 else "out", ValueError(
                f"holds {part} elements, and of {count} this rank has {wanted}; size it by block(count)"))
        return self._run(call, source.address, target.address, count, source.element, *more)

    def _rooted(self, call, x, out, root, n, whole):
        root = self._number(call, root, "root")
        if root == self._rank:
            return self._blocks(call, x, out, whole, (root,), n)
        # without `n`: a block tells how long the whole is if all blocks are equally long
        argument, name = (x, "x") if whole == 1 else (out, "out")
        part = self._span(call, argument, None, None, name, writable=whole == 0)
        ends = (part.address, None) if whole == 1 else (None, part.address)
        count = part.count * self._size if n is None else self._number(call, n, "n", 64)
        if count < 0 or part.count != self.block(count):
            raise self._refused(call, name, ValueError(f"holds {part.count} elements, which is not this rank's block of "
                                                       f"{count}; size it by block(n)"))
        return self._run(call, *ends, count, part.element, root)

    def _agree(self, call, source, target):
        if source.element != target.element:
            raise self._refused(call, "out", ValueError(
                f"has elements of type {elements.name_of(target.element)}, and x of {elements.name_of(source.element)}; "
                "pass arrays of one type"))
