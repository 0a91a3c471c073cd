# SPDX-License-Identifier: Apache-2.0
"""kernels.py NVCC INCLUDE KERNELS_CU FOLDER: what the compiler made of the kernels, without a GPU.

No kernel spills, takes more arguments than it is handed, or has more registers than two of its blocks on a multiprocessor
leave it, and all but the one-shot load and store 16 bytes at a time: several loads are on their way before the first value
is used. Flags are acquired and released at the scope of the system, and at no narrower one: others of them lie in other GPUs.
Nothing is loaded through the cache for what never changes, which no acquired flag empties: peers write while a kernel runs.

kernels.py NVDISASM CUBIN: whether the same kernels do so in machine code, where the assembler has had its say.

kernels.py --culprits: holds the answer against reports with one mistake each, and one in order.
"""
import pathlib
import re
import subprocess
import sys

MOST_REGISTERS = 64  # 65536 registers of a multiprocessor, two blocks of 512 threads
FEWEST_KERNELS = 18
FEWEST_WIDE_KERNELS = 16
MOST_ARGUMENTS = {"grid_tensors": 26 << 10, "": 1024}  # bytes; a launch copies all that the kernel is said to take
ARGUMENTS = re.compile(r"\.param[^;\[]*\.b8 \w+\[(\d+)\]")
WIDE = re.compile("two_shot|grid_tensors|grid_move|grid_exchange")  # those that load and store packets

KERNEL = re.compile(r"^\.visible \.entry (\w+)\(.*?^\}", re.MULTILINE | re.DOTALL)
REPORT = re.compile(
    r"entry function '(\w+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads.*?Used (\d+) registers",
    re.DOTALL)
WIDE_LOAD = re.compile(r"\bld(?:\.global)?\.v(?:4\.[bufs]32|2\.[bufs]64)")
WIDE_STORE = re.compile(r"\bst(?:\.global)?(?:\.wb)?\.v(?:4\.[bufs]32|2\.[bufs]64)")
# every kernel acquires and releases flags, but for those whose blocks wait for nobody
FLAGS = {"acquires": re.compile(r"\bld\.acquire\.sys\b"), "releases": re.compile(r"\bst\.release\.sys\b")}
NARROW_FLAG = re.compile(r"\b(?:ld|st|atom|red|fence)\.(?:\w+\.)*(?:gpu|cluster|cta)\b[\w.]*|\bmembar\.(?:gl|cta)\b")
FLAGS_CODE = {"acquires": re.compile(r"\bLDG?\.E\.64\.STRONG\.SYS\b"),
              "releases": re.compile(r"\bMEMBAR\.\w+\.SYS\b(?s:.*)\bSTG?\.E\.64\.STRONG\.SYS\b")}
NARROW_FLAG_CODE = re.compile(r"\b(?:LD|ST)G?\.E\.64\.STRONG\.(?!SYS\b)\w+|\bMEMBAR\.\w+\.(?!SYS\b)\w+")
UNCHANGING = re.compile(r"\bld\.(?:\w+\.)*nc\b[\w.]*")
UNCHANGING_CODE = re.compile(r"\bLDG?\.[\w.]*CONSTANT\b[\w.]*")

MACHINE_CODE = re.compile(r"^\.text\.(\w+):\n(.*?)(?=^\.text\.|\Z)", re.MULTILINE | re.DOTALL)
WIDE_CODE = {"loads": re.compile(r"\bLDG?\.E(?:\.\w+)*?\.128\b"), "stores": re.compile(r"\bSTG?\.E(?:\.\w+)*?\.128\b")}


def complaints_of_flags(name, body, wide_scope, narrow_scope, unchanging):
    for does, pattern in wide_scope.items():
        if "run_without_meetings" not in name and not pattern.search(body):
            yield f"{name} never {does} a flag at the scope of the system"
    if found := narrow_scope.search(body):
        yield f"{name} says {found.group()}: flags are for other GPUs, too"
    if found := unchanging.search(body):
        yield f"{name} says {found.group()}: what a peer has stored meanwhile may not be seen"


def complaints_of_machine_code(listing, kernels=FEWEST_WIDE_KERNELS):
    bodies = [(name, body) for name, body in MACHINE_CODE.findall(listing) if WIDE.search(name)]
    for name, body in MACHINE_CODE.findall(listing):
        yield from complaints_of_flags(name, body, FLAGS_CODE, NARROW_FLAG_CODE, UNCHANGING_CODE)
    if len(bodies) < kernels:
        yield f"the disassembler lists {len(bodies)} kernels that load packets, not {kernels}"
    for name, body in bodies:
        for does, pattern in WIDE_CODE.items():
            if not pattern.search(body):
                yield f"the machine code of {name} never {does} 16 bytes at a time"


def complaints(ptx, report, kernels=FEWEST_KERNELS):
    reported = REPORT.findall(report)
    if len(reported) < kernels:
        yield f"the assembler reports on {len(reported)} kernels, not on {kernels}"
    for name, stack, stores, loads, registers in reported:
        if int(stores) or int(loads):
            yield f"{name} spills: {stores} bytes stored, {loads} loaded"
        if int(stack):
            yield f"{name} keeps {stack} bytes in local memory: an array is indexed by what is no constant"
        if int(registers) > MOST_REGISTERS:
            yield f"{name} uses {registers} registers, above {MOST_REGISTERS}"
    for found in KERNEL.finditer(ptx):
        yield from complaints_of_flags(found.group(1), found.group(0), FLAGS, NARROW_FLAG, UNCHANGING)
        taken = sum(map(int, ARGUMENTS.findall(found.group(0))))
        most = next(most for kind, most in MOST_ARGUMENTS.items() if kind in found.group(1))
        if taken > most:
            yield f"{found.group(1)} takes {taken} bytes of arguments, above {most}: more than there are?"
    bodies = [(found.group(1), found.group(0)) for found in KERNEL.finditer(ptx) if WIDE.search(found.group(1))]
    if not bodies:
        yield "there is no kernel that loads packets"
    for name, body in bodies:
        if not WIDE_LOAD.search(body):
            yield f"{name} never loads 16 bytes at a time"
        if not WIDE_STORE.search(body):
            yield f"{name} never stores 16 bytes at a time"


