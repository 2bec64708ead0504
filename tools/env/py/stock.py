# SPDX-License-Identifier: MIT OR Apache-2.0
"""Stock Debian kernels, and the Rust metadata that Debian's headers leave out.

The headers package has the configuration and `Module.symvers` but no `rust/`
directory. Preparing the same source with the same configuration and compiler
makes metadata whose symbols carry the same names; `check_symbols` proves it.
"""

import re
import shutil

import debian
from common import CACHE, Fail, need_space, step

KERNELS = CACHE / "kernels"
RUST_LIB_SRC = "/usr/lib/rustlib/src/rust/library"


def stamped(directory, name, action):
    """Run a step unless an earlier run finished it."""
    stamp = directory / "stamps" / name
    if not stamp.exists():
        action()
        stamp.parent.mkdir(parents=True, exist_ok=True)
        stamp.touch()


def unpack_source(release, log):
    """The kernel source of a release; stock and debug kernels share it."""
    target = KERNELS / f"source-{release.version}"
    if target.exists():
        return target
    need_space(3000, "the kernel source")
    package = release.source_package()
    debs = KERNELS / "deb"
    debian.download([package], debs, log)
    deb = debian.package_file(debs, package)
    partial = target.with_name(target.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    step(f"unpack {deb.name}", log, ["sh", "-euc", """
        dpkg-deb --fsys-tarfile "$1" |
            tar -xOf - "./usr/src/linux-source-$2.tar.xz" |
            tar -xJf - -C "$3" --strip-components=1
        test -f "$3/Makefile" """, "sh", str(deb), release.series, str(partial)])
    partial.rename(target)
    deb.unlink()
    return target


def unpack_packages(release, directory, log):
    """Headers, image and modules of a release, below `directory/root`."""
    root, debs = directory / "root", directory / "deb"
    shutil.rmtree(root, ignore_errors=True)
    (root / "usr").mkdir(parents=True)
    (root / "lib").symlink_to("usr/lib")
    debian.download(release.packages(), debs, log)
    for package in release.packages():
        deb = debian.package_file(debs, package)
        step(f"unpack {deb.name}", log, ["dpkg-deb", "-x", str(deb), str(root)])
    step("module dependencies", log, ["depmod", "-b", str(root), release.name])
    shutil.rmtree(debs)


def headers(release, directory):
    """Where the headers package was unpacked."""
    return directory / "root/usr/src" / f"linux-headers-{release.name}"


def prepare(release, directory, source, log):
    """Make the build directory: Debian's configuration plus the Rust metadata."""
    build = directory / "build"
    build.mkdir(exist_ok=True)
    config = headers(release, directory) / ".config"
    shutil.copy(config, build / ".config")
    make = ["nice", "make", "-C", str(source), f"O={build}", f"KERNELRELEASE={release.name}",
            f"RUST_LIB_SRC={RUST_LIB_SRC}"]
    step("kernel configuration", log, [*make, "olddefconfig"])
    check_config(config, build / ".config")
    step("Rust metadata of the kernel (about 3 minutes)", log, [*make, "-j2", "modules_prepare"])
    shutil.copy(headers(release, directory) / "Module.symvers", build / "Module.symvers")


def check_config(debian_config, our_config):
    """Only the compiler's program name may differ; anything else means that a tool is missing."""
    def options(path):
        return {line for line in path.read_text().splitlines()
                if line.startswith("CONFIG_") and not line.startswith("CONFIG_CC_VERSION_TEXT=")}
    changed = options(debian_config) ^ options(our_config)
    if changed:
        raise Fail(f"the kernel configuration changed: {' '.join(sorted(changed)[:4])}",
                   "add the tool that Kconfig misses to tools/env/packages")


def check_symbols(release, build):
    """Every Rust symbol of our metadata must be exported by the stock kernel."""
    exported = {line.split("\t")[1] for line in (build / "Module.symvers").read_text().splitlines()}
    ours = set()
    for header in (build / "rust").glob("exports_*_generated.h"):
        ours.update(re.findall(r"EXPORT_SYMBOL_RUST_GPL\((\w+)\)", header.read_text()))
    missing = sorted(ours - exported)
    if not ours or missing:
        raise Fail(f"metadata mismatch: {len(missing)} of {len(ours)} Rust symbols are not in kernel "
                   f"{release.name}{', first ' + missing[0] if missing else ''}",
                   "the rustc of the tree differs from the one that built the kernel; "
                   "make distclean and set up again, or choose another KERNEL")
    return len(ours)


def make(release, directory, log):
    """Everything for one stock kernel. Returns the assignments that describe it."""
    need_space(5000, f"kernel {release.name}")
    source = unpack_source(release, log)
    stamped(directory, "packages", lambda: unpack_packages(release, directory, log))
    stamped(directory, "prepare", lambda: prepare(release, directory, source, log))
    build = directory / "build"
    count = check_symbols(release, build)
    made = (build / "include/config/kernel.release").read_text().strip()
    if made != release.name:
        raise Fail(f"metadata mismatch: the build directory says {made}, not {release.name}",
                   f"delete {directory} and run the same command again")
    return {
        "KREL": release.name,
        "KSRC": source,
        "KDIR": build,
        "KIMAGE": directory / "root/usr/lib/modules" / release.name / "vmlinuz",
        "KMODULES": directory / "root",
        "KVERSION": release.version,
        "KSYMBOLS": count,
    }
