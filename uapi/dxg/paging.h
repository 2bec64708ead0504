/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Residency, paging queues and GPU virtual addresses.
 *
 * A call that answers STATUS_PENDING is complete when the monitored fence of
 * the paging queue reaches PagingFenceValue.
 */
#ifndef _UAPI_DXG_PAGING_H
#define _UAPI_DXG_PAGING_H

#include "base.h"

/**
 * enum _D3DDDI_PAGINGQUEUE_PRIORITY - priority of a paging queue
 */
typedef __s32 D3DDDI_PAGINGQUEUE_PRIORITY;
enum _D3DDDI_PAGINGQUEUE_PRIORITY {
	D3DDDI_PAGINGQUEUE_PRIORITY_BELOW_NORMAL = -1,
	D3DDDI_PAGINGQUEUE_PRIORITY_NORMAL = 0,
	D3DDDI_PAGINGQUEUE_PRIORITY_ABOVE_NORMAL = 1
};

/**
 * struct _D3DKMT_CREATEPAGINGQUEUE - create a paging queue
 * @hDevice: [in] device
 * @Priority: [in] priority
 * @hPagingQueue: [out] paging queue
 * @hSyncObject: [out] monitored fence of the queue
 * @FenceValueCPUVirtualAddress: [out] address of the value, mapped read-only
 * @PhysicalAdapterIndex: [in] physical adapter
 *
 * Argument of DXG_IOCTL_CREATEPAGINGQUEUE.
 */
typedef struct _D3DKMT_CREATEPAGINGQUEUE {
	D3DKMT_HANDLE hDevice;
	D3DDDI_PAGINGQUEUE_PRIORITY Priority;
	D3DKMT_HANDLE hPagingQueue;
	D3DKMT_HANDLE hSyncObject;
	__aligned_u64 FenceValueCPUVirtualAddress;
	__u32 PhysicalAdapterIndex;
	__u32 _pad0;
} D3DKMT_CREATEPAGINGQUEUE;

/**
 * struct _D3DDDI_DESTROYPAGINGQUEUE - destroy a paging queue
 * @hPagingQueue: [in] paging queue
 *
 * Argument of DXG_IOCTL_DESTROYPAGINGQUEUE.
 */
typedef struct _D3DDDI_DESTROYPAGINGQUEUE {
	D3DKMT_HANDLE hPagingQueue;
} D3DDDI_DESTROYPAGINGQUEUE;

/**
 * typedef D3DDDI_MAKERESIDENT_FLAGS - what to do when memory is short
 */
typedef __u32 D3DDDI_MAKERESIDENT_FLAGS;
#define D3DDDI_MAKERESIDENT_FLAGS_CantTrimFurther	0x00000001
#define D3DDDI_MAKERESIDENT_FLAGS_MustSucceed		0x00000002
#define D3DDDI_MAKERESIDENT_FLAGS_Reserved		0xfffffffc

/**
 * struct _D3DDDI_MAKERESIDENT - bring allocations into memory of the GPU
 * @hPagingQueue: [in] paging queue
 * @NumAllocations: [in,out] entries of the list, at most 10240; number made
 *	resident
 * @AllocationList: [in] pointer to D3DKMT_HANDLE[]
 * @PriorityList: [in] pointer to __u32[], or 0
 * @Flags: [in] mask constants of the type
 * @PagingFenceValue: [out] value of the fence of the paging queue at
 *	completion
 * @NumBytesToTrim: [out] also written on NO_MEMORY
 *
 * Argument of DXG_IOCTL_MAKERESIDENT.
 */
typedef struct _D3DDDI_MAKERESIDENT {
	D3DKMT_HANDLE hPagingQueue;
	__u32 NumAllocations;
	__aligned_u64 AllocationList;
	__aligned_u64 PriorityList;
	D3DDDI_MAKERESIDENT_FLAGS Flags;
	__u32 _pad0;
	__aligned_u64 PagingFenceValue;
	__aligned_u64 NumBytesToTrim;
} D3DDDI_MAKERESIDENT;

/**
 * typedef D3DDDI_EVICT_FLAGS - how to evict
 */
