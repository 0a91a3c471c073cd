# SPDX-License-Identifier: Apache-2.0
"""The ways in which torch lets a method of a process group be called.

One way hands it lists of tensors, and options that hold the op, the root and the timeout. The other, which some methods have too,
hands it those as arguments of their own, and a bare tensor where the list would have one. `Group` is written for the first.
"""

import inspect
import typing

import torch

Tensors = typing.Sequence[torch.Tensor]
TensorLists = typing.Sequence[Tensors]
_LEVELS = {Tensors: 1, TensorLists: 2}
_OF_OPTIONS = {"op": "reduceOp", "root": "rootRank", "timeout": "timeout"}


def in_lists(method, other_way=""):
    """A function that makes the arguments of `method(self, ..., opts)` of those of a call. `other_way`: the parameters that torch
    has for it beside these. The function throws `TypeError` for what fits neither."""
    *data, opts = list(inspect.signature(method).parameters.values())[1:]
    names = other_way.split()
    own_names = {theirs: each.name for theirs, each in zip(names, data)}
    kind = type(opts.default)
    words = [inspect.Parameter(name, opts.kind, default=None) for name in names[len(data):]]
    with_opts, with_words = inspect.Signature([*data, opts]), inspect.Signature([*data, *words])
    levels = [_LEVELS.get(each.annotation) for each in data]

    def arguments(given, more):
        last = given[len(data)] if len(given) > len(data) else more.get("opts")
        try:
            if len(given) < len(data) or len(given) + len(more) > len(data) + 1 or not isinstance(last, kind):  # not as torch calls it
                more = {own_names.get(name, name): value for name, value in more.items()}
                if isinstance(last, kind) or not words:
                    *given, last = _bound(with_opts, given, more)
                else:
                    given = _bound(with_words, given, more)
                    last = _options(kind, names[len(data):], given[len(data):])
            return *map(_in_lists, data, levels, given), last
        except TypeError as why:
            raise TypeError(f"arguments are none that {method.__name__} has: {why}") from None

    return arguments


def _bound(signature, given, more):
    bound = signature.bind(*given, **more)
    bound.apply_defaults()
    return bound.args


def _options(kind, names, values):
    options = kind()
    for name, value in zip(names, values):
        try:
            if value is not None:
                setattr(options, _OF_OPTIONS[name], value)
        except TypeError:  # whose words are of C++
            raise TypeError(f"{name} is {value!r}") from None
    return options


def _in_lists(parameter, levels, value):
    """A value in so many levels of lists, of which it may lack the outer ones."""
    if levels is None:
        return value
    found, first = 0, value
    while isinstance(first, (list, tuple)):
        found, first = found + 1, first[0] if first else None
    if found > levels or not (first is None or isinstance(first, torch.Tensor)):
        raise TypeError(f"{parameter.name} holds what is no tensor")
    for _ in range(found, levels if first is not None else found):
        value = [value]
    return value
