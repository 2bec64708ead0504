/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Tests in C that print TAP. A test is a function that returns 0, or a REQUIRE
 * that does not hold. A program that does not end is killed by its alarm.
 */
#ifndef TAP_H
#define TAP_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct tap_test {
	const char *name;
	int (*run)(void);
};

/* What did not hold. */
static char tap_text[512];

#define TAP_FAIL(...)                                                         \
	do {                                                                  \
		int tap_used = snprintf(tap_text, sizeof(tap_text), "%s:%d: ", \
					__FILE__, __LINE__);                  \
		snprintf(tap_text + tap_used, sizeof(tap_text) - tap_used,    \
			 __VA_ARGS__);                                        \
		return -1;                                                    \
	} while (0)

/* The test fails unless the condition holds. */
#define REQUIRE(condition)                                                    \
	do {                                                                  \
		if (!(condition))                                             \
			TAP_FAIL("not true: %s", #condition);                 \
	} while (0)

/* The test fails unless two numbers are equal. */
#define REQUIRE_EQUAL(left, right)                                            \
	do {                                                                  \
		unsigned long long tap_left = (left), tap_right = (right);    \
		if (tap_left != tap_right)                                    \
			TAP_FAIL("%s is %#llx, expected %#llx", #left,        \
				 tap_left, tap_right);                        \
	} while (0)

/* Seconds after which a program is given up, stretched on slow machines. */
static unsigned int tap_limit(unsigned int seconds)
{
	const char *scale = getenv("OPENDXG_TEST_SCALE");
	double factor = scale ? atof(scale) : 1.0;

	return factor >= 1.0 ? (unsigned int)(seconds * factor) : seconds;
}

/* Runs all tests; the result is the exit status of the program. */
static int tap_run(const struct tap_test *tests, unsigned int count)
{
	unsigned int i, failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("TAP version 13\n1..%u\n", count);
	for (i = 0; i < count; i++) {
		alarm(tap_limit(60));
		if (tests[i].run()) {
			printf("not ok %u - %s\n# %s\n", i + 1, tests[i].name, tap_text);
			failed++;
		} else {
			printf("ok %u - %s\n", i + 1, tests[i].name);
		}
	}
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
