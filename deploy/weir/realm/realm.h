/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command line tool works on: a cluster, or the state directory of one
 * machine, which a running `weir run` may be using.
 */
#ifndef DEPLOY_WEIR_REALM_REALM_H
#define DEPLOY_WEIR_REALM_REALM_H

#include "common/bus/bus.h"
#include "common/cluster/policy_log.h"
#include "common/config/config.h"
#include "common/log/log.h"
#include "deploy/weir/realm/state_directory.h"

enum realm_kind {
	REALM_CLUSTER,
	REALM_STATE,   /* a state directory that nothing else works on */
	REALM_RUNNING, /* one that `weir run` holds: it is asked through its control socket */
};

/* What is opened. In a cluster all but REALM_MAKES leave it as it is: what is missing is told. */
enum realm_need {
	REALM_READS,   /* the store, to look at it */
	REALM_LOG,     /* in a cluster one topic alone; of a state directory as REALM_READS */
	REALM_TOPIC,   /* in a cluster the store and one topic; of a state directory as REALM_READS */
	REALM_APPENDS, /* the store and one topic, to append to it */
	REALM_ALL,     /* the store, to write to it, and all topics; also of a state directory that is held */
	REALM_MAKES, /* in a cluster the store and the bus, made where they are missing; of a state directory as REALM_READS */
};

/* Zero-initialised, and realm_close()d in any case. */
struct realm {
	enum realm_kind kind;
	enum weir_topic topic;      /* which one; to be set before */
	bool absent;                /* there is nothing yet: that topic, or the store's tables, is missing */
	struct weir_config *config; /* NULL: a state directory was named, and no configuration */
	const char *state_path;     /* NULL: a cluster */
	char state_default[WEIR_PATH_BYTES];
	struct weir_log log;
	struct state_directory state;
	struct weir_store *store;
	bool missing[WEIR_TOPIC_COUNT]; /* REALM_ALL: topics of a cluster that are not there */
	struct weir_bus *bus;           /* NULL where it is not opened; of REALM_RUNNING never */
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
WEIR_MUST_USE enum weir_status realm_open(struct realm *realm, const char *command, const char *config_path,
                                          const char *state_path, enum realm_need need, struct weir_error *error);
void realm_close(struct realm *realm);

/** How many partitions there are. */
WEIR_MUST_USE enum weir_status realm_partitions(const struct realm *realm, uint32_t *count, struct weir_error *error);

#endif
