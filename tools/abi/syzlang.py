#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""tools/abi/syzlang.py [OUTPUT]: describe every call of the headers in uapi/ in syzlang.

syzlang is the language in which syzkaller knows system calls. The file it makes,
Documentation/abi/dxg.txt, can be put into syzkaller's sys/linux, and make fuzz-ioctl reads it, too.
The numbers of the calls come from Documentation/abi/ioctls.tsv, everything else from the headers:
members and their types from the C, and what they are from the comments. In those [in] and [out]
are directions, "pointer to T[]" an array, "mask constants" flags, and so on.
"""

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
OUTPUT = REPO / "Documentation/abi/dxg.txt"

HEAD = """\
# SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note
# The calls of /dev/dxg in syzlang. Made by tools/abi/syzlang.py from the headers in uapi/ and from
# ioctls.tsv.

resource fd_dxg[fd]

openat$dxg(fd const[0xffffffffffffff9c], file ptr[in, string["/dev/dxg"]], flags const[0x2], mode const[0x0]) fd_dxg

# The number of an eventfd, in a slot of 64 bits.
resource dxg_event[int64]: 0xffffffffffffffff

eventfd2$dxg(initval const[0x0], flags const[0x800]) dxg_event

# The descriptor of an NT handle, or of another file that a call makes.
resource dxg_nt[int64]: 0xffffffffffffffff

read$dxg(fd dxg_nt, buf ptr[out, array[int8, 64]], count const[0x40])
close$dxg(fd dxg_nt)

resource dxg_luid[int32]
resource dxg_gpu_address[int64]: 0x0, 0x10000

# Local handles, and global ones.
resource dxg_handle[int32]: 0x0, 0x40000000, 0x2

# A slot for a handle of any kind.
dxg_slot [
	handle	dxg_handle_slot
	nt	dxg_nt
]

dxg_handle_slot {
	handle	dxg_handle
	upper	const[0x0, int32]
}

