/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which zones keep a history, by the policy that a frame was matched under:
 * policies come from the store, when a frame names one that is not known yet.
 */
#ifndef ARCHIVER_HISTORIES_H
#define ARCHIVER_HISTORIES_H

#include "common/store/store.h"

struct histories;

struct histories *histories_new(void);
/** NULL is fine. */
void histories_free(struct histories *histories);

/**
 * Reads what the store has beyond the newest version that is known, if `version` is newer than that: at most once a
 * second, where it has nothing.
 *
 * @return WEIR_OK, also where the store does not have it: no zone of it keeps a history; WEIR_IO
 */
WEIR_MUST_USE enum weir_status histories_know(struct histories *histories, struct weir_store *store, uint64_t version,
                                              struct weir_error *error);

/** Whether a version was read; 0, which is no policy's, always is. */
bool histories_has(const struct histories *histories, uint64_t version);

/* A zone that keeps one, and the fields that go with each event. */
struct history {
	uint32_t zone;
	char **fields;
	uint32_t field_count;
};

/** Whether any zone of a version does; then histories_find() tells of each. */
bool histories_any(const struct histories *histories, uint64_t version);
/** @return NULL: the zone keeps none; else valid until histories_know() */
const struct history *histories_find(const struct histories *histories, uint64_t version, uint32_t zone);

#endif
