/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses stand in sets of WAYS places by their hash; a new one takes the place of one without a name, or of that which was
 * looked for least lately. A name that was confirmed holds while it is asked for again, and while no server answers: a robot
 * is not counted for that.
 *
 * Several threads ask, as some strangers' servers never answer. No thread is joined, as an answer is waited for in the
 * library: the last who uses the table frees it.
 */
#include "common/exempt/verified_hosts.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/deadline.h"
#include "common/bytes/hash.h"
#include "common/exempt/dns.h"
#include "common/files/durable_file.h"
#include "common/json/json.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { WAYS = 4, SETS = WEIR_VERIFIED_NAMES_MAX / WAYS, SILENT_MAX = 5, DOUBLINGS_MAX = 8, FILE_MAX_BYTES = 8 << 20 };

struct host {
	struct weir_address address;
	char *name;           /* NULL: it has none, or is not known */
	bool used, waits;     /* waits: it is in the queue */
	int64_t until_ms;     /* when it is asked for again */
	int64_t looked_ms;    /* for the last time */
	uint32_t failures;    /* in a row */
	int64_t confirmed_ms; /* wall clock: when its name was */
};

struct weir_verified_hosts {
	struct weir_verified_hosts_options options;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool started, stop;
	uint32_t users;  /* the owner and the threads */
	int64_t next_ms; /* when the next address may be asked for */
	char *resolver;  /* owned: of options */
	char **wanted;   /* domains of robots; owned, as they are */
	size_t wanted_count;
	uint32_t silent; /* addresses in a row for which the server did not answer */
	struct weir_fault fault;
	struct host (*sets)[WAYS];
	struct weir_address queue[WEIR_VERIFIED_QUEUE_MAX]; /* a ring */
	uint32_t first, waiting;
	char *folder; /* owned: of options */
	bool changed_names, saving;
	int64_t save_ms; /* monotonic: before, they are not written again */
	struct weir_fault save_fault;
	uint64_t asked, confirmed, failed, dropped;
};

struct weir_verified_hosts_options weir_verified_hosts_usual(const char *resolver, const struct weir_log *log)
{
	return (struct weir_verified_hosts_options){.resolver = resolver,
	                                            .period_ms = 50,
	                                            .known_ms = INT64_C(6) * 3600000,
	                                            .nameless_ms = INT64_C(3600000),
	                                            .failed_ms = 60000,
	                                            .patience_ms = 1000,
	                                            .log = log};
}

static struct host *set_of(struct weir_verified_hosts *hosts, const struct weir_address *address)
{
	return hosts->sets[weir_hash64(address->bytes, sizeof address->bytes) % SETS];
}

static struct host *find(struct weir_verified_hosts *hosts, const struct weir_address *address)
{
	struct host *set = set_of(hosts, address);
	for (size_t w = 0; w < WAYS; w++)
		if (set[w].used && memcmp(&set[w].address, address, sizeof *address) == 0)
			return &set[w];
	return NULL;
}

/* Whether the place of one is given away before another's: whoever has no name cannot drive out whoever has one. */
static bool is_lesser(const struct host *a, const struct host *b)
{
	if (a->used != b->used)
		return !a->used;
	if ((a->name != NULL) != (b->name != NULL))
		return a->name == NULL;
	return a->looked_ms < b->looked_ms;
}

static struct host *make(struct weir_verified_hosts *hosts, const struct weir_address *address)
{
	struct host *set = set_of(hosts, address), *oldest = &set[0];
	for (size_t w = 1; w < WAYS; w++)
		if (is_lesser(&set[w], oldest))
			oldest = &set[w];
	free(oldest->name);
	*oldest = (struct host){.address = *address, .used = true};
	return oldest;
}

/* ---- what is kept over a restart ---- */

static enum weir_status file_path(const struct weir_verified_hosts *hosts, char path[WEIR_PATH_BYTES],
                                  struct weir_error *error)
{
	return weir_path_format(path, error, "%s/" WEIR_VERIFIED_FILE, hosts->folder);
}

