/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command line as a table: what a program or a subcommand takes, and the words that teach it.
 *
 * The table is the only description there is. The reading comes from it, the words for what is wrong come from it, and
 * so does --help; manual pages and a shell's completion can be made from it. It is constant, and everything in it lasts
 * as long as the program.
 *
 *   --name VALUE, --name=VALUE, --flag, -x, operands, and -- before operands that begin with a dash
 */
#ifndef WEIR_COMMON_ARGUMENTS_H
#define WEIR_COMMON_ARGUMENTS_H

#include "common/base/exit.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* What a value is. The reader checks it, and gives all but TEXT as a number. */
enum weir_argument_type {
	WEIR_ARGUMENT_FLAG,     /* no value */
	WEIR_ARGUMENT_TEXT,     /* whatever is written: a path, a name; the command may check it further */
	WEIR_ARGUMENT_NUMBER,   /* "1000", "250k", "5M", "1G" */
	WEIR_ARGUMENT_DECIMAL,  /* "1.25" in units of 10^-digits: 1250 with 3 digits */
	WEIR_ARGUMENT_SHARE,    /* "0.05", "5%" in units of 2^-32: 1 is 2^32 */
	WEIR_ARGUMENT_DURATION, /* "30s", "10m" in ms */
	WEIR_ARGUMENT_SIZE,     /* "64MiB" in bytes */
	WEIR_ARGUMENT_CHOICE,   /* one of `choices`, as its place among them */
};

struct weir_argument_option {
	const char *name;  /* without its dashes; NULL ends a table */
	const char *value; /* "FILE", for the reader of a help page; NULL: it is a flag */
	enum weir_argument_type type;
	const char *help; /* one sentence, or two; wrapped where it is printed */

	char letter;                /* a short form, -x; 0: none */
	bool required;              /* the reader refuses a command line without it */
	bool repeatable;            /* each one counts; of another the last one does */
	unsigned digits;            /* DECIMAL: how many behind the point */
	uint64_t least, most;       /* bounds of the number, in its units; most 0: no upper one */
	const char *const *choices; /* CHOICE: ended by NULL */
	const char *expected;       /* "a zone's name": what a wrong value must be; NULL: said from the type and bounds */
	const char *heading;        /* begins a group of options with this heading */
};

/* What stands on a command line without an option's name. */
struct weir_argument_operand {
	const char *word; /* "FILE"; NULL: the command takes none */
	const char *help;
	unsigned most;              /* 0: any number */
	const char *const *choices; /* ended by NULL; NULL: anything */
	const char *hint;           /* said with an operand too many: "name the file by --config" */
};

/* A part of a help page: lines are wrapped, but one that begins with a space stands as it is. */
struct weir_argument_section {
	const char *heading; /* NULL ends a list */
	const char *text;
};

struct weir_argument_exit {
	enum weir_exit code;
	const char *meaning; /* NULL ends a list */
};

struct weir_command_line {
	const char *name;    /* "weir generate" */
	const char *summary; /* "write a synthetic log": for a list of commands */
	const char *usage;   /* lines of at most 72 columns, without "usage" */
	const char *about;   /* what it does, first in one sentence; wrapped as a section is */
	struct weir_argument_operand operand;
	const struct weir_argument_option *options;   /* at most WEIR_ARGUMENTS_OPTIONS_MAX */
	const struct weir_argument_section *sections; /* NULL: none; behind the options */
	const char *examples;                         /* lines of at most 78 columns */
	const struct weir_argument_exit *exits;
};

enum {
	WEIR_ARGUMENT_OPERAND = -1,
	WEIR_ARGUMENTS_OPTIONS_MAX = 48,
};

/* A value as it was read; borrowed from argv. */
struct weir_argument {
	const char *text; /* NULL: a flag's */
	uint64_t number;  /* in the type's unit; 0 of TEXT and FLAG */
};

/**
 * Takes one option or operand.
 *
 * @param option  its place in the table, or WEIR_ARGUMENT_OPERAND
 * @return WEIR_EXIT_NOT_YET: continue; else what the reading ends with
 */
typedef enum weir_exit weir_argument_take(void *context, int option, const struct weir_argument *value);

/**
 * Reads a whole command line. --help and -h print the help page; what is wrong is said on standard error.
 *
 * @param argv  argv[0] is skipped
 * @return WEIR_EXIT_NOT_YET: all was taken; DONE: help was printed; USAGE: it is wrong; or what `take` gave
 */
WEIR_MUST_USE enum weir_exit weir_arguments_read(const struct weir_command_line *line, int argc, char **argv,
                                                 weir_argument_take *take, void *context);

/** Says "COMMAND: words" and where help is, on standard error. @return WEIR_EXIT_USAGE */
enum weir_exit weir_arguments_refuse(const struct weir_command_line *line, const char *format, ...) WEIR_PRINTF(2, 3);

/** Says what an option's value must be, for what a command checks itself. @return WEIR_EXIT_USAGE */
enum weir_exit weir_arguments_refuse_value(const struct weir_command_line *line, int option, const char *text);

/** The help page, in lines of at most 80 columns. */
void weir_arguments_help(const struct weir_command_line *line, FILE *out);

/** A paragraph, or lines of them, with so many spaces before each line. */
void weir_arguments_wrap(const char *text, unsigned indent, FILE *out);

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
