// SPDX-License-Identifier: GPL-2.0
/*
 * The tracepoints of trace.h, and one plain function for each, because Rust cannot expand the
 * macros. A function is a patched-out branch while its event is off.
 */
#include <linux/mutex.h>

#define CREATE_TRACE_POINTS
#include "trace.h"

#include "trace_calls.h"

/* Who wants to know that somebody begins to trace logs. Inside the locks of the tracer. */
static DEFINE_MUTEX(dxg_log_listener_lock);
static void (*dxg_log_begins)(void *listener);
static void *dxg_log_listener;
static bool dxg_logs_will_be_on;

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

void dxg_trace_queue(u64 queue)
{
	trace_dxg_queue(queue);
}

void dxg_trace_run(u64 queue, u64 number)
{
	trace_dxg_run(queue, number);
}

void dxg_trace_complete(u64 queue, u64 number)
{
	trace_dxg_complete(queue, number);
}

void dxg_trace_block(u64 queue, u64 object, u64 value)
{
	trace_dxg_block(queue, object, value);
}

void dxg_trace_unblock(u64 queue)
{
	trace_dxg_unblock(queue);
}

bool dxg_trace_fence_operations(void)
{
	return trace_dxg_fence_queued_enabled() || trace_dxg_fence_done_enabled();
}

void dxg_trace_fence_queued(u64 queue, u64 fence, u64 value, u32 operation)
{
	trace_dxg_fence_queued(queue, fence, value, operation);
}

void dxg_trace_fence_done(u64 queue, u64 fence, u64 value, u32 operation)
{
	trace_dxg_fence_done(queue, fence, value, operation);
}

void dxg_trace_reset(u64 adapter, u32 node, u64 queue)
{
	trace_dxg_reset(adapter, node, queue);
}

void dxg_trace_fault(u64 queue, u64 packet)
{
	trace_dxg_fault(queue, packet);
}

void dxg_trace_propagate(u64 object, u64 value, u64 from, u64 to)
{
	trace_dxg_propagate(object, value, from, to);
}

void dxg_trace_kmd(u32 kind, u64 object)
{
	trace_dxg_kmd(kind, object);
}

void dxg_trace_native_interrupt(u64 adapter, u64 fence, u64 queue)
{
	trace_dxg_native_interrupt(adapter, fence, queue);
}

void dxg_trace_log_entry(u64 queue, u64 fence, u64 value, u32 operation, u64 observed_ns,
			 u64 end_ns)
{
	trace_dxg_log_entry(queue, fence, value, operation, observed_ns, end_ns);
}

void dxg_trace_log_lost(u64 queue, u64 count)
{
	trace_dxg_log_lost(queue, count);
}

atomic_t dxg_paging_followers = ATOMIC_INIT(0);

int dxg_trace_paging_begin(void)
{
	atomic_inc(&dxg_paging_followers);
	return 0;
}

void dxg_trace_paging_end(void)
{
	atomic_dec(&dxg_paging_followers);
}

void dxg_trace_paging(enum dxg_paging_event_number number, const struct dxg_paging_event *event)
{
	switch (number) {
	case DXG_PAGING_MAKE_RESIDENT:
		trace_dxg_make_resident(event);
		break;
	case DXG_PAGING_EVICT:
		trace_dxg_evict(event);
		break;
	case DXG_PAGING_PAGE_OP_BUILD:
		trace_dxg_page_op_build(event);
		break;
	case DXG_PAGING_PAGE_OP_SUBMIT:
		trace_dxg_page_op_submit(event);
		break;
	case DXG_PAGING_PAGE_OP_DONE:
		trace_dxg_page_op_done(event);
		break;
	case DXG_PAGING_PT_UPDATE:
		trace_dxg_pt_update(event);
		break;
	case DXG_PAGING_TLB_FLUSH:
		trace_dxg_tlb_flush(event);
		break;
	case DXG_PAGING_MOVE:
		trace_dxg_move(event);
		break;
	case DXG_PAGING_OFFER:
		trace_dxg_offer(event);
		break;
	case DXG_PAGING_RECLAIM:
		trace_dxg_reclaim(event);
		break;
	case DXG_PAGING_DISCARD:
		trace_dxg_discard(event);
		break;
	case DXG_PAGING_BUDGET_CHANGE:
		trace_dxg_budget_change(event);
		break;
	case DXG_PAGING_TRIM:
		trace_dxg_trim(event);
		break;
	case DXG_PAGING_PAGE_FAULT:
		trace_dxg_page_fault(event);
		break;
	}
}

bool dxg_trace_logs_are_on(void)
{
	return trace_dxg_log_entry_enabled();
}

bool dxg_trace_logs_will_be_on(void)
{
	return READ_ONCE(dxg_logs_will_be_on);
}

int dxg_trace_logs_begin(void)
{
	guard(mutex)(&dxg_log_listener_lock);
	WRITE_ONCE(dxg_logs_will_be_on, true);
	if (dxg_log_begins)
		dxg_log_begins(dxg_log_listener);
	return 0;
}

void dxg_trace_logs_end(void)
{
	WRITE_ONCE(dxg_logs_will_be_on, false);
}

void dxg_trace_listen_for_logs(void (*begins)(void *listener), void *listener)
{
	guard(mutex)(&dxg_log_listener_lock);
	dxg_log_begins = begins;
	dxg_log_listener = listener;
}
