/* SPDX-License-Identifier: Apache-2.0 */
/* Lists that a server has: what of its answers becomes the copy, what leaves it as it was, and what a start finds. */
#include "common/base/clock.h"
#include "common/exempt/exempt_fetch.h"
#include "common/exempt/exempt_watch.h"
#include "common/matcher/matcher.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "scratch.h"

#include <cmocka.h>

enum { PERIOD_MS = 5 };

/* A server that gives one answer, byte for byte, until it is given another. */
struct server {
	int socket, port;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t asked;
	const char *answer, *other; /* other: in turns with it; NULL: always the one */
	char request[4096];         /* the newest */
	unsigned requests;
	bool stop;
};

static void answer_one(struct server *server, int client)
{
	char request[4096];
	size_t held = 0;
	ssize_t got;
	request[0] = '\0';
	while (strstr(request, "\r\n\r\n") == NULL && (got = read(client, request + held, sizeof request - 1 - held)) > 0) {
		held += (size_t)got;
		request[held] = '\0';
	}
	pthread_mutex_lock(&server->lock);
	const char *answer = server->other != NULL && server->requests % 2 != 0 ? server->other : server->answer;
	memcpy(server->request, request, sizeof request);
	pthread_mutex_unlock(&server->lock);
	(void)!write(client, answer, strlen(answer));
	close(client);
	pthread_mutex_lock(&server->lock);
	server->requests++;
	pthread_cond_broadcast(&server->asked);
	pthread_mutex_unlock(&server->lock);
}

static void *serve(void *context)
{
	struct server *server = context;
	for (int client; (client = accept(server->socket, NULL, NULL)) >= 0;)
		answer_one(server, client);
	return NULL;
}

