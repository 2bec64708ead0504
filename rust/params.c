// SPDX-License-Identifier: GPL-2.0
/*
 * Module parameters of opendxg. They are read once, when the module is loaded, and shown below
 * /sys/module/opendxg/parameters. The Rust side reads them through sys/params.rs.
 */
#include <linux/moduleparam.h>

char *dxg_param_name = "dxg";
module_param_named(name, dxg_param_name, charp, 0444);
MODULE_PARM_DESC(name, "name of the device node below /dev (default: dxg)");

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
