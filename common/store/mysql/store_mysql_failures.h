/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The errors of servers of MySQL and MariaDB that weir has words for, by their numbers: what each means, what to type, and
 * the entry of the runbook. One table for the log, for `weir doctor` and for what a start makes of a refusal.
 */
#ifndef WEIR_COMMON_STORE_MYSQL_FAILURES_H
#define WEIR_COMMON_STORE_MYSQL_FAILURES_H

#include <stdbool.h>

struct weir_mysql_failure {
	unsigned number;
	const char *runbook; /* a heading of deploy/RUNBOOK.md */
	const char *words;   /* for a line of the log: what helps */
	const char *remedy;  /* for whoever looks: a command as it runs, or a sentence */
	bool refused;        /* another try by the same user is refused as well */
};

/** Of a number of the server's, or of the client library's: never NULL. */
const struct weir_mysql_failure *weir_mysql_failure(unsigned number);

/** Of an error's text as the store writes it, "NAME: WORDS (NUMBER): ...". @return NULL: it has no number */
const struct weir_mysql_failure *weir_mysql_failure_in(const char *text);

#endif
