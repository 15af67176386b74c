/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every role needs of its servers, checked by looking: the brokers with their topics, the store, and whether what
 * is stored fits what the topics have. Nothing is written and nothing is created; each call is bounded in time.
 *
 * @thread each call works in the thread that makes it; two may run at the same time on findings of their own
 */
#ifndef WEIR_COMMON_SERVER_CHECKS_H
#define WEIR_COMMON_SERVER_CHECKS_H

#include "common/bus/bus.h"
#include "common/config/config.h"
#include "common/diagnosis/findings.h"
#include "common/store/store.h"

/* What a check works with. All borrowed. */
struct weir_check {
	const struct weir_config *config;
	const char *config_words; /* weir_config_words() */
	int64_t wait_ms;          /* for a server that does not answer */
	int64_t end_ms;           /* monotonic: what has not begun by then is left out, and said to be */
	const struct weir_log *log;
	struct weir_findings *findings;
};

/**
 * Brokers and topics.
 *
 * @param good  by topic: whether it is there, with the partitions that are configured
 * @param bus   returned, the caller closes; NULL: no broker answers, which is among the findings
 */
void weir_check_bus(const struct weir_check *check, const char *client, bool good[WEIR_TOPIC_COUNT],
                    struct weir_bus **bus);

/**
 * The store: whether it answers, has its tables and takes what a limiter writes, and an archiver where there is one; and
 * its clock against this machine's.
 *
 * @param store  returned, the caller closes; NULL: it cannot be read, which is among the findings
 * @return whether it answers, be it with a refusal: if not, a daemon that starts waits for it
 */
bool weir_check_store(const struct weir_check *check, bool limiter, bool archiver, struct weir_store **store);

/** What ends a failure of the store, by the server's number in its words. @param runbook  returned: the heading */
const char *weir_check_store_remedy(const char *words, const char **runbook);

/** Whether the store takes what these roles write. */
void weir_check_writes(const struct weir_check *check, struct weir_store *store, bool limiter, bool archiver);

/* What a role has stored of its partitions, held against a topic. Zero-initialise what nothing is known of. */
struct weir_check_positions {
	const char *role; /* "limiter" */
	enum weir_topic topic;
	uint32_t partitions;
	const bool *known;             /* by partition: whether `next` is */
	const uint64_t *next;          /* by partition: the first offset that is not stored as done */
	const struct weir_mark *marks; /* by partition: by which the topic is known again, as for weir_bus_verify() */
	/* returned */
	uint32_t stuck;    /* partitions that cannot go on */
	uint64_t behind;   /* messages that wait, over all partitions */
	int64_t oldest_ms; /* how long the oldest of them waits; -1: nothing waits, or it is not known */
	bool asked;        /* all partitions were */
};

/** Whether this machine's clock is behind the brokers'. @param bus  its topic of events is there */
void weir_check_bus_clock(const struct weir_check *check, struct weir_bus *bus);

/** Finds gaps and topics that were made anew. @param bus  its topic is there */
void weir_check_positions(const struct weir_check *check, struct weir_bus *bus, struct weir_check_positions *positions);

#endif
