# SPDX-License-Identifier: MIT OR Apache-2.0
"""The table of what is taken away from the protocol of native fences, and who notices."""

import re
import sys
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[4]
sys.path.insert(0, str(TOP / "tools/verify"))

import models  # noqa: E402

PAGE = TOP / "Documentation/memory-model.md"
TESTS = TOP / "tools/host/src/tests"
# A row of the table, and a name in one of its cells.
ROW = re.compile(r"^\| (.+) \| (red|green|cannot)\b(.*) \| (red|green|cannot)\b(.*) \|$", re.M)
NAME = re.compile(r"`([A-Z_ ]+|mutant_\w+)`")
# Tests of native fences that leave something out.
MUTANT = re.compile(r"fn (mutant_(?:fen|gpu|m)_?\d+\w*)")
# What would give an order by time, and the tests on the host that are about fences.
SLEEP = re.compile(r"\bthread::sleep\b|(?<![.\w])sleep\(")
OF_FENCES = ("interleavings.rs", "native_fences.rs", "interrupt_record.rs", "threads.rs", "waiters.rs")


def verdicts(page):
    """What the table says of each mutant of Spin, and of each test."""
    spin, loom = set(), set()
    for _, spin_says, spin_cell, loom_says, loom_cell in ROW.findall(page):
        spin |= {(name, spin_says) for name in NAME.findall(spin_cell)}
        loom |= {(name, loom_says) for name in NAME.findall(loom_cell)}
    return spin, loom


class Models(unittest.TestCase):
    def test_a_row(self):
        page = "| the barrier | red: `NO_BARRIER` | cannot: nobody looks |\n| a lock | green | red: `mutant_fen_1_a` |"
        self.assertEqual(verdicts(page), ({("NO_BARRIER", "red")}, {("mutant_fen_1_a", "red")}))

    def test_spin(self):
        """FEN-171 every mutant of the model is in the table, and nothing else."""
        expected = {(mutant, "green" if reason else "red") for _, mutant, reason in models.MUTANTS}
        self.assertEqual(verdicts(PAGE.read_text())[0], expected)

    def test_loom(self):
        """FEN-171 every test that leaves something of the protocol out is in the table."""
        files = ("interleavings.rs", "native_fences.rs", "interrupt_record.rs")
        found = {name for file in files for name in MUTANT.findall((TESTS / file).read_text())}
        self.assertEqual({name for name, _ in verdicts(PAGE.read_text())[1]}, found)

    def test_sleep(self):
        """FEN-172 no test of native fences sleeps to have an order."""
        tests = [*(TOP / "tools/selftests/src/bin/t-native-fences").glob("*.rs")]
        tests += [*(TOP / "tools/selftests/src/bin/t-cross-adapter").glob("*.rs")]
        tests += [*(TESTS / "engine").rglob("*.rs"), *(TESTS / file for file in OF_FENCES)]
        self.assertEqual([test.name for test in tests if SLEEP.search(test.read_text())], [])


if __name__ == "__main__":
    unittest.main()
