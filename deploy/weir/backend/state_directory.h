/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state directory: held by one process, used for one kind of run.
 *
 *   lock            the process that has it
 *   weir.db         checkpoints, policies, notes (SQLite)
 *   log/            the local bus (follow mode)
 *   sources.json    what the collector remembers of its files (follow mode)
 *   dead-letter.jsonl
 *   control         the socket of a run that follows (control.h)
 *   lists/, spool-NAME/, swap-…  of "exempt", of sources that take what is sent, and of memory
 *
 * Outputs may be beside these, and none of these but the dead letters: written_files.c has their names.
 */
#ifndef DEPLOY_WEIR_BACKEND_STATE_DIRECTORY_H
#define DEPLOY_WEIR_BACKEND_STATE_DIRECTORY_H

#include "common/base/text.h"
#include "common/files/durable_file.h"
#include "common/store/store.h"

struct policy_registry;

enum { STATE_DATABASE, STATE_DATABASE_LOG, STATE_DATABASE_INDEX, STATE_LOG, STATE_PARTS };

/* Of a file or a directory that is kept open. */
struct state_part {
	uint64_t device, inode; /* 0, 0: not known */
};

struct state_directory {
	const char *path; /* borrowed */
	struct weir_directory_lock lock;
	bool locked;
	struct weir_store *store;
	struct state_part parts[STATE_PARTS]; /* as they were when they were opened */
};

/**
 * Makes it where it is not there, locks it, opens the store.
 *
 * @param kind  "once" or "follow": a directory of the other kind is refused
 */
WEIR_MUST_USE enum weir_status state_directory_open(struct state_directory *state, const char *path, const char *kind,
                                                    struct weir_error *error);

/** Whether it is another user's, and this one may not read what a check of it reads. */
bool state_directory_is_closed(const char *path);

/** Takes down that the log in it is open, too. */
void state_directory_note_log(struct state_directory *state);
/**
 * Whether all that is kept open in it is still there: neither removed nor replaced. What is written to the one that was is
 * gone at the next start.
 *
 * @param why  appended to
 * @thread any
 */
bool state_directory_stands(const struct state_directory *state, struct weir_text *why);

/**
 * Opens its store once more, for another thread. Not where it does not stand: a file in its place would become a store of
 * its own, and SQLite would empty the log that lies beside it.
 */
WEIR_MUST_USE enum weir_status state_directory_open_another(const struct state_directory *state,
                                                            struct weir_store **store, struct weir_error *error);

/**
 * Opens it to look at it, beside the process that may hold it: as of this moment, and nothing can be written.
 *
 * @param once  whether it is of a --once run
 * @param seed  of its fingerprints; 0 while there is none
 */
WEIR_MUST_USE enum weir_status state_directory_open_read_only(struct state_directory *state, const char *path,
                                                              bool *once, uint64_t *seed, struct weir_error *error);
/**
 * Opens what is archived in a state, to look at it as above.
 *
 * @param store  returned
 * @return WEIR_INVALID also: nothing is archived there, which is not to look as if nobody came
 */
WEIR_MUST_USE enum weir_status state_directory_open_archive(const char *path, struct weir_store **store,
                                                            struct weir_error *error);
void state_directory_close(struct state_directory *state);

/** Reads every policy of its store into a registry. @return WEIR_INVALID: one is damaged */
WEIR_MUST_USE enum weir_status state_directory_policies(struct state_directory *state, struct policy_registry *registry,
                                                        struct weir_error *error);
/**
 * Reads of a store that is open to be looked at what a start reads of it; all of it, where that is little.
 *
 * @return WEIR_INVALID: something of it is damaged
 */
WEIR_MUST_USE enum weir_status state_directory_check(struct state_directory *state, uint32_t partitions,
                                                     struct weir_error *error);

/** The secret seed of the state's fingerprints, made at first use. */
WEIR_MUST_USE enum weir_status state_directory_seed(struct state_directory *state, uint64_t *seed,
                                                    struct weir_error *error);

/** A directory of its own under TMPDIR; *path is returned, state_directory_remove() removes and frees it. */
WEIR_MUST_USE enum weir_status state_directory_temporary(char **path, struct weir_error *error);
void state_directory_remove(char *path);

/** Where follow mode keeps its state without --state: /var/lib/weir for root, else the XDG state directory. */
WEIR_MUST_USE enum weir_status state_directory_default(char path[WEIR_PATH_BYTES], struct weir_error *error);

#endif
