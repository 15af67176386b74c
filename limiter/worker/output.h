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
	int64_t dead_letters_second; /* the second in which so many dead letters were kept */
	int64_t dead_letters;
};

/** @param publisher  borrowed */
void output_init(struct output *output, struct publisher *publisher);
void output_deinit(struct output *output);

/** Publishes what a message came to. */
void output_result(struct output *output, uint32_t partition, const struct lane_result *result,
                   struct weir_span message);

/**
 * Publishes operators' blocks that outlast the topic's retention again, with the ids that they have: a gateway that
 * starts later is to learn of them. When is for the wall clock to say, as it is for the topic; readers of the first
 * copy pass over the others.
 */
void output_remind(struct output *output, struct lane *lane);

/** Says that a message is none, and keeps it with the dead letters, within deadletter.rate. */
void output_dead_letter(struct output *output, uint32_t partition, struct weir_span message, uint64_t offset,
                        const char *reason);

#endif
