# SPDX-License-Identifier: MIT OR Apache-2.0
"""What in a kernel log fails a run. Lines are as the kernel prints them, with made-up numbers."""

import re
import unittest

import verdict

CRASHES = [
    "Kernel panic - not syncing: Fatal exception in interrupt",
    "Oops: 0000 [#1] SMP NOPTI",
    "Oops: general protection fault, probably for non-canonical address 0xdead000000000108: 0000 [#1] SMP",
    "BUG: kernel NULL pointer dereference, address: 0000000000000008",
    "BUG: unable to handle page fault for address: ffffc90000a80000",
    "kernel BUG at mm/slub.c:553!",
    "BUG: Bad page state in process t-lock  pfn:03b2c",
    "watchdog: BUG: soft lockup - CPU#1 stuck for 122s! [t-races:312]",
    "BUG: workqueue lockup - pool cpus=0 node=0 flags=0x0 nice=0 stuck for 140s!",
    "WARNING: CPU: 1 PID: 77 at kernel/workqueue.c:2257 __queue_work+0x3f8/0x4e0",
    "WARNING: kernel/workqueue.c:2257 at __queue_work+0x3f8/0x4e0, CPU#1: t-races/77",
    "rust_kernel: panicked at rust/dxgk/memory/backing.rs:7:9:",
    "INFO: task t-keyed-mutex:93 blocked for more than 241 seconds.",
    "refcount_t: underflow; use-after-free.",
    "refcount_t: addition on 0; use-after-free.",
]
REPORTS = [
    "BUG: KASAN: slab-use-after-free in dxg_open+0x81/0x150 [opendxg]",
    "BUG: KFENCE: use-after-free read in dxg_open+0x81/0x150 [opendxg]",
    "UBSAN: array-index-out-of-bounds in rust/c/memory.c:71:9",
    "WARNING: possible circular locking dependency detected",
    "WARNING: possible recursive locking detected",
    "WARNING: possible irq lock inversion dependency detected",
    "WARNING: HARDIRQ-safe -> HARDIRQ-unsafe lock order detected",
    "WARNING: inconsistent lock state",
    "WARNING: suspicious RCU usage",
    "WARNING: Nested lock was not taken",
    "WARNING: bad unlock balance detected!",
    "WARNING: bad contention detected!",
    "WARNING: held lock freed!",
    "WARNING: t-lock/81 still has locks held!",
    "WARNING: lock held when returning to user space!",
    "[ BUG: Invalid wait context ]",
    "INFO: trying to register non-static key.",
    "turning off the locking correctness validator.",
    "BUG: sleeping function called from invalid context at kernel/locking/mutex.c:591",
    "BUG: scheduling while atomic: t-races/312/0x00000002",
    "ODEBUG: free active (active state 0) object: ffff8880064c1000 object type: work_struct hint: work+0x0/0x40",
    "list_del corruption. prev->next should be ffff888003a41c08, but was dead000000000122.",
    "list_add corruption. next->prev should be prev (ffff888003a41c08), but was 0000000000000000.",
    "BUG kmalloc-64 (Tainted: G           O       ): Poison overwritten",
    "BUG filp (Not tainted): Object already free",
    "unreferenced object 0xffff888006d4a1c0 (size 64):",
    "unreferenced object (percpu) 0x607f8280a1c0 (size 8):",
    "kmemleak: Kernel memory leak detector disabled",
    "[   26.132831]     not ok 1 a_kmd_that_asks_is_told_of_the_end",
]
ORDINARY = [
    "[   26.132831]     ok 1 a_kmd_that_asks_is_told_of_the_end",
    "[   26.304159] # opendxg_attachments: pass:4 fail:0 skip:0 total:4",
    "Linux version 7.2.12+deb13-amd64 (x86_64-linux-gnu-gcc-14) #1 SMP PREEMPT_DYNAMIC",
    "Kernel command line: console=ttyS0 loglevel=5 panic=-1 oops=panic sysrq_always_enabled",
    "RETBleed: WARNING: Spectre v2 mitigation leaves CPU vulnerable to RETBleed attacks, data leaks possible!",
    "Warning: unable to open an initial console.",
    "opendxg: loading out-of-tree module taints kernel.",
    "opendxg: module verification failed: signature and/or required key missing - tainting kernel",
    "kmemleak: Kernel memory leak detector initialized (mem pool available: 15811)",
    "kmemleak: 2 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
    "kmemleak: Automatic memory scanning thread ended",
    "kfence: initialized - using 2097152 bytes for 255 objects at 0x(____ptrval____)-0x(____ptrval____)",
    "FAULT_INJECTION: forcing a failure.",
    "name failslab, interval 0, probability 0, space 0, times 0",
    "CPU: 1 UID: 0 PID: 312 Comm: t-failslab Tainted: G           O        7.2.12-debug #1 PREEMPT",
    "Memory cgroup out of memory: Killed process 210 (t-limits) total-vm:3412kB, anon-rss:128kB",
    "t-mmap[77]: segfault at 7f2a00001000 ip 000055d0c4 sp 00007ffd error 4 in t-mmap[55d0c4000+9a000]",
    "    # Subtest: opendxg_pages",
    "ok 3 opendxg_pages",
    "random: crng init done",
]


