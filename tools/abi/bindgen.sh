#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Generate the Rust types of uapi/ with bindgen.
#
# usage: tools/abi/bindgen.sh [OUTPUT]      (default: rust/uapi/generated.rs)
#
# One file serves the kernel module and userspace: core only, plain names,
# layout assertions evaluated at compile time. It is formatted like the module:
# bindgen's own formatter breaks the lines that are too long for rustfmt.
set -eu

cd "$(dirname "$0")/../.."
output=${1:-rust/uapi/generated.rs}

for tool in bindgen rustfmt; do
	command -v $tool >/dev/null && continue
	echo "bindgen.sh: $tool is missing; run me through tools/env/enter" >&2
	exit 127
done

bindgen uapi/dxg.h \
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

rustfmt --edition 2021 --config newline_style=Unix "$output"
