/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Timelines of DRM drivers (drm_syncobj) that signal fences, and fences that
 * signal timelines, without a thread of the program. For programs that are
 * linked with libd3dkmt.
 */
#ifndef _OPENDXG_TIMELINE_H
#define _OPENDXG_TIMELINE_H

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <drm/drm.h>
#include <opendxg.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Signals a fence to a value when a point of a timeline is signalled: at once if
 * it is already. The point may be one that nobody has submitted yet. A fence
 * whose value is higher by then is left as it is.
 *
 * drm is a descriptor of the DRM device and syncobj a handle of it; fence is the
 * local handle of a monitored fence. Returns an eventfd that becomes readable
 * when the point is signalled; the fence is signalled then or a moment later.
 * Closing it before that gives the signal up. Otherwise -1 and errno: ENOTTY
 * for a kernel before 6.6, EACCES for a fence that may not be signalled, EINVAL
 * for one that is none.
 */
static __inline__ int opendxg_timeline_signals(int drm, __u32 syncobj, __u64 point,
					       D3DKMT_HANDLE fence, __u64 value)
{
	struct opendxg_signal_on_event signal;
	struct drm_syncobj_eventfd notify;
	DXG_NTSTATUS status;
	int event, error;

	event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (event < 0)
		return -1;
	/* First, so that nothing is missed. The end of the eventfd takes it back. */
	memset(&signal, 0, sizeof(signal));
	signal.sync_object = fence;
	signal.value = value;
	signal.event = (__u64)event;
	status = opendxg_signal_on_event(&signal);
	if (status < 0) {
		close(event);
		errno = status == STATUS_ACCESS_DENIED ? EACCES :
			status == STATUS_NO_MEMORY ? ENOMEM : EINVAL;
		return -1;
	}
	memset(&notify, 0, sizeof(notify));
	notify.handle = syncobj;
	notify.point = point;
	notify.fd = event;
	if (ioctl(drm, DRM_IOCTL_SYNCOBJ_EVENTFD, &notify)) {
		error = errno;
		close(event);
		errno = error;
		return -1;
	}
	return event;
}

#ifndef DXG_NO_D3DKMT
/* struct drm_syncobj_handle as it is since Linux 6.16: with a point. */
struct opendxg_syncobj_handle {
	__u32 handle;
	__u32 flags;
	__s32 fd;
	__u32 pad;
	__u64 point;
};

/*
 * Adds a point to a timeline, which the kernel signals when a fence reaches a
 * value. Whoever waits for the point may have begun before.
 *
 * drm is a descriptor of the DRM device and syncobj a handle of it; fence is the
 * local handle of a monitored fence of device. The points of a timeline go up:
 * this has to be called in their order. Returns 0, otherwise -1 and errno.
 *
 * EAGAIN: the kernel cannot promise the value. It is neither there nor given by
 * a signal that is queued in a context or HW queue of device, with nothing
 * before it that somebody could delay. So this is to be called after queueing
 * the signal, or else when the fence has the value: opendxg_fence_point() makes
 * a descriptor that becomes readable then.
 */
static __inline__ int opendxg_timeline_follows(int drm, __u32 syncobj, __u64 point,
					       D3DKMT_HANDLE device, D3DKMT_HANDLE fence,
					       __u64 value)
{
	struct opendxg_syncobj_handle import;
	D3DKMT_CREATESYNCFILE file;
	DXG_NTSTATUS status;
	int result, error;

	memset(&file, 0, sizeof(file));
	file.hDevice = device;
	file.hMonitoredFence = fence;
	file.FenceValue = value;
	status = D3DKMTCreateSyncFile(&file);
	if (status < 0) {
		errno = status == STATUS_NOT_SUPPORTED ? EAGAIN :
			status == STATUS_NO_MEMORY ? ENOMEM :
			status == STATUS_ACCESS_DENIED ? EACCES : EINVAL;
		return -1;
	}
	memset(&import, 0, sizeof(import));
	import.handle = syncobj;
	import.flags = 3; /* a sync file, and as a point */
	import.fd = (int)file.hSyncFile;
	import.point = point;
	result = ioctl(drm, DRM_IOWR(0xc2, struct opendxg_syncobj_handle), &import);
	error = errno;
	close((int)file.hSyncFile);
	errno = error;
	return result ? -1 : 0;
}
#endif

#ifdef __cplusplus
}
#endif

#endif /* _OPENDXG_TIMELINE_H */
