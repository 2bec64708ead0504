// SPDX-License-Identifier: GPL-2.0

//! The table of ioctls: from number to handler. To add an ioctl, add its line here and its number
//! to the headers; `Documentation/adding-an-ioctl.md` has the whole list.

use super::{
    adapter,
    allocation,
    allocation_property,
    allocation_use,
    call::{
        run_answer,
        run_in,
        run_out,
        run_report,
        run_status,
        Call, //
    },
    device,
    doorbell,
    escape,
    fence_file,
    gpu_memory,
    hw_queue,
    info,
    keyed_mutex,
    name,
    native_fence,
    notice,
    object,
    offer,
    open_resource,
    patched,
    priority,
    queued_sync,
    resource,
    result::code,
    share,
    statistics,
    submit,
    sync_file,
    sync_object,
    transport,
    wait,
    weak, //
};
use crate::{
    error::DxgResult,
    uapi::*, //
};
use kernel::prelude::*;

/// One implemented number.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    /// `sizeof` the argument struct.
    pub(super) size: usize,
    /// Copies in, handles, copies out.
    pub(super) run: fn(Call<'_>, u64) -> DxgResult,
}

impl Entry {
    /// The full ioctl code.
    pub(super) fn code(&self, number: u32) -> u32 {
        code(number, self.size)
    }
}

/// Numbers are one byte.
const NUMBERS: usize = 256;

type Table = [Option<Entry>; NUMBERS];

macro_rules! table {
    ($($code:ident: $direction:ident $args:ty => $handler:path;)*) => {
        /// By number. Filled at build time; two lines for one number do not compile.
        static TABLE: Table = {
            let mut table: Table = [None; NUMBERS];

            $({
                const NUMBER: u32 = $code & 0xff;

                assert!(code(NUMBER, size_of::<$args>()) == $code);
                assert!(table[NUMBER as usize].is_none());
                table[NUMBER as usize] = Some(Entry {
                    size: size_of::<$args>(),
                    run: |call, arg| $direction::<_, $args, _>(call, arg, $handler),
                });
            })*
            table
        };

        /// What a number is called in the header, without the prefix of all; `None` if it is not
        /// implemented.
        pub(super) fn name(number: u32) -> Option<&'static str> {
            $(
                if number == $code & 0xff {
                    return stringify!($code).strip_prefix("DXG_IOCTL_");
                }
            )*
            None
        }
    };
}

