/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread asks for one list after the other. Its entries are under the lock, but for the answer that it waits for and
 * the copy that it writes: a list that is dropped meanwhile is marked, and freed afterwards.
 */
#include "common/exempt/exempt_fetch.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/deadline.h"
#include "common/bytes/hash.h"
#include "common/bytes/http_address.h"
#include "common/exempt/exempt_body.h"
#include "common/files/durable_file.h"
#include "common/files/file_owner.h"
#include "common/http_client/http_client.h"
#include "common/json/units.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { CONNECT_MS = 5000, ANSWER_MS = 30000, LOOK_MS = 100, IDLE_MS = 3600000 };

#define NEVER_MS INT64_MAX

struct fetched_list {
	char *address;
	char *shown; /* without an account and a query, which may be secrets */
	char path[WEIR_PATH_BYTES];
	char confirmed
		[WEIR_PATH_BYTES]; /* an empty file: when the copy was confirmed. The copy's own times say that it is another */
	char etag[WEIR_HTTP_ETAG_BYTES];
	int64_t due_ms;      /* monotonic */
	int64_t good_ms;     /* wall clock: when the copy was last known to be what the server has; 0: there is none */
	uint32_t networks;   /* of the copy */
	uint64_t doubtful;   /* hash of an answer with far fewer; 0: there is none */
	int64_t doubted_ms;  /* monotonic: since when no other one came */
	bool asked, dropped; /* asked: at least once */
	struct weir_fault fault;
};

struct weir_exempt_fetch {
	struct weir_exempt_fetch_options options;
	struct weir_http_client *client;
	_Atomic bool stop;
	bool started;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct fetched_list **lists;
	size_t count;
	struct fetched_list *busy; /* that it waits for, or whose copy it writes */
	uint64_t failures;         /* of all lists, dropped ones, too */
};

static void free_list(struct fetched_list *list)
{
	free(list->address);
	free(list->shown);
	free(list);
}

static int64_t modified_ms(const struct stat *about)
{
	return (int64_t)about->st_mtim.tv_sec * 1000 + about->st_mtim.tv_nsec / 1000000;
}

/* The copy that was left by a process before. */
static void find_copy(struct fetched_list *list)
{
	struct stat about;
	struct weir_error ignored; /* there is none that can be used */
	char *bytes = NULL;
	size_t length = 0;
	if (stat(list->path, &about) != 0 ||
	    weir_durable_read(list->path, (size_t)WEIR_EXEMPT_BODY_NETWORKS_MAX * WEIR_NETWORK_TEXT_BYTES, &bytes, &length,
	                      &ignored) != WEIR_OK)
		return;
	for (size_t i = 0; i < length; i++)
		list->networks += bytes[i] == '\n';
	free(bytes);
	list->good_ms = modified_ms(&about);
	if (stat(list->confirmed, &about) == 0 && modified_ms(&about) > list->good_ms)
		list->good_ms = modified_ms(&about);
}

static struct fetched_list *new_list(const struct weir_exempt_fetch *fetch, const char *address)
{
	struct fetched_list *list = weir_alloc(1, sizeof *list);
	struct weir_error ignored; /* a path that is too long cannot be written, and that is told then */
	list->address = weir_copy(address, strlen(address));
	struct weir_text shown = {0};
	weir_http_address_show(address, &shown);
	list->shown = weir_copy(shown.at, shown.length);
	weir_text_deinit(&shown);
	if (weir_exempt_list_copy(fetch->options.folder, address, list->path, &ignored) == WEIR_OK &&
	    weir_path_format(list->confirmed, &ignored, "%s.confirmed", list->path) == WEIR_OK)
		find_copy(list);
	if (fetch->options.once && list->good_ms != 0)
		list->due_ms = NEVER_MS;
	return list;
}

