#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Installs libd3dkmt.so under all its names, the C headers and the pkg-config file.
set -eu

usage() {
	cat <<-EOF
	usage: install.sh [--prefix DIR] [--destdir DIR] [--lib FILE]

	  --prefix DIR   where the files will be used from (/usr/local)
	  --destdir DIR  put in front of every path, for packaging
	  --lib FILE     the built library (build/cargo/release/libd3dkmt.so)
	EOF
}

fail() {
	echo "install.sh: $*" >&2
	exit 1
}

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
prefix=/usr/local
destdir=
lib=$top/build/cargo/release/libd3dkmt.so

while [ $# -gt 0 ]; do
	case $1 in
	--prefix | --destdir | --lib)
		[ $# -ge 2 ] || fail "$1 needs a value"
		case $1 in
		--prefix) prefix=$2 ;;
		--destdir) destdir=$2 ;;
		--lib) lib=$2 ;;
		esac
		shift 2
		;;
	-h | --help)
		usage
		exit 0
		;;
	*)
		usage >&2
		fail "unknown argument: $1"
		;;
	esac
done

case $prefix in
/*) ;;
*) fail "--prefix must be an absolute path: $prefix" ;;
esac
[ -f "$lib" ] || fail "$lib is missing: build it first (make shim), or name it with --lib"

root=$destdir$prefix
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$top/tools/Cargo.toml" | head -n 1)

install -d "$root/lib/pkgconfig" "$root/include/dxg" "$root/include/opendxg"
install -C -m 0755 "$lib" "$root/lib/libd3dkmt.so.1"
# -ld3dkmt; -ldxg and programs linked against libdxg; programs that dlopen libdxcore.so.
for name in libd3dkmt.so libdxg.so libdxg.so.1 libdxcore.so; do
	[ "$(readlink "$root/lib/$name")" = libd3dkmt.so.1 ] || ln -sf libd3dkmt.so.1 "$root/lib/$name"
done
install -C -m 0644 "$here"/include/*.h "$top"/uapi/*.h "$root/include/"
install -C -m 0644 "$top"/uapi/dxg/*.h "$root/include/dxg/"
install -C -m 0644 "$here"/include/opendxg/*.h "$root/include/opendxg/"
pc=$(mktemp)
trap 'rm -f "$pc"' EXIT
sed -e "s|@PREFIX@|$prefix|" -e "s|@VERSION@|$version|" "$here/d3dkmt.pc.in" >"$pc"
install -C -m 0644 "$pc" "$root/lib/pkgconfig/d3dkmt.pc"
