# SPDX-License-Identifier: MIT OR Apache-2.0
"""Pages and comments are narrow enough to read, and what pages point at is there."""

import ast
import re
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[4]
WIDTH = 100

REMARK = re.compile(r"\s*#(?!!)")
COMMENT = re.compile(r"\s*(//|/?\*)")
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
# A file that is named as code, from any folder on.
NAMED = re.compile(r"`([\w.-]+(?:/[\w.-]+)+\.(?:c|h|md|png|py|rs|svg|tsv)|[\w-]+\.(?:md|rs))`")
# Files that a build makes, and those of other projects.
ELSEWHERE = re.compile(r"build/|ddk/|fs/|include/|wsl/|directx/|linux/")


def pages():
    """The pages. The texts of the specification are kept as they are."""
    return sorted(path for name in files() if (path := TOP / name).suffix == ".md"
                  and (path.parent.name != "spec" or path.name == "README.md"))


def sources():
    """Files with comments that people write."""
    found = [path for place in ("rust", "uapi", "tools") for path in (TOP / place).rglob("*")]
    return sorted(path for path in found
                  if path.suffix in (".rs", ".c", ".h") and path.name != "generated.rs")


def scripts():
    """Files whose comments begin with a hash: of shells, Python, make and cargo, and lists."""
    for name in files():
        path = TOP / name
        if path.suffix in ("", ".config", ".py", ".sh", ".toml", ".txt") and \
                path.parts[len(TOP.parts)] != "LICENSES" and path.name != "COPYING":
            yield path


def prose(text):
    """Numbers and lines of a page that are neither code nor table nor a link alone."""
    code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            code = not code
        alone = len(line.split()) == 1 or re.fullmatch(r"\s*[-*]? ?!?\[[^]]*\]\([^)]*\)\W*", line)
        if not code and not alone and not line.lstrip().startswith(("|", "<!--")) and \
                not line.startswith("    "):
            yield number, line


def comments(text):
    """Numbers and lines of a source that are comments."""
    for number, line in enumerate(text.splitlines(), 1):
        if COMMENT.match(line) and len(line.split()) > 2:
            yield number, line.expandtabs(8)


def remarks(text):
    """Numbers and lines of a script that are comments."""
    for number, line in enumerate(text.splitlines(), 1):
        if REMARK.match(line) and len(line.split()) > 2:
            yield number, line.expandtabs(8)


def docstrings(text):
    """Numbers and lines of a Python source that describe a module, a class or a function."""
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            first = node.body[0]
            for number in range(first.lineno, first.end_lineno + 1):
                yield number, lines[number - 1]


def is_python(path):
    """Whether it is a Python source."""
    return path.suffix == ".py" or path.read_text().startswith("#!/usr/bin/env python3\n")


def wide(lines):
    """What of these is too wide."""
    return [f"{number}: {len(line)} columns" for number, line in lines if len(line) > WIDTH]


def files():
    """Every file of the tree, as a path from its top."""
    for path in TOP.rglob("*"):
        name = path.relative_to(TOP)
        if name.parts[0] not in (".git", "build") and "__pycache__" not in name.parts and \
                path.is_file():
            yield str(name)


class Prose(unittest.TestCase):
    """What people read."""

    def test_pages_are_narrow(self):
        """No line of prose of a page is wider than 100 columns."""
        for path in pages():
            with self.subTest(path=str(path.relative_to(TOP))):
                self.assertEqual(wide(prose(path.read_text())), [])

    def test_comments_are_narrow(self):
        """No comment of the module, its headers or the tools is wider than 100 columns."""
        for path in sources():
            with self.subTest(path=str(path.relative_to(TOP))):
                self.assertEqual(wide(comments(path.read_text())), [])

    def test_remarks_are_narrow(self):
        """No comment of a script or a makefile, and no docstring, is wider than 100 columns."""
        found = sorted(scripts())
        self.assertIn(TOP / ".ci/run", found)
        self.assertIn(TOP / "Makefile", found)
        for path in found:
            with self.subTest(path=str(path.relative_to(TOP))):
                text = path.read_text()
                self.assertEqual(wide(remarks(text)), [])
                if is_python(path):
                    self.assertEqual(wide(docstrings(text)), [])

    def test_items_are_described(self):
        """No item has a comment that only points somewhere else."""
        for path in sources():
            with self.subTest(path=str(path.relative_to(TOP))):
                bare = [number for number, line in comments(path.read_text())
                        if "/// See the module" in line]
                self.assertEqual(bare, [])

    def test_links_resolve(self):
        """Every relative link of a page leads to a file."""
        for path in pages():
            for link in LINK.findall(path.read_text()):
                if "://" not in link and not link.startswith("mailto:"):
                    with self.subTest(path=str(path.relative_to(TOP)), link=link):
                        self.assertTrue((path.parent / link).exists())

    def test_named_files_exist(self):
        """Every source or page that a page names is in the tree."""
        known = [f"/{name}" for name in files()]
        for path in pages():
            if path.name == "CHANGELOG.md":
                continue
            for name in NAMED.findall(path.read_text()):
                if not ELSEWHERE.match(name):
                    with self.subTest(path=str(path.relative_to(TOP)), name=name):
                        self.assertTrue(any(file.endswith(f"/{name}") for file in known))

    def test_named_pages_exist(self):
        """Every page that a source names is in the tree."""
        for path in sources():
            for name in re.findall(r"Documentation/[\w/-]+\.\w+", path.read_text()):
                with self.subTest(path=str(path.relative_to(TOP)), name=name):
                    self.assertTrue((TOP / name).is_file())

    def test_the_rules_can_fail(self):
        """Wide lines are seen, and only in prose."""
        long = "word " * 30
        page = f"{long}\n| {long}|\n```\n{long}\n```\n    {long}\nhttps://{'x' * 120}\n- {long}\n"
        self.assertEqual(wide(prose(page)), ["1: 150 columns", "8: 152 columns"])
        source = f"// {long}\n/* {long}*/\n\t * {long}\nlet x = \"{long}\";\n"
        self.assertEqual([line.split(":")[0] for line in wide(comments(source))], ["1", "2", "3"])
        script = f"#!{long}\n# {long}\n\t# {long}\necho {long} # x\n"
        self.assertEqual([line.split(":")[0] for line in wide(remarks(script))], ["2", "3"])
        python = f'def f():\n    """{long}"""\n    return """{long}"""\n'
        self.assertEqual([line.split(":")[0] for line in wide(docstrings(python))], ["2"])
        self.assertEqual(LINK.findall("[a](b.md#c) ![d](e/f.svg)"), ["b.md", "e/f.svg"])
        self.assertEqual(NAMED.findall("`a/b.rs`, `c.md`, `d`, `e.c`"), ["a/b.rs", "c.md"])


if __name__ == "__main__":
    unittest.main()
