# SPDX-License-Identifier: MIT OR Apache-2.0
"""When lost memory counts: tools/vm/leaks.sh under the shell of the guest, with made-up scans."""

import subprocess
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "leaks.sh"

# Instead of the real scan: hands out the files 1, 2, 3 one after the other.
COMMAND = """
. "$1"
count=0
scan() { count=$((count + 1)); cat "$2/$count"; }
lost "$2"
"""


def record(*addresses):
    """What kmemleak prints for objects at these addresses."""
    return "".join(f"unreferenced object 0xffff8880{address:08x} (size 64):\n"
                   f'  comm "t-share", pid 77, jiffies 429{address:04}\n'
                   "  backtrace (crc 0):\n"
                   "    __kmalloc_noprof+0x2c4/0x3f0\n" for address in addresses)


class Leaks(unittest.TestCase):
    """lost()."""

    def lost(self, *scans):
        """Whether memory is lost after these scans, and what is reported."""
        with tempfile.TemporaryDirectory() as directory:
            for number, scan in enumerate(scans, 1):
                Path(directory, str(number)).write_text(scan)
            command = COMMAND.replace("$2", directory)
            done = subprocess.run(["busybox", "sh", "-c", command, "sh", str(SCRIPT)], timeout=30, check=False,
                                  stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
            self.assertEqual(done.stderr, b"")
            self.assertIn(done.returncode, (0, 1))
            return done.returncode == 0, Path(directory, "leaks").read_text()

    def test_nothing(self):
        """nothing found is nothing lost"""
        self.assertFalse(self.lost("", "", "")[0])

    def test_lost(self):
        """what the second and the third scan find is lost, and reported with its backtrace"""
        self.assertEqual(self.lost("", record(1), record(1)), (True, record(1)))
        self.assertEqual(self.lost(record(1), record(1), record(1)), (True, record(1)))

    def test_one_of_many(self):
        """one object that stays is enough"""
        self.assertTrue(self.lost(record(1), record(2, 3, 4), record(5, 3, 6))[0])

    def test_on_its_way(self):
        """what one scan finds is on its way somewhere"""
        self.assertFalse(self.lost(record(1), "", "")[0])
        self.assertFalse(self.lost("", record(1), "")[0])
        self.assertFalse(self.lost("", "", record(1))[0])
        self.assertFalse(self.lost(record(1), "", record(1))[0])
        self.assertFalse(self.lost(record(1), record(2), record(3))[0])

    def test_found_again(self):
        """what the last two scans do not agree on is nothing, whatever there was before"""
        self.assertFalse(self.lost(record(1, 2), record(1, 2), "")[0])

    def test_size(self):
        """an object is known by address and size, not by a part of them"""
        self.assertFalse(self.lost("", record(1), record(1).replace("size 64", "size 640"))[0])

    def test_percpu(self):
        """lost per-CPU memory counts"""
        percpu = "unreferenced object (percpu) 0x607f8280a1c0 (size 8):\n"
        self.assertTrue(self.lost("", percpu, percpu)[0])
