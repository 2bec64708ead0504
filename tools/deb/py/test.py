# SPDX-License-Identifier: MIT OR Apache-2.0
"""Install, use, upgrade and remove the packages on a Debian machine. TAP on standard output.

The machine is a real one but for its processor: systemd, apt, Debian's kernel and its initramfs.
It reboots twice. tools/deb/guest/run is what happens in it.
"""

import argparse
import shutil
import subprocess
import sys
import time
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOOLS / "env/py"), str(TOOLS / "vm/py")]

import accel  # noqa: E402
import verdict  # noqa: E402
from common import BUILD, Fail, main  # noqa: E402
from machine import Machine  # noqa: E402

# Seconds for all of it: three boots and the demo on an emulated processor.
LIMIT = 2400
PORT = "out"


def version_of(packages):
    """The version that all packages of a directory have."""
    versions = {path.name.split("_")[1] for path in packages.glob("*.deb")}
    if len(versions) != 1:
        raise Fail(f"{packages} holds packages of {len(versions)} versions", "run make deb")
    return versions.pop()


def wanted(packages, release):
    """The packages for a kernel."""
    return [path for path in sorted(packages.glob("*.deb")) if not path.name.startswith("opendxg-dkms_")
            and (not path.name.startswith("opendxg-modules-") or path.name.startswith(f"opendxg-modules-{release}_"))]


def make_disk(options, folder):
    """The second disk: packages old and new, the demo, what to do."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, source in (("old", options.old), ("new", options.new)):
        (folder / name).mkdir(parents=True)
        for path in wanted(source, options.release):
            shutil.copy(path, folder / name)
    names = " ".join(path.name.split("_")[0] for path in wanted(options.old, options.release))
    shutil.copytree(BUILD / "demo/bin", folder / "demo")
    shutil.copy(TOOLS / "deb/guest/run", folder / "run")
    (folder / "config").write_text(f"KREL={options.release}\nOLD={version_of(options.old)}\n"
                                   f"NEW={version_of(options.new)}\nPACKAGES='{names}'\n")
    image = folder.with_name(f"{folder.name}.img")
    image.unlink(missing_ok=True)
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-d", folder, image, "128M"], check=True)
    return image


class Tap:
    """Numbers results as they come."""

    def __init__(self):
        self.count = self.bad = 0

    def take(self, line):
        """A line of the guest: a result, or what explains one."""
        for word in ("ok", "not ok"):
            if line.startswith(f"{word} - "):
                self.count += 1
                self.bad += word != "ok"
                print(f"{word} {self.count} {line[len(word) + 1:]}", flush=True)
                return
        print(line if line.startswith("#") else f"# {line}", flush=True)


def run(options, image, tap):
    """Boot until the machine is off. Returns what is wrong with it."""
    append = ("root=/dev/vda rw console=ttyS0 loglevel=5 no_timer_check tsc=reliable "
              "systemd.show_status=no rcupdate.rcu_cpu_stall_timeout=120")
    machine = Machine([*accel.ARGUMENTS["tcg"], "-smp", "2", "-m", "1024M", "-nodefaults", "-no-user-config",
                       "-display", "none", "-vga", "none", "-net", "none",
                       "-drive", f"file={options.root}/root.img,if=virtio,format=raw,snapshot=on",
                       "-drive", f"file={image},if=virtio,format=raw,readonly=on",
                       "-kernel", options.image, "-initrd", f"{options.root}/boot/initrd.img-{options.release}",
                       "-append", append], [PORT])
    serial, said, ended = bytearray(), b"", False
    deadline = time.monotonic() + LIMIT
    try:
        while machine.process.poll() is None:
            if time.monotonic() > deadline:
                return f"no end after {LIMIT} s", serial
            if verdict.PANIC.encode() in serial:
                return "the kernel panicked", serial
            for name, data in machine.poll(1):
                if name == "serial":
                    serial.extend(data)
                elif name == PORT:
                    *lines, said = (said + data).split(b"\n")
                    for line in lines:
                        text = line.decode(errors="replace").rstrip("\r")
                        if text == "end":
                            ended = True
                        else:
                            tap.take(text)
    finally:
        error = machine.stop()
    if not ended:
        return f"the machine ended too early: {error}", serial
    found = verdict.judge(serial.decode(errors="replace"))
    return found and found[1], serial


def test():
    """Parse the command line and test one kernel."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", required=True, help="the kernel's release name")
    parser.add_argument("--image", required=True, help="the kernel's image")
    parser.add_argument("--root", required=True, help="what tools/deb/root made")
    parser.add_argument("--old", type=Path, required=True, help="packages to install")
    parser.add_argument("--new", type=Path, required=True, help="packages to upgrade to")
    options = parser.parse_args()
    print("TAP version 13", flush=True)
    tap = Tap()
    trouble, serial = run(options, make_disk(options, BUILD / "test/deb" / options.release), tap)
    log = BUILD / "test/deb" / f"{options.release}.log"
    log.write_bytes(serial)
    if trouble:
        tap.take(f"# the log of the machine is {log}")
    tap.take(f"{'not ok' if trouble else 'ok'} - {options.release}, the machine has nothing to complain about"
             f"{f': {trouble}' if trouble else ''}")
    print(f"1..{tap.count}")
    return 1 if tap.bad else 0


main(test)
