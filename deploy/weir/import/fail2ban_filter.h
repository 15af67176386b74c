/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A filter of fail2ban as one PCRE2 expression.
 *
 * Fail2ban cuts the time out of a line, finds what `prefregex` calls the content, and tries each `failregex` on it in
 * their order: the first that matches decides, and says by <F-NOFAIL> that it is no failure. Here the time stays in the
 * line, in the group "time"; whatever stands in its place afterwards ("[]") refers to it. The first that matches is the
 * first branch of an atomic group, so that no other one is tried behind it.
 */
#ifndef DEPLOY_WEIR_IMPORT_FAIL2BAN_FILTER_H
#define DEPLOY_WEIR_IMPORT_FAIL2BAN_FILTER_H

#include "deploy/weir/import/fail2ban_date.h"
#include "deploy/weir/import/ini.h"

/* What a jail says of its filter. */
struct filter_request {
	struct plan *plan;
	struct plan_item *item; /* gets the notes */
	const char *folder;     /* that filter.d/ is in */
	const char *spec;       /* "sshd[mode=aggressive]"; "": the jail has all in itself */
	/* the jail's own options, NULL: none */
	const char *failregex, *ignoreregex, *prefregex, *datepattern, *journalmatch;
	bool journal;    /* lines are entries of systemd's journal, without time and head */
	unsigned number; /* of the jail, for names of groups */
};

struct filter {
	char *expression; /* from the line's beginning on; NULL: nothing could be taken, the item's notes say why */
	struct date date;
	char *name, *mode, *journalmatch; /* of the filter; "" where there is none */
	bool changed;         /* not as fail2ban ships it: by .local files, the jail's own expressions or [options] */
	uint64_t fingerprint; /* of its files: native_ships() says whether they are as some fail2ban has them */
	size_t notes_from, notes_to; /* the item's notes that are about the expression */
};

/** @return WEIR_INVALID or WEIR_IO: a file cannot be read, "FILE:LINE: words" */
WEIR_MUST_USE enum weir_status filter_read(const struct filter_request *request, struct filter *filter,
                                           struct weir_error *error);

#endif
