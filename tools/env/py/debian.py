# SPDX-License-Identifier: MIT OR Apache-2.0
"""Kernels as Debian's package index offers them."""

import re
import subprocess
from dataclasses import dataclass

from common import Fail, say, step


@dataclass(frozen=True)
class Release:
    """One stock kernel: its release name and the packages it comes in."""

    name: str       # 7.2.12+deb13-amd64
    series: str     # 7.2
    version: str    # package version, the same for headers, source, modules and image
    binary: str     # the package that holds vmlinuz

    @property
    def upstream(self):
        """The kernel version without Debian's suffix."""
        return self.name.split("+")[0]

    def packages(self):
        """What to download, with exact versions."""
        names = (f"linux-headers-{self.name}", f"linux-modules-{self.name}", self.binary)
        return [f"{name}={self.version}" for name in names]

    def source_package(self):
        """The source of exactly this kernel."""
        return f"linux-source-{self.series}={self.version}"


def versions(pattern):
    """All (package, version) pairs of the index whose name matches `pattern`."""
    names = subprocess.run(["apt-cache", "pkgnames", "linux-"], check=True, text=True,
                           stdout=subprocess.PIPE).stdout.split()
    wanted = sorted(name for name in names if re.fullmatch(pattern, name))
    if not wanted:
        return set()
    lines = subprocess.run(["apt-cache", "madison", *wanted], check=True, text=True,
                           stdout=subprocess.PIPE).stdout.splitlines()
    return {tuple(field.strip() for field in line.split("|")[:2]) for line in lines
            if "Packages" in line}


def offered(series):
    """The kernels of a series with headers, source, image and modules of one version, in order."""
    found = versions(rf"linux-(headers|binary|binary-unsigned|modules)-{re.escape(series)}\.\d+\+[a-z0-9]+-amd64"
                     rf"|linux-source-{re.escape(series)}")
    sources = {version for name, version in found if name.startswith("linux-source-")}
    candidates = []
    for name, version in found:
        match = re.fullmatch(rf"linux-headers-((\d+)\.(\d+)\.(\d+)\+[a-z0-9]+-amd64)", name)
        if not match or version not in sources:
            continue
        release = match[1]
        binary = next((package for package in (f"linux-binary-{release}", f"linux-binary-unsigned-{release}")
                       if (package, version) in found), None)
        if binary and (f"linux-modules-{release}", version) in found:
            order = tuple(int(part) for part in match.groups()[1:])
            candidates.append((order, version, Release(release, series, version, binary)))
    return [release for _, _, release in sorted(candidates, key=lambda entry: entry[:2])]


def newest(series):
    """The newest kernel of a series."""
    candidates = offered(series)
    if not candidates:
        raise Fail(f"no matching kernel packages for the {series} series",
                   "run tools/env/enter apt-get update, or set OPENDXG_MIRROR to an archive that has it")
    return candidates[-1]


def named(name):
    """The kernel whose release name this is."""
    found = [release for release in offered(".".join(name.split(".")[:2])) if release.name == name]
    if not found:
        raise Fail(f"the archive has no kernel {name}", "tools/env/kernel --list shows those that it has")
    return found[-1]


def update_index(log):
    """Fetch the package index anew: older kernels disappear from the archive."""
    step("package index", log, ["apt-get", "update", "-q"])


def download(packages, directory, log):
    """Fetch packages into a directory; what is already there is kept."""
    directory.mkdir(parents=True, exist_ok=True)
    step(f"download {', '.join(name.split('=')[0] for name in packages)}", log,
         ["apt-get", "download", "-q", *packages], cwd=directory)


def package_file(directory, package):
    """The file that `download` made of a package."""
    files = sorted(directory.glob(package.split("=")[0] + "_*.deb"))
    if not files:
        raise Fail(f"{package} was not downloaded", "run the same command again")
    return files[-1]


def toolchain():
    """Versions of the tools that decide what a build contains."""
    status = open("/var/lib/dpkg/status", encoding="utf-8").read()
    found = {}
    for name in ("rustc", "bindgen", "gcc-14", "clang-19", "pahole"):
        match = re.search(rf"^Package: {re.escape(name)}\n(?:.+\n)*?Version: (.+)$", status, re.M)
        found[name] = match[1] if match else "none"
    if found["rustc"] == "none":
        raise Fail("the private tree has no rustc", "make distclean, then run the same command again")
    return found


if __name__ == "__main__":
    for wanted in ("7.2", "7.3"):
        say(newest(wanted))
