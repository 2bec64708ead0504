# SPDX-License-Identifier: MIT OR Apache-2.0
"""How the engine core and the driver interface are built: what they name, and what they do not."""

import re
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import imports  # noqa: E402

RUST = imports.TOP / "rust"

# What the core takes of its one facade: the full barrier, and memory for its translation cache.
FACADE = {"full_fence", "places", "Places"}
# What would be a thread, a lock, memory, or a number with a point.
FOREIGN = re.compile(
    r"\b(?:unsafe|f32|f64|static mut|std|alloc|kernel|loom|Mutex|SpinLock|RwLock|Box|Vec|String|Arc|spawn|"
    r"Atomic[UIBP]\w*)\b|\bfence(?=\()|\bplatform::(?:Lock|ShortLock|Shared|Boxed)\b"
)
# Who is above the driver interface. The module's entry and configfs make adapters, so they name
# the driver of software adapters.
OS_PART = ("dxgk", "error", "file", "ioctl", "logic", "sys", "uapi")
POINTER = re.compile(r"\*(?:const|mut)\s+\w|\bNonNull\b|&raw\b")
NUMBER = re.compile(r"\b(\w+(?:Id|Cookie))\b")


def code(path):
    """A source without its comments."""
    return re.sub(r"//[^\n]*", "", path.read_text())


def core_complaints(root):
    """What files of the engine core name that they must not."""
    for path in sorted(root.rglob("*.rs")):
        source = code(path)
        for path_of_use in imports.paths(source):
            steps = path_of_use.split("::")
            if steps[:2] == ["crate", "platform"]:
                if steps[2] not in FACADE:
                    yield f"{path.name}: {path_of_use}"
            elif steps[0] == "crate" and steps[1] != "engine":
                yield f"{path.name}: {path_of_use}"
        for tree in re.findall(r"\buse\s+([^;]+);", source):
            root_of_use = re.match(r"\w+", tree)[0]
            is_own = (path.parent / f"{root_of_use}.rs").exists() or (path.parent / root_of_use).is_dir()
            # The variants of an enum of this file begin with a large letter.
            is_own |= root_of_use[0].isupper()
            if root_of_use not in ("core", "crate", "super", "self") and not is_own:
                yield f"{path.name}: {root_of_use}"
        for word in FOREIGN.findall(re.sub(r"\bfull_fence\b", "", source)):
            yield f"{path.name}: {word}"


def namers(modules, folders):
    """Modules of folders that name a driver, without tests."""
    for name, used in modules.imports.items():
        is_test = any("test" in part for part in name)
        if name[0] in folders and not is_test and any(target[0] == "kmd" for target in used):
            yield "::".join(name)


class Engine(unittest.TestCase):
    """Sections 10 and 11 of the specification of the GPU."""

    def test_core_is_alone(self):
        """GPU-107 GPU-109 the engine core uses `core` and the facade, and nothing else."""
        self.assertEqual(list(core_complaints(RUST / "engine")), [])

    def test_core_takes_memory_once(self):
        """GPU-107 an engine takes memory when it is made, and never again."""
        taken = [path.name for path in sorted((RUST / "engine").rglob("*.rs"))
                 for _ in re.finditer(r"\bplaces\(\)", code(path))]
        self.assertEqual(taken, ["translation.rs"])
        new = re.search(r"^    pub fn new\(.*?^    \}", code(RUST / "engine/translation.rs"), re.M | re.S)
        self.assertIn("places()", new[0])
        callers = [path.name for path in sorted((RUST / "engine").rglob("*.rs"))
                   for _ in re.finditer(r"\bTlb::new\(", code(path))]
        self.assertEqual(callers, ["command_processor.rs"])
        new = re.search(r"^    pub fn new\(.*?^    \}", code(RUST / "engine/command_processor.rs"), re.M | re.S)
        self.assertIn("Tlb::new(", new[0])

    def test_core_is_safe(self):
        """GPU-111 there is no unsafe code in the core, and all its builds forbid it."""
        for source in sorted((RUST / "engine").rglob("*.rs")):
            self.assertNotRegex(code(source), r"\bunsafe\b", source.name)
        for builder in ("rust/dxg.rs", "tools/host/src/lib.rs", "tools/fuzz/targets/engine.rs"):
            attributes = re.search(r"((?:^#\[[^\n]*\n)+)^mod engine;", code(imports.TOP / builder), re.M)
            with self.subTest(builder=builder):
                self.assertIn("#[forbid(unsafe_code)]", attributes and attributes[1] or "")

    def test_drivers_are_below(self):
        """GPU-102 no file of the OS part names a driver, and drivers have one trait."""
        modules = imports.Modules(RUST)
        self.assertEqual(list(namers(modules, OS_PART)), [])
        drivers = [path.parent.name for path in sorted((RUST / "kmd").rglob("*.rs"))
                   if re.search(r"^impl Kmd for \w+ \{", code(path), re.M)]
        self.assertEqual(drivers, ["fake", "soft"])

    def test_handles_are_numbers(self):
        """GPU-103 ids and cookies are 64-bit numbers, and no argument is a pointer."""
        types = code(RUST / "ddi/types.rs")
        numbers = re.search(r"^numbers! \{(.*?)^\}", types, re.M | re.S)[1]
        self.assertIn("pub struct $name(pub u64);", types)
        made = set(NUMBER.findall(numbers))
        self.assertGreater(len(made), 10)
        for path in sorted((RUST / "ddi").rglob("*.rs")):
            source = code(path).replace("PhantomData<*mut ()>", "")
            with self.subTest(file=path.name):
                self.assertNotRegex(source, POINTER)
                self.assertEqual(set(re.findall(r"\bstruct (\w+(?:Id|Cookie))\b", source)), set())
        for path in (RUST / "ddi/mod.rs", RUST / "ddi/types.rs"):
            self.assertLessEqual(set(NUMBER.findall(code(path))), made, path.name)

    def test_the_rules_can_fail(self):
        """What a core must not name is seen, and so is a driver above the interface."""
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory)
            for name, source in {
                "engine/mod.rs": "mod list; // unsafe\nuse list::List;\nuse core::mem;\n"
                                 "use crate::platform::{full_fence, shared};\nuse crate::ddi::Kmd;\n",
                "engine/list.rs": "use std::vec;\nfn f(x: f32) { unsafe { fence(x) } }\n",
                "dxgk/adapter.rs": "use crate::kmd::soft::SoftKmd;\n",
                "dxgk/tests.rs": "use crate::kmd::soft::SoftKmd;\n",
                "kmd/soft.rs": "",
            }.items():
                (root / name).parent.mkdir(exist_ok=True)
                (root / name).write_text(source)
            found = sorted(core_complaints(root / "engine"))
            modules = imports.Modules(root)
        self.assertEqual(found, ["list.rs: f32", "list.rs: fence", "list.rs: std", "list.rs: std",
                                 "list.rs: unsafe", "mod.rs: crate::ddi::Kmd",
                                 "mod.rs: crate::platform::shared"])
        self.assertEqual(list(namers(modules, OS_PART)), ["dxgk::adapter"])
        self.assertRegex("fn f(at: *mut u8)", POINTER)


if __name__ == "__main__":
    unittest.main()
