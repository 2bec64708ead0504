/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks of this example, which is also a test. */
#ifndef FOUR_APIS_CHECK_H
#define FOUR_APIS_CHECK_H

#include <dxg/status.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What did not hold, in this process. */
extern char check_text[512];

#define CHECK_FAIL(...)                                                        \
	do {                                                                   \
		snprintf(check_text, sizeof(check_text), __VA_ARGS__);         \
		return -1;                                                     \
	} while (0)

/* The caller fails unless the condition holds. */
#define CHECK(condition)                                                       \
	do {                                                                   \
		if (!(condition))                                              \
			CHECK_FAIL("%s:%d: not true: %s", __FILE__, __LINE__,  \
				   #condition);                                \
	} while (0)

/* The caller fails unless the call has this status. */
#define CHECK_STATUS(call, expected)                                           \
	do {                                                                   \
		__u32 check_status = (__u32)(call);                            \
		if (check_status != (__u32)(expected))                         \
			CHECK_FAIL("%s:%d: %s is %#x", __FILE__, __LINE__,     \
				   #call, check_status);                       \
	} while (0)

#endif /* FOUR_APIS_CHECK_H */
