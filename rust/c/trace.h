/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints of opendxg, system "dxg". Objects are named by their id, never by an address.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM dxg

#if !defined(DXG_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define DXG_TRACE_H

#include <linux/tracepoint.h>

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

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
