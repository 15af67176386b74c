/* SPDX-License-Identifier: Apache-2.0 */
/* Checks in the daemon and in `weir run`: where they are asked, and what is shown of them. */
#ifndef LIMITER_LIMITER_CHECKS_H
#define LIMITER_LIMITER_CHECKS_H

#include "common/exempt/exempt_list.h"
#include "limiter/daemon/limiter_metrics.h"
#include "limiter/lane/policy_registry.h"

struct limiter_checks;

/* Of a process that is one of several: how it learns of the others. */
struct limiter_checks_cluster {
	uint32_t partitions;
	/** Opens a store, for a thread of its own. */
	enum weir_status (*open)(void *context, struct weir_store **store, struct weir_error *error);
	void *context;
	struct policy_registry *registry; /* whoever has no partition learns of policies by the store alone */
	const char *state; /* the folder where copies of other servers' lists are kept, and names of robots */
};

extern const struct weir_metric_table limiter_checks_metric_table;

/**
 * What a start would refuse of `checks`, whatever protocols are spoken. Nothing is opened.
 *
 * @return WEIR_OK; WEIR_INVALID: error says where and why
 */
WEIR_MUST_USE enum weir_status limiter_checks_check(const struct weir_config *config, struct weir_error *error);

/** The same of its secrets and certificate, which are read, if checks are taken at all. */
WEIR_MUST_USE enum weir_status limiter_checks_check_secrets(const struct weir_config *config, struct weir_error *error);

/* Of listen.certificate, listen.client_ca, and limiter_checks_doubt(). */
#define LIMITER_CHECKS_DOUBT                                                                                         \
	"limiters show each other %s, and would refuse it as a client's by %s: %s. Checks of keys that another limiter " \
	"has would be unavailable"

/** Why limiters that ask for a client's certificate would refuse one another's; NULL: they would not, or do not ask. */
const char *limiter_checks_doubt(const struct weir_config *config);

/**
 * Prepares the surfaces of a process's workers, as `listen` and `checks` say. Each is opened as its worker is made.
 *
 * @param config   borrowed
 * @param lists    of `exempt`, borrowed while they live; NULL: this fetches those that other servers have and verifies robots,
 *                 in a cluster
 * @param threads  workers
 * @param cluster  NULL: this process has all partitions
 * @param checks   returned: limiter_checks_free(); NULL: none is configured
 * @return WEIR_OK; WEIR_INVALID: a setting cannot be used, such as a certificate; WEIR_IO
 */
WEIR_MUST_USE enum weir_status limiter_checks_new(const struct weir_config *config, struct weir_exempt_lists *lists,
                                                  uint32_t threads, const struct limiter_checks_cluster *cluster,
                                                  const struct weir_log *log, struct limiter_checks **checks,
                                                  struct weir_error *error);
/** The workers are there: tells others what they take, and learns what others have. NULL is fine. */
WEIR_MUST_USE enum weir_status limiter_checks_start(struct limiter_checks *checks, struct weir_error *error);
/** The workers have ended: ends what asks other limiters. NULL is fine. */
void limiter_checks_stop(struct limiter_checks *checks);
/** Called when the workers are freed. NULL is fine. */
void limiter_checks_free(struct limiter_checks *checks);

/** For worker_options. NULL of NULL. */
const struct worker_checks *limiter_checks_options(const struct limiter_checks *checks);

/**
 * Now and then: takes up certificates that have changed, and has the lists fetched, and read anew, that a policy names. NULL
 * is fine.
 *
 * @param newest  NULL: there is none, or another part of the process fetches and reads its lists
 */
void limiter_checks_look(struct limiter_checks *checks, const struct weir_policy *newest);

/** The port of listen.resp; 0: none. */
uint16_t limiter_checks_port(const struct limiter_checks *checks);

/** Appends the metrics of checks, while the workers are there. @param checks  NULL: none were asked @thread any */
void limiter_checks_metrics(const struct limiter_checks *checks, const struct limiter_parts *parts,
                            struct weir_text *page);

/** Appends the metrics of lists and robots, of a process whose other parts have none. @param checks  NULL: none were asked @thread any */
void limiter_checks_lists_metrics(const struct limiter_checks *checks, struct weir_text *page);

#endif
