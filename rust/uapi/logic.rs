// SPDX-License-Identifier: GPL-2.0

//! The rules in `logic` are compiled on the host too, where there are no headers. They state the
//! bits and numbers of the contract themselves; here the compiler compares them with the headers.

use super::generated::*;
use crate::logic::{
    access,
    adapter_info::filter,
    allocation_lists,
    allocation_rules,
    doorbell::DoorbellStatus,
    info_rules,
    keyed_mutex_rules,
    residency,
    share_rules,
    sync_flags, //
};

macro_rules! same {
    ($($own:expr => $header:expr;)*) => {
        $(const _: () = assert!($own == $header, stringify!($own));)*
    };
}

same! {
    DoorbellStatus::Connected as u32 => D3DDDI_DOORBELLSTATUS_CONNECTED;
    DoorbellStatus::ConnectedNotify as u32 => D3DDDI_DOORBELLSTATUS_CONNECTED_NOTIFY_KMD;
    DoorbellStatus::Retry as u32 => D3DDDI_DOORBELLSTATUS_DISCONNECTED_RETRY;
    DoorbellStatus::Abort as u32 => D3DDDI_DOORBELLSTATUS_DISCONNECTED_ABORT;
    allocation_rules::bits::CREATE_RESOURCE => D3DKMT_CREATEALLOCATIONFLAGS_CreateResource;
    allocation_rules::bits::CREATE_SHARED => D3DKMT_CREATEALLOCATIONFLAGS_CreateShared;
    allocation_rules::bits::NON_SECURE => D3DKMT_CREATEALLOCATIONFLAGS_NonSecure;
    allocation_rules::bits::RESTRICT_SHARED_ACCESS =>
        D3DKMT_CREATEALLOCATIONFLAGS_RestrictSharedAccess;
    allocation_rules::bits::EXISTING_SYS_MEM => D3DKMT_CREATEALLOCATIONFLAGS_ExistingSysMem;
    allocation_rules::bits::NT_SECURITY_SHARING => D3DKMT_CREATEALLOCATIONFLAGS_NtSecuritySharing;
    allocation_rules::bits::READ_ONLY => D3DKMT_CREATEALLOCATIONFLAGS_ReadOnly;
    allocation_rules::bits::SWAP_CHAIN_BACK_BUFFER =>
        D3DKMT_CREATEALLOCATIONFLAGS_SwapChainBackBuffer;
    allocation_rules::bits::CROSS_ADAPTER => D3DKMT_CREATEALLOCATIONFLAGS_CrossAdapter;
    allocation_rules::bits::ZEROED => D3DKMT_CREATEALLOCATIONFLAGS_Zeroed;
    allocation_rules::bits::STANDARD_ALLOCATION => D3DKMT_CREATEALLOCATIONFLAGS_StandardAllocation;
    allocation_rules::bits::EXISTING_SECTION => D3DKMT_CREATEALLOCATIONFLAGS_ExistingSection;
    // What is refused.
    !allocation_rules::bits::KNOWN =>
        D3DKMT_CREATEALLOCATIONFLAGS_CreateProtected
            | D3DKMT_CREATEALLOCATIONFLAGS_CreateWriteCombined
            | D3DKMT_CREATEALLOCATIONFLAGS_CreateCached
            | D3DKMT_CREATEALLOCATIONFLAGS_OpenCrossAdapter
            | D3DKMT_CREATEALLOCATIONFLAGS_PartialSharedCreation
            | D3DKMT_CREATEALLOCATIONFLAGS_WriteWatch
            | D3DKMT_CREATEALLOCATIONFLAGS_SharedDisplayable
            | D3DKMT_CREATEALLOCATIONFLAGS_Reserved;
    !allocation_rules::KNOWN_ENTRY_FLAGS => D3DDDI_ALLOCATIONINFO2_Flags_Reserved;
    allocation_lists::destroy::ASSUME_NOT_IN_USE =>
        D3DDDICB_DESTROYALLOCATION2FLAGS_AssumeNotInUse;
    allocation_lists::destroy::SYNCHRONOUS =>
        D3DDDICB_DESTROYALLOCATION2FLAGS_SynchronousDestroy;
    allocation_rules::EXISTING_HEAP => D3DKMT_STANDARDALLOCATIONTYPE_EXISTINGHEAP;
    allocation_rules::CROSS_ADAPTER => D3DKMT_STANDARDALLOCATIONTYPE_CROSSADAPTER;
}

