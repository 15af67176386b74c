/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of a worker: decisions, lifts, judged frames, operators' blocks and
 * dead letters, each as a message for the publisher.
 */
#ifndef LIMITER_OUTPUT_H
#define LIMITER_OUTPUT_H

#include "limiter/lane/lane.h"
#include "limiter/worker/publisher.h"

struct output {
	struct publisher *publisher;
	struct weir_text text, key, judged;
	int64_t dead_letters_second; /* the current second, for deadletter.rate */
	int64_t dead_letters;        /* how many came in that second */
};

/** @param publisher  borrowed */
void output_init(struct output *output, struct publisher *publisher);
void output_deinit(struct output *output);

/** Publishes what a message resulted in: decisions, lifts, an operator's block or lift, a judged frame. */
void output_result(struct output *output, uint32_t partition, const struct lane_result *result,
                   struct weir_span message);

/**
 * Publishes long operators' blocks again (worker_options.remind_ms), under their old ids, so that a gateway that
 * starts later learns of them. The wall clock decides when, as it does for the topic's retention. Readers of the first
 * copy skip the others.
 */
void output_remind(struct output *output, struct lane *lane);

/**
 * Logs a malformed message and publishes it as a dead letter, both within deadletter.rate. Without
 * worker_options.dead_letters it only logs.
 *
 * @param counts  whether it adds to the metrics: not if it was counted before
 */
void output_dead_letter(struct output *output, uint32_t partition, struct weir_span message, uint64_t offset,
                        const char *reason, bool counts);

#endif
