/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each worker listens at listen.resp, listen.check_http and listen.grpc by sockets of its
 * own, between which the kernel divides connections. A connection stays with its worker, and
 * asks for keys of any.
 */
#include "limiter/daemon/limiter_checks.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/daemon/daemon.h"
#include "common/http/listen_socket.h"
#include "common/http/tls_stream.h"
#include "common/tls/certificate.h"
#include "limiter/check/grpc/grpc_server.h"
#include "limiter/check/http/check_http.h"
#include "limiter/check/link_server.h"
#include "limiter/check/refusals.h"
#include "limiter/check/request/check_request.h"
#include "limiter/check/resp/resp_server.h"
#include "limiter/checkpoint/checkpoint_io.h"
#include "limiter/daemon/checks_by_zone.h"
#include "limiter/daemon/checks_lists.h"
#include "limiter/daemon/checks_servers.h"
#include "limiter/forward/forward.h"
#include "limiter/owners/owners_feed.h"
#include "limiter/worker/mail.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
	QUESTIONS,
	STALLED,
	BUFFERED,
	COMMANDS,
	REDIRECTED,
	FORWARDED,
	UNANSWERED,
	LINKS,
	LINK_FAILURES,
	CALLS,
	LATE,
	REQUESTS,
	METRIC_COUNT,
};

static const struct weir_metric metrics[METRIC_COUNT] = {
	[CHECKS] =
		{"weir_checks_total", WEIR_COUNTER, "checks",
         WEIR_LABELS({"zone", "the zone's name, or (other) beyond 1,024"},
                     {"surface", "how it was asked: resp, http or grpc"},
                     {"answer", "passed, blocked, settled, unavailable or refused"}),
         "What callers were told, by zone. Refused: to settle a reservation that is not open, or in a zone that was "
         "removed meanwhile."},
	[ANSWERS] = {"weir_check_answers_total", WEIR_COUNTER, "checks",
                 WEIR_LABELS({"answer", "`passed`, `blocked`, `settled`, `no_zone`, `no_reservation`, `unavailable`"}),
                 "Checks judged. Keys that are exempt are not among them. Those that passed or were blocked are among "
                 "weir_limiter_verdicts_total, too, once they come back from the log."},
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
                 "Connections beyond checks.connections, which were told so, but not over TLS, and closed."},
	[LOGINS] = {"weir_check_failed_logins_total", WEIR_COUNTER, "logins", WEIR_NO_LABELS, "Wrong passwords."},
	[ERRORS] =
		{"weir_check_protocol_errors_total", WEIR_COUNTER, "errors", WEIR_NO_LABELS,
         "Connections closed, and frames of HTTP/2 refused, because what came was not of the protocol, or too large."},
	[QUESTIONS] =
		{"weir_check_refused_total", WEIR_COUNTER, "questions",
         WEIR_LABELS({"surface", "`resp`, `http`, `grpc`"},
                     {"reason", "`login`, `rights`, `protocol`, `subject`, `client`, `unknown`, `asked`"}),
         "Questions that were refused, and not counted: the password is wrong or missing; the user may not ask in the zone; "
         "what came is not of the protocol, or too large; a gateway does not say what its client asks for, or who that is; no "
         "such path, method or command; no such zone or key, or no text of checks. The log says who asked."},
	[STALLED] =
		{"weir_check_stalled_connections_total", WEIR_COUNTER, "connections", WEIR_NO_LABELS,
         "Connections and calls that were ended because a command or request did not end, a reply was not read, or the password "
         "was not shown."},
	[BUFFERED] = {"weir_check_buffered_bytes", WEIR_GAUGE, "bytes", WEIR_NO_LABELS,
                  "Memory for what connections have sent or not read yet, and for the buckets of their quotas."},
	[COMMANDS] = {"weir_check_commands_total", WEIR_COUNTER, "commands",
                  WEIR_LABELS({"command", "the command's name in lower case, or (unknown)"}),
                  "Commands that clients sent."},
	[REDIRECTED] = {"weir_check_redirected_total", WEIR_COUNTER, "checks", WEIR_NO_LABELS,
                    "Checks answered with MOVED, as checks.redirect is set and another limiter has the key."},
	[FORWARDED] = {"weir_check_forwarded_total", WEIR_COUNTER, "checks", WEIR_NO_LABELS,
                   "Checks passed on to the limiter that has the key, which counts their answers."},
	[UNANSWERED] = {"weir_check_forward_unanswered_total", WEIR_COUNTER, "checks", WEIR_NO_LABELS,
                    "Those that it did not answer: the connection broke, or there was none. They are among "
                    "weir_check_unavailable_total, unless nobody waited for them any more."},
	[LINKS] = {"weir_check_links", WEIR_GAUGE, "connections", WEIR_NO_LABELS,
               "Connections to other limiters, by which checks are passed on."},
	[LINK_FAILURES] = {"weir_check_link_failures_total", WEIR_COUNTER, "failures", WEIR_NO_LABELS,
                       "Such connections that broke, did not answer in time, or could not be made. The log says why."},
	[CALLS] = {"weir_check_calls_total", WEIR_COUNTER, "calls",
               WEIR_LABELS({"method", "the service and the method, RateLimitService/ShouldRateLimit, or (unknown)"}),
               "Calls by gRPC."},
	[LATE] = {"weir_check_late_calls_total", WEIR_COUNTER, "calls", WEIR_NO_LABELS,
              "Calls by gRPC that were not answered within the time that their caller gave (grpc-timeout). What they "
              "asked was counted."},
	[REQUESTS] = {"weir_check_requests_total", WEIR_COUNTER, "requests",
                  WEIR_LABELS({"path", "`/v1/nginx`, `/v1/forwarded`, `/v1/envoy`, `/v1/check`, `(unknown)`"}),
                  "Requests by HTTP."},
};

