# SPDX-License-Identifier: MIT OR Apache-2.0
"""One QEMU process and the channels between it and us.

Every channel is a socket pair: the kernel log is the guest's serial line, the
rest are named virtio ports. A channel that carries a program's bytes ends with
a token that init sends last.
"""

import json
import selectors
import shutil
import socket
import subprocess
import time

from common import Fail

QEMU = "qemu-system-x86_64"


class Stream:
    """Bytes from the guest up to the end token, handed on as they come."""

    def __init__(self, token, sink):
        self.token = token
        self.sink = sink
        self.held = b""
        self.ended = False

    def feed(self, data):
        """Take what arrived; hold back what may be the beginning of the token."""
        self.held += data
        at = self.held.find(self.token)
        if at >= 0:
            self.sink(self.held[:at])
            self.held, self.ended = b"", True
            return
        keep = next((size for size in range(min(len(self.token) - 1, len(self.held)), 0, -1)
                     if self.token.startswith(self.held[-size:])), 0)
        ready = len(self.held) - keep
        if ready:
            self.sink(self.held[:ready])
            self.held = self.held[ready:]


class Machine:
    """A running virtual machine."""

    def __init__(self, arguments, ports):
        if not shutil.which(QEMU):
            raise Fail("QEMU is missing", "make distclean, then run the same command again")
        self.said = None
        self.channels = {}
        self.selector = selectors.DefaultSelector()
        theirs = []
        devices = ["-device", "virtio-serial-pci,max_ports=8"]
        for name in ["serial", "monitor", *ports]:
            ours, other = socket.socketpair()
            self.channels[name] = ours
            theirs.append(other)
            devices += ["-chardev", f"socket,id={name},fd={other.fileno()}"]
            if name == "serial":
                devices += ["-serial", f"chardev:{name}"]
            elif name == "monitor":
                devices += ["-mon", f"chardev={name},mode=control"]
            elif name == "terminal":
                devices += ["-device", f"virtconsole,chardev={name}"]
            else:
                devices += ["-device", f"virtserialport,chardev={name},name={name}"]
            self.selector.register(ours, selectors.EVENT_READ, name)
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", QEMU, *arguments, *devices], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, pass_fds=[other.fileno() for other in theirs], process_group=0)
        for other in theirs:
            other.close()

    def poll(self, seconds):
        """What arrived within some time, as (channel, bytes); empty bytes mean that it closed."""
        for key, _ in self.selector.select(seconds):
            try:
                data = key.fileobj.recv(65536)
            except ConnectionResetError:
                data = b""
            if not data:
                self.selector.unregister(key.fileobj)
            yield key.data, data

    def ask(self, *commands):
        """Give QEMU commands of its protocol. Answers are not waited for."""
        for message in ({"execute": "qmp_capabilities"}, *commands):
            self.channels["monitor"].sendall(json.dumps(message).encode() + b"\n")

    def log_instructions(self, wanted):
        """Begin or end the log of executed instructions."""
        # A line is written where a block of translated instructions is entered.
        lines = ["one-insn-per-tb on", "log exec,nochain"] if wanted else ["log none", "one-insn-per-tb off"]
        self.ask(*({"execute": "human-monitor-command", "arguments": {"command-line": line}} for line in lines))

    def dump_tasks(self):
        """Make a hanging guest print its blocked tasks: SysRq-w through a serial break."""
        command = {"execute": "chardev-send-break", "arguments": {"id": "serial"}}
        try:
            self.ask(command)
            time.sleep(0.5)
            self.channels["serial"].sendall(b"w")
        except OSError:
            pass

    def stop(self):
        """End QEMU. Returns what it said on its standard error."""
        if self.said is None:
            self.process.kill()
            self.said = self.process.communicate()[1].decode(errors="replace").strip()
        return self.said
