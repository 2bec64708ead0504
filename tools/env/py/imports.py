#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Which files of rust/ import which: who may use whom, and who imports each other in a circle.

The table of folders in Documentation/architecture.md says who may use whom. Run as a program this
prints the imports between folders, and the circles.
"""

import re
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]
PAGE = TOP / "Documentation/architecture.md"

ROW = re.compile(r"^\| (`rust/[^|]*) \|[^|]*\| ([^|]*) \|$", re.M)


def allowed(page):
    """Names below rust/, each with the names that it may use, as the page's table says."""
    table = {}
    for names, uses in ROW.findall(page):
        for name in re.findall(r"`rust/(\w+)(?:\.rs)?`", names):
            table[name] = set(re.findall(r"`(\w+)`", uses))
    return table


def expand(tree):
    """The paths that one tree of a `use` names."""
    head, brace, rest = tree.partition("{")
    if not brace:
        return [head.split(" as ")[0].strip()]
    parts, depth, part = [], 0, ""
    for letter in rest[:rest.rindex("}")]:
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += letter
    return [head.strip() + path for part in [*parts, part] if part.strip() for path in expand(part)]


def paths(source):
    """All paths that start at the crate or are relative, outside comments.

    `super::*` is what a module inside a file takes from that file.
    """
    source = re.sub(r"//[^\n]*", "", source)
    source = re.sub(r"\buse super::\*;", "", source)
    source = re.sub(r"pub\(in [\w:]+\)", "", source)
    for tree in re.findall(r"\buse\s+([^;]+);", source):
        yield from expand(" ".join(tree.split()))
    yield from re.findall(r"\b(?:crate|super)(?:::\w+)+", re.sub(r"\buse\s+[^;]+;", "", source))


class Modules:
    """The modules below a folder, and what each imports."""

    def __init__(self, root):
        self.sources = {}
        for file in sorted(root.rglob("*.rs")):
            name = file.relative_to(root).with_suffix("").parts
            name = name[:-1] if name[-1] == "mod" else name
            if name != ("dxg",):
                self.sources[name] = file.read_text()
        self.imports = {name: self.used_by(name, source) for name, source in self.sources.items()}

    def used_by(self, module, source):
        """The modules that a module names, without itself."""
        used = set()
        for path in paths(source):
            steps = [step.strip() for step in path.split("::")]
            place = list(module)
            if steps[0] == "crate":
                place = []
            elif steps[0] not in ("super", "self") and (*module, steps[0]) not in self.sources:
                continue
            while steps and steps[0] in ("crate", "super", "self"):
                if steps.pop(0) == "super":
                    place = place[:-1]
            target = tuple(place + steps)
            while target and target not in self.sources:
                target = target[:-1]
            used.add(target)
        return used - {module, ()}

    def between_folders(self):
        """Which name below the root imports which other one, and in how many files."""
        table = {}
        for module, used in self.imports.items():
            for folder in {name[0] for name in used} - {module[0]}:
                row = table.setdefault(module[0], {})
                row[folder] = row.get(folder, 0) + 1
        return table

    def circles(self):
        """The sets of modules that import each other in a circle, the largest first (Tarjan)."""
        index, low, stack, found = {}, {}, [], []

        def visit(name):
            index[name] = low[name] = len(index)
            stack.append(name)
            for used in self.imports[name]:
                if used not in index:
                    visit(used)
                    low[name] = min(low[name], low[used])
                elif used in stack:
                    low[name] = min(low[name], index[used])
            if low[name] == index[name]:
                at = stack.index(name)
                if len(stack) - at > 1:
                    found.append(sorted(stack[at:]))
                del stack[at:]

        for name in self.imports:
            if name not in index:
                visit(name)
        return sorted(found, key=len, reverse=True)


def main():
    modules = Modules(TOP / "rust")
    for folder, used in sorted(modules.between_folders().items()):
        print(folder, "->", ", ".join(f"{name} ({count})" for name, count in sorted(used.items())))
    for circle in modules.circles():
        print(f"circle of {len(circle)}:", ", ".join("::".join(name) for name in circle))


if __name__ == "__main__":
    sys.setrecursionlimit(10_000)
    sys.exit(main())
