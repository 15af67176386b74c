/* SPDX-License-Identifier: Apache-2.0 */
/* The bus of one machine: a log on its disk, for one process. */
#ifndef WEIR_COMMON_BUS_LOCAL_H
#define WEIR_COMMON_BUS_LOCAL_H

#include "common/bus/bus.h"

struct weir_bus_local_options {
	uint32_t partitions;
	int64_t segment_bytes;   /* a topic's file is closed at this size (64 KiB to 1 GiB; 0: 64 MiB); trimming removes
	                            whole files */
	int64_t retention_bytes; /* of a topic without readers (such as judged frames without an archiver): above it the
	                            oldest files are removed; 0: 1 GiB */
	int64_t
		explain_bytes; /* of events: so many stay behind the slowest reader, for who wants to know later why; 0: none */
	int64_t sync_delay_ms; /* from one fsync to the next, while messages are gathered; 0: only while the former runs */
	bool events_only;      /* it is no more than one log: it has the topic events alone, and no other may be used */
};

/**
 * Opens or creates the on-disk log in a directory, for this process alone. A torn tail left by a crash is cut, as it
 * was never acknowledged. A full or failing disk is no error of any call: messages wait, and `problem` says why.
 *
 * @return WEIR_OK; WEIR_INVALID: created with another number of partitions, or damaged before its tail: the error names
 *         file and byte; WEIR_NEWER; WEIR_LOCKED: another process has it open; WEIR_IO
 */
WEIR_MUST_USE enum weir_status weir_bus_local_open(const char *directory, const struct weir_bus_local_options *options,
                                                   struct weir_bus **bus, struct weir_error *error);

/**
 * Whether it could be opened, by the same reading of the same files. Takes no lock and changes nothing. Beside the process
 * that has it open, what is just written may look damaged: only what is so again and again is.
 *
 * @return WEIR_OK, also where there is none yet; otherwise as weir_bus_local_open()
 */
WEIR_MUST_USE enum weir_status weir_bus_local_check(const char *directory, const struct weir_bus_local_options *options,
                                                    struct weir_error *error);

/** Forgets a reader that will not come back, so that it no longer delays trimming. Does nothing if it is unknown. */
WEIR_MUST_USE enum weir_status weir_bus_local_forget(struct weir_bus *bus, enum weir_topic topic, const char *reader,
                                                     struct weir_error *error);

/** Up to which offset a reader of that name needs no message any more. @thread any */
uint64_t weir_bus_local_read_to(struct weir_bus *bus, enum weir_topic topic, const char *reader, uint32_t partition);

/** How many bytes the files of a topic have. @thread any */
uint64_t weir_bus_local_bytes(struct weir_bus *bus, enum weir_topic topic);

#endif
