/* SPDX-License-Identifier: Apache-2.0 */
/* What an archiver has found of a zone that waits in shadow mode: a note of the store, for whoever looks. */
#ifndef WEIR_COMMON_SHADOW_NOTE_H
#define WEIR_COMMON_SHADOW_NOTE_H

#include "common/store/store.h"

/* Instead of a note's words, where it is of an earlier wait, or none is there. */
#define WEIR_SHADOW_NOT_LOOKED "no archiver has looked at it yet"

enum { WEIR_SHADOW_WORDS_BYTES = 512 };

struct weir_shadow_note {
	uint64_t version;                    /* of the policy since which the zone waits as it does; 0: nothing is known */
	int64_t since_ms;                    /* the first day that counts begins there */
	char words[WEIR_SHADOW_WORDS_BYTES]; /* why it stays in shadow, or why it was armed */
};

WEIR_MUST_USE enum weir_status weir_shadow_note_put(struct weir_store *store, uint32_t zone,
                                                    const struct weir_shadow_note *note, struct weir_error *error);
WEIR_MUST_USE enum weir_status weir_shadow_note_get(struct weir_store *store, uint32_t zone,
                                                    struct weir_shadow_note *note, struct weir_error *error);

#endif
