# SPDX-License-Identifier: MIT OR Apache-2.0
"""Finds in a kernel log what must fail a run, whatever the command said."""

import re

# Statuses of tools/vm/run besides the command's own.
SETUP, BOOT, CRASH, REPORT, HANG = 119, 120, 121, 122, 123

# After this line the guest says nothing more.
PANIC = "Kernel panic - not syncing"

CRASHES = [
    PANIC,
    r"\bOops\b",
    r"\bBUG:",
    r"\bkernel BUG at\b",
    r"\bWARNING: CPU:",
    r"\bWARNING: .* at .*",
    r"general protection fault",
    r"rust_kernel: panicked at",
    r"INFO: task .* blocked for more than",
    r"refcount_t: ",
]
REPORTS = [
    r"BUG: K(ASAN|FENCE|CSAN):",
    r"UBSAN:",
    r"possible (circular|recursive) locking",
    r"possible irq lock inversion",
    r"-unsafe lock order detected",
    r"inconsistent lock state",
    r"suspicious RCU usage",
    r"Nested lock was not taken",
    r"bad (unlock balance|contention) detected",
    r"held lock freed",
    r"still has locks held|lock held when returning to user space",
    r"Invalid wait context",
    r"trying to register non-static key",
    r"sleeping function called from invalid context",
    r"scheduling while atomic",
    r"ODEBUG:",
    r"list_(add|del) corruption",
    r"\bBUG [\w-]+ \((Not tainted|Tainted)",
    # Not the "new suspected" of each scan: init scans again before it believes them.
    r"unreferenced object\b.* 0x",
    # Checks that find nothing any more.
    r"turning off the locking correctness validator",
    r"Kernel memory leak detector disabled",
    # A KUnit suite of the module, which runs at every load of it.
    r"\] +not ok \d+ ",
]
TAINT_DIED, TAINT_WARNED = 1 << 7, 1 << 9


def judge(log):
    """The status that a kernel log calls for, and the first line that says so."""
    for status, patterns in ((REPORT, REPORTS), (CRASH, CRASHES)):
        found = re.compile("|".join(patterns))
        for line in log.splitlines():
            if found.search(line):
                return status, line.strip()
    return None


def judge_taint(taint):
    """The status that the kernel's taint flags call for."""
    if taint & TAINT_DIED:
        return CRASH, "the kernel died (taint D)"
    if taint & TAINT_WARNED:
        return CRASH, "the kernel warned (taint W)"
    return None
