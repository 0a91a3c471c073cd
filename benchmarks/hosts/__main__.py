# SPDX-License-Identifier: Apache-2.0
"""Compares ddl over several hosts with MPI_Allreduce, in turns. The hosts are network namespaces of this machine, made
and removed by this program, joined by links of 1 Gbit/s. Needs root and Open MPI."""
import argparse
import os
import pathlib
import statistics
import sys
import tempfile
import time

import network

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parent.parent / "compare"))  # the program is that of compare
import argument_types  # noqa: E402
import cells  # noqa: E402
import peers  # noqa: E402
import report  # noqa: E402

SETTINGS = {"defaults": [], "two links": ["--mca", "btl_tcp_links", "2"]}
QUICK = "8,16K,1M,32M"
FULL = "8,128,1K,4K,16K,64K,256K,1M,4M,16M,32M,64M"


def layout(words):
    hosts, _, ranks = words.partition("x")
    if not (hosts.isdecimal() and ranks.isdecimal() and 2 <= int(hosts) <= 9 and int(ranks) >= 1):
        raise argparse.ArgumentTypeError(f"'{words}' is no layout; write 2x1: hosts, 2 to 9, and the ranks on each")
    return int(hosts), int(ranks)


def arguments():
    parser = argparse.ArgumentParser(prog="benchmarks/hosts", description=__doc__,
                                     epilog="Ends with 0; with 1 if a result was wrong, 2 if there can be no hosts, 4 "
                                            "if the file of --json could not be written.")
    parser.add_argument("--layout", action="append", metavar="HOSTSxRANKS", type=layout,
                        help="hosts, and ranks on each; again for more (2x1, 2x2, 4x1 and 4x2)")
    parser.add_argument("--settings", action="append", choices=SETTINGS, help="Open MPI's; again for more (all)")
    parser.add_argument("--sizes", metavar="BYTES,...", type=cells.sizes_of, help=f"({FULL})")
    parser.add_argument("--quick", action="store_true", help=f"sizes {QUICK}, fewer samples")
    parser.add_argument("--rate", type=network.rate, default="1gbit", help="of each link, as tc writes it (%(default)s)")
    parser.add_argument("--seconds", type=argument_types.seconds, help="for each size (quick: 1, else 3)")
    parser.add_argument("--json", type=argument_types.writable, help="write all figures there")
    parser.add_argument("--build", type=pathlib.Path, default=peers.ROOT / "build" / "compare", help="(%(default)s)")
    parser.add_argument("--flags", default="-O3 -march=native", help="the compiler's (%(default)s)")
    asked = parser.parse_args(argument_types.flags_joined(sys.argv[1:]))
    asked.layout = list(dict.fromkeys(asked.layout or [(2, 1), (2, 2), (4, 1), (4, 2)]))
    asked.settings = list(dict.fromkeys(asked.settings or SETTINGS))
    asked.sizes = asked.sizes or cells.sizes_of(QUICK if asked.quick else FULL)
    if min(asked.sizes) < cells.ELEMENT_BYTES["float"]:
        parser.error(f"--sizes {min(asked.sizes)}: allreduce of float takes 4 bytes or more")
    asked.seconds = asked.seconds or (1 if asked.quick else 3)
    asked.build = asked.build.resolve()
    return asked


def measured(hosts, per_host, program, settings, asked):
    """The lines that the program writes, of one run."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "samples"
        where = ",".join(f"{name}:{per_host}" for name in hosts.names)
        words = ["mpirun.openmpi", "--bind-to", "none", "-n", str(per_host * len(hosts.names)), "--host", where,
                 "--mca", "plm_rsh_agent", hosts.shell.name, "--mca", "oob_tcp_if_include", "eth0",
                 "--mca", "btl_tcp_if_include", "eth0", *SETTINGS[settings],
                 program, "--hosts", "several", "--transport", "cluster", "--transport", "mpi", "--out", out,
                 "--floor-bytes", str(1 << 40), "--settling", "2", "--probes", "1", "--slots", "4",
                 "--seconds", str(asked.seconds), "--least", "3" if asked.quick else "5"]
        for size in asked.sizes:
            words += ["--cell", f"allreduce:{size // 4}:0:in"]
        path = os.pathsep.join([str(hosts.folder), os.environ.get("PATH", os.defpath)])  # mpirun splits an agent at spaces
        started = hosts.start("host1", words, env=dict(os.environ, PATH=path, **peers.OPEN_MPI))
        if not peers.all_end_well([started]):
            raise network.Impossible("a rank ended with an error")
        head, *lines = peers.samples(out, "hosts")
    return head, lines


def told(lines, bound_of):
    """Prints a table, and returns its rows."""
    head = f"{'bytes':>10} {'bound ms':>10}"
    for each in lines[0]["contenders"]:
        head += f" {each['name']:>16} ms {'bound':>8}" + ("" if each["name"] == "peer" else f" {'ratio':>7}")
    print(head)
    rows = []
    for line in lines:
        bound = bound_of(line["bytes"])
        row = {"bytes": line["bytes"], "bound_ms": bound, "contenders": {}}
        text = f"{report.size_text(line['bytes']):>10} {bound:10.3f}"
        peer = None
        for each in line["contenders"]:
            times = [1e3 * seconds for seconds in each["seconds"]]
            median = statistics.median(times)
            found = {"samples": len(times), "min_ms": min(times), "median_ms": median, "max_ms": max(times),
                     "percent_of_bound": 100 * bound / median, "wrong": each["wrong"]}
            peer = peer or median
            row["contenders"][each["name"]] = found
            text += f" {median:19.3f} {100 * bound / median:6.1f} %"
            text += "" if each["name"] == "peer" else f" {peer / median:6.2f}x"
            text += f" {each['wrong']:.0f} WRONG" if each["wrong"] else ""
        rows.append(row)
        print(text, flush=True)
    return rows


def main():
    peers.exit_when_ended()
    asked = arguments()
    try:
        program = peers.built(peers.PEERS["openmpi"], asked.build, "float", "sum", asked.flags)
        runs = []
        for count, per_host in asked.layout:
            with tempfile.TemporaryDirectory() as folder, network.Hosts(count, asked.rate, folder) as hosts:
                speed = hosts.speed()
                for settings in asked.settings:
                    start = time.monotonic()
                    head, lines = measured(hosts, per_host, program, settings, asked)
                    ranks = f"{per_host} rank{'s' if per_host > 1 else ''}"
                    print(f"# {count} hosts with {ranks} each, {os.cpu_count()} cores for all of them; links of "
                          f"{8e-6 * speed:.0f} Mbit/s each way at once, by a plain socket; {head['peer']}, {settings}; "
                          f"{time.monotonic() - start:.0f} s")
                    rows = told(lines, lambda size: 1e3 * 2 * (count - 1) / count * size / speed)
                    runs.append({"hosts": count, "ranks_per_host": per_host, "bytes_a_second": speed,
                                 "peer": head["peer"], "settings": settings, "rows": rows})
    except (network.Impossible, peers.Missing) as failure:
        print(f"# {failure}", file=sys.stderr)
        return 2
    written = not asked.json or report.written(asked.json, {"program": "hosts", "date": time.strftime("%Y-%m-%d"),
                                                            "flags": asked.flags, "runs": runs})
    wrong = any(each["wrong"] for run in runs for row in run["rows"] for each in row["contenders"].values())
    return 1 if wrong else 0 if written else 4


if __name__ == "__main__":
    sys.exit(peers.quietly(main))
