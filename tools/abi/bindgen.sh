#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Generate the Rust types of uapi/ with bindgen.
#
# usage: tools/abi/bindgen.sh [OUTPUT]      (default: rust/uapi/generated.rs)
#
# One file serves the kernel module and userspace: core only, plain names,
# layout assertions evaluated at compile time.
set -eu

cd "$(dirname "$0")/../.."
output=${1:-rust/uapi/generated.rs}

command -v bindgen >/dev/null || {
	echo "bindgen.sh: bindgen is missing; run me through tools/env/enter" >&2
	exit 127
}

exec bindgen uapi/dxg.h \
	--output "$output" \
	--rust-target 1.85 \
	--formatter prettyplease \
	--use-core \
	--ctypes-prefix ::core::ffi \
	--default-enum-style consts \
	--no-prepend-enum-name \
	--with-derive-default \
	--no-derive-debug \
	--no-doc-comments \
	--allowlist-file 'uapi/.*' \
	-- -x c
