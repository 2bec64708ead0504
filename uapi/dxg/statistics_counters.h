/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Groups of counters inside the statistics.
 *
 * Spelling is that of the public interface.
 */
#ifndef _UAPI_DXG_STATISTICS_COUNTERS_H
#define _UAPI_DXG_STATISTICS_COUNTERS_H

#include "base.h"

/**
 * struct _D3DKMT_QUERYSTATSTICS_REFERENCE_DMA_BUFFER - allocations named by
 *	packets
 */
typedef struct _D3DKMT_QUERYSTATSTICS_REFERENCE_DMA_BUFFER {
	__u32 NbCall;
	__u32 NbAllocationsReferenced;
	__u32 MaxNbAllocationsReferenced;
	__u32 NbNULLReference;
	__u32 NbWriteReference;
	__u32 NbRenamedAllocationsReferenced;
	__u32 NbIterationSearchingRenamedAllocation;
	__u32 NbLockedAllocationReferenced;
	__u32 NbAllocationWithValidPrepatchingInfoReferenced;
	__u32 NbAllocationWithInvalidPrepatchingInfoReferenced;
	__u32 NbDMABufferSuccessfullyPrePatched;
	__u32 NbPrimariesReferencesOverflow;
	__u32 NbAllocationWithNonPreferredResources;
	__u32 NbAllocationInsertedInMigrationTable;
} D3DKMT_QUERYSTATSTICS_REFERENCE_DMA_BUFFER;

/**
 * struct _D3DKMT_QUERYSTATSTICS_RENAMING - renamed allocations
 */
typedef struct _D3DKMT_QUERYSTATSTICS_RENAMING {
	__u32 NbAllocationsRenamed;
	__u32 NbAllocationsShrinked;
	__u32 NbRenamedBuffer;
	__u32 MaxRenamingListLength;
	__u32 NbFailuresDueToRenamingLimit;
	__u32 NbFailuresDueToCreateAllocation;
	__u32 NbFailuresDueToOpenAllocation;
	__u32 NbFailuresDueToLowResource;
	__u32 NbFailuresDueToNonRetiredLimit;
} D3DKMT_QUERYSTATSTICS_RENAMING;

/**
 * struct _D3DKMT_QUERYSTATISTICS_COUNTER - number of events and bytes they
 *	moved
 */
typedef struct _D3DKMT_QUERYSTATISTICS_COUNTER {
	__u32 Count;
	__u32 _pad0;
	__aligned_u64 Bytes;
} D3DKMT_QUERYSTATISTICS_COUNTER;

/**
 * struct _D3DKMT_QUERYSTATSTICS_PREPRATION - preparation of packets
 */
typedef struct _D3DKMT_QUERYSTATSTICS_PREPRATION {
	__u32 BroadcastStall;
	__u32 NbDMAPrepared;
	__u32 NbDMAPreparedLongPath;
	__u32 ImmediateHighestPreparationPass;
	D3DKMT_QUERYSTATISTICS_COUNTER AllocationsTrimmed;
} D3DKMT_QUERYSTATSTICS_PREPRATION;

/**
 * struct _D3DKMT_QUERYSTATSTICS_PAGING_FAULT - reasons of paging
 */
typedef struct _D3DKMT_QUERYSTATSTICS_PAGING_FAULT {
	D3DKMT_QUERYSTATISTICS_COUNTER Faults;
	D3DKMT_QUERYSTATISTICS_COUNTER FaultsFirstTimeAccess;
	D3DKMT_QUERYSTATISTICS_COUNTER FaultsReclaimed;
	D3DKMT_QUERYSTATISTICS_COUNTER FaultsMigration;
	D3DKMT_QUERYSTATISTICS_COUNTER FaultsIncorrectResource;
	D3DKMT_QUERYSTATISTICS_COUNTER FaultsLostContent;
	D3DKMT_QUERYSTATISTICS_COUNTER FaultsEvicted;
	D3DKMT_QUERYSTATISTICS_COUNTER AllocationsMEM_RESET;
	D3DKMT_QUERYSTATISTICS_COUNTER AllocationsUnresetSuccess;
	D3DKMT_QUERYSTATISTICS_COUNTER AllocationsUnresetFail;
	__u32 AllocationsUnresetSuccessRead;
	__u32 AllocationsUnresetFailRead;
	D3DKMT_QUERYSTATISTICS_COUNTER Evictions;
	D3DKMT_QUERYSTATISTICS_COUNTER EvictionsDueToPreparation;
	D3DKMT_QUERYSTATISTICS_COUNTER EvictionsDueToLock;
	D3DKMT_QUERYSTATISTICS_COUNTER EvictionsDueToClose;
	D3DKMT_QUERYSTATISTICS_COUNTER EvictionsDueToPurge;
	D3DKMT_QUERYSTATISTICS_COUNTER EvictionsDueToSuspendCPUAccess;
} D3DKMT_QUERYSTATSTICS_PAGING_FAULT;

