# SPDX-License-Identifier: MIT OR Apache-2.0
"""One run from power-on to the verdict."""

import contextlib
import os
import shutil
import socket
import sys
import termios
import threading
import time
import tty
from dataclasses import dataclass, field

import verdict
from machine import Machine, Stream


# Seconds for the rest of a panic message to arrive.
PANIC_GRACE = 3


@dataclass
class Outcome:
    """How a run ended."""

    status: int = 0                 # COMMAND's own
    trouble: tuple | None = None    # (status, reason) when the machine or the kernel misbehaved
    log: str = ""                   # kernel log


@dataclass
class Progress:
    """What init has reported so far."""

    started: bool = False
    done: bool = False
    status: int | None = None
    taint: int = 0
    troubles: list = field(default_factory=list)

    def take(self, line):
        """One line of the control port."""
        word, _, rest = line.partition(" ")
        if word == "start":
            self.started = True
        elif word == "ended":
            self.status = int(rest)
        elif word == "taint":
            self.taint = int(rest)
        elif word == "leak":
            self.troubles.append((verdict.REPORT, "kmemleak found lost memory"))
        elif word == "failed":
            self.troubles.append((verdict.BOOT, rest))
        elif word == "done":
            self.done = True


def settings(options, token, dxg, directory):
    """What init has to know."""
    terminal = options.interactive and sys.stdin.isatty()
    size = shutil.get_terminal_size()
    return {
        "TOKEN": token,
        "DXG": "yes" if dxg else "",
        "MODULE_ARGS": f"{os.environ.get('OPENDXG_MODULE_ARGS', '')} {getattr(options, 'module_args', '')}".strip(),
        "INPUT": "terminal" if terminal else "port" if options.interactive else "none",
        "DIRECTORY": directory,
        "KMEMLEAK": "" if getattr(options, "no_kmemleak", False) else "yes",
        "TERM": os.environ.get("TERM", "dumb") if terminal else "dumb",
        "ROWS": size.lines if terminal else "",
        "COLUMNS": size.columns if terminal else "",
    }


@contextlib.contextmanager
def raw_terminal(wanted):
    """Hand every key to the guest while the run lasts."""
    if not wanted:
        yield
        return
    before = termios.tcgetattr(0)
    tty.setraw(0)
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)


def write_all(descriptor):
    """A sink that writes everything to a file descriptor at once."""
    def write(data):
        while data:
            data = data[os.write(descriptor, data):]
    return write


def tracing(machine, sink):
    """A sink that begins and ends the log of instructions where the text says so."""
    held = b""

    def write(data):
        nonlocal held
        *lines, held = (held + data).split(b"\n")
        for line in lines:
            if line in (b"trace: on", b"trace: off"):
                machine.log_instructions(line == b"trace: on")
        sink(data)
    return write


def forward_input(channel):
    """Carry standard input to the guest, and its end too."""
    with contextlib.suppress(OSError):
        while data := os.read(0, 65536):
            channel.sendall(data)
        channel.shutdown(socket.SHUT_WR)


def run(arguments, options, token):
    """Boot the machine and stay until it is done, broken or late."""
    terminal = options.interactive and sys.stdin.isatty()
    ports = ["control", "log", "out", "err"]
    if options.interactive:
        ports.append("terminal" if terminal else "in")
    with raw_terminal(terminal):
        machine = Machine(arguments, ports)
        try:
            return _watch(machine, options, token.encode(), terminal)
        finally:
            machine.stop()


def _watch(machine, options, token, terminal):
    progress, serial, dmesg = Progress(), bytearray(), bytearray()
    errors = tracing(machine, write_all(2)) if getattr(options, "trace", None) else write_all(2)
    streams = {"out": Stream(token, write_all(1)), "err": Stream(token, errors),
               "log": Stream(token, dmesg.extend)}
    control = b""
    deadline = time.monotonic() + options.boot_timeout
    limit = options.boot_timeout
    late, panicked = None, False
    if options.interactive:
        channel = machine.channels["terminal" if terminal else "in"]
        threading.Thread(target=forward_input, args=(channel,), daemon=True).start()

    def complete():
        return progress.done and all(stream.ended for stream in streams.values())

    def broken():
        return any(status == verdict.BOOT for status, _ in progress.troubles) and streams["log"].ended

    while not complete() and not broken():
        closed = False
        for name, data in machine.poll(1):
            if name in streams:
                streams[name].feed(data)
            elif name == "serial":
                serial.extend(data)
                closed = closed or not data
                if not panicked and verdict.PANIC.encode() in serial:
                    panicked = True
                    deadline = min(deadline, time.monotonic() + PANIC_GRACE)
                if options.verbose:
                    write_all(2)(data)
            elif name == "control":
                *lines, control = (control + data).split(b"\n")
                for line in lines:
                    progress.take(line.decode())
                    if line == b"start":
                        limit = options.timeout
                        deadline = time.monotonic() + limit
                    elif line.startswith((b"ended", b"scan")):
                        deadline = time.monotonic() + options.boot_timeout
            elif name == "terminal":
                write_all(1)(data)
        if closed and machine.process.poll() is not None:
            break
        if time.monotonic() > deadline:
            if late or panicked:
                break
            # Ask for the blocked tasks, and give the answer a moment.
            late = f"no end after {limit:.0f} s"
            machine.dump_tasks()
            deadline = time.monotonic() + 5
    return _judge(machine, progress, serial, dmesg, late)


def _judge(machine, progress, serial, dmesg, late):
    """Put together how the run ended; what the kernel says comes before the rest."""
    serial, dmesg = (bytes(log).replace(b"\r", b"").decode(errors="replace") for log in (serial, dmesg))
    log = dmesg or serial
    said = machine.stop()
    trouble = verdict.judge(serial) or verdict.judge(dmesg) or verdict.judge_taint(progress.taint)
    if not trouble and progress.troubles:
        trouble = progress.troubles[0]
    if not trouble and late:
        trouble = (verdict.HANG, late) if progress.started else (verdict.BOOT, f"the guest did not boot: {late}. "
                                                                 "Remedy: raise --boot-timeout, or try --accel tcg")
        log = serial
    if not trouble and not progress.started:
        trouble = (verdict.BOOT, f"the guest did not boot: {said.splitlines()[-1] if said else 'QEMU ended'}. "
                                 "Remedy: see the kernel log above, or try --accel tcg")
    if not trouble and not progress.done:
        trouble = (verdict.CRASH, "the guest ended before COMMAND did")
    return Outcome(progress.status or 0, trouble, log)
