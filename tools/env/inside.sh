#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# inside.sh TREE REPO CACHE COMMAND...: first process of the private mount
# namespace. Puts the host's directories into the tree and runs COMMAND there,
# in the same current directory. The host's root appears as /host.
set -eu
tree=$1 repo=$2 cache=$3
shift 3

same_path() {
	mkdir -p "$tree$1"
	mount --rbind "$1" "$tree$1"
}

# A file of the host that replaces the tree's own, if the host has one.
host_file() {
	[ -f "$1" ] || return 0
	mkdir -p "$(dirname "$tree$2")"
	[ -f "$tree$2" ] || { rm -f "$tree$2"; : >"$tree$2"; }
	mount --bind "$(readlink -f "$1")" "$tree$2"
}

mkdir -p "$tree/host"
mount --rbind / "$tree/host"
for dir in /dev /proc /sys; do mount --rbind $dir "$tree$dir"; done
mount -t tmpfs -o mode=1777 tmpfs "$tree/tmp"
host_file /etc/resolv.conf /etc/resolv.conf
host_file /etc/hosts /etc/hosts
# The tree trusts the certificates that the host trusts, for networks with their own authority.
bundle=/etc/ssl/certs/ca-certificates.crt
host_file "${SSL_CERT_FILE:-$bundle}" $bundle

same_path "$repo"
same_path "$cache"
case $PWD/ in
"$repo"/* | "$cache"/*) ;;
/ | /usr/* | /bin/* | /sbin/* | /lib* | /etc/* | /var/* | /dev/* | /proc/* | /sys/*) cd "$tree/host$PWD" ;;
*) same_path "$PWD" ;;
esac

unset SSL_CERT_DIR CURL_CA_BUNDLE MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES
unset RUSTUP_HOME RUSTUP_TOOLCHAIN RUSTC CARGO CC CXX LD TMPDIR PYTHONHOME PYTHONPATH
export SSL_CERT_FILE=$bundle HOME=/root LANG=C.UTF-8 LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PYTHONDONTWRITEBYTECODE=1
export OPENDXG_CACHE="$cache" OPENDXG_REPO="$repo" OPENDXG_TREE="$tree" OPENDXG_INSIDE=1
export CARGO_HOME="$cache/cargo" CARGO_TARGET_DIR="$repo/build/cargo"
# shellcheck disable=SC2016
here=${PWD#"$tree"}
exec chroot "$tree" /bin/sh -c 'cd "$1" && shift && exec "$@"' sh "${here:-/}" "$@"
