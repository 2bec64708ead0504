// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every exported function, one row each: how it is served, its name, its argument.
//!
//! | row | what the function does |
//! |---|---|
//! | `direct NAME(STRUCT);` | runs the call that STRUCT belongs to |
//! | `object NAME(STRUCT);` | the same, or the descriptor's ioctl for an NT handle |
//! | `reopening NAME(STRUCT);` | the same, and opens the node again in a forked child |
//! | `translated NAME(STRUCT) via OTHER = path;` | `path` makes it the call of OTHER |
//! | `answered NAME(STRUCT) = path;` | `path` answers without the kernel |
//! | `pending NAME(STRUCT);` | NOT_SUPPORTED until the kernel has a call for it |
//! | `unsupported NAME(STRUCT);` | NOT_SUPPORTED: displays, or nothing a kernel could do |
//!
//! NULL instead of an argument is INVALID_PARAMETER, or what a row names after `null`.
//!
//! `{}` in place of an argument marks a function with another signature, written out in
//! [`signatures`](crate::signatures).

use opendxg::uapi::*;

use crate::export::functions;
use crate::{adapter_info, adapters, allocations, answers, names, notices, sync_objects};

functions! {
    "Adapters and queries" {
        reopening D3DKMTOpenAdapterFromLuid(D3DKMT_OPENADAPTERFROMLUID);
        direct D3DKMTCloseAdapter(D3DKMT_CLOSEADAPTER);
        reopening D3DKMTEnumAdapters2(D3DKMT_ENUMADAPTERS2);
        reopening D3DKMTEnumAdapters3(D3DKMT_ENUMADAPTERS3);
        translated D3DKMTEnumAdapters(D3DKMT_ENUMADAPTERS)
            via D3DKMT_ENUMADAPTERS2 = adapters::enum_adapters;
        translated D3DKMTOpenAdapterFromGdiDisplayName(D3DKMT_OPENADAPTERFROMGDIDISPLAYNAME)
            via D3DKMT_OPENADAPTERFROMLUID = adapters::open_from_gdi_display_name::<u32>,
            null UNSUCCESSFUL;
        translated D3DKMTOpenAdapterFromDeviceName(D3DKMT_OPENADAPTERFROMDEVICENAME)
            via D3DKMT_OPENADAPTERFROMLUID = adapters::open_from_device_name::<u32>;
        answered D3DKMTOpenAdapterFromHdc(D3DKMT_OPENADAPTERFROMHDC)
            = answers::open_adapter_from_hdc;
        translated D3DKMTQueryAdapterInfo(D3DKMT_QUERYADAPTERINFO)
            via D3DKMT_QUERYADAPTERINFO = adapter_info::query;
        direct D3DKMTQueryVideoMemoryInfo(D3DKMT_QUERYVIDEOMEMORYINFO);
        direct D3DKMTChangeVideoMemoryReservation(D3DKMT_CHANGEVIDEOMEMORYRESERVATION);
        direct D3DKMTQueryStatistics(D3DKMT_QUERYSTATISTICS);
        direct D3DKMTQueryClockCalibration(D3DKMT_QUERYCLOCKCALIBRATION);
        direct D3DKMTFlushHeapTransitions(D3DKMT_FLUSHHEAPTRANSITIONS);
        answered D3DKMTSetStablePowerState(D3DKMT_SETSTABLEPOWERSTATE) = answers::set_stable_power_state;
        unsupported D3DKMTQueryRemoteVidPnSourceFromGdiDisplayName(D3DKMT_QUERYREMOTEVIDPNSOURCEFROMGDIDISPLAYNAME);
        answered D3DKMTCloseDxCoreDevice {};
    }
    "DXCore" {
        translated DXCoreCreateAdapterFactory {} via D3DKMT_ENUMADAPTERS3;
    }
    "Devices, contexts, queues" {
        direct D3DKMTCreateDevice(D3DKMT_CREATEDEVICE);
        direct D3DKMTDestroyDevice(D3DKMT_DESTROYDEVICE);
        direct D3DKMTCreateContext(D3DKMT_CREATECONTEXT);
        direct D3DKMTCreateContextVirtual(D3DKMT_CREATECONTEXTVIRTUAL);
        direct D3DKMTDestroyContext(D3DKMT_DESTROYCONTEXT);
        direct D3DKMTCreateHwContext(D3DKMT_CREATEHWCONTEXT);
        direct D3DKMTDestroyHwContext(D3DKMT_DESTROYHWCONTEXT);
        direct D3DKMTCreateHwQueue(D3DKMT_CREATEHWQUEUE);
        direct D3DKMTDestroyHwQueue(D3DKMT_DESTROYHWQUEUE);
        direct D3DKMTCreateDoorbell(D3DKMT_CREATE_DOORBELL);
        direct D3DKMTConnectDoorbell(D3DKMT_CONNECT_DOORBELL);
        direct D3DKMTDestroyDoorbell(D3DKMT_DESTROY_DOORBELL);
        direct D3DKMTNotifyWorkSubmission(D3DKMT_NOTIFY_WORK_SUBMISSION);
        direct D3DKMTSubmitCommand(D3DKMT_SUBMITCOMMAND);
        direct D3DKMTSubmitCommandToHwQueue(D3DKMT_SUBMITCOMMANDTOHWQUEUE);
        direct D3DKMTRender(D3DKMT_RENDER);
        direct D3DKMTGetDeviceState(D3DKMT_GETDEVICESTATE);
        direct D3DKMTMarkDeviceAsError(D3DKMT_MARKDEVICEASERROR);
        direct D3DKMTSetContextSchedulingPriority(D3DKMT_SETCONTEXTSCHEDULINGPRIORITY);
        direct D3DKMTGetContextSchedulingPriority(D3DKMT_GETCONTEXTSCHEDULINGPRIORITY);
        direct D3DKMTSetContextInProcessSchedulingPriority(D3DKMT_SETCONTEXTINPROCESSSCHEDULINGPRIORITY);
        direct D3DKMTGetContextInProcessSchedulingPriority(D3DKMT_GETCONTEXTINPROCESSSCHEDULINGPRIORITY);
        pending D3DKMTSetProcessSchedulingPriorityClass {};
        pending D3DKMTGetProcessSchedulingPriorityClass {};
        pending D3DKMTWaitForIdle(D3DKMT_WAITFORIDLE);
        pending D3DKMTSetQueuedLimit(D3DKMT_SETQUEUEDLIMIT);
        answered D3DKMTGetProcessDeviceRemovalSupport(D3DKMT_GETPROCESSDEVICEREMOVALSUPPORT)
            = answers::get_process_device_removal_support;
    }
    "Allocations and resources" {
        translated D3DKMTCreateAllocation(D3DKMT_CREATEALLOCATION)
            via D3DKMT_CREATEALLOCATION = allocations::create;
        direct D3DKMTCreateAllocation2(D3DKMT_CREATEALLOCATION);
        translated D3DKMTDestroyAllocation(D3DKMT_DESTROYALLOCATION)
            via D3DKMT_DESTROYALLOCATION2 = allocations::destroy;
        direct D3DKMTDestroyAllocation2(D3DKMT_DESTROYALLOCATION2);
        direct D3DKMTQueryResourceInfo(D3DKMT_QUERYRESOURCEINFO);
        direct D3DKMTQueryResourceInfoFromNtHandle(D3DKMT_QUERYRESOURCEINFOFROMNTHANDLE);
        translated D3DKMTOpenResource(D3DKMT_OPENRESOURCE)
            via D3DKMT_OPENRESOURCE = allocations::open_resource;
        direct D3DKMTOpenResource2(D3DKMT_OPENRESOURCE);
        direct D3DKMTOpenResourceFromNtHandle(D3DKMT_OPENRESOURCEFROMNTHANDLE);
        direct D3DKMTGetSharedResourceAdapterLuid(D3DKMT_GETSHAREDRESOURCEADAPTERLUID);
        direct D3DKMTSetAllocationPriority(D3DKMT_SETALLOCATIONPRIORITY);
        direct D3DKMTGetAllocationPriority(D3DKMT_GETALLOCATIONPRIORITY);
        direct D3DKMTQueryAllocationResidency(D3DKMT_QUERYALLOCATIONRESIDENCY);
        direct D3DKMTOfferAllocations(D3DKMT_OFFERALLOCATIONS);
        direct D3DKMTReclaimAllocations(D3DKMT_RECLAIMALLOCATIONS);
        direct D3DKMTReclaimAllocations2(D3DKMT_RECLAIMALLOCATIONS2);
        answered D3DKMTLock(D3DKMT_LOCK) = answers::lock;
        pending D3DKMTUnlock(D3DKMT_UNLOCK);
        direct D3DKMTLock2(D3DKMT_LOCK2);
        direct D3DKMTUnlock2(D3DKMT_UNLOCK2);
        direct D3DKMTInvalidateCache(D3DKMT_INVALIDATECACHE);
        direct D3DKMTUpdateAllocationProperty(D3DDDI_UPDATEALLOCPROPERTY);
        direct D3DKMTGetRuntimeData(D3DKMT_GETRUNTIMEDATA);
        direct D3DKMTCheckSharedResourceAccess(D3DKMT_CHECKSHAREDRESOURCEACCESS);
        direct D3DKMTConfigureSharedResource(D3DKMT_CONFIGURESHAREDRESOURCE);
        unsupported D3DKMTGetResourcePresentPrivateDriverData(D3DDDI_GETRESOURCEPRESENTPRIVATEDRIVERDATA);
        direct D3DKMTQueryProcessOfferInfo(D3DKMT_QUERYPROCESSOFFERINFO);
        direct D3DKMTTrimProcessCommitment(D3DKMT_TRIMPROCESSCOMMITMENT);
    }
    "Paging and GPU virtual addresses" {
        direct D3DKMTCreatePagingQueue(D3DKMT_CREATEPAGINGQUEUE);
        direct D3DKMTDestroyPagingQueue(D3DDDI_DESTROYPAGINGQUEUE);
        direct D3DKMTMakeResident(D3DDDI_MAKERESIDENT);
        direct D3DKMTEvict(D3DKMT_EVICT);
        direct D3DKMTReserveGpuVirtualAddress(D3DDDI_RESERVEGPUVIRTUALADDRESS);
        direct D3DKMTMapGpuVirtualAddress(D3DDDI_MAPGPUVIRTUALADDRESS);
        direct D3DKMTFreeGpuVirtualAddress(D3DKMT_FREEGPUVIRTUALADDRESS);
        direct D3DKMTUpdateGpuVirtualAddress(D3DKMT_UPDATEGPUVIRTUALADDRESS);
        translated D3DKMTRegisterTrimNotification(D3DKMT_REGISTERTRIMNOTIFICATION)
            via opendxg_memory_notice = notices::register_trim;
        answered D3DKMTUnregisterTrimNotification(D3DKMT_UNREGISTERTRIMNOTIFICATION)
            = notices::unregister_trim;
    }
    "Synchronization" {
        translated D3DKMTCreateSynchronizationObject(D3DKMT_CREATESYNCHRONIZATIONOBJECT)
            via D3DKMT_CREATESYNCHRONIZATIONOBJECT2 = sync_objects::create;
        direct D3DKMTCreateSynchronizationObject2(D3DKMT_CREATESYNCHRONIZATIONOBJECT2);
        direct D3DKMTOpenSynchronizationObject(D3DKMT_OPENSYNCHRONIZATIONOBJECT);
        direct D3DKMTDestroySynchronizationObject(D3DKMT_DESTROYSYNCHRONIZATIONOBJECT);
        translated D3DKMTWaitForSynchronizationObject(D3DKMT_WAITFORSYNCHRONIZATIONOBJECT)
            via D3DKMT_WAITFORSYNCHRONIZATIONOBJECT2 = sync_objects::wait;
        direct D3DKMTWaitForSynchronizationObject2(D3DKMT_WAITFORSYNCHRONIZATIONOBJECT2);
        translated D3DKMTSignalSynchronizationObject(D3DKMT_SIGNALSYNCHRONIZATIONOBJECT)
            via D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2 = sync_objects::signal;
        direct D3DKMTSignalSynchronizationObject2(D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2);
        direct D3DKMTWaitForSynchronizationObjectFromCpu(D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU);
        direct D3DKMTSignalSynchronizationObjectFromCpu(D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU);
        direct D3DKMTWaitForSynchronizationObjectFromGpu(D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU);
        direct D3DKMTSignalSynchronizationObjectFromGpu(D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU);
        direct D3DKMTSignalSynchronizationObjectFromGpu2(D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2);
        direct D3DKMTSubmitWaitForSyncObjectsToHwQueue(D3DKMT_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE);
        direct D3DKMTSubmitSignalSyncObjectsToHwQueue(D3DKMT_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE);
        direct D3DKMTOpenSyncObjectFromNtHandle(D3DKMT_OPENSYNCOBJECTFROMNTHANDLE);
        direct D3DKMTOpenSyncObjectFromNtHandle2(D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2);
    }
    "Sharing, names, sync files" {
        translated D3DKMTShareObjects {} via D3DKMT_SHAREOBJECTS;
        translated D3DKMTOpenNtHandleFromName(D3DKMT_OPENNTHANDLEFROMNAME)
            via D3DKMT_OPENNTHANDLEFROMNAME = names::open_resource;
        translated D3DKMTOpenSyncObjectNtHandleFromName(D3DKMT_OPENSYNCOBJECTNTHANDLEFROMNAME)
            via D3DKMT_OPENSYNCOBJECTNTHANDLEFROMNAME = names::open_sync_object;
        direct D3DKMTShareObjectWithHost(D3DKMT_SHAREOBJECTWITHHOST);
        direct D3DKMTCreateSyncFile(D3DKMT_CREATESYNCFILE);
    }
    "Keyed mutexes" {
        direct D3DKMTCreateKeyedMutex(D3DKMT_CREATEKEYEDMUTEX);
        direct D3DKMTCreateKeyedMutex2(D3DKMT_CREATEKEYEDMUTEX2);
        direct D3DKMTOpenKeyedMutex(D3DKMT_OPENKEYEDMUTEX);
        direct D3DKMTOpenKeyedMutex2(D3DKMT_OPENKEYEDMUTEX2);
        direct D3DKMTOpenKeyedMutexFromNtHandle(D3DKMT_OPENKEYEDMUTEXFROMNTHANDLE);
        direct D3DKMTDestroyKeyedMutex(D3DKMT_DESTROYKEYEDMUTEX);
        direct D3DKMTAcquireKeyedMutex(D3DKMT_ACQUIREKEYEDMUTEX);
        direct D3DKMTAcquireKeyedMutex2(D3DKMT_ACQUIREKEYEDMUTEX2);
        direct D3DKMTReleaseKeyedMutex(D3DKMT_RELEASEKEYEDMUTEX);
        direct D3DKMTReleaseKeyedMutex2(D3DKMT_RELEASEKEYEDMUTEX2);
    }
    "Escape" {
        direct D3DKMTEscape(D3DKMT_ESCAPE);
    }
    "VidPn ownership and occlusion" {
        pending D3DKMTSetVidPnSourceOwner(D3DKMT_SETVIDPNSOURCEOWNER);
        pending D3DKMTSetVidPnSourceOwner1(D3DKMT_SETVIDPNSOURCEOWNER1);
        pending D3DKMTSetVidPnSourceOwner2(D3DKMT_SETVIDPNSOURCEOWNER2);
        pending D3DKMTCheckVidPnExclusiveOwnership(D3DKMT_CHECKVIDPNEXCLUSIVEOWNERSHIP);
        pending D3DKMTQueryVidPnExclusiveOwnership(D3DKMT_QUERYVIDPNEXCLUSIVEOWNERSHIP);
        pending D3DKMTReleaseProcessVidPnSourceOwners {};
        answered D3DKMTCheckExclusiveOwnership {};
        answered D3DKMTCheckOcclusion(D3DKMT_CHECKOCCLUSION) = answers::check_occlusion;
    }
    "Present, display, overlays, gamma, vertical blank" {
        unsupported D3DKMTPresent(D3DKMT_PRESENT);
        unsupported D3DKMTPresentRedirected(D3DKMT_PRESENT_REDIRECTED);
        unsupported D3DKMTPresentMultiPlaneOverlay(D3DKMT_PRESENT_MULTIPLANE_OVERLAY);
        unsupported D3DKMTPresentMultiPlaneOverlay2(D3DKMT_PRESENT_MULTIPLANE_OVERLAY2);
        unsupported D3DKMTPresentMultiPlaneOverlay3(D3DKMT_PRESENT_MULTIPLANE_OVERLAY3);
        unsupported D3DKMTCancelPresents(D3DKMT_CANCEL_PRESENTS);
        unsupported D3DKMTSubmitPresentBltToHwQueue(D3DKMT_SUBMITPRESENTBLTTOHWQUEUE);
        unsupported D3DKMTSubmitPresentToHwQueue(D3DKMT_SUBMITPRESENTTOHWQUEUE);
        unsupported D3DKMTGetPresentHistory(D3DKMT_GETPRESENTHISTORY);
        unsupported D3DKMTGetPresentQueueEvent {};
        unsupported D3DKMTCheckMultiPlaneOverlaySupport(D3DKMT_CHECKMULTIPLANEOVERLAYSUPPORT);
        unsupported D3DKMTCheckMultiPlaneOverlaySupport2(D3DKMT_CHECKMULTIPLANEOVERLAYSUPPORT2);
        unsupported D3DKMTCheckMultiPlaneOverlaySupport3(D3DKMT_CHECKMULTIPLANEOVERLAYSUPPORT3);
        unsupported D3DKMTGetMultiPlaneOverlayCaps(D3DKMT_GET_MULTIPLANE_OVERLAY_CAPS);
        unsupported D3DKMTGetPostCompositionCaps(D3DKMT_GET_POST_COMPOSITION_CAPS);
        unsupported D3DKMTGetDisplayModeList(D3DKMT_GETDISPLAYMODELIST);
        unsupported D3DKMTSetDisplayMode(D3DKMT_SETDISPLAYMODE);
        unsupported D3DKMTGetMultisampleMethodList(D3DKMT_GETMULTISAMPLEMETHODLIST);
        unsupported D3DKMTSetDisplayPrivateDriverFormat(D3DKMT_SETDISPLAYPRIVATEDRIVERFORMAT);
        unsupported D3DKMTGetSharedPrimaryHandle(D3DKMT_GETSHAREDPRIMARYHANDLE);
        unsupported D3DKMTSharedPrimaryLockNotification(D3DKMT_SHAREDPRIMARYLOCKNOTIFICATION);
        unsupported D3DKMTSharedPrimaryUnLockNotification(D3DKMT_SHAREDPRIMARYUNLOCKNOTIFICATION);
        unsupported D3DKMTCreateOverlay(D3DKMT_CREATEOVERLAY);
        unsupported D3DKMTUpdateOverlay(D3DKMT_UPDATEOVERLAY);
        unsupported D3DKMTFlipOverlay(D3DKMT_FLIPOVERLAY);
        unsupported D3DKMTDestroyOverlay(D3DKMT_DESTROYOVERLAY);
        unsupported D3DKMTGetOverlayState(D3DKMT_GETOVERLAYSTATE);
        unsupported D3DKMTSetGammaRamp(D3DKMT_SETGAMMARAMP);
        unsupported D3DKMTAdjustFullscreenGamma(D3DKMT_ADJUSTFULLSCREENGAMMA);
        unsupported D3DKMTSetMonitorColorSpaceTransform(D3DKMT_SET_COLORSPACE_TRANSFORM);
        unsupported D3DKMTWaitForVerticalBlankEvent(D3DKMT_WAITFORVERTICALBLANKEVENT);
        unsupported D3DKMTWaitForVerticalBlankEvent2(D3DKMT_WAITFORVERTICALBLANKEVENT2);
        unsupported D3DKMTGetDWMVerticalBlankEvent(D3DKMT_GETVERTICALBLANKEVENT);
        unsupported D3DKMTSetSyncRefreshCountWaitTarget(D3DKMT_SETSYNCREFRESHCOUNTWAITTARGET);
        unsupported D3DKMTGetScanLine(D3DKMT_GETSCANLINE);
        unsupported D3DKMTPollDisplayChildren(D3DKMT_POLLDISPLAYCHILDREN);
        unsupported D3DKMTInvalidateActiveVidPn(D3DKMT_INVALIDATEACTIVEVIDPN);
        unsupported D3DKMTCheckMonitorPowerState(D3DKMT_CHECKMONITORPOWERSTATE);
        unsupported D3DKMTSetFSEBlock(D3DKMT_SETFSEBLOCK);
        unsupported D3DKMTQueryFSEBlock(D3DKMT_QUERYFSEBLOCK);
        unsupported D3DKMTSetVidPnSourceHwProtection(D3DKMT_SETVIDPNSOURCEHWPROTECTION);
        unsupported D3DKMTSetHwProtectionTeardownRecovery(D3DKMT_SETHWPROTECTIONTEARDOWNRECOVERY);
        unsupported D3DKMTCreateDCFromMemory(D3DKMT_CREATEDCFROMMEMORY);
        unsupported D3DKMTDestroyDCFromMemory(D3DKMT_DESTROYDCFROMMEMORY);
        unsupported D3DKMTChangeSurfacePointer(D3DKMT_CHANGESURFACEPOINTER);
    }
    "Output duplication" {
        unsupported D3DKMTCreateOutputDupl(D3DKMT_CREATE_OUTPUTDUPL);
        unsupported D3DKMTDestroyOutputDupl(D3DKMT_DESTROY_OUTPUTDUPL);
        unsupported D3DKMTOutputDuplGetFrameInfo(D3DKMT_OUTPUTDUPL_GET_FRAMEINFO);
        unsupported D3DKMTOutputDuplGetMetaData(D3DKMT_OUTPUTDUPL_METADATA);
        unsupported D3DKMTOutputDuplGetPointerShapeData(D3DKMT_OUTPUTDUPL_GET_POINTER_SHAPE_DATA);
        unsupported D3DKMTOutputDuplReleaseFrame(D3DKMT_OUTPUTDUPL_RELEASE_FRAME);
        unsupported D3DKMTOutputDuplPresent(D3DKMT_OUTPUTDUPLPRESENT);
        unsupported D3DKMTOutputDuplPresentToHwQueue(D3DKMT_OUTPUTDUPLPRESENTTOHWQUEUE);
    }
    "Protected sessions" {
        unsupported D3DKMTCreateProtectedSession(D3DKMT_CREATEPROTECTEDSESSION);
        unsupported D3DKMTDestroyProtectedSession(D3DKMT_DESTROYPROTECTEDSESSION);
        unsupported D3DKMTQueryProtectedSessionStatus(D3DKMT_QUERYPROTECTEDSESSIONSTATUS);
        unsupported D3DKMTQueryProtectedSessionInfoFromNtHandle(D3DKMT_QUERYPROTECTEDSESSIONINFOFROMNTHANDLE);
        unsupported D3DKMTOpenProtectedSessionFromNtHandle(D3DKMT_OPENPROTECTEDSESSIONFROMNTHANDLE);
    }
    "WDDM 3.2, processes and features" {
        direct D3DKMTCreateNativeFence(D3DKMT_CREATENATIVEFENCE);
        direct D3DKMTOpenNativeFenceFromNtHandle(D3DKMT_OPENNATIVEFENCEFROMNTHANDLE);
        direct D3DKMTGetNativeFenceLogDetail(D3DKMT_GETNATIVEFENCELOGDETAIL);
        direct D3DKMTEnumProcesses(d3dkmt_enumprocesses);
        direct D3DKMTIsFeatureEnabled(D3DKMT_ISFEATUREENABLED);
        answered D3DKMTSetProcessDeviceRemovalSupport(D3DKMT_SETPROCESSDEVICEREMOVALSUPPORT)
            = answers::set_process_device_removal_support;
    }
    "Sync files and internal sharing" {
        direct D3DKMTWaitSyncFile(d3dkmt_waitsyncfile);
        direct D3DKMTOpenSyncObjectFromSyncFile(d3dkmt_opensyncobjectfromsyncfile);
        direct D3DKMTShareObjectsInternal(D3DKMT_SHAREOBJECTS);
    }
    "Pinning, tracked workloads, budgets, hybrid lists" {
        unsupported D3DKMTPinResources(D3DKMT_PINRESOURCES);
        unsupported D3DKMTUnpinResources(D3DKMT_UNPINRESOURCES);
        unsupported D3DKMTPinDirectFlipResources(D3DKMT_PINDIRECTFLIPRESOURCES);
        unsupported D3DKMTUnpinDirectFlipResources(D3DKMT_UNPINDIRECTFLIPRESOURCES);
        unsupported D3DKMTCreateTrackedWorkload(D3DKMT_CREATETRACKEDWORKLOAD);
        unsupported D3DKMTDestroyTrackedWorkload(D3DKMT_DESTROYTRACKEDWORKLOAD);
        unsupported D3DKMTUpdateTrackedWorkload(D3DKMT_UPDATETRACKEDWORKLOAD);
        unsupported D3DKMTGetAvailableTrackedWorkloadIndex(D3DKMT_GETAVAILABLETRACKEDWORKLOADINDEX);
        unsupported D3DKMTGetTrackedWorkloadStatistics(D3DKMT_GETTRACKEDWORKLOADSTATISTICS);
        unsupported D3DKMTResetTrackedWorkloadStatistics(D3DKMT_RESETTRACKEDWORKLOADSTATISTICS);
        translated D3DKMTRegisterBudgetChangeNotification(D3DKMT_REGISTERBUDGETCHANGENOTIFICATION)
            via opendxg_memory_notice = notices::register_budget;
        answered D3DKMTUnregisterBudgetChangeNotification(D3DKMT_UNREGISTERBUDGETCHANGENOTIFICATION)
            = notices::unregister_budget;
        unsupported D3DKMTSetStereoEnabled(D3DKMT_SETSTEREOENABLED);
        unsupported D3DKMTQueryHybridListValue(D3DKMT_HYBRID_LIST);
        unsupported D3DKMTSetHybridListVValue(D3DKMT_HYBRID_LIST);
    }
    "For programs with 16-bit WCHAR" {
        direct D3DKMTQueryAdapterInfo16(D3DKMT_QUERYADAPTERINFO);
        translated D3DKMTOpenAdapterFromGdiDisplayName16(D3DKMT_OPENADAPTERFROMGDIDISPLAYNAME)
            via D3DKMT_OPENADAPTERFROMLUID = adapters::open_from_gdi_display_name::<u16>,
            null UNSUCCESSFUL;
        translated D3DKMTOpenAdapterFromDeviceName16(D3DKMT_OPENADAPTERFROMDEVICENAME)
            via D3DKMT_OPENADAPTERFROMLUID = adapters::open_from_device_name::<u16>;
        unsupported D3DKMTQueryRemoteVidPnSourceFromGdiDisplayName16(D3DKMT_QUERYREMOTEVIDPNSOURCEFROMGDIDISPLAYNAME);
    }
    "Objects, their information and references (opendxg.h)" {
        object opendxg_query_object(opendxg_query_object);
        object opendxg_dup_nt(opendxg_dup_nt);
        object opendxg_set_info(opendxg_set_info);
        object opendxg_get_info(opendxg_get_info);
        object opendxg_enum_info(opendxg_enum_info);
        object opendxg_delete_info(opendxg_delete_info);
        object opendxg_open_weak(opendxg_open_weak);
        direct opendxg_resolve_weak(opendxg_resolve_weak);
        object opendxg_watch(opendxg_watch);
        direct opendxg_watch_state {} via opendxg_watch_state;
        direct opendxg_dup_local(opendxg_dup_local);
        direct opendxg_get_container(opendxg_get_container);
        direct opendxg_export_dmabuf(opendxg_export_dmabuf);
        direct opendxg_share_objects(opendxg_share_objects);
        direct opendxg_open_resource(opendxg_open_resource);
        direct opendxg_fence_point(opendxg_fence_point);
        direct opendxg_fence_stream(opendxg_fence_stream);
        direct opendxg_signal_on_event(opendxg_signal_on_event);
        direct opendxg_signal_nt {} via opendxg_signal_nt;
        direct opendxg_wait_nt {} via opendxg_wait_nt;
        direct opendxg_value_nt {} via opendxg_value_nt;
        translated opendxg_set_cleanup {} via opendxg_open_weak;
    }
}
