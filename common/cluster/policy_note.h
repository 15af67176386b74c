/* SPDX-License-Identifier: Apache-2.0 */
/* Who put a version of the policy in force, and when: a note of the store beside it. */
#ifndef WEIR_COMMON_POLICY_NOTE_H
#define WEIR_COMMON_POLICY_NOTE_H

#include "common/store/store.h"

enum { WEIR_POLICY_AUTHOR_BYTES = 256 };

/* The author of a policy that does nothing but arm zones (weir_policy_is_arming()), whoever finishes it. */
#define WEIR_POLICY_AUTHOR_SELF "weir"

struct weir_policy_note {
	int64_t at_ms; /* Unix time; 0: nothing is known of the version */
	char by[WEIR_POLICY_AUTHOR_BYTES];
};

/** Keeps the note of a version that has none. */
WEIR_MUST_USE enum weir_status weir_policy_note_put(struct weir_store *store, uint64_t version,
                                                    const struct weir_policy_note *note, struct weir_error *error);
WEIR_MUST_USE enum weir_status weir_policy_note_get(struct weir_store *store, uint64_t version,
                                                    struct weir_policy_note *note, struct weir_error *error);

#endif