/* One element: [ADDRESS, NAME, the time of its confirmation]. */
static void load_host(struct weir_verified_hosts *hosts, const json_t *element)
{
	struct weir_address address;
	const char *text = json_string_value(json_array_get(element, 0)),
			   *name = json_string_value(json_array_get(element, 1));
	int64_t confirmed_ms = json_integer_value(json_array_get(element, 2)), age_ms = weir_wall_ms() - confirmed_ms;
	if (text == NULL || name == NULL || strlen(name) > WEIR_HOST_MAX_BYTES ||
	    !weir_address_parse(weir_span_of(text), &address) || age_ms < 0 || age_ms > WEIR_VERIFIED_KEPT_MS)
		return;
	struct host *host = make(hosts, &address);
	host->name = weir_copy(name, strlen(name));
	host->confirmed_ms = confirmed_ms;
	host->until_ms = weir_monotonic_ms() + hosts->options.known_ms - age_ms;
}

/* Where there is no such file, or a bad one, names are asked for. */
static void load(struct weir_verified_hosts *hosts)
{
	char path[WEIR_PATH_BYTES], *bytes = NULL;
	size_t length = 0;
	struct weir_error error;
	enum weir_status status = file_path(hosts, path, &error);
	if (status == WEIR_OK)
		status = weir_durable_read(path, FILE_MAX_BYTES, &bytes, &length, &error);
	json_t *root = bytes != NULL ? json_loadb(bytes, length, 0, NULL) : NULL;
	if (status == WEIR_OK && bytes != NULL && !json_is_array(root))
		status = weir_fail(&error, WEIR_INVALID, "%s has no names of robots' hosts", path);
	if (status != WEIR_OK)
		weir_log(hosts->options.log, WEIR_LOG_WARNING, "exempt",
		         "%s: all names are asked for again, and their robots are counted like anybody until then", error.text);
	for (size_t i = 0; i < json_array_size(root); i++)
		load_host(hosts, json_array_get(root, i));
	json_decref(root);
	free(bytes);
}

static char *names_text(const struct weir_verified_hosts *hosts)
{
	json_t *root = json_array();
	char text[WEIR_ADDRESS_TEXT_BYTES];
	for (size_t s = 0; s < SETS; s++)
		for (size_t w = 0; w < WAYS; w++) {
			const struct host *host = &hosts->sets[s][w];
			if (host->name == NULL)
				continue;
			weir_address_format(&host->address, text);
			json_array_append_new(root, json_pack("[s, s, I]", text, host->name, (json_int_t)host->confirmed_ms));
		}
	char *names = json_dumps(root, JSON_COMPACT);
	json_decref(root);
	return names;
}

/* With the lock held, which it gives back while it writes. */
static void save(struct weir_verified_hosts *hosts)
{
	char path[WEIR_PATH_BYTES];
	struct weir_error error;
	if (hosts->folder == NULL || !hosts->changed_names)
		return;
	char *names = names_text(hosts);
	hosts->changed_names = false;
	hosts->saving = true;
	hosts->save_ms = weir_monotonic_ms() + WEIR_VERIFIED_SAVE_MS;
	pthread_mutex_unlock(&hosts->lock);
	enum weir_status status = weir_directory_make(hosts->folder, &error);
	if (status == WEIR_OK)
		status = file_path(hosts, path, &error);
	if (status == WEIR_OK)
		status = weir_durable_write(path, names, strlen(names), &error);
	free(names);
	pthread_mutex_lock(&hosts->lock);
	hosts->saving = false;
	hosts->changed_names |= status != WEIR_OK;
	if (status == WEIR_OK)
		weir_fault_clear(&hosts->save_fault, hosts->options.log, "exempt");
	else
		weir_fault_raise(
			&hosts->save_fault, hosts->options.log, "exempt",
			"cannot keep the names of robots' hosts for a restart: %s. Robots stay exempt while this process runs; after a "
			"restart their names are asked for again. See to the disk of the state directory",
			error.text);
	pthread_cond_broadcast(&hosts->changed);
}