"""

# Local handles, and global ones: the end of a member's name, and what it is a handle of.
HANDLES = [
    ("HwQueue|HwQueueArray", "dxg_hw_queue"),
    ("HwContext", "dxg_context"),
    ("PagingQueue", "dxg_paging_queue"),
    ("KeyedMutex", "dxg_keyed_mutex"),
    ("Doorbell", "dxg_doorbell"),
    ("SharedHandle|GlobalShare", "dxg_global"),
    ("Context|ContextArray|context", "dxg_context"),
    ("Device|device", "dxg_device"),
    ("Adapter", "dxg_adapter"),
    ("Resources?", "dxg_resource"),
    ("Allocation|Allocations|AllocationList|RingBuffer|RingBufferControl|WrittenPrimaries|HandleList"
     "|AllocationHandles|HistoryBufferArray", "dxg_allocation"),
    ("SyncObject|SyncObjects|ObjectHandleArray|ObjectHandles|Fence|FenceObject|syncobj|Object"
     "|ObjectHandleList", "dxg_sync_object"),
]

# Members whose comment says it in words of its own: struct and member, type.
EXCEPTIONS = {
    ("d3dkmt_opensyncobjectfromsyncfile", "sync_file_handle"): "dxg_nt",
    ("d3dkmt_waitsyncfile", "sync_file_handle"): "dxg_nt",
    ("dxg_unicode_string", "Length"): "bytesize[Buffer, int16]",
    # The array that these are about is in a union.
    ("D3DKMT_CREATEALLOCATION", "NumAllocations"): "int32[0x1:0x3]",
    ("D3DKMT_OPENRESOURCE", "NumAllocations"): "int32[0x1:0x3]",
    # What the software adapter takes.
    ("D3DDDI_ALLOCATIONINFO2", "pPrivateDriverData"): "ptr64[inout, array[opendxg_allocation_data]]",
    ("D3DDDI_ALLOCATIONINFO2", "PrivateDriverDataSize"): "bytesize[pPrivateDriverData, int32]",
    ("opendxg_allocation_data", "magic"): "const[0x41475844, int32]",
    ("opendxg_allocation_data", "version"): "const[0x1, int32]",
    ("opendxg_allocation_data", "size"): "int64[0x1000:0x10000, 0x1000]",
    ("opendxg_allocation_data", "pitch"): "int64",
    ("opendxg_allocation_data", "flags"): "int32[0x0:0x7]",
}

INTEGERS = {"__u8": 1, "__u16": 2, "__u32": 4, "__s32": 4, "__u64": 8, "__aligned_u64": 8, "__s64": 8,
            "__aligned_s64": 8, "int": 4}

MEMBER = re.compile(r"(?:struct\s+)?(\w+)\s+(\w+)\s*(?:\[([^\]]+)\])?;")


BYTES = re.compile(r"address of (?!__u32|__s64|an __s64|struct|a D3D)|UTF-16|zero-terminated")

# Descriptors in a slot of 64 bits, and masks that have a prefix and no type.
FILES = re.compile("NT handle|descriptor|weak reference|process handle")
MASKS = re.compile(r"\b(OPENDXG_\w+)_\*? mask|\b(OPENDXG_[A-Z]+)_\w+ or 0|0 or (OPENDXG_[A-Z]+)_")


@dataclass
class Member:
    """A member: of a struct, or an arm of a union."""
    name: str
    ctype: str
    count: str | None
    arms: list = field(default_factory=list)
    is_union: bool = False


@dataclass
class Struct:
    """A struct or a union of the headers."""
    name: str
    members: list
    docs: dict
    is_union: bool = False
    is_packed: bool = False


class Headers:
    """What the headers say."""

    def __init__(self):
        self.structs, self.flags, self.typedefs, self.constants = {}, {}, {}, {}
        for path in sorted((REPO / "uapi").rglob("*.h")):
            self.read(path.read_text())
        self.typedefs["DXG_LUID"] = "LUID"

    def read(self, text):
        """Take in a header."""
        self.read_constants(text)
        plain = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        for kind, name in re.findall(r"typedef\s+(?:struct\s+)?(\w+)[^;{]*?\b(\w+);", plain):
            self.typedefs[name] = kind
        declared = re.compile(
            r"(?P<doc>/\*\*(?:(?!\*/).)*\*/\s*)?(?:__extension__\s+)?(?P<typedef>typedef\s+)?"
            r"(?P<kind>struct|union)\s+(?P<tag>\w+)?\s*\{", re.S)
        position = 0
        while match := declared.search(text, position):
            end = closing(text, match.end())
            body = re.sub(r"/\*.*?\*/", "", text[match.end():end], flags=re.S)
            after = re.match(r"\}([^;]*?)(\w+)?\s*;", text[end:])
            name = after[2] if match["typedef"] else match["tag"]
            if name:
                self.structs[name] = Struct(name, members(body), docs(match["doc"] or ""),
                                            match["kind"] == "union", "packed" in after[1])
            position = end

    def read_constants(self, text):
        """Take in masks and enumerations."""
        plain = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        for name, value in re.findall(r"#define\s+(\w+)\s+(0x[0-9a-fA-F]+|\d+)\b", plain):
            self.constants[name] = int(value, 0)
        for tag, body in re.findall(r"enum\s+(\w+)\s*\{([^}]*)\}", plain):
            values = {}
            for entry in body.split(","):
                match = re.match(r"\s*(\w+)\s*=\s*(-?(?:0x[0-9a-fA-F]+|\d+))\s*$", entry)
                if match:
                    values[match[1]] = int(match[2], 0)
            self.constants |= values
            self.flags[tag.lstrip("_")] = list(values.values())

    def masks(self, prefix):
        """The values of the constants that begin so, but for what has no meaning."""
        return [value for name, value in self.constants.items()
                if name.startswith(prefix + "_") and not name.startswith(prefix + "_Reserved")]


def closing(text, position):
    """Where the brace that is open at `position` closes."""
    depth = 1
    while depth:
        position = re.compile(r"[{}]").search(text, position).end()
        depth += 1 if text[position - 1] == "{" else -1
    return position - 1


def docs(comment):
    """What a kernel-doc comment says about each member."""
    lines = re.sub(r"^\s*\* ?", "", comment, flags=re.M)
    found = re.findall(r"^@(\w+):\s*(.*?)(?=^@\w+:|^\s*$|\Z)", lines, flags=re.M | re.S)
    return {name: " ".join(text.split()) for name, text in found}


def members(body):
    """The members of a body."""
    found, position = [], 0
    nested = re.compile(r"\s*(?:__extension__\s+)?(union|struct)\s*\{")
    while position < len(body):
        if match := nested.match(body, position):
            end = closing(body, match.end())
            name = re.compile(r"\}\s*(\w*)\s*;").match(body, end)
            found.append(Member(name[1], "", None, members(body[match.end():end]), match[1] == "union"))
            position = name.end()
        elif match := re.compile(r"\s*" + MEMBER.pattern).match(body, position):
            found.append(Member(match[2], match[1], match[3]))
            position = match.end()
        else:
            assert not body[position:].strip(), body[position:]
            break
    return found


class Writer:
    """Writes the types that are reached, each once."""

    def __init__(self, headers):
        self.headers = headers
        self.types, self.sets, self.handles = {}, {}, set()

    def struct(self, name):
        """The name of the type of a struct, written with all it needs."""
        if name not in self.types:
            self.types[name] = None
            found = self.headers.structs[name]
            self.types[name] = self.body(name, found.members, found.docs, found.is_union)
            if found.is_packed:
                self.types[name] = self.types[name][:-1] + " [packed]\n"
        return name

    def body(self, name, parts, said, is_union):
        """A type with these members."""
        lines, claimed = [], self.lengths(parts, said)
        for number, part in enumerate(parts):
            if "never the ioctl" in said.get(part.name, ""):
                continue
            if part.arms:
                inner = f"{name}_{part.name or f'u{number}'}"
                self.types[inner] = None
                self.types[inner] = self.body(inner, part.arms, said, part.is_union)
                lines.append((part.name or f"u{number}", inner, ""))
            else:
                lines.append((part.name, *self.member(name, part, said.get(part.name, ""), claimed)))
        width = max(len(line[0]) for line in lines)
        text = "".join(f"\t{name:{width}}\t{kind}{f' ({way})' if way else ''}\n" for name, kind, way in lines)
        return f"{name} [\n{text}]\n" if is_union else f"{name} {{\n{text}}}\n"

    def lengths(self, parts, said):
        """Which member says how long the array behind which pointer is. A name in common decides,
        then who is next."""
        claimed = {}
        for wants_name in (True, False):
            for part in parts:
                text = said.get(part.name, "")
                array = re.search(r"(?:pointer to|address of) (?:struct )?\S+\[\]|as in D3D", text)
                is_bytes = BYTES.search(text) or re.match(r"p[A-Z]", part.name) and not array
                if part.ctype != "__aligned_u64" or not (array or is_bytes) or part.name in claimed.values():
                    continue
                word = r"[Ss]ize|Bytes" if is_bytes else r"[Cc]ount|^Num"
                stem = re.sub(r"^ph?(?=[A-Z])|(Handle)?(Array|List)$|s$", "", part.name).lower()
                names = [other.name for other in parts]
                fits = [name for other, name in zip(parts, names)
                        if INTEGERS.get(other.ctype) == 4 and re.search(word, name) and name not in claimed
                        and not said.get(name, "").startswith("[out]")
                        and (stem in name.lower() or not wants_name)]
                near = min(fits, default=None, key=lambda name: abs(names.index(name) - names.index(part.name)))
                if near:
                    claimed[near] = part.name
        return claimed

    def member(self, owner, part, said, claimed):
        """The type of a member, and its direction where it has one of its own."""
        way = {"[in]": "in", "[out]": "out", "[in,out]": "inout"}.get(said.split(" ")[0], "")
        kind = EXCEPTIONS.get((owner, part.name)) or self.kind(owner, part, said, way, claimed)
        if (of := re.search(r"array\[(\w+)\]", kind)) and of[1] in self.headers.structs:
            self.struct(of[1])
        if part.count:
            kind = f"array[{kind}, {self.number(part.count)}]"
        if kind.startswith("ptr64") and way == "out":
            way = "in"
        return kind, way if way != "in" else ""

    def number(self, text):
        """The length of an array in a struct."""
        return int(text, 0) if text[0].isdigit() else self.headers.constants[text]

    def kind(self, owner, part, said, way, claimed):
        """The type of one of the members."""
        ctype = part.ctype
        if ctype == "D3DKMT_HANDLE":
            return self.handle(part.name)
        if ctype == "D3DGPU_VIRTUAL_ADDRESS":
            return "dxg_gpu_address"
        while ctype in self.headers.typedefs and ctype not in INTEGERS:
            if found := self.headers.masks(ctype) or self.headers.flags.get(ctype):
                return self.set_of(ctype, found, self.headers.typedefs[ctype])
            ctype = self.headers.typedefs[ctype]
        if ctype in self.headers.structs:
            return self.struct(ctype)
        bits = f"int{8 * INTEGERS[ctype]}"
        if part.name.startswith("_pad") or re.match(r"(\[in\] )?0$|not used", said):
            return f"const[0x0, {bits}]"
        if exact := re.match(r"\[in\] (\d+)$", said):
            return f"const[{int(exact[1]):#x}, {bits}]"
        if owner == "LUID" and part.name == "LowPart" or part.name.endswith("luid_low"):
            return "dxg_luid"
        if part.name in claimed:
            return f"len[{claimed[part.name]}, {bits}]"
        if bits == "int64" and way != "out" and (pointer := self.pointer(part, said, way)):
            return pointer
        if bits == "int64" and "eventfd" in said or part.name in ("CpuEventHandle", "Event"):
            return "dxg_event"
        if bits == "int64" and re.search("local (or|handle)|the handle$", said):
            return "dxg_slot"
        if bits == "int64" and (part.name == "hNtHandle" or FILES.search(said)):
            return "dxg_nt"
        if bits == "int32" and re.search(r"local handle\b", said):
            return "dxg_handle"
        if prefix := MASKS.search(said):
            name = next(group for group in prefix.groups() if group)
            return self.set_of(name, self.headers.masks(name), ctype)
        if "mask constants" in said or part.name == "Flags" and self.headers.masks(f"{owner}_{part.name}"):
            return self.set_of(f"{owner}_{part.name}", self.headers.masks(f"{owner}_{part.name}"), ctype)
        if enum := re.search(r"enum (\w+)", said):
            return self.set_of(enum[1], self.headers.flags[enum[1]], ctype)
        if small := re.search(r"\[in\] (\d+)\.\.(\d+)\b", said):
            return f"int{8 * INTEGERS[ctype]}[{small[1]}:{small[2]}]"
        return bits

    def pointer(self, part, said, way):
        """The type of a pointer, if it is one."""
        array = re.search(r"(?:pointer to|address of) (?:struct )?(\w+)\[\]", said)
        one = re.search(r"pointer to (\w+)|address of (?:an? )?(__s64|D3D\w+)", said)
        way = "out" if "to fill" in said or "filled" in said else "inout" if way == "inout" else "in"
        if "as in D3DKMT_ENUMADAPTERS2" in said:
            return f"ptr64[out, array[{self.struct('D3DKMT_ADAPTERINFO')}]]"
        if array or one:
            name = array[1] if array else one[1] or one[2]
            if name in ("UNICODE_STRING", "OBJECT_ATTRIBUTES"):
                name = self.headers.typedefs[name]
            if name == "D3DKMT_HANDLE":
                kind = self.handle(part.name)
            elif name in self.headers.structs:
                kind, way = self.struct(name), "inout"
            elif name in ("one", "D3DKMT_PTR_TYPE"):
                return "ptr64[out, dxg_nt]"
            else:
                plain = self.headers.typedefs.get(name, name)
                kind = f"int{8 * INTEGERS.get(plain, 4)}"
            return f"ptr64[{way}, array[{kind}]]" if array else f"ptr64[{way}, {kind}]"
        if "GPU address" not in said and (BYTES.search(said) or part.name.startswith("p")):
            return "ptr64[inout, array[int8]]"
        return None

    def handle(self, name):
        """The resource that a member with this name is."""
        for ends, kind in HANDLES:
            if re.search(rf"(?:{ends})$", name):
                self.handles.add(kind)
                return kind
        return "dxg_handle"

    def set_of(self, name, values, ctype):
        """Flags with these values."""
        while ctype not in INTEGERS:
            ctype = self.headers.typedefs[ctype]
        size = INTEGERS[ctype]
        if not values:
            return f"int{8 * size}"
        name = f"{name}_values"
        self.sets[name] = ", ".join(dict.fromkeys(hex(value % (1 << 8 * size)) for value in values))
        return f"flags[{name}, int{8 * size}]"


def describe():
    """The text of the file."""
    headers = Headers()
    writer = Writer(headers)
    calls, text = [], (REPO / "uapi/dxg.h").read_text()
    on_files = {name: "dxg_nt" for name in re.findall(r"@DXG_NR_(\w+):[^@]*?(?:also on an NT|only on a)",
                                                     re.sub(r"\s*\n \*\s*", " ", text))}
    numbers = {int(value, 0): name for path in (REPO / "uapi").rglob("*.h")
               for name, value in re.findall(r"DXG_NR_(\w+) = (0x\w+)", path.read_text())}
    for line in (REPO / "Documentation/abi/ioctls.tsv").read_text().splitlines():
        if line.startswith("#"):
            continue
        number, struct, _, code = line.split("\t")
        name = numbers[int(number, 0)]
        argument = "arg const[0x0]" if struct == "-" else f"arg ptr[inout, {writer.struct(struct)}]"
        for suffix, fd in (("", "fd_dxg"), ("_on_file", on_files.get(name))):
            if fd:
                calls.append(f"ioctl${'DXG_'}{name}{suffix}(fd {fd}, cmd const[{code}], {argument})\n")
    handles = "".join(f"resource {name}[dxg_handle]\n" for name in sorted(writer.handles))
    sets = "".join(f"{name} = {values}\n" for name, values in sorted(writer.sets.items()))
    types = "\n".join(writer.types[name] for name in sorted(writer.types))
    return f"{HEAD}{handles}\n{''.join(calls)}\n{types}\n{sets}"


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else OUTPUT).write_text(describe())
