# SPDX-License-Identifier: MIT OR Apache-2.0
"""The page about what the kernel crate lacks counts right."""

import re
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[4]

ROW = re.compile(r"^\| (?P<what>.*?) \| (?P<names>.*?) \| (?P<lines>\d+) \|$", re.M)
NAME = re.compile(r"`([\w*]+)`")
FILE = re.compile(r"`(rust/[\w./]+)`")
FUNCTION = re.compile(r"^(?:static )?\w[\w ]*[ *](\w+)\([^;]*?\n\{\n.*?^\}$", re.M | re.S)


def functions(text):
    """The functions of a C source, with their lines."""
    return {found[1]: found[0].count("\n") + 1 for found in FUNCTION.finditer(text)}


def count(names, known):
    """The lines of what a row names, and the names that stand for nothing."""
    lines, unknown = 0, []
    for name in NAME.findall(names):
        fits = re.compile(name.replace("*", r"\w*"))
        found = [size for function, size in known.items() if fits.fullmatch(function)]
        lines += sum(found)
        unknown += [name] if not found else []
    for name in FILE.findall(names):
        lines += (TOP / name).read_text().count("\n")
    return lines, unknown


class Upstream(unittest.TestCase):
    """The table of missing abstractions."""

    def setUp(self):
        sources = sorted((TOP / "rust/c").glob("*.c"))
        self.known = {name: size for path in sources
                      for name, size in functions(path.read_text()).items()}
        page = (TOP / "Documentation/upstream.md").read_text().split("## User copies")[0]
        self.rows = [found for found in ROW.finditer(page)]

    def test_lines(self):
        """Every row names functions that there are, and says how many lines they have."""
        self.assertGreater(len(self.rows), 10)
        for row in self.rows:
            with self.subTest(what=row["what"]):
                names = row["names"].split(" in `")[0]
                self.assertEqual(count(names, self.known), (int(row["lines"]), []))

    def test_the_rule_can_fail(self):
        """Functions are found with all their lines, and missing ones are noticed."""
        source = ("static int one(void)\n{\n\treturn 1;\n}\n\n/* Two. */\nstruct file *dxg_two(int a,\n"
                  "\t\tint b)\n{\n\tif (a) {\n\t}\n\treturn 0;\n}\n\nint three(void);\n")
        known = functions(source)
        self.assertEqual(known, {"one": 4, "dxg_two": 7})
        self.assertEqual(count("`one`, `dxg_*`", known), (11, []))
        self.assertEqual(count("`dxg_three`", known), (0, ["dxg_three"]))


if __name__ == "__main__":
    unittest.main()