def entry(name, body):
    return f".visible .entry {name}(\n.param .u64 p\n)\n{{\n{body}\n}}\n"


def line(name, stack=0, stores=0, loads=0, registers=40):
    return (f"ptxas info    : Compiling entry function '{name}' for 'sm_90'\n"
            f"    {stack} bytes stack frame, {stores} bytes spill stores, {loads} bytes spill loads\n"
            f"ptxas info    : Used {registers} registers, used 1 barriers\n")


def wrong_answers():
    flags = "ld.acquire.sys.b64 c, [d]; st.release.sys.b64 [d], c; ld.relaxed.sys.b64 c, [d];"
    wide = "ld.v4.u32 {a}; st.v4.u32 [b];" + flags
    good = entry("a_two_shot", wide), line("a_two_shot")
    cases = [
        (good, 0),
        ((good[0], line("a_two_shot", stack=8)), 1),
        ((good[0], line("a_two_shot", stores=4, loads=4)), 1),
        ((good[0], line("a_two_shot", registers=65)), 1),
        ((good[0].replace(".u64 p", ".align 8 .b8 p[1568]"), good[1]), 1),
        ((entry("a_two_shot", "ld.u32 a; st.v4.u32 [b];" + flags), good[1]), 1),
        ((entry("a_two_shot", "ld.global.v2.u64 {a}; st.u32 [b];" + flags), good[1]), 1),
        ((entry("a_one_shot", wide), line("a_one_shot")), 1),
        ((good[0], ""), 1),
        ((entry("a_two_shot", wide.replace("ld.acquire.sys", "ld.volatile")), good[1]), 1),
        ((entry("a_two_shot", wide.replace("st.release.sys", "st.relaxed.sys")), good[1]), 1),
        ((entry("a_two_shot", wide.replace("st.release.sys", "st.release.gpu")), good[1]), 2),
        ((entry("a_two_shot", wide.replace("ld.relaxed.sys", "ld.relaxed.gpu")), good[1]), 1),
        ((entry("a_two_shot", wide + "fence.acq_rel.gpu;"), good[1]), 1),
        ((entry("a_two_shot", wide + "membar.gl;"), good[1]), 1),
        ((entry("a_two_shot", wide + "ld.global.nc.v4.u32 {a};"), good[1]), 1),
    ]
    for (ptx, report), expected in cases:
        found = list(complaints(ptx, report, kernels=1))
        if len(found) != expected:
            yield f"{expected} complaints expected of\n{ptx}{report}and the answer is {found}"
    flags = "LD.E.64.STRONG.SYS R1, [R2]; MEMBAR.ALL.SYS; ST.E.64.STRONG.SYS [R2], R1;"
    codes = [
        ("LDG.E.128 R4, [R2]; ST.E.128.STRONG.SM [R6], R4;", 0),
        ("LD.E.64 R4, [R2]; STG.E.128 [R6], R4;", 1),
        ("LDG.E.128 R4, [R2]; STS.128 [R6], R4;", 1),
        ("LDG.E.128.CONSTANT R4, [R2]; STG.E.128 [R6], R4;", 1),
        ("", 2),
    ]
    codes = [(body + flags, expected) for body, expected in codes]
    wide = codes[0][0]
    codes += [
        (wide.replace("LD.E.64.STRONG.SYS", "LD.E.64.STRONG.GPU"), 2),
        (wide.replace("MEMBAR.ALL.SYS", "MEMBAR.ALL.GPU"), 2),
        (wide.replace("MEMBAR.ALL.SYS", ""), 1),
    ]
    for body, expected in codes:
        listing = f".text._a_two_shot:\n{body}\n.text._a_one_shot:\nLDG.E.128 R4, [R2]; STG.E.128 [R6], R4;{flags}\n"
        found = list(complaints_of_machine_code(listing, kernels=1))
        if len(found) != expected:
            yield f"{expected} complaints expected of {body!r}, and the answer is {found}"
    if len(list(complaints_of_machine_code("", kernels=1))) != 1:
        yield "an empty listing is in order"


def run(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    return done.stdout + done.stderr


def main(nvcc, include, source, folder):
    ptx = pathlib.Path(folder, "kernels.ptx")
    run([nvcc, "-std=c++20", "-arch=sm_90", "-O3", "--expt-relaxed-constexpr", "-I", include, "-ptx", source, "-o", ptx])
    ptxas = pathlib.Path(nvcc).resolve().parent / "ptxas"
    report = run([ptxas if ptxas.exists() else "ptxas", "-v", "-arch=sm_90", ptx, "-o", ptx.with_suffix(".cubin")])
    for name, _, _, _, registers in REPORT.findall(report):
        print(f"{registers} registers: {name}")
    return list(complaints(ptx.read_text(), report))


if sys.argv[1:] == ["--culprits"]:
    found = list(wrong_answers())
elif len(sys.argv) == 3:
    found = list(complaints_of_machine_code(run([sys.argv[1], "-c", sys.argv[2]])))
elif len(sys.argv) == 5:
    found = main(*sys.argv[1:])
else:
    sys.exit(__doc__)
print("\n".join(found) or "in order")
sys.exit(bool(found))
