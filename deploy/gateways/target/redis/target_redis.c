/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis: a key for each block, which ends by itself.
 *
 * Several subscribers may keep one Redis: all changes go through scripts that
 * compare versions (redis_script.h), and a copy removes only what is of a
 * version that this subscriber has read past.
 *
 * A Redis that was restarted empty, or emptied, has lost a small key of this
 * subscriber's own, which is looked for each second. One that evicts keys may
 * keep that one, which is used so often, and evict blocks: it is asked how many
 * it has evicted.
 */
#include "deploy/gateways/target/redis/target_redis.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/redis/redis.h"
#include "deploy/gateways/target/redis/redis_script.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

enum {
	CHECK_MS = 1000,
	EVICTION_CHECKS = 10,       /* of which one asks what was evicted */
	EVICTION_CHECKS_MOST = 640, /* and as rarely while it goes on evicting, as each is a copy */
	CONNECT_TIMEOUT_MS = 5000,
	PIPELINE = 512, /* commands sent before their answers are taken */
	SHA_BYTES = 41,
	NUMBER_BYTES = 24,
	ID_BYTES = 80,
};

#define BLOCK_PREFIX "weir:"
#define LIFT_PREFIX "weir-lift:"
#define MARKER_PREFIX "weir-list:"
#define MARKER_LIFE_MS "60000" /* refreshed each second; outlives a subscriber by a minute */

struct redis_target {
	struct target target;
	struct weir_redis_url url;
	struct weir_question *question; /* where it is */
	const char *const *zones;       /* borrowed */
	size_t zone_count;
	struct weir_redis *link; /* NULL: away */
	char shas[REDIS_SCRIPT_COUNT][SHA_BYTES];
	char marker[32];
	unsigned waiting; /* answers that were not taken yet */
	unsigned checks;  /* until it is asked what it has evicted */
	unsigned pause;   /* of them between two such asks; 0: it was not asked yet */
	uint64_t evicted; /* keys, when it was asked last, or the last copy began; UINT64_MAX: it did not say */
	uint32_t partitions;
	struct weir_text block_key, lift_key;
};

/* ---- the connection ---- */

static enum weir_status lose(struct redis_target *redis)
{
	weir_redis_close(redis->link);
	redis->link = NULL;
	redis->waiting = 0;
	return WEIR_IO;
}

static enum weir_status connect_to(struct redis_target *redis, struct weir_error *error)
{
	if (redis->link != NULL)
		return WEIR_OK;
	enum weir_status status = weir_redis_open(&redis->url, redis->question, CONNECT_TIMEOUT_MS, &redis->link, error);
	for (int i = 0; i < REDIS_SCRIPT_COUNT && status == WEIR_OK; i++) {
		struct weir_redis_answer *answer;
		weir_redis_send(redis->link,
		                (struct weir_span[]){weir_span_of("SCRIPT"), weir_span_of("LOAD"),
		                                     weir_span_of(redis_script_text((enum redis_script)i))},
		                3);
		status = weir_redis_receive(redis->link, &answer, error);
		if (status != WEIR_OK)
			return lose(redis);
		struct weir_span sha = weir_redis_answer_text(answer);
		snprintf(redis->shas[i], SHA_BYTES, "%.*s", (int)sha.length, sha.length > 0 ? sha.at : "");
		weir_redis_answer_free(answer);
	}
	return status;
}

/* Takes the answers of what was sent. One that the server refused spoils the whole: it is full, say, or a replica. */
static enum weir_status take_answers(struct redis_target *redis, struct weir_error *error)
{
	enum weir_status refused = WEIR_OK;
	for (; redis->waiting > 0; redis->waiting--) {
		struct weir_error words;
		enum weir_status status = weir_redis_receive(redis->link, NULL, &words);
		if (status != WEIR_OK && refused == WEIR_OK) {
			refused = status;
			*error = words;
		}
		if (status == WEIR_IO)
			break;
	}
	return refused == WEIR_OK ? WEIR_OK : lose(redis);
}

static enum weir_status sent(struct redis_target *redis, struct weir_error *error)
{
	return ++redis->waiting < PIPELINE ? WEIR_OK : take_answers(redis, error);
}

