# SPDX-License-Identifier: MIT OR Apache-2.0
"""instructions.py DIRECTORY CALL: count the instructions of one operation by function and by line.

DIRECTORY holds `log`, the instructions that QEMU executed, and `places`, where the guest said that
everything lies. Writes `functions.txt`, `lines.txt` and `trace.txt` beside them, and prints a
summary.
"""

import bisect
import collections
import re
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(REPO / "tools/env/py"))

from common import BUILD, Fail  # noqa: E402

# The marks are a few instructions long, and functions begin at multiples of this.
MARK = 16
KERNEL = 1 << 63
# How many functions and lines the summary has.
SHOWN = 25
# What functions of the kernel are about, by their names: the first one that fits.
KINDS = [(kind, re.compile(pattern)) for kind, pattern in (
    ("security modules", r"^(security|tomoyo|hook|bpf_lsm|apparmor|landlock)_"),
    ("system calls and their files", r"SYS|^x64_sys|syscall|sysret|sysvec|fdget|ioctl|prandom|fpregs|safe_stack"),
    ("copies to and from user memory", r"copy_(from|to)_user|_(from|to)_user"),
    ("memory", r"alloc|kfree|slab|memcg|obj_cgroup|memset|memmove|memcpy|_pages?(_|$)|page_|folio|vfree|mod_.*state"),
    ("locks", r"spin_|mutex|rwsem|^(down|up)_(read|write)|rcu_"),
    ("references and atomics", r"refcount|REFCOUNT|atomic"),
    ("scheduler and wake-ups", r"sched|wake|queue|pick_|switch|runtime|idle|task|vruntime|entity|load_avg|clock|wait"),
)]
STARTED = re.compile(rb"^Trace \d+: \S+ \[[0-9a-f]+/([0-9a-f]+)/")
STOPPED = b"Stopped execution of TB chain before"


def executed(lines):
    """The addresses of a log in order. An instruction that an interrupt came before is not one."""
    last = None
    for line in lines:
        if found := STARTED.match(line):
            if last is not None:
                yield last
            last = int(found[1], 16)
        elif line.startswith(STOPPED):
            last = None
    if last is not None:
        yield last


def operations(addresses, begin, end):
    """The instructions between a begin mark and the end mark that follows it."""
    found, inside = None, False
    for address in addresses:
        if address == begin:
            found, inside = [], True
        elif address == end:
            if found is not None:
                yield found
            found = None
        elif found is not None:
            # The rest of the mark itself.
            inside = inside and begin < address < begin + MARK
            if not inside:
                found.append(address)


def typical(found):
    """One of the operations that have the most frequent length, and how many have it."""
    lengths = collections.Counter(map(len, found))
    length, count = min(lengths.items(), key=lambda item: (-item[1], item[0]))
    return next(one for one in found if len(one) == length), count


def kind(address, image, name):
    """What an instruction is spent on. Of a function that was inlined the one around it decides."""
    if address < KERNEL:
        return "user space"
    if image == "opendxg" and re.match(r"dxg_(read|write)_", name):
        return "copies to and from user memory"
    if image != "kernel":
        return image
    return next((what for what, pattern in KINDS if pattern.search(name)), "other functions of the kernel")


class Symbols:
    """Names of functions by address."""

    def __init__(self, symbols):
        """symbols: (address, name) of functions."""
        self.names = dict(sorted(symbols, reverse=True))
        self.starts = sorted(self.names)

    def find(self, address):
        """Name and beginning of the function that has this address, or None."""
        at = bisect.bisect_right(self.starts, address) - 1
        return (self.names[self.starts[at]], self.starts[at]) if at >= 0 else None


class Image:
    """A program, a library or the module: its file, and by how much its addresses are moved."""

    def __init__(self, name, path, moved, section=None):
        self.name = name
        self.path = path
        self.moved = moved
        self.section = section

    def symbols(self):
        """Functions of a file by their address in the guest."""
        done = subprocess.run(["nm", "--defined-only", self.path], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=False)
        if not done.stdout:
            done = subprocess.run(["nm", "-D", "--defined-only", self.path], text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, check=False)
        for line in done.stdout.splitlines():
            address, kind, name = line.split(" ", 2)
            if kind in "tTwWiu":
                yield int(address, 16) + self.moved, name

    def lines(self, addresses):
        """The innermost line of each address: the one that was inlined last."""
        section = ["-j", self.section] if self.section else []
        asked = "".join(f"{address - self.moved:#x}\n" for address in addresses)
        done = subprocess.run(["addr2line", "-e", self.path, *section], input=asked, text=True,
                              stdout=subprocess.PIPE, check=True)
        return [shorten(line.split(" ")[0]) for line in done.stdout.splitlines()]


def shorten(line):
    """A place in the sources without where the sources lie."""
    for top in (f"{REPO}/", f"{REPO}/tools/"):
        line = line.removeprefix(top)
    return re.sub(r"^.*/(library/(?:core|alloc|std)/|rust/kernel/|registry/src/[^/]*/)", r"\1", line)


