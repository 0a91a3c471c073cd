#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""all_reduce of torch.distributed over the backend ddl beside gloo, in turns, inside the same processes.

    ddlrun --accelerators 2 python3 benchmarks/torch_bench.py

With `--device cuda` the tensors lie on GPUs. Each row is a size of float32 tensors; each cell the median over calls of the time on
the slowest rank, in microseconds. Before each call every rank rewrites its tensor and meets the others in a barrier; neither is
timed. A wrong sum ends the program with 1.
"""

import argparse
import pathlib
import sys
import time

import torch
import torch.distributed as dist

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parent / "compare"))
import argument_types  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--max-bytes", type=argument_types.whole(8), default=16 << 20)
    parser.add_argument("--calls", type=argument_types.whole(1), default=200, help="for each size and backend")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    asked = parser.parse_args()
    if asked.device == "cuda" and not torch.cuda.is_available():
        parser.error("argument --device: torch finds no GPU here; leave it out")
    dist.init_process_group("ddl")
    groups = {"ddl": dist.group.WORLD, "gloo": dist.new_group(backend="gloo")}
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(1)
    done = torch.cuda.synchronize if asked.device == "cuda" else lambda: None
    if rank == 0:
        print(f"{size} ranks, tensors on {asked.device}, torch {torch.__version__}\n"
              f"{'bytes':>10}{'ddl':>12}{'gloo':>12}{'gloo / ddl':>12}", flush=True)
    elements = 2
    while elements * 4 <= asked.max_bytes:
        tensor = torch.empty(elements, device=asked.device)
        times = {name: [] for name in groups}
        for _ in range(asked.calls):
            for name, group in groups.items():
                tensor.fill_(rank + 1.0)
                done()
                dist.barrier()
                begin = time.perf_counter()
                dist.all_reduce(tensor, group=group)
                done()
                times[name].append(time.perf_counter() - begin)
                if not (tensor == size * (size + 1) / 2).all():
                    raise SystemExit(f"{name}: wrong sums")
        slowest = torch.tensor(list(times.values()))
        dist.all_reduce(slowest, dist.ReduceOp.MAX)
        ours, theirs = (1e6 * slowest.median(1).values).tolist()
        if rank == 0:
            print(f"{elements * 4:>10}{ours:>12.1f}{theirs:>12.1f}{theirs / ours:>12.2f}", flush=True)
        elements *= 8
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
