/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon on this machine says of itself, where the configuration says where. */
#include "common/bus/kafka/bus_kafka.h"
#include "common/http_client/http_client.h"
#include "deploy/weir/doctor/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONNECT_MS = 2000, ANSWER_MS = 4000, BODY_BYTES = 4 << 20, SHOWN_BYTES = 400, MEMBERS_MS = 4000, AHEAD_S = 60 };

/* Its lines as one. */
static void flatten(const struct weir_text *body, char words[SHOWN_BYTES])
{
	size_t length = body->length < SHOWN_BYTES - 1 ? body->length : SHOWN_BYTES - 1;
	while (length > 0 && body->at[length - 1] == '\n')
		length--;
	for (size_t i = 0; i < length; i++)
		words[i] = (unsigned char)body->at[i] < 0x20 ? ';' : body->at[i];
	words[length] = '\0';
}

/* A daemon's pages, and how they are asked for. */
struct asking {
	const struct weir_check *check;
	struct weir_http_client *client;
	char base[300]; /* "http://127.0.0.1:9100" */
};

static enum weir_status ask(const struct asking *asking, const char *page, struct weir_http_answer *answer,
                            struct weir_error *error)
{
	char address[320];
	const struct weir_http_call call = {.address = address};
	*answer = (struct weir_http_answer){0};
	snprintf(address, sizeof address, "%s%s", asking->base, page);
	return weir_http_client_call(asking->client, &call, answer, error);
}

/* Whether it is an archiver's: verdicts go on without it. */
static bool is_archivers(const struct asking *asking)
{
	struct weir_http_answer answer;
	struct weir_error error;
	bool is = false;
	if (ask(asking, "/metrics", &answer, &error) == WEIR_OK && answer.body.length > 0) {
		weir_text_append(&answer.body, "", 1);
		const char *info = strstr(answer.body.at, "\nweir_build_info{");
		const char *role = info != NULL ? strstr(info, "role=\"archiver\"") : NULL;
		is = role != NULL && role < info + 1 + strcspn(info + 1, "\n");
	}
	weir_text_deinit(&answer.body);
	return is;
}

/* A log that was written to at times that have not come yet. */
static void tell_ahead(const struct asking *asking, const char *page)
{
	static const char metric[] = "\nweir_limiter_clock_ahead_seconds ";
	const char *at = strstr(page, metric);
	double seconds = at != NULL ? strtod(at + sizeof metric - 1, NULL) : 0;
	if (seconds >= AHEAD_S)
		weir_findings_add(
			asking->check->findings, WEIR_SEVERITY_TICKET, "pages",
			"the log was written to at a time that is %.0f min ahead of this machine's clock\nA clock was ahead for a while, or "
			"this one was set back: what operators commanded before may be over before its time, and fewer checks pass of keys "
			"that were asked at the later times\ncorrect the clock, look at weir state --orders, and command again what is missing "
			"there (runbook: clock)",
			seconds / 60);
}

/* Sources whose times are not those of the clock, and the log's own: its page of metrics says by how much. */
static void tell_clocks(const struct asking *asking)
{
	static const char metric[] = "\nweir_source_behind_clock_seconds{source=\"";
	struct weir_http_answer answer;
	struct weir_error error;
	if (ask(asking, "/metrics", &answer, &error) == WEIR_OK && answer.code == 200 && answer.body.length > 0) {
		weir_text_append(&answer.body, "", 1);
		tell_ahead(asking, answer.body.at);
		for (const char *at = answer.body.at; (at = strstr(at, metric)) != NULL;) {
			at += sizeof metric - 1;
			const char *name_end = strstr(at, "\"} ");
			double seconds = name_end != NULL ? strtod(name_end + 3, NULL) : 0;
			if (seconds == 0)
				continue;
			weir_findings_add(
				asking->check->findings, seconds > 3600 ? WEIR_SEVERITY_PAGE : WEIR_SEVERITY_TICKET, "pages",
				"the times of source %.*s are %.0f min %s the clock as its lines are written\n%s\nsay the log's "
				"\"time_zone\" in the source's \"format\", or correct the clock; its log says which (runbook: clock)",
				(int)(name_end - at), at, (seconds < 0 ? -seconds : seconds) / 60, seconds < 0 ? "ahead of" : "behind",
				seconds > 3600 ? "Nobody is blocked by them: what is older than an hour is history"
							   : "They count at a wrong time");
		}
	}
	weir_text_deinit(&answer.body);
}

