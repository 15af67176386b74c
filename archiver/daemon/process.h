/*
 * The archiver's process: the servers, the group's membership and the archiver's
 * thread, in the order in which they start and end.
 */
#ifndef ARCHIVER_PROCESS_H
#define ARCHIVER_PROCESS_H

#include "archiver/api/api.h"
#include "archiver/work/archiver.h"
#include "common/cluster/lag.h"
#include "common/cluster/membership.h"
#include "common/daemon/daemon.h"

enum process_phase { PROCESS_CONNECTING, PROCESS_WORKING, PROCESS_STOPPING };

struct process {
	struct weir_daemon *daemon;
	struct weir_daemon_pages pages;
	_Atomic int phase;          /* from PROCESS_WORKING on all that follows is there, and stays */
	struct weir_key_hash *hash; /* NULL: keys are kept in clear */
	struct weir_bus *bus;
	struct weir_share *share;
	struct weir_membership *membership;
	struct archiver *archiver;
	struct weir_lag *lag;
	struct api *api;       /* NULL: none is configured */
	_Atomic bool stopping; /* as a flag for who waits in a thread of the process */
};

/**
 * @param daemon  borrowed until the process ends
 * @return WEIR_INVALID: the secret of archiver.hash_keys cannot serve
 */
WEIR_MUST_USE enum weir_status process_init(struct process *process, struct weir_daemon *daemon,
                                            struct weir_error *error);

/** Says on standard output whether it could start. */
enum weir_exit process_check(struct process *process);

/** Connects, waiting for servers that are not there yet, and starts. @return WEIR_END: asked to stop meanwhile */
WEIR_MUST_USE enum weir_status process_start(struct process *process, struct weir_error *error);

/** Works until a signal says to stop, or until a part has failed. */
void process_watch(struct process *process);

/** Stores what has come, then leaves the group; the process must end by _exit(). @return whether all went well */
bool process_stop(struct process *process);

#endif