/* ---- one bucket ---- */

static struct weir_span number(char text[NUMBER_BYTES], uint64_t value)
{
	int length = snprintf(text, NUMBER_BYTES, "%llu", (unsigned long long)value);
	return (struct weir_span){.at = text, .length = (uint32_t)length};
}

static struct weir_span time_or_none(char text[NUMBER_BYTES], int64_t time_ms, bool none)
{
	return none ? weir_span_of("") : number(text, (uint64_t)time_ms);
}

static struct weir_span bucket_key(struct weir_text *text, const char *prefix, struct weir_span zone,
                                   struct weir_span key)
{
	weir_text_clear(text);
	weir_text_puts(text, prefix);
	weir_text_append(text, zone.at, zone.length);
	weir_text_puts(text, ":");
	weir_text_append(text, key.at, key.length);
	return (struct weir_span){.at = text->at, .length = (uint32_t)text->length};
}

static struct weir_span guard_value(char text[ID_BYTES], const struct block_entry *entry)
{
	int length = snprintf(text, ID_BYTES, "{\"id\":\"%u-%llu-%llu\"}", entry->partition,
	                      (unsigned long long)entry->version.offset, (unsigned long long)entry->version.index);
	return (struct weir_span){.at = text, .length = (uint32_t)length};
}

/* Until when an older version could come again and would outlive this one; false: none could. */
static bool guard_time(const struct block_entry *entry, int64_t now_ms, int64_t *guard_ms)
{
	int64_t most_ms = now_ms + BLOCK_TABLE_GUARD_MAX_MS;
	*guard_ms = entry->guard_ms < most_ms ? entry->guard_ms : most_ms;
	return *guard_ms > now_ms &&
	       (entry->state == BLOCK_LIFTED || (entry->state == BLOCK_LIVE && entry->until_ms < entry->guard_ms));
}

static enum weir_status put(struct redis_target *redis, const struct block_entry *entry, int64_t now_ms,
                            struct weir_error *error)
{
	char offset[NUMBER_BYTES], index[NUMBER_BYTES], until[NUMBER_BYTES], guard[NUMBER_BYTES], id[ID_BYTES];
	int64_t guard_ms;
	bool guarded = guard_time(entry, now_ms, &guard_ms);
	struct weir_span zone = block_entry_zone(entry), key = block_entry_key(entry);
	const struct weir_span words[] = {
		weir_span_of("EVALSHA"),
		weir_span_of(redis->shas[REDIS_SCRIPT_PUT]),
		weir_span_of("2"),
		bucket_key(&redis->block_key, BLOCK_PREFIX, zone, key),
		bucket_key(&redis->lift_key, LIFT_PREFIX, zone, key),
		number(offset, entry->version.offset),
		number(index, entry->version.index),
		time_or_none(until, entry->until_ms, entry->until_ms == DECISION_NO_END),
		block_entry_json(entry),
		time_or_none(guard, guard_ms, !guarded),
		guard_value(id, entry),
	};
	weir_redis_send(redis->link, words, sizeof words / sizeof *words);
	return sent(redis, error);
}

static enum weir_status drop(struct redis_target *redis, struct weir_span block_key, struct weir_span lift_key,
                             struct decision_version version, struct weir_span guard, struct weir_span id,
                             struct weir_error *error)
{
	char offset[NUMBER_BYTES], index[NUMBER_BYTES];
	const struct weir_span words[] = {
		weir_span_of("EVALSHA"),
		weir_span_of(redis->shas[REDIS_SCRIPT_DROP]),
		weir_span_of("2"),
		block_key,
		lift_key,
		number(offset, version.offset),
		number(index, version.index),
		guard,
		id,
	};
	weir_redis_send(redis->link, words, sizeof words / sizeof *words);
	return sent(redis, error);
}

