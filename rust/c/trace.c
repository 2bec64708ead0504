// SPDX-License-Identifier: GPL-2.0
/*
 * The tracepoints of trace.h, and one plain function for each, because Rust cannot expand the
 * macros. A function is a patched-out branch while its event is off.
 */
#define CREATE_TRACE_POINTS
#include "trace.h"

#include "trace_calls.h"

void dxg_trace_create(u64 object, u32 kind)
{
	trace_dxg_create(object, kind);
}

void dxg_trace_destroy(u64 object, u32 kind)
{
	trace_dxg_destroy(object, kind);
}

void dxg_trace_wait(u64 object, u64 value, u64 waiter)
{
	trace_dxg_wait(object, value, waiter);
}

void dxg_trace_signal(u64 object, u64 value)
{
	trace_dxg_signal(object, value);
}

void dxg_trace_wake(u64 waiter, u32 outcome)
{
	trace_dxg_wake(waiter, outcome);
}
