# SPDX-License-Identifier: MIT OR Apache-2.0
"""unit.py DIR...: run the unittest tests of directories and print TAP.

The directory above each is where its tests find what they are about.
"""

import sys
import unittest
from pathlib import Path


class Tap(unittest.TestResult):
    """Prints each test as it ends; subtests are named by what fails of them."""

    count = 0

    def tell(self, good, test, note="", text=""):
        """One point, and comments that explain it."""
        self.count += 1
        print(f"{'ok' if good else 'not ok'} {self.count} - {test.shortDescription() or test.id()}{note}")
        for line in text.splitlines():
            print(f"# {line}")

    def startTest(self, test):
        super().startTest(test)
        self.explained = []

    def addSuccess(self, test):
        self.tell(True, test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.tell(False, test, text=self.failures[-1][1])

    def addError(self, test, err):
        super().addError(test, err)
        self.tell(False, test, text=self.errors[-1][1])

    def addSkip(self, test, reason):
        self.tell(True, test, note=f" # SKIP {reason}")

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            self.explained.append(f"{subtest}: {err[1]}")

    def stopTest(self, test):
        super().stopTest(test)
        # With failed subtests unittest reports no result of the test itself.
        if self.explained:
            self.tell(False, test, text="\n".join(self.explained))


def main(directories):
    """Run everything; status 1 if something failed."""
    suite = unittest.TestSuite()
    for directory in map(Path, directories):
        sys.path.insert(0, str(directory.resolve().parent))
        suite.addTests(unittest.TestLoader().discover(str(directory), pattern="*_test.py"))
    print(f"TAP version 13\n1..{suite.countTestCases()}")
    result = Tap()
    suite.run(result)
    return 0 if result.wasSuccessful() and result.count else 1


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    sys.exit(main(sys.argv[1:]))
