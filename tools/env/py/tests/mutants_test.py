# SPDX-License-Identifier: MIT OR Apache-2.0
"""The table of mutants follows the code."""

import importlib.util
import sys
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[4]


def load(name="mutants"):
    """A script of tools/host, as a module."""
    sys.path.insert(0, str(TOP / "tools/host"))
    spec = importlib.util.spec_from_file_location(name, TOP / f"tools/host/{name}.py")
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


class Barriers(unittest.TestCase):
    """The table of barriers; that it is right is for tools/host/check barriers."""

    def test_the_table_has_each(self):
        """Each full barrier has a row, in order, and no row has none."""
        barriers = load("barriers")
        rows = [(file, function) for file, function, _, _ in barriers.rows()]
        self.assertGreater(len(rows), 10)
        self.assertEqual(sorted(rows), sorted(barriers.known(TOP)))

    def test_they_are_where_loom_runs(self):
        """Whatever has a barrier is built for the host, too."""
        folders = tuple(f"{folder}/" for folder in load().FOLDERS)
        for path in (TOP / "rust").rglob("*.rs"):
            file = str(path.relative_to(TOP / "rust"))
            if file != "compat.rs" and not file.startswith(folders):
                with self.subTest(file=file):
                    self.assertNotRegex(path.read_text(), r"\bfull_fence\(\)")


if __name__ == "__main__":
    unittest.main()
