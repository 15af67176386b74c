/* SPDX-License-Identifier: Apache-2.0 */
/* Robots that are exempt if their hosts are theirs: a small name server says what DNS says, and liars say what they like. */
#include "common/bytes/hash.h"
#include "common/exempt/exempt_list.h"
#include "common/matcher/matcher.h"
#include "common/matcher/record_filter.h"
#include "common/policy/policy.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "scratch.h"

#include <cmocka.h>

enum { A = 1, PTR = 12, AAAA = 28, SERVFAIL = 2, NXDOMAIN = 3 };

#define V4(last) last ".2.0.192.in-addr.arpa"
#define V6 "7.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa"

static const struct {
	const char *name;
	int type;
	const char *value;
} zone[] = {
	{V4("1"), PTR, "crawl-1.GoogleBot.com"},
	{"crawl-1.GoogleBot.com", A, "192.0.2.1"},
	{V4("2"), PTR, "googlebot.com.evil.example"},
	{"googlebot.com.evil.example", A, "192.0.2.2"},
	{V4("3"), PTR, "evilgooglebot.com"},
	{"evilgooglebot.com", A, "192.0.2.3"},
	{V4("4"), PTR, "crawl-4.googlebot.com"},
	{"crawl-4.googlebot.com", A, "192.0.2.99"},
	{"crawl-4.googlebot.com", AAAA, "2001:db8::4"},
	{V4("6"), PTR, "other.example"},
	{V4("6"), PTR, "crawl-6.googlebot.com"},
	{"crawl-6.googlebot.com", A, "192.0.2.66"},
	{"crawl-6.googlebot.com", A, "192.0.2.6"},
	{V6, PTR, "msnbot-7.search.msn.com"},
	{"msnbot-7.search.msn.com", AAAA, "2001:db8::7"},
	{V4("9"), PTR, "crawl-9.googlebot.com"},
	{V4("10"), PTR, "crawl.partner.example"},
	{"crawl.partner.example", A, "192.0.2.10"},
};

struct server {
	int socket, port;
	pthread_t thread;
	_Atomic int code;         /* of every answer; 0: as the zone says */
	_Atomic bool silent;      /* answers nothing */
	_Atomic unsigned queries; /* that came */
};

static size_t put_name(unsigned char *at, const char *name)
{
	size_t length = 0;
	while (*name != '\0') {
		size_t label = strcspn(name, ".");
		at[length++] = (unsigned char)label;
		memcpy(at + length, name, label);
		length += label;
		name += label + (name[label] == '.');
	}
	at[length++] = 0;
	return length;
}

static size_t put_record(unsigned char *at, int type, const char *value)
{
	const unsigned char head[] = {0xc0, 12, 0, (unsigned char)type, 0, 1, 0, 0, 0, 60};
	memcpy(at, head, sizeof head);
	unsigned char *data = at + sizeof head + 2;
	size_t length = type == A ? 4 : type == AAAA ? 16 : put_name(data, value);
	if (type != PTR)
		inet_pton(type == A ? AF_INET : AF_INET6, value, data);
	at[sizeof head] = 0;
	at[sizeof head + 1] = (unsigned char)length;
	return sizeof head + 2 + length;
}

static size_t answer(const struct server *server, const unsigned char *query, size_t length, unsigned char *out)
{
	char name[300] = "";
	size_t at = 12, count = 0;
	for (; at < length && query[at] != 0; at += query[at] + 1u)
		snprintf(name + strlen(name), sizeof name - strlen(name), "%s%.*s", name[0] != '\0' ? "." : "", query[at],
		         (const char *)query + at + 1);
	int type = query[at + 2], code = server->code;
	size_t end = at + 5;
	memcpy(out, query, end);
	for (size_t i = 0; i < sizeof zone / sizeof *zone && code == 0; i++)
		if (zone[i].type == type && strcasecmp(zone[i].name, name) == 0) {
			end += put_record(out + end, type, zone[i].value);
			count++;
		}
	if (code == 0 && count == 0)
		code = strcmp(name, V4("8")) == 0 ? SERVFAIL : NXDOMAIN;
	out[2] = 0x81, out[3] = (unsigned char)(0x80 | code);
	memset(out + 4, 0, 8);
	out[5] = 1, out[7] = (unsigned char)count;
	return end;
}

/* Addresses with a last part of three digits are of strangers whose servers never answer. */
static bool is_dead(const unsigned char *query)
{
	return query[12] == 3;
}

