/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The peak of a key in a window: the most that any of its events found in its window, itself among them. That is the window
 * that ends with the event, or of fixed windows the one that it falls into. It is the smallest rate by which a limit of the
 * algorithm never blocks the key. Until a key is blocked for the first time, all
 * that it did was recorded, whatever the rate; so one reading tells for every rate at once who would ever be blocked.
 *
 * The times are those that the algorithm itself keeps, under a rate that is out of reach. There is one for each
 * partition, whose worker owns it. A key is in one partition.
 */
#ifndef DEPLOY_WEIR_SUGGEST_PEAKS_H
#define DEPLOY_WEIR_SUGGEST_PEAKS_H

#include "common/policy/policy.h"
#include "deploy/weir/suggest/spared.h"
#include "limiter/lane/lane.h"

/* A peak that no limit lets pass: they end at WEIR_RATE_MAX. */
#define PEAK_BEYOND (WEIR_RATE_MAX + 1)

struct peaks_options {
	const char *algorithm; /* sliding_window or fixed_window; borrowed */
	int64_t windows_ms[WEIR_ZONE_LIMITS_MAX];
	uint32_t window_count;
	const struct spared *spared; /* borrowed */
	size_t most_bytes;           /* of all that is kept */
};

/* The spared key with the highest peak in a window. */
struct spared_peak {
	int64_t peak;         /* 0: there is none */
	struct weir_text key; /* joined */
};

/* What was seen of all keys together. */
struct peaks_seen {
	uint64_t requests, late[WEIR_ZONE_LIMITS_MAX]; /* by window: of the requests that it did not judge */
	int64_t first_ms, last_ms;                     /* of requests; of none: first_ms > last_ms */
	uint64_t spared_keys;
	struct spared_peak spared[WEIR_ZONE_LIMITS_MAX];
};

/* A key that was blocked in the second reading. */
struct blocked_key {
	struct weir_span key; /* joined; borrowed */
	uint64_t requests;    /* that were blocked */
};

struct peaks;

/** @param options  copied */
struct peaks *peaks_new(const struct peaks_options *options);
void peaks_free(struct peaks *peaks);

/** Takes a judged frame of a policy of one zone. @thread whoever has the lane */
void peaks_add(struct peaks *peaks, const struct lane_result *result);
/** Whether something was left out, as there was no more room: nothing is known then. @thread any */
bool peaks_full(const struct peaks *peaks);
/** Frees the times: no more frames come. */
void peaks_end(struct peaks *peaks);

uint32_t peaks_keys(const struct peaks *peaks);
/** Of a key, by its number. */
int64_t peaks_at(const struct peaks *peaks, uint32_t key, uint32_t window);
const struct peaks_seen *peaks_seen(const struct peaks *peaks);

/** Counts a blocked request. @return false: the key was not seen. @thread whoever has the lane */
bool peaks_block(struct peaks *peaks, struct weir_span key);
/** How often a key was blocked, by its number. */
struct blocked_key peaks_blocked(const struct peaks *peaks, uint32_t key);

#endif
