# SPDX-License-Identifier: MIT OR Apache-2.0
# Sourced by init: whether kmemleak finds lost memory.
# shellcheck shell=sh

# scan: let kmemleak look once, and print what it names.
scan() {
	sleep 6
	echo scan >&3
	echo scan >/sys/kernel/debug/kmemleak
	cat /sys/kernel/debug/kmemleak
}

# lost DIR: true if memory is lost; DIR/leaks says what.
#
# A scan excuses what is younger than 5 seconds and what changed since the scan before, which is
# everything the first time; and it takes so long that memory on its way from one list to another
# can look lost. So an object counts that two scans, one after the other, find lost, and there are
# three.
lost() {
	: >"$1/lost"
	for _ in 1 2 3; do
		mv "$1/lost" "$1/lost-before"
		scan >"$1/leaks"
		grep '^unreferenced object' "$1/leaks" >"$1/lost"
	done
	[ -s "$1/lost-before" ] && grep -qFxf "$1/lost-before" "$1/lost"
}
