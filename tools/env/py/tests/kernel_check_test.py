# SPDX-License-Identifier: MIT OR Apache-2.0
"""What is missing for a build of the module is named before anything is compiled."""

import re
import subprocess
import tempfile
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[4]
CHECK = TOP / "tools/kernel-check"
RUSTC = "rustc 1.85.1 (4eb161250 2025-03-15)"
NEEDED = re.findall(r"\w+", " ".join(re.findall(r"^\tdepends on (.*)$", (TOP / "Kconfig").read_text(), re.M)))
FILES = ["include/config/kernel.release", "rust/libkernel.rmeta", "rust/libcore.rmeta",
         "rust/libbindings.rmeta", "rust/libmacros.so", "scripts/target.json", "scripts/mod/modpost",
         "Module.symvers"]


class KernelCheck(unittest.TestCase):
    """tools/kernel-check on build directories from which something was taken."""

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.kdir = Path(place.name, "kernel")
        for name in FILES:
            self.write(name, "7.2.12\n" if name.endswith("kernel.release") else "")
        self.config([f"CONFIG_{name}=y" for name in NEEDED])
        self.bin = Path(place.name, "bin")
        self.bin.mkdir()
        for name, says in (("rustc", RUSTC), ("gcc", ""), ("make", ""), ("clang", ""), ("ld.lld", "")):
            self.program(name, says)
        for name in ("cat", "dirname", "sed", "tr"):
            (self.bin / name).symlink_to(f"/usr/bin/{name}")

    def write(self, name, text):
        """A file of the build directory."""
        path = self.kdir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def config(self, lines):
        """The kernel's configuration."""
        self.write(".config", "\n".join([*lines, f'CONFIG_RUSTC_VERSION_TEXT="{RUSTC}"', ""]))

    def program(self, name, says):
        """A program that the check finds."""
        (self.bin / name).write_text(f"#!/bin/sh\necho '{says}'\n")
        (self.bin / name).chmod(0o755)

    def complaints(self):
        """What the check says, by lines; its status has to agree."""
        done = subprocess.run(["/bin/sh", CHECK, self.kdir], text=True, capture_output=True, check=False,
                              env={"PATH": str(self.bin)})
        self.assertEqual(done.returncode, 1 if done.stderr else 0, done.stderr)
        self.assertEqual(done.stdout, "")
        return done.stderr.splitlines()

    def assert_one(self, *parts):
        """The check has one complaint, with these words in it."""
        found = self.complaints()
        self.assertEqual(len(found), 1, found)
        for part in parts:
            self.assertIn(part, found[0])
        self.assertRegex(found[0], r"^opendxg: error: .+\. Remedy: .+\.$")

    def test_a_complete_kernel_passes(self):
        """A directory with everything has no complaint."""
        self.assertGreater(len(NEEDED), 8)
        self.assertEqual(self.complaints(), [])

    def test_each_missing_file_is_named(self):
        """The file that was taken away is in the only complaint."""
        for name in FILES:
            with self.subTest(name=name):
                text = (self.kdir / name).read_text()
                (self.kdir / name).unlink()
                self.assert_one(name)
                self.write(name, text)

    def test_no_tree_at_all_is_said_first(self):
        """Without a configuration nothing else is told."""
        (self.kdir / ".config").unlink()
        self.assert_one("is not a kernel build tree", "install the headers")

    def test_headers_may_keep_their_configuration_elsewhere(self):
        """Headers packages have include/config/auto.conf only."""
        (self.kdir / ".config").rename(self.kdir / "include/config/auto.conf")
        self.assertEqual(self.complaints(), [])

    def test_each_missing_option_is_named(self):
        """An option that is off is named, and one that is a module will do."""
        for gone in NEEDED:
            with self.subTest(option=gone):
                self.config([f"CONFIG_{name}=m" for name in NEEDED if name not in (gone, "RUST")] +
                            (["CONFIG_RUST=y"] if gone != "RUST" else []))
                self.assert_one(f"CONFIG_{gone}")

    def test_each_missing_compiler_is_named(self):
        """rustc, the C compiler that the kernel was built by, and make."""
        for name in ("rustc", "gcc", "make"):
            with self.subTest(name=name):
                text = (self.bin / name).read_text()
                (self.bin / name).unlink()
                self.assert_one(f"there is no {name}")
                (self.bin / name).write_text(text)
                (self.bin / name).chmod(0o755)
        self.config([f"CONFIG_{name}=y" for name in NEEDED] + ["CONFIG_CC_IS_CLANG=y"])
        (self.bin / "gcc").unlink()
        self.assertEqual(self.complaints(), [])
        (self.bin / "ld.lld").unlink()
        self.assert_one("there is no ld.lld")

    def test_another_rustc_is_named_with_the_right_one(self):
        """Metadata is for one compiler."""
        self.program("rustc", "rustc 1.90.0 (aaaaaaaaa 2026-01-01)")
        self.assert_one("1.90.0", RUSTC)

    def test_kernels_that_are_too_old_are_refused(self):
        """7.2 is the first."""
        for release, good in (("6.12.9-amd64", False), ("7.1.9", False), ("7.1-rc1", False), ("7.2.0", True),
                              ("7.3.4+deb13-amd64", True), ("7.10.1", True), ("8.0.0", True)):
            with self.subTest(release=release):
                self.write("include/config/kernel.release", f"{release}\n")
                if good:
                    self.assertEqual(self.complaints(), [])
                else:
                    self.assert_one(release, "7.2 or newer")


if __name__ == "__main__":
    unittest.main()