typedef __u32 D3DDDI_EVICT_FLAGS;
#define D3DDDI_EVICT_FLAGS_EvictOnlyIfNecessary	0x00000001
#define D3DDDI_EVICT_FLAGS_NotWrittenTo		0x00000002
#define D3DDDI_EVICT_FLAGS_Reserved		0xfffffffc

/**
 * struct _D3DKMT_EVICT - undo D3DDDI_MAKERESIDENT
 * @hDevice: [in] device
 * @NumAllocations: [in] number of allocations
 * @AllocationList: [in] pointer to D3DKMT_HANDLE[]
 * @Flags: [in] mask constants of the type
 * @NumBytesToTrim: [out] bytes the caller should release
 *
 * Argument of DXG_IOCTL_EVICT.
 */
typedef struct _D3DKMT_EVICT {
	D3DKMT_HANDLE hDevice;
	__u32 NumAllocations;
	__aligned_u64 AllocationList;
	D3DDDI_EVICT_FLAGS Flags;
	__u32 _pad0;
	__aligned_u64 NumBytesToTrim;
} D3DKMT_EVICT;

/**
 * enum _D3DDDIGPUVIRTUALADDRESS_RESERVATION_TYPE - what an access to a
 *	reserved range does
 */
typedef __u32 D3DDDIGPUVIRTUALADDRESS_RESERVATION_TYPE;
enum _D3DDDIGPUVIRTUALADDRESS_RESERVATION_TYPE {
	D3DDDIGPUVIRTUALADDRESS_RESERVE_NO_ACCESS = 0,
	D3DDDIGPUVIRTUALADDRESS_RESERVE_ZERO = 1,
	D3DDDIGPUVIRTUALADDRESS_RESERVE_NO_COMMIT = 2
};

/**
 * struct _D3DDDI_RESERVEGPUVIRTUALADDRESS - reserve a range of GPU addresses
 * @hPagingQueue: [in] paging queue; the slot also takes an adapter
 * @hAdapter: [in] adapter
 * @BaseAddress: [in] start of the range, 0 for any
 * @MinimumAddress: [in] lowest address to choose
 * @MaximumAddress: [in] highest address to choose
 * @Size: [in] bytes
 * @ReservationType: [in] what an access does
 * @Reserved0: [in] not used
 * @DriverProtection: [in] driver-defined bits of the page tables
 * @Reserved1: [in] not used
 * @VirtualAddress: [out] start of the range
 * @PagingFenceValue: [out] value of the fence of the paging queue at
 *	completion
 * @Reserved2: [out] not used
 *
 * Argument of DXG_IOCTL_RESERVEGPUVIRTUALADDRESS.
 */
typedef struct _D3DDDI_RESERVEGPUVIRTUALADDRESS {
	__extension__ union {
		D3DKMT_HANDLE hPagingQueue;
		D3DKMT_HANDLE hAdapter;
	};
	__u32 _pad0;
	D3DGPU_VIRTUAL_ADDRESS BaseAddress;
	D3DGPU_VIRTUAL_ADDRESS MinimumAddress;
	D3DGPU_VIRTUAL_ADDRESS MaximumAddress;
	__aligned_u64 Size;
	__extension__ union {
		D3DDDIGPUVIRTUALADDRESS_RESERVATION_TYPE ReservationType;
		__u32 Reserved0;
	};
	__u32 _pad1;
	__extension__ union {
		__aligned_u64 DriverProtection;
		__aligned_u64 Reserved1;
	};
	D3DGPU_VIRTUAL_ADDRESS VirtualAddress;
	__extension__ union {
		__aligned_u64 PagingFenceValue;
		__aligned_u64 Reserved2;
	};
} D3DDDI_RESERVEGPUVIRTUALADDRESS;

/**
 * typedef D3DDDIGPUVIRTUALADDRESS_PROTECTION_TYPE - access rights of a mapped
 *	range
 */
typedef __u64 __attribute__((aligned(8))) D3DDDIGPUVIRTUALADDRESS_PROTECTION_TYPE;
__extension__ enum _D3DDDIGPUVIRTUALADDRESS_PROTECTION_TYPE {
	D3DDDIGPUVIRTUALADDRESS_PROTECTION_TYPE_Write = 0x00000001,
	D3DDDIGPUVIRTUALADDRESS_PROTECTION_TYPE_Execute = 0x00000002,
	D3DDDIGPUVIRTUALADDRESS_PROTECTION_TYPE_Zero = 0x00000004,
	D3DDDIGPUVIRTUALADDRESS_PROTECTION_TYPE_NoAccess = 0x00000008,
	D3DDDIGPUVIRTUALADDRESS_PROTECTION_TYPE_SystemUseOnly = 0x00000010,
	D3DDDIGPUVIRTUALADDRESS_PROTECTION_TYPE_Reserved = ~(__u64)31
};

