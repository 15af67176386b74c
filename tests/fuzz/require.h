/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold in a fuzz target: else the input is an error, and the last line of the run says which line of the target. */
#ifndef WEIR_TESTS_FUZZ_REQUIRE_H
#define WEIR_TESTS_FUZZ_REQUIRE_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define require(condition) require_at(condition, #condition, __FILE__, __LINE__)

static inline void require_at(bool condition, const char *words, const char *file, int line)
{
	if (condition)
		return;
	fprintf(stderr, "%s:%d: not so: %s (errno: %s)\n", file, line, words, strerror(errno));
	abort();
}

#endif
