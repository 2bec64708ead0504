# SPDX-License-Identifier: MIT OR Apache-2.0
"""Counts test results in TAP 13/14 and cargo output.

  tap.py count --status N --label L BASE   count BASE.out into BASE.json, show what failed
  tap.py total DIR...                      add up, print the slowest tests and
                                           `N passed, N failed, N skipped`

A stream may hold several TAP documents, each begun by `TAP version`. A missing
or wrong plan, a bail-out, and a failing exit status without a failed test each
count as a failure. Of nested subtests only the innermost are counted.
"""

import argparse
import json
import re
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

from common import main

CARGO = re.compile(r"test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored")
POINT = re.compile(r"( *)(not )?ok\b(?: +\d+)?(?: *-)? *(.*)")
PLAN = re.compile(r"( *)1\.\.(\d+)")
SKIP = re.compile(r"# *(SKIP|TODO)\b", re.I)
# Comes right after the test it is about.
TOOK = re.compile(r"# took: (\d+\.\d+) s")
# How many of the slowest tests are worth a line.
SLOWEST = 10


@dataclass
class Counts:
    """Results, and the lines worth showing."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    trouble: list = field(default_factory=list)
    # Seconds and name of the slowest tests.
    slowest: list = field(default_factory=list)

    def took(self, seconds, name):
        """How long a test took."""
        self.slowest = sorted([*self.slowest, [seconds, name]], key=lambda one: -one[0])[:SLOWEST]

    def fail(self, text):
        """One more failure."""
        self.failed += 1
        self.trouble.append(text)


class Level:
    """The tests of one indentation."""

    def __init__(self):
        self.plan = None
        self.seen = 0

    def check(self, counts, where):
        """The plan has to match what was seen."""
        if self.plan is None:
            counts.fail(f"{where}: no plan")
        elif self.plan != self.seen:
            counts.fail(f"{where}: planned {self.plan} tests, saw {self.seen}")


class Document:
    """One TAP document being read."""

    def __init__(self, counts, name, bailed=False):
        self.counts = counts
        self.name = name
        self.bailed = bailed
        self.levels = {0: Level()}
        self.failed_before = counts.failed
        self.failing = False
        self.last = ""

    def plan(self, depth, count):
        """A line `1..N`."""
        self.levels.setdefault(depth, Level()).plan = count

    def point(self, depth, bad, text):
        """A line `ok` or `not ok`. A test with subtests only repeats what they said."""
        self.levels.setdefault(depth, Level()).seen += 1
        inner = [self.levels.pop(key) for key in sorted(self.levels) if key > depth]
        for level in inner:
            level.check(self.counts, f"{self.name}: {text}")
        self.last = SKIP.split(text)[0].strip()
        told = inner and not (bad and self.counts.failed == self.failed_before)
        self.failing = bad and not told and not SKIP.search(text)
        if SKIP.search(text):
            self.counts.skipped += 1
        elif self.failing:
            self.counts.fail(f"not ok: {self.name}: {text}")
        elif not told:
            self.counts.passed += 1
        if depth == 0:
            self.failed_before = self.counts.failed

    def end(self):
        """No more lines. After a bail-out no plan can hold."""
        for level in () if self.bailed else self.levels.values():
            level.check(self.counts, self.name)


def count(text, label):
    """The results of a whole output."""
    counts = Counts()
    document, name, seen_cargo = None, label, False
    for line in text.splitlines():
        cargo, point, plan = CARGO.match(line), POINT.fullmatch(line), PLAN.match(line)
        if cargo:
            seen_cargo = True
            passed, failed, ignored = map(int, cargo.groups())
            counts.passed += passed
            counts.skipped += ignored
            counts.failed += failed
        elif re.match(r"test .* \.\.\. FAILED|---- .* ----", line):
            counts.trouble.append(line)
        elif line.startswith(("TAP version", "KTAP version")):
            if document:
                document.end()
            document = Document(counts, name)
        elif named := re.match(r"# program: (.*)", line):
            name = named[1]
        elif line.startswith("Bail out!"):
            counts.fail(f"{name}: {line}")
            document = Document(counts, name, bailed=True)
        elif point or plan:
            document = document or Document(counts, name)
            if plan:
                document.plan(len(plan[1]), int(plan[2]))
            else:
                document.point(len(point[1]), bool(point[2]), point[3])
        elif document and (took := TOOK.fullmatch(line)):
            counts.took(float(took[1]), f"{name}: {document.last}")
        elif document and document.failing:
            counts.trouble.append("    " + line)
    if document:
        document.end()
    if not document and not seen_cargo:
        counts.fail(f"{label}: no test was run")
    return counts


def tail(path, lines):
    """The last lines of a text file, if there is one."""
    return path.read_text(errors="replace").splitlines()[-lines:] if path.exists() else []


def run_count(options):
    """Count one output file and show its failures."""
    base = Path(options.base)
    out = base.with_name(base.name + ".out")
    text = out.read_text(errors="replace")
    counts = count(text, options.label) if text or not options.status else Counts()
    if options.status and not counts.failed:
        counts.fail(f"{options.label}: ended with status {options.status}")
    if counts.failed:
        for line in counts.trouble[:200]:
            print(line)
        for line in tail(base.with_name(base.name + ".err"), 40):
            print(f"  | {line}")
        print(f"full output: {out}")
    print(f"{options.label}: {summary(counts)}")
    base.with_name(base.name + ".json").write_text(json.dumps(asdict(counts)))
    return 1 if counts.failed else 0


def summary(counts):
    """The one line that every run ends with."""
    return f"{counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped"


def run_total(options):
    """Add up everything below some directories, and name the slowest tests of all."""
    total = Counts()
    for directory in options.directories:
        files = sorted(Path(directory).glob("*.json"))
        if not files:
            total.fail(f"{directory}: no test was run")
        for file in files:
            part = json.loads(file.read_text())
            total.passed += part["passed"]
            total.failed += part["failed"]
            total.skipped += part["skipped"]
            for seconds, name in part.get("slowest", []):
                total.took(seconds, f"{Path(directory).name} {name}")
    if total.slowest:
        print("slowest tests:")
    for seconds, name in total.slowest:
        print(f"{seconds:9.2f} s  {name}")
    print(summary(total))
    return 1 if total.failed or not total.passed else 0


def run():
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    counting = commands.add_parser("count")
    counting.add_argument("--status", type=int, default=0)
    counting.add_argument("--label", default="tests")
    counting.add_argument("base")
    counting.set_defaults(action=run_count)
    totalling = commands.add_parser("total")
    totalling.add_argument("directories", nargs="+")
    totalling.set_defaults(action=run_total)
    options = parser.parse_args()
    return options.action(options)


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    main(run)
