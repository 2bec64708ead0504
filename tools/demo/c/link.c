// SPDX-License-Identifier: MIT OR Apache-2.0
#define _GNU_SOURCE
#include "link.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fail.h"

int link_accept(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int link;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 1))
		fail_errno(path);
	link = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (link < 0)
		fail_errno(path);
	close(listener);
	unlink(path);
	return link;
}

void link_send(int link, enum message_kind kind, uint64_t value, const int *fds, int count)
{
	struct message message = { kind, value };
	struct iovec data = { &message, sizeof(message) };
	struct msghdr header = { .msg_iov = &data, .msg_iovlen = 1 };
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = { 0 };

	if (count) {
		struct cmsghdr *rights;

		header.msg_control = control;
		header.msg_controllen = CMSG_SPACE(count * sizeof(int));
		rights = CMSG_FIRSTHDR(&header);
		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(rights), fds, count * sizeof(int));
	}
	if (sendmsg(link, &header, MSG_NOSIGNAL) != sizeof(message))
		fail_errno("cannot reach the other program");
}

uint64_t link_expect(int link, enum message_kind kind)
{
	struct message message;
	ssize_t size = recv(link, &message, sizeof(message), 0);

	if (size < 0)
		fail_errno("cannot hear the other program");
	if (size != sizeof(message))
		fail("the other program is gone");
	if (message.kind != kind)
		fail("expected message %d, got %d", (int)kind, (int)message.kind);
	return message.value;
}
