# SPDX-License-Identifier: MIT OR Apache-2.0
"""Writes a newc cpio archive, the format of an initramfs."""

import os
import stat
from pathlib import Path, PurePosixPath


class Archive:
    """A file system image under construction. Parents are made as needed.

    `links` says which directories are symbolic links in the guest, so that a
    path through one lands in its target. `read` gives the bytes of a host file.
    """

    def __init__(self, links=None, read=Path.read_bytes):
        self.entries = {}
        self.read = read
        self.links = links or {}
        for path, target in self.links.items():
            self._add(path, stat.S_IFLNK | 0o777, target.encode())

    def resolve(self, path):
        """The path with the guest's linked directories replaced by their targets."""
        path = os.path.normpath("/" + str(path).lstrip("/"))
        for link, target in self.links.items():
            if path.startswith(link + "/"):
                return "/" + target + path[len(link):]
        return path

    def _add(self, path, mode, data=b"", device=(0, 0), owner=0):
        self.entries[path] = (mode, data, device, owner)

    def directory(self, path, mode=0o755, owner=0):
        """A directory and its parents."""
        path = self.resolve(path)
        if path == "/":
            return
        parent = str(PurePosixPath(path).parent)
        if parent != "/":
            self.directory(parent)
        known = self.entries.get(path)
        if known is None or (stat.S_ISDIR(known[0]) and mode != 0o755):
            self._add(path, stat.S_IFDIR | mode, owner=owner)

    def _parent(self, path):
        path = self.resolve(path)
        self.directory(PurePosixPath(path).parent)
        return path

    def data(self, path, content, mode=0o644):
        """A file with this content, as text or bytes."""
        content = content.encode() if isinstance(content, str) else content
        self._add(self._parent(path), stat.S_IFREG | mode, content)

    def symlink(self, path, target):
        """A symbolic link."""
        self._add(self._parent(path), stat.S_IFLNK | 0o777, target.encode())

    def device(self, path, major, minor, mode=0o600):
        """A character device node."""
        self._add(self._parent(path), stat.S_IFCHR | mode, device=(major, minor))

    def has(self, path):
        """Whether the image holds this path."""
        return self.resolve(path) in self.entries

    def copy(self, source, path):
        """A host file or directory tree. Yields the regular files it added."""
        source = Path(source)
        if source.is_dir():
            self.directory(path)
            for child in sorted(source.iterdir()):
                yield from self.copy_member(child, f"{path}/{child.name}")
        else:
            yield from self.copy_member(source.resolve(), path)

    def copy_member(self, source, path):
        """Like `copy`, but keeps a symbolic link a link."""
        if source.is_symlink():
            self.symlink(path, os.readlink(source))
        elif source.is_dir():
            yield from self.copy(source, path)
        elif source.is_file():
            self.data(path, self.read(source), stat.S_IMODE(source.stat().st_mode))
            yield source

    def write(self, file):
        """Write the archive to an open binary file."""
        for number, (path, entry) in enumerate(sorted(self.entries.items()), 1):
            self._write(file, number, path.lstrip("/"), *entry)
        self._write(file, 0, "TRAILER!!!", 0, b"", (0, 0), 0)

    @staticmethod
    def _write(file, number, name, mode, data, device, owner):
        raw = name.encode() + b"\0"
        fields = (number, mode, owner, owner, 1, 0, len(data), 0, 0, *device, len(raw), 0)
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + raw
        file.write(head + b"\0" * (-len(head) % 4))
        file.write(data)
        file.write(b"\0" * (-len(data) % 4))
