/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who asks for what, and when: the events of a synthetic log, the same for
 * every format.
 *
 * All of it is a pure function of the options, in whole numbers: an event takes
 * its random numbers from one sequence, and no clock is read.
 */
#ifndef DEPLOY_WEIR_GENERATE_TRAFFIC_H
#define DEPLOY_WEIR_GENERATE_TRAFFIC_H

#include "deploy/weir/generate/site.h"

enum generate_method {
	GENERATE_GET,
	GENERATE_POST,
	GENERATE_HEAD,
	GENERATE_PUT,
	GENERATE_PATCH,
	GENERATE_DELETE,
	GENERATE_OPTIONS,
	GENERATE_METHOD_COUNT,
};

extern const char *const generate_method_names[GENERATE_METHOD_COUNT + 1]; /* NULL after the last */

#define GENERATE_WHOLE (UINT64_C(1) << 32) /* a share of 1 */

struct generate_traffic_options {
	uint64_t seed;
	uint32_t users;    /* 1 to GENERATE_ZIPF_MAX */
	uint32_t exponent; /* of Zipf's law, in millionths */
	uint32_t abusers;  /* users beyond those, who go over limits */
	/* shares, in 2^-32 of the lines */
	uint64_t bursts, out_of_order, duplicates, malformed;
	uint64_t methods[GENERATE_METHOD_COUNT]; /* weights, not all zero, each at
                                              most GENERATE_WHOLE */
	int64_t late_by_ms;                      /* how far back a time out of order lies, at most */
	int64_t start_ms;
	uint64_t rate_milli; /* events in 1000 s of the log's time, at least 1 */
};

enum generate_damage {
	GENERATE_WHOLE_LINE,
	GENERATE_CUT_LINE, /* it ends after some bytes */
	GENERATE_BAD_TIME, /* an impossible month */
	GENERATE_FRAGMENT, /* a piece of something else */
	GENERATE_DAMAGE_COUNT,
};

struct generate_event {
	int64_t time_ms;
	uint32_t user; /* 0 makes most requests; from `users` on: an abuser */
	bool abuser;
	bool duplicate; /* the line is written twice */
	enum generate_damage damage;
	enum generate_method method;
	uint16_t status;
	uint32_t bytes;
	const struct generate_page *page; /* of the site */
	uint64_t noise;                   /* for what a format adds of its own */
};

struct generate_traffic;

/** @param site  borrowed */
struct generate_traffic *generate_traffic_new(const struct generate_traffic_options *options,
                                              const struct generate_site *site);
void generate_traffic_free(struct generate_traffic *traffic);

/** The next event. @param now_ms  its time, but for being out of order; -1: as
 * start and rate have it */
void generate_traffic_next(struct generate_traffic *traffic, int64_t now_ms, struct generate_event *event);

#endif
