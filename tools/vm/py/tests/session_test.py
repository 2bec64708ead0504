# SPDX-License-Identifier: MIT OR Apache-2.0
"""How a run ended, from what init, the kernel log and the clock say."""

import types
import unittest

import session

ENDED = ["start", "ended 0", "taint 4096", "done 0"]
WARNING = "WARNING: kernel/workqueue.c:2257 at __queue_work+0x3f8/0x4e0, CPU#1: t-races/77"


def judge(control, serial="", dmesg="", late=None, said=""):
    """The outcome after these lines of the control port."""
    progress = session.Progress()
    for line in control:
        progress.take(line)
    machine = types.SimpleNamespace(stop=lambda: said)
    return session._judge(machine, progress, serial.encode(), dmesg.encode(), late)


class Session(unittest.TestCase):
    """_judge()."""

    def status(self, *arguments, **keywords):
        """The status of the trouble, if there is one."""
        trouble = judge(*arguments, **keywords).trouble
        return trouble and trouble[0]

    def test_good(self):
        """a run that ends well has the status of its command"""
        outcome = judge(ENDED, "boot\r\n", "boot\r\nmore\r\n")
        self.assertEqual((outcome.status, outcome.trouble, outcome.log), (0, None, "boot\nmore\n"))
        self.assertEqual(judge(["start", "ended 7", "taint 4096", "done 7"]).status, 7)

    def test_log(self):
        """a complaint counts on the serial line and in the log at the end"""
        self.assertEqual(self.status(ENDED, serial=WARNING), 121)
        self.assertEqual(self.status(ENDED, dmesg=WARNING), 121)

    def test_taint(self):
        """a warning that is in no log any more is seen by the taint"""
        self.assertEqual(self.status(["start", "ended 0", "taint 4608", "done 0"]), 121)

    def test_leak(self):
        """lost memory is status 122, also if its report is in no log"""
        self.assertEqual(self.status(["start", "ended 0", "leak", "taint 0", "done 0"]), 122)

    def test_unload(self):
        """a module that cannot be unloaded is status 120"""
        self.assertEqual(self.status(["start", "ended 0", "failed still in use", "taint 0", "done 0"]), 120)

    def test_tracing(self):
        """the log of instructions begins and ends with lines of the command, however they arrive"""
        asked, seen = [], []
        write = session.tracing(types.SimpleNamespace(log_instructions=asked.append), seen.append)
        for data in (b"a\ntra", b"ce: on\nx", b"\ntrace: off\nnot trace: on\n"):
            write(data)
        self.assertEqual(asked, [True, False])
        self.assertEqual(b"".join(seen), b"a\ntrace: on\nx\ntrace: off\nnot trace: on\n")

    def test_late(self):
        """a command that does not end is status 123, a guest that does not boot 120"""
        self.assertEqual(self.status(["start"], late="no end after 300 s"), 123)
        self.assertEqual(self.status([], late="no end after 120 s"), 120)

    def test_late_and_broken(self):
        """what the kernel says explains why nothing ended"""
        self.assertEqual(self.status(["start"], serial=WARNING, late="no end after 300 s"), 121)

    def test_gone(self):
        """a guest that is gone before its command ended is status 121, without a boot 120"""
        self.assertEqual(self.status(["start"]), 121)
        self.assertEqual(self.status(["start", "ended 0", "taint 0"]), 121)
        self.assertEqual(self.status([], said="no such machine"), 120)
