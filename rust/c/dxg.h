/* SPDX-License-Identifier: GPL-2.0 */
/*
 * All that the C half gives the Rust side. tools/abi/ffi.sh makes rust/sys/ffi.rs of it, and a test
 * compares the two.
 *
 * bindgen does not see the kernel's headers: the types of the kernel come from the kernel crate's
 * bindings, by name.
 */
#ifndef DXG_H
#define DXG_H

#ifdef __BINDGEN__
#define bool _Bool
#define false 0
#define u16 unsigned short
#define u32 unsigned int
#define u64 unsigned long long
#define s64 long long
#define umode_t unsigned short
#define pgoff_t unsigned long
typedef unsigned long size_t;
typedef unsigned int vm_fault_t;
typedef struct { int counter; } atomic_t;
struct wait_queue_entry;
struct wait_queue_head;
typedef int (*wait_queue_func_t)(struct wait_queue_entry *entry, unsigned int mode, int flags,
				 void *key);
struct inode;
struct vm_fault;
struct vm_operations_struct;
enum dma_data_direction { DXG_DMA_NOTHING };
#endif

#include "helpers.h"
#include "memory.h"
#include "params.h"
#include "shrinker.h"
#include "sync.h"
#include "trace_calls.h"

#endif