class Guest:
    """What the guest said of where everything lies."""

    def __init__(self, text):
        self.batch, self.release = 1, ""
        self.sections, self.maps, symbols = {}, {}, []
        for line in text.splitlines():
            word, _, rest = line.partition(" ")
            if word in ("begin", "end"):
                setattr(self, word, int(rest, 16))
            elif word == "batch":
                self.batch = int(rest)
            elif word == "release":
                self.release = rest
            elif word == "section":
                name, address = rest.split()
                self.sections[name] = int(address, 16)
            elif word == "map":
                fields = rest.split()
                if len(fields) == 6 and fields[5].startswith("/"):
                    low, high = (int(part, 16) for part in fields[0].split("-"))
                    first = self.maps.get(fields[5], (low, high))
                    self.maps[fields[5]] = (first[0], high)
            elif word == "symbol":
                fields = rest.split()
                if fields[1] in "tTwW":
                    module = fields[3].strip("[]") if len(fields) > 3 else ""
                    symbols.append((int(fields[0], 16), (module, fields[2])))
        if not hasattr(self, "end"):
            raise Fail("the guest did not say where the operation is", "see what it wrote above")
        self.kernel = Symbols(symbols)


def host_file(path):
    """The file of the host that is this program or library in the guest."""
    built = {"bench": BUILD / "bench/bin/bench"}
    for candidate in (built.get(Path(path).name), *BUILD.glob(f"stage/**/{Path(path).name}"), Path(path)):
        if candidate and candidate.is_file():
            return candidate
    return None


class Places:
    """Tells for an address in what image, function and line it is."""

    def __init__(self, guest):
        self.guest = guest
        module = BUILD / guest.release / "opendxg.ko"
        self.user = []
        for path, (low, high) in guest.maps.items():
            if file := host_file(path):
                image = Image(Path(path).name, file, low)
                self.user.append((low, high, image, Symbols(image.symbols())))
        self.module = None
        if module.is_file() and ".text" in guest.sections:
            self.module = Image("opendxg", module, guest.sections[".text"], ".text")

    def find(self, address):
        """Image (or only its name), function, and whether the function begins here."""
        if address >= KERNEL:
            (module, name), start = self.guest.kernel.find(address) or (("", "?"), 0)
            image = self.module if module == "opendxg" and self.module else module or "kernel"
            return image, name, address == start
        for low, high, image, symbols in self.user:
            if low <= address < high:
                name, start = symbols.find(address) or ("?", 0)
                return image, name, address == start
        return "user", "?", False


def demangle(names):
    """Names as their language writes them."""
    done = subprocess.run(["c++filt"], input="\n".join(names), text=True, stdout=subprocess.PIPE, check=True)
    # Without the hash of older names.
    return [re.sub(r"::h[0-9a-f]{16}$", "", name) for name in done.stdout.splitlines()]


def table(rows, width):
    """Lines of a table: a number, a number, words."""
    return [f"{first:>{width}} {second:>{width}}  {text}" for first, second, text in rows]


def report(directory, call, guest, places):
    """Write the files; the lines of the summary."""
    with open(directory / "log", "rb") as log:
        found = list(operations(executed(log), guest.begin, guest.end))
    if not found:
        raise Fail("the log has no whole operation", "is it longer than what is logged?")
    one, same = typical(found)

    located = [places.find(address) for address in one]
    plain = dict(zip(names := sorted({name for _, name, _ in located}), demangle(names)))
    where, own, entered, kinds = (collections.Counter() for _ in range(4))
    by_image = collections.defaultdict(list)
    for address, (image, name, first) in zip(one, located):
        label = image.name if isinstance(image, Image) else image
        where[label] += 1
        kinds[kind(address, label, name)] += 1
        own[label, plain[name]] += 1
        entered[label, plain[name]] += first
        if isinstance(image, Image):
            by_image[image].append(address)
    line_of = {}
    for image, addresses in by_image.items():
        unique = sorted(set(addresses))
        line_of.update(zip(unique, image.lines(unique)))
    lines = collections.Counter(line_of[address] for address in one if address in line_of)

    functions = table([(count, entered[key], f"{key[0]}: {key[1]}") for key, count in own.most_common()], 6)
    by_line = [f"{count:>6}  {line}" for line, count in lines.most_common()]
    (directory / "functions.txt").write_text("\n".join(functions) + "\n")
    (directory / "lines.txt").write_text("\n".join(by_line) + "\n")
    (directory / "trace.txt").write_text("".join(
        f"{address:016x} {plain[name]} {line_of.get(address, '')}\n"
        for address, (_, name, _) in zip(one, located)))

    per = f", {guest.batch} of them in a row" if guest.batch > 1 else ""
    yield f"{call}: {len(one)} instructions{per}; {same} of {len(found)} operations in the log have as many"
    yield ""
    for label, count in where.most_common():
        yield f"{count:>6}  {label}"
    yield ""
    for what, count in kinds.most_common():
        yield f"{count:>6}  {what}"
    yield ""
    yield f"{'own':>6} {'calls':>6}  function (all: functions.txt)"
    yield from functions[:SHOWN]
    yield ""
    yield f"{'':>6}  line, of opendxg and user space (all: lines.txt; in order: trace.txt)"
    yield from by_line[:SHOWN]


def main():
    directory, call = Path(sys.argv[1]), sys.argv[2]
    guest = Guest((directory / "places").read_text())
    summary = "\n".join(report(directory, call, guest, Places(guest))) + "\n"
    (directory / "summary.txt").write_text(summary)
    # They are large, and say no more.
    (directory / "log").unlink()
    (directory / "places").unlink()
    print(summary, end="")
    print(f"\nAlso in {directory}: summary.txt, functions.txt, lines.txt, trace.txt")


if __name__ == "__main__":
    try:
        main()
    except Fail as error:
        sys.exit(str(error))
