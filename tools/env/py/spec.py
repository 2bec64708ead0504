# SPDX-License-Identifier: MIT OR Apache-2.0
"""The requirements of Documentation/spec, and who cites them."""

import re
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]
PREFIXES = ("FEN", "GPU", "CPU", "RES", "MEM")

# The requirements that tests are known to show: `.ci/run` fails if one of them loses its last test.
SHOWN = TOP / "tools/requirements.shown"
EXCEPTIONS = TOP / "tools/requirements.exceptions"

# A requirement stands in bold where it is stated, and only there.
STATED = re.compile(rf"\*\*((?:{'|'.join(PREFIXES)})-\d+)\*\*")
# Names of Rust tests have underscores and small letters, also between two ids.
CITED = re.compile(rf"(?<![a-z0-9])({'|'.join(PREFIXES)})[-_](\d+)(?!\d)", re.I)


def order(id):
    """Sorts ids by kind, then by number."""
    prefix, number = id.split("-")
    return PREFIXES.index(prefix), int(number)


def requirements():
    """All ids, in order."""
    texts = sorted((TOP / "Documentation/spec").glob("*.md"))
    return sorted({id for text in texts for id in STATED.findall(text.read_text())}, key=order)


def exceptions():
    """The requirements that are not shown as they are written, and why."""
    lines = (line.partition("#")[0].strip() for line in EXCEPTIONS.read_text().splitlines())
    return {id: reason for id, _, reason in (line.partition(" ") for line in lines if line)}


def coverage(text):
    """Passages of the source of memory.md, each with the requirements for it (section 18)."""
    section = re.search(r"^## 18\. .*?(?=^## |\Z)", text, re.M | re.S).group()
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| ")]
    # The first one is the head.
    return {passage.strip(): sorted(cited(ids), key=order) for passage, ids in rows[1:]}


def not_shown(rows, known):
    """Those passages that have no requirement, or one that is not known to be shown."""
    lacking = {passage: [id for id in ids if id not in known] for passage, ids in rows.items()}
    return [f"{passage}: {' '.join(lacking[passage]) or 'no requirement'}"
            for passage, ids in rows.items() if lacking[passage] or not ids]


def shown():
    """The ids of the list of those that tests show."""
    lines = (line.partition("#")[0] for line in SHOWN.read_text().splitlines())
    return {id for line in lines for id in line.split()}


def cited(text):
    """The ids that a text names."""
    return {f"{prefix.upper()}-{int(number)}" for prefix, number in CITED.findall(text)}


def ranges(ids):
    """Ids of one kind in short: `FEN-1..3 7 9..10`."""
    numbers = [order(id)[1] for id in ids]
    parts, begin = [], 0
    for at, number in enumerate(numbers):
        if at + 1 < len(numbers) and numbers[at + 1] == number + 1:
            continue
        first = numbers[begin]
        parts.append(str(number) if first == number else f"{first}..{number}")
        begin = at + 1
    return f"{ids[0].split('-')[0]}-{' '.join(parts)}"
