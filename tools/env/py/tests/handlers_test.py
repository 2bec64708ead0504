# SPDX-License-Identifier: MIT OR Apache-2.0
"""A reader who greps the public name of a call finds its handler."""

import re
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[4]
IOCTL = TOP / "rust/ioctl"

LINE = re.compile(r"DXG_IOCTL_(\w+):\s+run_\w+\s+\S+\s+=>\s+(\w+)::(\w+);")
NUMBER = re.compile(r"\bDXG_NR_(\w+): \w+ = (\d+);")
NAMED = re.compile(r"(D3DKMT|DXG_IOCTL_)(\w+) \((0x[0-9a-f]{2})\)(?::| on )")


# What the number of a call leaves out of its public name.
SHORTER = {"UPDATEALLOCATIONPROPERTY": "UPDATEALLOCPROPERTY"}


def doc(source, function):
    """The first line of the doc comment of a function; None without one."""
    found = re.search(rf"((?:^///.*\n)+)(?:^#\[.*\n)*^pub\(\w+\) fn {function}\b", source, re.M)
    return found and found[1].splitlines()[0].removeprefix("/// ")


def complaint(line, call, number):
    """What is wrong with the first line of a handler's comment; None if nothing is."""
    named = NAMED.match(line or "")
    if not named:
        return "does not begin with the name and the number of the call"
    # The same call has a number at the end in some headers: CreateAllocation is CreateAllocation2.
    # Structs of newer calls have their words apart: D3DKMT_CREATE_DOORBELL.
    name = named[2].upper()
    if SHORTER.get(name, name).rstrip("2") not in (call.rstrip("2"), call.replace("_", "")):
        return f"is not named after {call}"
    if int(named[3], 16) != number:
        return f"does not have the number {number:#04x}"
    return None


class Handlers(unittest.TestCase):
    """Every line of the table of ioctls."""

    def test_handlers_are_named(self):
        """The comment of every handler begins with the public name of the call and its number."""
        numbers = NUMBER.findall((TOP / "rust/uapi/generated.rs").read_text())
        numbers = {name: int(value) for name, value in numbers}
        lines = LINE.findall((IOCTL / "table.rs").read_text())
        self.assertGreater(len(lines), 60)
        for call, module, function in lines:
            with self.subTest(handler=f"{module}::{function}"):
                line = doc((IOCTL / f"{module}.rs").read_text(), function)
                self.assertIsNone(complaint(line, call, numbers[call]), line)

    def test_the_rule_can_fail(self):
        """Missing names and wrong numbers are seen."""
        source = "/// D3DKMTLock2 (0x25): maps.\n#[inline]\npub(super) fn lock(\n\npub(super) fn no(\n"
        line = doc(source, "lock")
        self.assertIsNone(complaint(line, "LOCK2", 0x25))
        self.assertIsNotNone(complaint(line, "LOCK2", 0x26))
        self.assertIsNotNone(complaint(line, "UNLOCK2", 0x25))
        self.assertIsNotNone(complaint("nr 0x25.", "LOCK2", 0x25))
        self.assertIsNone(doc(source, "no"))


if __name__ == "__main__":
    unittest.main()
