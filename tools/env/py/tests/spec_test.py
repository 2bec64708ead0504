# SPDX-License-Identifier: MIT OR Apache-2.0
"""Numbers that code, headers and pages cite are in the specification."""

import re
import unittest

import spec

# Where citations are looked for. The specification itself is one of them.
PLACES = ("rust", "uapi", "tools", "Documentation")
# Ids in front of the title of a test, and what may stand there: requirements, rules of the
# contract, and the cases for a model checker (M1 to M32 of fences.md) in the tests that force
# schedules.
TITLE = re.compile(r'"((?:(?:[A-Z]{3}-\d+|[A-Z]\d{1,2}) )+)')
ALLOWED = re.compile(r"[A-Z]{3}-\d+")
CASE = re.compile(r"M([1-9]|[12]\d|3[0-2])")
SCHEDULES = ("tools/selftests/src/bin/t-races/", "tools/host/src/tests/")
KINDS = {".rs", ".c", ".h", ".md", ".sh", ".py", ".hpp", ".cpp"}


def foreign(text, cases):
    """Numbers in front of titles that are not of the specification."""
    ids = [id for title in TITLE.findall(text) for id in title.split()]
    return [id for id in ids
            if not ALLOWED.fullmatch(id) and not (cases and CASE.fullmatch(id))]


class Citations(unittest.TestCase):
    """Every FEN, GPU, CPU, RES and MEM number resolves."""

    def test_all_resolve(self):
        """Every requirement that is cited is stated in Documentation/spec."""
        known = set(spec.requirements())
        self.assertEqual(len(known), 580)
        for place in PLACES:
            for path in sorted((spec.TOP / place).rglob("*")):
                if path.suffix in KINDS and path.is_file() and path.name != "spec_test.py":
                    unknown = spec.cited(path.read_text(errors="replace")) - known
                    with self.subTest(path=str(path.relative_to(spec.TOP))):
                        self.assertFalse(unknown)

    def test_the_list_of_shown_ones_resolves(self):
        """Every requirement that is listed as shown is stated, and the list is not empty."""
        self.assertGreater(len(spec.shown()), 100)
        self.assertEqual(spec.shown() - set(spec.requirements()), set())

    def test_what_is_not_shown_has_a_reason(self):
        """Each requirement is shown, or is an exception."""
        exceptions = spec.exceptions()
        self.assertEqual(spec.shown() & set(exceptions), set())
        self.assertEqual(spec.shown() | set(exceptions), set(spec.requirements()))
        self.assertEqual([id for id, reason in exceptions.items() if len(reason) < 10], [])

    def test_each_passage_of_the_source_has_tests(self):
        """MEM-118 each row of the coverage of memory.md has tests for each requirement."""
        text = (spec.TOP / "Documentation/spec/memory.md").read_text()
        rows = spec.coverage(text)
        self.assertEqual(len(rows), 13)
        self.assertLessEqual({id for ids in rows.values() for id in ids}, set(spec.requirements()))
        # What is tested in another order has its reason there.
        known = spec.shown() | set(spec.exceptions())
        self.assertEqual(spec.not_shown(rows, known), [])

    def test_passages_without_tests_are_found(self):
        """MEM-118 a row of the coverage that lacks a test, or has no requirement, is named."""
        text = "\n".join([
            "## 17. Before", "| one | MEM-9 |",
            "## 18. Coverage", "", "| source passage | requirement |", "|---|---|",
            "| good | MEM-1, MEM-2 |", "| half | MEM-2, MEM-3 |", "| none | |", "| bad | MEM-4 |",
            "", "- **MEM-118** all of that", "## 19. Behind", "| two | MEM-9 |"])
        rows = spec.coverage(text)
        self.assertEqual(list(rows), ["good", "half", "none", "bad"])
        self.assertEqual(rows["good"], ["MEM-1", "MEM-2"])
        self.assertEqual(spec.not_shown(rows, {"MEM-1", "MEM-2"}),
                         ["half: MEM-3", "none: no requirement", "bad: MEM-4"])

    def test_titles_cite_the_specification(self):
        """No test has a number of anything but the specification in front of its title."""
        for path in sorted((spec.TOP / "tools").rglob("*")):
            name = str(path.relative_to(spec.TOP))
            if path.suffix in (".rs", ".c") and path.is_file():
                with self.subTest(path=name):
                    cases = name.startswith(SCHEDULES)
                    self.assertEqual(foreign(path.read_text(errors="replace"), cases), [])

    def test_foreign_numbers_are_found(self):
        """Numbers of a review are refused; cases only stand where schedules are forced."""
        self.assertEqual(foreign('"FEN-3 H1 a title"', True), ["H1"])
        self.assertEqual(foreign('"M4 a title"', True), [])
        self.assertEqual(foreign('"M4 a title"', False), ["M4"])
        self.assertEqual(foreign('"ABI-1 A5 paper"', True), ["A5"])
        self.assertEqual(foreign('"M33 a title"', True), ["M33"])

    def test_citations_are_found(self):
        """Ids are found in names of tests of every language."""
        self.assertEqual(spec.cited("FEN-12, RES-3: a title"), {"FEN-12", "RES-3"})
        self.assertEqual(spec.cited("gpu_7_is_a_name"), {"GPU-7"})
        self.assertEqual(spec.cited("test cpu_2_of_3"), {"CPU-2"})
        self.assertEqual(spec.cited("cpu_48_cpu_55_each"), {"CPU-48", "CPU-55"})
        self.assertEqual(spec.cited("OPEN-12 XRES-3 MEM-x"), set())

    def test_ranges(self):
        """Lists of ids are shortened."""
        self.assertEqual(spec.ranges(["RES-1", "RES-2", "RES-3", "RES-7"]), "RES-1..3 7")
        self.assertEqual(spec.ranges(["MEM-5"]), "MEM-5")


if __name__ == "__main__":
    unittest.main()
