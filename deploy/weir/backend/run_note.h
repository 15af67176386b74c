/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a `weir run` was asked to do, kept in its state, so that a command knows the sources and the outputs of a run
 * whose configuration was a command line, or is elsewhere. It has no secret: of a source that reads no files it keeps
 * the kind alone.
 */
#ifndef DEPLOY_WEIR_BACKEND_RUN_NOTE_H
#define DEPLOY_WEIR_BACKEND_RUN_NOTE_H

#include "common/config/config.h"
#include "common/files/durable_file.h"
#include "common/store/store.h"

struct run_note {
	char *directory;            /* owned: the working directory of the run, which its paths start from */
	char *decisions, *shadow;   /* owned: where decisions went; NULL: nowhere, or to standard output */
	struct weir_config *config; /* owned: zones, sources, partitions */
};

/** @param decisions, shadow  paths; NULL or "-": not to a file */
WEIR_MUST_USE enum weir_status run_note_put(struct weir_store *store, const struct weir_config *config,
                                            const char *decisions, const char *shadow, struct weir_error *error);

/** @return WEIR_OK; WEIR_END: the state has none, an older weir made it; WEIR_INVALID: it cannot be read */
WEIR_MUST_USE enum weir_status run_note_get(struct weir_store *store, struct run_note *note, struct weir_error *error);
void run_note_deinit(struct run_note *note);

#endif
