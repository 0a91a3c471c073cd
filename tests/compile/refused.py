# SPDX-License-Identifier: Apache-2.0
"""refused.py [--harness] CASE COMPILER FLAG... [--twin FLAG...]: a wrong call is refused, in the words it promises.

CASE holds a line `// expect: <sentence>`, and under `#ifdef DDL_WRONG` the wrong call, else its twin. The flags after
--twin are for the twin alone, which is compiled if that is there. With --harness, CASE is itself wrong: its line `// finding: <words>` is what must be found.
"""
import os
import pathlib
import re
import subprocess
import sys

ERROR = re.compile(r"(?:fatal )?error: ")


def lines_after(key, text):
    return re.findall(rf"^// {key}: *(.+?) *$", text, re.MULTILINE)


def compiled(compiler, flags, case):
    no_carets = "-fno-caret-diagnostics" if "clang" in pathlib.Path(compiler).name else "-fno-diagnostics-show-caret"
    command = [compiler, *flags, no_carets, "-fdiagnostics-color=never", "-fsyntax-only", str(case)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={**os.environ, "LC_ALL": "C"})
    return done.returncode, done.stdout


def findings(case, compiler, flags, twin_flags):
    sentences = lines_after("expect", case.read_text())
    if not sentences:
        yield "the case expects no sentence; give it a line `// expect: ...`"
        return
    code, output = compiled(compiler, [*flags, "-DDDL_WRONG"], case)
    errors = len(ERROR.findall(output))
    if code == 0:
        yield "the wrong call compiles"
    else:
        for sentence in sentences:
            if sentence not in output:
                yield f"the sentence is absent: {sentence}\n{output}"
        if errors != 1:
            yield f"the wrong call prints {errors} errors, expected one:\n{output}"
    if twin_flags is None:
        return
    code, output = compiled(compiler, [*flags, *twin_flags], case)
    if code != 0:
        yield f"the twin does not compile:\n{output}"
    elif output:
        yield f"the twin compiles with a diagnostic:\n{output}"


arguments = sys.argv[1:]
harness = arguments[:1] == ["--harness"]
case, compiler, *rest = arguments[harness:]
case = pathlib.Path(case)
flags, twin_flags = rest, None
if "--twin" in rest:
    flags, twin_flags = rest[: rest.index("--twin")], rest[rest.index("--twin") + 1 :]
found = list(findings(case, compiler, flags, twin_flags))
print("\n".join(found) or "refused as promised")
if harness:
    wanted = lines_after("finding", case.read_text())
    sys.exit(not (len(found) == len(wanted) == 1 and found[0].startswith(wanted[0])))
sys.exit(bool(found))