static void tell(const struct asking *asking, const struct weir_http_answer *answer)
{
	char words[SHOWN_BYTES];
	flatten(&answer->body, words);
	if (answer->code == 200) {
		weir_findings_good(asking->check->findings, "pages: %s/readyz says ok", asking->base);
		return;
	}
	bool archivers = is_archivers(asking);
	weir_findings_add(asking->check->findings, archivers ? WEIR_SEVERITY_TICKET : WEIR_SEVERITY_PAGE, "pages",
	                  "%s/readyz says %ld: %s\n%s\ndo what the other findings say; its log has more (runbook: "
	                  "is-it-over)",
	                  asking->base, answer->code, words,
	                  archivers ? "This archiver does not do its work now; verdicts go on"
	                            : "This daemon does not do its work now");
}

static void count_member(void *context, const char *client, const char *host, const uint32_t *partitions, size_t count)
{
	size_t *members = context;
	(void)client, (void)host, (void)partitions, (void)count;
	(*members)++;
}

/* Whether a daemon of this cluster is at work on any machine. */
static bool is_cluster_at_work(const struct doctor *doctor)
{
	size_t members = 0;
	struct weir_error error;
	return doctor->bus != NULL && doctor->topics[WEIR_TOPIC_EVENTS] &&
	       weir_bus_kafka_members(doctor->bus, "limiter", MEMBERS_MS, count_member, &members, &error) == WEIR_OK &&
	       members > 0;
}

static bool is_loopback(const char *host)
{
	return strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0 || strcmp(host, "localhost") == 0;
}

/* A file that describes daemons of other machines has an address that is this machine's here, where none need run. */
static void tell_silence(const struct asking *asking, const struct doctor *doctor, const char *host, const char *why)
{
	const char *refused = strerrordesc_np(ECONNREFUSED), *reason = doctor_reach(host, doctor->config->listen.http_port);
	if (is_loopback(host) && reason != NULL && strcmp(reason, refused) == 0 && is_cluster_at_work(doctor))
		weir_findings_add(
			asking->check->findings, WEIR_SEVERITY_NOTE, "pages",
			"nobody listens at %s: the daemons of this configuration run on other machines\nIf one should "
			"run here, it does not\nask there too, or systemctl status 'weir*' here",
			asking->base);
	else
		weir_findings_add(
			asking->check->findings, WEIR_SEVERITY_TICKET, "pages",
			"%s/readyz does not answer: %s\nThe daemon of this configuration does not run on this machine, "
			"or hangs\nsystemctl status 'weir*' says which (runbook: process-down)",
			asking->base, why);
}

void doctor_check_pages(struct doctor *doctor, const struct weir_check *check)
{
	const struct weir_config_tls *tls = &doctor->config->listen.tls;
	unsigned port = doctor->config->listen.http_port;
	const struct weir_http_client_options options = {.connect_ms = CONNECT_MS,
	                                                 .answer_ms = ANSWER_MS,
	                                                 .body_most_bytes = BODY_BYTES,
	                                                 .agent = "weir-doctor",
	                                                 .ca_file = tls->certificate,
	                                                 .any_host = tls->certificate != NULL};
	const char *host = doctor->config->listen.http_host;
	struct asking asking = {.check = check};
	struct weir_http_answer answer;
	struct weir_error error;
	if (host == NULL || port == 0 || tls->client_ca != NULL)
		return; /* whom a page asks for a certificate of their own, they have none */
	if (strcmp(host, "*") == 0)
		host = "127.0.0.1";
	snprintf(asking.base, sizeof asking.base, strchr(host, ':') != NULL ? "%s://[%s]:%u" : "%s://%s:%u",
	         tls->certificate != NULL ? "https" : "http", host, port);
	if (weir_http_client_new(&options, &asking.client, &error) != WEIR_OK)
		return;
	if (ask(&asking, "/readyz", &answer, &error) == WEIR_OK) {
		tell(&asking, &answer);
		tell_clocks(&asking);
	} else {
		tell_silence(&asking, doctor, host, error.text);
	}
	weir_text_deinit(&answer.body);
	weir_http_client_free(asking.client);
}