struct weir_verified_hosts *weir_verified_hosts_new(const struct weir_verified_hosts_options *options)
{
	struct weir_verified_hosts *hosts = weir_alloc(1, sizeof *hosts);
	hosts->options = *options;
	hosts->users = 1;
	if (options->resolver != NULL)
		hosts->options.resolver = hosts->resolver = weir_copy(options->resolver, strlen(options->resolver));
	hosts->sets = weir_alloc(SETS, sizeof *hosts->sets);
	pthread_mutex_init(&hosts->lock, NULL);
	weir_condition_init(&hosts->changed);
	if (options->folder != NULL) {
		hosts->options.folder = hosts->folder = weir_copy(options->folder, strlen(options->folder));
		load(hosts);
	}
	return hosts;
}

/* With the lock held, which it gives back for good. */
static void leave(struct weir_verified_hosts *hosts)
{
	bool last = --hosts->users == 0;
	pthread_mutex_unlock(&hosts->lock);
	if (!last)
		return;
	for (size_t s = 0; s < SETS; s++)
		for (size_t w = 0; w < WAYS; w++)
			free(hosts->sets[s][w].name);
	for (size_t i = 0; i < hosts->wanted_count; i++)
		free(hosts->wanted[i]);
	free(hosts->wanted);
	free(hosts->resolver);
	free(hosts->folder);
	free(hosts->sets);
	pthread_cond_destroy(&hosts->changed);
	pthread_mutex_destroy(&hosts->lock);
	free(hosts);
}

void weir_verified_hosts_free(struct weir_verified_hosts *hosts)
{
	if (hosts == NULL)
		return;
	pthread_mutex_lock(&hosts->lock);
	while (hosts->saving)
		pthread_cond_wait(&hosts->changed, &hosts->lock);
	save(hosts);
	hosts->stop = true;
	pthread_cond_broadcast(&hosts->changed);
	leave(hosts);
}

static bool is_wanted(const struct weir_verified_hosts *hosts, const char *name)
{
	for (size_t i = 0; i < hosts->wanted_count; i++)
		if (weir_verified_host(hosts->wanted[i], name))
			return true;
	return false;
}

/* A weir_dns_wanted. Once it is to stop, nothing more is asked. */
static bool wants(void *context, const char *name)
{
	struct weir_verified_hosts *hosts = context;
	pthread_mutex_lock(&hosts->lock);
	bool wanted = !hosts->stop && is_wanted(hosts, name);
	pthread_mutex_unlock(&hosts->lock);
	return wanted;
}

/* Until a host is asked for again. */
static int64_t wait_ms(const struct weir_verified_hosts *hosts, const struct host *host)
{
	uint32_t doublings = host->failures > DOUBLINGS_MAX ? DOUBLINGS_MAX : host->failures - 1;
	if (host->failures > 0)
		return hosts->options.failed_ms << doublings;
	return host->name != NULL ? hosts->options.known_ms : hosts->options.nameless_ms;
}

/* With the lock held. */
static void take(struct weir_verified_hosts *hosts, const struct weir_address *address, bool said, const char *name)
{
	struct host *host = find(hosts, address);
	hosts->asked++;
	hosts->failed += !said;
	hosts->confirmed += said && name[0] != '\0';
	if (host == NULL)
		return;
	host->waits = false;
	host->failures = said ? 0 : host->failures + 1;
	if (said) {
		bool had = host->name != NULL;
		free(host->name);
		host->name = name[0] != '\0' ? weir_copy(name, strlen(name)) : NULL;
		host->confirmed_ms = weir_wall_ms();
		hosts->changed_names |= had || host->name != NULL;
	}
	host->until_ms = weir_monotonic_ms() + wait_ms(hosts, host);
}

/*
 * With the lock held, which it gives back while it asks. Some addresses' servers never answer, which is nobody's fault here:
 * only if it is so for one after the other, the name server is asked for what it knows itself.
 */
