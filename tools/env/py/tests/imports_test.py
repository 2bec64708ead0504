# SPDX-License-Identifier: MIT OR Apache-2.0
"""The folders of the module use only those that architecture.md allows, and circles do not grow."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import imports  # noqa: E402

# The object graph itself is one circle: what an object can be, and what a resource holds.
LARGEST_IN_DXGK = 5


class Imports(unittest.TestCase):
    """What the sources import."""

    def test_folders_use_what_they_may(self):
        """No folder of rust/ imports one that the table does not give it."""
        table = imports.allowed(imports.PAGE.read_text())
        found = imports.Modules(imports.TOP / "rust").between_folders()
        self.assertGreater(len(found), 5)
        for folder, used in found.items():
            with self.subTest(folder=folder):
                self.assertIn(folder, table)
                self.assertLessEqual(set(used), table[folder])

    def test_circles_do_not_grow(self):
        """Files that import each other in a circle: only those of the object graph."""
        circles = imports.Modules(imports.TOP / "rust").circles()
        self.assertLessEqual(len(circles), 1, circles)
        self.assertLessEqual(max(map(len, circles), default=0), LARGEST_IN_DXGK)
        for circle in circles:
            self.assertEqual({name[0] for name in circle}, {"dxgk"})

    def test_handlers_are_in_no_circle(self):
        """Files of ioctl and of file, the way in, which nothing below may name."""
        for circle in imports.Modules(imports.TOP / "rust").circles():
            self.assertFalse({name[0] for name in circle} & {"ioctl", "file"}, circle)

    def test_the_rules_can_fail(self):
        """An import of every form is seen, and so is a circle."""
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory)
            for name, source in {
                "sys/mod.rs": "pub(crate) mod file;\n",
                "sys/file.rs": "use crate::{\n    dxgk::{self, object::Object}, //\n};\n",
                "dxgk/mod.rs": "mod object; // use crate::ioctl;\n",
                "dxgk/object.rs": "use super::table::Table;\nfn f() { crate::sys::file::g() }\n",
                "dxgk/table.rs": "pub(in crate::ioctl) struct T;\nuse super::object as other;\n"
                                 "mod tests {\n    use super::*;\n}\n",
                "ioctl/mod.rs": "",
            }.items():
                (root / name).parent.mkdir(exist_ok=True)
                (root / name).write_text(source)
            modules = imports.Modules(root)
        self.assertEqual(modules.between_folders(), {"sys": {"dxgk": 1}, "dxgk": {"sys": 1}})
        self.assertEqual(modules.imports["dxgk", "table"], {("dxgk", "object")})
        circle = [("dxgk", "object"), ("dxgk", "table"), ("sys", "file")]
        self.assertIn(circle[0], modules.circles()[0])
        self.assertEqual(set(circle) - set(modules.circles()[0]), set())
        page = "| `rust/sys` | wraps | `platform`, the kernel crate |\n"
        self.assertEqual(imports.allowed(page), {"sys": {"platform"}})


if __name__ == "__main__":
    unittest.main()
