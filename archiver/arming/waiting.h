/* SPDX-License-Identifier: Apache-2.0 */
/* The zones that wait in shadow mode, as the policies up to the newest have them. Plain structure: no store, no clock. */
#ifndef ARCHIVER_ARMING_WAITING_H
#define ARCHIVER_ARMING_WAITING_H

#include "archiver/arming/arming_rule.h"

struct waiting_zone {
	uint32_t id;
	char name[WEIR_ZONE_NAME_MAX_BYTES + 1];
	struct weir_arming terms; /* without words */
	char *settings;           /* weir_zone_settings() */
	uint64_t version;         /* of the policy since which it waits, with these settings and terms */
	bool noted;               /* since_ms is known */
	int64_t since_ms;         /* no earlier day counts */
	int64_t until_ms;         /* up to where it was looked at; 0: it was not yet */
	struct arming_verdict verdict;
};

struct waiting {
	struct waiting_zone *zones;
	size_t count;
};

/** Takes the next policy. */
void waiting_take(struct waiting *waiting, const struct weir_policy *policy);
void waiting_deinit(struct waiting *waiting);

/** The one of this id. @return NULL: it does not wait; otherwise valid until the next policy is taken */
const struct waiting_zone *waiting_find(const struct waiting *waiting, uint32_t id);

#endif
