/* SPDX-License-Identifier: Apache-2.0 */
/* What `weir generate` was asked to write. */
#ifndef DEPLOY_WEIR_GENERATE_GENERATE_OPTIONS_H
#define DEPLOY_WEIR_GENERATE_GENERATE_OPTIONS_H

#include "common/config/arguments.h"
#include "deploy/weir/generate/traffic.h"

struct generate_options {
	struct generate_traffic_options traffic;
	int format;          /* its place among generate_format_names */
	const char *path;    /* borrowed from the command line; NULL: standard output */
	uint64_t lines;      /* UINT64_MAX: no limit */
	uint64_t bytes;      /* the same */
	uint64_t ipv6;       /* share of the users, in 2^-32 */
	uint64_t live_milli; /* lines in 1000 s of real time; 0: as fast as it goes */
	int64_t live_for_ms; /* -1: until it is stopped */
	bool live_times;     /* times are the clock's */
	bool quiet;
};

extern const struct weir_command_line generate_line;

/** @return WEIR_EXIT_NOT_YET: continue; else the exit code: help was printed, or what is wrong
 * was said */
enum weir_exit generate_options_parse(int argc, char **argv, struct generate_options *options);

#endif
