/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is counted of the verdicts of several policies, which are judged as the zones of one: for each zone the requests,
 * decisions and keys, what got through over time, and where two zones that answer the same question differ.
 *
 * There is one for each partition, whose worker owns it; sums are made at the end. A key is in one partition.
 */
#ifndef DEPLOY_WEIR_BACKTEST_FIGURES_H
#define DEPLOY_WEIR_BACKTEST_FIGURES_H

#include "common/base/text.h"
#include "deploy/weir/backtest/time_bins.h"
#include "limiter/lane/lane.h"

enum { FIGURES_EXAMPLES = 10 };

/* Two zones of the joined policy, by place: what `zone` does otherwise than `base`. They have the same key. */
struct figures_pair {
	uint32_t base, zone;
};

struct figures_options {
	uint32_t zone_count; /* zones of the joined policy; the one at place i has the id i + 1 */
	const struct figures_pair *pairs;
	uint32_t pair_count;
	bool by_position;  /* events are in the order of their positions, over all partitions; else of their times */
	size_t most_bytes; /* of what is known of keys; 0: any number */
};

struct figures_zone {
	uint64_t passed, blocked, late, decisions;
	uint64_t keys, blocked_keys; /* of figures_sum() */
};

/* The first event at which a key's verdicts differ. */
struct figures_example {
	uint64_t order; /* of its event among all */
	int64_t at_ms;
	bool base_blocks;     /* and the other passes; else the other way round */
	struct weir_text key; /* joined */
};

struct figures_difference {
	uint64_t requests, keys;
	struct figures_example examples[FIGURES_EXAMPLES]; /* the first of them, in order */
	uint32_t example_count;
};

struct figures;

/** @param options  copied; pairs are borrowed */
struct figures *figures_new(const struct figures_options *options);
void figures_free(struct figures *figures);

/** Counts what a judged frame gives. @thread whoever has the lane */
void figures_add(struct figures *figures, const struct lane_result *result);

/** Adds another partition's to a sum, which is empty at first. */
void figures_sum(struct figures *into, const struct figures *of);

const struct figures_zone *figures_zone(const struct figures *figures, uint32_t place);
/** Of options.pairs[pair]. */
const struct figures_difference *figures_difference(const struct figures *figures, uint32_t pair);
/** Series 2 * place: passed, 2 * place + 1: blocked. */
const struct time_bins *figures_bins(const struct figures *figures);
/** Whether keys were left out, as those that are known had reached most_bytes: numbers of keys are too low. */
bool figures_lack_keys(const struct figures *figures);
/** Whether a zone's numbers of keys say anything: none was left out, or some are known. */
bool figures_know_keys(const struct figures *figures, uint32_t place);
/** Likewise of the keys of a difference. */
bool figures_know_difference(const struct figures *figures, uint32_t pair);

#endif