static enum weir_status drop_entry(struct redis_target *redis, const struct block_entry *entry, int64_t now_ms,
                                   struct weir_error *error)
{
	char guard[NUMBER_BYTES], id[ID_BYTES];
	int64_t guard_ms;
	bool guarded = guard_time(entry, now_ms, &guard_ms);
	struct weir_span zone = block_entry_zone(entry), key = block_entry_key(entry);
	return drop(redis, bucket_key(&redis->block_key, BLOCK_PREFIX, zone, key),
	            bucket_key(&redis->lift_key, LIFT_PREFIX, zone, key), entry->version,
	            time_or_none(guard, guard_ms, !guarded), guard_value(id, entry), error);
}

/* ---- what should not be there ---- */

static bool is_ours(const struct redis_target *redis, struct weir_span zone)
{
	for (size_t i = 0; i < redis->zone_count; i++)
		if (weir_span_equal(zone, weir_span_of(redis->zones[i])))
			return true;
	return redis->zone_count == 0;
}

/* Whether a key is to be looked at: a block's that the table does not hold. Without a zone it is no list's at all. */
static bool is_stray(const struct redis_target *redis, const struct block_table *table, struct weir_span name)
{
	const char *at = name.at + strlen(BLOCK_PREFIX), *end = name.at + name.length;
	const char *colon = memchr(at, ':', (size_t)(end - at));
	if (colon == NULL)
		return redis->zone_count == 0;
	struct weir_span zone = {.at = at, .length = (uint32_t)(colon - at)};
	struct weir_span key = {.at = colon + 1, .length = (uint32_t)(end - colon - 1)};
	return is_ours(redis, zone) && block_table_find(table, zone, key) == NULL;
}

static const char *skip_blanks(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	return at;
}

/* The partition in a block's value, of its "id" as the scripts find it; UINT32_MAX: it is none of ours. */
static uint32_t value_partition(struct weir_span value)
{
	static const char mark[] = "\"id\"";
	const char *at = value.at != NULL ? memmem(value.at, value.length, mark, strlen(mark)) : NULL;
	if (at == NULL)
		return UINT32_MAX;
	const char *end = value.at + value.length;
	at = skip_blanks(at + strlen(mark), end);
	at = at < end && *at == ':' ? skip_blanks(at + 1, end) : end;
	if (at == end || *at != '"')
		return UINT32_MAX;
	uint32_t partition = 0;
	for (at++; at < end && *at >= '0' && *at <= '9' && partition < WEIR_BUS_PARTITIONS_MAX; at++)
		partition = partition * 10 + (uint32_t)(*at - '0');
	return at < end && *at == '-' ? partition : UINT32_MAX;
}

/* The strays among one answer of SCAN, and the partition of each. */
static enum weir_status find_strays(struct redis_target *redis, const struct block_table *table,
                                    const struct weir_redis_answer *keys, struct weir_span *strays,
                                    uint32_t *partitions, size_t *count, struct weir_error *error)
{
	*count = 0;
	for (size_t i = 0; i < weir_redis_answer_count(keys); i++) {
		struct weir_span name = weir_redis_answer_text(weir_redis_answer_element(keys, i));
		if (name.length < strlen(BLOCK_PREFIX) || !is_stray(redis, table, name))
			continue;
		weir_redis_send(redis->link, (struct weir_span[]){weir_span_of("GET"), name}, 2);
		strays[(*count)++] = name;
	}
	for (size_t i = 0; i < *count; i++) {
		struct weir_redis_answer *answer;
		enum weir_status status = weir_redis_receive(redis->link, &answer, error);
		if (status == WEIR_IO)
			return lose(redis);
		/* A key of another type is refused: it is no version of anything, and goes. */
		partitions[i] = status == WEIR_OK ? value_partition(weir_redis_answer_text(answer)) : UINT32_MAX;
		weir_redis_answer_free(answer);
	}
	return WEIR_OK;
}

/* Removes them, unless they are newer than all that was read of their partition. */
static enum weir_status sweep_keys(struct redis_target *redis, const struct block_table *table,
                                   const struct weir_redis_answer *keys, struct weir_error *error)
{
	size_t count = weir_redis_answer_count(keys);
	struct weir_span *strays = weir_alloc(count + 1, sizeof *strays);
	uint32_t *partitions = weir_alloc(count + 1, sizeof *partitions);
	enum weir_status status = find_strays(redis, table, keys, strays, partitions, &count, error);
	for (size_t i = 0; i < count && status == WEIR_OK; i++) {
		struct decision_version seen = {.offset = UINT64_MAX, .index = UINT64_MAX};
		if (partitions[i] < redis->partitions)
			seen = block_table_seen(table, partitions[i]);
		status = drop(redis, strays[i], weir_span_of(LIFT_PREFIX), seen, weir_span_of(""), weir_span_of(""), error);
	}
	free(strays);
	free(partitions);
	return status == WEIR_OK ? take_answers(redis, error) : status;
}

