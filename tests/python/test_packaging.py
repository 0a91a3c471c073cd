# SPDX-License-Identifier: Apache-2.0
"""The wheel that the target ddl_wheel makes, installed into a fresh environment: it runs there, without this tree."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import venv
import zipfile

import pytest

import conftest

LIBRARIES = os.environ.get("DDL_LIBRARY_PATH", "").split(os.pathsep)[0]
NETWORK = ("Could not find a version", "No matching distribution", "ConnectionError", "Temporary failure in name resolution",
           "Network is unreachable", "connection broken", "Read timed out", "HTTP error 5",
           "Connection aborted", "Connection reset", "IncompleteRead")


def pip(python, *words, timeout=300):
    """Runs pip; skips where it has no way to what it wants."""
    run([python, "-m", "pip", "--disable-pip-version-check", *words], timeout)


def run(words, timeout):
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, timeout=timeout, check=False)
    said = done.stdout + done.stderr
    if done.returncode != 0 and any(words in said for words in NETWORK):
        pytest.skip("pip cannot reach a package index")
    assert done.returncode == 0, said


def run_path(library):
    """The folders in which `library` looks for others; an empty name stands for whatever folder a program runs in."""
    done = subprocess.run(["readelf", "-d", library], env={**os.environ, "LC_ALL": "C"}, capture_output=True, text=True,
                          timeout=60, check=True)
    found = re.search(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", done.stdout)
    return found[1].split(":") if found else []


@pytest.mark.skipif(not os.path.exists(os.path.join(LIBRARIES, "libddl.so.0")),
                    reason="the library is not built; DDL_LIBRARY_PATH names none")
def test_a_package_that_is_installed_to_be_edited(tmp_path, python):
    """As by `pip install -e`: its modules lie in the tree, and the libraries in another of its folders."""
    folder = tmp_path / "site" / "pyddl"
    (folder / "lib").mkdir(parents=True)
    (folder / "lib" / "libddl.so.0").symlink_to(os.path.join(LIBRARIES, "libddl.so.0"))
    python(f"""
import importlib.util, sys
spec = importlib.util.find_spec("pyddl")
spec.submodule_search_locations.append({str(folder)!r})
sys.modules["pyddl"] = pyddl = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pyddl)
pyddl.init()
""", preamble="", variables={"DDL_LIBRARY_PATH": ""})


@pytest.mark.skipif(not all(os.path.exists(os.path.join(LIBRARIES, f"lib{name}.so.0")) for name in ("ddl", "ddl_pack", "dl_comm")),
                    reason="the libraries are not built; DDL_LIBRARY_PATH names none")
def test_a_wheel_installs_and_runs(tmp_path, environment):
    venv.create(tmp_path / "venv", with_pip=True, system_site_packages=True)
    python = tmp_path / "venv" / "bin" / "python"
    folder = pathlib.Path(LIBRARIES) / "wheel"
    for old in folder.glob("*"):
        old.unlink()
    run(["cmake", "--build", os.environ["DDL_TEST_BUILD"], "--target", "ddl_wheel"], 300)
    wheels = list(folder.iterdir())
    assert len(wheels) == 1 and wheels[0].name.endswith(f"-py3-none-linux_{os.uname().machine}.whl")
    names = zipfile.ZipFile(wheels[0]).namelist()
    for name in ("pyddl/lib/libddl.so.0", "pyddl/lib/libdl_comm.so.0", "pyddl/py.typed", "ddlrun/__main__.py",
                 "dl_comm/__init__.py", "ml_comm/__init__.py", "torch_ddl/__init__.py",
                 "ddl/__init__.py", "ddl/py.typed", "pyddl/lib/ddl_MDR.so"):
        assert name in names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    points = next(name for name in names if name.endswith(".dist-info/entry_points.txt"))
    assert "[torch.backends]\nddl=torch_ddl:register\n" in zipfile.ZipFile(wheels[0]).read(points).decode().replace(" ", "")
    pip(python, "install", "--no-deps", wheels[0])
    for library in tmp_path.glob("venv/lib/python*/site-packages/pyddl/lib/*"):
        folders = run_path(library)
        assert "" not in folders and not any(folder.startswith(os.environ["DDL_TEST_BUILD"]) for folder in folders), library
    variables = {name: value for name, value in environment.items() if name not in ("PYTHONPATH", "DDL_LIBRARY_PATH")}
    program = tmp_path / "program.py"
    program.write_text("import numpy, pyddl, dl_comm, ml_comm\npyddl.init()\ndata = numpy.ones(10)\npyddl.allreduce(data)\n"
                       "print(pyddl.__file__, data[0])\npyddl.finalize()\n")
    done = subprocess.run([tmp_path / "venv" / "bin" / "ddlrun", "--tag_output", "--accelerators", "2", python, program],
                          env=variables, capture_output=True, text=True, timeout=300, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        _, path, value = line.split()
        assert value == "2.0" and pathlib.Path(path).is_relative_to(tmp_path)
    done = subprocess.run([python, "-c", "import ctypes, ddl\nprint(ctypes.CDLL(ddl.operator_library()))"], env=variables,
                          capture_output=True, text=True, timeout=300, cwd=tmp_path, check=False)  # without a launcher
    assert f"{tmp_path}" in done.stdout and "pyddl/lib/ddl_MDR.so" in done.stdout, done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("cmake") is None, reason="there is no cmake")
def test_what_has_no_sources_says_so(tmp_path):
    shutil.copy(conftest.PACKAGES / "CMakeLists.txt", tmp_path)  # as in an sdist, which holds the Python packages alone
    done = subprocess.run(["cmake", "-S", tmp_path, "-B", tmp_path / "build"], capture_output=True, text=True, timeout=300,
                          check=False)
    assert done.returncode != 0 and "DDL_BUILT_LIBRARIES" in done.stderr, done.stderr


def test_one_version_everywhere():
    sys.path.insert(0, str(conftest.PACKAGES))
    from ddlrun import __version__
    assert f"VERSION {__version__} " in (conftest.ROOT / "CMakeLists.txt").read_text()
    assert 'input = "ddlrun/version.py"' in (conftest.PACKAGES / "pyproject.toml").read_text()
