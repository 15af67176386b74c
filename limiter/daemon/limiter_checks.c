/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each worker listens at listen.resp by a socket of its own, between which the
 * kernel divides connections. A connection stays with its worker, and asks for keys
 * of any.
 */
#include "limiter/daemon/limiter_checks.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/daemon/daemon.h"
#include "common/http/tls_stream.h"
#include "limiter/check/resp/resp_server.h"
#include "limiter/worker/mail.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_MS = 1000 };

enum {
	CHECKS,
	ANSWERS,
	UNAVAILABLE,
	SECONDS,
	PENDING,
	UNACKNOWLEDGED,
	CONNECTIONS,
	ACCEPTED,
	REFUSED,
	LOGINS,
	ERRORS,
	STALLED,
	BUFFERED,
	COMMANDS,
	METRIC_COUNT,
};

static const struct weir_metric metrics[METRIC_COUNT] = {
	[CHECKS] =
		{"weir_checks_total", WEIR_COUNTER, "checks",
         WEIR_LABELS({"zone", "the zone's name, or (other) beyond 1,024"},
                     {"surface", "the protocol that it was asked by: resp"},
                     {"answer", "passed, blocked, settled, unavailable or refused"}),
         "What callers were told, by zone. `refused`: to settle a reservation that is not open, or in a zone that was "
         "removed meanwhile."},
	[ANSWERS] =
		{"weir_check_answers_total", WEIR_COUNTER, "checks",
         WEIR_LABELS({"answer", "`passed`, `blocked`, `settled`, `no_zone`, `no_reservation`, `unavailable`"}),
         "Checks answered. Those that passed or were blocked are among weir_limiter_verdicts_total, too, once they "
         "come back from the log."},
	[UNAVAILABLE] =
		{"weir_check_unavailable_total", WEIR_COUNTER, "checks",
         WEIR_LABELS({"reason", "`loading`, `moving`, `full`, `unacknowledged`, `not the owner`, `late`"}),
         "Checks that could not be judged: checks.on_unavailable says what they were told. If `full` or "
         "`unacknowledged` grow, the log is slow or away. Nothing was counted, unless they were `late` or `unacknowledged`."},
	[SECONDS] =
		{"weir_check_seconds", WEIR_HISTOGRAM, "seconds", WEIR_NO_LABELS,
         "Time from reading a check until it is answered; of a durable one, until the log has acknowledged it."},
	[PENDING] = {"weir_check_pending", WEIR_GAUGE, "checks", WEIR_NO_LABELS,
                 "Checks that were answered and have not come back from the log yet."},
	[UNACKNOWLEDGED] =
		{"weir_check_unacknowledged", WEIR_GAUGE, "checks", WEIR_NO_LABELS,
         "Checks that the log has not acknowledged. What a crash now would forget is among them, so at most as many more "
         "pass than the limits say. Durable ones are not answered before, and so forget nothing."},
	[CONNECTIONS] = {"weir_check_connections", WEIR_GAUGE, "connections", WEIR_NO_LABELS,
                     "Open connections of clients."},
	[ACCEPTED] = {"weir_check_connections_total", WEIR_COUNTER, "connections", WEIR_NO_LABELS,
                  "Connections that were taken."},
	[REFUSED] = {"weir_check_refused_connections_total", WEIR_COUNTER, "connections", WEIR_NO_LABELS,
                 "Connections beyond checks.connections, which were closed at once."},
	[LOGINS] = {"weir_check_failed_logins_total", WEIR_COUNTER, "logins", WEIR_NO_LABELS, "Wrong passwords."},
	[ERRORS] = {"weir_check_protocol_errors_total", WEIR_COUNTER, "connections", WEIR_NO_LABELS,
                "Connections closed because what came was not Redis' protocol, or too large."},
	[STALLED] = {"weir_check_stalled_connections_total", WEIR_COUNTER, "connections", WEIR_NO_LABELS,
                 "Connections closed because a command did not end, or a reply was not read."},
	[BUFFERED] = {"weir_check_buffered_bytes", WEIR_GAUGE, "bytes", WEIR_NO_LABELS,
                  "Memory for what connections have sent or not read yet."},
	[COMMANDS] = {"weir_check_commands_total", WEIR_COUNTER, "commands",
                  WEIR_LABELS({"command", "the command's name in lower case, or (unknown)"}),
                  "Commands that clients sent."},
};

