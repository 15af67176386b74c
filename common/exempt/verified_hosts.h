/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which name an address has that leads back to it: asked of DNS by threads of its own, and remembered.
 *
 * Whoever has an address may give it any name, so a name counts only if DNS gives the address for it (forward-confirmed
 * reverse DNS). An answer is there some time after the first question; until then, and where there is none, an address has
 * no name. What a stranger can make it do is bounded: WEIR_VERIFIED_QUEUE_MAX addresses wait, a period lies between two, an
 * address takes WEIR_DNS_MOST_MS of one thread of several, and is asked for more and more rarely while that fails. A name that
 * no robot's hosts have is none. WEIR_VERIFIED_NAMES_MAX addresses are remembered.
 */
#ifndef WEIR_VERIFIED_HOSTS_H
#define WEIR_VERIFIED_HOSTS_H

#include "common/bytes/address.h"
#include "common/log/log.h"
#include "common/log/metrics.h"
#include "common/policy/policy.h"

enum {
	WEIR_VERIFIED_QUEUE_MAX = 1024,
	WEIR_VERIFIED_NAMES_MAX = 16384,
	WEIR_VERIFIED_POINTERS_MAX = 4, /* names of one address that are asked for */
	WEIR_VERIFIED_THREADS = 8,
};

struct weir_verified_hosts;

struct weir_verified_hosts_options {
	const char *resolver; /* "127.0.0.1:53", IPv4; NULL: the system's */
	int64_t period_ms;    /* between two addresses */
	int64_t known_ms;     /* until an address that has a name is asked for again; its name holds meanwhile */
	int64_t nameless_ms;  /* until one that has none is */
	int64_t failed_ms; /* until one is of which the servers said nothing, doubled each time; a name from before holds */
	int64_t patience_ms; /* for one answer of a server */
	const char *folder;  /* that keeps the names over a restart, made when there are some; NULL: none does */
	const struct weir_log *log;
};

enum {
	WEIR_VERIFIED_SAVE_MS = 60000,            /* between two times that names are written */
	WEIR_VERIFIED_KEPT_MS = 7 * 24 * 3600000, /* a name that was not confirmed for longer is not taken from there */
};

#define WEIR_VERIFIED_FILE "verified.json"

/** What a process uses. @param resolver, log  borrowed by the table that is made */
struct weir_verified_hosts_options weir_verified_hosts_usual(const char *resolver, const struct weir_log *log);

/** Makes a table, with the names that the folder keeps. The first question starts the thread. */
struct weir_verified_hosts *weir_verified_hosts_new(const struct weir_verified_hosts_options *options);
/** Writes the names, and waits for no answer. NULL is fine. */
void weir_verified_hosts_free(struct weir_verified_hosts *hosts);

/** Takes the names of a robot's hosts for names, from now on. @param hosts  may be NULL. @thread any */
void weir_verified_hosts_want(struct weir_verified_hosts *hosts, const struct weir_verified *verified);

/**
 * Whether an address has a name that the robot's hosts have, as far as is known. An address that is not known is asked for.
 *
 * @param hosts  NULL: nothing is known, and nothing is asked
 * @thread any
 */
bool weir_verified_hosts_has(struct weir_verified_hosts *hosts, const struct weir_address *address,
                             const struct weir_verified *verified);

extern const struct weir_metric_table weir_verified_hosts_metric_table;

/** Appends its metrics. @param hosts  NULL: nothing is asked @thread any */
void weir_verified_hosts_metrics(struct weir_verified_hosts *hosts, struct weir_text *page);

#endif
