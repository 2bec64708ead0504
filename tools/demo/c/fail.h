/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Anything unexpected ends the program with one line and status 1. */
#ifndef DEMO_FAIL_H
#define DEMO_FAIL_H

#include <d3dkmt.h>

__attribute__((noreturn, format(printf, 1, 2))) void fail(const char *format, ...);

/* As fail(), with the text of errno. */
__attribute__((noreturn)) void fail_errno(const char *what);

/* Fail unless a D3DKMT function succeeded. */
void check(NTSTATUS status, const char *function);

/* End the program when the next call of this is more than 20 seconds away. */
void still_alive(void);

#endif
