# SPDX-License-Identifier: MIT OR Apache-2.0
"""The debug kernel: the same source, built with clang and every check on."""

import os
from pathlib import Path

import stock
from common import Fail, need_space, say, step

FRAGMENT = Path(__file__).resolve().parent.parent / "debug.config"


def requested():
    """The options of the fragment, as name and value."""
    lines = (line.strip() for line in FRAGMENT.read_text().splitlines())
    return dict(line.split("=", 1) for line in lines if line.startswith("CONFIG_"))


def check_survived(config):
    """Kconfig drops what it does not like without a word; refuse such a kernel."""
    have = dict(line.split("=", 1) for line in config.read_text().splitlines()
                if line.startswith("CONFIG_"))
    lost = [f"{name}={value}" for name, value in requested().items() if have.get(name, "n") != value]
    if lost:
        raise Fail(f"the kernel configuration lost {' '.join(lost)}",
                   "correct tools/env/debug.config for this kernel")


def configure(source, build, make, log):
    """tinyconfig, the fragment on top, and the check that it held."""
    step("debug kernel configuration", log, [*make, "tinyconfig"])
    step("debug kernel fragment", log,
         [str(source / "scripts/kconfig/merge_config.sh"), "-m", "-O", str(build),
          str(build / ".config"), str(FRAGMENT)], cwd=source)
    step("debug kernel olddefconfig", log, [*make, "olddefconfig"])
    check_survived(build / ".config")


def make(release, directory, log):
    """Everything for the debug kernel. Returns the assignments that describe it."""
    need_space(4000, "the debug kernel")
    source = stock.unpack_source(release, log)
    build = directory / "build"
    build.mkdir(exist_ok=True)
    name = f"{release.upstream}-opendxg-debug"
    command = ["nice", "-n", "10", "make", "-C", str(source), f"O={build}", "LLVM=1",
               f"RUST_LIB_SRC={stock.RUST_LIB_SRC}", f"KERNELRELEASE={name}", "KBUILD_BUILD_TIMESTAMP=@0"]
    stock.stamped(directory, "configure", lambda: configure(source, build, command, log))
    say("building the debug kernel takes 15 to 25 minutes, once")
    step("debug kernel", log, [*command, f"-j{min(2, os.cpu_count() or 1)}", "bzImage", "modules_prepare"])
    symbols = (build / "vmlinux.symvers").read_text()
    (build / "Module.symvers").write_text(symbols)
    return {
        "KREL": name,
        "KSRC": source,
        "KDIR": build,
        "KIMAGE": build / "arch/x86/boot/bzImage",
        "KMODULES": "",
        "KVERSION": release.version,
        "KSYMBOLS": len(symbols.splitlines()),
    }
