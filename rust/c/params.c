// SPDX-License-Identifier: GPL-2.0
/*
 * Module parameters of opendxg. They are read once, when the module is loaded, and shown below
 * /sys/module/opendxg/parameters. The Rust side reads them through sys/params.rs.
 */
#include <linux/moduleparam.h>

char *dxg_param_name = "dxg";
module_param_named(name, dxg_param_name, charp, 0444);
MODULE_PARM_DESC(name, "name of the device node below /dev (default: dxg)");

/* Access is decided for each object, so every user may open the node. */
unsigned int dxg_param_mode = 0666;
module_param_named(mode, dxg_param_mode, uint, 0444);
MODULE_PARM_DESC(mode, "mode of the device node, octal with a leading 0 (default: 0666)");

unsigned int dxg_param_adapters = 1;
module_param_named(adapters, dxg_param_adapters, uint, 0444);
MODULE_PARM_DESC(adapters, "number of software adapters, 1 to 16 (default: 1)");

unsigned int dxg_param_max_handles = 65536;
module_param_named(max_handles, dxg_param_max_handles, uint, 0444);
MODULE_PARM_DESC(max_handles, "local handles a process may hold (default: 65536)");

unsigned int dxg_param_max_waiters = 65536;
module_param_named(max_waiters, dxg_param_max_waiters, uint, 0444);
MODULE_PARM_DESC(max_waiters, "pending waits a process may have (default: 65536)");

unsigned int dxg_param_global_access;
module_param_named(global_access, dxg_param_global_access, uint, 0444);
MODULE_PARM_DESC(global_access,
		 "who may open by global handle: 0 same user, 1 anybody, 2 nobody (default: 0)");

bool dxg_param_allow_nonsecure;
module_param_named(allow_nonsecure, dxg_param_allow_nonsecure, bool, 0444);
MODULE_PARM_DESC(allow_nonsecure,
		 "let anybody open a resource by global handle if its creator says so (default: N)");

/* Limits per user, see Documentation/names.md. */
unsigned int dxg_param_max_user_objects = 65536;
module_param_named(max_user_objects, dxg_param_max_user_objects, uint, 0444);
MODULE_PARM_DESC(max_user_objects, "shareable objects a user may have (default: 65536)");

unsigned int dxg_param_max_user_names = 16384;
module_param_named(max_user_names, dxg_param_max_user_names, uint, 0444);
MODULE_PARM_DESC(max_user_names, "object names a user may have given (default: 16384)");

unsigned int dxg_param_max_user_globals = 65536;
module_param_named(max_user_globals, dxg_param_max_user_globals, uint, 0444);
MODULE_PARM_DESC(max_user_globals, "global handles a user may have made (default: 65536)");

unsigned int dxg_param_max_user_store = 16 << 20;
module_param_named(max_user_store, dxg_param_max_user_store, uint, 0444);
MODULE_PARM_DESC(max_user_store,
		 "bytes a user may have in information stores and blobs (default: 16777216)");

unsigned int dxg_param_max_user_watches = 4096;
module_param_named(max_user_watches, dxg_param_max_user_watches, uint, 0444);
MODULE_PARM_DESC(max_user_watches, "watches and weak references a user may have (default: 4096)");

unsigned int dxg_param_max_user_wait_elements = 256 << 10;
module_param_named(max_user_wait_elements, dxg_param_max_user_wait_elements, uint, 0444);
MODULE_PARM_DESC(max_user_wait_elements,
		 "fence values a user may wait for at the same time (default: 262144)");

unsigned int dxg_param_max_user_allocations = 262144;
module_param_named(max_user_allocations, dxg_param_max_user_allocations, uint, 0444);
MODULE_PARM_DESC(max_user_allocations, "allocations a user may have (default: 262144)");

unsigned int dxg_param_max_user_claimed_mb;
module_param_named(max_user_claimed_mb, dxg_param_max_user_claimed_mb, uint, 0444);
MODULE_PARM_DESC(max_user_claimed_mb,
		 "MiB that the allocations of a user may have, touched or not (default: 0, four times the memory)");

unsigned int dxg_param_max_user_resident_mb;
module_param_named(max_user_resident_mb, dxg_param_max_user_resident_mb, uint, 0444);
MODULE_PARM_DESC(max_user_resident_mb,
		 "MiB of allocations that may stay in memory for a user (default: 0, half of the memory)");

unsigned int dxg_param_max_user_files;
module_param_named(max_user_files, dxg_param_max_user_files, uint, 0444);
MODULE_PARM_DESC(max_user_files,
		 "files kept open for a user without a descriptor (default: 0, half of fs.file-max)");

/* Limits per object, see Documentation/information-store.md. */
unsigned int dxg_param_max_info_entries = 64;
module_param_named(max_info_entries, dxg_param_max_info_entries, uint, 0444);
MODULE_PARM_DESC(max_info_entries, "entries in the store of an object (default: 64)");

unsigned int dxg_param_max_info_bytes = 256 << 10;
module_param_named(max_info_bytes, dxg_param_max_info_bytes, uint, 0444);
MODULE_PARM_DESC(max_info_bytes, "bytes in the store of an object (default: 262144)");

unsigned int dxg_param_max_info_entry_bytes = 64 << 10;
module_param_named(max_info_entry_bytes, dxg_param_max_info_entry_bytes, uint, 0444);
MODULE_PARM_DESC(max_info_entry_bytes, "bytes in one entry of a store (default: 65536)");

unsigned int dxg_param_max_info_files = 8;
module_param_named(max_info_files, dxg_param_max_info_files, uint, 0444);
MODULE_PARM_DESC(max_info_files, "files attached to an object (default: 8)");
