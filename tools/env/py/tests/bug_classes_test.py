# SPDX-License-Identifier: MIT OR Apache-2.0
"""The tests that Documentation/bug-classes.md names are there."""

import re
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[4]
PAGE = TOP / "Documentation/bug-classes.md"
# A test of the virtual machine as its source names it.
TEST = re.compile(r'"((?:(?:FEN|RES|MEM|GPU|CPU)-\d+|M\d+) [^"]+)"')


def rows(text):
    """The bug class and the tests of each row of the table."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 3 and cells[0] not in ("Elsewhere", "---"):
            yield cells[0], re.findall(r"`([^`]+)`", cells[2])


def known():
    """Every test of the virtual machine."""
    return {name for path in (TOP / "tools/selftests/src/bin").rglob("*.rs") for name in TEST.findall(path.read_text())}


class BugClasses(unittest.TestCase):
    """The table of bug classes."""

    def test_every_row_has_tests_that_exist(self):
        """No row without a test, and no test that is not in the sources."""
        tests, found = known(), dict(rows(PAGE.read_text()))
        self.assertGreater(len(tests), 500)
        self.assertGreater(len(found), 20)
        for what, names in found.items():
            with self.subTest(what=what):
                self.assertNotEqual(names, [])
                self.assertEqual([name for name in names if name not in tests], [])

    def test_the_rule_can_fail(self):
        """Rows are found as they are."""
        page = "| Elsewhere | Here | Test |\n|---|---|---|\n| a | b | `FEN-1 c`, `RES-2 d` |\n| e | f | |\n"
        self.assertEqual(dict(rows(page)), {"a": ["FEN-1 c", "RES-2 d"], "e": []})
        self.assertEqual(TEST.findall('"FEN-1 M5 a" "no" "M6 b"'), ["FEN-1 M5 a", "M6 b"])


if __name__ == "__main__":
    unittest.main()