def in_log(line):
    """A log with this line among ordinary ones, as dmesg prints it."""
    lines = [*ORDINARY, line, *ORDINARY]
    return "".join(f"[{number:5}.{number:06}] {line}\n" for number, line in enumerate(lines))


class Verdict(unittest.TestCase):
    """judge() and judge_taint()."""

    def found(self, line, status):
        """Demands the status for a line, and that the line is named."""
        with self.subTest(line=line):
            judged = verdict.judge(in_log(line))
            self.assertIsNotNone(judged, "not noticed")
            self.assertEqual(judged[0], status)
            self.assertIn(line, judged[1])

    def test_crashes(self):
        """a crash or a warning in the kernel log is status 121"""
        for line in CRASHES:
            self.found(line, 121)

    def test_reports(self):
        """a report of KASAN, lockdep, kmemleak and the others is status 122"""
        for line in REPORTS:
            self.found(line, 122)

    def test_ordinary(self):
        """what kernels say in good runs is nothing"""
        for line in ORDINARY:
            with self.subTest(line=line):
                self.assertIsNone(verdict.judge(line))
        self.assertIsNone(verdict.judge(in_log("")))

    def test_empty(self):
        """an empty log is nothing"""
        self.assertIsNone(verdict.judge(""))

    def test_report_wins(self):
        """a report explains the crash that follows it"""
        log = in_log("BUG: KASAN: double-free in kfree+0x80/0x2c0\n" + CRASHES[0])
        status, reason = verdict.judge(log)
        self.assertEqual(status, 122)
        self.assertIn("double-free", reason)

    def test_first(self):
        """the first of several crashes is named"""
        status, reason = verdict.judge(in_log("refcount_t: saturated; leaking memory.\n" + CRASHES[0]))
        self.assertEqual(status, 121)
        self.assertIn("saturated", reason)

    def test_every_pattern(self):
        """each pattern finds a line of these lists"""
        for patterns, lines in ((verdict.REPORTS, REPORTS), (verdict.CRASHES, CRASHES)):
            for pattern in patterns:
                with self.subTest(pattern=pattern):
                    self.assertTrue(any(re.search(pattern, line) for line in lines), "no line")

    def test_taint(self):
        """the taint flags W and D are crashes, others are not"""
        for bit in range(20):
            with self.subTest(bit=bit):
                judged = verdict.judge_taint(1 << bit)
                self.assertEqual(judged and judged[0], 121 if bit in (7, 9) else None)
        self.assertIsNone(verdict.judge_taint(0))
        self.assertEqual(verdict.judge_taint(1 << 9 | 1 << 12 | 1 << 13)[0], 121)
