/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints of opendxg, system "dxg". Objects are named by their id, never by an address.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM dxg

#if !defined(DXG_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define DXG_TRACE_H

#include <linux/tracepoint.h>

#include "trace_calls.h"

DECLARE_EVENT_CLASS(dxg_object,
	TP_PROTO(u64 object, u32 kind),
	TP_ARGS(object, kind),
	TP_STRUCT__entry(
		__field(u64, object)
		__field(u32, kind)
	),
	TP_fast_assign(
		__entry->object = object;
		__entry->kind = kind;
	),
	TP_printk("object=%llu kind=%u", __entry->object, __entry->kind)
);

DEFINE_EVENT(dxg_object, dxg_create, TP_PROTO(u64 object, u32 kind), TP_ARGS(object, kind));
DEFINE_EVENT(dxg_object, dxg_destroy, TP_PROTO(u64 object, u32 kind), TP_ARGS(object, kind));

/* A wait for value was queued on the fence. */
TRACE_EVENT(dxg_wait,
	TP_PROTO(u64 object, u64 value, u64 waiter),
	TP_ARGS(object, value, waiter),
	TP_STRUCT__entry(
		__field(u64, object)
		__field(u64, value)
		__field(u64, waiter)
	),
	TP_fast_assign(
		__entry->object = object;
		__entry->value = value;
		__entry->waiter = waiter;
	),
	TP_printk("object=%llu value=%llu waiter=%llu",
		  __entry->object, __entry->value, __entry->waiter)
);

/* value was stored into the fence. */
TRACE_EVENT(dxg_signal,
	TP_PROTO(u64 object, u64 value),
	TP_ARGS(object, value),
	TP_STRUCT__entry(
		__field(u64, object)
		__field(u64, value)
	),
	TP_fast_assign(
		__entry->object = object;
		__entry->value = value;
	),
	TP_printk("object=%llu value=%llu", __entry->object, __entry->value)
);

/* A wait ended and its waiter was woken. outcome: 1 satisfied, 2 orphaned, 3 cancelled. */
TRACE_EVENT(dxg_wake,
	TP_PROTO(u64 waiter, u32 outcome),
	TP_ARGS(waiter, outcome),
	TP_STRUCT__entry(
		__field(u64, waiter)
		__field(u32, outcome)
	),
	TP_fast_assign(
		__entry->waiter = waiter;
		__entry->outcome = outcome;
	),
	TP_printk("waiter=%llu outcome=%u", __entry->waiter, __entry->outcome)
);

/* Something was queued. queue is the id of a context or HW queue. */
TRACE_EVENT(dxg_queue,
	TP_PROTO(u64 queue),
	TP_ARGS(queue),
	TP_STRUCT__entry(
		__field(u64, queue)
	),
	TP_fast_assign(
		__entry->queue = queue;
	),
	TP_printk("queue=%llu", __entry->queue)
);

DECLARE_EVENT_CLASS(dxg_submission,
	TP_PROTO(u64 queue, u64 number),
	TP_ARGS(queue, number),
	TP_STRUCT__entry(
		__field(u64, queue)
		__field(u64, number)
	),
	TP_fast_assign(
		__entry->queue = queue;
		__entry->number = number;
	),
	TP_printk("queue=%llu number=%llu", __entry->queue, __entry->number)
);

/* The submission with this number went to the KMD. */
DEFINE_EVENT(dxg_submission, dxg_run, TP_PROTO(u64 queue, u64 number), TP_ARGS(queue, number));
/* Everything up to this number has completed. */
DEFINE_EVENT(dxg_submission, dxg_complete, TP_PROTO(u64 queue, u64 number), TP_ARGS(queue, number));

/* A queue waits for an object; value is 0 for a mutex or a semaphore. */
TRACE_EVENT(dxg_block,
	TP_PROTO(u64 queue, u64 object, u64 value),
	TP_ARGS(queue, object, value),
	TP_STRUCT__entry(
		__field(u64, queue)
		__field(u64, object)
		__field(u64, value)
	),
	TP_fast_assign(
		__entry->queue = queue;
		__entry->object = object;
		__entry->value = value;
	),
	TP_printk("queue=%llu object=%llu value=%llu",
		  __entry->queue, __entry->object, __entry->value)
);

/* A queue goes on after a wait. */
TRACE_EVENT(dxg_unblock,
	TP_PROTO(u64 queue),
	TP_ARGS(queue),
	TP_STRUCT__entry(
		__field(u64, queue)
	),
	TP_fast_assign(
		__entry->queue = queue;
	),
	TP_printk("queue=%llu", __entry->queue)
);

