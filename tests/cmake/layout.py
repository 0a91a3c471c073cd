# SPDX-License-Identifier: Apache-2.0
"""layout.py ROOT: the visible top level is exactly what the design names, and every header is one concept long."""
import pathlib
import subprocess
import sys

TOP_LEVEL = {"CMakeLists.txt", "include", "benchmarks", "tests", "examples", "docs", "LICENSE", "README.md"}
LONGEST_HEADER = 400


def files_of(root):
    """What a clone would hold: build trees and other ignored files are not the repository's."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=root, capture_output=True, text=True) if (root / ".git").exists() else None
    if listing and listing.returncode == 0:
        names = [name for name in listing.stdout.split("\0") if name]
    else:
        names = [str(path.relative_to(root)) for path in root.rglob("*") if "build" not in path.relative_to(root).parts]
    return [pathlib.PurePath(name) for name in names if (root / name).is_file()]


def findings(root):
    files = files_of(root)
    top_level = {file.parts[0] for file in files if not file.parts[0].startswith(".")}
    for name in sorted(top_level - TOP_LEVEL):
        yield f"the top level has '{name}', which the design does not name"
    for name in sorted(TOP_LEVEL - top_level):
        yield f"the top level lacks '{name}'"
    for file in sorted(files):
        if file.parts[0] == "include" and file.suffix in {".hpp", ".cuh", ".h"}:
            lines = len((root / file).read_text().splitlines())
            if lines > LONGEST_HEADER:
                yield f"{file} has {lines} lines, at most {LONGEST_HEADER}: is it one concept?"


found = list(findings(pathlib.Path(sys.argv[1]).resolve()))
print("\n".join(found) or "the layout is that of the design")
sys.exit(bool(found))
