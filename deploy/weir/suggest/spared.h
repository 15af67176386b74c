/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys that must never be blocked. They are in a file with one key or network on each line. Lines that are empty or begin with "#" say
 * nothing. A key of several values has "|" between them, as reports write it.
 */
#ifndef DEPLOY_WEIR_SUGGEST_SPARED_H
#define DEPLOY_WEIR_SUGGEST_SPARED_H

#include "common/bytes/address.h"
#include "common/policy/policy.h"

struct spared {
	struct weir_text *keys; /* joined, sorted */
	size_t key_count;
	struct weir_network *networks;
	size_t network_count;
};

/**
 * Reads such a file of at most 16 MiB.
 *
 * @param policy  its one zone says what keys are made of
 * @param spared  zeroed at first; spared_deinit(), on failure too
 * @return WEIR_OK; WEIR_INVALID: a line is no key, "FILE:LINE: words"; WEIR_IO
 */
WEIR_MUST_USE enum weir_status spared_read(const char *path, const struct weir_policy *policy, struct spared *spared,
                                           struct weir_error *error);
void spared_deinit(struct spared *spared);

/**
 * Adds whom operators let go: the keys and networks of the lifts and allows in the log of a state directory, whose weir
 * may be running. Whose allow a command has ended, or who is forgotten, is not one of them.
 *
 * @param zone      its keys are made of as many values
 * @param of_zone   commands of this zone alone; NULL: of any
 * @param unknown   counted up: messages of the log that cannot be read
 * @return WEIR_OK; WEIR_INVALID: there is no log; WEIR_IO
 */
WEIR_MUST_USE enum weir_status spared_read_state(const char *directory, const struct weir_zone *zone,
                                                 const char *of_zone, struct spared *spared, uint64_t *unknown,
                                                 struct weir_error *error);

/** Whether a joined key is one of them. */
bool spared_has(const struct spared *spared, struct weir_span key);

#endif