/* What is kept meanwhile, in words. */
static void put_copy(const struct fetched_list *list, char words[96])
{
	struct tm parts;
	char day[32] = "";
	time_t seconds = (time_t)(list->good_ms / 1000);
	if (list->good_ms == 0 || gmtime_r(&seconds, &parts) == NULL)
		snprintf(words, 96, "there is no copy yet, so nobody is exempt by it");
	else if (strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%SZ", &parts) > 0)
		snprintf(words, 96, "the copy of %s stays in use", day);
}

static void fail(struct weir_exempt_fetch *fetch, struct fetched_list *list, const char *why)
{
	char copy[96] = "";
	put_copy(list, copy);
	fetch->failures++;
	weir_fault_raise(
		&list->fault, fetch->options.log, "exempt",
		"cannot fetch the list %s: %s. Trying again by itself; %s. See whether its server answers this machine",
		list->shown, why, copy);
}

/* Writes a good list where it differs from the copy. Without the lock: a disk may be slow, and metrics do not wait for it. */
static enum weir_status keep(struct weir_exempt_fetch *fetch, struct fetched_list *list,
                             const struct weir_exempt_body *body, struct weir_error *error)
{
	char *before = NULL;
	size_t length = 0;
	enum weir_status status = weir_directory_make(fetch->options.folder, error);
	if (status == WEIR_OK)
		status = weir_durable_read(list->path, (size_t)WEIR_EXEMPT_BODY_NETWORKS_MAX * WEIR_NETWORK_TEXT_BYTES, &before,
		                           &length, error);
	bool same = before != NULL && length == body->lines.length && memcmp(before, body->lines.at, length) == 0;
	free(before);
	if (status != WEIR_OK || same)
		return status;
	status = weir_durable_write(list->path, body->lines.at, body->lines.length, error);
	if (status == WEIR_OK)
		weir_log(fetch->options.log, WEIR_LOG_INFO, "exempt", "the list %s has %u networks", list->shown,
		         body->networks);
	if (status == WEIR_OK && body->bad > 0)
		weir_log(fetch->options.log, WEIR_LOG_WARNING, "exempt", "%u entries of the list %s are left out: %.*s",
		         body->bad, list->shown, (int)body->mistakes.length, body->mistakes.at);
	return status;
}

/* With the lock held, which it gives back meanwhile; the list is the busy one, so nobody frees it. */
static enum weir_status keep_unlocked(struct weir_exempt_fetch *fetch, struct fetched_list *list,
                                      const struct weir_exempt_body *body, struct weir_error *error)
{
	pthread_mutex_unlock(&fetch->lock);
	enum weir_status status = keep(fetch, list, body, error);
	pthread_mutex_lock(&fetch->lock);
	return status;
}

static int64_t doubt_ms(const struct weir_exempt_fetch *fetch)
{
	return fetch->options.interval_ms < WEIR_EXEMPT_FETCH_DOUBT_MS ? fetch->options.interval_ms
	                                                               : WEIR_EXEMPT_FETCH_DOUBT_MS;
}

/* The copy is what the server has. A restart that cannot see when shows its age as more than it is. */
static void confirm(struct weir_exempt_fetch *fetch, struct fetched_list *list)
{
	int file = weir_file_make(list->confirmed, O_WRONLY, 0640);
	list->good_ms = weir_wall_ms();
	if (file >= 0) {
		(void)futimens(file, NULL);
		close(file);
	}
	weir_fault_clear(&list->fault, fetch->options.log, "exempt");
}

/* Whether a list that lost more than half of its networks waits: until the server has given nothing but the same for long. */
static bool is_doubtful(const struct weir_exempt_fetch *fetch, struct fetched_list *list,
                        const struct weir_exempt_body *body)
{
	int64_t now_ms = weir_monotonic_ms();
	uint64_t hash = weir_hash64(body->lines.at, body->lines.length) | 1;
	bool fewer = list->good_ms != 0 && body->networks < list->networks / 2;
	if (fewer && hash != list->doubtful)
		list->doubted_ms = now_ms;
	list->doubtful = fewer ? hash : 0;
	return fewer && (now_ms == list->doubted_ms || now_ms - list->doubted_ms < doubt_ms(fetch));
}

/* A new list, or one that is none. */
static void take_body(struct weir_exempt_fetch *fetch, struct fetched_list *list, const struct weir_http_answer *answer)
{
	struct weir_exempt_body body = {0};
	struct weir_error error;
	char words[WEIR_ERROR_TEXT_BYTES + 32], buffer[24];
	enum weir_status status = weir_exempt_body_read(weir_text_span(&answer->body), &body, &error);
	if (status != WEIR_OK) {
		list->doubtful = 0;
		snprintf(words, sizeof words, "the answer %s", error.text);
		fail(fetch, list, words);
	} else if (is_doubtful(fetch, list, &body)) {
		snprintf(words, sizeof words, "it has %u networks, and had %u: it is taken if it stays so for %s",
		         body.networks, list->networks, weir_format_duration(doubt_ms(fetch), buffer, sizeof buffer));
		fail(fetch, list, words);
	} else if (keep_unlocked(fetch, list, &body, &error) != WEIR_OK) {
		fail(fetch, list, error.text);
	} else {
		list->networks = body.networks;
		list->doubtful = 0;
		snprintf(list->etag, sizeof list->etag, "%s", answer->etag);
		confirm(fetch, list);
	}
	weir_exempt_body_deinit(&body);
}

static void take_answer(struct weir_exempt_fetch *fetch, struct fetched_list *list,
                        const struct weir_http_answer *answer)
{
	char words[96];
	if (answer->code == 200) {
		take_body(fetch, list, answer);
		return;
	}
	list->doubtful = 0;
	if (answer->code == 304 && list->good_ms != 0) {
		confirm(fetch, list);
	} else {
		snprintf(words, sizeof words, "the server answers %ld%s", answer->code,
		         answer->code / 100 == 3 ? ": it is elsewhere, so name that address" : "");
		fail(fetch, list, words);
	}
}

/* With the lock held, which it gives back while it waits. */
static void ask(struct weir_exempt_fetch *fetch, struct fetched_list *list)
{
	char known[WEIR_HTTP_ETAG_BYTES + 32];
	struct weir_http_answer answer = {0};
	struct weir_error error;
	snprintf(known, sizeof known, "If-None-Match: %s", list->etag);
	bool has = list->etag[0] != '\0' && access(list->path, R_OK) == 0;
	const struct weir_http_call call = {.address = list->address, .headers = {has ? known : NULL}};
	fetch->busy = list;
	pthread_mutex_unlock(&fetch->lock);
	enum weir_status status = weir_http_client_call(fetch->client, &call, &answer, &error);
	pthread_mutex_lock(&fetch->lock);
	uint64_t failures = fetch->failures;
	if (!list->dropped && !atomic_load(&fetch->stop)) {
		if (status == WEIR_OK)
			take_answer(fetch, list, &answer);
		else
			fail(fetch, list, error.text);
	}
	fetch->busy = NULL;
	const struct weir_exempt_fetch_options *options = &fetch->options;
	int64_t wait_ms = options->interval_ms;
	if (fetch->failures > failures && wait_ms > options->again_ms)
		wait_ms = options->again_ms > answer.retry_after_ms ? options->again_ms : answer.retry_after_ms;
	list->due_ms = options->once ? NEVER_MS : weir_monotonic_ms() + wait_ms;
	list->asked = true;
	weir_text_deinit(&answer.body);
	if (list->dropped)
		free_list(list);
	pthread_cond_broadcast(&fetch->changed);
}

static struct fetched_list *next_due(const struct weir_exempt_fetch *fetch)
{
	struct fetched_list *next = NULL;
	for (size_t i = 0; i < fetch->count; i++)
		if (next == NULL || fetch->lists[i]->due_ms < next->due_ms)
			next = fetch->lists[i];
	return next;
}

static void *run(void *context)
{
	struct weir_exempt_fetch *fetch = context;
	pthread_mutex_lock(&fetch->lock);
	while (!atomic_load(&fetch->stop)) {
		struct fetched_list *next = next_due(fetch);
		int64_t wait_ms = next != NULL ? next->due_ms - weir_monotonic_ms() : IDLE_MS;
		if (wait_ms > IDLE_MS)
			wait_ms = IDLE_MS;
		if (wait_ms <= 0) {
			ask(fetch, next);
			continue;
		}
		struct weir_deadline deadline = weir_deadline_in_ms(wait_ms);
		(void)weir_condition_wait(&fetch->changed, &fetch->lock, &deadline);
	}
	pthread_mutex_unlock(&fetch->lock);
	return NULL;
}

void weir_exempt_open(const struct weir_exempt_kept_options *options, struct weir_exempt_lists **lists,
                      struct weir_exempt_fetch **fetch)
{
	*lists = weir_exempt_lists_new(options->folder, options->log);
	*fetch = NULL;
	if (options->folder == NULL)
		return;
	const struct weir_exempt_fetch_options fetching = {.folder = options->folder,
	                                                   .interval_ms = options->interval_ms,
	                                                   .again_ms = WEIR_EXEMPT_FETCH_AGAIN_MS,
	                                                   .once = options->once,
	                                                   .log = options->log};
	const struct weir_verified_hosts_options hosts = weir_verified_hosts_usual(options->resolver, options->log);
	*fetch = weir_exempt_fetch_new(&fetching);
	if (!options->once)
		weir_exempt_lists_verify(*lists, &hosts);
}

struct weir_exempt_fetch *weir_exempt_fetch_new(const struct weir_exempt_fetch_options *options)
{
	struct weir_exempt_fetch *fetch = weir_alloc(1, sizeof *fetch);
	fetch->options = *options;
	pthread_mutex_init(&fetch->lock, NULL);
	weir_condition_init(&fetch->changed);
	return fetch;
}

/* With the lock held. What fails is tried again with the next policy. */
static void start(struct weir_exempt_fetch *fetch)
{
	const struct weir_http_client_options client = {.connect_ms = CONNECT_MS,
	                                                .answer_ms = ANSWER_MS,
	                                                .body_most_bytes = WEIR_EXEMPT_BODY_MAX_BYTES,
	                                                .agent = "weir",
	                                                .stop = &fetch->stop};
	struct weir_error error;
	enum weir_status status = weir_http_client_new(&client, &fetch->client, &error);
	if (status == WEIR_OK && pthread_create(&fetch->thread, NULL, run, fetch) != 0) {
		status = weir_fail(&error, WEIR_IO, "cannot start a thread");
		weir_http_client_free(fetch->client);
	}
	fetch->started = status == WEIR_OK;
	if (status != WEIR_OK)
		weir_log(fetch->options.log, WEIR_LOG_ERROR, "exempt", "no list is fetched: %s", error.text);
}

void weir_exempt_fetch_free(struct weir_exempt_fetch *fetch)
{
	if (fetch == NULL)
		return;
	pthread_mutex_lock(&fetch->lock);
	atomic_store(&fetch->stop, true);
	pthread_cond_broadcast(&fetch->changed);
	pthread_mutex_unlock(&fetch->lock);
	if (fetch->started) {
		pthread_join(fetch->thread, NULL);
		weir_http_client_free(fetch->client);
	}
	for (size_t i = 0; i < fetch->count; i++)
		free_list(fetch->lists[i]);
	free(fetch->lists);
	pthread_cond_destroy(&fetch->changed);
	pthread_mutex_destroy(&fetch->lock);
	free(fetch);
}

/* Moves the list of an address from those of before, or makes one. */
static void put_list(struct weir_exempt_fetch *fetch, const char *address, struct fetched_list **before, size_t count)
{
	struct fetched_list *found = NULL;
	for (size_t i = 0; i < fetch->count; i++)
		if (strcmp(fetch->lists[i]->address, address) == 0)
			return;
	for (size_t i = 0; i < count && found == NULL; i++)
		if (before[i] != NULL && strcmp(before[i]->address, address) == 0) {
			found = before[i];
			before[i] = NULL;
		}
	fetch->lists = weir_realloc(fetch->lists, fetch->count + 1, sizeof(struct fetched_list *));
	fetch->lists[fetch->count++] = found != NULL ? found : new_list(fetch, address);
}

static bool all_asked(const struct weir_exempt_fetch *fetch)
{
	for (size_t i = 0; i < fetch->count; i++)
		if (!fetch->lists[i]->asked && fetch->lists[i]->good_ms == 0)
			return false;
	return true;
}

void weir_exempt_fetch_set(struct weir_exempt_fetch *fetch, const struct weir_policy *policy, int64_t wait_ms,
                           const _Atomic bool *stop)
{
	if (fetch == NULL)
		return;
	pthread_mutex_lock(&fetch->lock);
	struct fetched_list **before = fetch->lists;
	size_t count = fetch->count;
	fetch->lists = NULL;
	fetch->count = 0;
	for (uint32_t z = 0; z < policy->zone_count; z++)
		for (uint32_t i = 0; i < policy->zones[z].exempt_list_count; i++)
			if (weir_http_address_meant(policy->zones[z].exempt_lists[i]))
				put_list(fetch, policy->zones[z].exempt_lists[i], before, count);
	for (size_t i = 0; i < count; i++) {
		if (before[i] != NULL && before[i] == fetch->busy)
			before[i]->dropped = true;
		else if (before[i] != NULL)
			free_list(before[i]);
	}
	free(before);
	if (fetch->count > 0 && !fetch->started)
		start(fetch);
	pthread_cond_broadcast(&fetch->changed);
	int64_t end_ms = weir_monotonic_ms() + wait_ms;
	while (fetch->started && !all_asked(fetch) && !atomic_load(stop) && weir_monotonic_ms() < end_ms) {
		struct weir_deadline deadline = weir_deadline_in_ms(LOOK_MS);
		(void)weir_condition_wait(&fetch->changed, &fetch->lock, &deadline);
	}
	pthread_mutex_unlock(&fetch->lock);
}

enum { LISTS, MISSING, AGE, FAILURES, METRIC_COUNT };

static const struct weir_metric metrics[METRIC_COUNT] = {
	[LISTS] = {"weir_exempt_fetched_lists", WEIR_GAUGE, "lists", WEIR_NO_LABELS,
               "Lists of \"exempt\" that are fetched from other servers."},
	[MISSING] = {"weir_exempt_fetched_missing", WEIR_GAUGE, "lists", WEIR_NO_LABELS,
                 "Those that were never fetched, so that they exempt nobody: see the log."},
	[AGE] = {"weir_exempt_fetched_age_seconds", WEIR_GAUGE, "seconds", WEIR_NO_LABELS,
             "How long ago a server confirmed the list for which that is longest; above twice "
             "`collector.list_interval`, its server fails: see the log."},
	[FAILURES] = {"weir_exempt_fetch_failures_total", WEIR_COUNTER, "failures", WEIR_NO_LABELS,
                  "Answers that did not come or were no list; the copies of before stayed in use."},
};

const struct weir_metric_table weir_exempt_fetch_metric_table = {metrics, METRIC_COUNT};

void weir_exempt_fetch_metrics(struct weir_exempt_fetch *fetch, struct weir_text *page)
{
	uint64_t missing = 0, failures = 0;
	int64_t now_ms = weir_wall_ms(), age_ms = 0;
	size_t count = 0;
	if (fetch != NULL) {
		pthread_mutex_lock(&fetch->lock);
		count = fetch->count;
		for (size_t i = 0; i < count; i++) {
			const struct fetched_list *list = fetch->lists[i];
			missing += list->good_ms == 0;
			if (list->good_ms != 0 && now_ms - list->good_ms > age_ms)
				age_ms = now_ms - list->good_ms;
		}
		failures = fetch->failures;
		pthread_mutex_unlock(&fetch->lock);
	}
	weir_metrics_gauge(page, &metrics[LISTS], (double)count);
	weir_metrics_gauge(page, &metrics[MISSING], (double)missing);
	weir_metrics_gauge(page, &metrics[AGE], (double)age_ms / 1000);
	weir_metrics_counter(page, &metrics[FAILURES], failures);
}
