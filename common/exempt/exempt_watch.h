/* SPDX-License-Identifier: Apache-2.0 */
/* Notices that a file changed which a zone's "exempt" names, so that the policy is read again. */
#ifndef WEIR_EXEMPT_WATCH_H
#define WEIR_EXEMPT_WATCH_H

#include "common/exempt/exempt_list.h"

#include <stdbool.h>

struct watched_file;

/* Zeroed: watches nothing. */
struct weir_exempt_watch {
	struct watched_file *files;
	size_t count;
	int64_t looked_ms;
	int64_t again_ms; /* when a change is reported again that could not be taken; 0: none */
};

/**
 * Watches the files of a policy that was read, or checked, just now: what changed since then is reported. A list that
 * could not be read is reported again in half a minute, or when it changes.
 *
 * @param policy  borrowed until it returns, and so are the lists
 */
void weir_exempt_watch_set(struct weir_exempt_watch *watch, const struct weir_policy *policy,
                           struct weir_exempt_lists *lists, int64_t now_ms);
void weir_exempt_watch_deinit(struct weir_exempt_watch *watch);

/**
 * Whether a file changed since it was read, or last reported, and has stayed so for a second: who writes it may not be
 * done. One that is gone has changed, too. Looks once a second, however often it is called.
 *
 * @param now_ms  a clock that does not go back
 */
bool weir_exempt_watch_changed(struct weir_exempt_watch *watch, int64_t now_ms);

/** What was reported could not be taken: it is reported again in half a minute. */
void weir_exempt_watch_again(struct weir_exempt_watch *watch, int64_t now_ms);

#endif
