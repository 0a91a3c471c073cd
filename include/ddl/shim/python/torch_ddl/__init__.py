# SPDX-License-Identifier: Apache-2.0
"""The backend "ddl" of torch.distributed, as IBM DDL had it.

    import torch
    torch.distributed.init_process_group("ddl", init_method="env://")

PyTorch 2.5 and later calls `register` by itself when it is imported, if this package is installed; where it does not, a script
says `import pyddl.torch`. Nothing of ddl is loaded before a script names the backend.
"""

import functools
import inspect
import warnings

NAME = "ddl"


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
    from . import opening
    return opening.open_group(options)


def _with_numbers_of_launcher(initialise):
    """`init_process_group`, which for this backend takes rank and size from the launcher where the script gives none."""
    signature = inspect.signature(initialise)

    @functools.wraps(initialise)
    def init_process_group(*arguments, **more):
        given = signature.bind(*arguments, **more)
        given.apply_defaults()
        if NAME in str(given.arguments.get("backend")).lower().replace(",", ":").split(":"):
            from . import opening
            opening.complete(given.arguments)
            return initialise(*given.args, **given.kwargs)
        return initialise(*arguments, **more)

    return init_process_group
