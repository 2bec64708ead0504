#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Check the models of the protocol of native fences: Spin, and herd7 where it is.

Runs inside the tree, with the place of the unpacked packages as argument. Prints TAP. Every scene
of `native_fence.pml` must be without an error, and every mutant must have one, unless the table
says why it has none. Every file of `litmus` says which verdict it has.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import cases

HERE = pathlib.Path(__file__).resolve().parent
WORK = HERE.parents[1] / "build/verify"
MODEL = HERE / "native_fence.pml"

SCENES = {
    "SIGNALS": "FEN-71 FEN-80 M1 M2 M8 M11 M16 two engines, two waiters, records that merge",
    "CANCEL": "FEN-85 FEN-86 M14 a waiter that leaves while interrupts are under way",
    "REWIND": "FEN-82 M5 M7 an engine, and a CPU that signals or goes back",
    "PULSE": "FEN-82 M6 an engine that takes its value back, and stores it again or not",
    "SHADOW": "FEN-75 M10 MonitoredValue in the CMP, which looks for itself",
    "GPU_WAIT": "FEN-102 M19 a queue that goes to sleep while the CPU signals",
    "DESTROY": "FEN-88 M13 M15 the last handle goes while somebody waits",
    "LOG": "FEN-99 M24 an engine writes over the log that the worker is reading",
}

# (scene, mutants, why nothing is lost, if so)
MUTANTS = [
    ("SIGNALS", "NO_ENGINE_BARRIER", None),
    ("SIGNALS", "NO_UPDATE_BARRIER", None),
    ("SIGNALS", "NO_RESAMPLE", None),
    ("SIGNALS", "NO_RESAMPLE_IN_REAP", "only lowering MonitoredValue needs it (FEN-72)"),
    ("SIGNALS", "NO_WAIT_LOCK", None),
    ("SIGNALS", "NO_WORKER_LOCK", None),
    ("SIGNALS", "BAD_LATE_CLEAR", None),
    ("SIGNALS", "BAD_MONITORED_IS_THE_VALUE", None),
    ("CANCEL", "NO_UPDATE_ON_CANCEL", None),
    ("SHADOW", "NO_RESAMPLE", "the CMP looks for itself"),
    ("SHADOW", "NO_CMP_LOOK", "the OS looks again after the CMP has answered (A4)"),
    ("SHADOW", "NO_RESAMPLE NO_CMP_LOOK", None),
    ("SHADOW", "NO_RESAMPLE NO_CMP_BARRIER", None),
    ("GPU_WAIT", "NO_CPU_BARRIER", None),
    ("GPU_WAIT", "NO_SLEEP_BARRIER", None),
    ("GPU_WAIT", "NO_SECOND_LOOK", None),
    ("DESTROY", "NO_REFERENCE", None),
    ("LOG", "NO_LOOK_AFTER_LOSS", None),
    ("LOG", "NO_SECOND_HEADER", None),
]

# What a checker is built and run with: all that must never be, and what must come in the end.
SAFETY = (["-DSAFETY", "-DNOCLAIM"], [])
LIVENESS = (["-DNFAIR=5"], ["-a", "-f"])


class Tap:
    """Numbers and counts what is printed."""

    def __init__(self):
        self.number = 0
        self.failed = False

    def result(self, good, title, *, note=None, skip=None):
        self.number += 1
        self.failed |= not good
        end = f" # SKIP {skip}" if skip else ""
        print(f"{'ok' if good else 'not ok'} {self.number} - {title}{end}", flush=True)
        if note:
            print(f"# {note}", flush=True)


def spin(root, defines):
    """The first error of a model and what was explored; None for no error."""
    flags = [f"-D{name}" for name in defines]
    explored = []
    place = WORK / "-".join(defines)
    for compile_flags, run_flags in (SAFETY, LIVENESS):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        subprocess.run(
            [root / "usr/bin/spin", "-a", *flags, MODEL],
            cwd=place,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        subprocess.run(
            ["gcc", "-w", "-O1", "-DVECTORSZ=2048", *compile_flags, "-o", "pan", "pan.c"],
            cwd=place,
            check=True,
        )
        output = subprocess.run(
            ["./pan", "-m1000000", "-w22", *run_flags], cwd=place, capture_output=True, text=True
        ).stdout
        states = re.search(r"(\d+) states, stored", output)
        depth = re.search(r"depth reached (\d+), errors: (\d+)", output)
        if not states or not depth or "max search depth too small" in output:
            # Neither green nor red.
            raise RuntimeError(f"{defines}: the search did not end: {output}")
        explored.append(f"{states[1]} states, depth {depth[1]}")
        if depth[2] != "0":
            first = re.search(r"pan:\d+: (.*) \(at depth", output)
            return first[1] if first else "an error", explored
    return None, explored


def in_parallel(root, all_defines):
    """The results of `spin` in order, as many at a time as there are processors."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(lambda defines: spin(root, defines), all_defines)


def scenes(tap, root):
    results = in_parallel(root, [[scene] for scene in SCENES])
    for title, (error, explored) in zip(SCENES.values(), results):
        note = error or f"safety: {explored[0]}; liveness: {explored[1]}"
        tap.result(error is None, f"spin: {title}", note=note)


def mutants(tap, root):
    results = in_parallel(root, [[scene, *mutant.split()] for scene, mutant, _ in MUTANTS])
    for (scene, mutant, reason), (error, explored) in zip(MUTANTS, results):
        title = f"spin: {scene} with {mutant}"
        if reason:
            tap.result(error is None, f"{title} stays green", note=error or reason)
        else:
            note = error or f"no error in {'; '.join(explored)}"
            tap.result(error is not None, f"{title} is red", note=note)


def litmus(tap, memory_model):
    herd = shutil.which("herd7")
    for file in sorted((HERE / "litmus").glob("*.litmus")):
        verdict = re.search(r"^ \* Verdict: (Never|Sometimes)$", file.read_text(), re.M)[1]
        title = f"litmus: {file.stem} is {verdict}"
        if not herd:
            tap.result(True, title, skip="not run: herd7 is not there, and Debian has none")
            continue
        output = subprocess.run(
            [herd, "-conf", "linux-kernel.cfg", file],
            cwd=memory_model,
            capture_output=True,
            text=True,
        ).stdout
        found = re.search(r"^Observation \S+ (\w+)", output, re.M)
        tap.result(found is not None and found[1] == verdict, title, note=found and found[0])


def main():
    root = pathlib.Path(sys.argv[1])
    memory_model = os.path.join(os.environ.get("KSRC", "."), "tools/memory-model")
    tap = Tap()
    print("TAP version 13")
    cases.check(tap, SCENES)
    began = time.monotonic()
    scenes(tap, root)
    mutants(tap, root)
    print(f"# spin took {time.monotonic() - began:.0f} s", flush=True)
    litmus(tap, memory_model)
    print(f"1..{tap.number}")
    return int(tap.failed)


if __name__ == "__main__":
    sys.exit(main())
