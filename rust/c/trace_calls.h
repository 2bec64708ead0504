/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One function for each tracepoint of trace.h, because Rust cannot expand the macros.
 */
#ifndef DXG_TRACE_CALLS_H
#define DXG_TRACE_CALLS_H

#ifndef __BINDGEN__
#include <linux/types.h>
#endif

void dxg_trace_create(u64 object, u32 kind);
void dxg_trace_destroy(u64 object, u32 kind);
void dxg_trace_wait(u64 object, u64 value, u64 waiter);
void dxg_trace_signal(u64 object, u64 value);
void dxg_trace_wake(u64 waiter, u32 outcome);
void dxg_trace_queue(u64 queue);
void dxg_trace_run(u64 queue, u64 number);
void dxg_trace_complete(u64 queue, u64 number);
void dxg_trace_block(u64 queue, u64 object, u64 value);
void dxg_trace_unblock(u64 queue);
void dxg_trace_fault(u64 queue, u64 packet);
void dxg_trace_reset(u64 adapter, u32 node, u64 queue);
void dxg_trace_kmd(u32 kind, u64 object);

#endif
