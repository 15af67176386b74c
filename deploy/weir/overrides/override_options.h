/* SPDX-License-Identifier: Apache-2.0 */
/* What the command line of `weir block`, `lift`, `allow` and `override` says. */
#ifndef DEPLOY_WEIR_OVERRIDES_OVERRIDE_OPTIONS_H
#define DEPLOY_WEIR_OVERRIDES_OVERRIDE_OPTIONS_H

#include "common/base/exit.h"
#include "common/config/arguments.h"
#include "limiter/overrides/override_command.h"

/* By enum override_kind. */
extern const struct weir_command_line override_lines[];

/* An unset variable of a shell is an empty value: the key of all whose field is empty, which is seldom meant. */
#define OVERRIDE_EMPTY_VALUE "a value is empty (is a variable of the shell not set?)"
#define OVERRIDE_EMPTY_HINT ": if the empty value is meant, give the whole key with --key-hex"

struct override_options {
	const struct weir_command_line *line;
	const char *config_path, *state_path;
	const char *zone; /* NULL: the only one that the values fit */
	const char *values[WEIR_ZONE_KEY_MAX];
	uint32_t value_count;
	const char *key_hex;
	int64_t for_ms;   /* -1: not given */
	int64_t until_ms; /* OVERRIDE_NO_END */
	const char *by;   /* NULL: the login name */
	const char *reason;
	uint32_t thousandths; /* override; 0: not given */
	bool prefix, json;
	bool all; /* lift: whatever is blocked */
	enum override_kind kind;
};

/** @return WEIR_EXIT_NOT_YET: continue; else the exit code: help was printed, or what is wrong was said */
enum weir_exit override_options_parse(enum override_kind kind, int argc, char **argv, struct override_options *options);

#endif