static void tell_silence(struct weir_verified_hosts *hosts, struct weir_dns *dns, enum weir_dns_outcome outcome)
{
	hosts->silent = outcome == WEIR_DNS_SILENT ? hosts->silent + 1 : 0;
	if (hosts->silent >= SILENT_MAX && !hosts->stop) {
		pthread_mutex_unlock(&hosts->lock);
		bool away = weir_dns_probe(dns) == WEIR_DNS_SILENT;
		pthread_mutex_lock(&hosts->lock);
		hosts->silent = away ? hosts->silent : 0;
	}
	if (hosts->stop)
		return; /* whose log it was may be gone */
	if (hosts->silent >= SILENT_MAX)
		weir_fault_raise(
			&hosts->fault, hosts->options.log, "exempt",
			"the name server does not answer. Robots that are not known yet are counted like anybody, and may be "
			"blocked. Asking on: see to the name server, or name another in collector.resolver");
	else if (hosts->silent == 0)
		weir_fault_clear(&hosts->fault, hosts->options.log, "exempt");
}

/* With the lock held, which it gives back while it waits. */
static void ask_next(struct weir_verified_hosts *hosts, struct weir_dns *dns)
{
	char name[WEIR_HOST_MAX_BYTES + 1];
	struct weir_address address = hosts->queue[hosts->first];
	hosts->first = (hosts->first + 1) % WEIR_VERIFIED_QUEUE_MAX;
	hosts->waiting--;
	hosts->next_ms = weir_monotonic_ms() + hosts->options.period_ms;
	pthread_mutex_unlock(&hosts->lock);
	enum weir_dns_outcome outcome = weir_dns_confirmed_name(dns, &address, wants, hosts, name);
	pthread_mutex_lock(&hosts->lock);
	if (hosts->stop)
		return;
	take(hosts, &address, outcome == WEIR_DNS_SAID, name);
	if (!hosts->saving && weir_monotonic_ms() >= hosts->save_ms)
		save(hosts);
	tell_silence(hosts, dns, outcome);
}

static void *run(void *context)
{
	struct weir_verified_hosts *hosts = context;
	struct weir_error error;
	struct weir_dns *dns = NULL;
	enum weir_status status = weir_dns_new(hosts->options.resolver, hosts->options.patience_ms, &dns, &error);
	pthread_mutex_lock(&hosts->lock);
	if (status != WEIR_OK && !hosts->stop)
		weir_fault_raise_at(&hosts->fault, hosts->options.log, WEIR_LOG_ERROR, "exempt",
		                    "no robot is verified: %s. All are counted like anybody, and may be blocked. Name a name "
		                    "server in collector.resolver, and restart this process",
		                    error.text);
	while (status == WEIR_OK && !hosts->stop) {
		int64_t early_ms = hosts->next_ms - weir_monotonic_ms();
		struct weir_deadline deadline = weir_deadline_in_ms(early_ms);
		if (hosts->waiting == 0)
			pthread_cond_wait(&hosts->changed, &hosts->lock);
		else if (early_ms > 0)
			(void)weir_condition_wait(&hosts->changed, &hosts->lock, &deadline);
		else
			ask_next(hosts, dns);
	}
	leave(hosts);
	weir_dns_free(dns);
	return NULL;
}

/* With the lock held. Where not all of them can be started, those that can do. */
static void start(struct weir_verified_hosts *hosts)
{
	pthread_t thread;
	hosts->started = true;
	for (int i = 0; i < WEIR_VERIFIED_THREADS; i++)
		if (pthread_create(&thread, NULL, run, hosts) == 0) {
			hosts->users++;
			pthread_detach(thread);
		}
}

/* With the lock held. */
static void enqueue(struct weir_verified_hosts *hosts, const struct weir_address *address, struct host *host)
{
	if (hosts->waiting == WEIR_VERIFIED_QUEUE_MAX) {
		hosts->dropped++;
		return;
	}
	if (!hosts->started)
		start(hosts);
	if (host == NULL)
		host = make(hosts, address);
	host->waits = true;
	host->looked_ms = weir_monotonic_ms();
	hosts->queue[(hosts->first + hosts->waiting++) % WEIR_VERIFIED_QUEUE_MAX] = *address;
	pthread_cond_broadcast(&hosts->changed);
}

