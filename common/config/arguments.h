/*
 * A command line, option by option: --name VALUE, --name=VALUE, --flag, words,
 * and -- before words that begin with a dash.
 */
#ifndef WEIR_COMMON_ARGUMENTS_H
#define WEIR_COMMON_ARGUMENTS_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_argument_option {
	const char *name; /* without its dashes */
	bool takes_value;
};

enum {
	WEIR_ARGUMENTS_END = -1,  /* all are read */
	WEIR_ARGUMENTS_WORD = -2, /* no option: the word is the value; "-" too */
	WEIR_ARGUMENTS_BAD = -3,  /* what is wrong was said on standard error */
	WEIR_ARGUMENTS_HELP = -4, /* --help or -h */
	WEIR_ARGUMENTS_OPTIONS_MAX = 48,
};

/* Where the reading stands. Fill in the first four; everything is borrowed. */
struct weir_arguments {
	const char *command;                        /* "weir generate", for what is said */
	const struct weir_argument_option *options; /* ended by a name of NULL; at most WEIR_ARGUMENTS_OPTIONS_MAX */
	int argc;
	char **argv; /* argv[0] is passed over */
	int at;      /* 0 at first */
	bool words_only;
};

/** The next option by its place in the table, or one of ARGUMENTS_…; *value is
 * borrowed from argv. */
int weir_arguments_next(struct weir_arguments *arguments, const char **value);

/** Says "COMMAND: words" and where help is, on standard error. Gives
 * WEIR_ARGUMENTS_BAD. */
int weir_arguments_refuse(const struct weir_arguments *arguments, const char *format, ...) WEIR_PRINTF(2, 3);

/* ---- values; false where the text is none ---- */

/** "1000", "250k", "5M", "1G": thousands, millions, thousand millions. */
bool weir_arguments_count(const char *text, uint64_t *count);

/**
 * A decimal number as a whole number of 10^-digits: "1.25" with 3 digits is
 * 1250.
 *
 * Further digits are refused, so that what is computed is what was written.
 */
bool weir_arguments_decimal(const char *text, unsigned digits, uint64_t *number);

/** A share of the whole, "0.05" or "5%", as a number of 2^-32; 1 is 2^32. */
bool weir_arguments_share(const char *text, uint64_t *share);

#endif
