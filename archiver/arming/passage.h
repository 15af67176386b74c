/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether all that the log had at some moment has been judged, and is in the archive. Partitions in which nothing more
 * comes have no time of their own to wait for, so it goes by offsets: first those of events, which limiters pass, then
 * those of judged frames, which archivers store. Both are read from the store, so it does not matter who does it.
 */
#ifndef ARCHIVER_ARMING_PASSAGE_H
#define ARCHIVER_ARMING_PASSAGE_H

#include "common/bus/bus.h"
#include "common/store/store.h"

enum passage_phase { PASSAGE_IDLE, PASSAGE_JUDGING, PASSAGE_ARCHIVING };

struct passage {
	enum passage_phase phase;
	uint64_t *ends;  /* by partition: of the events, then of judged frames */
	uint32_t behind; /* while it is not idle: a partition that is not there yet */
};

void passage_deinit(struct passage *passage);
/** Notes where the log ends now. */
WEIR_MUST_USE enum weir_status passage_begin(struct passage *passage, struct weir_bus *bus, struct weir_error *error);
/** Goes on. @return whether all is archived in *passed; it is idle then */
WEIR_MUST_USE enum weir_status passage_look(struct passage *passage, struct weir_bus *bus, struct weir_store *store,
                                            bool *passed, struct weir_error *error);

#endif
