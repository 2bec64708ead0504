# SPDX-License-Identifier: MIT OR Apache-2.0
"""Numbers that code, headers and pages cite are in the specification."""

import unittest

import spec

# Where citations are looked for. The specification itself is one of them.
PLACES = ("rust", "uapi", "tools", "Documentation")
KINDS = {".rs", ".c", ".h", ".md", ".sh", ".py", ".hpp", ".cpp"}


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

    def test_citations_are_found(self):
        """Ids are found in names of tests of every language."""
        self.assertEqual(spec.cited("FEN-12, RES-3: a title"), {"FEN-12", "RES-3"})
        self.assertEqual(spec.cited("gpu_7_is_a_name"), {"GPU-7"})
        self.assertEqual(spec.cited("test cpu_2_of_3"), {"CPU-2"})
        self.assertEqual(spec.cited("OPEN-12 XRES-3 MEM-x"), set())

    def test_ranges(self):
        """Lists of ids are shortened."""
        self.assertEqual(spec.ranges(["RES-1", "RES-2", "RES-3", "RES-7"]), "RES-1..3 7")
        self.assertEqual(spec.ranges(["MEM-5"]), "MEM-5")


if __name__ == "__main__":
    unittest.main()
