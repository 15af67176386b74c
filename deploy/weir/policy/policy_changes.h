/* SPDX-License-Identifier: Apache-2.0 */
/* A policy and its changes, as text for people. */
#ifndef DEPLOY_WEIR_POLICY_POLICY_CHANGES_H
#define DEPLOY_WEIR_POLICY_POLICY_CHANGES_H

#include "common/base/text.h"
#include "common/policy/policy.h"

/** Appends each zone as a sentence, a line each. */
void policy_words_zones(struct weir_text *text, const struct weir_policy *policy);

/**
 * Appends "site changed (limits[0].rate 100 -> 20), login new, old removed", or "no zone differs".
 *
 * @param before  NULL: it is the first
 * @return whether one differs
 */
bool policy_words_changes(struct weir_text *text, const struct weir_policy *before, const struct weir_policy *after);

/** Appends a line for each limit that lets pass a tenth or ten times of what it did, as a slip of the keys makes it. */
void policy_words_leaps(struct weir_text *text, const struct weir_policy *before, const struct weir_policy *after);

#endif
