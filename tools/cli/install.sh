#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# tools/cli/install.sh [PREFIX [DESTDIR]]: build the command opendxg and install
# it with its manual page. Runs inside the tree. Nothing is touched when nothing
# changed.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
prefix=${1:-/usr/local}
root=${2-}$prefix
case $prefix in
/*) ;;
*) echo "install.sh: the prefix must be an absolute path: $prefix" >&2 && exit 1 ;;
esac

(cd "$here/.." && cargo build --release --locked --quiet -p opendxg-cli)
install -d "$root/bin" "$root/share/man/man1"
install -C -m 0755 "$here/../../build/cargo/release/opendxg" "$root/bin/opendxg"
install -C -m 0644 "$here/man/opendxg.1" "$root/share/man/man1/opendxg.1"