static enum weir_status sweep(struct redis_target *redis, const struct block_table *table, struct weir_error *error)
{
	char cursor[NUMBER_BYTES] = "0", pattern[WEIR_ERROR_TEXT_BYTES];
	snprintf(pattern, sizeof pattern, BLOCK_PREFIX "%s%s*", redis->zone_count == 1 ? redis->zones[0] : "",
	         redis->zone_count == 1 ? ":" : "");
	do {
		struct weir_redis_answer *answer;
		weir_redis_send(redis->link,
		                (struct weir_span[]){weir_span_of("SCAN"), weir_span_of(cursor), weir_span_of("MATCH"),
		                                     weir_span_of(pattern), weir_span_of("COUNT"), weir_span_of("1000")},
		                6);
		if (weir_redis_receive(redis->link, &answer, error) != WEIR_OK)
			return lose(redis);
		enum weir_status status = WEIR_OK;
		if (weir_redis_answer_count(answer) == 2) {
			struct weir_span next = weir_redis_answer_text(weir_redis_answer_element(answer, 0));
			snprintf(cursor, sizeof cursor, "%.*s", (int)next.length, next.length > 0 ? next.at : "0");
			status = sweep_keys(redis, table, weir_redis_answer_element(answer, 1), error);
		} else {
			status = weir_fail(error, WEIR_IO, "Redis: the reply to SCAN has no cursor and keys");
			lose(redis);
		}
		weir_redis_answer_free(answer);
		if (status != WEIR_OK)
			return status;
	} while (strcmp(cursor, "0") != 0);
	return WEIR_OK;
}

/* ---- the target ---- */

/* Makes the marker, or with "XX" keeps alive the one that is there. */
static enum weir_status mark(struct redis_target *redis, const char *how, bool *there, struct weir_error *error)
{
	struct weir_redis_answer *answer;
	const struct weir_span words[] = {
		weir_span_of("SET"), weir_span_of(redis->marker),  weir_span_of("1"),
		weir_span_of("PX"),  weir_span_of(MARKER_LIFE_MS), weir_span_of(how != NULL ? how : "")};
	weir_redis_send(redis->link, words, how != NULL ? 6 : 5);
	if (weir_redis_receive(redis->link, &answer, error) != WEIR_OK)
		return lose(redis);
	*there = !weir_redis_answer_is_nil(answer);
	weir_redis_answer_free(answer);
	return WEIR_OK;
}

/* How many keys it has evicted since it was started; UINT64_MAX: this user may not ask, or it does not say. */
static enum weir_status ask_evicted(struct redis_target *redis, uint64_t *evicted, struct weir_error *error)
{
	static const char name[] = "evicted_keys:";
	struct weir_redis_answer *answer;
	*evicted = UINT64_MAX;
	weir_redis_send(redis->link, (struct weir_span[]){weir_span_of("INFO"), weir_span_of("stats")}, 2);
	enum weir_status status = weir_redis_receive(redis->link, &answer, error);
	if (status == WEIR_INVALID)
		return WEIR_OK;
	if (status != WEIR_OK)
		return lose(redis);
	struct weir_span text = weir_redis_answer_text(answer);
	const char *at = text.length > 0 ? memmem(text.at, text.length, name, strlen(name)) : NULL;
	if (at != NULL)
		*evicted = strtoull(at + strlen(name), NULL, 10);
	weir_redis_answer_free(answer);
	return WEIR_OK;
}

