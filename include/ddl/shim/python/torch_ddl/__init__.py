# SPDX-License-Identifier: Apache-2.0
"""The backend "ddl" of torch.distributed, as IBM DDL had it.

    import torch
    torch.distributed.init_process_group("ddl", init_method="env://")

PyTorch calls `register` by itself when it is imported, if this package is installed; where it does not, a script
says `import pyddl.torch`. Nothing of ddl is loaded before a script names the backend.
"""

import functools
import inspect
import warnings

NAME = "ddl"
OLDEST = "2.7"  # of PyTorch


def register():
    """Tells torch.distributed of the backend; a second call does nothing. What fails is a warning: torch is imported all the same."""
    import torch.distributed as distributed
    try:
        if distributed.is_available() and not hasattr(distributed.Backend, NAME.upper()):
            from torch.distributed import distributed_c10d
            initialise = _with_numbers_of_launcher(distributed_c10d.init_process_group)
            distributed.Backend.register_backend(NAME, _open, extended_api=True, devices=["cpu", "cuda"])
            distributed.init_process_group = distributed_c10d.init_process_group = initialise
    except Exception as why:  # pylint: disable=broad-except
        warnings.warn(f"torch.distributed has no backend {NAME}: {why!r}; see whether this ddl knows this PyTorch", stacklevel=2)


def _open(options, _more=None):
    return _opening().open_group(options)


def _opening():
    """The module. Older versions of torch lose what is Python's of a work that C++ alone holds, and wait for it for ever; and
    `destroy_process_group` ends no group of theirs. Neither can be seen but by the version."""
    import torch
    if torch.__version__ < OLDEST:
        import pyddl
        raise pyddl.Unsupported(f"init_process_group: this is PyTorch {torch.__version__}, and ddl's backend is for {OLDEST} and "
                                "later; take such a one, or name another backend")
    from . import opening
    return opening


def _with_numbers_of_launcher(initialise):
    """`init_process_group`, which for this backend takes rank and size from the launcher where the script gives none."""
    signature = inspect.signature(initialise)

    @functools.wraps(initialise)
    def init_process_group(*arguments, **more):
        given = signature.bind(*arguments, **more)
        given.apply_defaults()
        if NAME in str(given.arguments.get("backend")).lower().replace(",", ":").split(":"):
            _opening().complete(given.arguments)
            return initialise(*given.args, **given.kwargs)
        return initialise(*arguments, **more)

    return init_process_group