/* With the lock held. What had no name may have one among those that are wanted now. */
static void want(struct weir_verified_hosts *hosts, const char *domain)
{
	hosts->wanted = weir_realloc(hosts->wanted, hosts->wanted_count + 1, sizeof(char *));
	hosts->wanted[hosts->wanted_count++] = weir_copy(domain, strlen(domain));
	for (size_t s = 0; s < SETS; s++)
		for (size_t w = 0; w < WAYS; w++)
			if (hosts->sets[s][w].name == NULL && hosts->sets[s][w].failures == 0)
				hosts->sets[s][w].until_ms = 0;
}

void weir_verified_hosts_want(struct weir_verified_hosts *hosts, const struct weir_verified *verified)
{
	if (hosts == NULL)
		return;
	pthread_mutex_lock(&hosts->lock);
	for (uint32_t i = 0; i < verified->host_count; i++) {
		bool known = false;
		for (size_t k = 0; k < hosts->wanted_count; k++)
			known |= strcmp(hosts->wanted[k], verified->hosts[i]) == 0;
		if (!known)
			want(hosts, verified->hosts[i]);
	}
	pthread_mutex_unlock(&hosts->lock);
}

bool weir_verified_hosts_has(struct weir_verified_hosts *hosts, const struct weir_address *address,
                             const struct weir_verified *verified)
{
	if (hosts == NULL)
		return false;
	int64_t now_ms = weir_monotonic_ms();
	pthread_mutex_lock(&hosts->lock);
	struct host *host = find(hosts, address);
	bool has = host != NULL && host->name != NULL && weir_verified_is_host(verified, host->name);
	if (host != NULL)
		host->looked_ms = now_ms;
	if (host == NULL || (!host->waits && now_ms >= host->until_ms))
		enqueue(hosts, address, host);
	pthread_mutex_unlock(&hosts->lock);
	return has;
}

enum { ASKED, CONFIRMED, FAILED_TO_ASK, DROPPED, METRIC_COUNT };

static const struct weir_metric metrics[METRIC_COUNT] = {
	[ASKED] =
		{"weir_verified_asked_total", WEIR_COUNTER, "addresses", WEIR_NO_LABELS,
         "Addresses whose names were asked for, as their user agents claim a robot that is exempt if \"verified\"."},
	[CONFIRMED] = {"weir_verified_confirmed_total", WEIR_COUNTER, "addresses", WEIR_NO_LABELS,
                   "Those that have a name of a robot's hosts which leads back to them."},
	[FAILED_TO_ASK] = {"weir_verified_failed_total", WEIR_COUNTER, "addresses", WEIR_NO_LABELS,
                       "Those of which the name servers said nothing: is the resolver reached?"},
	[DROPPED] = {"weir_verified_dropped_total", WEIR_COUNTER, "questions", WEIR_NO_LABELS,
                 "Records whose address was not asked for, as too many wait: somebody claims to be a robot from many "
                 "addresses."},
};

const struct weir_metric_table weir_verified_hosts_metric_table = {metrics, METRIC_COUNT};

void weir_verified_hosts_metrics(struct weir_verified_hosts *hosts, struct weir_text *page)
{
	uint64_t asked = 0, confirmed = 0, failed = 0, dropped = 0;
	if (hosts != NULL) {
		pthread_mutex_lock(&hosts->lock);
		asked = hosts->asked;
		confirmed = hosts->confirmed;
		failed = hosts->failed;
		dropped = hosts->dropped;
		pthread_mutex_unlock(&hosts->lock);
	}
	weir_metrics_counter(page, &metrics[ASKED], asked);
	weir_metrics_counter(page, &metrics[CONFIRMED], confirmed);
	weir_metrics_counter(page, &metrics[FAILED_TO_ASK], failed);
	weir_metrics_counter(page, &metrics[DROPPED], dropped);
}
