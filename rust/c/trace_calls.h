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
/* Whether one of the two events that follow is on. */
bool dxg_trace_fence_operations(void);
void dxg_trace_fence_queued(u64 queue, u64 fence, u64 value, u32 operation);
void dxg_trace_fence_done(u64 queue, u64 fence, u64 value, u32 operation);
void dxg_trace_fault(u64 queue, u64 packet);
void dxg_trace_reset(u64 adapter, u32 node, u64 queue);
void dxg_trace_propagate(u64 object, u64 value, u64 from, u64 to);
void dxg_trace_kmd(u32 kind, u64 object);
void dxg_trace_native_interrupt(u64 adapter, u64 fence, u64 queue);
void dxg_trace_log_entry(u64 queue, u64 fence, u64 value, u32 operation, u64 observed_ns,
			 u64 end_ns);
void dxg_trace_log_lost(u64 queue, u64 count);
/* Whether dxg_log_entry is on. */
bool dxg_trace_logs_are_on(void);
/* The same; true before the first such event can come. */
bool dxg_trace_logs_will_be_on(void);
/*
 * Who is called whenever that becomes true, until the next call of this: on return nobody is in a
 * former one. NULL for nobody. It may sleep.
 */
void dxg_trace_listen_for_logs(void (*begins)(void *listener), void *listener);

/* What a memory manager does (MEM-105). */
enum dxg_paging_event_number {
	DXG_PAGING_MAKE_RESIDENT,
	DXG_PAGING_EVICT,
	DXG_PAGING_PAGE_OP_BUILD,
	DXG_PAGING_PAGE_OP_SUBMIT,
	DXG_PAGING_PAGE_OP_DONE,
	DXG_PAGING_PT_UPDATE,
	DXG_PAGING_TLB_FLUSH,
	DXG_PAGING_MOVE,
	DXG_PAGING_OFFER,
	DXG_PAGING_RECLAIM,
	DXG_PAGING_DISCARD,
	DXG_PAGING_BUDGET_CHANGE,
	DXG_PAGING_TRIM,
	DXG_PAGING_PAGE_FAULT,
};

/*
 * The fields are those of records of the operation log; what is not known is 0.
 * operation is that of a BuildPagingBuffer, by its DXGK_OPERATION number.
 */
struct dxg_paging_event {
	u64 adapter;
	u64 device;
	u64 queue;
	u64 value;
	u64 process;
	u64 object;
	u64 batch;
	u64 start;
	u64 count;
	u64 offset;
	u64 address;
	u64 size;
	u32 segment;
	u32 flags;
	u32 status;
	u32 operation;
};

/* How many of these events are on, and operation logs. */
extern atomic_t dxg_paging_followers;
void dxg_trace_paging(enum dxg_paging_event_number number, const struct dxg_paging_event *event);

#ifndef __BINDGEN__
/* What the tracer calls before it turns one of them on, and after it has turned it off. */
int dxg_trace_paging_begin(void);
void dxg_trace_paging_end(void);
/* What the tracer calls before it turns dxg_log_entry on, and after it has turned it off. */
int dxg_trace_logs_begin(void);
void dxg_trace_logs_end(void);
#endif

#endif
