/* SPDX-License-Identifier: Apache-2.0 */
/* A directory for a benchmark's files: beside its program, as /tmp may be memory. */
#ifndef TESTS_BENCH_SCRATCH_H
#define TESTS_BENCH_SCRATCH_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline int bench_scratch_remove_one(const char *path, const struct stat *about, int kind, struct FTW *walk)
{
	(void)about;
	(void)kind;
	(void)walk;
	return remove(path);
}

/* Removes it with everything in it, and frees its name. */
static inline void bench_scratch_remove(char *path)
{
	nftw(path, bench_scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(path);
}

/* New and empty. */
static inline char *bench_scratch(const char *name)
{
	char path[4096], program[2048];
	const char *place = getenv("WEIR_BENCH_DIRECTORY");
	ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
	if (place == NULL && length > 0) {
		program[length] = '\0';
		*strrchr(program, '/') = '\0';
		place = program;
	}
	snprintf(path, sizeof path, "%s/bench-%s-XXXXXX", place != NULL ? place : ".", name);
	if (mkdtemp(path) == NULL) {
		perror(path);
		exit(1);
	}
	return strdup(path);
}

#endif
