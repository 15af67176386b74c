/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command line tool works on: a cluster, or the state directory of one
 * machine, which a running `weir run` may be using.
 */
#ifndef DEPLOY_WEIR_BACKEND_BACKEND_H
#define DEPLOY_WEIR_BACKEND_BACKEND_H

#include "common/bus/bus.h"
#include "common/cluster/policy_log.h"
#include "common/config/config.h"
#include "common/log/log.h"
#include "deploy/weir/backend/state_directory.h"

enum backend_kind {
	BACKEND_CLUSTER,
	BACKEND_STATE,   /* a state directory that nothing else works on */
	BACKEND_RUNNING, /* one that `weir run` holds: it is asked through its control socket */
};

/* What is opened. In a cluster all but BACKEND_MAKES leave it as it is: what is missing is told. */
enum backend_need {
	BACKEND_READS,   /* the store, to look at it */
	BACKEND_LOG,     /* in a cluster one topic alone; of a state directory as BACKEND_READS */
	BACKEND_TOPIC,   /* in a cluster the store and one topic; of a state directory as BACKEND_READS */
	BACKEND_VIEWS,   /* in a cluster the store and all topics, to look at them; of a state directory as BACKEND_READS */
	BACKEND_APPENDS, /* the store and one topic, to append to it */
	BACKEND_ALL,     /* the store, to write to it, and all topics; also of a state directory that is held */
	BACKEND_MAKES, /* in a cluster the store and the bus, made where they are missing; of a state directory as BACKEND_READS */
};

/* Zero-initialised, and backend_close()d in any case. */
struct backend {
	enum backend_kind kind;
	enum weir_topic topic;      /* which one; to be set before */
	bool absent;                /* there is nothing yet: that topic, or the store's tables, is missing */
	struct weir_config *config; /* NULL: a state directory was named, and no configuration */
	bool config_borrowed;
	int64_t wait_ms;        /* for a store that does not answer */
	const char *state_path; /* NULL: a cluster */
	char state_default[WEIR_PATH_BYTES];
	struct weir_log log;
	struct state_directory state;
	struct weir_store *store;
	bool missing[WEIR_TOPIC_COUNT]; /* BACKEND_ALL: topics of a cluster that are not there */
	struct weir_bus *bus;           /* NULL where it is not opened; of BACKEND_RUNNING never */
	bool once;                      /* the state is of a --once run */
	uint64_t seed;                  /* of the fingerprints; 0 while there is none */
	int64_t lateness_ms;            /* limiter.lateness; < 0: nothing is forgotten */
};

/**
 * Opens what the options name.
 *
 * @param command      "weir block", for the words
 * @param config_path  --config, or NULL
 * @param state_path   --state, or NULL: the configuration says which; one of both is given. Borrowed
 * @return WEIR_OK; WEIR_INVALID: they name nothing that can be worked on, or what has not been made yet (absent);
 *         WEIR_IO: no server answers
 */
WEIR_MUST_USE enum weir_status backend_open(struct backend *backend, const char *command, const char *config_path,
                                            const char *state_path, enum backend_need need, struct weir_error *error);
/**
 * Opens the store to look at it, for a configuration that was read already.
 *
 * @param config      borrowed
 * @param state_path  as for backend_open()
 * @return WEIR_OK; WEIR_INVALID, WEIR_IO as there; nothing is there yet: absent
 */
WEIR_MUST_USE enum weir_status backend_look(struct backend *backend, const char *command, struct weir_config *config,
                                            const char *state_path, struct weir_error *error);
/**
 * Says on standard error that nobody has the state of a run that followed, so that what is shown of it is as old as that
 * run's end. Says nothing of anything else.
 */
void backend_tell_ended(const struct backend *backend, const char *command);
void backend_close(struct backend *backend);

/** How many partitions there are. */
WEIR_MUST_USE enum weir_status backend_partitions(const struct backend *backend, uint32_t *count,
                                                  struct weir_error *error);

#endif
