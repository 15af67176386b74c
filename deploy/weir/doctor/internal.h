/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the checks of `weir doctor` share. Each subject is a file; doctor.c has the table of all checks, runs them on
 * threads of their own within one bound of time, and prints what they found.
 */
#ifndef DEPLOY_WEIR_DOCTOR_INTERNAL_H
#define DEPLOY_WEIR_DOCTOR_INTERNAL_H

#include "common/diagnosis/server_checks.h"
#include "common/files/durable_file.h"

enum { DOCTOR_ZONES_MOST = 64 };

/* What the checks work on. Written by one check each, and read by those of a later round. */
struct doctor {
	const char *path;         /* of the configuration */
	const char *state;        /* --state; NULL: none is named, or it is closed */
	const char *closed_state; /* of `weir run`: this user may not read it */
	char state_usual[WEIR_PATH_BYTES];
	/* --to, --to-file, --map, --zone: another gateway */
	const char *to, *to_file, *map;
	const char *zones[DOCTOR_ZONES_MOST];
	size_t zone_count;
	struct weir_config *config;
	bool cluster; /* else `weir run` on this machine */
	bool refused; /* the configuration cannot be run: of the check of it */
	/* of the brokers' and the store's checks; NULL: they cannot be asked */
	bool topics[WEIR_TOPIC_COUNT];
	struct weir_bus *bus;
	struct weir_store *store;
	bool store_writable;
	bool store_silent; /* it does not answer: a limiter that starts waits for it */
};

/** One subject: appends to check->findings. @thread its own */
typedef void doctor_check(struct doctor *doctor, const struct weir_check *check);

doctor_check doctor_check_configuration, doctor_check_brokers, doctor_check_store, doctor_check_limiters,
	doctor_check_archivers, doctor_check_state, doctor_check_sources, doctor_check_certificates, doctor_check_gateways,
	doctor_check_pages, doctor_check_disk, doctor_check_collectors;

/** The report: what is wrong first, then what is good. */
void doctor_words(struct weir_text *text, const struct weir_findings *findings, bool coloured);
void doctor_json(struct weir_text *text, const struct weir_findings *findings);

/** Those of the brokers, where they speak TLS. */
void doctor_check_broker_certificates(const struct weir_check *check);

/** Whether somebody listens there: NULL; else why not, in words. */
const char *doctor_reach(const char *host, unsigned port);

/** Calls for each HOST:PORT of a list; the host without brackets. */
void doctor_each_address(const char *list, void (*call)(void *context, const char *host, unsigned port), void *context);

#endif