const struct weir_metric_table limiter_checks_metric_table = {metrics, METRIC_COUNT};

struct limiter_checks {
	const struct weir_config *config;
	const struct weir_log *log;
	struct worker_checks options;
	struct weir_http_tls_server *tls; /* NULL: plain */
	int64_t look_ms;                  /* monotonic: when its files are looked at next */
	char *password;                   /* NULL: none is asked for */
	struct resp_user user;
	uint16_t port; /* that the first worker listens on; the others follow it */
	uint32_t surface_count;
	struct resp_server **surfaces; /* by worker; each is its worker's */
};

/* ---- one worker's surface ---- */

static void serve(void *context)
{
	resp_server_turn(context, 0);
}

static void answered(void *context, const struct check_answer *answer)
{
	resp_server_answered(context, answer);
}

static void stop(void *context)
{
	resp_server_stop(context);
}

static void free_server(void *context)
{
	resp_server_free(context);
}

static enum weir_status listen_at(struct limiter_checks *checks, struct resp_server *server, struct weir_error *error)
{
	const struct weir_config *config = checks->config;
	uint16_t wanted = checks->port != 0 ? checks->port : config->listen.resp_port, bound = 0;
	enum weir_status status = resp_server_listen(server, config->listen.resp_host, wanted, checks->surface_count > 1,
	                                             checks->tls, &bound, error);
	if (status != WEIR_OK)
		return status;
	if (checks->port == 0)
		weir_log(checks->log, WEIR_LOG_INFO, "checks", "listening on %s port %u%s", config->listen.resp_host, bound,
		         checks->tls != NULL ? ", by TLS" : "");
	checks->port = bound;
	return WEIR_OK;
}

static enum weir_status open_surface(void *context, uint32_t worker, const struct check_judge *judge,
                                     struct check_surface *surface, struct weir_error *error)
{
	static const enum resp_unavailable unavailable[] = {
		[WEIR_ON_UNAVAILABLE_ERROR] = RESP_UNAVAILABLE_ERROR,
		[WEIR_ON_UNAVAILABLE_ALLOW] = RESP_UNAVAILABLE_ALLOW,
		[WEIR_ON_UNAVAILABLE_DENY] = RESP_UNAVAILABLE_DENY,
	};
	struct limiter_checks *checks = context;
	struct resp_options options = {
		.judge = *judge,
		.users = checks->password != NULL ? &checks->user : NULL,
		.user_count = checks->password != NULL ? 1 : 0,
		.connections = (uint32_t)checks->config->checks.connections,
		.on_unavailable = unavailable[checks->config->checks.on_unavailable],
		.durable = checks->config->checks.durable,
	};
	struct resp_server *server = checks->surfaces[worker] = resp_server_new(&options);
	*surface = (struct check_surface){.context = server,
	                                  .descriptor = resp_server_descriptor(server),
	                                  .serve = serve,
	                                  .answered = answered,
	                                  .stop = stop,
	                                  .free = free_server};
	return listen_at(checks, server, error);
}

/* ---- all of them ---- */

static enum weir_status read_secrets(struct limiter_checks *checks, struct weir_error *error)
{
	const struct weir_config *config = checks->config;
	enum weir_status status = WEIR_OK;
	if (config->checks.password.value != NULL)
		status = weir_json_secret(&config->checks.password, &checks->password, error);
	checks->user = (struct resp_user){.name = "default", .password = checks->password};
	if (status == WEIR_OK && config->checks.tls) {
		const struct weir_http_tls files = weir_daemon_tls(config);
		status = weir_http_tls_open(&files, checks->log, &checks->tls, error);
	}
	return status;
}