const struct weir_metric_table limiter_checks_metric_table = {metrics, METRIC_COUNT};

struct limiter_checks {
	const struct weir_config *config;
	const struct weir_log *log;
	struct worker_checks options;
	struct limiter_checks_cluster cluster; /* open NULL: this process is alone */
	struct refusals *refusals;
	struct owners *owners; /* NULL likewise, as what follows */
	struct forward *forward;
	struct owners_feed *feed;
	struct weir_http_tls_server *tls; /* NULL: plain */
	int64_t look_ms;                  /* monotonic: when its files are looked at next */
	char *password;                   /* NULL: none is asked for */
	struct resp_users users;          /* of listen.resp; none: whoever connects may ask */
	uint32_t threads;
	struct checks_servers *servers;
	struct checks_lists *lists;             /* own, where the process has none */
	struct weir_exempt_lists *exempt_lists; /* these, or the process'; borrowed */
};

static enum weir_status open_surface(void *context, uint32_t worker, const struct check_judge *judge,
                                     struct check_surface *surface, struct weir_error *error)
{
	const struct limiter_checks *checks = context;
	return checks_servers_open(checks->servers, worker, judge, surface, error);
}

static void surface_opened(void *context, uint32_t worker)
{
	const struct limiter_checks *checks = context;
	checks_servers_opened(checks->servers, worker);
}

/* @param password  set: NULL: there is none; the caller's, also on failure, as `users` is */
static enum weir_status read_logins(const struct weir_config *config, char **password, struct resp_users *users,
                                    struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	if (config->checks.password.value != NULL)
		status = weir_json_password(&config->checks.password, password, error);
	return status == WEIR_OK ? resp_users_open(*password, &config->checks.users, users, error) : status;
}

static enum weir_status read_secrets(struct limiter_checks *checks, struct weir_error *error)
{
	const struct weir_config *config = checks->config;
	enum weir_status status = read_logins(config, &checks->password, &checks->users, error);
	if (status == WEIR_OK && config->checks.tls) {
		const struct weir_http_tls files = weir_daemon_tls(config);
		status = weir_http_tls_open(&files, checks->log, &checks->tls, error);
	}
	return status;
}