/**
 * struct _D3DKMT_QUERYSTATSTICS_PAGING_TRANSFER - bytes moved by paging
 */
typedef struct _D3DKMT_QUERYSTATSTICS_PAGING_TRANSFER {
	__aligned_u64 BytesFilled;
	__aligned_u64 BytesDiscarded;
	__aligned_u64 BytesMappedIntoAperture;
	__aligned_u64 BytesUnmappedFromAperture;
	__aligned_u64 BytesTransferredFromMdlToMemory;
	__aligned_u64 BytesTransferredFromMemoryToMdl;
	__aligned_u64 BytesTransferredFromApertureToMemory;
	__aligned_u64 BytesTransferredFromMemoryToAperture;
} D3DKMT_QUERYSTATSTICS_PAGING_TRANSFER;

/**
 * struct _D3DKMT_QUERYSTATSTICS_SWIZZLING_RANGE - swizzling ranges
 */
typedef struct _D3DKMT_QUERYSTATSTICS_SWIZZLING_RANGE {
	__u32 NbRangesAcquired;
	__u32 NbRangesReleased;
} D3DKMT_QUERYSTATSTICS_SWIZZLING_RANGE;

/**
 * struct _D3DKMT_QUERYSTATSTICS_LOCKS - mappings for the CPU
 */
typedef struct _D3DKMT_QUERYSTATSTICS_LOCKS {
	__u32 NbLocks;
	__u32 NbLocksWaitFlag;
	__u32 NbLocksDiscardFlag;
	__u32 NbLocksNoOverwrite;
	__u32 NbLocksNoReadSync;
	__u32 NbLocksLinearization;
	__u32 NbComplexLocks;
} D3DKMT_QUERYSTATSTICS_LOCKS;

/**
 * struct _D3DKMT_QUERYSTATSTICS_ALLOCATIONS - life of allocations
 */
typedef struct _D3DKMT_QUERYSTATSTICS_ALLOCATIONS {
	D3DKMT_QUERYSTATISTICS_COUNTER Created;
	D3DKMT_QUERYSTATISTICS_COUNTER Destroyed;
	D3DKMT_QUERYSTATISTICS_COUNTER Opened;
	D3DKMT_QUERYSTATISTICS_COUNTER Closed;
	D3DKMT_QUERYSTATISTICS_COUNTER MigratedSuccess;
	D3DKMT_QUERYSTATISTICS_COUNTER MigratedFail;
	D3DKMT_QUERYSTATISTICS_COUNTER MigratedAbandoned;
} D3DKMT_QUERYSTATSTICS_ALLOCATIONS;

/**
 * struct _D3DKMT_QUERYSTATSTICS_TERMINATIONS - ends of allocations
 */
typedef struct _D3DKMT_QUERYSTATSTICS_TERMINATIONS {
	D3DKMT_QUERYSTATISTICS_COUNTER TerminatedShared;
	D3DKMT_QUERYSTATISTICS_COUNTER TerminatedNonShared;
	D3DKMT_QUERYSTATISTICS_COUNTER DestroyedShared;
	D3DKMT_QUERYSTATISTICS_COUNTER DestroyedNonShared;
} D3DKMT_QUERYSTATSTICS_TERMINATIONS;

/**
 * struct _D3DKMT_QUERYSTATISTICS_MEMORY - allocations in a segment
 */
typedef struct _D3DKMT_QUERYSTATISTICS_MEMORY {
	__aligned_u64 TotalBytesEvicted;
	__u32 AllocsCommitted;
	__u32 AllocsResident;
} D3DKMT_QUERYSTATISTICS_MEMORY;

/**
 * struct _D3DKMT_QUERYSTATISTICS_SYSTEM_MEMORY - system memory of a process
 */
typedef struct _D3DKMT_QUERYSTATISTICS_SYSTEM_MEMORY {
	__aligned_u64 BytesAllocated;
	__aligned_u64 BytesReserved;
	__u32 SmallAllocationBlocks;
	__u32 LargeAllocationBlocks;
	__aligned_u64 WriteCombinedBytesAllocated;
	__aligned_u64 WriteCombinedBytesReserved;
	__aligned_u64 CachedBytesAllocated;
	__aligned_u64 CachedBytesReserved;
	__aligned_u64 SectionBytesAllocated;
	__aligned_u64 SectionBytesReserved;
	__aligned_u64 BytesZeroed;
} D3DKMT_QUERYSTATISTICS_SYSTEM_MEMORY;

/**
 * struct _D3DKMT_QUERYSTATISTICS_VIDEO_MEMORY - video memory of a process
 */
