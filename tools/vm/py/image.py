# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the guest's file system holds: busybox, modules, programs and their libraries."""

import lzma
import re
import shlex
import subprocess
import tempfile
from pathlib import Path

import cpio
from common import BUILD, CACHE, REPO, Fail

STAGE = BUILD / "stage"
SCRIPTS = Path(__file__).resolve().parent.parent
LINKS = {"/bin": "usr/bin", "/sbin": "usr/sbin", "/lib": "usr/lib", "/lib64": "usr/lib64",
         "/lib32": "usr/lib32"}
LIBRARY_PATH = "/usr/lib/x86_64-linux-gnu:/usr/lib"

PASSWD = """root:x:0:0:root:/root:/bin/sh
user:x:1000:1000:user:/home/user:/bin/sh
other:x:1001:1001:other:/home/other:/bin/sh
nobody:x:65534:65534:nobody:/nonexistent:/bin/false
"""
GROUP = "root:x:0:\ntty:x:5:\nuser:x:1000:\nother:x:1001:\nnogroup:x:65534:\n"


def host_path(path):
    """Where a path of the host is inside the tree."""
    path = Path(path).absolute()
    shared = [REPO, CACHE, Path("/host")] + [Path.cwd()] * (Path.cwd() != Path("/"))
    if any(path.is_relative_to(place) for place in shared):
        return path
    return Path("/host") / path.relative_to("/")


def elf(path):
    """Whether a file is an ELF program or library."""
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def read_stripped(path):
    """A file's bytes; programs without debug information, which only slows the boot."""
    if not elf(path):
        return path.read_bytes()
    with tempfile.NamedTemporaryFile() as stripped:
        done = subprocess.run(["strip", "--strip-debug", "-o", stripped.name, path], stderr=subprocess.DEVNULL,
                              check=False)
        return Path(path if done.returncode else stripped.name).read_bytes()


def base():
    """An image with a shell, users and the directories that programs expect."""
    image = cpio.Archive(LINKS, read_stripped)
    for path in ("/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib64", "/usr/lib32", "/proc", "/sys", "/dev",
                 "/run", "/etc", "/var", "/mnt", "/opt"):
        image.directory(path)
    image.directory("/tmp", 0o1777)
    image.directory("/root", 0o700)
    image.directory("/home/user", 0o700, 1000)
    image.directory("/home/other", 0o700, 1001)
    image.device("/dev/console", 5, 1)
    image.device("/dev/null", 1, 3, 0o666)
    image.data("/etc/passwd", PASSWD)
    image.data("/etc/group", GROUP)
    image.data("/etc/hosts", "127.0.0.1 localhost opendxg\n")
    image.data("/etc/shells", "/bin/sh\n")
    image.data("/init", (SCRIPTS / "init").read_bytes(), 0o755)
    image.data("/opendxg/leaks.sh", (SCRIPTS / "leaks.sh").read_bytes())
    busybox = Path("/usr/bin/busybox")
    image.data("/usr/bin/busybox", busybox.read_bytes(), 0o755)
    applets = subprocess.run([busybox, "--list-full"], check=True, text=True, stdout=subprocess.PIPE).stdout
    for applet in applets.split():
        if not image.has(applet):
            image.symlink(applet, "/usr/bin/busybox")
    return image


def add_programs(image, files):
    """Put in the shared libraries that these files need."""
    for path in files:
        if not elf(path):
            continue
        done = subprocess.run(["ldd", str(path)], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={"LD_LIBRARY_PATH": str(STAGE / "usr/lib"), "PATH": "/usr/bin:/bin"})
        for line in done.stdout.splitlines():
            add_library(image, path, line.strip())


def add_library(image, program, line):
    """One line of ldd's output."""
    missing = re.match(r"(\S+) => not found", line)
    if missing:
        name = missing[1]
        if not any(image.has(f"{directory}/{name}") for directory in LIBRARY_PATH.split(":")):
            raise Fail(f"library {name} of {program} not found", f"name it with --add FILE:/usr/lib/{name}")
        return
    found = re.match(r"(?:\S+ => )?(/\S+) \(0x", line)
    if found and not found[1].startswith(str(STAGE)) and not image.has(found[1]):
        library = Path(found[1])
        image.data(str(library), library.resolve().read_bytes(), 0o755)


def add_paths(image, additions):
    """The paths of `--add HOST[:GUEST]`."""
    files = []
    for addition in additions:
        host, _, guest = addition.partition(":")
        source = host_path(host)
        if not source.exists():
            raise Fail(f"--add {host}: no such file or directory", "name an existing path")
        files.extend(image.copy(source, guest or Path(host).absolute()))
    add_programs(image, files)


def add_stage(image):
    """The shim, its headers and what else was staged as installed, below /usr."""
    if (STAGE / "usr").is_dir():
        add_programs(image, list(image.copy(STAGE / "usr", "/usr")))


def kernel_modules(kernel, wanted):
    """Files of the wanted kernel modules and their dependencies, in loading order."""
    if not wanted:
        return []
    if not kernel["KMODULES"]:
        built = Path(kernel["KDIR"], "modules.builtin").read_text()
        names = {Path(line).stem.replace("-", "_") for line in built.splitlines()}
        unknown = [name for name in wanted if name.replace("-", "_") not in names]
        if unknown:
            raise Fail(f"kernel {kernel['KREL']} has no module {unknown[0]}", "choose another --kernel")
        return []
    root = Path(kernel["KMODULES"], "lib/modules", kernel["KREL"])
    depends = {}
    for line in (root / "modules.dep").read_text().splitlines():
        path, _, needs = line.partition(":")
        depends[path] = needs.split()
    paths = {Path(path).name.split(".")[0].replace("-", "_"): path for path in depends}
    order = []
    for name in wanted:
        path = paths.get(name.replace("-", "_"))
        if path is None:
            raise Fail(f"kernel {kernel['KREL']} has no module {name}", "check the name, or choose another --kernel")
        # modules.dep lists what is needed directly first, so the last goes in first.
        for needed in [*reversed(depends[path]), path]:
            if needed not in order:
                order.append(needed)
    return [root / path for path in order]


def add_modules(image, kernel, wanted):
    """Put in kernel modules, unpacked; returns their names in loading order."""
    names = []
    for path in kernel_modules(kernel, wanted):
        data = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
        names.append(path.name.removesuffix(".xz"))
        image.data(f"/opendxg/modules/{names[-1]}", data)
    return names


def add_command(image, command, settings):
    """The command and the settings that init reads."""
    image.data("/opendxg/command", "exec " + shlex.join(command) + "\n")
    image.data("/opendxg/config",
               "".join(f"{name}={shlex.quote(str(value))}\n" for name, value in settings.items()))
    image.directory(settings["DIRECTORY"])