/*
 * Threads share an address, and so would another process of this user: each would let as many pass as the limit says.
 * So all addresses are tried first by sockets that share nothing, which also tells of two surfaces at one.
 */
static enum weir_status try_addresses(const struct weir_config *config, struct weir_error *error)
{
	struct weir_config_place places[WEIR_CONFIG_PLACES];
	int fds[WEIR_CONFIG_PLACES], count = 0;
	enum weir_status status = WEIR_OK;
	weir_config_places(config, places);
	for (size_t i = WEIR_CONFIG_CHECKS_FIRST; i < WEIR_CONFIG_PLACES && status == WEIR_OK; i++) {
		struct weir_error why;
		uint16_t bound;
		if (places[i].host == NULL || places[i].port == 0)
			continue;
		status = weir_listen_socket(places[i].host, places[i].port, false, &fds[count], &bound, &why);
		if (status == WEIR_OK)
			count++;
		else
			(void)weir_fail(error, status, "listen.%s: %s", places[i].setting, why.text);
	}
	while (count > 0)
		close(fds[--count]);
	return status;
}

/* Where others reach this process: as advertised, else where it listens. */
static enum weir_status make_owners(struct limiter_checks *checks, struct weir_error *error)
{
	const struct weir_config *config = checks->config;
	const char *host = config->checks.advertise_host;
	uint16_t port = config->checks.advertise_port;
	char name[HOST_NAME_MAX + 1] = "";
	if (host == NULL) { /* a cluster's configuration has both */
		host = config->listen.resp_host;
		port = config->listen.resp_port;
	}
	if (strcmp(host, "*") == 0 || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0) {
		(void)gethostname(name, sizeof name - 1);
		host = name;
	}
	if (*host == '\0' || strlen(host) >= OWNERS_HOST_BYTES)
		return weir_fail(error, WEIR_INVALID, "checks.advertise is needed: this machine's name is of no use");
	checks->owners = owners_new(checks->cluster.partitions, host, port);
	return WEIR_OK;
}

const char *limiter_checks_doubt(const struct weir_config *config)
{
	const struct weir_config_tls *tls = &config->listen.tls;
	if (config->bus.type == WEIR_BUS_LOCAL || config->listen.resp == NULL || !config->checks.tls ||
	    tls->client_ca == NULL)
		return NULL;
	return weir_certificate_refused(tls->certificate, tls->client_ca);
}

static enum weir_status join_cluster(struct limiter_checks *checks, struct weir_error *error)
{
	enum weir_status status = make_owners(checks, error);
	if (status != WEIR_OK)
		return status;
	const char *doubt = limiter_checks_doubt(checks->config);
	if (doubt != NULL)
		weir_log(checks->log, WEIR_LOG_WARNING, "checks", LIMITER_CHECKS_DOUBT, checks->config->listen.tls.certificate,
		         checks->config->listen.tls.client_ca, doubt);
	const struct forward_options options = {
		.owners = checks->owners,
		.mail = checks->options.mail,
		.first_inbox = checks->threads,
		.password = checks->password,
		.tls = checks->config->checks.tls,
		.ca = checks->config->checks.ca,
		.certificate = checks->config->listen.tls.certificate,
		.key = checks->config->listen.tls.key,
		.log = checks->log,
	};
	checks->options.owners = checks->owners;
	checks->forward = forward_new(&options);
	return WEIR_OK;
}

static void found(void *context, uint32_t place)
{
	forward_reach(context, place);
}

/* Which zones a request is in, and whether there is one of a name, is decided here: a partition's log tells its owner alone. */
static enum weir_status read_policies(void *context, struct weir_store *store, struct weir_error *error)
{
	const struct limiter_checks *checks = context;
	enum weir_status status = checkpoint_read_policies(store, checks->cluster.registry, error);
	return status == WEIR_IO ? status : WEIR_OK; /* one that cannot be read is told of where a partition needs it */
}