table! {
    DXG_IOCTL_OPENADAPTERFROMLUID: run_out D3DKMT_OPENADAPTERFROMLUID => adapter::open_from_luid;
    DXG_IOCTL_CLOSEADAPTER: run_in D3DKMT_CLOSEADAPTER => adapter::close;
    DXG_IOCTL_ENUMADAPTERS2: run_out D3DKMT_ENUMADAPTERS2 => adapter::enumerate2;
    DXG_IOCTL_ENUMADAPTERS3: run_out D3DKMT_ENUMADAPTERS3 => adapter::enumerate3;
    DXG_IOCTL_QUERYADAPTERINFO: run_in D3DKMT_QUERYADAPTERINFO => adapter::query_info;
    DXG_IOCTL_ISFEATUREENABLED: run_out D3DKMT_ISFEATUREENABLED => adapter::is_feature_enabled;
    DXG_IOCTL_QUERYCLOCKCALIBRATION:
        run_out D3DKMT_QUERYCLOCKCALIBRATION => adapter::query_clock_calibration;
    DXG_IOCTL_CREATEDEVICE: run_out D3DKMT_CREATEDEVICE => device::create;
    DXG_IOCTL_DESTROYDEVICE: run_in D3DKMT_DESTROYDEVICE => device::destroy;
    DXG_IOCTL_GETDEVICESTATE: run_out D3DKMT_GETDEVICESTATE => device::state;
    DXG_IOCTL_CREATECONTEXT: run_in D3DKMT_CREATECONTEXT => patched::create_context;
    DXG_IOCTL_CREATECONTEXTVIRTUAL:
        run_out D3DKMT_CREATECONTEXTVIRTUAL => device::create_context_virtual;
    DXG_IOCTL_DESTROYCONTEXT: run_in D3DKMT_DESTROYCONTEXT => device::destroy_context;
    DXG_IOCTL_CREATEHWCONTEXT: run_out D3DKMT_CREATEHWCONTEXT => device::create_hw_context;
    DXG_IOCTL_DESTROYHWCONTEXT: run_in D3DKMT_DESTROYHWCONTEXT => device::destroy_hw_context;
    DXG_IOCTL_MARKDEVICEASERROR: run_in D3DKMT_MARKDEVICEASERROR => device::mark_as_error;
    DXG_IOCTL_CREATEHWQUEUE: run_out D3DKMT_CREATEHWQUEUE => hw_queue::create;
    DXG_IOCTL_DESTROYHWQUEUE: run_in D3DKMT_DESTROYHWQUEUE => hw_queue::destroy;
    DXG_IOCTL_CREATE_DOORBELL: run_out D3DKMT_CREATE_DOORBELL => doorbell::create;
    DXG_IOCTL_CONNECT_DOORBELL: run_in D3DKMT_CONNECT_DOORBELL => doorbell::connect;
    DXG_IOCTL_DESTROY_DOORBELL: run_in D3DKMT_DESTROY_DOORBELL => doorbell::destroy;
    DXG_IOCTL_NOTIFY_WORK_SUBMISSION:
        run_in D3DKMT_NOTIFY_WORK_SUBMISSION => doorbell::notify;
    DXG_IOCTL_RENDER: run_in D3DKMT_RENDER => patched::render;
    DXG_IOCTL_SUBMITCOMMAND: run_in D3DKMT_SUBMITCOMMAND => submit::submit;
    DXG_IOCTL_SUBMITCOMMANDTOHWQUEUE:
        run_in D3DKMT_SUBMITCOMMANDTOHWQUEUE => submit::submit_to_hw_queue;
    DXG_IOCTL_SIGNALSYNCHRONIZATIONOBJECT2:
        run_in D3DKMT_SIGNALSYNCHRONIZATIONOBJECT2 => queued_sync::signal2;
    DXG_IOCTL_WAITFORSYNCHRONIZATIONOBJECT2:
        run_in D3DKMT_WAITFORSYNCHRONIZATIONOBJECT2 => queued_sync::wait2;
    DXG_IOCTL_SIGNALSYNCHRONIZATIONOBJECTFROMGPU:
        run_in D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU => queued_sync::signal_from_gpu;
    DXG_IOCTL_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2:
        run_in D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMGPU2 => queued_sync::signal_from_gpu2;
    DXG_IOCTL_WAITFORSYNCHRONIZATIONOBJECTFROMGPU:
        run_in D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMGPU => queued_sync::wait_from_gpu;
    DXG_IOCTL_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE:
        run_in D3DKMT_SUBMITSIGNALSYNCOBJECTSTOHWQUEUE => queued_sync::signal_in_hw_queue;
    DXG_IOCTL_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE:
        run_in D3DKMT_SUBMITWAITFORSYNCOBJECTSTOHWQUEUE => queued_sync::wait_in_hw_queue;
    DXG_IOCTL_SETCONTEXTSCHEDULINGPRIORITY:
        run_in D3DKMT_SETCONTEXTSCHEDULINGPRIORITY => priority::set;
    DXG_IOCTL_GETCONTEXTSCHEDULINGPRIORITY:
        run_out D3DKMT_GETCONTEXTSCHEDULINGPRIORITY => priority::get;
    DXG_IOCTL_SETCONTEXTINPROCESSSCHEDULINGPRIORITY:
        run_in D3DKMT_SETCONTEXTINPROCESSSCHEDULINGPRIORITY => priority::set_in_process;
    DXG_IOCTL_GETCONTEXTINPROCESSSCHEDULINGPRIORITY:
        run_out D3DKMT_GETCONTEXTINPROCESSSCHEDULINGPRIORITY => priority::get_in_process;
    DXG_IOCTL_CREATESYNCHRONIZATIONOBJECT2:
        run_out D3DKMT_CREATESYNCHRONIZATIONOBJECT2 => sync_object::create;
    DXG_IOCTL_DESTROYSYNCHRONIZATIONOBJECT:
        run_in D3DKMT_DESTROYSYNCHRONIZATIONOBJECT => sync_object::destroy;
    DXG_IOCTL_CREATENATIVEFENCE: run_out D3DKMT_CREATENATIVEFENCE => native_fence::create;
    DXG_IOCTL_OPENNATIVEFENCEFROMNTHANDLE:
        run_out D3DKMT_OPENNATIVEFENCEFROMNTHANDLE => native_fence::open_nt;
    DXG_IOCTL_GETNATIVEFENCELOGDETAIL:
        run_out D3DKMT_GETNATIVEFENCELOGDETAIL => native_fence::log_detail;
    DXG_IOCTL_OPENSYNCHRONIZATIONOBJECT:
        run_out D3DKMT_OPENSYNCHRONIZATIONOBJECT => sync_object::open_global;
    DXG_IOCTL_OPENSYNCOBJECTFROMNTHANDLE2:
        run_out D3DKMT_OPENSYNCOBJECTFROMNTHANDLE2 => sync_object::open_nt2;
    DXG_IOCTL_OPENSYNCOBJECTFROMNTHANDLE:
        run_out D3DKMT_OPENSYNCOBJECTFROMNTHANDLE => sync_object::open_nt;
    DXG_IOCTL_CREATESYNCFILE: run_out D3DKMT_CREATESYNCFILE => sync_file::create;
    DXG_IOCTL_WAITSYNCFILE: run_in d3dkmt_waitsyncfile => sync_file::wait;
    DXG_IOCTL_OPENSYNCOBJECTFROMSYNCFILE:
        run_out d3dkmt_opensyncobjectfromsyncfile => sync_file::open;
    DXG_IOCTL_CREATEALLOCATION: run_out D3DKMT_CREATEALLOCATION => allocation::create;
    DXG_IOCTL_DESTROYALLOCATION2: run_in D3DKMT_DESTROYALLOCATION2 => allocation::destroy;
    DXG_IOCTL_QUERYRESOURCEINFO: run_out D3DKMT_QUERYRESOURCEINFO => resource::query;
    DXG_IOCTL_QUERYRESOURCEINFOFROMNTHANDLE:
        run_out D3DKMT_QUERYRESOURCEINFOFROMNTHANDLE => resource::query_nt;
    DXG_IOCTL_OPENRESOURCE: run_out D3DKMT_OPENRESOURCE => open_resource::by_global;
    DXG_IOCTL_OPENRESOURCEFROMNTHANDLE:
        run_answer D3DKMT_OPENRESOURCEFROMNTHANDLE => open_resource::by_nt;
    DXG_IOCTL_OPEN_RESOURCE: run_answer opendxg_open_resource => open_resource::at_once;
    DXG_IOCTL_GETSHAREDRESOURCEADAPTERLUID:
        run_out D3DKMT_GETSHAREDRESOURCEADAPTERLUID => resource::adapter_luid;
    DXG_IOCTL_GETRUNTIMEDATA: run_in D3DKMT_GETRUNTIMEDATA => resource::runtime_data;
    DXG_IOCTL_CHECKSHAREDRESOURCEACCESS:
        run_in D3DKMT_CHECKSHAREDRESOURCEACCESS => resource::check_access;
    DXG_IOCTL_CONFIGURESHAREDRESOURCE:
        run_in D3DKMT_CONFIGURESHAREDRESOURCE => resource::configure;
    DXG_IOCTL_SHAREOBJECTWITHHOST:
        run_in D3DKMT_SHAREOBJECTWITHHOST => share::share_with_host;
    DXG_IOCTL_CREATEPAGINGQUEUE:
        run_out D3DKMT_CREATEPAGINGQUEUE => gpu_memory::create_paging_queue;
    DXG_IOCTL_DESTROYPAGINGQUEUE:
        run_in D3DDDI_DESTROYPAGINGQUEUE => gpu_memory::destroy_paging_queue;
    DXG_IOCTL_MAKERESIDENT: run_status D3DDDI_MAKERESIDENT => gpu_memory::make_resident;
    DXG_IOCTL_EVICT: run_out D3DKMT_EVICT => gpu_memory::evict;
    DXG_IOCTL_RESERVEGPUVIRTUALADDRESS:
        run_status D3DDDI_RESERVEGPUVIRTUALADDRESS => gpu_memory::reserve;
    DXG_IOCTL_MAPGPUVIRTUALADDRESS:
        run_status D3DDDI_MAPGPUVIRTUALADDRESS => gpu_memory::map;
    DXG_IOCTL_FREEGPUVIRTUALADDRESS:
        run_in D3DKMT_FREEGPUVIRTUALADDRESS => gpu_memory::free;
    DXG_IOCTL_UPDATEGPUVIRTUALADDRESS:
        run_in D3DKMT_UPDATEGPUVIRTUALADDRESS => gpu_memory::update;
    DXG_IOCTL_QUERYVIDEOMEMORYINFO:
        run_out D3DKMT_QUERYVIDEOMEMORYINFO => statistics::video_memory;
    DXG_IOCTL_CHANGEVIDEOMEMORYRESERVATION:
        run_in D3DKMT_CHANGEVIDEOMEMORYRESERVATION => statistics::reserve;
    DXG_IOCTL_FLUSHHEAPTRANSITIONS:
        run_in D3DKMT_FLUSHHEAPTRANSITIONS => statistics::flush_heap_transitions;
    DXG_IOCTL_QUERYSTATISTICS: run_out D3DKMT_QUERYSTATISTICS => statistics::statistics;
    DXG_IOCTL_OFFERALLOCATIONS: run_in D3DKMT_OFFERALLOCATIONS => offer::offer;
    DXG_IOCTL_RECLAIMALLOCATIONS: run_in D3DKMT_RECLAIMALLOCATIONS => offer::reclaim;
    DXG_IOCTL_RECLAIMALLOCATIONS2:
        run_status D3DKMT_RECLAIMALLOCATIONS2 => offer::reclaim2;
    DXG_IOCTL_MEMORY_NOTICE: run_out opendxg_memory_notice => notice::create;
    DXG_IOCTL_QUERYPROCESSOFFERINFO:
        run_out D3DKMT_QUERYPROCESSOFFERINFO => offer::query_process;
    DXG_IOCTL_TRIMPROCESSCOMMITMENT:
        run_answer D3DKMT_TRIMPROCESSCOMMITMENT => offer::trim_process;
    DXG_IOCTL_LOCK2: run_out D3DKMT_LOCK2 => allocation_use::lock;
    DXG_IOCTL_UNLOCK2: run_in D3DKMT_UNLOCK2 => allocation_use::unlock;
    DXG_IOCTL_INVALIDATECACHE:
        run_in D3DKMT_INVALIDATECACHE => allocation_use::invalidate_cache;
    DXG_IOCTL_SETALLOCATIONPRIORITY:
        run_in D3DKMT_SETALLOCATIONPRIORITY => allocation_use::set_priority;
    DXG_IOCTL_GETALLOCATIONPRIORITY:
        run_in D3DKMT_GETALLOCATIONPRIORITY => allocation_use::priority;
    DXG_IOCTL_QUERYALLOCATIONRESIDENCY:
        run_in D3DKMT_QUERYALLOCATIONRESIDENCY => allocation_use::residency;
    DXG_IOCTL_UPDATEALLOCPROPERTY:
        run_answer D3DDDI_UPDATEALLOCPROPERTY => allocation_property::update;
    DXG_IOCTL_EXPORT_DMABUF: run_out opendxg_export_dmabuf => allocation_use::export_dmabuf;
    DXG_IOCTL_ESCAPE: run_in D3DKMT_ESCAPE => escape::run;
    DXG_IOCTL_QUERY_OBJECT: run_report opendxg_query_object => object::query;
    DXG_IOCTL_DUP_LOCAL: run_out opendxg_dup_local => object::dup_local;
    DXG_IOCTL_GET_CONTAINER: run_out opendxg_get_container => object::get_container;
    DXG_IOCTL_DUP_NT: run_out opendxg_dup_nt => object::dup_nt;
    DXG_IOCTL_SHAREOBJECTS: run_in D3DKMT_SHAREOBJECTS => share::share_objects;
    DXG_IOCTL_SIGNALSYNCHRONIZATIONOBJECTFROMCPU:
        run_in D3DKMT_SIGNALSYNCHRONIZATIONOBJECTFROMCPU => wait::signal_from_cpu;
    DXG_IOCTL_WAITFORSYNCHRONIZATIONOBJECTFROMCPU:
        run_in D3DKMT_WAITFORSYNCHRONIZATIONOBJECTFROMCPU => wait::wait_from_cpu;
    DXG_IOCTL_OPENNTHANDLEFROMNAME:
        run_report D3DKMT_OPENNTHANDLEFROMNAME => name::open_resource;
    DXG_IOCTL_OPENSYNCOBJECTNTHANDLEFROMNAME:
        run_report D3DKMT_OPENSYNCOBJECTNTHANDLEFROMNAME => name::open_sync_object;
    DXG_IOCTL_SHARE_OBJECTS:
        run_in opendxg_share_objects => share::share_objects_with_mode;
    DXG_IOCTL_CREATEKEYEDMUTEX: run_out D3DKMT_CREATEKEYEDMUTEX => keyed_mutex::create;
    DXG_IOCTL_CREATEKEYEDMUTEX2: run_out D3DKMT_CREATEKEYEDMUTEX2 => keyed_mutex::create2;
    DXG_IOCTL_OPENKEYEDMUTEX: run_out D3DKMT_OPENKEYEDMUTEX => keyed_mutex::open;
    DXG_IOCTL_OPENKEYEDMUTEX2: run_answer D3DKMT_OPENKEYEDMUTEX2 => keyed_mutex::open2;
    DXG_IOCTL_OPENKEYEDMUTEXFROMNTHANDLE:
        run_in D3DKMT_OPENKEYEDMUTEXFROMNTHANDLE => keyed_mutex::open_nt;
    DXG_IOCTL_DESTROYKEYEDMUTEX: run_in D3DKMT_DESTROYKEYEDMUTEX => keyed_mutex::destroy;
    DXG_IOCTL_ACQUIREKEYEDMUTEX: run_report D3DKMT_ACQUIREKEYEDMUTEX => keyed_mutex::acquire;
    DXG_IOCTL_ACQUIREKEYEDMUTEX2: run_report D3DKMT_ACQUIREKEYEDMUTEX2 => keyed_mutex::acquire2;
    DXG_IOCTL_RELEASEKEYEDMUTEX: run_in D3DKMT_RELEASEKEYEDMUTEX => keyed_mutex::release;
    DXG_IOCTL_RELEASEKEYEDMUTEX2: run_in D3DKMT_RELEASEKEYEDMUTEX2 => keyed_mutex::release2;
    DXG_IOCTL_SET_INFO: run_answer opendxg_set_info => info::set;
    DXG_IOCTL_GET_INFO: run_report opendxg_get_info => info::get;
    DXG_IOCTL_ENUM_INFO: run_report opendxg_enum_info => info::enumerate;
    DXG_IOCTL_DELETE_INFO: run_answer opendxg_delete_info => info::delete;
    DXG_IOCTL_OPEN_WEAK: run_out opendxg_open_weak => weak::open;
    DXG_IOCTL_RESOLVE_WEAK: run_out opendxg_resolve_weak => weak::resolve;
    DXG_IOCTL_WATCH: run_out opendxg_watch => weak::watch;
    DXG_IOCTL_FENCE_POINT: run_out opendxg_fence_point => wait::create_fence_point;
    DXG_IOCTL_FENCE_STREAM: run_out opendxg_fence_stream => fence_file::create_stream;
    DXG_IOCTL_SIGNAL_ON_EVENT: run_in opendxg_signal_on_event => fence_file::signal_on_event;
    DXG_IOCTL_VERSION: run_out opendxg_version => version;
    DXG_IOCTL_NOP: run_in () => transport::nop;
}

/// The entry for a number, if it is implemented.
pub(super) fn find(number: u32) -> Option<Entry> {
    // CAST: 32 bits fit a usize.
    TABLE.get(number as usize).copied().flatten()
}

/// DXG_IOCTL_VERSION (0x81): which numbers this table has.
fn version(_call: Call<'_>, args: &mut opendxg_version) -> DxgResult {
    transport::version(args, |number| find(number).is_some())
}
