# SPDX-License-Identifier: MIT OR Apache-2.0
# Shared by the scripts that run on the bare host. The caller sets `repo`, the
# absolute path of the repository, and then sources this file.
# shellcheck shell=sh

suite=trixie
mirror=${OPENDXG_MIRROR:-http://deb.debian.org/debian}

# Raise this when `setup` starts to make trees differently.
recipe=1

say() { printf '%s\n' "$*" >&2; }

# die WHAT REMEDY: the one line a user sees when something is wrong.
die() {
	say "opendxg: error: $1. Remedy: $2."
	exit 1
}

# The cache holds everything that is not part of the repository. Root who came through sudo takes
# the user's, where the tree is already.
find_cache() {
	home=${HOME:-/root}
	if [ "$(id -u)" -eq 0 ] && [ -n "${SUDO_USER-}" ]; then
		user_home=$(getent passwd "$SUDO_USER" | cut -d: -f6)
		[ ! -d "$user_home/.cache/opendxg" ] || home=$user_home
	fi
	cache=${OPENDXG_CACHE:-${XDG_CACHE_HOME:-$home/.cache}/opendxg}
	mkdir -p "$cache" 2>/dev/null ||
		die "cannot create the cache directory $cache" "set OPENDXG_CACHE to a writable directory"
	cache=$(CDPATH='' cd -- "$cache" && pwd -P)
}

# The packages of the tree, one a line. OPENDXG_MORE names a file of the repository with more, for
# what few people need; that is a tree of its own.
listed() {
	sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$repo/tools/env/packages" ${OPENDXG_MORE:+"$repo/$OPENDXG_MORE"}
}

# Trees are keyed by what goes into them, so clones of different age can share a cache.
find_tree() {
	key=$({ echo "$suite $recipe"; listed; } | sha256sum | cut -c1-12)
	tree=$cache/trees/$key
}

# Free space of the cache's file system, in MB.
free_mb() {
	df -Pm "$cache" | { read -r _; read -r _ _ _ avail _; echo "$avail"; }
}

need_space() {
	[ "$(free_mb)" -ge "$1" ] || die "no disk space: $2 needs $1 MB in $cache, $(free_mb) MB are free" \
		"free some space or set OPENDXG_CACHE to a larger file system"
}

# in_namespace COMMAND...: run COMMAND as root of a private mount namespace. For
# an ordinary user that is a user namespace with the user's own id as root and
# the subordinate ids above it.
in_namespace() {
	if [ "$(id -u)" -eq 0 ]; then
		unshare --mount -- "$@"
	else
		unshare --user --map-root-user --map-auto --mount -- "$@"
	fi
}

check_privileges() {
	in_namespace true 2>/dev/null && return
	if [ "$(id -u)" -eq 0 ]; then
		die "no privileges: this root user may not create a mount namespace" \
			"give the container CAP_SYS_ADMIN, or run on a real or virtual machine"
	elif ! command -v newuidmap >/dev/null; then
		die "no privileges: newuidmap is missing" "apt-get install uidmap, or run as root"
	elif ! grep -q "^$(id -un):" /etc/subuid 2>/dev/null; then
		die "no privileges: $(id -un) has no subordinate ids" \
			"usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $(id -un), or run as root"
	else
		die "no privileges: user namespaces are not allowed here" \
			"sysctl kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0, or run as root"
	fi
}

# Show that a long step is alive, with the last line of what it prints: on a
# terminal in a line that updates, else in a plain line every 20 and later 60
# seconds. Runs in the background of `step`.
ticker() {
	label=$1 log=$2 began=$3 shown=0 interval=20
	trap 'exit 0' TERM
	trap '' INT
	while kill -0 $$ 2>/dev/null; do
		sleep 1
		passed=$(($(date +%s) - began))
		if [ ! -t 2 ] && [ $((passed - shown)) -lt $interval ]; then continue; fi
		last=$(tail -n 1 "$log" 2>/dev/null | tr '\t' ' ' | cut -c1-60)
		if [ -t 2 ]; then
			printf '\r\033[K%s: %d s  %s' "$label" "$passed" "$last" >&2
		else
			say "$label: $passed s so far  $last"
			shown=$passed
			[ "$passed" -lt 120 ] || interval=60
		fi
	done
}

# step LABEL LOG COMMAND...: run one long step with its output in LOG. What is
# shown of it comes from $show, if set.
step() {
	step_label=$1 step_log=$2
	shift 2
	step_began=$(date +%s)
	[ -t 2 ] || say "$step_label ..."
	ticker "$step_label" "${show:-$step_log}" "$step_began" &
	ticker_pid=$!
	step_status=0
	"$@" >>"$step_log" 2>&1 </dev/null || step_status=$?
	kill "$ticker_pid" 2>/dev/null || :
	wait "$ticker_pid" 2>/dev/null || :
	[ -t 2 ] && printf '\r\033[K' >&2
	[ "$step_status" -ne 0 ] || say "$step_label: done in $(($(date +%s) - step_began)) s"
	return "$step_status"
}

# Tell the reason of a failed step from its log, in one line.
explain() {
	label=$1 log=$2
	if grep -qi 'no space left' "$log"; then
		die "no disk space left while $label" "free some space or set OPENDXG_CACHE to a larger file system"
	elif grep -qiE 'could not resolve|failed to fetch|unable to connect|connection (failed|refused|timed out)|not reachable' "$log"; then
		die "registry not reachable while $label ($mirror)" \
			"check the network, http_proxy, or set OPENDXG_MIRROR; then run the same command again"
	elif grep -qi 'NO_PUBKEY\|not signed\|signatures were invalid' "$log"; then
		die "the host does not trust $mirror while $label" "install a current debian-archive-keyring"
	fi
	tail -n 15 "$log" >&2
	die "$label failed (log: $log)" "read the log, then run the same command again; it resumes"
}
