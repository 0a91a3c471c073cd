# SPDX-License-Identifier: Apache-2.0
"""The header that a user includes: C++ text from what was measured."""
import math

def table(title, curves):
    """Medians as comment lines, a row a size."""
    sizes = sorted(set.union(*(set(curve) for curve in curves.values()))) if curves else []
    yield f"// {title}, medians in us:"
    yield "//" + f"{'bytes':>12}" + "".join(f"  {name}" for name in curves)
    for size in sizes:
        row = "".join(f"  {1e6 * curve[size]:>{len(name)}.4g}" if size in curve else "  " + f"{'-':>{len(name)}}"
                      for name, curve in curves.items())
        yield "//" + f"{size:>12}" + row


def memory(transport, limits, tables):
    for each in tables:
        yield from table(*each)
    yield f"template <>\ninline constexpr ddl::direct_limits ddl::limits_of<ddl::{transport}>{{"
    for name, value in limits.items():
        yield f"    .{name} = {value},"
    yield "};"


def link(transport, found):
    message, byte, combined = found
    yield f"template <>\ninline constexpr ddl::link_cost ddl::link_of<ddl::{transport}>{{"
    yield f"    .message = {message:.3g},\n    .byte = {byte:.3g},\n    .combined = {combined:.3g},\n}};"


def qualified(schedule):
    """`hierarchical<direct, ring>` with all names qualified."""
    return "".join(f"ddl::{word}" if word.isidentifier() else word
                   for word in schedule.replace("<", " < ").replace(">", " > ").replace(",", " , ").split(" ") if word
                   ).replace(",", ", ")


def selection(transport, quick, limit, broad):
    """`limit` is the last size for which `quick` is taken: 0 for none, infinity for all."""
    if limit in (0, math.inf):
        chosen = f"ddl::selected<ddl::otherwise<{qualified(quick if limit else broad)}>>"
    else:
        chosen = f"ddl::selected<ddl::at_most<{limit}, {qualified(quick)}>, ddl::otherwise<{qualified(broad)}>>"
    yield "template <>"
    yield f"struct ddl::default_schedule<ddl::collective::allreduce, true, ddl::{transport}> {{"
    yield f"    using type = {chosen};\n}};"


def opening(machine, transports):
    yield f"// Limits and schedules of ddl for one machine: {machine['processor']},"
    yield f"// {machine['cores']} cores, caches {machine['caches']}; host {machine['host']}."
    yield f"// Measured {machine['date']}, {machine['ranks']} ranks, {machine['compiler']}, {machine['flags']}, by:"
    yield f"// {machine['command']}"
    yield "//"
    yield "// Include it in every source file of every program of a job; before or after ddl's own headers does not matter."
    yield "// Ranks of which some go without it get an error. See docs/tuning.md."
    yield "#pragma once"
    yield ""
    yield "#include <ddl/executor/direct_limits.hpp>"
    yield "#include <ddl/executor/tuning.hpp>"
    yield ""
    yield "namespace ddl {"
    yield from (f"class {each};" for each in transports)
    yield "}  // namespace ddl"


def refusal(reasons):
    """What stands in place of a header: it must not look like one that was measured and found nothing."""
    yield "// benchmarks/tune has measured nothing that can be trusted."
    yield from (f"#error \"benchmarks/tune: {reason}\"".replace("\n", " ") for reason in reasons)