enum weir_status limiter_checks_new(const struct weir_config *config, uint32_t threads, const struct weir_log *log,
                                    struct limiter_checks **out, struct weir_error *error)
{
	*out = NULL;
	if (config->listen.resp_host == NULL)
		return WEIR_OK;
	struct limiter_checks *checks = weir_alloc(1, sizeof *checks);
	checks->config = config;
	checks->log = log;
	checks->surface_count = threads;
	checks->surfaces = weir_alloc(threads, sizeof(struct resp_server *));
	checks->options =
		(struct worker_checks){.mail = mail_new(threads), .threads = threads, .open = open_surface, .context = checks};
	enum weir_status status = checks->options.mail != NULL
	                              ? read_secrets(checks, error)
	                              : weir_fail(error, WEIR_IO, "cannot make an eventfd: %s", strerror(errno));
	if (status == WEIR_OK)
		*out = checks;
	else
		limiter_checks_free(checks);
	return status;
}

void limiter_checks_free(struct limiter_checks *checks)
{
	if (checks == NULL)
		return;
	mail_free(checks->options.mail);
	weir_http_tls_close(checks->tls);
	free(checks->password);
	free(checks->surfaces);
	free(checks);
}

const struct worker_checks *limiter_checks_options(const struct limiter_checks *checks)
{
	return checks != NULL ? &checks->options : NULL;
}

uint16_t limiter_checks_port(const struct limiter_checks *checks)
{
	return checks != NULL ? checks->port : 0;
}

void limiter_checks_look(struct limiter_checks *checks)
{
	int64_t now_ms = weir_monotonic_ms();
	if (checks == NULL || checks->tls == NULL || now_ms < checks->look_ms)
		return;
	checks->look_ms = now_ms + LOOK_MS;
	weir_http_tls_look(checks->tls);
}

/* ---- metrics ---- */

/* A figure of all surfaces together. */
static uint64_t figure(const struct limiter_checks *checks, size_t member)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; checks != NULL && i < checks->surface_count; i++) {
		const char *figures = (const char *)resp_server_figures(checks->surfaces[i]);
		sum += weir_counter_read((const struct weir_counter *)(const void *)(figures + member));
	}
	return sum;
}

#define FIGURE(checks, member) figure(checks, offsetof(struct resp_figures, member))
#define SUM(parts, member) limiter_sum(parts, offsetof(struct worker_stats, member))

static void answer_metrics(const struct limiter_parts *parts, struct weir_text *page)
{
	uint64_t unavailable[WORKER_UNAVAILABLE_COUNT], all = 0;
	for (int reason = 0; reason < WORKER_UNAVAILABLE_COUNT; reason++) {
		size_t member =
			offsetof(struct worker_stats, checks_unavailable) + (size_t)reason * sizeof(struct weir_counter);
		all += unavailable[reason] = limiter_sum(parts, member);
	}
	const struct {
		const char *name;
		uint64_t count;
	} answers[] = {{"passed", SUM(parts, checks_passed)},
	               {"blocked", SUM(parts, checks_blocked)},
	               {"settled", SUM(parts, checks_settled)},
	               {"no_zone", SUM(parts, checks_no_zone)},
	               {"no_reservation", SUM(parts, checks_no_reservation)},
	               {"unavailable", all}};
	weir_metrics_family(page, &metrics[ANSWERS]);
	for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
		struct weir_span name = weir_span_of(answers[i].name);
		weir_metrics_uint(page, &metrics[ANSWERS], &name, answers[i].count);
	}
	weir_metrics_family(page, &metrics[UNAVAILABLE]);
	for (int reason = 0; reason < WORKER_UNAVAILABLE_COUNT; reason++) {
		struct weir_span name = weir_span_of(worker_unavailable_name((enum worker_unavailable)reason));
		weir_metrics_uint(page, &metrics[UNAVAILABLE], &name, unavailable[reason]);
	}
}

/* One sample of all surfaces. */
static void zone_metrics(struct weir_text *page, const char *zone, const uint64_t sums[CHECK_COUNTED_MAX])
{
	for (int i = 0; i < CHECK_COUNTED_MAX; i++) {
		const struct weir_span labels[] = {weir_span_of(zone), weir_span_of("resp"),
		                                   weir_span_of(check_counted_name((enum check_counted)i))};
		if (sums[i] > 0)
			weir_metrics_uint(page, &metrics[CHECKS], labels, sums[i]);
	}
}

