// SPDX-License-Identifier: GPL-2.0

//! Calls on descriptors of objects themselves: on NT handles (RES-16, RES-62) and on watches. Any
//! process that has the descriptor may make them, without opening the device.

use super::{
    call::{
        run_answer,
        run_in,
        run_out,
        run_report, //
    },
    info,
    nt_fence,
    object,
    result::{
        not_ours,
        result_of,
        split, //
    },
    target::OnHandle,
    weak, //
};
use crate::{
    dxgk::{
        info::watch::Watch,
        object::Object,
        share::NtHandle, //
    },
    error::DxgResult,
    uapi::*, //
};

/// Serves a call whose context is `C`.
type Handler<C> = fn(C, u64) -> DxgResult;

/// The other calls on an NT handle, by code.
fn on_handle<'a>(code: u32) -> Option<Handler<OnHandle<'a>>> {
    Some(match code {
        DXG_IOCTL_VALUE_NT => |on, arg| run_out::<_, opendxg_value_nt, _>(on, arg, nt_fence::value),
        DXG_IOCTL_QUERY_OBJECT => {
            |on, arg| run_report::<_, opendxg_query_object, _>(on, arg, object::query_handle)
        }
        DXG_IOCTL_DUP_NT => |on, arg| run_out::<_, opendxg_dup_nt, _>(on, arg, object::dup_handle),
        DXG_IOCTL_SET_INFO => |on, arg| run_answer::<_, opendxg_set_info, _>(on, arg, info::set),
        DXG_IOCTL_GET_INFO => |on, arg| run_report::<_, opendxg_get_info, _>(on, arg, info::get),
        DXG_IOCTL_ENUM_INFO => {
            |on, arg| run_report::<_, opendxg_enum_info, _>(on, arg, info::enumerate)
        }
        DXG_IOCTL_DELETE_INFO => {
            |on, arg| run_answer::<_, opendxg_delete_info, _>(on, arg, info::delete)
        }
        DXG_IOCTL_OPEN_WEAK => |on, arg| run_out::<_, opendxg_open_weak, _>(on, arg, weak::open),
        DXG_IOCTL_WATCH => |on, arg| run_out::<_, opendxg_watch, _>(on, arg, weak::watch),
        _ => return None,
    })
}

/// The calls on a watch, by code.
fn on_watch<'a>(code: u32) -> Option<Handler<&'a Watch<Object>>> {
    match code {
        DXG_IOCTL_WATCH_STATE => Some(weak::watch_state),
        _ => None,
    }
}

/// The `ioctl` operation of an NT handle. The calls that are made most need not be looked for.
pub(crate) fn run_on_nt_handle(handle: &NtHandle, cmd: u32, arg: u64) -> isize {
    let (code, form) = split(cmd);
    let outcome = match code {
        DXG_IOCTL_SIGNAL_NT => run_in(OnHandle(handle), arg, nt_fence::signal),
        DXG_IOCTL_WAIT_NT => run_in(OnHandle(handle), arg, nt_fence::wait),
        _ => return run(OnHandle(handle), on_handle, cmd, arg),
    };

    result_of(outcome, form)
}

/// The `ioctl` operation of a watch.
pub(crate) fn run_on_watch(watch: &Watch<Object>, cmd: u32, arg: u64) -> isize {
    run(watch, on_watch, cmd, arg)
}

/// Runs a call of a kind of file.
#[inline(never)]
fn run<C>(context: C, find: fn(u32) -> Option<Handler<C>>, cmd: u32, arg: u64) -> isize {
    let (code, form) = split(cmd);

    match find(code) {
        Some(handler) => result_of(handler(context, arg), form),
        None => not_ours(),
    }
}
