# SPDX-License-Identifier: Apache-2.0
"""check.py code|links|errors|house ROOT: holds README.md and docs/*.md against the tree.

code    Each ```cpp block follows `<!-- region FILE NAME -->` and equals the lines of that file between `//! [NAME]` and
        `//! [NAME]`, save for common indentation; each block after `<!-- prints FILE -->` equals its `// prints:` lines.
        FILE is compiled and run by the tests: it lies in examples/, in tests/docs/ or in tests/gpu/.
links   Each relative link leads to a file, and to a heading of it where it names one.
errors  Each text that a header throws, or stops the compiler with, is in docs/errors.md, and the other way round. What
        printf fills in is written as "…" there.
house   Each header is in docs/house.md, and each header that it names is there.

check.py fill ROOT: writes into the marked blocks what they should read.

check.py --culprits: small trees with one mistake each, and one in order.
"""
import pathlib
import re
import sys
import tempfile
import textwrap

BLOCK = re.compile(r"(?:<!-- (region|prints) (\S+)(?: (\S+))? -->\n+)?^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMPILED = ("examples/", "tests/docs/", "tests/gpu/")


def pages(root):
    found = sorted((root / "docs").rglob("*.md"))
    return ([root / "README.md"] if (root / "README.md").exists() else []) + found


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


# ---- code

def region(source, name):
    """The lines between the marks of `name`, without common indentation and other marks; None if there are none."""
    parts = re.split(rf"^[ \t]*//! \[{re.escape(name)}\][ \t]*\n", source, flags=re.MULTILINE)
    if len(parts) != 3:
        return None
    lines = [line for line in parts[1].splitlines() if not re.match(r"\s*//! \[", line)]
    return textwrap.dedent("\n".join(lines)).strip("\n")


def printed(source):
    return "\n".join(re.findall(r"^// prints: (.*)$", source, re.MULTILINE))


def wanted_in(root, kind, file, name):
    """What a marked block should hold; None if there is no such source, empty if it has no such part."""
    if not file.startswith(COMPILED) or not (root / file).exists():
        return None
    source = (root / file).read_text()
    return region(source, name or "") if kind == "region" else printed(source)


def fill(root):
    def filled(block):
        kind, file, name, language, body = block.groups()
        wanted = wanted_in(root, kind, file, name) if kind else ""
        if not wanted:
            return block.group()
        return block.group().replace(f"```{language}\n{body}", f"```{language}\n{wanted}\n")

    for page in pages(root):
        page.write_text(BLOCK.sub(filled, page.read_text()))
    return code(root)


def code(root):
    for page in pages(root):
        text = page.read_text()
        for block in BLOCK.finditer(text):
            kind, file, name, language, body = block.groups()
            where = f"{page.relative_to(root)}:{line_of(text, block.start(5))}"
            if kind is None:
                if language == "cpp":
                    yield f"{where}: code that no test compiles; mark it as a region of examples/ or tests/docs/"
                continue
            wanted = wanted_in(root, kind, file, name)
            if wanted is None:
                yield f"{where}: the tests compile no {file}"
            elif not wanted:
                yield f"{where}: {file} has no region [{name}]" if kind == "region" else f"{where}: {file} prints nothing"
            elif wanted != body.strip("\n"):
                yield f"{where}: this is not what {file} holds; it should read\n{wanted}"


# ---- links

def headings(text):
    """The names that links to headings use: lower case, hyphens for spaces, nothing else but letters and digits."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def links(root):
    for page in pages(root):
        text = page.read_text()
        code_spans = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
        prose = code_spans.sub(lambda span: re.sub(r"[^\n]", " ", span.group()), text)
        for link in re.finditer(r"\]\(([^)\s]+)\)", prose):
            if re.match(r"[a-z]+:", link.group(1)):
                continue
            path, _, heading = link.group(1).partition("#")
            target = page.parent / path if path else page
            where = f"{page.relative_to(root)}:{line_of(text, link.start())}"
            if not target.exists():
                yield f"{where}: there is no {link.group(1)}"
            elif heading and heading not in headings(target.read_text()):
                yield f"{where}: {path or page.name} has no heading '{heading}'"


# ---- errors

CALL = re.compile(r"\b(?:error(?: \w+)?|fault|make|invalid|about|failure|refused_by_system|fail|static_assert)\s*[({]"
                  r"|words\.append\(")
STRINGS = re.compile(r'(?:"(?:[^"\\\n]|\\.)*"\s*)+')
FEWEST_WORDS = 3  # what is shorter is the name of an operation, or a part of a sentence


def normal(text):
    text = re.sub(r"%[-+ 0-9.*]*(?:hh|h|ll|l|z)?[diuxsgf]", "…", text.replace('\\"', '"'))
    return re.sub(r"\s+", " ", text).strip()


def arguments(text, begin):
    """What stands between the bracket at `begin` and the one that closes it."""
    depth, quoted, at = 0, False, begin
    while at < len(text):
        character = text[at]
        if quoted:
            at += character == "\\"
            quoted = character != '"'
        elif character == '"':
            quoted = True
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
            if depth == 0:
                break
        at += 1
    return text[begin + 1:at]


def thrown(root):
    """The texts of all headers, each with the first place it is met in."""
    found = {}
    for header in sorted(path for ending in ("*.hpp", "*.cuh") for path in (root / "include").rglob(ending)):
        source = re.sub(r"(?<!:)//[^\n]*", lambda comment: " " * len(comment.group()), header.read_text())
        for call in CALL.finditer(source):
            for strings in STRINGS.findall(arguments(source, call.end() - 1)):
                text = normal("".join(re.findall(r'"((?:[^"\\]|\\.)*)"', strings)))
                if len(text.split()) >= FEWEST_WORDS:
                    found.setdefault(text, f"{header.relative_to(root)}:{line_of(source, call.start())}")
    return found


def errors(root):
    page = root / "docs" / "errors.md"
    if not page.exists():
        yield "there is no docs/errors.md"
        return
    cells = re.findall(r"^\| `([^`]+)` \|", page.read_text(), re.MULTILINE)
    documented = [normal(cell) for cell in cells if len(cell.split()) >= FEWEST_WORDS]
    texts = thrown(root)
    for text, where in texts.items():
        if not any(text in one for one in documented):
            yield f"{where}: docs/errors.md lacks `{text}`"
    for one in documented:
        if one not in texts:
            yield f"docs/errors.md: no header says `{one}`"


# ---- house

def house(root):
    page = root / "docs" / "house.md"
    named = set(re.findall(r"[\w.]+\.(?:hpp|cuh|h)\b", page.read_text())) if page.exists() else set()
    there = {header.name: header.relative_to(root) for header in sorted((root / "include").rglob("*.*"))
             if header.suffix in {".hpp", ".cuh", ".h"}}
    for name in sorted(set(there) - named):
        yield f"docs/house.md lacks {there[name]}"
    for name in sorted(named - set(there)):
        yield f"docs/house.md names {name}, which is not there"


# ---- the checks themselves

SOURCE = "// prints: yes\n//! [a]\nint a;\n//! [a]\n"
HEADER = 'throw error(errc::broken, "allreduce", 1, 2, "rank %d is not "\n    "there; call %s", peer);\n'
IN_ORDER = {
    "examples/x.cpp": SOURCE,
    "include/ddl/x.hpp": HEADER,
    "README.md": "# One\n<!-- region examples/x.cpp a -->\n```cpp\nint a;\n```\n"
                 "[there](docs/errors.md#two) [here](#one)\n",
    "docs/house.md": "x.hpp\n",
    "docs/errors.md": "# Two\n| `rank … is not there; call …` | why |\n"
                      "<!-- prints examples/x.cpp -->\n```text\nyes\n```\n",
}
CULPRITS = [
    ("code", "README.md", "```cpp\nint a;\n```\n"),
    ("code", "README.md", "<!-- region examples/x.cpp a -->\n```cpp\nint b;\n```\n"),
    ("code", "README.md", "<!-- region examples/x.cpp b -->\n```cpp\nint a;\n```\n"),
    ("code", "README.md", "<!-- region include/ddl/x.hpp a -->\n```cpp\nint a;\n```\n"),
    ("code", "README.md", "<!-- prints examples/x.cpp -->\n```text\nno\n```\n"),
    ("links", "README.md", "[gone](docs/gone.md)"),
    ("links", "README.md", "[gone](docs/errors.md#three)"),
    ("house", "docs/house.md", "nothing"),
    ("house", "docs/house.md", "x.hpp and y.hpp"),
    ("errors", "docs/errors.md", "# Two\n"),
    ("errors", "docs/errors.md", IN_ORDER["docs/errors.md"] + "| `nobody says this here` | why |\n"),
]
QUESTIONS = {"code": code, "links": links, "errors": errors, "house": house}
WAYS = {**QUESTIONS, "fill": fill}


def answer(question, files):
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            file = pathlib.Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return list(QUESTIONS[question](pathlib.Path(folder)))


def wrong_answers():
    for question, path, text in CULPRITS:
        found = answer(question, {**IN_ORDER, path: text})
        if len(found) != 1:
            yield f"{question}: {path} is\n{text}\nand the answer is {found}"
    for question in QUESTIONS:
        for one in answer(question, IN_ORDER):
            yield f"all is in order, and yet: {one}"


if sys.argv[1:] == ["--culprits"]:
    complaints = list(wrong_answers())
elif len(sys.argv) == 3 and sys.argv[1] in WAYS:
    complaints = list(WAYS[sys.argv[1]](pathlib.Path(sys.argv[2]).resolve()))
else:
    sys.exit(__doc__)
print("\n".join(complaints) or "in order")
sys.exit(bool(complaints))
