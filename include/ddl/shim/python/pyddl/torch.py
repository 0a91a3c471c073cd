# SPDX-License-Identifier: Apache-2.0
"""PyTorch: importing this registers the backend "ddl" of torch.distributed, which PyTorch does by itself where ddl is installed.

    import torch, pyddl.torch
    torch.distributed.init_process_group("ddl")
"""

import torch_ddl

torch_ddl.register()
