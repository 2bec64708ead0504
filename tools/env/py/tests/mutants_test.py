# SPDX-License-Identifier: MIT OR Apache-2.0
"""The table of mutants follows the code."""

import importlib.util
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[4]


def load():
    """The script with the table, as a module."""
    spec = importlib.util.spec_from_file_location("mutants", TOP / "tools/host/mutants.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Mutants(unittest.TestCase):
    """Every line of the table; that it is killed is for tools/host/check mutants."""

    def test_texts_apply(self):
        """What a mutant replaces is in its file exactly once, and something takes its place."""
        mutants = load()
        self.assertGreater(len(mutants.MUTANTS), 100)
        for file, old, new, tool in mutants.MUTANTS:
            with self.subTest(file=file, old=old):
                self.assertEqual(mutants.source(TOP, file).read_text().count(old), 1)
                self.assertNotEqual(old, new)
                self.assertIn(tool, ("unit", "loom"))


if __name__ == "__main__":
    unittest.main()
