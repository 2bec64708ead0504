#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""tools/images/parts.py FILE.svg: draw the parts of opendxg, one row of boxes for each layer."""

import sys
from html import escape

WIDTH = 900
MARGIN = 16
GAP = 12
HEIGHT = 58
LABEL = 130
LARGE, SMALL = 14, 11.5
# Room that a character takes at most, in units of the font size; viewers have fonts of their own.
WIDE = 0.6

OTHERS, OURS, KERNEL, BELOW = "#eef1f4", "#d8e6f7", "#dcefdc", "#f7e6d0"

# What stands at the left of a row, and its boxes: share of the width, colour, name, what it does.
ROWS = [
    ("programs", [
        (3, OTHERS, "C and C++ programs", "Wine, DXVK, compute runtimes"),
        (2, OTHERS, "Rust programs", "demo, tests, bench"),
    ]),
    ("user space", [
        (3, OURS, "libd3dkmt.so", "D3DKMT* with exact NTSTATUS; DXCore"),
        (2, OURS, "crate opendxg", "the same calls, typed"),
    ]),
    ("contract", [
        (1, OURS, "/dev/dxg", "the ioctls of uapi/*.h, also for clients without our library"),
    ]),
    ("opendxg.ko", [
        (1, KERNEL, "ioctl", "handlers: copy in once, check, act, copy out, commit"),
    ]),
    ("", [
        (2, KERNEL, "dxgk", "fences, resources, keyed mutexes, handles, shares"),
        (1, KERNEL, "dxgk/sched", "queues, waits, signals"),
        (1, KERNEL, "dxgk/vidmm", "GPU addresses, residency"),
    ]),
    ("", [
        (1, KERNEL, "logic", "rules without a kernel"),
        (1, KERNEL, "sys", "the only unsafe code"),
        (1, BELOW, "ddi, kmd", "drivers: a software GPU"),
        (1, BELOW, "engine", "executes packets"),
    ]),
    ("kernel", [
        (1, OTHERS, "Linux 7.2 and 7.3, unmodified", "scheduler, memory, files, dma-buf"),
    ]),
]


def text(x, y, size, words, anchor="middle", color="black", weight="normal"):
    return (f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" text-anchor="{anchor}" '
            f'font-weight="{weight}" fill="{color}">{escape(words)}</text>')


def box(x, y, width, color, name, does):
    for size, words in (LARGE, name), (SMALL, does):
        if len(words) * size * WIDE > width - 8:
            sys.exit(f"parts.py: {words!r} does not fit its box")
    middle = x + width / 2
    return [
        f'<rect x="{x:.0f}" y="{y}" width="{width:.0f}" height="{HEIGHT}" rx="6" '
        f'fill="{color}" stroke="#5f6b7a"/>',
        text(middle, y + 25, LARGE, name, weight="bold"),
        text(middle, y + 44, SMALL, does, color="#3c4652"),
    ]


def draw():
    lines = []
    y = MARGIN
    for label, boxes in ROWS:
        lines.append(text(MARGIN, y + HEIGHT / 2 + 5, LARGE, label, "start", "#5f6b7a"))
        left = MARGIN + LABEL
        room = WIDTH - MARGIN - left - GAP * (len(boxes) - 1)
        parts = sum(share for share, *_ in boxes)
        for share, color, name, does in boxes:
            width = room * share / parts
            lines += box(left, y, width, color, name, does)
            left += width + GAP
        y += HEIGHT + GAP
    height = y - GAP + MARGIN
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">',
        '<rect width="100%" height="100%" fill="white"/>',
        *lines,
        "</svg>",
        "",
    ])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: tools/images/parts.py FILE.svg")
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(draw())
