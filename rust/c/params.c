// SPDX-License-Identifier: GPL-2.0
/*
 * Module parameters of opendxg. They are read once, when the module is loaded, and shown below
 * /sys/module/opendxg/parameters. The Rust side reads them through sys/params.rs.
 */
#include <linux/moduleparam.h>
#include <linux/types.h>

#include "params.h"

#define DXG_PARAM_DEFAULT(param, type, name, standard, text) .name = standard,

struct dxg_params dxg_params = {
	DXG_PARAMS(DXG_PARAM_DEFAULT)
};

#define DXG_PARAM_DECLARE(param, type, name, standard, text)		\
	module_param_named(name, dxg_params.name, param, 0444);		\
	MODULE_PARM_DESC(name, text);

DXG_PARAMS(DXG_PARAM_DECLARE)
