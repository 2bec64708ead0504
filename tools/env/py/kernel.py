# SPDX-License-Identifier: MIT OR Apache-2.0
"""Make a kernel available in the cache and print where its parts are.

KREL      release name, as `uname -r` prints it
KSRC      source tree
KDIR      build directory to compile external modules against
KIMAGE    bootable image
KMODULES  directory that holds lib/modules/KREL, empty when the kernel has no modules
KVERSION  version of the Debian source package
"""

import argparse
import hashlib
import json
import re
import shlex

import debian
import debug
import stock
from common import CACHE, lock, main, say

KERNELS = CACHE / "kernels"

SERIES = ("7.2", "7.3")

# Raise this when a kernel that is already in a cache has to be made again.
RECIPE = 1


def key(kind):
    """What a prepared kernel depends on besides its source."""
    inputs = [RECIPE, kind, debian.toolchain(), debug.FRAGMENT.read_text() if kind == "debug" else ""]
    return hashlib.sha256(json.dumps(inputs).encode()).hexdigest()[:8]


def read(ready):
    """The assignments of a finished kernel, or nothing."""
    try:
        return json.loads(ready.read_text())
    except FileNotFoundError:
        return None


def record(kind):
    """The file that says where a finished kernel is."""
    return KERNELS / f"{kind}-{key(kind)}.json"


def named_twice(kind):
    """The newest kernel of a series has two names. The assignments, if this is the longer one."""
    for short in SERIES if kind not in SERIES else ():
        found = read(record(short))
        if found and found["KREL"] == kind:
            return found
    return None


def provide(kind, update):
    """Find the kernel in the cache, or make it: of a series the newest one that the archive has."""
    series = "7.3" if kind == "7.3" else "7.2"
    found = named_twice(kind)
    if found:
        return found
    ready = record(kind)
    found = read(ready)
    if found and not update:
        return found
    with lock(KERNELS / "lock"):
        found = read(ready)
        if found and not update:
            return found
        log = KERNELS / f"{kind}.log"
        debian.update_index(log)
        release = debian.named(kind) if "+" in kind else debian.newest(series)
        say(f"kernel: {release.name} (Debian package version {release.version})")
        name = f"{release.upstream}-debug" if kind == "debug" else release.name
        directory = KERNELS / f"{name}-{key(kind)}"
        directory.mkdir(parents=True, exist_ok=True)
        make = debug.make if kind == "debug" else stock.make
        made = {name: str(value) for name, value in make(release, directory, log).items()}
        partial = ready.with_suffix(".partial")
        partial.write_text(json.dumps(made, indent=1) + "\n")
        partial.rename(ready)
        return made


def known(kind):
    """A kind of kernel, or the name of a release."""
    if kind not in ("stock", *SERIES, "debug") and not re.fullmatch(r"\d+\.\d+\.\d+\+[a-z0-9]+-amd64", kind):
        raise argparse.ArgumentTypeError(f"{kind} is not stock, 7.2, 7.3, debug or the name of a release")
    return kind


def run():
    """Parse the command line and print the assignments."""
    parser = argparse.ArgumentParser(prog="tools/env/kernel", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", nargs="?", default="stock", type=known, metavar="KERNEL",
                        help="stock (default, 7.2), 7.2, 7.3, debug, or a release name: 7.2.12+deb13-amd64")
    parser.add_argument("--update", action="store_true",
                        help="look for a newer kernel in the archive instead of using the cached one")
    parser.add_argument("--get", metavar="NAME", help="print only this value")
    parser.add_argument("--cached", action="store_true",
                        help="print nothing, and end with 1 if the kernel would have to be made first")
    parser.add_argument("--list", action="store_true", help="list the stock kernels that the archive offers")
    options = parser.parse_args()
    if options.list:
        offered = [release.name for series in SERIES for release in debian.offered(series)]
        print("\n".join(offered))
        return 0
    kind = "7.2" if options.kind == "stock" else options.kind
    if options.cached:
        return 0 if named_twice(kind) or read(record(kind)) else 1
    found = provide(kind, options.update)
    if options.get:
        print(found[options.get])
    else:
        for name, value in found.items():
            print(f"{name}={shlex.quote(value)}")
    return 0


main(run)
