/* SPDX-License-Identifier: Apache-2.0 */
/* Finds decisions as they were published: in the log's topics, and in the files that a run wrote them to. */
#ifndef DEPLOY_WEIR_EXPLAIN_PUBLISHED_H
#define DEPLOY_WEIR_EXPLAIN_PUBLISHED_H

#include "common/bus/bus.h"
#include "deploy/weir/explain/patience.h"
#include "deploy/weir/explain/question.h"

struct published;

/** @param questions  borrowed; @param policy  the zones' names; borrowed. @param patience  borrowed */
struct published *published_new(struct question *questions, size_t count, const struct weir_policy *policy,
                                const struct patience *patience);

/** Settles which decision each question is about, and its zone and key, as far as they were found. Frees it. */
void published_end(struct published *published);

/**
 * Looks through a topic of decisions.
 *
 * @param bus  NULL: the log of `directory`
 * @return WEIR_OK, also where there is no such topic; WEIR_IO, also where patience has ended
 */
WEIR_MUST_USE enum weir_status published_read_topic(struct published *published, struct weir_bus *bus,
                                                    const char *directory, enum weir_topic topic,
                                                    struct weir_error *error);

/**
 * Looks through a file of decisions, and those that it was rotated to.
 *
 * @param found  set: whether there is any of them
 * @return WEIR_IO: likewise
 */
WEIR_MUST_USE enum weir_status published_read_file(struct published *published, const char *path, bool *found,
                                                   struct weir_error *error);

#endif
