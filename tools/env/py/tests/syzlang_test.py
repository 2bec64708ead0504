# SPDX-License-Identifier: MIT OR Apache-2.0
"""The descriptions of calls in syzlang are those of the headers."""

import importlib.util
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[4]


def maker():
    """tools/abi/syzlang.py, which is a program."""
    spec = importlib.util.spec_from_file_location("syzlang", TOP / "tools/abi/syzlang.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Syzlang(unittest.TestCase):
    """Documentation/abi/dxg.txt."""

    def setUp(self):
        self.maker = maker()

    def test_it_is_in_step_with_the_headers(self):
        made = self.maker.describe()
        self.assertEqual(made, self.maker.OUTPUT.read_text(), "run tools/abi/syzlang.py")

    def test_comments_of_the_headers_are_understood(self):
        headers = self.maker.Headers()
        writer = self.maker.Writer(headers)
        writer.struct("D3DDDI_MAKERESIDENT")
        text = " ".join(writer.types["D3DDDI_MAKERESIDENT"].split())
        for wanted in ("hPagingQueue dxg_paging_queue ", "NumAllocations len[AllocationList, int32] (inout)",
                       "AllocationList ptr64[in, array[dxg_allocation]]",
                       "Flags flags[D3DDDI_MAKERESIDENT_FLAGS_values, int32]", "PagingFenceValue int64 (out)"):
            self.assertIn(wanted, text)


if __name__ == "__main__":
    unittest.main()
