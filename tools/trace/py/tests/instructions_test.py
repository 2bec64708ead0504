# SPDX-License-Identifier: MIT OR Apache-2.0
"""How a log of instructions becomes operations."""

import unittest

import instructions

BEGIN, END = 0x1000, 0x1010


def log(*entries):
    """Lines of QEMU: an address is an instruction, None says that the one before did not run."""
    last = 0
    for entry in entries:
        if entry is None:
            yield b"Stopped execution of TB chain before 0x7f00 [%016x] name\n" % last
        else:
            last = entry
            yield b"Trace 0: 0x7f3740000100 [0000000000000000/%016x/00c0c2b3/ff000201] name\n" % entry


class Instructions(unittest.TestCase):
    """executed(), operations(), typical(), Symbols."""

    def test_interrupted(self):
        """an instruction that an interrupt came before counts once, when it runs"""
        lines = log(0x10, 0x11, None, 0xFFFF800000000000, 0x11, 0x12)
        self.assertEqual(list(instructions.executed(lines)), [0x10, 0xFFFF800000000000, 0x11, 0x12])

    def test_other_lines(self):
        """lines of other kinds are no instructions"""
        self.assertEqual(list(instructions.executed([b"qemu: something\n", *log(0x10)])), [0x10])

    def test_operations(self):
        """the marks and what lies between operations do not count"""
        found = instructions.operations([5, END, BEGIN, BEGIN + 4, 7, 8, END, 9, BEGIN, BEGIN + 4, 7, END, BEGIN, 7], BEGIN, END)
        self.assertEqual(list(found), [[7, 8], [7]])

    def test_same_function_again(self):
        """addresses near the begin mark count once it has returned"""
        found = instructions.operations([BEGIN, BEGIN + 4, 7, BEGIN + 8, END], BEGIN, END)
        self.assertEqual(list(found), [[7, BEGIN + 8]])

    def test_typical(self):
        """the most frequent length is typical, and the shorter one of two"""
        self.assertEqual(instructions.typical([[1], [1, 2], [3, 4], [1, 2, 3]]), ([1, 2], 2))
        self.assertEqual(instructions.typical([[1, 2], [3]]), ([3], 1))

    def test_symbols(self):
        """an address belongs to the last function that begins before it"""
        symbols = instructions.Symbols([(0x20, "b"), (0x10, "a")])
        self.assertEqual(symbols.find(0x1F), ("a", 0x10))
        self.assertEqual(symbols.find(0x20), ("b", 0x20))
        self.assertIsNone(symbols.find(0x0F))

    def test_kinds(self):
        """a function belongs to what its name says, one of the module to the module"""
        for image, name, kind in (
            ("kernel", "tomoyo_file_ioctl", "security modules"),
            ("kernel", "__x64_sys_ioctl", "system calls and their files"),
            ("kernel", "rust_helper_krealloc_node_align", "memory"),
            ("kernel", "_raw_spin_lock", "locks"),
            ("kernel", "__wake_up", "scheduler and wake-ups"),
            ("kernel", "__memmove", "memory"),
            ("kernel", "rb_erase", "other functions of the kernel"),
            ("opendxg", "dxg_read_words", "copies to and from user memory"),
            ("opendxg", "_RNvNtdxg5ioctl4wait", "opendxg"),
            ("ntsync", "ntsync_event_set", "ntsync"),
        ):
            self.assertEqual(instructions.kind(instructions.KERNEL, image, name), kind, name)
        self.assertEqual(instructions.kind(BEGIN, "bench", "wait"), "user space")

    def test_places(self):
        """what the guest says is found again"""
        guest = instructions.Guest("begin 1000\nend 1010\nbatch 4\nrelease 7.2.12\nsection .text 0xffffffffc0000000\n"
                            "map 5000-6000 r--p 00000000 00:01 7 /opt/bench\nmap 6000-7000 r-xp 00001000 00:01 7 /opt/bench\n"
                            "map 9000-a000 rw-p 00000000 00:00 0 [heap]\n"
                            "symbol ffffffff81000000 T startup\nsymbol ffffffff81000010 d data\n"
                            "symbol ffffffffc0000000 t handler\t[opendxg]\n")
        self.assertEqual((guest.begin, guest.end, guest.batch, guest.release), (BEGIN, END, 4, "7.2.12"))
        self.assertEqual(guest.maps, {"/opt/bench": (0x5000, 0x7000)})
        self.assertEqual(guest.kernel.find(0xFFFFFFFF81000020), (("", "startup"), 0xFFFFFFFF81000000))
        self.assertEqual(guest.kernel.find(0xFFFFFFFFC0000004), (("opendxg", "handler"), 0xFFFFFFFFC0000000))
