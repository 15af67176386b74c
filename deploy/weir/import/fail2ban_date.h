/* SPDX-License-Identifier: Apache-2.0 */
/* Fail2ban's `datepattern`: where a line's time is, and how it is written. */
#ifndef DEPLOY_WEIR_IMPORT_FAIL2BAN_DATE_H
#define DEPLOY_WEIR_IMPORT_FAIL2BAN_DATE_H

#include "deploy/weir/import/plan.h"

struct date {
	char *before, *time, *after; /* expressions: what is before the time, the time itself, and what ends it */
	bool cuts_around;            /* what is before the time and ends it is cut out of the line, too */
	char *time_format;           /* as weir's formats take it; NULL: known by its shape */
	bool usual;                  /* the time is one of the forms that weir knows by their shape */
};

/** What a line has whose jail says nothing: a time of any form that is known by its shape, anywhere. */
struct date date_usual(struct plan *plan);

/**
 * @param pattern  with its %(name)s replaced, so that each directive has one %; several lines: alternatives
 * @return NULL: done; else why it has no counterpart
 */
const char *date_read(struct plan *plan, const char *pattern, struct date *date);

#endif
