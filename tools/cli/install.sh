#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# tools/cli/install.sh PREFIX [DESTDIR]: install the command opendxg, which was
# built before, with its manual page. Nothing is touched when nothing changed.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
program=$here/../../build/cargo/release/opendxg
root=${2-}${1:?usage: install.sh PREFIX [DESTDIR]}
[ -f "$program" ] || { echo "install.sh: $program is missing: run tools/env/enter tools/cli/build" >&2; exit 1; }

install -d "$root/bin" "$root/share/man/man1"
install -C -m 0755 "$program" "$root/bin/opendxg"
install -C -m 0644 "$here/man/opendxg.1" "$root/share/man/man1/opendxg.1"
