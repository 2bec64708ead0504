# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the counting of results takes for passed, failed and skipped."""

import unittest

import tap


def counted(text):
    """Passed, failed, skipped."""
    counts = tap.count(text, "label")
    return counts.passed, counts.failed, counts.skipped


class Count(unittest.TestCase):
    """count()."""

    def test_plain(self):
        """passed, failed and skipped tests are counted"""
        self.assertEqual(counted("TAP version 13\n1..3\nok 1 - a\nnot ok 2 - b\nok 3 - c # SKIP why\n"), (1, 1, 1))

    def test_nothing(self):
        """no test at all is a failure"""
        self.assertEqual(counted(""), (0, 1, 0))
        self.assertEqual(counted("hello\n"), (0, 1, 0))

    def test_plan(self):
        """a plan that is missing or does not hold is a failure"""
        self.assertEqual(counted("TAP version 13\nok 1 - a\n"), (1, 1, 0))
        self.assertEqual(counted("TAP version 13\n1..2\nok 1 - a\n"), (1, 1, 0))
        self.assertEqual(counted("TAP version 13\n1..1\nok 1 - a\nok 2 - b\n"), (2, 1, 0))

    def test_second(self):
        """each of several documents has its own plan"""
        one = "TAP version 13\n1..1\nok 1 - a\n"
        self.assertEqual(counted(one + one), (2, 0, 0))
        self.assertEqual(counted(one + "TAP version 13\n1..1\n" + one), (2, 1, 0))

    def test_bail_out(self):
        """a bail-out is one failure, whatever the plan said"""
        self.assertEqual(counted("TAP version 13\n1..9\nok 1 - a\nBail out! stuck\n"), (1, 1, 0))

    def test_nested(self):
        """of tests with subtests only the innermost are counted"""
        text = "KTAP version 1\n1..1\n    1..2\n    ok 1 a\n    {} 2 b\n{} 1 suite\n"
        self.assertEqual(counted(text.format("ok", "ok")), (2, 0, 0))
        self.assertEqual(counted(text.format("not ok", "not ok")), (1, 1, 0))

    def test_nested_alone(self):
        """a suite that fails although its subtests passed is a failure"""
        self.assertEqual(counted("KTAP version 1\n1..1\n    1..1\n    ok 1 a\nnot ok 1 suite\n"), (1, 1, 0))

    def test_cargo(self):
        """the summary lines of cargo test count"""
        line = "test result: {}. {} passed; {} failed; {} ignored; 0 measured; 0 filtered out; finished in 0.00s\n"
        self.assertEqual(counted(line.format("ok", 5, 0, 1) + line.format("FAILED", 2, 3, 0)), (7, 3, 1))
