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
import shlex

import debian
import debug
import stock
from common import CACHE, lock, main, say

KERNELS = CACHE / "kernels"

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


def provide(kind, update):
    """Find the kernel in the cache, or make the newest one that the archive has."""
    series = "7.3" if kind == "7.3" else "7.2"
    ready = KERNELS / f"{kind}-{key(kind)}.json"
    found = read(ready)
    if found and not update:
        return found
    with lock(KERNELS / "lock"):
        found = read(ready)
        if found and not update:
            return found
        log = KERNELS / f"{kind}.log"
        debian.update_index(log)
        release = debian.newest(series)
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


def run():
    """Parse the command line and print the assignments."""
    parser = argparse.ArgumentParser(prog="tools/env/kernel", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", nargs="?", default="stock", choices=["stock", "7.2", "7.3", "debug"],
                        help="stock is 7.2")
    parser.add_argument("--update", action="store_true",
                        help="look for a newer kernel in the archive instead of using the cached one")
    parser.add_argument("--get", metavar="NAME", help="print only this value")
    options = parser.parse_args()
    kind = "7.2" if options.kind == "stock" else options.kind
    found = provide(kind, options.update)
    if options.get:
        print(found[options.get])
    else:
        for name, value in found.items():
            print(f"{name}={shlex.quote(value)}")


main(run)
