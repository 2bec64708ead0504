/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The list of module parameters. params.c declares them to the kernel from it, and bindgen gives
 * sys/ffi.rs the struct that holds them.
 *
 * X(type of module_param, type, name, default, description). Documentation/names.md has the limits
 * of a user, Documentation/information-store.md those of an object. Access is decided for each
 * object, so every user may open the node. 0 stands for a limit that follows from the machine.
 */
#ifndef DXG_PARAMS_H
#define DXG_PARAMS_H

#define DXG_PARAMS(X) \
	X(charp, char *, name, "dxg", "name of the device node below /dev (default: dxg)") \
	X(uint, unsigned int, mode, 0666, \
	  "mode of the device node, octal with a leading 0 (default: 0666)") \
	X(uint, unsigned int, adapters, 1, "number of software adapters, 1 to 16 (default: 1)") \
	X(uint, unsigned int, max_handles, 65536, \
	  "local handles a process may hold (default: 65536)") \
	X(uint, unsigned int, max_waiters, 65536, \
	  "pending waits a process may have (default: 65536)") \
	X(uint, unsigned int, global_access, 0, \
	  "who may open by global handle: 0 same user, 1 anybody, 2 nobody (default: 0)") \
	X(bool, bool, allow_nonsecure, false, \
	  "let anybody open a resource by global handle if its creator says so (default: N)") \
	X(uint, unsigned int, max_user_objects, 65536, \
	  "shareable objects a user may have (default: 65536)") \
	X(uint, unsigned int, max_user_names, 16384, \
	  "object names a user may have given (default: 16384)") \
	X(uint, unsigned int, max_user_globals, 65536, \
	  "global handles a user may have made (default: 65536)") \
	X(uint, unsigned int, max_user_store, 16 << 20, \
	  "bytes a user may have in information stores and blobs (default: 16777216)") \
	X(uint, unsigned int, max_user_watches, 4096, \
	  "watches and weak references a user may have (default: 4096)") \
	X(uint, unsigned int, max_user_wait_elements, 256 << 10, \
	  "fence values a user may wait for at the same time (default: 262144)") \
	X(uint, unsigned int, max_user_allocations, 262144, \
	  "allocations a user may have (default: 262144)") \
	X(uint, unsigned int, max_user_claimed_mb, 0, \
	  "MiB that the allocations of a user may have, touched or not (default: 0, four times the memory)") \
	X(uint, unsigned int, max_user_resident_mb, 0, \
	  "MiB of allocations that may stay in memory for a user (default: 0, half of the memory)") \
	X(uint, unsigned int, max_user_files, 0, \
	  "files kept open for a user without a descriptor (default: 0, half of fs.file-max)") \
	X(uint, unsigned int, max_user_queues, 65536, \
	  "contexts and HW queues a user may have (default: 65536)") \
	X(uint, unsigned int, max_user_queued_items, 1 << 20, \
	  "submissions, waits and signals a user may have queued (default: 1048576)") \
	X(uint, unsigned int, max_user_queued_bytes, 1 << 30, \
	  "bytes that these may take (default: 1073741824)") \
	X(uint, unsigned int, max_info_entries, 64, \
	  "entries in the store of an object (default: 64)") \
	X(uint, unsigned int, max_info_bytes, 256 << 10, \
	  "bytes in the store of an object (default: 262144)") \
	X(uint, unsigned int, max_info_entry_bytes, 64 << 10, \
	  "bytes in one entry of a store (default: 65536)") \
	X(uint, unsigned int, max_info_files, 8, "files attached to an object (default: 8)") \
	X(charp, char *, attach_drivers, "", \
	  "modules whose character devices may be attached, with commas between them (default: none)") \
	X(uint, unsigned int, tdr_delay_ms, 2000, \
	  "milliseconds that work may take on an engine, 10 to 3600000 (default: 2000)") \
	X(bool, bool, verify_kmd, IS_ENABLED(CONFIG_PROVE_LOCKING), \
	  "report broken rules of the driver interface (default: Y with CONFIG_PROVE_LOCKING)")

#define DXG_PARAM_MEMBER(param, type, name, standard, text) type name;

/* Written before the module's init runs, and never again. */
struct dxg_params {
	DXG_PARAMS(DXG_PARAM_MEMBER)
};

extern struct dxg_params dxg_params;

#endif
