#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Generate the declarations of the module's C half with bindgen.
#
# usage: tools/abi/ffi.sh [OUTPUT]      (default: rust/sys/ffi.rs)
set -eu

cd "$(dirname "$0")/../.."
output=${1:-rust/sys/ffi.rs}

for tool in bindgen rustfmt; do
	command -v $tool >/dev/null && continue
	echo "ffi.sh: $tool is missing; run me through tools/env/enter" >&2
	exit 127
done

{
	cat <<'END'
// SPDX-License-Identifier: GPL-2.0

//! What the C half in `rust/c` gives us, generated from `rust/c/dxg.h`.
//!
//! `tools/abi/ffi.sh` makes this file, and a test compares it. The types of the kernel are those of
//! the kernel crate.

// The kernel's own types are plain C structs; bindgen marks some of them in ways that the lint
// takes for foreign-function hazards.
#![allow(improper_ctypes, missing_docs, non_camel_case_types, non_upper_case_globals, unreachable_pub)]

use kernel::bindings::*;

END
	bindgen rust/c/dxg.h \
		--rust-target 1.85 \
		--formatter prettyplease \
		--disable-header-comment \
		--use-core \
		--ctypes-prefix kernel::ffi \
		--no-doc-comments \
		--no-layout-tests \
		--default-visibility crate \
		--allowlist-function 'dxg_.*' \
		--allowlist-type 'dxg_.*' \
		--allowlist-var 'dxg_(params|paging_followers)' \
		--no-recursive-allowlist \
		--merge-extern-blocks \
		--with-derive-default \
		--no-default 'dxg_(p|attachment).*' \
		-- -x c -D__BINDGEN__
} >"$output"

# Only kernels with these options have the functions of rust/c/threads.c that are named here, and
# dxg_gate_is_held() is for tests.
sed -i -e '/pub fn dxg_gate_/i #[cfg(CONFIG_LOCKDEP)]' \
	-e '/pub fn dxg_gate_is_held/i #[cfg(CONFIG_KUNIT = "y")]' "$output"
rustfmt --edition 2021 --config newline_style=Unix "$output"
