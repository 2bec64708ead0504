/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The additions of opendxg to the D3DKMT functions of libd3dkmt.so: what is
 * behind a handle, the information store, weak references, watches, duplicates,
 * dma-bufs.
 *
 * Every function returns an NTSTATUS and follows the rules of <d3dkmt.h>. The
 * arguments are the structs of <dxg/object.h> and <dxg/info.h>, which say what
 * each member means.
 *
 * Where an argument has a member handle_type, OPENDXG_HANDLE_SELF means that
 * the member handle is the descriptor of an NT handle and that the call is made
 * on this descriptor: no device is needed, and it works in every process. The
 * other types go through the device.
 */
#ifndef _OPENDXG_H
#define _OPENDXG_H

#include <dxg.h>

#ifdef DXG_NO_D3DKMT
typedef __s32 DXG_NTSTATUS;
#else
#include <d3dkmt.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What is behind a handle of any kind. */
DXG_NTSTATUS opendxg_query_object(struct opendxg_query_object *args);

/* Another NT handle with at most the same access. */
DXG_NTSTATUS opendxg_dup_nt(struct opendxg_dup_nt *args);

/* The information store: see Documentation/metadata.md. */
DXG_NTSTATUS opendxg_set_info(struct opendxg_set_info *args);
DXG_NTSTATUS opendxg_get_info(struct opendxg_get_info *args);
DXG_NTSTATUS opendxg_enum_info(struct opendxg_enum_info *args);
DXG_NTSTATUS opendxg_delete_info(struct opendxg_delete_info *args);

/* Knowing an object without keeping it alive. Descriptors end with close(). */
DXG_NTSTATUS opendxg_open_weak(struct opendxg_open_weak *args);
DXG_NTSTATUS opendxg_resolve_weak(struct opendxg_resolve_weak *args);
DXG_NTSTATUS opendxg_watch(struct opendxg_watch *args);
DXG_NTSTATUS opendxg_watch_state(int fd, struct opendxg_watch_state *args);

/* Another local handle of an object; a handle of an allocation's resource. */
DXG_NTSTATUS opendxg_dup_local(struct opendxg_dup_local *args);
DXG_NTSTATUS opendxg_get_container(struct opendxg_get_container *args);

/* A dma-buf of an allocation. */
DXG_NTSTATUS opendxg_export_dmabuf(struct opendxg_export_dmabuf *args);

#ifndef DXG_NO_D3DKMT
/* D3DKMTShareObjects with the mode of the name. */
DXG_NTSTATUS opendxg_share_objects(struct opendxg_share_objects *args);
#endif

/* QueryResourceInfo and OpenResource in one call, by either kind of handle. */
DXG_NTSTATUS opendxg_open_resource(struct opendxg_open_resource *args);

/* A descriptor that polls readable when a fence reaches a value. */
DXG_NTSTATUS opendxg_fence_point(struct opendxg_fence_point *args);

/* A descriptor from which the values of a fence are read. */
DXG_NTSTATUS opendxg_fence_stream(struct opendxg_fence_stream *args);

/*
 * Signals a fence when an eventfd is signalled. opendxg/timeline.h has what
 * makes a DRM timeline signal a fence.
 */
DXG_NTSTATUS opendxg_signal_on_event(struct opendxg_signal_on_event *args);

/* The fence of an NT handle, on its descriptor: they work without a device. */
DXG_NTSTATUS opendxg_signal_nt(int fd, struct opendxg_signal_nt *args);
DXG_NTSTATUS opendxg_wait_nt(int fd, struct opendxg_wait_nt *args);
DXG_NTSTATUS opendxg_value_nt(int fd, struct opendxg_value_nt *args);

/*
 * Runs function(context) once, when this process has no local handle of the
 * handle's container any more. The container is the resource, or an allocation
 * without one. Handles from create and open calls count, and those from
 * opendxg_dup_local and opendxg_get_container. NT handles and other descriptors
 * do not.
 *
 * The function runs after the call that ended the last handle, in the thread of
 * that call and without a lock of the library: it may call every function of
 * the library. Only calls through this library are noticed. It is not run when
 * the process ends, and a forked child has none.
 *
 * An exception must not leave the function: it would end the process. Where a
 * signal handler destroys handles, the function runs in the handler. This
 * function itself must not be called in one.
 *
 * An outer object that wraps a container (a texture of a graphics API around a
 * resource) keeps no count of its own: its references are local handles of the
 * container or of its parts, and the function is its destructor.
 */
DXG_NTSTATUS opendxg_set_cleanup(__u32 handle, void (*function)(void *),
			     void *context);

#ifdef __cplusplus
}
#endif

#endif /* _OPENDXG_H */
