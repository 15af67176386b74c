/* SPDX-License-Identifier: Apache-2.0 */
/* The gateways that doctor looks at, one by one, and what of it is told. */
#ifndef DEPLOY_WEIR_DOCTOR_GATEWAYS_H
#define DEPLOY_WEIR_DOCTOR_GATEWAYS_H

#include "deploy/gateways/gateway/gateway_settings.h"
#include "deploy/gateways/target/list_words.h"
#include "deploy/weir/doctor/internal.h"

/* One of them. */
struct doctor_gateway {
	struct gateway_settings settings;
	char *to, *map; /* owned; NULL: the configuration's */
	const char *zones[DOCTOR_ZONES_MOST];
	char *options; /* owned: what the zones, and the map of a service, are of */
	char *name;    /* owned */
	struct target *target;
	/* of the last look */
	struct target_reading reading;
	struct list_words before, now, list; /* what it should have had before it was read, and after; what it has */
	bool read;                           /* the list was */
	bool possible;                       /* only redis.url names it, which no subscriber needs to use */
};

struct doctor_gateways {
	struct doctor_gateway *at; /* owned */
	size_t count;
	size_t left_out; /* there were too many */
};

/**
 * Holds the lists that can be read back against the decisions, and says what differs. What was decided or ended a moment
 * ago is not told: a list that differs is looked at again a little later.
 *
 * @thread its own
 */
void doctor_compare_lists(struct doctor *doctor, const struct weir_check *check, struct doctor_gateways *gateways);

/** Whether the nginx of this machine includes a list, and has read it since it was written. */
void doctor_check_nginx(const struct weir_check *check, const struct doctor_gateway *gateway, const char *path);

/** Whether the HAProxy of this machine looks up clients by the address that it ends up with. */
void doctor_check_haproxy(const struct weir_check *check, const struct doctor_gateway *gateway);

#endif
