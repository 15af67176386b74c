/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of "exempt" that other servers have: fetched by a thread of its own, and kept as files.
 *
 * A list is asked for at a start and every interval from then on, and a file takes what came (exempt_body.h). So who
 * watches the files (exempt_watch.h) sees a new list as any other that has changed, and a start without a network goes on
 * with the last good copy. An answer that is no list changes nothing: the copy stays, however old it is.
 */
#ifndef WEIR_EXEMPT_FETCH_H
#define WEIR_EXEMPT_FETCH_H

#include "common/exempt/exempt_list.h"
#include "common/log/metrics.h"

#include <stdatomic.h>
#include <stdbool.h>

struct weir_exempt_fetch;

struct weir_exempt_fetch_options {
	const char *folder; /* of the copies; made when there is one */
	int64_t interval_ms;
	int64_t again_ms; /* after a failure, if that is sooner */
	bool once;        /* a list of which there is no copy is asked for once, and no other is */
	const struct weir_log *log;
};

enum {
	WEIR_EXEMPT_FETCH_AGAIN_MS = 60000,
	WEIR_EXEMPT_FETCH_DOUBT_MS = 3600000, /* a list that shrinks must stay so, or for the interval if that is shorter */
	WEIR_EXEMPT_FETCH_WAIT_MS = 20000,    /* so long a start waits for a first copy */
};

/* What a process keeps in a folder of its state, and asks. Borrowed: the folder, the resolver and the log. */
struct weir_exempt_kept_options {
	const char *folder;   /* of copies and names; NULL: nothing is fetched, and no robot is verified */
	int64_t interval_ms;  /* of fetching */
	const char *resolver; /* verified_hosts.h */
	bool once;            /* lists of which there is no copy are fetched once, and no robot is verified */
	const struct weir_log *log;
};

/**
 * Opens lists with all that keeps them new.
 *
 * @param lists  returned: weir_exempt_lists_free()
 * @param fetch  returned: weir_exempt_fetch_free(), before the lists; NULL: nothing is fetched
 */
void weir_exempt_open(const struct weir_exempt_kept_options *options, struct weir_exempt_lists **lists,
                      struct weir_exempt_fetch **fetch);

/** @param options  what it points to is borrowed until weir_exempt_fetch_free() */
struct weir_exempt_fetch *weir_exempt_fetch_new(const struct weir_exempt_fetch_options *options);
/** Ends an answer that is waited for. NULL is fine. */
void weir_exempt_fetch_free(struct weir_exempt_fetch *fetch);

/**
 * Fetches the lists that this policy names, and no others. The first one starts the thread.
 *
 * It waits until each of which there is no copy has been asked for once: records that are matched meanwhile would be
 * counted for good.
 *
 * @param fetch    NULL: nothing is done
 * @param wait_ms  at most
 * @param stop     ends waiting
 */
void weir_exempt_fetch_set(struct weir_exempt_fetch *fetch, const struct weir_policy *policy, int64_t wait_ms,
                           const _Atomic bool *stop);

extern const struct weir_metric_table weir_exempt_fetch_metric_table;

/** Appends its metrics. @param fetch  NULL: nothing is fetched @thread any */
void weir_exempt_fetch_metrics(struct weir_exempt_fetch *fetch, struct weir_text *page);

#endif
