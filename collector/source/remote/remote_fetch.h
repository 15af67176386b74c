/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread of a source of remote files: lists, reads ranges ahead, and cuts them into steps.
 *
 * A step is an unlinked temporary file of plain whole lines, with the pieces that they are of, and the table as it is
 * once they are read. The thread knows no positions: the source gives them, saves the step, and only then its lines.
 */
#ifndef COLLECTOR_SOURCE_REMOTE_FETCH_H
#define COLLECTOR_SOURCE_REMOTE_FETCH_H

#include "collector/source/remote/remote_plan.h"

enum { REMOTE_STEPS_AHEAD = 2 };

struct remote_step {
	int fd; /* -1: it has no lines */
	struct remote_piece *pieces;
	size_t count;
	uint64_t bytes;    /* of fd */
	size_t name_bytes; /* of its pieces */
	bool replay;       /* its pieces have their positions: they are saved already */
	struct weir_text table;
	bool last; /* nothing follows: with `status`, and its words, where something failed for good */
	enum weir_status status;
	struct weir_error error;
};

struct remote_fetch_options {
	const struct remote_ops *ops;
	void *kind; /* borrowed */
	bool once;
	bool from_end; /* at the very first listing */
	int64_t poll_ms, late_ms;
	uint64_t line_max;
	bool headed;           /* the format needs an object's first lines */
	const char *directory; /* of temporary files; borrowed */
};

/* For status(). */
struct remote_fetch_state {
	uint64_t behind_bytes; /* known to be there, and not in a step */
	uint64_t waiting;      /* objects that have unread bytes */
	uint64_t errors, lost_bytes, unknown_losses, replaced;
	bool reads; /* bytes of an object came */
	char problem[256];
	bool reads_on; /* the problem is a loss */
};

struct remote_fetch;

/** @param table, replays  taken; replays: pieces to be read again first */
struct remote_fetch *remote_fetch_new(const struct remote_fetch_options *options, struct remote_table *table,
                                      struct remote_piece *replays, size_t replay_count);
WEIR_MUST_USE enum weir_status remote_fetch_start(struct remote_fetch *fetch, struct weir_error *error);
/** Asks it to end, soon. */
void remote_fetch_stop(struct remote_fetch *fetch);
/** Replaces what is to be read again first; before it starts. @param replays  taken */
void remote_fetch_replay(struct remote_fetch *fetch, struct remote_piece *replays, size_t replay_count);
/** Ends its thread, too. NULL is fine. */
void remote_fetch_free(struct remote_fetch *fetch);

/** The next step; the caller frees it. NULL: none now. */
struct remote_step *remote_fetch_take(struct remote_fetch *fetch);
void remote_step_free(struct remote_step *step);
/** Readable while a step is ready. */
int remote_fetch_fd(const struct remote_fetch *fetch);
/** @thread any */
void remote_fetch_state(struct remote_fetch *fetch, struct remote_fetch_state *state);
/** The next of what people should know, and be told once. @return false: there is none */
bool remote_fetch_notice(struct remote_fetch *fetch, char words[256]);

#endif
