# SPDX-License-Identifier: MIT OR Apache-2.0
"""Which accelerator QEMU can really use.

`/dev/kvm` alone proves nothing: some machines have it without working
virtualisation, and QEMU then crawls or dies. So a guest is booted once, and
the answer is kept until the host reboots.
"""

import os
import re
from pathlib import Path

from common import CACHE, say

ARGUMENTS = {
    "tcg": ["-accel", "tcg,thread=multi"],
    # Time passes by one nanosecond for every instruction, however fast the host is.
    "count": ["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off"],
    "kvm": ["-accel", "kvm", "-cpu", "host"],
}


def possible():
    """Whether the processor and the device allow KVM at all."""
    flags = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    return bool(flags and {"vmx", "svm"} & set(flags[1].split()) and os.access("/dev/kvm", os.R_OK | os.W_OK))


def choose(probe):
    """The accelerator to use; `probe` boots a guest under KVM and tells whether it came up."""
    if not possible():
        return "tcg"
    verdict = CACHE / ("kvm-" + Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    if not verdict.exists():
        say("trying KVM once")
        verdict.write_text("kvm" if probe() else "tcg")
    return verdict.read_text()