static void *serve(void *context)
{
	struct server *server = context;
	unsigned char query[1024], out[4096];
	struct sockaddr_in client;
	for (;;) {
		socklen_t size = sizeof client;
		ssize_t length = recvfrom(server->socket, query, sizeof query, 0, (struct sockaddr *)&client, &size);
		if (length < 17)
			return NULL; /* the test's end */
		server->queries++;
		if (!server->silent && !is_dead(query))
			(void)!sendto(server->socket, out, answer(server, query, (size_t)length, out), 0,
			              (struct sockaddr *)&client, size);
	}
}

static void server_start(struct server *server)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof address;
	*server = (struct server){.socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
	assert_int_equal(bind(server->socket, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(getsockname(server->socket, (struct sockaddr *)&address, &length), 0);
	server->port = ntohs(address.sin_port);
	assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

static void server_stop(struct server *server)
{
	struct sockaddr_in self = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)server->port)};
	int sender = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(sendto(sender, "end", 3, 0, (struct sockaddr *)&self, sizeof self), 3);
	close(sender);
	pthread_join(server->thread, NULL);
	close(server->socket);
}

struct scene {
	struct server server;
	char resolver[32];
	FILE *said;
	struct weir_log log;
	struct weir_verified_hosts_options options;
	struct weir_verified google, bing, partner;
};

