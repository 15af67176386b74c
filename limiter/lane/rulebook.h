/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every policy that the log has named, and the rules compiled from them.
 *
 * A bucket remembers which version of its zone's limits it was written under,
 * so rules need the policies before them. Rules live as long as the book:
 * shards and decisions point into them.
 */
#ifndef LIMITER_RULEBOOK_H
#define LIMITER_RULEBOOK_H

#include "common/policy/policy.h"
#include "limiter/bucket/rules.h"

struct rulebook;

struct rulebook *rulebook_new(void);
void rulebook_free(struct rulebook *book);

/**
 * Adds a policy by its canonical text. A version that is there already is left alone.
 *
 * @param version  above every one added so far, or one of them
 * @return WEIR_OK; WEIR_INVALID: the text is no policy, cannot follow the one before it, or a version is missing
 * @thread any
 */
WEIR_MUST_USE enum weir_status rulebook_add(struct rulebook *book, uint64_t version, struct weir_span text,
                                            struct weir_error *error);

/** The rules as of a version, NULL if it was never added. @thread any */
const struct rules *rulebook_rules(struct rulebook *book, uint64_t version);

/** The policy of a version, NULL if it was never added; lives as long as the book. @thread any */
const struct weir_policy *rulebook_policy(struct rulebook *book, uint64_t version);

/** The highest version, 0 if there is none. @thread any */
uint64_t rulebook_newest(struct rulebook *book);

#endif
