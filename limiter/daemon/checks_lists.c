/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies come into files. These are read anew by whoever looks here, as a worker would judge nothing for the seconds that a
 * long one takes; each worker's matcher takes what was read (limiter/check/request).
 */
#include "limiter/daemon/checks_lists.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/stop.h"
#include "common/exempt/exempt_fetch.h"
#include "common/exempt/exempt_watch.h"

#include <stdlib.h>

struct checks_lists {
	struct weir_exempt_lists *lists;
	struct weir_exempt_fetch *fetch; /* NULL: nothing is fetched */
	struct weir_exempt_watch watch;
	uint64_t version; /* of the policy whose lists are */
	char folder[WEIR_PATH_BYTES];
};

struct checks_lists *checks_lists_new(const struct weir_config *config, const char *state, const struct weir_log *log)
{
	struct checks_lists *lists = weir_alloc(1, sizeof *lists);
	struct weir_error ignored; /* a path that is too long is told by who opens the state */
	bool kept =
		state != NULL && weir_path_format(lists->folder, &ignored, "%s/" WEIR_EXEMPT_LISTS_FOLDER, state) == WEIR_OK;
	const struct weir_exempt_kept_options keeping = {.folder = kept ? lists->folder : NULL,
	                                                 .interval_ms = config->collector.list_interval_ms,
	                                                 .resolver = config->collector.resolver,
	                                                 .log = log};
	weir_exempt_open(&keeping, &lists->lists, &lists->fetch);
	return lists;
}

void checks_lists_free(struct checks_lists *lists)
{
	if (lists == NULL)
		return;
	weir_exempt_watch_deinit(&lists->watch);
	weir_exempt_fetch_free(lists->fetch);
	weir_exempt_lists_free(lists->lists);
	free(lists);
}

struct weir_exempt_lists *checks_lists_get(const struct checks_lists *lists)
{
	return lists->lists;
}

void checks_lists_look(struct checks_lists *lists, const struct weir_policy *newest)
{
	int64_t now_ms = weir_monotonic_ms();
	struct weir_error ignored; /* of a list that was never read: a worker that needs it says so */
	if (lists == NULL || newest == NULL)
		return;
	if (newest->version != lists->version) {
		lists->version = newest->version;
		weir_exempt_lists_prune(lists->lists, newest);
		weir_exempt_fetch_set(lists->fetch, newest, 0, weir_stop_flag());
	} else if (weir_exempt_watch_changed(&lists->watch, now_ms)) {
		(void)!weir_exempt_lists_refresh(lists->lists, newest, &ignored);
	} else {
		return;
	}
	weir_exempt_watch_set(&lists->watch, newest, lists->lists, now_ms);
}

void checks_lists_metrics(const struct checks_lists *lists, struct weir_text *page)
{
	weir_exempt_fetch_metrics(lists != NULL ? lists->fetch : NULL, page);
	weir_verified_hosts_metrics(lists != NULL ? weir_exempt_lists_hosts(lists->lists) : NULL, page);
}
