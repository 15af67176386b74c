/* SPDX-License-Identifier: Apache-2.0 */
/* Notices that a file changed which a zone's "exempt" names, so that the policy is read again. */
#ifndef DEPLOY_WEIR_RUN_EXEMPT_WATCH_H
#define DEPLOY_WEIR_RUN_EXEMPT_WATCH_H

#include "common/policy/policy.h"

#include <stdbool.h>

struct exempt_file;

/* Zeroed: watches nothing. */
struct exempt_watch {
	struct exempt_file *files;
	size_t count;
	int64_t looked_ms;
};

/** Watches the files of a policy: those that it watched already go on as they were. @param policy  borrowed until it returns */
void exempt_watch_set(struct exempt_watch *watch, const struct weir_policy *policy);
void exempt_watch_deinit(struct exempt_watch *watch);

/**
 * Whether a file changed since it was last reported, and has stayed so for a second: who writes it may not be done. A file
 * that is gone has not changed. Looks once a second, however often it is called.
 *
 * @param now_ms  a clock that does not go back
 */
bool exempt_watch_changed(struct exempt_watch *watch, int64_t now_ms);

#endif
