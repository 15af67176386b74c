/* SPDX-License-Identifier: Apache-2.0 */
/* One object of all threads, under a lock: a trouble of all of them is told once, and refusals are rare where all is well. */
#include "limiter/check/refusals.h"

#include "common/base/alloc.h"
#include "common/log/metrics.h"

#include <pthread.h>
#include <stdlib.h>

struct kind {
	struct weir_counter count;
	struct weir_fault fault;
	int64_t newest_ms; /* by the log's clock */
};

struct refusals {
	const struct weir_log *log;
	pthread_mutex_t lock; /* of all below; counts are read without it */
	struct kind kinds[REFUSAL_SURFACES][REFUSAL_REASONS];
};

static const char part[] = "checks";

static const char *const listeners[] = {
	[REFUSAL_RESP] = "listen.resp", [REFUSAL_HTTP] = "listen.check_http", [REFUSAL_GRPC] = "listen.grpc"};

struct refusals *refusals_new(const struct weir_log *log)
{
	struct refusals *refusals = weir_alloc(1, sizeof *refusals);
	refusals->log = log;
	pthread_mutex_init(&refusals->lock, NULL);
	return refusals;
}

void refusals_free(struct refusals *refusals)
{
	if (refusals == NULL)
		return;
	pthread_mutex_destroy(&refusals->lock);
	free(refusals);
}

static char small(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

void refusals_tell(struct refusals *refusals, enum refusal_surface surface, enum refusal_reason reason,
                   const struct link *link, const char *by, const char *what, const char *detail)
{
	char peer[WEIR_ADDRESS_TEXT_BYTES];
	if (refusals == NULL)
		return;
	link_peer(link, peer);
	pthread_mutex_lock(&refusals->lock);
	struct kind *kind = &refusals->kinds[surface][reason];
	weir_counter_add(&kind->count, 1);
	kind->newest_ms = weir_log_clock_ms(refusals->log);
	weir_fault_raise(
		&kind->fault, refusals->log, part,
		"%s refused a question of %s%s%s: %c%s%s%s. Nothing was counted, and whoever asked serves or refuses by "
		"his own configuration",
		listeners[surface], peer[0] != '\0' ? peer : "somebody", by != NULL ? " by " : "", by != NULL ? by : "",
		small(what[0]), what[0] != '\0' ? what + 1 : "", detail != NULL ? ": " : "", detail != NULL ? detail : "");
	pthread_mutex_unlock(&refusals->lock);
}

void refusals_tell_no_tls(struct refusals *refusals, enum refusal_surface surface, const struct link *link)
{
	if (link->without_tls)
		refusals_tell(refusals, surface, REFUSAL_PROTOCOL, link, NULL, "it speaks no TLS, and this port does",
		              "have it speak TLS, or set checks.tls to false");
}

void refusals_look(struct refusals *refusals)
{
	int64_t now_ms = weir_log_clock_ms(refusals->log);
	pthread_mutex_lock(&refusals->lock);
	for (int surface = 0; surface < REFUSAL_SURFACES; surface++)
		for (int reason = 0; reason < REFUSAL_REASONS; reason++) {
			struct kind *kind = &refusals->kinds[surface][reason];
			if (kind->fault.on && now_ms - kind->newest_ms >= REFUSALS_OVER_MS)
				weir_fault_over(&kind->fault, refusals->log, part,
				                "%s has refused no question for this reason (%s) for ten minutes", listeners[surface],
				                refusal_reason_name((enum refusal_reason)reason));
		}
	pthread_mutex_unlock(&refusals->lock);
}

const char *refusal_surface_name(enum refusal_surface surface)
{
	static const char *const names[] = {[REFUSAL_RESP] = "resp", [REFUSAL_HTTP] = "http", [REFUSAL_GRPC] = "grpc"};
	return names[surface];
}

const char *refusal_reason_name(enum refusal_reason reason)
{
	static const char *const names[] = {
		[REFUSAL_LOGIN] = "login",     [REFUSAL_RIGHTS] = "rights", [REFUSAL_PROTOCOL] = "protocol",
		[REFUSAL_SUBJECT] = "subject", [REFUSAL_CLIENT] = "client", [REFUSAL_UNKNOWN] = "unknown",
		[REFUSAL_ASKED] = "asked",
	};
	return names[reason];
}

uint64_t refusals_count(const struct refusals *refusals, enum refusal_surface surface, enum refusal_reason reason)
{
	return refusals != NULL ? weir_counter_read(&refusals->kinds[surface][reason].count) : 0;
}