/*
 * A wait for a fence or a signal of it in a queue that the OS part fills. operation: 0 signal, 1
 * wait.
 */
DECLARE_EVENT_CLASS(dxg_fence_operation,
	TP_PROTO(u64 queue, u64 fence, u64 value, u32 operation),
	TP_ARGS(queue, fence, value, operation),
	TP_STRUCT__entry(
		__field(u64, queue)
		__field(u64, fence)
		__field(u64, value)
		__field(u32, operation)
	),
	TP_fast_assign(
		__entry->queue = queue;
		__entry->fence = fence;
		__entry->value = value;
		__entry->operation = operation;
	),
	TP_printk("queue=%llu fence=%llu value=%llu operation=%u", __entry->queue,
		  __entry->fence, __entry->value, __entry->operation)
);

/* It is about to be queued. */
DEFINE_EVENT(dxg_fence_operation, dxg_fence_queued,
	     TP_PROTO(u64 queue, u64 fence, u64 value, u32 operation),
	     TP_ARGS(queue, fence, value, operation));
/* It is its turn, and the wait is over. */
DEFINE_EVENT(dxg_fence_operation, dxg_fence_done,
	     TP_PROTO(u64 queue, u64 fence, u64 value, u32 operation),
	     TP_ARGS(queue, fence, value, operation));

/* A queue has stopped for good. packet is a GPU virtual address. */
TRACE_EVENT(dxg_fault,
	TP_PROTO(u64 queue, u64 packet),
	TP_ARGS(queue, packet),
	TP_STRUCT__entry(
		__field(u64, queue)
		__field(u64, packet)
	),
	TP_fast_assign(
		__entry->queue = queue;
		__entry->packet = packet;
	),
	TP_printk("queue=%llu packet=%#llx", __entry->queue, __entry->packet)
);

/* A reset. node: of an engine, or all bits for the adapter. queue: what hangs, or 0. */
TRACE_EVENT(dxg_reset,
	TP_PROTO(u64 adapter, u32 node, u64 queue),
	TP_ARGS(adapter, node, queue),
	TP_STRUCT__entry(
		__field(u64, adapter)
		__field(u32, node)
		__field(u64, queue)
	),
	TP_fast_assign(
		__entry->adapter = adapter;
		__entry->node = node;
		__entry->queue = queue;
	),
	TP_printk("adapter=%llu node=%u queue=%llu", __entry->adapter, __entry->node,
		  __entry->queue)
);

/* A signal of a cross-adapter fence is told to another adapter. value: the present one. */
TRACE_EVENT(dxg_propagate,
	TP_PROTO(u64 object, u64 value, u64 from, u64 to),
	TP_ARGS(object, value, from, to),
	TP_STRUCT__entry(
		__field(u64, object)
		__field(u64, value)
		__field(u64, from)
		__field(u64, to)
	),
	TP_fast_assign(
		__entry->object = object;
		__entry->value = value;
		__entry->from = from;
		__entry->to = to;
	),
	TP_printk("object=%llu value=%llu from=%llu to=%llu", __entry->object, __entry->value,
		  __entry->from, __entry->to)
);

/* With verify_kmd: an entry or callback of a KMD. kind: its number in ddi/verifier/entry.rs. */
TRACE_EVENT(dxg_kmd,
	TP_PROTO(u32 kind, u64 object),
	TP_ARGS(kind, object),
	TP_STRUCT__entry(
		__field(u32, kind)
		__field(u64, object)
	),
	TP_fast_assign(
		__entry->kind = kind;
		__entry->object = object;
	),
	TP_printk("kind=%u object=%llu", __entry->kind, __entry->object)
);

/* An engine has interrupted for native fences. It named the fence or the queue, or 0. */
TRACE_EVENT(dxg_native_interrupt,
	TP_PROTO(u64 adapter, u64 fence, u64 queue),
	TP_ARGS(adapter, fence, queue),
	TP_STRUCT__entry(
		__field(u64, adapter)
		__field(u64, fence)
		__field(u64, queue)
	),
	TP_fast_assign(
		__entry->adapter = adapter;
		__entry->fence = fence;
		__entry->queue = queue;
	),
	TP_printk("adapter=%llu fence=%llu queue=%llu", __entry->adapter, __entry->fence,
		  __entry->queue)
);

/*
 * An entry of the log of a HW queue. operation: 0 a signal was executed, 1 a wait was over. Times
 * are those of the engine as CLOCK_MONOTONIC has them: when the wait was first tried, and the end.
 */
