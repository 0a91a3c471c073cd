# SPDX-License-Identifier: Apache-2.0
"""The four variables of the plugin: what each does, and what is said of one that is no such number."""

import pydoc

import pytest

CRAY = "import os\nimport numpy as np\nfrom programs import *\nimport dl_comm as cdl\nimport pyddl\n"
RANGES = {"DL_COMM_DEFAULT_NTHREADS": (1, 1024), "DL_COMM_DEFAULT_PREC_LEVEL": (0, 1),
          "DL_COMM_PIPELINE_CHUNK_KB": (1, 1_000_000), "DL_COMM_NUM_CUDA_STREAMS": (1, 1024)}


@pytest.mark.parametrize("said, threads", [("", 2), ("1", 1), ("3", 3)])
def test_threads_of_a_team_that_nobody_made(ranks, said, threads):
    ranks(2, f"""
cdl.init()
before = len(os.listdir("/proc/self/task"))
cdl.gradients([np.ones(100_000, np.float32)])
assert len(os.listdir("/proc/self/task")) == before + {threads}, os.listdir("/proc/self/task")
cdl.finalize()
""", preamble=CRAY, variables={"DL_COMM_DEFAULT_NTHREADS": said})


@pytest.mark.parametrize("said, left", [("", 0), ("0", 0), ("1", 1)])
def test_precision_of_a_team_that_nobody_made(ranks, said, left):
    ranks(3, f"""
cdl.init()
for dtype in (np.float32, np.float64):
    mine = np.full(5, (1e9, 3, -1e9)[cdl.get_rank()], dtype)
    same(cdl.gradients([mine])[0], np.full(5, {left} if dtype == np.float32 else 1))
cdl.finalize()
""", preamble=CRAY, variables={"DL_COMM_DEFAULT_PREC_LEVEL": said})


def test_numbers_out_of_range(python):
    for name, (least, most) in RANGES.items():
        at_once = "DEFAULT" not in name
        wrong = [str(least - 1), str(most + 1), "x", "1.5", "0x1"]
        python(f"""
def gradients(): cdl.gradients([np.ones(1)])
if not {at_once}: cdl.init()
for said in {wrong}:
    os.environ["{name}"] = said
    with refused(pyddl.Error, f'{name} is "{{said}}"; it takes a number from {least} to {most}'):
        (cdl.init if {at_once} else gradients)()
for said in ("{least}", "{min(most, 64)}", ""):
    os.environ["{name}"] = said
    cdl.init()
    gradients()
cdl.finalize()
""", preamble=CRAY)


def test_help_names_them():
    import dl_comm
    text = pydoc.plain(pydoc.render_doc(dl_comm))
    assert all(name in text for name in RANGES)
