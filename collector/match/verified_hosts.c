/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses stand in sets of WAYS places by their hash; a new one takes the place of one without a name, or of that which was
 * looked for least lately. A name that was confirmed holds while it is asked for again, and while no server answers: a robot is not counted for that.
 */
#include "collector/match/verified_hosts.h"

#include "collector/match/dns.h"
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/deadline.h"
#include "common/bytes/hash.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { WAYS = 4, SETS = VERIFIED_NAMES_MAX / WAYS };

struct host {
	struct weir_address address;
	char *name;        /* NULL: it has none, or is not known */
	bool used, waits;  /* waits: it is in the queue */
	int64_t until_ms;  /* when it is asked for again */
	int64_t looked_ms; /* for the last time */
};

struct verified_hosts {
	struct verified_hosts_options options;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	bool started, stop;
	struct host (*sets)[WAYS];
	struct weir_address queue[VERIFIED_QUEUE_MAX]; /* a ring */
	uint32_t first, waiting;
	uint64_t asked, confirmed, failed, dropped;
};

struct verified_hosts_options verified_hosts_usual(const char *resolver, const struct weir_log *log)
{
	return (struct verified_hosts_options){.resolver = resolver,
	                                       .period_ms = 50,
	                                       .known_ms = INT64_C(6) * 3600000,
	                                       .nameless_ms = INT64_C(3600000),
	                                       .failed_ms = 60000,
	                                       .patience_ms = 2000,
	                                       .log = log};
}

struct verified_hosts *verified_hosts_new(const struct verified_hosts_options *options)
{
	struct verified_hosts *hosts = weir_alloc(1, sizeof *hosts);
	hosts->options = *options;
	hosts->sets = weir_alloc(SETS, sizeof *hosts->sets);
	pthread_mutex_init(&hosts->lock, NULL);
	weir_condition_init(&hosts->changed);
	return hosts;
}

void verified_hosts_free(struct verified_hosts *hosts)
{
	if (hosts == NULL)
		return;
	pthread_mutex_lock(&hosts->lock);
	hosts->stop = true;
	pthread_cond_broadcast(&hosts->changed);
	pthread_mutex_unlock(&hosts->lock);
	if (hosts->started)
		pthread_join(hosts->thread, NULL);
	for (size_t s = 0; s < SETS; s++)
		for (size_t w = 0; w < WAYS; w++)
			free(hosts->sets[s][w].name);
	free(hosts->sets);
	pthread_cond_destroy(&hosts->changed);
	pthread_mutex_destroy(&hosts->lock);
	free(hosts);
}

static struct host *set_of(struct verified_hosts *hosts, const struct weir_address *address)
{
	return hosts->sets[weir_hash64(address->bytes, sizeof address->bytes) % SETS];
}

static struct host *find(struct verified_hosts *hosts, const struct weir_address *address)
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

static struct host *make(struct verified_hosts *hosts, const struct weir_address *address)
{
	struct host *set = set_of(hosts, address), *oldest = &set[0];
	for (size_t w = 1; w < WAYS; w++)
		if (is_lesser(&set[w], oldest))
			oldest = &set[w];
	free(oldest->name);
	*oldest = (struct host){.address = *address, .used = true};
	return oldest;
}

/* With an answer. The address may have lost its place meanwhile. */
static void take(struct verified_hosts *hosts, const struct weir_address *address, bool said, const char *name)
{
	const struct verified_hosts_options *options = &hosts->options;
	struct host *host = find(hosts, address);
	hosts->asked++;
	hosts->failed += !said;
	hosts->confirmed += said && name[0] != '\0';
	if (host == NULL)
		return;
	host->waits = false;
	if (said) {
		free(host->name);
		host->name = name[0] != '\0' ? weir_copy(name, strlen(name)) : NULL;
	}
	int64_t wait_ms = !said ? options->failed_ms : host->name != NULL ? options->known_ms : options->nameless_ms;
	host->until_ms = weir_monotonic_ms() + wait_ms;
}

/* With the lock held, which it gives back while it waits. */
static void ask_next(struct verified_hosts *hosts, struct dns *dns, struct weir_fault *fault)
{
	char name[WEIR_HOST_MAX_BYTES + 1];
	struct weir_address address = hosts->queue[hosts->first];
	hosts->first = (hosts->first + 1) % VERIFIED_QUEUE_MAX;
	hosts->waiting--;
	pthread_mutex_unlock(&hosts->lock);
	bool said = dns_confirmed_name(dns, &address, name);
	if (said)
		weir_fault_clear(fault, hosts->options.log, "exempt");
	else
		weir_fault_raise(fault, hosts->options.log, "exempt",
		                 "the name server does not answer: robots that are not known yet are counted like anybody");
	pthread_mutex_lock(&hosts->lock);
	take(hosts, &address, said, name);
	struct weir_deadline deadline = weir_deadline_in_ms(hosts->options.period_ms);
	while (!hosts->stop && weir_condition_wait(&hosts->changed, &hosts->lock, &deadline))
		;
}

static void *run(void *context)
{
	struct verified_hosts *hosts = context;
	struct weir_fault fault = {0};
	struct weir_error error;
	struct dns *dns;
	if (dns_new(hosts->options.resolver, hosts->options.patience_ms, &dns, &error) != WEIR_OK) {
		weir_log(hosts->options.log, WEIR_LOG_ERROR, "exempt", "no robot is verified: %s", error.text);
		return NULL;
	}
	pthread_mutex_lock(&hosts->lock);
	while (!hosts->stop) {
		if (hosts->waiting > 0)
			ask_next(hosts, dns, &fault);
		else
			pthread_cond_wait(&hosts->changed, &hosts->lock);
	}
	pthread_mutex_unlock(&hosts->lock);
	dns_free(dns);
	return NULL;
}

/* With the lock held. */
static void enqueue(struct verified_hosts *hosts, const struct weir_address *address, struct host *host)
{
	if (hosts->waiting == VERIFIED_QUEUE_MAX) {
		hosts->dropped++;
		return;
	}
	if (!hosts->started)
		hosts->started = pthread_create(&hosts->thread, NULL, run, hosts) == 0;
	if (host == NULL)
		host = make(hosts, address);
	host->waits = true;
	host->looked_ms = weir_monotonic_ms();
	hosts->queue[(hosts->first + hosts->waiting++) % VERIFIED_QUEUE_MAX] = *address;
	pthread_cond_signal(&hosts->changed);
}

bool verified_hosts_has(struct verified_hosts *hosts, const struct weir_address *address,
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
                   "Those that have a name which leads back to them."},
	[FAILED_TO_ASK] = {"weir_verified_failed_total", WEIR_COUNTER, "addresses", WEIR_NO_LABELS,
                       "Those of which the name servers said nothing: is the resolver reached?"},
	[DROPPED] = {"weir_verified_dropped_total", WEIR_COUNTER, "questions", WEIR_NO_LABELS,
                 "Records whose address was not asked for, as too many wait: somebody claims to be a robot from many "
                 "addresses."},
};

const struct weir_metric_table verified_hosts_metric_table = {metrics, METRIC_COUNT};

void verified_hosts_metrics(struct verified_hosts *hosts, struct weir_text *page)
{
	if (hosts == NULL)
		return;
	pthread_mutex_lock(&hosts->lock);
	const uint64_t figures[METRIC_COUNT] = {hosts->asked, hosts->confirmed, hosts->failed, hosts->dropped};
	pthread_mutex_unlock(&hosts->lock);
	for (int i = 0; i < METRIC_COUNT; i++)
		weir_metrics_counter(page, &metrics[i], figures[i]);
}
