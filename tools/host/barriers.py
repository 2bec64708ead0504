#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Leave out one full barrier at a time, and see whether the scene in loom that needs it fails.

Which scene that is, or why none can, is the table "Every full barrier" in
Documentation/memory-model.md. Prints TAP: "ok" is a barrier of which the table is right. With
--all each barrier is left out of all scenes, and those that fail are printed.

The barriers are numbered in a copy of the sources, where each asks first whether it is left out: so
one build serves all of them.
"""

import json
import os
import re
import subprocess
import sys

import mutants

REPO = mutants.REPO
TABLE = REPO / "Documentation/memory-model.md"
BARRIER = re.compile(r"^( *)(?:platform::)?full_fence\(\);$", re.M)
FUNCTION = re.compile(r"\bfn (\w+)")
ROW = re.compile(r"^\| `([\w/]+\.rs)` \| `(\w+)` \| (red|green|not run): (.*) \|$", re.M)
# The scenes that take long, and that are about other things than barriers.
SLOW = ["gate::", "mutant_", "m2_two"]
SECONDS = 300

ASKED = """
/// A full barrier, unless it is the one that is left out.
pub(crate) fn barrier(number: u32) {
    static LEFT_OUT: std::sync::OnceLock<Option<u32>> = std::sync::OnceLock::new();
    let left_out = LEFT_OUT.get_or_init(|| {
        std::env::var("OPENDXG_WITHOUT_BARRIER").ok()?.parse().ok()
    });

    if *left_out != Some(number) {
        full_fence();
    }
}
"""


def sites(top):
    """Where the barriers are, below `top`: files, in order, and the functions of their barriers."""
    for folder in mutants.FOLDERS:
        for path in sorted((top / "rust" / folder).rglob("*.rs")):
            text = path.read_text()
            functions = [
                FUNCTION.findall(text[: found.start()])[-1] for found in BARRIER.finditer(text)
            ]
            if functions:
                yield path, functions


def rows():
    """What the table says: file, function, verdict, and a scene or a reason."""
    return ROW.findall(TABLE.read_text())


def known(top):
    """File and function of each barrier."""
    for path, functions in sites(top):
        for function in functions:
            yield str(path.relative_to(top / "rust")), function


def number_them():
    """Has each barrier of the copy ask whether it is left out."""
    number = 0

    def asks(found):
        nonlocal number
        number += 1
        return f"{found[1]}crate::platform::barrier({number - 1});"

    for path, _ in sites(mutants.WORK):
        path.write_text(BARRIER.sub(asks, path.read_text()))
    platform = mutants.WORK / "tools/host/src/platform.rs"
    platform.write_text(platform.read_text() + ASKED)


def build():
    """The program with all scenes."""
    environment = mutants.environment("loom")
    command = ["cargo", "test", "--quiet", "-p", "host", "--release", "--no-run"]
    run = subprocess.run(
        command + ["--message-format=json"],
        cwd=mutants.WORK / "tools",
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    built = (json.loads(line) for line in run.stdout.splitlines())
    return [line["executable"] for line in built if line.get("executable")][-1]


def failed(program, number, arguments):
    """The scenes that fail without a barrier; `None` if they do not end."""
    environment = dict(os.environ, OPENDXG_WITHOUT_BARRIER=str(number), RUST_BACKTRACE="0")
    try:
        run = subprocess.run(
            [program, *arguments],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    return re.findall(r"^test (\S+).* \.\.\. FAILED$", run.stdout.decode(), re.M)


def problem_of(program, paths, number, verdict, what):
    """What is wrong with a row of the table; None if it is right."""
    scene = re.match(r"`(\w+)`", what)
    if verdict == "not run":
        return None
    if not scene or scene[1] not in paths:
        return "the scene is not there"
    without = failed(program, number, ["--exact", paths[scene[1]]])
    if failed(program, "none", ["--exact", paths[scene[1]]]) != []:
        return f"{scene[1]} fails with all barriers"
    if without is None:
        return f"{scene[1]} does not end"
    if (verdict == "red") != bool(without):
        return f"{scene[1]} is {'red' if without else 'green'}"
    return None


def main():
    mutants.copy_tree()
    barriers = list(known(mutants.WORK))
    number_them()
    program = build()
    listed = subprocess.run([program, "--list"], stdout=subprocess.PIPE, check=True).stdout.decode()
    paths = {path.split("::")[-1]: path for path in re.findall(r"^(\S+): test$", listed, re.M)}
    if sys.argv[1:] == ["--all"]:
        skipped = [argument for slow in SLOW for argument in ("--skip", slow)]
        for number, (file, function) in enumerate(barriers):
            print(file, function, failed(program, number, skipped), flush=True)
        return 0
    table = rows()
    numbers = {}
    for number, barrier in enumerate(barriers):
        numbers.setdefault(barrier, []).append(number)
    print(f"TAP version 13\n1..{len(table)}", flush=True)
    status = 0
    for count, (file, function, verdict, what) in enumerate(table, 1):
        left = numbers.get((file, function))
        problem = problem_of(program, paths, left.pop(0), verdict, what) if left else "not there"
        status |= problem is not None
        print(f"{'not ok' if problem else 'ok'} {count} - without that of {file}: {function}: "
              f"{verdict}: {what}", flush=True)
        if problem:
            print(f"# {problem}", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