TRACE_EVENT_FN(dxg_log_entry,
	TP_PROTO(u64 queue, u64 fence, u64 value, u32 operation, u64 observed_ns, u64 end_ns),
	TP_ARGS(queue, fence, value, operation, observed_ns, end_ns),
	TP_STRUCT__entry(
		__field(u64, queue)
		__field(u64, fence)
		__field(u64, value)
		__field(u32, operation)
		__field(u64, observed_ns)
		__field(u64, end_ns)
	),
	TP_fast_assign(
		__entry->queue = queue;
		__entry->fence = fence;
		__entry->value = value;
		__entry->operation = operation;
		__entry->observed_ns = observed_ns;
		__entry->end_ns = end_ns;
	),
	TP_printk("queue=%llu fence=%llu value=%llu operation=%u observed_ns=%llu end_ns=%llu",
		  __entry->queue, __entry->fence, __entry->value, __entry->operation,
		  __entry->observed_ns, __entry->end_ns),
	dxg_trace_logs_begin,
	dxg_trace_logs_end
);

/* Entries of the log of a HW queue were written over before anybody read them. */
TRACE_EVENT(dxg_log_lost,
	TP_PROTO(u64 queue, u64 count),
	TP_ARGS(queue, count),
	TP_STRUCT__entry(
		__field(u64, queue)
		__field(u64, count)
	),
	TP_fast_assign(
		__entry->queue = queue;
		__entry->count = count;
	),
	TP_printk("queue=%llu count=%llu", __entry->queue, __entry->count)
);

/*
 * What a memory manager does, see struct dxg_paging_event. Who follows paging queues joins the
 * events by queue and value, those of one change by batch.
 */
DECLARE_EVENT_CLASS(dxg_paging,
	TP_PROTO(const struct dxg_paging_event *event),
	TP_ARGS(event),
	TP_STRUCT__entry(
		__field(u64, adapter)
		__field(u64, device)
		__field(u64, queue)
		__field(u64, value)
		__field(u64, process)
		__field(u64, object)
		__field(u64, batch)
		__field(u64, start)
		__field(u64, count)
		__field(u64, offset)
		__field(u64, address)
		__field(u64, size)
		__field(u32, segment)
		__field(u32, flags)
		__field(u32, status)
		__field(u32, operation)
	),
	TP_fast_assign(
		__entry->adapter = event->adapter;
		__entry->device = event->device;
		__entry->queue = event->queue;
		__entry->value = event->value;
		__entry->process = event->process;
		__entry->object = event->object;
		__entry->batch = event->batch;
		__entry->start = event->start;
		__entry->count = event->count;
		__entry->offset = event->offset;
		__entry->address = event->address;
		__entry->size = event->size;
		__entry->segment = event->segment;
		__entry->flags = event->flags;
		__entry->status = event->status;
		__entry->operation = event->operation;
	),
	TP_printk("adapter=%llu device=%llu queue=%llu value=%llu process=%llu object=%llu "
		  "batch=%llu start=%llu count=%llu offset=%llu address=%llu size=%llu "
		  "segment=%u flags=%u status=%u operation=%u",
		  __entry->adapter, __entry->device, __entry->queue, __entry->value,
		  __entry->process, __entry->object, __entry->batch, __entry->start,
		  __entry->count, __entry->offset, __entry->address, __entry->size,
		  __entry->segment, __entry->flags, __entry->status, __entry->operation)
);

#define DXG_PAGING_EVENT(name)						\
	DEFINE_EVENT_FN(dxg_paging, name,				\
		TP_PROTO(const struct dxg_paging_event *event),		\
		TP_ARGS(event),						\
		dxg_trace_paging_begin,					\
		dxg_trace_paging_end)

DXG_PAGING_EVENT(dxg_make_resident);
DXG_PAGING_EVENT(dxg_evict);
DXG_PAGING_EVENT(dxg_page_op_build);
DXG_PAGING_EVENT(dxg_page_op_submit);
DXG_PAGING_EVENT(dxg_page_op_done);
DXG_PAGING_EVENT(dxg_pt_update);
DXG_PAGING_EVENT(dxg_tlb_flush);
DXG_PAGING_EVENT(dxg_move);
DXG_PAGING_EVENT(dxg_offer);
DXG_PAGING_EVENT(dxg_reclaim);
DXG_PAGING_EVENT(dxg_discard);
DXG_PAGING_EVENT(dxg_budget_change);
DXG_PAGING_EVENT(dxg_trim);
DXG_PAGING_EVENT(dxg_page_fault);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
