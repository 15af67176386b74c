/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second reading: the limits that were found, one less of each, and the points of each window's curve, judged as the
 * zones of one policy. It says how many requests each would have blocked, and that the keys are those that were foretold.
 */
#ifndef DEPLOY_WEIR_SUGGEST_TRIAL_H
#define DEPLOY_WEIR_SUGGEST_TRIAL_H

#include "deploy/weir/backtest/figures.h"
#include "deploy/weir/suggest/limits.h"
#include "deploy/weir/suggest/setting.h"

enum trial_kind {
	TRIAL_TOGETHER, /* all windows with the limits that are suggested: the first zone */
	TRIAL_LOWER,    /* the same, but one window's limit is one less */
	TRIAL_ALONE,    /* a point of a window's curve: this window alone */
};

struct trial_zone {
	enum trial_kind kind;
	uint32_t window; /* TRIAL_LOWER, TRIAL_ALONE */
	int64_t limit;   /* its limit */
	uint64_t keys;   /* that are blocked, as foretold */
	uint64_t requests;
};

struct trial {
	const char *algorithm;                /* of all limits; borrowed */
	int64_t limits[WEIR_ZONE_LIMITS_MAX]; /* of TRIAL_TOGETHER */
	int64_t windows_ms[WEIR_ZONE_LIMITS_MAX];
	uint32_t window_count;
	struct trial_zone *zones; /* points of a window stand together, the smallest limit first */
	uint32_t count;
};

/** @param trial  limits and windows are set; @param alone  by window: a point of its curve, too */
void trial_make(struct trial *trial, const struct peak_table *table, const int64_t *alone);
void trial_deinit(struct trial *trial);

/** The zones as "zones" of a configuration has them, returned. */
json_t *trial_zones(const struct trial *trial, const struct setting *setting);

/** The limits of some windows, as "limits" has them, returned. */
json_t *trial_limits(const struct trial *trial, const int64_t *limits);

/**
 * Takes what the reading gave.
 *
 * @param requests  that the first reading had
 * @return WEIR_OK; WEIR_INVALID: it is not what was foretold: what was read has changed in between
 */
WEIR_MUST_USE enum weir_status trial_end(struct trial *trial, const struct figures *figures, uint64_t requests,
                                         struct weir_error *error);

/** The one of a kind, window and limit; NULL: there is none. @param limit  0: any */
const struct trial_zone *trial_find(const struct trial *trial, enum trial_kind kind, uint32_t window, int64_t limit);

#endif
