/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of what frames have of records, for as long as an event that was judged may be answered with: the events of one
 * record, or of equal ones in a row, share a copy. Bounded in bytes: the newest stay.
 *
 * Events come and go by the limits' rules, so nobody counts who needs a copy: once there are many, whoever has the
 * events marks those that are needed, and the others go.
 */
#ifndef DEPLOY_WEIR_EXPLAIN_KEPT_FIELDS_H
#define DEPLOY_WEIR_EXPLAIN_KEPT_FIELDS_H

#include "deploy/weir/explain/question.h"

enum { KEPT_FIELDS_MAX_BYTES = 32 * 1024 * 1024 };

struct kept;

/* Zero-initialised is empty. */
struct kept_fields {
	struct kept **all; /* owned, the oldest first */
	size_t count, room;
	size_t bytes;
	size_t sweep_bytes; /* with so many it is time to sweep */
};

/** A copy, or the newest one if it has the same bytes; borrowed until a sweep. @param fields  at NULL: none */
struct weir_span kept_fields_add(struct kept_fields *kept, struct weir_span fields);

/** Whether it is time to mark what each event needs, and to sweep, before more is added. */
bool kept_fields_is_full(const struct kept_fields *kept);
/** Marks what an event needs. */
void kept_fields_mark(struct explained_event *event);
/** Drops what is not marked. @return whether too much is, and each event has to let go of some: then kept_fields_drop() */
bool kept_fields_sweep(struct kept_fields *kept);
/** Takes from an event what it cannot keep. */
void kept_fields_let_go(struct explained_event *event);
/** Drops what all have let go of. */
void kept_fields_drop(struct kept_fields *kept);

void kept_fields_deinit(struct kept_fields *kept);

#endif
