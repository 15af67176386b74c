/* SPDX-License-Identifier: Apache-2.0 */
/* The jails of fail2ban, between reading them and writing them as zones and sources. */
#ifndef DEPLOY_WEIR_IMPORT_FAIL2BAN_H
#define DEPLOY_WEIR_IMPORT_FAIL2BAN_H

#include "deploy/weir/import/fail2ban_filter.h"
#include "deploy/weir/import/readers.h"

enum { JAIL_PATHS_MAX = 64, JAIL_BLOCKS_MAX = 16 };

/* A filter of fail2ban that means what a format of weir's knows by itself. */
struct native {
	const char *filter, *mode; /* mode "": any */
	const char *format;
	const char *match;   /* JSON: what of the format the filter counts */
	const char *differs; /* NULL: nothing that matters */
};

struct jail {
	size_t item; /* its place in the plan */
	char *name;  /* the zone's */
	struct filter filter;
	const struct native *native; /* NULL: by its expressions */
	bool recidive;               /* counts the blocks of the others */
	bool journal, tail;
	char *paths[JAIL_PATHS_MAX];
	size_t path_count;
	char *sources[JAIL_PATHS_MAX]; /* the names of the sources that its lines come from */
	size_t source_count;
	bool shares;       /* a source's expression is of several jails: a field of this jail's name says which */
	uint64_t rate;     /* more than so many are too many */
	int64_t window_ms; /* within */
	int64_t blocks_ms[JAIL_BLOCKS_MAX];
	size_t block_count;
	int64_t forgive_ms;      /* 0: not said */
	struct weir_text exempt; /* elements of a JSON list */
};

/** Decides which jails share their logs, and writes all sources and zones. */
void fail2ban_write(struct plan *plan, const struct import_options *options, struct jail *jails, size_t count);

/** The format of weir's own that a filter corresponds to; NULL: none, or it was changed or edited. */
const struct native *native_of(const struct filter *filter);
/** Whether weir knows a filter of this name, but its files are as no fail2ban has them that it knows. */
bool native_is_edited(const struct filter *filter);

/* ---- values of fail2ban's options ---- */

/** "10m", "1h 30m", "600", "-1" in ms; false: it is none. */
bool fail2ban_duration(const char *text, int64_t *duration_ms);
/** Puts an entry of `ignoreip` behind others; false: it is no address, network or file. */
bool fail2ban_exempt(const char *entry, struct weir_text *list);

#endif