enum weir_status limiter_checks_start(struct limiter_checks *checks, struct weir_error *error)
{
	if (checks == NULL || checks->owners == NULL)
		return WEIR_OK;
	const struct owners_feed_options options = {
		.owners = checks->owners,
		.open = checks->cluster.open,
		.open_context = checks->cluster.context,
		.found = found,
		.found_context = checks->forward,
		.look = read_policies,
		.look_context = checks,
		.log = checks->log,
	};
	return owners_feed_start(&options, &checks->feed, error);
}

void limiter_checks_stop(struct limiter_checks *checks)
{
	if (checks == NULL)
		return;
	owners_feed_stop(checks->feed);
	checks->feed = NULL;
	forward_stop(checks->forward); /* a page may still show its figures */
}

enum weir_status limiter_checks_check(const struct weir_config *config, struct weir_error *error)
{
	const struct check_request_options options = {.client_ip = config->checks.client_ip};
	struct check_request *request;
	enum weir_status status = check_request_new(&options, &request, error);
	if (status == WEIR_OK)
		check_request_free(request);
	if (status == WEIR_OK)
		status = resp_users_check(&config->checks.users, error);
	if (status == WEIR_OK && weir_json_exists(&config->checks.users) && config->checks.password.value == NULL &&
	    config->bus.type == WEIR_BUS_KAFKA)
		status =
			weir_json_fail(&config->checks.users, error, "needs checks.password, by which limiters ask each other");
	return status;
}

enum weir_status limiter_checks_check_secrets(const struct weir_config *config, struct weir_error *error)
{
	if (!weir_config_takes_checks(config))
		return WEIR_OK;
	char *password = NULL;
	struct resp_users users = {0};
	struct weir_text doubts = {0};
	const struct weir_http_tls files = weir_daemon_tls(config);
	enum weir_status status = read_logins(config, &password, &users, error);
	if (status == WEIR_OK && config->checks.tls)
		status = weir_http_tls_check(&files, &doubts, error);
	weir_text_deinit(&doubts);
	resp_users_deinit(&users);
	free(password);
	return status;
}

static void make_servers(struct limiter_checks *checks)
{
	const struct checks_servers_options options = {
		.config = checks->config,
		.threads = checks->threads,
		.lists = checks->exempt_lists,
		.refusals = checks->refusals,
		.tls = checks->tls,
		.password = checks->password,
		.users = &checks->users,
		.owners = checks->owners,
		.log = checks->log,
	};
	checks->servers = checks_servers_new(&options);
}

enum weir_status limiter_checks_new(const struct weir_config *config, struct weir_exempt_lists *lists, uint32_t threads,
                                    const struct limiter_checks_cluster *cluster, const struct weir_log *log,
                                    struct limiter_checks **out, struct weir_error *error)
{
	*out = NULL;
	enum weir_status status = limiter_checks_check(config, error);
	if (status != WEIR_OK || !weir_config_takes_checks(config))
		return status;
	struct limiter_checks *checks = weir_alloc(1, sizeof *checks);
	checks->config = config;
	checks->log = log;
	checks->refusals = refusals_new(log);
	checks->threads = threads;
	if (cluster != NULL)
		checks->cluster = *cluster;
	uint32_t inboxes = threads + (cluster != NULL ? OWNERS_INBOXES : 0);
	if (lists == NULL) {
		checks->lists = checks_lists_new(config, checks->cluster.state, log);
		lists = checks_lists_get(checks->lists);
	}
	checks->exempt_lists = lists;
	checks->options = (struct worker_checks){.mail = mail_new(inboxes),
	                                         .threads = threads,
	                                         .open = open_surface,
	                                         .opened = surface_opened,
	                                         .context = checks};
	status = checks->options.mail != NULL
	             ? read_secrets(checks, error)
	             : weir_fail(error, WEIR_IO, "cannot make an eventfd: %s", weir_errno_words(errno));
	if (status == WEIR_OK)
		status = try_addresses(config, error);
	if (status == WEIR_OK && cluster != NULL)
		status = join_cluster(checks, error);
	if (status != WEIR_OK) {
		limiter_checks_free(checks);
		return status;
	}
	make_servers(checks);
	*out = checks;
	return WEIR_OK;
}

