# SPDX-License-Identifier: MIT OR Apache-2.0
"""What every script inside the private tree shares: paths, errors, long steps, locks."""

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

REPO = Path(os.environ["OPENDXG_REPO"])
CACHE = Path(os.environ["OPENDXG_CACHE"])
BUILD = REPO / "build"


class Fail(Exception):
    """An error that the user can do something about."""

    def __init__(self, what, remedy):
        super().__init__(f"opendxg: error: {what}. Remedy: {remedy}.")


def main(entry):
    """Run a script's entry point; a `Fail` becomes one line and status 1."""
    try:
        sys.exit(entry())
    except Fail as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


def say(text):
    """Tell the user something; standard output is kept for results."""
    print(text, file=sys.stderr, flush=True)


def need_space(megabytes, what):
    """Refuse to start a step that cannot end well."""
    free = shutil.disk_usage(CACHE).free >> 20
    if free < megabytes:
        raise Fail(f"no disk space: {what} needs {megabytes} MB in {CACHE}, {free} MB are free",
                   "free some space or set OPENDXG_CACHE to a larger file system")


@contextlib.contextmanager
def lock(path):
    """Hold an exclusive lock against other clones that share the cache."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another run that holds {path}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def tail(log, lines=1):
    """The last lines of a log file."""
    with open(log, "rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - 8192))
        text = file.read().decode(errors="replace").rstrip()
    return "\n".join(text.splitlines()[-lines:])


def step(label, log, command, **popen):
    """Run one long step with its output in `log`, showing that it is alive.

    On a terminal one line updates; otherwise a plain line comes every 20 and later 60 seconds.
    """
    terminal = sys.stderr.isatty()
    began = shown = time.monotonic()
    if not terminal:
        say(f"{label} ...")
    with open(log, "ab") as out:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out,
                                 stderr=subprocess.STDOUT, **popen)
        try:
            while True:
                try:
                    child.wait(1)
                    break
                except subprocess.TimeoutExpired:
                    pass
                now = time.monotonic()
                if not terminal and now - shown < (20 if now - began < 120 else 60):
                    continue
                shown = now
                last = tail(log).replace("\t", " ").strip()[:60]
                if terminal:
                    print(f"\r\033[K{label}: {now - began:.0f} s  {last}", end="", file=sys.stderr, flush=True)
                else:
                    say(f"{label}: {now - began:.0f} s so far  {last}")
        except BaseException:
            child.terminate()
            child.wait()
            raise
    if terminal:
        print("\r\033[K", end="", file=sys.stderr)
    if child.returncode:
        raise explain(label, log)
    say(f"{label}: done in {time.monotonic() - began:.0f} s")


def explain(label, log):
    """The reason of a failed step, from its log."""
    text = tail(log, 30)
    if re.search("no space left", text, re.I):
        return Fail(f"no disk space left during: {label}",
                    "free some space or set OPENDXG_CACHE to a larger file system")
    if re.search("could not resolve|failed to fetch|unable to connect|connection "
                 "(failed|refused|timed out)", text, re.I):
        return Fail(f"registry not reachable during: {label}",
                    "check the network, http_proxy or OPENDXG_MIRROR, then run the same command again")
    say(tail(log, 15))
    return Fail(f"{label} failed (log: {log})",
                "read the log; the same command resumes where it stopped")
