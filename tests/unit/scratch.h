/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory of its own for a test, removed with everything in it.
 *
 * Set up by cmocka's setup and teardown: the test finds its path in *state.
 */
#ifndef TESTS_UNIT_SCRATCH_H
#define TESTS_UNIT_SCRATCH_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline int scratch_remove_one(const char *path, const struct stat *about, int kind, struct FTW *walk)
{
	(void)about;
	(void)kind;
	(void)walk;
	return remove(path);
}

static inline void scratch_remove(const char *path)
{
	nftw(path, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* The caller frees. NULL where there is no room for it. */
static inline char *scratch_new(void)
{
	const char *place = getenv("TMPDIR");
	char path[256];
	snprintf(path, sizeof path, "%s/weir-test-XXXXXX", place != NULL ? place : "/tmp");
	return mkdtemp(path) != NULL ? strdup(path) : NULL;
}

static inline int scratch_setup(void **state)
{
	*state = scratch_new();
	return *state != NULL ? 0 : -1;
}

static inline int scratch_teardown(void **state)
{
	scratch_remove(*state);
	free(*state);
	return 0;
}

#endif
