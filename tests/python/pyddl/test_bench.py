# SPDX-License-Identifier: Apache-2.0
"""The benchmark beside mpi4py runs, and its results are right; how long anything takes is not asked."""

import json
import sys

import conftest
import pytest


def test_a_tiny_run(ddlrun, tmp_path):
    done = ddlrun("--accelerators", 2, sys.executable, conftest.ROOT / "benchmarks" / "pyddl_bench.py", "--max-bytes", 4096,
                  "--calls", 3, "--json", tmp_path / "rows.json")
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "rows.json").read_text())
    assert found["ranks"] == 2 and found["wrong"] == 0
    assert [row["bytes"] for row in found["rows"]] == [4, 16, 64, 256, 1024, 4096]
    assert {"arrays", "mapped"} <= set(found["rows"][0])


@pytest.mark.parametrize("option, value", [
    ("--factor", 1), ("--min-bytes", 0), ("--min-bytes", 2), ("--max-bytes", 3), ("--seconds", "nan"), ("--calls", 0),
    ("--json", "/dev/null/x")])
def test_what_makes_no_sense_is_refused_before_anything_is_measured(ddlrun, option, value):
    done = ddlrun("--accelerators", 1, sys.executable, conftest.ROOT / "benchmarks" / "pyddl_bench.py", "--max-bytes", 4, option, value)
    assert done.returncode != 0 and f"argument {option}: " in done.stderr
    assert "microseconds" not in done.stdout
