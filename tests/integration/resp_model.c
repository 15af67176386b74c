/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The surface of checks over the simplest judge there can be: for real clients to talk to, without a log or a bucket of
 * weir's behind it.
 *
 *     resp_model CONFIG [now|later|away|null|unsafe] [connections=N] [idle=MS] [stall=MS] [login=MS] [user=NAME:PASSWORD]... [certificate=F key=F]
 *
 * Listens on a free port of 127.0.0.1, which it prints. Zones are those of CONFIG, each with one limit: gcra, or a sliding
 * window. now: answers at once; later: after the turn, those of a group in reverse order; away: nothing can be judged;
 * null: all passes, nothing is counted; unsafe: as now, but nothing durable is acknowledged. unavailable=allow|deny is
 * checks.on_unavailable. Ends with its standard input.
 */
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/bytes/hash.h"
#include "common/config/config.h"
#include "limiter/check/resp/resp_server.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUCKETS = 1 << 16, PENDING_MAX = 1 << 16, USERS_MAX = 8 };

enum mode { NOW, LATER, AWAY, NOTHING, UNSAFE };

struct bucket {
	struct bucket *next;
	uint32_t zone;
	char *key;
	int64_t full_at; /* gcra: when nothing is left of it, in ms times rate */
	int64_t *times;  /* window: of what passed, oldest first */
	size_t time_count;
};

struct model {
	struct weir_policy *policy;
	enum mode mode;
	struct bucket *buckets[BUCKETS];
	struct check_answer pending[PENDING_MAX];
	uint32_t pending_count;
};

static struct bucket *find_bucket(struct model *model, uint32_t zone, struct weir_span key)
{
	struct bucket **place = &model->buckets[(weir_hash64(key.at, key.length) + zone) % BUCKETS];
	for (struct bucket *at = *place; at != NULL; at = at->next)
		if (at->zone == zone && weir_span_equal(weir_span_of(at->key), key))
			return at;
	struct bucket *made = weir_alloc(1, sizeof *made);
	*made = (struct bucket){.next = *place, .zone = zone, .key = weir_copy(key.at, key.length), .full_at = INT64_MIN};
	return *place = made;
}

static int64_t up(int64_t amount, int64_t rate)
{
	return (amount + rate - 1) / rate;
}

/* Times are in ms times rate: one costs the window. */
static void judge_gcra(const struct weir_limit *limit, struct bucket *bucket, int64_t now_ms, int64_t cost, bool peek,
                       struct check_answer *answer)
{
	int64_t now = now_ms * limit->rate, room = (limit->burst + 1) * limit->window_ms;
	int64_t base = bucket->full_at > now ? bucket->full_at : now, next = base + cost * limit->window_ms;
	bool passes = next - now <= room;
	if (passes && !peek)
		bucket->full_at = base = next;
	answer->outcome = passes ? CHECK_PASSED : CHECK_BLOCKED;
	answer->limit = limit->burst + 1;
	answer->remaining = (room - (base - now)) / limit->window_ms;
	answer->retry_after_ms = passes || cost > limit->burst + 1 ? -1 : up(next - now - room, limit->rate);
	answer->reset_after_ms = up(base - now, limit->rate);
}

static void judge_window(const struct weir_limit *limit, struct bucket *bucket, int64_t now_ms, int64_t cost, bool peek,
                         struct check_answer *answer)
{
	size_t old = 0;
	while (old < bucket->time_count && bucket->times[old] <= now_ms - limit->window_ms)
		old++;
	bucket->time_count -= old;
	if (old > 0)
		memmove(bucket->times, bucket->times + old, bucket->time_count * sizeof *bucket->times);
	int64_t held = (int64_t)bucket->time_count;
	bool passes = held + cost <= limit->rate;
	if (passes && !peek) {
		bucket->times = weir_realloc(bucket->times, bucket->time_count + (size_t)cost + 1, sizeof *bucket->times);
		for (int64_t i = 0; i < cost; i++)
			bucket->times[bucket->time_count++] = now_ms;
		held += cost;
	}
	answer->outcome = passes ? CHECK_PASSED : CHECK_BLOCKED;
	answer->limit = limit->rate;
	answer->remaining = limit->rate - held;
	answer->retry_after_ms =
		passes || cost > limit->rate ? -1 : bucket->times[held + cost - limit->rate - 1] + limit->window_ms - now_ms;
	answer->reset_after_ms = held == 0 ? 0 : bucket->times[held - 1] + limit->window_ms - now_ms;
}

static struct check_answer judge(struct model *model, const struct check_ask *ask)
{
	struct check_answer answer = {.outcome = CHECK_NO_ZONE, .ticket = ask->ticket};
	const struct weir_zone *zone = weir_policy_zone_named(model->policy, ask->zone);
	if (model->mode == AWAY)
		return (struct check_answer){.outcome = CHECK_UNAVAILABLE, .why = CHECK_WHY_LOADING, .ticket = ask->ticket};
	if (zone == NULL)
		return answer;
	if (model->mode == UNSAFE && ask->durable)
		return (struct check_answer){
			.outcome = CHECK_UNAVAILABLE, .why = CHECK_WHY_UNACKNOWLEDGED, .ticket = ask->ticket};
	bool peek = ask->peek || ask->cost == 0;
	int64_t cost = ask->cost == 0 && !ask->peek ? 1 : ask->cost;
	struct bucket *bucket = find_bucket(model, zone->id, ask->key);
	bool is_gcra = zone->limits[0].algorithm == weir_algorithm_named("gcra");
	if (ask->cost == 0)
		cost = is_gcra ? 0 : cost;
	(is_gcra ? judge_gcra : judge_window)(&zone->limits[0], bucket, weir_wall_ms(), cost, peek, &answer);
	return answer;
}