typedef struct _D3DKMT_QUERYSTATISTICS_VIDEO_MEMORY {
	__u32 AllocsCommitted;
	__u32 _pad0;
	D3DKMT_QUERYSTATISTICS_COUNTER AllocsResidentInP[5];
	D3DKMT_QUERYSTATISTICS_COUNTER AllocsResidentInNonPreferred;
	__aligned_u64 TotalBytesEvictedDueToPreparation;
} D3DKMT_QUERYSTATISTICS_VIDEO_MEMORY;

/**
 * struct _D3DKMT_QUERYSTATISTICS_COMMITMENT_DATA - evictions and preferences
 *	of a process
 */
typedef struct _D3DKMT_QUERYSTATISTICS_COMMITMENT_DATA {
	__aligned_u64 TotalBytesEvictedFromProcess;
	__aligned_u64 BytesBySegmentPreference[5];
} D3DKMT_QUERYSTATISTICS_COMMITMENT_DATA;

/**
 * struct _D3DKMT_QUERYSTATISTICS_POLICY - memory policy of a process
 */
typedef struct _D3DKMT_QUERYSTATISTICS_POLICY {
	__aligned_u64 PreferApertureForRead[5];
	__aligned_u64 PreferAperture[5];
	__aligned_u64 MemResetOnPaging;
	__aligned_u64 RemovePagesFromWorkingSetOnPaging;
	__aligned_u64 MigrationEnabled;
} D3DKMT_QUERYSTATISTICS_POLICY;

/**
 * struct _D3DKMT_QUERYSTATISTICS_PROCESS_SEGMENT_POLICY - replacement policy
 *	in a segment
 */
typedef struct _D3DKMT_QUERYSTATISTICS_PROCESS_SEGMENT_POLICY {
	__aligned_u64 UseMRU;
} D3DKMT_QUERYSTATISTICS_PROCESS_SEGMENT_POLICY;

/**
 * struct _D3DKMT_QUERYSTATISTICS_DMA_BUFFER - size of packets
 */
typedef struct _D3DKMT_QUERYSTATISTICS_DMA_BUFFER {
	D3DKMT_QUERYSTATISTICS_COUNTER Size;
	__u32 AllocationListBytes;
	__u32 PatchLocationListBytes;
} D3DKMT_QUERYSTATISTICS_DMA_BUFFER;

/**
 * struct _D3DKMT_QUERYSTATISTICS_QUEUE_PACKET_TYPE_INFORMATION - packets in
 *	queues
 */
typedef struct _D3DKMT_QUERYSTATISTICS_QUEUE_PACKET_TYPE_INFORMATION {
	__u32 PacketSubmited;
	__u32 PacketCompleted;
} D3DKMT_QUERYSTATISTICS_QUEUE_PACKET_TYPE_INFORMATION;

/**
 * struct _D3DKMT_QUERYSTATISTICS_DMA_PACKET_TYPE_INFORMATION - packets on
 *	engines
 */
typedef struct _D3DKMT_QUERYSTATISTICS_DMA_PACKET_TYPE_INFORMATION {
	__u32 PacketSubmited;
	__u32 PacketCompleted;
	__u32 PacketPreempted;
	__u32 PacketFaulted;
} D3DKMT_QUERYSTATISTICS_DMA_PACKET_TYPE_INFORMATION;

/**
 * struct _D3DKMT_QUERYSTATISTICS_PACKET_INFORMATION - packets by kind
 */
typedef struct _D3DKMT_QUERYSTATISTICS_PACKET_INFORMATION {
	D3DKMT_QUERYSTATISTICS_QUEUE_PACKET_TYPE_INFORMATION QueuePacket[8];
	D3DKMT_QUERYSTATISTICS_DMA_PACKET_TYPE_INFORMATION DmaPacket[4];
} D3DKMT_QUERYSTATISTICS_PACKET_INFORMATION;

/**
 * struct _D3DKMT_QUERYSTATISTICS_PREEMPTION_INFORMATION - preemptions by
 *	outcome
 */
typedef struct _D3DKMT_QUERYSTATISTICS_PREEMPTION_INFORMATION {
	__u32 PreemptionCounter[16];
} D3DKMT_QUERYSTATISTICS_PREEMPTION_INFORMATION;

/**
 * struct _D3DKMT_QUERYSTATISTICS_PROCESS_INTERFERENCE_COUNTERS - how often
 *	others were in the way
 */
typedef struct _D3DKMT_QUERYSTATISTICS_PROCESS_INTERFERENCE_COUNTERS {
	__aligned_u64 InterferenceCount[9];
} D3DKMT_QUERYSTATISTICS_PROCESS_INTERFERENCE_COUNTERS;

#endif /* _UAPI_DXG_STATISTICS_COUNTERS_H */
