# SPDX-License-Identifier: MIT OR Apache-2.0
"""Run COMMAND in a fresh virtual machine with the module loaded.

The exit status is COMMAND's own, unless something went wrong with the machine.
Then a line `vm/run: ...` says so on standard error and the status is

  119  the run could not be set up
  120  the guest did not boot, or a module could not be loaded or unloaded
  121  kernel panic, oops, BUG or WARN
  122  report of KASAN, lockdep, kmemleak, UBSAN, DEBUG_OBJECTS or another check
  123  COMMAND did not end in time
"""

import argparse
import math
import os
import secrets
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOOLS / "env/py"))

import accel  # noqa: E402
import image  # noqa: E402
import session  # noqa: E402
import verdict  # noqa: E402
from common import BUILD, CACHE, REPO, Fail, say  # noqa: E402


# The kernel module that ours depends on.
NEEDED = "configfs"


def parse():
    """The command line."""
    parser = argparse.ArgumentParser(prog="tools/vm/run", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--kernel", default="stock", choices=["stock", "7.2", "7.3", "debug"], help="stock is 7.2 (default)")
    add("--cpus", type=int, default=2, metavar="N", help="virtual processors (default 2)")
    add("--memory", type=int, metavar="MB", help="memory (default 512, debug 1536)")
    add("--timeout", type=float, metavar="S", help="time limit of COMMAND (default 300, debug 1800)")
    add("--boot-timeout", type=float, metavar="S", help="time limit of booting (default 120, debug 400)")
    add("--add", action="append", default=[], metavar="HOST[:GUEST]",
        help="put a file or directory into the guest, under the same path unless GUEST is given")
    add("--no-module", action="store_true", help="do not load opendxg.ko")
    add("--module", metavar="FILE", help="load this opendxg.ko instead of building the tree's own")
    add("--no-build", action="store_true", help="take the module and the shim as they were built last")
    add("--module-args", default="", metavar="ARGS",
        help="parameters of opendxg.ko, added to $OPENDXG_MODULE_ARGS")
    add("--modules", default="", metavar="A,B", help="load these kernel modules too")
    add("--append", default="", metavar="ARGS", help="more kernel arguments")
    add("--qemu", default="", metavar="ARGS", help="more QEMU arguments")
    add("--accel", choices=["auto", "tcg", "count", "kvm"], default="auto",
        help="default auto: KVM if it truly works; count: TCG whose clock counts instructions")
    add("--interactive", action="store_true", help="connect standard input, and the terminal if there is one")
    add("--no-kmemleak", action="store_true", help="debug kernel: do not look for leaks at the end")
    add("--log", metavar="FILE", help="keep the kernel log here")
    add("--verbose", action="store_true", help="show the kernel log as it comes")
    add("--trace", metavar="FILE", help="with --accel count and one processor: while COMMAND has written the line "
        "`trace: on` and not `trace: off` to standard error, every instruction leaves a line here")
    add("command", nargs="+", metavar="COMMAND", help="what to run, after --")
    options = parser.parse_args()
    if options.cpus < 1:
        parser.error("--cpus must be at least 1")
    if options.trace:
        options.accel, options.cpus = "count", 1
        options.append += " nokaslr"
    debug = options.kernel == "debug"
    options.memory = options.memory or (1536 if debug else 512)
    options.timeout = options.timeout or (math.inf if options.interactive else 1800 if debug else 300)
    options.boot_timeout = options.boot_timeout or (400 if debug else 120)
    return options


def find_kernel(kind):
    """The parts of a kernel, made first when it is not in the cache."""
    done = subprocess.run([str(TOOLS / "env/kernel"), kind], text=True, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        sys.exit(verdict.SETUP)
    return dict(word.split("=", 1) for word in shlex.split(done.stdout))


def find_module(options, kernel):
    """The module to load. Unless a file was named it is built first: quick if nothing changed."""
    if options.no_module:
        return None
    path = BUILD / kernel["KREL"] / "opendxg.ko"
    if options.module:
        path = image.host_path(options.module)
    elif not options.no_build:
        done = subprocess.run(["make", "--no-print-directory", "-C", str(REPO), "vm-parts",
                               f"KERNEL={options.kernel}"], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        if done.returncode:
            say(done.stdout)
            raise Fail("the module or the shim could not be built", "see the messages above")
    if not path.is_file():
        raise Fail(f"no module at {path}", "run make modules, or use --no-module")
    return path


def make_image(options, kernel, module, settings, file):
    """Write the initramfs."""
    guest = image.base()
    wanted = [name for name in options.modules.split(",") if name]
    # modprobe would load what the module needs; insmod does not.
    wanted += [NEEDED] if module and NEEDED not in wanted else []
    settings["MODULES"] = " ".join(image.add_modules(guest, kernel, wanted))
    if module:
        guest.data("/opendxg/opendxg.ko", image.read_stripped(module))
    image.add_stage(guest)
    image.add_paths(guest, options.add)
    image.add_command(guest, options.command, settings)
    guest.write(file)
    file.flush()


def qemu_arguments(options, kernel, initrd, accelerator):
    """QEMU's command line without the channels."""
    append = ("console=ttyS0 loglevel=5 panic=-1 oops=panic sysrq_always_enabled tsc=reliable no_timer_check "
              "rcupdate.rcu_cpu_stall_timeout=120 watchdog_thresh=60 ")
    if options.kernel == "debug":
        # Without per-CPU arrays of free objects, which go on pointing to what was taken out of
        # them and so hide lost memory from kmemleak.
        append += "slab_debug=F "
    append += options.append
    if options.trace:
        options.qemu += f" -D {shlex.quote(str(image.host_path(options.trace)))}"
    return [*accel.ARGUMENTS[accelerator], "-smp", str(options.cpus), "-m", f"{options.memory}M",
            "-nodefaults", "-no-user-config", "-display", "none", "-vga", "none", "-net", "none", "-no-reboot",
            "-kernel", kernel["KIMAGE"], "-initrd", initrd, "-append", append.strip(),
            *shlex.split(options.qemu)]


def boots_with_kvm(kernel):
    """Whether a guest comes up under KVM within a short time."""
    probe = argparse.Namespace(cpus=1, memory=256, append="", qemu="", trace=None, timeout=20, boot_timeout=20, modules="",
                               add=[], command=["true"], interactive=False, verbose=False)
    with tempfile.NamedTemporaryFile() as initrd:
        token = secrets.token_hex(16)
        make_image(probe, kernel, None, session.settings(probe, token, dxg=False, directory="/root"), initrd)
        outcome = session.run(qemu_arguments(probe, kernel, initrd.name, "kvm"), probe, token)
    return outcome.status == 0 and not outcome.trouble


def run():
    """Boot, run, judge."""
    options = parse()
    kernel = find_kernel(options.kernel)
    module = find_module(options, kernel)
    accelerator = options.accel
    if accelerator == "auto":
        accelerator = accel.choose(lambda: boots_with_kvm(kernel))
    token = secrets.token_hex(16)
    with tempfile.NamedTemporaryFile(dir=CACHE, prefix="initrd-") as initrd:
        make_image(options, kernel, module, session.settings(options, token, dxg=bool(module), directory=Path.cwd()),
                   initrd)
        outcome = session.run(qemu_arguments(options, kernel, initrd.name, accelerator), options, token)
    if options.log:
        image.host_path(options.log).write_text(outcome.log)
    if outcome.trouble:
        return report(options, outcome)
    return outcome.status


def report(options, outcome):
    """Show the kernel log of a failed run, without the boot if that went well."""
    status, reason = outcome.trouble
    place = ""
    if not options.log:
        path = BUILD / "vm" / f"kernel-{os.getpid()}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(outcome.log)
        place = f", all of it in {path}"
    before, mark, after = outcome.log.partition("Run /init as init process")
    say(f"---- kernel log{place} ----")
    say((after if mark else before).strip() or "(empty)")
    say("---- end of kernel log ----")
    say(f"vm/run: {reason} (status {status})")
    return status


signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
try:
    sys.exit(run())
except Fail as error:
    print(error, file=sys.stderr)
    sys.exit(verdict.SETUP)
except KeyboardInterrupt:
    sys.exit(130)
