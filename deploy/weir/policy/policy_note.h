/* SPDX-License-Identifier: Apache-2.0 */
/* Who put a version of the policy in force, and when: a note of the store beside it. */
#ifndef DEPLOY_WEIR_POLICY_POLICY_NOTE_H
#define DEPLOY_WEIR_POLICY_POLICY_NOTE_H

#include "common/store/store.h"

enum { POLICY_AUTHOR_BYTES = 256 };

struct policy_note {
	int64_t at_ms; /* Unix time; 0: nothing is known of the version */
	char by[POLICY_AUTHOR_BYTES];
};

/** Keeps the note of a version that has none. */
WEIR_MUST_USE enum weir_status policy_note_put(struct weir_store *store, uint64_t version,
                                               const struct policy_note *note, struct weir_error *error);
WEIR_MUST_USE enum weir_status policy_note_get(struct weir_store *store, uint64_t version, struct policy_note *note,
                                               struct weir_error *error);

#endif