same! {
    sync_flags::bits::SHARED => D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_Shared;
    sync_flags::bits::NT_SECURITY_SHARING => D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_NtSecuritySharing;
    sync_flags::bits::CROSS_ADAPTER => D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_CrossAdapter;
    sync_flags::bits::TOP_OF_PIPELINE => D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_TopOfPipeline;
    sync_flags::bits::NO_SIGNAL => D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_NoSignal;
    sync_flags::bits::NO_WAIT => D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_NoWait;
    sync_flags::bits::NO_SIGNAL_MAX_VALUE_ON_TDR =>
        D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_NoSignalMaxValueOnTdr;
    sync_flags::bits::NO_GPU_ACCESS => D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_NoGPUAccess;
    sync_flags::bits::SIGNAL_BY_KMD => D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_SignalByKmd;
    sync_flags::types::MUTEX => D3DDDI_SYNCHRONIZATION_MUTEX;
    sync_flags::types::SEMAPHORE => D3DDDI_SEMAPHORE;
    sync_flags::types::FENCE => D3DDDI_FENCE;
    sync_flags::types::CPU_NOTIFICATION => D3DDDI_CPU_NOTIFICATION;
    sync_flags::types::MONITORED_FENCE => D3DDDI_MONITORED_FENCE;
    sync_flags::types::PERIODIC_MONITORED_FENCE => D3DDDI_PERIODIC_MONITORED_FENCE;
    sync_flags::NATIVE_DEFAULT => D3DDDI_NATIVEFENCE_TYPE_DEFAULT;
}

same! {
    info_rules::CREATE_ONLY => OPENDXG_INFO_CREATE_ONLY;
    info_rules::SEALED => OPENDXG_INFO_SEALED;
    info_rules::REMOVE_FD => OPENDXG_INFO_REMOVE_FD;
    info_rules::ATTACH_FD => OPENDXG_INFO_ATTACH_FD;
    info_rules::HAS_FD => OPENDXG_INFO_HAS_FD;
    info_rules::GET_FD => OPENDXG_GET_FD;
}

same! {
    filter::INCLUDE_COMPUTE_ONLY => D3DKMT_ENUMADAPTERS_FILTER_IncludeComputeOnly;
    filter::INCLUDE_DISPLAY_ONLY => D3DKMT_ENUMADAPTERS_FILTER_IncludeDisplayOnly;
    !(filter::INCLUDE_COMPUTE_ONLY | filter::INCLUDE_DISPLAY_ONLY) =>
        D3DKMT_ENUMADAPTERS_FILTER_Reserved;
    residency::IN_GPU_MEMORY => D3DKMT_ALLOCATIONRESIDENCYSTATUS_RESIDENTINGPUMEMORY;
    residency::IN_SHARED_MEMORY => D3DKMT_ALLOCATIONRESIDENCYSTATUS_RESIDENTINSHAREDMEMORY;
    residency::NOT_RESIDENT => D3DKMT_ALLOCATIONRESIDENCYSTATUS_NOTRESIDENT;
}

same! {
    keyed_mutex_rules::NT_SECURITY_SHARING => D3DKMT_CREATEKEYEDMUTEX2_FLAGS_NtSecuritySharing;
    !keyed_mutex_rules::NT_SECURITY_SHARING => D3DKMT_CREATEKEYEDMUTEX2_FLAGS_Reserved;
}

same! {
    access::WAIT => D3DDDI_SYNC_OBJECT_WAIT;
    access::SIGNAL => D3DDDI_SYNC_OBJECT_SIGNAL;
    access::ALL => D3DDDI_SYNC_OBJECT_ALL_ACCESS;
    access::resource::WRITE => SHARED_ALLOCATION_WRITE;
    access::resource::ALL => SHARED_ALLOCATION_ALL_ACCESS;
}

same! {
    // CAST: a small number.
    share_rules::MAX_OBJECTS as u32 => D3DKMT_MAX_OBJECTS_PER_HANDLE;
    share_rules::dup::SAME_ACCESS => OPENDXG_DUP_SAME_ACCESS;
    share_rules::dup::INHERIT => OPENDXG_DUP_INHERIT;
}
