/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys that must never be blocked: a file with one key or network on each line. Lines that are empty or begin with "#" say
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
 * @param spared  zeroed; spared_deinit(), on failure too
 * @return WEIR_OK; WEIR_INVALID: a line is no key, "FILE:LINE: words"; WEIR_IO
 */
WEIR_MUST_USE enum weir_status spared_read(const char *path, const struct weir_policy *policy, struct spared *spared,
                                           struct weir_error *error);
void spared_deinit(struct spared *spared);

/** Whether a joined key is one of them. */
bool spared_has(const struct spared *spared, struct weir_span key);

#endif