/**
 * struct _D3DDDI_MAPGPUVIRTUALADDRESS - map an allocation at a GPU address
 * @hPagingQueue: [in] paging queue
 * @BaseAddress: [in] start of the range, 0 for any
 * @MinimumAddress: [in] lowest address to choose
 * @MaximumAddress: [in] highest address to choose
 * @hAllocation: [in] allocation
 * @OffsetInPages: [in] 4 KiB pages
 * @SizeInPages: [in] 4 KiB pages
 * @Protection: [in] access rights
 * @DriverProtection: [in] driver-defined bits of the page tables
 * @Reserved0: [in] not used
 * @Reserved1: [in] not used
 * @VirtualAddress: [out] start of the range
 * @PagingFenceValue: [out] value of the fence of the paging queue at
 *	completion
 *
 * Argument of DXG_IOCTL_MAPGPUVIRTUALADDRESS.
 */
typedef struct _D3DDDI_MAPGPUVIRTUALADDRESS {
	D3DKMT_HANDLE hPagingQueue;
	__u32 _pad0;
	D3DGPU_VIRTUAL_ADDRESS BaseAddress;
	D3DGPU_VIRTUAL_ADDRESS MinimumAddress;
	D3DGPU_VIRTUAL_ADDRESS MaximumAddress;
	D3DKMT_HANDLE hAllocation;
	__u32 _pad1;
	__aligned_u64 OffsetInPages;
	__aligned_u64 SizeInPages;
	D3DDDIGPUVIRTUALADDRESS_PROTECTION_TYPE Protection;
	__aligned_u64 DriverProtection;
	__u32 Reserved0;
	__u32 _pad2;
	__aligned_u64 Reserved1;
	D3DGPU_VIRTUAL_ADDRESS VirtualAddress;
	__aligned_u64 PagingFenceValue;
} D3DDDI_MAPGPUVIRTUALADDRESS;

/**
 * struct _D3DKMT_FREEGPUVIRTUALADDRESS - free a range of GPU addresses
 * @hAdapter: [in] adapter
 * @BaseAddress: [in] start of the range
 * @Size: [in] bytes
 *
 * Argument of DXG_IOCTL_FREEGPUVIRTUALADDRESS.
 */
typedef struct _D3DKMT_FREEGPUVIRTUALADDRESS {
	D3DKMT_HANDLE hAdapter;
	__u32 _pad0;
	D3DGPU_VIRTUAL_ADDRESS BaseAddress;
	__aligned_u64 Size;
} D3DKMT_FREEGPUVIRTUALADDRESS;

/**
 * enum _D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION_TYPE - kind of a mapping
 *	operation
 */
typedef __u32 D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION_TYPE;
enum _D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION_TYPE {
	D3DDDI_UPDATEGPUVIRTUALADDRESS_MAP = 0,
	D3DDDI_UPDATEGPUVIRTUALADDRESS_UNMAP = 1,
	D3DDDI_UPDATEGPUVIRTUALADDRESS_COPY = 2,
	D3DDDI_UPDATEGPUVIRTUALADDRESS_MAP_PROTECT = 3
};

/**
 * struct D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION_Map - map an allocation
 * @BaseAddress: [in] start of the range
 * @SizeInBytes: [in] bytes
 * @hAllocation: [in] allocation
 * @AllocationOffsetInBytes: [in] bytes
 * @AllocationSizeInBytes: [in] bytes
 */
struct D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION_Map {
	D3DGPU_VIRTUAL_ADDRESS BaseAddress;
	__aligned_u64 SizeInBytes;
	D3DKMT_HANDLE hAllocation;
	__u32 _pad0;
	__aligned_u64 AllocationOffsetInBytes;
	__aligned_u64 AllocationSizeInBytes;
};