void limiter_checks_free(struct limiter_checks *checks)
{
	if (checks == NULL)
		return;
	limiter_checks_stop(checks);
	forward_free(checks->forward);
	mail_free(checks->options.mail);
	checks_servers_free(checks->servers);
	refusals_free(checks->refusals);
	checks_lists_free(checks->lists);
	owners_free(checks->owners);
	weir_http_tls_close(checks->tls);
	free(checks->password);
	resp_users_deinit(&checks->users);
	free(checks);
}

const struct worker_checks *limiter_checks_options(const struct limiter_checks *checks)
{
	return checks != NULL ? &checks->options : NULL;
}

uint16_t limiter_checks_port(const struct limiter_checks *checks)
{
	return checks != NULL ? checks_servers_port(checks->servers) : 0;
}

void limiter_checks_look(struct limiter_checks *checks, const struct weir_policy *newest)
{
	int64_t now_ms = weir_monotonic_ms();
	if (checks == NULL)
		return;
	checks_lists_look(checks->lists, newest);
	refusals_look(checks->refusals);
	if (checks->tls == NULL || now_ms < checks->look_ms)
		return;
	checks->look_ms = now_ms + LOOK_MS;
	weir_http_tls_look(checks->tls);
}

/* ---- metrics ---- */

static uint64_t figure(const struct limiter_checks *checks, enum refusal_surface by, size_t member)
{
	return checks_servers_figure(checks != NULL ? checks->servers : NULL, by, member);
}

static uint64_t figure_of_all(const struct limiter_checks *checks, size_t member)
{
	return figure(checks, REFUSAL_RESP, member) + figure(checks, REFUSAL_HTTP, member) +
	       figure(checks, REFUSAL_GRPC, member);
}

#define ALL(checks, member) figure_of_all(checks, offsetof(struct link_figures, member))
#define SUM(parts, member) limiter_sum(parts, offsetof(struct worker_stats, member))

static void answer_metrics(const struct limiter_parts *parts, struct weir_text *page)
{
	uint64_t unavailable[CHECK_WHY_COUNT], all = 0;
	for (int reason = CHECK_WHY_NONE + 1; reason < CHECK_WHY_COUNT; reason++) {
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
	for (int reason = CHECK_WHY_NONE + 1; reason < CHECK_WHY_COUNT; reason++) {
		struct weir_span name = weir_span_of(check_why_word((enum check_why)reason));
		weir_metrics_uint(page, &metrics[UNAVAILABLE], &name, unavailable[reason]);
	}
}

/* A figure of all links together. */
static uint64_t link_figure(const struct limiter_checks *checks, size_t member)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; checks != NULL && checks->forward != NULL && i < OWNERS_INBOXES; i++) {
		const char *figures = (const char *)forward_figures(checks->forward, i);
		if (figures != NULL)
			sum += weir_counter_read((const struct weir_counter *)(const void *)(figures + member));
	}
	return sum;
}

#define LINK_FIGURE(checks, member) link_figure(checks, offsetof(struct forward_figures, member))

static void cluster_metrics(const struct limiter_checks *checks, const struct limiter_parts *parts,
                            struct weir_text *page)
{
	weir_metrics_counter(page, &metrics[REDIRECTED], ALL(checks, redirected));
	weir_metrics_counter(page, &metrics[FORWARDED], SUM(parts, checks_forwarded));
	weir_metrics_counter(page, &metrics[UNANSWERED], LINK_FIGURE(checks, unanswered));
	weir_metrics_gauge(page, &metrics[LINKS], (double)LINK_FIGURE(checks, connected));
	weir_metrics_counter(page, &metrics[LINK_FAILURES], LINK_FIGURE(checks, failures));
}

