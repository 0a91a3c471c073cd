# SPDX-License-Identifier: Apache-2.0
"""`pip install` of the folder compiles the libraries. Here few rows of them, without MPI, unoptimised: all take minutes."""

import os
import signal
import subprocess
import sys

import pytest

import conftest
from test_packaging import pip


@pytest.mark.skipif(conftest.HAS_MPI and not conftest.IS_OPEN_MPI, reason="knows no MPI: once, beside Open MPI, is enough")
def test_pip_compiles_and_installs(tmp_path, environment):
    signal.alarm(1100)
    pip(sys.executable, "install", "--no-deps", "--target", tmp_path / "site", conftest.PACKAGES, timeout=1000,
        *[f"--config-settings=cmake.{each}" for each in ("build-type=Debug", "define.DDL_SHIM_ROWS=few",
                                                         "define.CMAKE_DISABLE_FIND_PACKAGE_MPI=ON")])
    variables = {name: value for name, value in environment.items() if name != "DDL_LIBRARY_PATH"}
    variables["PYTHONPATH"] = str(tmp_path / "site")
    program = tmp_path / "program.py"
    program.write_text("import numpy, sys, pyddl, dl_comm\npyddl.init()\ndata = numpy.ones(10, numpy.float32)\npyddl.allreduce(data)\n"
                       "dl_comm.init()\ndl_comm.gradients([data])\nsys.stdout.write(f'{pyddl.library.__file__} {data[0]}\\n')\n"
                       "dl_comm.finalize()\npyddl.finalize()\n")
    done = subprocess.run([sys.executable, tmp_path / "site" / "bin" / "ddlrun", "--accelerators", "2", sys.executable, program],
                          env=variables, capture_output=True, text=True, timeout=100, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{tmp_path / 'site' / 'pyddl' / 'library.py'} 2.0"] * 2
    libraries = sorted(os.listdir(tmp_path / "site" / "pyddl" / "lib"))
    assert libraries == ["ddl_MDR.so", "libddl.so.0", "libddl_pack.so.0", "libdl_comm.so.0"]