/* Adds what another surface has of a zone, under whatever number. */
static void add_zone(const struct check_counts *counts, const char *zone, uint64_t sums[CHECK_COUNTED_MAX])
{
	uint64_t answers[CHECK_COUNTED_MAX];
	const char *name;
	for (uint32_t number = 0; number <= CHECK_COUNTED_OTHER; number++) {
		bool same = check_counts_read(counts, number, &name, answers) && strcmp(name, zone) == 0;
		for (int i = 0; same && i < CHECK_COUNTED_MAX; i++)
			sums[i] += answers[i];
	}
}

/* Whether one of the surfaces before it has the zone: then that one's turn has counted it. */
static bool is_counted(const struct limiter_checks *checks, uint32_t before, const char *zone)
{
	uint64_t answers[CHECK_COUNTED_MAX];
	const char *name;
	for (uint32_t i = 0; i < before; i++)
		for (uint32_t number = 0; number <= CHECK_COUNTED_OTHER; number++)
			if (check_counts_read(resp_server_counts(checks->surfaces[i]), number, &name, answers) &&
			    strcmp(name, zone) == 0)
				return true;
	return false;
}

static void zones_metrics(const struct limiter_checks *checks, struct weir_text *page)
{
	uint64_t answers[CHECK_COUNTED_MAX];
	const char *name;
	weir_metrics_family(page, &metrics[CHECKS]);
	for (uint32_t i = 0; checks != NULL && i < checks->surface_count; i++)
		for (uint32_t number = 0; number <= CHECK_COUNTED_OTHER; number++) {
			if (!check_counts_read(resp_server_counts(checks->surfaces[i]), number, &name, answers) ||
			    is_counted(checks, i, name))
				continue;
			for (uint32_t j = i + 1; j < checks->surface_count; j++)
				add_zone(resp_server_counts(checks->surfaces[j]), name, answers);
			zone_metrics(page, name, answers);
		}
}

static void command_metrics(const struct limiter_checks *checks, struct weir_text *page)
{
	const struct weir_span unknown = weir_span_of("(unknown)");
	weir_metrics_family(page, &metrics[COMMANDS]);
	for (uint32_t i = 0; i < RESP_COMMANDS_MAX && resp_command_name(i) != NULL; i++) {
		struct weir_span name = weir_span_of(resp_command_name(i));
		uint64_t count = figure(checks, offsetof(struct resp_figures, commands) + i * sizeof(struct weir_counter));
		weir_metrics_uint(page, &metrics[COMMANDS], &name, count);
	}
	weir_metrics_uint(page, &metrics[COMMANDS], &unknown, FIGURE(checks, unknown_commands));
}

void limiter_checks_metrics(const struct limiter_checks *checks, const struct limiter_parts *parts,
                            struct weir_text *page)
{
	zones_metrics(checks, page);
	answer_metrics(parts, page);
	limiter_histogram(parts, page, &metrics[SECONDS], &weir_latency_scale, offsetof(struct worker_stats, check));
	weir_metrics_gauge(page, &metrics[PENDING], (double)SUM(parts, checks_pending));
	weir_metrics_gauge(page, &metrics[UNACKNOWLEDGED], (double)SUM(parts, checks_unacknowledged));
	weir_metrics_gauge(page, &metrics[CONNECTIONS], (double)FIGURE(checks, connections));
	weir_metrics_counter(page, &metrics[ACCEPTED], FIGURE(checks, accepted));
	weir_metrics_counter(page, &metrics[REFUSED], FIGURE(checks, refused));
	weir_metrics_counter(page, &metrics[LOGINS], FIGURE(checks, failed_logins));
	weir_metrics_counter(page, &metrics[ERRORS], FIGURE(checks, protocol_errors));
	weir_metrics_counter(page, &metrics[STALLED], FIGURE(checks, stalled));
	weir_metrics_gauge(page, &metrics[BUFFERED], (double)FIGURE(checks, buffered_bytes));
	command_metrics(checks, page);
}