static struct weir_verified robot(const char *text)
{
	struct weir_json_document *document;
	struct weir_error error;
	struct weir_verified verified = {0};
	char whole[256];
	snprintf(whole, sizeof whole, "[%s]", text);
	assert_int_equal(weir_json_parse("robot", whole, strlen(whole), &document, &error), WEIR_OK);
	struct weir_json root = weir_json_root(document), at = weir_json_element(&root, 0);
	if (weir_verified_parse(&at, &verified, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	weir_json_document_free(document);
	return verified;
}

static void scene_start(struct scene *scene)
{
	*scene = (struct scene){.said = tmpfile()};
	assert_non_null(scene->said);
	scene->log = (struct weir_log){.fd = fileno(scene->said)};
	server_start(&scene->server);
	snprintf(scene->resolver, sizeof scene->resolver, "127.0.0.1:%d", scene->server.port);
	scene->options = weir_verified_hosts_usual(scene->resolver, &scene->log);
	scene->options.period_ms = 0;
	scene->google = robot("\"googlebot\"");
	scene->bing = robot("\"bingbot\"");
	scene->partner = robot("{\"agent\": \"Partner\", \"hosts\": [\"crawl.partner.example\"]}");
}

static void scene_end(struct scene *scene)
{
	weir_verified_free(&scene->google);
	weir_verified_free(&scene->bing);
	weir_verified_free(&scene->partner);
	fclose(scene->said);
	server_stop(&scene->server);
}

/* For which the three robots are wanted. */
static struct weir_verified_hosts *table(const struct scene *scene)
{
	struct weir_verified_hosts *hosts = weir_verified_hosts_new(&scene->options);
	weir_verified_hosts_want(hosts, &scene->google);
	weir_verified_hosts_want(hosts, &scene->bing);
	weir_verified_hosts_want(hosts, &scene->partner);
	return hosts;
}

static uint64_t figure(struct weir_verified_hosts *hosts, const char *name)
{
	struct weir_text page = {0};
	char line[128];
	weir_verified_hosts_metrics(hosts, &page);
	weir_text_append(&page, "", 1);
	snprintf(line, sizeof line, "\n%s ", name);
	const char *at = strstr(page.at, line);
	assert_non_null(at);
	uint64_t value = strtoull(at + strlen(line), NULL, 10);
	weir_text_deinit(&page);
	return value;
}

static void await_asked(struct weir_verified_hosts *hosts, uint64_t count)
{
	while (figure(hosts, "weir_verified_asked_total") < count)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static bool is(struct weir_verified_hosts *hosts, const char *text, const struct weir_verified *verified)
{
	struct weir_address address;
	assert_true(weir_address_parse(weir_span_of(text), &address));
	return weir_verified_hosts_has(hosts, &address, verified);
}

static void who_lies_about_its_name_is_not_verified(void **state)
{
	(void)state;
	static const struct {
		const char *address;
		bool google, bing;
	} cases[] = {
		{"192.0.2.1", true, false},   {"192.0.2.2", false, false}, {"192.0.2.3", false, false},
		{"192.0.2.4", false, false},  {"192.0.2.5", false, false}, {"192.0.2.6", true, false},
		{"2001:db8::7", false, true}, {"192.0.2.8", false, false}, {"192.0.2.9", false, false},
		{"192.0.2.10", false, false},
	};
	enum { COUNT = sizeof cases / sizeof *cases };
	struct scene scene;
	scene_start(&scene);
	struct weir_verified_hosts *hosts = table(&scene);
	for (size_t i = 0; i < COUNT; i++) /* until an answer is there, nobody is anybody */
		assert_false(is(hosts, cases[i].address, &scene.google));
	await_asked(hosts, COUNT);
	unsigned queries = scene.server.queries;
	for (size_t i = 0; i < COUNT; i++) {
		if (is(hosts, cases[i].address, &scene.google) != cases[i].google)
			fail_msg("%s", cases[i].address);
		assert_int_equal(is(hosts, cases[i].address, &scene.bing), cases[i].bing);
	}
	assert_true(is(hosts, "192.0.2.10", &scene.partner));
	assert_int_equal(figure(hosts, "weir_verified_failed_total"), 1);
	assert_int_equal(scene.server.queries, queries); /* what is known, also that there is no name, is not asked again */
	weir_verified_hosts_free(hosts);
	scene_end(&scene);
}

/* A name holds until DNS says another thing: not while servers fail, or do not answer. */
static void a_name_holds_while_servers_are_away(void **state)
{
	(void)state;
	struct scene scene;
	scene_start(&scene);
	scene.options.known_ms = scene.options.failed_ms = scene.options.nameless_ms = 0;
	scene.options.patience_ms = 1000;
	struct weir_verified_hosts *hosts = table(&scene);
	assert_false(is(hosts, "192.0.2.1", &scene.google));
	await_asked(hosts, 1);
	scene.server.code = SERVFAIL;
	assert_true(is(hosts, "192.0.2.1", &scene.google));
	await_asked(hosts, 2);
	scene.server.silent = true;
	assert_true(is(hosts, "192.0.2.1", &scene.google));
	await_asked(hosts, 3);
	assert_int_equal(figure(hosts, "weir_verified_failed_total"), 2);
	assert_true(is(hosts, "192.0.2.1", &scene.google));
	weir_verified_hosts_free(hosts);
	scene.server.silent = false;
	scene.server.code = 0;
	hosts = table(&scene);
	assert_false(is(hosts, "192.0.2.1", &scene.google));
	await_asked(hosts, 1);
	scene.server.code = NXDOMAIN;
	assert_true(is(hosts, "192.0.2.1", &scene.google));
	while (is(hosts, "192.0.2.1", &scene.google))
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	weir_verified_hosts_free(hosts);
	scene_end(&scene);
}

static uint64_t set_of(const char *text)
{
	struct weir_address address;
	assert_true(weir_address_parse(weir_span_of(text), &address));
	return weir_hash64(address.bytes, sizeof address.bytes) % (WEIR_VERIFIED_NAMES_MAX / 4);
}

/* Strangers who claim to be a robot from everywhere: what waits, what is asked and what is remembered is bounded. */
static void strangers_cannot_make_it_grow(void **state)
{
	(void)state;
	struct scene scene;
	scene_start(&scene);
	scene.options.period_ms = 3600000;
	struct weir_verified_hosts *hosts = table(&scene);
	assert_false(is(hosts, "192.0.2.1", &scene.google));
	await_asked(hosts, 1);
	assert_true(is(hosts, "192.0.2.1", &scene.google));
	char text[64];
	for (unsigned i = 0; i < WEIR_VERIFIED_QUEUE_MAX + 500; i++) {
		snprintf(text, sizeof text, "2001:db8:%x::1", i);
		assert_false(is(hosts, text, &scene.google));
	}
	assert_int_equal(figure(hosts, "weir_verified_dropped_total"), 500);
	assert_true(scene.server.queries == 2);
	assert_true(is(hosts, "192.0.2.1", &scene.google));
	weir_verified_hosts_free(hosts);
	scene.options.period_ms = 0;
	hosts = table(&scene);
	assert_false(is(hosts, "192.0.2.1", &scene.google));
	await_asked(hosts, 1);
	/* whoever finds addresses of its set drives out the nameless alone */
	for (unsigned i = 0, asked = 1; asked < 12; i++) {
		snprintf(text, sizeof text, "2001:db8:%x:%x::1", i >> 16, i & 0xffff);
		if (set_of(text) != set_of("192.0.2.1"))
			continue;
		assert_false(is(hosts, text, &scene.google));
		await_asked(hosts, ++asked);
	}
	unsigned queries = scene.server.queries;
	assert_true(is(hosts, "192.0.2.1", &scene.google));
	assert_int_equal(scene.server.queries, queries);
	weir_verified_hosts_free(hosts);
	scene_end(&scene);
}

/* One whose agent claims a robot, and whose host is one, is in no zone; the same address with another agent is. */
static void a_verified_robot_is_in_no_zone(void **state)
{
	(void)state;
	static const char zones[] =
		"[{\"name\": \"a\", \"key\": [{\"field\": \"ip\", \"prefix4\": 24}], \"exempt\": {\"verified\": [\"googlebot\", "
		"\"bingbot\"]}, \"limits\": [{\"algorithm\": \"uniform\", \"interval\": \"1s\"}]}]";
	struct scene scene;
	struct weir_json_document *document;
	struct weir_policy *policy;
	struct weir_error error;
	struct weir_field_table fields;
	struct weir_matcher *matcher;
	scene_start(&scene);
	assert_int_equal(weir_json_parse("zones", zones, strlen(zones), &document, &error), WEIR_OK);
	struct weir_json root = weir_json_root(document);
	if (weir_policy_parse(&root, NULL, &policy, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	weir_json_document_free(document);
	struct weir_exempt_lists *lists = weir_exempt_lists_new(NULL, &scene.log);
	weir_exempt_lists_verify(lists, &scene.options);
	weir_field_table_init(&fields);
	assert_int_equal(weir_matcher_new(policy, lists, &fields, 1, &matcher, &error), WEIR_OK);
	uint32_t ip, agent;
	assert_int_equal(weir_record_field_want(&fields, "ip", &ip, &error), WEIR_OK);
	assert_int_equal(weir_record_field_want(&fields, "agent", &agent, &error), WEIR_OK);
	static const struct {
		const char *ip, *agent;
		bool counted;
	} cases[] = {
		{"192.0.2.1", "Mozilla/5.0 (compatible; GoogleBot/2.1)", false},
		{"192.0.2.1", "curl/8", true},
		{"192.0.2.1", NULL, true},
		{"192.0.2.1", "bingbot", true},
		{"192.0.2.2", "Googlebot/2.1", true},
		{"192.0.2.1", "google", true},
	};
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
			struct weir_record record = {.source = NULL};
			struct weir_matched matched;
			record.fields[ip] = weir_span_of(cases[i].ip);
			if (cases[i].agent != NULL)
				record.fields[agent] = weir_span_of(cases[i].agent);
			weir_matcher_match(matcher, &record, &matched);
			if (round == 1 && (matched.event_count == 1) != cases[i].counted)
				fail_msg("%s %s", cases[i].ip, cases[i].agent);
		}
		await_asked(weir_exempt_lists_hosts(lists), 2);
	}
	weir_matcher_free(matcher);
	weir_field_table_deinit(&fields);
	weir_exempt_lists_free(lists);
	weir_policy_free(policy);
	scene_end(&scene);
}

static bool said(const struct scene *scene, const char *words)
{
	char text[10000];
	rewind(scene->said);
	text[fread(text, 1, sizeof text - 1, scene->said)] = '\0';
	return strstr(text, words) != NULL;
}

/* Strangers' servers that never answer, or fail, hold no robot up, and are no fault of the name server. */
static void strangers_servers_hold_nobody_up(void **state)
{
	(void)state;
	struct scene scene;
	char text[64];
	scene_start(&scene);
	struct weir_verified_hosts *hosts = table(&scene);
	for (unsigned i = 0; i + 1 < WEIR_VERIFIED_THREADS; i++) {
		snprintf(text, sizeof text, "192.0.2.%u", 100 + i);
		assert_false(is(hosts, text, &scene.google));
	}
	while (!is(hosts, "192.0.2.1", &scene.google))
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	assert_int_equal(figure(hosts, "weir_verified_asked_total"), 1); /* the others are waited for still */
	assert_false(is(hosts, "192.0.2.8", &scene.google));
	await_asked(hosts, WEIR_VERIFIED_THREADS + 1);
	assert_int_equal(figure(hosts, "weir_verified_failed_total"), WEIR_VERIFIED_THREADS);
	weir_verified_hosts_free(hosts);
	assert_false(said(&scene, "does not answer"));
	scene_end(&scene);
}

static void a_name_server_that_is_away_is_told(void **state)
{
	(void)state;
	struct scene scene;
	char text[64];
	scene_start(&scene);
	int taken = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0); /* a port where nobody is */
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof address;
	assert_int_equal(bind(taken, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(getsockname(taken, (struct sockaddr *)&address, &length), 0);
	close(taken);
	snprintf(scene.resolver, sizeof scene.resolver, "127.0.0.1:%d", ntohs(address.sin_port));
	struct weir_verified_hosts *hosts = table(&scene);
	for (unsigned i = 0; i < 20; i++) {
		snprintf(text, sizeof text, "192.0.2.%u", i);
		assert_false(is(hosts, text, &scene.google));
		await_asked(hosts, i + 1);
		if (i == 2)
			assert_false(said(&scene, "does not answer"));
	}
	weir_verified_hosts_free(hosts);
	assert_true(
		said(&scene, "the name server does not answer. Robots that are not known yet are counted like anybody"));
	scene_end(&scene);
}

/* The wait doubles up to 256 times the first one: 12 questions of one address that fails take a second. */
static void an_address_that_fails_is_asked_for_more_rarely(void **state)
{
	(void)state;
	struct scene scene;
	struct timespec begin, end;
	scene_start(&scene);
	scene.options.failed_ms = 1;
	struct weir_verified_hosts *hosts = table(&scene);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	while (figure(hosts, "weir_verified_failed_total") < 12) {
		assert_false(is(hosts, "192.0.2.8", &scene.google));
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	assert_true((end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000 >= 900);
	weir_verified_hosts_free(hosts);
	scene_end(&scene);
}

/* A stranger's name takes no place among robots, and is not asked for. */
static void a_name_that_no_robot_has_is_none(void **state)
{
	(void)state;
	struct scene scene;
	scene_start(&scene);
	struct weir_verified_hosts *hosts = weir_verified_hosts_new(&scene.options);
	weir_verified_hosts_want(hosts, &scene.google);
	assert_false(is(hosts, "192.0.2.10", &scene.partner));
	await_asked(hosts, 1);
	assert_int_equal(scene.server.queries, 1);
	assert_int_equal(figure(hosts, "weir_verified_confirmed_total"), 0);
	weir_verified_hosts_want(hosts, &scene.partner); /* a policy names it */
	assert_false(is(hosts, "192.0.2.10", &scene.partner));
	await_asked(hosts, 2);
	assert_true(is(hosts, "192.0.2.10", &scene.partner));
	weir_verified_hosts_free(hosts);
	scene_end(&scene);
}

static void put_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* A robot is one still after a restart, before anything was asked; but a name of long ago is none, and a bad file has none. */
static void a_name_holds_over_a_restart(void **state)
{
	struct scene scene;
	char folder[300], path[400], text[400];
	scene_start(&scene);
	snprintf(folder, sizeof folder, "%s/state/lists", (const char *)*state);
	snprintf(path, sizeof path, "%s/" WEIR_VERIFIED_FILE, folder);
	scene.options.folder = folder;
	struct weir_verified_hosts *hosts = table(&scene);
	assert_false(is(hosts, "192.0.2.1", &scene.google));
	assert_false(is(hosts, "192.0.2.5", &scene.google));
	assert_false(is(hosts, "2001:db8::7", &scene.bing));
	await_asked(hosts, 3);
	weir_verified_hosts_free(hosts);
	unsigned queries = scene.server.queries;
	hosts = table(&scene);
	assert_true(is(hosts, "192.0.2.1", &scene.google));
	assert_true(is(hosts, "2001:db8::7", &scene.bing));
	assert_false(is(hosts, "192.0.2.1", &scene.bing));
	assert_int_equal(scene.server.queries, queries);
	weir_verified_hosts_free(hosts);
	assert_false(said(&scene, "exempt"));

	int64_t now_ms = (int64_t)time(NULL) * 1000;
	snprintf(
		text, sizeof text,
		"[[\"192.0.2.5\", \"a.googlebot.com\", %lld], [\"192.0.2.9\", \"b.googlebot.com\", %lld], 7, [\"x\", \"y\", 1], "
		"[\"192.0.2.3\", \"c.googlebot.com\", %lld]]",
		(long long)now_ms - WEIR_VERIFIED_KEPT_MS - 1000, (long long)now_ms - 86400000, (long long)now_ms + 3600000);
	put_file(path, text);
	hosts = table(&scene);
	assert_false(is(hosts, "192.0.2.5", &scene.google));
	assert_false(is(hosts, "192.0.2.3", &scene.google));
	assert_true(is(hosts, "192.0.2.9", &scene.google)); /* until it is said that it is none */
	await_asked(hosts, 3);
	assert_false(is(hosts, "192.0.2.9", &scene.google));
	weir_verified_hosts_free(hosts);
	put_file(path, "[[");
	hosts = table(&scene);
	assert_false(is(hosts, "192.0.2.9", &scene.google));
	weir_verified_hosts_free(hosts);
	assert_true(said(&scene, WEIR_VERIFIED_FILE " has no names of robots' hosts: all names are asked for again"));
	scene_end(&scene);
}

/* Nobody waits at the end for an answer that does not come: else the question would have been sent again. */
static void an_end_waits_for_no_answer(void **state)
{
	(void)state;
	struct scene scene;
	scene_start(&scene);
	scene.options.patience_ms = 10000;
	struct weir_verified_hosts *hosts = table(&scene);
	assert_false(is(hosts, "192.0.2.100", &scene.google));
	while (scene.server.queries == 0)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	weir_verified_hosts_free(hosts);
	assert_int_equal(scene.server.queries, 1);
	scene_end(&scene);
}

/* Whoever can have an address there, or a proxy that asks for him, is not the robot. */
static void an_engine_s_other_hosts_are_not_its_robot_s(void **state)
{
	(void)state;
	static const struct {
		const char *robot, *host;
		bool is;
	} cases[] = {
		{"\"googlebot\"", "crawl-66-249-66-1.googlebot.com", true},
		{"\"googlebot\"", "geo-crawl-34-100-182-96.geo.googlebot.com", true},
		{"\"googlebot\"", "google-proxy-66-249-81-1.google.com", false},
		{"\"googlebot\"", "rate-limited-proxy-66-249-90-77.google.com", false},
		{"\"yandexbot\"", "5-255-253-1.spider.yandex.com", true},
		{"\"yandexbot\"", "spider-5-255-253-1.yandex.com", true},
		{"\"yandexbot\"", "spider-5.user.yandex.com", false},
		{"\"yandexbot\"", "proxy.yandex.net", false},
		{"\"yandexbot\"", "mail.yandex.ru", false},
		{"\"baiduspider\"", "baiduspider-180-76-15-5.crawl.baidu.com", true},
		{"\"baiduspider\"", "proxy.baidu.com", false},
		{"\"seznambot\"", "FullTextRobot-77-75-77-1.Seznam.cz", true},
		{"\"seznambot\"", "fulltextrobot-", false},
		{"\"seznambot\"", "mxd1.seznam.cz", false},
		{"\"petalbot\"", "petalbot-114-119-136-1.petalsearch.com", true},
		{"\"petalbot\"", "www.petalsearch.com", false},
		{"{\"agent\": \"x\", \"hosts\": [\"crawl-*.example.org\"]}", "crawl-1.example.org", true},
		{"{\"agent\": \"x\", \"hosts\": [\"crawl-*.example.org\"]}", "crawl-1.evil.example.org", false},
		{"{\"agent\": \"x\", \"hosts\": [\"crawl-*.example.org\"]}", "crawl-1.evil.example", false},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct weir_verified verified = robot(cases[i].robot);
		if (weir_verified_is_host(&verified, cases[i].host) != cases[i].is)
			fail_msg("%s: %s", cases[i].robot, cases[i].host);
		weir_verified_free(&verified);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_lies_about_its_name_is_not_verified),
		cmocka_unit_test(a_name_holds_while_servers_are_away),
		cmocka_unit_test(strangers_cannot_make_it_grow),
		cmocka_unit_test(a_verified_robot_is_in_no_zone),
		cmocka_unit_test(strangers_servers_hold_nobody_up),
		cmocka_unit_test(a_name_server_that_is_away_is_told),
		cmocka_unit_test(an_address_that_fails_is_asked_for_more_rarely),
		cmocka_unit_test(a_name_that_no_robot_has_is_none),
		cmocka_unit_test_setup_teardown(a_name_holds_over_a_restart, scratch_setup, scratch_teardown),
		cmocka_unit_test(an_end_waits_for_no_answer),
		cmocka_unit_test(an_engine_s_other_hosts_are_not_its_robot_s),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