static enum weir_status look_for_evicted(struct redis_target *redis, struct weir_error *error)
{
	uint64_t before = redis->evicted, now;
	if (redis->checks > 0) {
		redis->checks--;
		return WEIR_OK;
	}
	enum weir_status status = ask_evicted(redis, &now, error);
	bool grew = status == WEIR_OK && before != UINT64_MAX && now != UINT64_MAX && now > before;
	if (!grew || redis->pause == 0)
		redis->pause = EVICTION_CHECKS;
	else if (redis->pause < EVICTION_CHECKS_MOST)
		redis->pause *= 2;
	redis->checks = redis->pause;
	redis->evicted = now; /* which may have been set back */
	if (grew)
		return weir_fail(error, WEIR_AGAIN,
		                 "Redis has evicted %llu keys, and blocks may be among them: set its maxmemory-policy to "
		                 "noeviction, or keep blocks in a Redis of their own",
		                 (unsigned long long)(now - before));
	return status;
}

static enum weir_status copy(struct target *target, const struct block_table *table, int64_t now_ms,
                             struct weir_error *error)
{
	struct redis_target *redis = (struct redis_target *)target;
	enum weir_status status = connect_to(redis, error);
	/* Made first: what empties Redis while this copies takes the marker too, and the next check sees it. */
	bool made;
	if (status == WEIR_OK)
		status = mark(redis, NULL, &made, error);
	if (status == WEIR_OK)
		status = ask_evicted(redis, &redis->evicted, error);
	struct block_walk walk = {0};
	const struct block_entry *entry;
	while (status == WEIR_OK && (entry = block_table_next(table, &walk)) != NULL)
		status = put(redis, entry, now_ms, error);
	if (status == WEIR_OK)
		status = take_answers(redis, error);
	return status == WEIR_OK ? sweep(redis, table, error) : status;
}

static enum weir_status apply(struct target *target, const struct block_table *table, int64_t now_ms,
                              struct weir_error *error)
{
	struct redis_target *redis = (struct redis_target *)target;
	enum weir_status status = connect_to(redis, error);
	uint32_t count;
	struct block_entry *const *changes = block_table_changes(table, &count);
	for (uint32_t i = 0; i < count && status == WEIR_OK; i++) {
		if (changes[i]->state == BLOCK_LIVE)
			status = put(redis, changes[i], now_ms, error);
		else if (changes[i]->state != BLOCK_ENDED || block_entry_was_cut(changes[i])) /* that it does by itself */
			status = drop_entry(redis, changes[i], now_ms, error);
	}
	return status == WEIR_OK ? take_answers(redis, error) : status;
}

static enum weir_status check(struct target *target, const struct block_table *table, int64_t now_ms,
                              struct weir_error *error)
{
	(void)table;
	(void)now_ms;
	struct redis_target *redis = (struct redis_target *)target;
	if (redis->link == NULL)
		return weir_fail(error, WEIR_AGAIN, "the connection to Redis was lost");
	bool there;
	enum weir_status status = mark(redis, "XX", &there, error);
	if (status == WEIR_OK && !there)
		return weir_fail(error, WEIR_AGAIN, "Redis was emptied");
	return status == WEIR_OK ? look_for_evicted(redis, error) : status;
}

/* ---- read back ---- */

/* The keys of one answer of SCAN; of zones that are not subscribed to another subscriber's. */
static void see_keys(const struct redis_target *redis, const struct weir_redis_answer *keys, target_seen *seen,
                     void *context, struct target_reading *reading)
{
	for (size_t i = 0; i < weir_redis_answer_count(keys); i++) {
		struct weir_span name = weir_redis_answer_text(weir_redis_answer_element(keys, i));
		if (weir_span_begins(name, MARKER_PREFIX))
			reading->kept = true;
		if (!weir_span_begins(name, BLOCK_PREFIX))
			continue;
		const char *at = name.at + strlen(BLOCK_PREFIX), *end = name.at + name.length;
		const char *colon = memchr(at, ':', (size_t)(end - at));
		struct weir_span zone = {.at = at, .length = (uint32_t)((colon != NULL ? colon : end) - at)};
		if (is_ours(redis, zone))
			seen(context, name);
	}
}

