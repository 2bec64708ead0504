# SPDX-License-Identifier: MIT OR Apache-2.0
"""The cases M1 to M32 of section 6 of the specification of fences, and who checks them.

The table is in `Documentation/memory-model.md`. Each check that it names has to be there.
"""

import pathlib
import re

REPO = pathlib.Path(__file__).resolve().parents[2]
TABLE = REPO / "Documentation/memory-model.md"
TESTS = REPO / "tools/selftests/src/bin"
CASES = range(1, 33)


def sources(*places):
    """The text of all Rust files there."""
    files = (file for place in places for file in sorted((REPO / place).rglob("*.rs")))
    return "\n".join(file.read_text() for file in files)


def program(name):
    """The text of a program of the virtual machine, which is a file or a directory."""
    file = TESTS / f"{name}.rs"
    if file.exists():
        return file.read_text()
    return "\n".join(part.read_text() for part in sorted((TESTS / name).rglob("*.rs")))


def is_there(check, scenes, functions):
    """Whether a check exists: `spin SCENE`, `litmus FILE`, `t-PROGRAM: TITLE`, or a function."""
    kind, _, name = check.partition(" ")
    if kind == "spin":
        return name in scenes
    if kind == "litmus":
        return (REPO / f"tools/verify/litmus/{name}.litmus").exists()
    if kind.startswith("t-") and kind.endswith(":"):
        return f'"{name}"' in program(kind[:-1])
    return re.search(rf"\bfn {re.escape(check)}\(", functions) is not None


def check(tap, scenes):
    """One result for each case."""
    rows = re.findall(r"^\| M(\d+) \| ([^|]*) \| (.*) \|$", TABLE.read_text(), re.M)
    named = {int(number): (what, re.findall(r"`([^`]+)`", checks)) for number, what, checks in rows}
    functions = sources("tools/host/src/tests", "rust/dxgk")
    for number in CASES:
        what, checks = named.get(number, ("is not in the table", []))
        gone = [name for name in checks if not is_there(name, scenes, functions)]
        note = f"there is no {', '.join(gone)}" if gone else ", ".join(checks)
        tap.result(bool(checks) and not gone, f"cases: M{number} {what}", note=note)