static void server_start(struct server *server)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof address;
	*server = (struct server){.socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .answer = ""};
	pthread_mutex_init(&server->lock, NULL);
	pthread_cond_init(&server->asked, NULL);
	assert_int_equal(bind(server->socket, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(listen(server->socket, 16), 0);
	assert_int_equal(getsockname(server->socket, (struct sockaddr *)&address, &length), 0);
	server->port = ntohs(address.sin_port);
	assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

static void server_stop(struct server *server)
{
	shutdown(server->socket, SHUT_RDWR);
	pthread_join(server->thread, NULL);
	close(server->socket);
}

/* Once the second request after it has come, the answer was taken or refused. */
static void answers(struct server *server, const char *answer)
{
	pthread_mutex_lock(&server->lock);
	server->answer = answer;
	for (unsigned until = server->requests + 3; server->requests < until;)
		pthread_cond_wait(&server->asked, &server->lock);
	pthread_mutex_unlock(&server->lock);
}

/* A minute goes by between two lines, so that each trouble is told. */
static int64_t quick_clock_ms(void)
{
	static _Atomic int64_t now_ms;
	return atomic_fetch_add(&now_ms, 60000) + 60000;
}

struct scene {
	struct server server;
	struct weir_policy *policy;
	struct weir_log log;
	struct weir_exempt_fetch_options options;
	char folder[300], said[300], address[64];
};

static const _Atomic bool never;

static void scene_start(struct scene *scene, const char *place)
{
	char zones[512];
	struct weir_json_document *document;
	struct weir_error error;
	server_start(&scene->server);
	snprintf(scene->folder, sizeof scene->folder, "%s/state/lists", place);
	snprintf(scene->said, sizeof scene->said, "%s/log", place);
	snprintf(scene->address, sizeof scene->address, "http://127.0.0.1:%d/bots?token=secret", scene->server.port);
	snprintf(zones, sizeof zones,
	         "[{\"name\": \"a\", \"key\": [\"ip\"], \"exempt\": [{\"list\": \"%s\"}], \"limits\": [{\"algorithm\": "
	         "\"fixed_window\", \"rate\": 1, \"window\": \"1m\"}]}]",
	         scene->address);
	assert_int_equal(weir_json_parse("zones", zones, strlen(zones), &document, &error), WEIR_OK);
	struct weir_json root = weir_json_root(document);
	if (weir_policy_parse(&root, NULL, &scene->policy, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	weir_json_document_free(document);
	scene->log = (struct weir_log){.fd = open(scene->said, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600),
	                               .clock_ms = quick_clock_ms};
	scene->options = (struct weir_exempt_fetch_options){
		.folder = scene->folder, .interval_ms = PERIOD_MS, .again_ms = PERIOD_MS, .log = &scene->log};
}

static void scene_end(struct scene *scene)
{
	weir_policy_free(scene->policy);
	close(scene->log.fd);
}

static bool said(const struct scene *scene, const char *words)
{
	static char text[100000];
	FILE *file = fopen(scene->said, "r");
	text[fread(text, 1, sizeof text - 1, file)] = '\0';
	fclose(file);
	assert_null(strstr(text, "secret"));
	return strstr(text, words) != NULL;
}

/* Whether the newest list has an address. */
static bool has(const struct scene *scene, struct weir_exempt_lists *lists, const char *text)
{
	struct weir_exempt_list *list;
	struct weir_error error;
	struct weir_address address;
	assert_true(weir_address_parse(weir_span_of(text), &address));
	assert_int_equal(weir_exempt_lists_refresh(lists, scene->policy, &error), WEIR_OK);
	assert_int_equal(weir_exempt_list_open(lists, scene->address, &list, &error), WEIR_OK);
	bool found = weir_network_set_has(&list->networks, &address);
	weir_exempt_list_close(list);
	return found;
}

static uint64_t figure(struct weir_exempt_fetch *fetch, const char *name)
{
	struct weir_text page = {0};
	weir_exempt_fetch_metrics(fetch, &page);
	weir_text_append(&page, "", 1);
	char line[128];
	snprintf(line, sizeof line, "\n%s ", name);
	const char *at = strstr(page.at, line);
	assert_non_null(at);
	uint64_t value = strtoull(at + strlen(line), NULL, 10);
	weir_text_deinit(&page);
	return value;
}

#define GOOD(etag, body) "HTTP/1.1 200 OK\r\nConnection: close\r\n" etag "\r\n" body

static void only_a_list_changes_the_copy(void **state)
{
	struct scene scene;
	scene_start(&scene, *state);
	struct weir_exempt_lists *lists = weir_exempt_lists_new(scene.folder, &scene.log);
	struct weir_exempt_fetch *fetch = weir_exempt_fetch_new(&scene.options);
	assert_false(has(&scene, lists, "192.0.2.1"));
	scene.server.answer = GOOD("", "192.0.2.0/24\n198.51.100.0/24\nbob\n203.0.113.7\n");
	weir_exempt_fetch_set(fetch, scene.policy, 60000, &never);
	assert_true(has(&scene, lists, "192.0.2.1"));
	assert_false(has(&scene, lists, "192.0.3.1"));
	assert_int_equal(figure(fetch, "weir_exempt_fetched_missing"), 0);
	assert_true(said(&scene, "1 entries of the list http://127.0.0.1:"));
	assert_true(said(&scene, "/bots are left out: line 3: \"bob\" is no address"));
	static const struct {
		const char *answer, *words;
	} bad[] = {
		{"HTTP/1.1 500 Broken\r\nConnection: close\r\n\r\n192.0.3.1\n",
	     "the server answers 500. Trying again by itself; the copy of 2"},
		{"HTTP/1.1 301 Moved\r\nConnection: close\r\nLocation: http://127.0.0.1:1/\r\n\r\n",
	     "the server answers 301: it is elsewhere, so name that address"},
		{GOOD("Content-Length: 100\r\n", "192.0.3.1\n"), "cannot fetch the list"},
		{GOOD("", ""), "the answer is empty. Trying again by itself; the copy of 2"},
		{GOOD("", "<html>192.0.3.1</html>"), "the answer is a page of HTML"},
		{GOOD("", "{\"prefixes\": [{\"ipv4Prefix\": \"192.0.3.0/24\"}, {"), "the answer is no whole JSON"},
		{GOOD("", "please\nwait\n192.0.3.1\n"), "the answer is no list of addresses: 2 of its 3"},
		{"nonsense\r\n\r\n", "stays in use"},
		{"HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n", "stays in use"},
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		answers(&scene.server, bad[i].answer);
		assert_true(has(&scene, lists, "192.0.2.1"));
		assert_false(has(&scene, lists, "192.0.3.1"));
		if (!said(&scene, bad[i].words))
			fail_msg("not said: %s", bad[i].words);
	}
	assert_true(figure(fetch, "weir_exempt_fetch_failures_total") >= 8);
	answers(&scene.server, GOOD("", "192.0.3.0/24\n192.0.2.0/25\n"));
	assert_true(has(&scene, lists, "192.0.3.1") && has(&scene, lists, "192.0.2.1"));
	assert_false(has(&scene, lists, "192.0.2.200"));
	weir_exempt_fetch_free(fetch);
	weir_exempt_lists_free(lists);
	server_stop(&scene.server);
	scene_end(&scene);
}

/* All files of a folder were last changed some time ago. */
static void age_files(const char *folder, time_t seconds)
{
	struct timespec times[2] = {{.tv_sec = time(NULL) - seconds}, {.tv_sec = time(NULL) - seconds}};
	DIR *directory = opendir(folder);
	assert_non_null(directory);
	for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
		if (entry->d_name[0] != '.')
			assert_int_equal(utimensat(dirfd(directory), entry->d_name, times, 0), 0);
	closedir(directory);
}

static void what_has_not_changed_is_not_sent_again(void **state)
{
	struct scene scene;
	scene_start(&scene, *state);
	struct weir_exempt_lists *lists = weir_exempt_lists_new(scene.folder, &scene.log);
	struct weir_exempt_fetch *fetch = weir_exempt_fetch_new(&scene.options);
	scene.server.answer = GOOD("ETag: \"one\"\r\n", "192.0.2.0/24\n");
	weir_exempt_fetch_set(fetch, scene.policy, 60000, &never);
	char copy[WEIR_PATH_BYTES];
	struct weir_error error;
	struct stat before, after;
	assert_int_equal(weir_exempt_list_copy(scene.folder, scene.address, copy, &error), WEIR_OK);
	age_files(scene.folder, 100000);
	assert_int_equal(stat(copy, &before), 0);
	answers(&scene.server, "HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n");
	assert_non_null(strstr(scene.server.request, "\r\nIf-None-Match: \"one\"\r\n"));
	assert_true(has(&scene, lists, "192.0.2.1"));
	assert_int_equal(figure(fetch, "weir_exempt_fetch_failures_total"), 0);
	weir_exempt_fetch_free(fetch);
	/* that it was confirmed is known after a restart, and the file is the one that was read */
	assert_int_equal(stat(copy, &after), 0);
	assert_int_equal(after.st_mtim.tv_sec, before.st_mtim.tv_sec);
	scene.server.answer = "";
	fetch = weir_exempt_fetch_new(&scene.options);
	weir_exempt_fetch_set(fetch, scene.policy, 60000, &never);
	assert_true(figure(fetch, "weir_exempt_fetched_age_seconds") < 50000);
	weir_exempt_fetch_free(fetch);
	age_files(scene.folder, 100000);
	fetch = weir_exempt_fetch_new(&scene.options);
	weir_exempt_fetch_set(fetch, scene.policy, 60000, &never);
	assert_true(figure(fetch, "weir_exempt_fetched_age_seconds") > 50000);
	weir_exempt_fetch_free(fetch);
	weir_exempt_lists_free(lists);
	server_stop(&scene.server);
	scene_end(&scene);
}

/* A list that is cut for a time is as good a list as any: it is taken once nothing else was given for long. */
static void a_list_that_shrinks_must_stay_so(void **state)
{
	struct scene scene;
	scene_start(&scene, *state);
	scene.options.interval_ms = 3600000;
	struct weir_exempt_lists *lists = weir_exempt_lists_new(scene.folder, &scene.log);
	struct weir_exempt_fetch *fetch = weir_exempt_fetch_new(&scene.options);
	scene.server.answer = GOOD("", "192.0.2.1\n192.0.2.2\n192.0.2.3\n192.0.2.4\n192.0.2.5\n192.0.2.6\n");
	weir_exempt_fetch_set(fetch, scene.policy, 60000, &never);
	weir_exempt_fetch_free(fetch);
	scene.server.answer = GOOD("", "192.0.2.1\n192.0.2.2\n");
	fetch = weir_exempt_fetch_new(&scene.options);
	weir_exempt_fetch_set(fetch, scene.policy, 60000, &never);
	answers(&scene.server, GOOD("", "192.0.2.1\n192.0.2.2\n"));
	answers(&scene.server, GOOD("", "192.0.2.1\n192.0.2.2\n"));
	assert_true(said(&scene, "it has 2 networks, and had 6: it is taken if it stays so for 1h"));
	assert_true(has(&scene, lists, "192.0.2.6"));
	weir_exempt_fetch_free(fetch);

	/* and not if answers take turns, however long they do */
	scene.options.interval_ms = PERIOD_MS;
	scene.server.other = GOOD("", "192.0.2.2\n");
	scene.server.answer = GOOD("", "192.0.2.1\n");
	fetch = weir_exempt_fetch_new(&scene.options);
	weir_exempt_fetch_set(fetch, scene.policy, 60000, &never);
	for (int round = 0; round < 10; round++) {
		answers(&scene.server, scene.server.answer);
		assert_true(has(&scene, lists, "192.0.2.6"));
	}
	scene.server.other = NULL;
	while (has(&scene, lists, "192.0.2.6"))
		answers(&scene.server, scene.server.answer);
	assert_true(has(&scene, lists, "192.0.2.1"));
	weir_exempt_fetch_free(fetch);
	weir_exempt_lists_free(lists);
	server_stop(&scene.server);
	scene_end(&scene);
}

/* The copy stays for a start without the server, which waits for nothing; whoever watches sees a new one. */
static void a_start_goes_on_with_the_copy(void **state)
{
	struct scene scene;
	scene_start(&scene, *state);
	struct weir_exempt_lists *lists = weir_exempt_lists_new(scene.folder, &scene.log);
	struct weir_exempt_fetch *fetch = weir_exempt_fetch_new(&scene.options);
	struct weir_exempt_watch watch = {0};
	int64_t now_ms = 100000;
	scene.server.answer = GOOD("", "192.0.2.0/24\n");
	assert_false(has(&scene, lists, "192.0.2.1"));
	weir_exempt_watch_set(&watch, scene.policy, lists, now_ms);
	weir_exempt_fetch_set(fetch, scene.policy, 60000, &never);
	assert_false(weir_exempt_watch_changed(&watch, now_ms += 1000));
	assert_true(weir_exempt_watch_changed(&watch, now_ms += 1000));
	assert_true(has(&scene, lists, "192.0.2.1"));
	weir_exempt_fetch_free(fetch);
	weir_exempt_lists_free(lists);
	weir_exempt_watch_deinit(&watch);
	server_stop(&scene.server);

	lists = weir_exempt_lists_new(scene.folder, &scene.log);
	fetch = weir_exempt_fetch_new(&scene.options);
	weir_exempt_fetch_set(fetch, scene.policy, 60000, &never);
	assert_true(has(&scene, lists, "192.0.2.1"));
	char copy[WEIR_PATH_BYTES];
	struct weir_error error;
	assert_int_equal(weir_exempt_list_copy(scene.folder, scene.address, copy, &error), WEIR_OK);
	assert_int_equal(unlink(copy), 0); /* a copy that somebody deletes is in memory still */
	assert_true(has(&scene, lists, "192.0.2.1"));
	weir_exempt_fetch_free(fetch);
	weir_exempt_lists_free(lists);
	scene_end(&scene);
}

/* A policy without the list ends its fetching, also while an answer is waited for. */
static void a_list_that_is_dropped_is_not_fetched(void **state)
{
	static const struct weir_policy none = {0};
	struct scene scene;
	scene_start(&scene, *state);
	struct weir_exempt_fetch *fetch = weir_exempt_fetch_new(&scene.options);
	scene.server.answer = GOOD("", "192.0.2.0/24\n");
	weir_exempt_fetch_set(fetch, scene.policy, 60000, &never);
	for (int round = 0; round < 50; round++) {
		weir_exempt_fetch_set(fetch, &none, 0, &never);
		assert_int_equal(figure(fetch, "weir_exempt_fetched_lists"), 0);
		weir_exempt_fetch_set(fetch, scene.policy, 60000, &never);
		assert_int_equal(figure(fetch, "weir_exempt_fetched_lists"), 1);
	}
	weir_exempt_fetch_free(fetch);
	server_stop(&scene.server);
	scene_end(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(only_a_list_changes_the_copy, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(what_has_not_changed_is_not_sent_again, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(a_list_that_shrinks_must_stay_so, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(a_start_goes_on_with_the_copy, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(a_list_that_is_dropped_is_not_fetched, scratch_setup, scratch_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