static enum weir_status read_back(struct target *target, int64_t end_ms, target_seen *seen, void *context,
                                  struct target_reading *reading, struct weir_error *error)
{
	struct redis_target *redis = (struct redis_target *)target;
	char cursor[NUMBER_BYTES] = "0";
	enum weir_status status = WEIR_OK;
	if (redis->link == NULL) /* and no scripts: they would be written there */
		status = weir_redis_open(&redis->url, redis->question, CONNECT_TIMEOUT_MS, &redis->link, error);
	reading->tells_keeper = true;
	do {
		struct weir_redis_answer *answer;
		if (status != WEIR_OK)
			return status;
		if (weir_monotonic_ms() >= end_ms)
			return weir_fail(error, WEIR_IO, "Redis: it has more keys than could be looked through in time");
		weir_redis_send(redis->link,
		                (struct weir_span[]){weir_span_of("SCAN"), weir_span_of(cursor), weir_span_of("MATCH"),
		                                     weir_span_of("weir*"), weir_span_of("COUNT"), weir_span_of("2000")},
		                6);
		status = weir_redis_receive(redis->link, &answer, error);
		if (status != WEIR_OK)
			return lose(redis);
		struct weir_span next = weir_redis_answer_text(weir_redis_answer_element(answer, 0));
		snprintf(cursor, sizeof cursor, "%.*s", (int)next.length, next.length > 0 ? next.at : "0");
		see_keys(redis, weir_redis_answer_element(answer, 1), seen, context, reading);
		weir_redis_answer_free(answer);
	} while (strcmp(cursor, "0") != 0);
	return WEIR_OK;
}

static bool spell(struct target *target, const struct block_table *table, const struct block_entry *entry,
                  struct weir_text *words)
{
	(void)table;
	const struct redis_target *redis = (const struct redis_target *)target;
	struct weir_span zone = block_entry_zone(entry), key = block_entry_key(entry);
	weir_text_puts(words, BLOCK_PREFIX);
	weir_text_append(words, zone.at, zone.length);
	weir_text_puts(words, ":");
	weir_text_append(words, key.at, key.length);
	return is_ours(redis, zone);
}

static enum weir_status close_target(struct target *target, struct weir_error *error)
{
	(void)error;
	struct redis_target *redis = (struct redis_target *)target;
	weir_redis_close(redis->link);
	weir_redis_url_deinit(&redis->url);
	weir_question_free(redis->question);
	weir_text_deinit(&redis->block_key);
	weir_text_deinit(&redis->lift_key);
	free(redis);
	return WEIR_OK;
}

/* Names are resolved when it is reached; the one that every machine has is known. */
static void lists(const struct target *target, struct weir_text *lines)
{
	const struct weir_redis_url *url = &((const struct redis_target *)target)->url;
	bool here = strcasecmp(url->host, "localhost") == 0 || strcmp(url->host, "::1") == 0;
	weir_text_puts(lines, "redis ");
	for (const char *at = here ? "127.0.0.1" : url->host; *at != '\0'; at++)
		weir_text_printf(lines, "%c", *at >= 'A' && *at <= 'Z' ? *at - 'A' + 'a' : *at);
	weir_text_printf(lines, ":%u/%u\n", url->port, url->database);
}

static const struct target_ops ops = {
	.lists = lists,
	.read = read_back,
	.spell = spell,
	.kind = "redis",
	.keeps_json = true,
	.check_after_ms = CHECK_MS,
	.copy = copy,
	.apply = apply,
	.check = check,
	.close = close_target,
};

enum weir_status target_redis_make(const char *rest, const struct target_options *options, struct target **target,
                                   struct weir_error *error)
{
	struct weir_redis_url url;
	enum weir_status status = weir_redis_url_parse(rest, &url, error);
	if (status != WEIR_OK)
		return status;
	struct redis_target *made = weir_alloc(1, sizeof *made);
	made->target.ops = &ops;
	made->url = url;
	made->question = weir_question_new();
	made->zones = options->zones;
	made->zone_count = options->zone_count;
	made->partitions = options->partitions;
	uint64_t id = 0;
	(void)!getrandom(&id, sizeof id, 0);
	snprintf(made->marker, sizeof made->marker, MARKER_PREFIX "%016llx", (unsigned long long)id);
	*target = &made->target;
	return WEIR_OK;
}