static void ask(void *context, const struct check_ask *asks, uint32_t count, struct check_answer *answers)
{
	struct model *model = context;
	for (uint32_t i = 0; i < count; i++) {
		if (model->mode == NOTHING) {
			answers[i] = (struct check_answer){.outcome = CHECK_PASSED,
			                                   .limit = 10,
			                                   .remaining = 9,
			                                   .retry_after_ms = -1,
			                                   .reset_after_ms = 60000,
			                                   .ticket = asks[i].ticket};
			continue;
		}
		answers[i] = judge(model, &asks[i]);
		if (model->mode == LATER && model->pending_count < PENDING_MAX) {
			model->pending[model->pending_count++] = answers[i];
			answers[i].outcome = CHECK_LATER;
		}
	}
}

static const struct weir_policy *policy(void *context)
{
	const struct model *model = context;
	return model->policy;
}

static void model_free(struct model *model)
{
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct bucket *at = model->buckets[i], *next; at != NULL; at = next) {
			next = at->next;
			free(at->key);
			free(at->times);
			free(at);
		}
	free(model);
}

static void fail(const char *words)
{
	fprintf(stderr, "resp_model: %s\n", words);
	exit(1);
}

/* "name=value": the value, or NULL. */
static char *value_of(char *word, const char *name)
{
	size_t length = strlen(name);
	return strncmp(word, name, length) == 0 && word[length] == '=' ? word + length + 1 : NULL;
}

static void read_words(int count, char **words, struct model *model, struct link_options *common,
                       struct resp_options *options, struct resp_user users[USERS_MAX], struct weir_http_tls *tls)
{
	static const char *const modes[] = {"now", "later", "away", "null", "unsafe"};
	for (int i = 2; i < count; i++) {
		char *value;
		for (int mode = NOW; mode <= UNSAFE; mode++)
			if (strcmp(words[i], modes[mode]) == 0)
				model->mode = (enum mode)mode;
		if ((value = value_of(words[i], "connections")) != NULL)
			common->connections = (uint32_t)strtoul(value, NULL, 10);
		if ((value = value_of(words[i], "unavailable")) != NULL)
			common->on_unavailable = strcmp(value, "allow") == 0 ? WEIR_ON_UNAVAILABLE_ALLOW : WEIR_ON_UNAVAILABLE_DENY;
		if ((value = value_of(words[i], "idle")) != NULL)
			options->idle_ms = strtoll(value, NULL, 10);
		if ((value = value_of(words[i], "stall")) != NULL)
			common->stall_ms = strtoll(value, NULL, 10);
		if ((value = value_of(words[i], "login")) != NULL)
			options->login_ms = strtoll(value, NULL, 10);
		if ((value = value_of(words[i], "user")) != NULL && options->user_count < USERS_MAX) {
			users[options->user_count++] = (struct resp_user){.name = value, .password = strchr(value, ':') + 1};
			*strchr(value, ':') = '\0';
		}
		if ((value = value_of(words[i], "certificate")) != NULL)
			tls->certificate = value;
		if ((value = value_of(words[i], "key")) != NULL)
			tls->key = value;
	}
}

int main(int count, char **words)
{
	struct model *model = weir_alloc(1, sizeof *model);
	struct link_options common = {.judge = {.context = model, .ask = ask, .policy = policy}};
	struct resp_options options = {0};
	struct resp_user users[USERS_MAX];
	struct weir_http_tls files = {0};
	struct weir_http_tls_server *tls = NULL;
	struct weir_config *config;
	struct weir_error error;
	uint16_t port;
	options.users = users;
	if (count < 2)
		fail("give it a configuration");
	read_words(count, words, model, &common, &options, users, &files);
	if (weir_config_load(words[1], &config, &error) != WEIR_OK ||
	    weir_policy_follow(config->policy, NULL, 0, &error) != WEIR_OK ||
	    (files.certificate != NULL && weir_http_tls_open(&files, NULL, &tls, &error) != WEIR_OK))
		fail(error.text);
	model->policy = config->policy;
	struct link_server *server = resp_server_new(&common, &options);
	if (link_server_listen(server, "127.0.0.1", 0, false, tls, &port, &error) != WEIR_OK)
		fail(error.text);
	printf("%u\n", port);
	fflush(stdout);
	struct pollfd ends[] = {{.fd = STDIN_FILENO, .events = POLLIN},
	                        {.fd = link_server_surface(server).descriptor, .events = POLLIN}};
	while (poll(ends, 2, -1) >= 0 && (ends[0].revents & (POLLIN | POLLHUP)) == 0) {
		link_server_turn(server, 0);
		while (model->pending_count > 0)
			link_server_answered(server, &model->pending[--model->pending_count]);
	}
	link_server_stop(server);
	link_server_turn(server, 0);
	link_server_free(server);
	weir_http_tls_close(tls);
	weir_config_free(config);
	model_free(model);
	return 0;
}