/**
 * struct D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION_MapProtect - map an
 *	allocation with access rights
 * @BaseAddress: [in] start of the range
 * @SizeInBytes: [in] bytes
 * @hAllocation: [in] allocation
 * @AllocationOffsetInBytes: [in] bytes
 * @AllocationSizeInBytes: [in] bytes
 * @Protection: [in] access rights
 * @DriverProtection: [in] driver-defined bits of the page tables
 */
struct D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION_MapProtect {
	D3DGPU_VIRTUAL_ADDRESS BaseAddress;
	__aligned_u64 SizeInBytes;
	D3DKMT_HANDLE hAllocation;
	__u32 _pad0;
	__aligned_u64 AllocationOffsetInBytes;
	__aligned_u64 AllocationSizeInBytes;
	D3DDDIGPUVIRTUALADDRESS_PROTECTION_TYPE Protection;
	__aligned_u64 DriverProtection;
};

/**
 * struct D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION_Unmap - unmap a range
 * @BaseAddress: [in] start of the range
 * @SizeInBytes: [in] bytes
 * @Protection: [in] what the range becomes (NoAccess or Zero)
 */
struct D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION_Unmap {
	D3DGPU_VIRTUAL_ADDRESS BaseAddress;
	__aligned_u64 SizeInBytes;
	D3DDDIGPUVIRTUALADDRESS_PROTECTION_TYPE Protection;
};

/**
 * struct D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION_Copy - copy the mappings of
 *	a range
 * @SourceAddress: [in] GPU address
 * @SizeInBytes: [in] bytes
 * @DestAddress: [in] GPU address
 */
struct D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION_Copy {
	D3DGPU_VIRTUAL_ADDRESS SourceAddress;
	__aligned_u64 SizeInBytes;
	D3DGPU_VIRTUAL_ADDRESS DestAddress;
};

/**
 * struct _D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION - one mapping operation
 * @OperationType: [in] which arm
 * @Map: [in] arm of MAP
 * @MapProtect: [in] arm of MAP_PROTECT
 * @Unmap: [in] arm of UNMAP
 * @Copy: [in] arm of COPY
 */
typedef struct _D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION {
	D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION_TYPE OperationType;
	__u32 _pad0;
	__extension__ union {
		struct D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION_Map Map;
		struct D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION_MapProtect MapProtect;
		struct D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION_Unmap Unmap;
		struct D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION_Copy Copy;
	};
} D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION;

/**
 * struct _D3DKMT_UPDATEGPUVIRTUALADDRESS - run a list of mapping operations in
 *	order with a context
 * @hDevice: [in] device
 * @hContext: [in] context
 * @hFenceObject: [in] monitored fence that orders the operations
 * @NumOperations: [in] entries of Operations
 * @Operations: [in] pointer to D3DDDI_UPDATEGPUVIRTUALADDRESS_OPERATION[]
 * @Reserved0: [in] not used
 * @Reserved1: [in] not used
 * @FenceValue: [in] fence value
 * @Flags: [in] mask constants below
 *
 * Runs when the fence reaches FenceValue and then sets it to FenceValue + 1;
 * with DoNotWait it runs without waiting.
 *
 * Argument of DXG_IOCTL_UPDATEGPUVIRTUALADDRESS.
 */
typedef struct _D3DKMT_UPDATEGPUVIRTUALADDRESS {
	D3DKMT_HANDLE hDevice;
	D3DKMT_HANDLE hContext;
	D3DKMT_HANDLE hFenceObject;
	__u32 NumOperations;
	__aligned_u64 Operations;
	__aligned_u64 Reserved0;
	__aligned_u64 Reserved1;
	__aligned_u64 FenceValue;
	__u32 Flags;
	__u32 _pad0;
} D3DKMT_UPDATEGPUVIRTUALADDRESS;
#define D3DKMT_UPDATEGPUVIRTUALADDRESS_Flags_DoNotWait	0x00000001
#define D3DKMT_UPDATEGPUVIRTUALADDRESS_Flags_Reserved	0xfffffffe

/* Protection bit that drivers use among themselves. */
#define D3DGPU_UNIQUE_DRIVER_PROTECTION		0x8000000000000000ULL

#endif /* _UAPI_DXG_PAGING_H */
