# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the counting of results takes for passed, failed and skipped."""

import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace

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

    def test_slowest(self):
        """the ten slowest tests are known by program and name, in the order of their time"""
        lines = [f"ok {number} - test {number}\n# took: {number}.50 s" for number in range(1, 20)]
        lines[4] = "not ok 5 - test 5 # SKIP why\n# took: 99.00 s\n# took: 1 s t-a"
        counts = tap.count("# program: t-a\nTAP version 13\n1..19\n" + "\n".join(lines), "label")
        self.assertEqual(counts.slowest, [[99.0, "t-a: test 5"]] +
                         [[number + 0.5, f"t-a: test {number}"] for number in range(19, 10, -1)])
        self.assertEqual(tap.count("TAP version 13\n1..1\nok 1 - a\n", "label").slowest, [])

    def test_time_of_a_failure(self):
        """the time of a failed test does not hide its reason"""
        counts = tap.count("TAP version 13\n1..1\nnot ok 1 - a\n# took: 0.10 s\n# why\n", "label")
        self.assertEqual(counts.trouble, ["not ok: label: a", "    # why"])

    def test_cargo(self):
        """the summary lines of cargo test count"""
        line = "test result: {}. {} passed; {} failed; {} ignored; 0 measured; 0 filtered out; finished in 0.00s\n"
        self.assertEqual(counted(line.format("ok", 5, 0, 1) + line.format("FAILED", 2, 3, 0)), (7, 3, 1))


class Total(unittest.TestCase):
    """run_total()."""

    def test_slowest(self):
        """the slowest tests of all kernels come before the line of totals, which is the last"""
        with tempfile.TemporaryDirectory() as top, contextlib.redirect_stdout(io.StringIO()) as out:
            for kernel, seconds in (("7.2", 1.0), ("debug", 30.0)):
                directory = Path(top, kernel)
                directory.mkdir()
                part = {"passed": 2, "failed": 0, "skipped": 1, "slowest": [[seconds, "t-a: one"]]}
                directory.joinpath("vm.json").write_text(json.dumps(part))
            directories = [Path(top, "7.2"), Path(top, "debug")]
            self.assertEqual(tap.run_total(SimpleNamespace(directories=directories)), 0)
        self.assertEqual(out.getvalue().splitlines(), [
            "slowest tests:", "    30.00 s  debug t-a: one", "     1.00 s  7.2 t-a: one",
            "4 passed, 0 failed, 2 skipped"])
