# SPDX-License-Identifier: Apache-2.0
"""statuses.py INCLUDE_DDL: reads the headers and names each call of CUDA or NCCL whose status nobody looks at.

A call of the runtime or of NCCL is an argument of what throws on its status, or gives it to a variable, to the caller or to a
comparison. It may throw it away in a destructor, in a function that is noexcept, or where an exception is under way, for there
is nobody left to tell; elsewhere a comment on that line says why. The driver is called through `driver_call` alone, which
throws, or `quietly` in those places or in a condition.

statuses.py --culprits: calls with one mistake each, and some in order.
"""
import pathlib
import re
import sys

COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', re.DOTALL)
CALL = re.compile(r"(?<![\w:&.])(?:(?:cuda|nccl)[A-Z]\w*(?=\()|cu[A-Z]\w*(?=\())|(?<=\.)quietly(?=\()")
WORDS = re.compile(r"(cuda|nccl)GetErrorString|cudaGetErrorName|ncclGetLastError")  # no status
# these take a status away; tell no version, where there is no driver; end what has failed, of which the caller is told
FORGETS = {"cudaGetLastError", "cudaDriverGetVersion", "ncclCommAbort"}
LOOKED_AT = re.compile(r"\b(require_cuda|require_nccl|check|judge|is_ready|is_running)\(\s*$|\b(cudaError_t|ncclResult_t) \w+ =|\breturn\b")
THROWN_AWAY = re.compile(r"static_cast<void>\(|(?<![.\w])quietly\(")
COMPARED = re.compile(r"\s*(==|!=)")
UNTOLD = re.compile(r"~\w+\(|\bnoexcept\b|\bcatch\b")


def call_end(text, opening):
    """Behind the bracket that closes the one at `opening`."""
    depth = 0
    for i in range(opening, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0:
            return i + 1
    return len(text)


def scopes(text, place):
    """What stands before each brace that is open at `place`."""
    openings = []
    for brace in re.finditer(r"[{}]", text[:place]):
        if brace.group() == "{":
            openings.append(brace.start())
        elif openings:
            openings.pop()
    return [re.split(r"[;{}]", text[:opening])[-1] for opening in openings]


def complaints(text):
    blank = COMMENT_OR_STRING.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)
    for found in CALL.finditer(blank):
        name = found.group()
        statement = re.split(r"[;{}]", blank[:found.start()])[-1]
        after = blank[call_end(blank, found.end()):]
        if WORDS.fullmatch(name):
            continue
        untold = re.match(r"[^\n]*;  //", text[found.start():]) or any(UNTOLD.search(scope) for scope in scopes(blank, found.start()))
        if re.match(r"cu[A-Z]", name):
            problem = "is called past driver_call"
        elif name == "quietly":
            problem = None if untold or "if (" in statement else "hides a status where somebody could be told"
        elif THROWN_AWAY.search(statement):
            problem = None if untold or name in FORGETS else "has a status that is thrown away where somebody could be told"
        else:
            seen = LOOKED_AT.search(statement) or COMPARED.match(after)
            problem = None if seen else "has a status that nobody looks at"
        if problem:
            yield text.count("\n", 0, found.start()) + 1, f"{name} {problem}"


CULPRITS = [
    "void f() { cudaFree(data); }",
    "void f() { static_cast<void>(cudaFree(data)); }",
    "void f() { quietly(cudaFree(data)); }",
    "void f() { auto unseen = cudaFree(data); }",
    "void f() { ncclGroupStart(); }",
    "void f() { require_cuda(cudaFree(a), \"cudaFree\", 0, 0); cudaFree(b); }",
    "void f() { if (cuMemRelease(handle)) return; }",
    "void f() { driver.unmap.quietly(here, bytes); }",
    "struct s { ~s() {} void f() { static_cast<void>(cudaFree(data)); } };",
    "void f() noexcept {} void g() { static_cast<void>(cudaFree(data)); }",
]
IN_ORDER = [
    "void f() { require_cuda(cudaFree(data), \"cudaFree\", 0, 0); }",
    "void f() { check(cudaMemcpyAsync(to, from, f(bytes),\n kind, stream), \"cudaMemcpyAsync\"); }",
    "void f() { const cudaError_t status = cudaEventQuery(event); if (status != cudaSuccess) g(); }",
    "cudaError_t f() { return cudaEventQuery(event); }",
    "void f() { const bool known = cudaGetDevice(&before) == cudaSuccess; }",
    "struct s { ~s() { static_cast<void>(cudaFree(data)); driver.unmap.quietly(here); } };",
    "void f() noexcept { quietly(cudaFree(data)); }",
    "void f() noexcept { if (data) { static_cast<void>(cudaFree(data)); } }",
    "void f() { try { g(); } catch (...) { driver.unmap.quietly(here); throw; } }",
    "void f() { static_cast<void>(cudaGetLastError()); }",
    "void f() { static_cast<void>(cudaFree(data));  // no event says more\n}",
    "void f() { throw error(cudaGetErrorString(status)); }",
    "driver_call<decltype(&cuMemMap)> map{\"cuMemMap\"};  // not cuMemMap(here)",
]


def wrong_answers():
    for text in CULPRITS:
        found = list(complaints(text))
        if len(found) != 1:
            yield f"one complaint expected of {text!r}, and the answer is {found}"
    for text in IN_ORDER:
        for _, answer in complaints(text):
            yield f"{text!r} is in order, and yet: {answer}"


if len(sys.argv) != 2:
    sys.exit(__doc__)
if sys.argv[1] == "--culprits":
    answers = list(wrong_answers())
else:
    root = pathlib.Path(sys.argv[1])
    headers = [file for file in sorted(root.rglob("*")) if file.suffix in {".hpp", ".cuh"}]
    answers = [f"{file.relative_to(root)}:{line}: {problem}"
               for file in headers for line, problem in complaints(file.read_text())]
print("\n".join(answers) or "in order")
sys.exit(bool(answers))