static void zones_metrics(const struct limiter_checks *checks, struct weir_text *page)
{
	weir_metrics_family(page, &metrics[CHECKS]);
	if (checks == NULL)
		return;
	const struct check_counts **counts = weir_alloc(checks->threads, sizeof *counts);
	for (int by = 0; by < REFUSAL_SURFACES; by++) {
		for (uint32_t i = 0; i < checks->threads; i++)
			counts[i] = checks_servers_counts(checks->servers, (enum refusal_surface)by, i);
		checks_by_zone(page, &metrics[CHECKS], refusal_surface_name((enum refusal_surface)by), counts, checks->threads);
	}
	free(counts);
}

/* What came by a protocol. @param name  of a kind; NULL: there are no more */
static void kind_metrics(const struct limiter_checks *checks, enum refusal_surface by, const char *(*name)(uint32_t),
                         const struct weir_metric *metric, struct weir_text *page)
{
	const struct weir_span unknown = weir_span_of("(unknown)");
	weir_metrics_family(page, metric);
	for (uint32_t i = 0; i < LINK_KINDS_MAX && name(i) != NULL; i++) {
		struct weir_span label = weir_span_of(name(i));
		size_t member = offsetof(struct link_figures, kinds) + i * sizeof(struct weir_counter);
		weir_metrics_uint(page, metric, &label, figure(checks, by, member));
	}
	weir_metrics_uint(page, metric, &unknown, figure(checks, by, offsetof(struct link_figures, unknown)));
}

static void refusal_metrics(const struct limiter_checks *checks, struct weir_text *page)
{
	weir_metrics_family(page, &metrics[QUESTIONS]);
	for (int surface = 0; surface < REFUSAL_SURFACES; surface++)
		for (int reason = 0; reason < REFUSAL_REASONS; reason++) {
			const struct weir_span labels[] = {weir_span_of(refusal_surface_name((enum refusal_surface)surface)),
			                                   weir_span_of(refusal_reason_name((enum refusal_reason)reason))};
			weir_metrics_uint(page, &metrics[QUESTIONS], labels,
			                  refusals_count(checks != NULL ? checks->refusals : NULL, (enum refusal_surface)surface,
			                                 (enum refusal_reason)reason));
		}
}

void limiter_checks_metrics(const struct limiter_checks *checks, const struct limiter_parts *parts,
                            struct weir_text *page)
{
	zones_metrics(checks, page);
	answer_metrics(parts, page);
	limiter_histogram(parts, page, &metrics[SECONDS], &weir_latency_scale, offsetof(struct worker_stats, check));
	weir_metrics_gauge(page, &metrics[PENDING], (double)SUM(parts, checks_pending));
	weir_metrics_gauge(page, &metrics[UNACKNOWLEDGED], (double)SUM(parts, checks_unacknowledged));
	weir_metrics_gauge(page, &metrics[CONNECTIONS], (double)ALL(checks, connections));
	weir_metrics_counter(page, &metrics[ACCEPTED], ALL(checks, accepted));
	weir_metrics_counter(page, &metrics[REFUSED], ALL(checks, refused));
	weir_metrics_counter(page, &metrics[LOGINS], ALL(checks, failed_logins));
	weir_metrics_counter(page, &metrics[ERRORS], ALL(checks, protocol_errors));
	refusal_metrics(checks, page);
	weir_metrics_counter(page, &metrics[STALLED], ALL(checks, stalled));
	weir_metrics_gauge(page, &metrics[BUFFERED], (double)ALL(checks, buffered_bytes));
	kind_metrics(checks, REFUSAL_RESP, resp_command_name, &metrics[COMMANDS], page);
	cluster_metrics(checks, parts, page);
	kind_metrics(checks, REFUSAL_GRPC, grpc_method_name, &metrics[CALLS], page);
	weir_metrics_counter(page, &metrics[LATE], ALL(checks, late));
	kind_metrics(checks, REFUSAL_HTTP, check_http_route_name, &metrics[REQUESTS], page);
}

void limiter_checks_lists_metrics(const struct limiter_checks *checks, struct weir_text *page)
{
	checks_lists_metrics(checks != NULL ? checks->lists : NULL, page);
}
