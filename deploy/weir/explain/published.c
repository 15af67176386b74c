/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A decision's bytes are guaranteed, so its id, zone and key are compared as they are written, without reading it as
 * JSON: a file has many of them.
 */
#include "deploy/weir/explain/published.h"

#include "common/base/alloc.h"
#include "common/files/durable_file.h"
#include "common/json/json.h"
#include "deploy/weir/inspect/topic_read.h"
#include "limiter/lane/decision.h"
#include "limiter/overrides/override_command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	ROTATED_MAX = 1000,
	GAP_MAX = 100,
	READ_BYTES = 4 * WEIR_FRAME_TARGET_BYTES, /* a decision is shorter than one */
};

struct published {
	struct question *questions;
	size_t count;
	const struct weir_policy *policy;
	struct question **by_id; /* sorted */
	size_t by_id_count;
	struct question **by_key;
	struct weir_text *heads; /* of those: what a decision of theirs has behind its id */
	size_t by_key_count;
	const struct patience *patience;
	const char *place; /* what is read now, for people */
};

static int compare_ids(const struct question *one, const struct question *other)
{
	if (one->partition != other->partition)
		return one->partition < other->partition ? -1 : 1;
	if (one->offset != other->offset)
		return one->offset < other->offset ? -1 : 1;
	return (one->index > other->index) - (one->index < other->index);
}

static int compare_places(const void *a, const void *b)
{
	return compare_ids(*(const struct question *const *)a, *(const struct question *const *)b);
}

struct published *published_new(struct question *questions, size_t count, const struct weir_policy *policy,
                                const struct patience *patience)
{
	struct published *published = weir_alloc(1, sizeof *published);
	*published = (struct published){.questions = questions, .count = count, .policy = policy, .patience = patience};
	published->by_id = weir_alloc(count + 1, sizeof(struct question *));
	published->by_key = weir_alloc(count + 1, sizeof(struct question *));
	published->heads = weir_alloc(count + 1, sizeof *published->heads);
	for (size_t i = 0; i < count; i++) {
		struct question *question = &questions[i];
		if (question->by_id) {
			published->by_id[published->by_id_count++] = question;
			continue;
		}
		const struct weir_zone *zone = weir_policy_zone(policy, question->zone_id);
		struct weir_text *head = &published->heads[published->by_key_count];
		weir_text_printf(head, "\"zone\":\"%s\",\"key\":", zone->name);
		decision_key_json(head, zone,
		                  (struct weir_span){.at = question->key.at, .length = (uint32_t)question->key.length});
		weir_text_puts(head, ",");
		published->by_key[published->by_key_count++] = question;
	}
	if (published->by_id_count > 0)
		qsort(published->by_id, published->by_id_count, sizeof(struct question *), compare_places);
	return published;
}

/* A file may be anything: what is no decision in JSON is not shown as one, and its numbers are not reckoned with. */
static bool is_decision(struct weir_span line)
{
	json_t *json = json_loadb(line.at, line.length, JSON_ALLOW_NUL, NULL);
	json_int_t at_ms = json_integer_value(json_object_get(json, "at"));
	bool good = json_is_object(json) && at_ms >= 0 && at_ms <= WEIR_TIME_END_MS &&
	            json_integer_value(json_object_get(json, "count")) >= 0;
	json_decref(json);
	return good;
}

static void take(const struct published *published, struct question *question, struct weir_span line)
{
	weir_text_clear(&question->published);
	weir_text_append(&question->published, line.at, line.length);
	free(question->published_in);
	question->published_in = weir_copy(published->place, strlen(published->place));
}

static void consider(struct published *published, struct weir_span line)
{
	static const char head[] = "{\"id\":\"";
	char id[64];
	struct question found = {0};
	if (line.length <= sizeof head || memcmp(line.at, head, sizeof head - 1) != 0)
		return;
	const char *from = line.at + sizeof head - 1, *quote = memchr(from, '"', line.length - sizeof head);
	if (quote == NULL || (size_t)(quote - from) >= sizeof id)
		return;
	memcpy(id, from, (size_t)(quote - from));
	id[quote - from] = '\0';
	if (!question_parse_id(id, &found))
		return;
	const struct question *key = &found;
	struct question **place = published->by_id_count > 0 ? bsearch(&key, published->by_id, published->by_id_count,
	                                                               sizeof(struct question *), compare_places)
	                                                     : NULL;
	for (; place != NULL && place > published->by_id && compare_ids(place[-1], &found) == 0;)
		place--;
	for (; place != NULL && place < published->by_id + published->by_id_count && compare_ids(*place, &found) == 0;
	     place++)
		if (is_decision(line))
			take(published, *place, line);
	size_t rest = (size_t)(line.at + line.length - quote);
	for (size_t i = 0; i < published->by_key_count; i++) {
		struct question *question = published->by_key[i];
		const struct weir_text *wanted = &published->heads[i];
		if (rest < wanted->length + 2 || memcmp(quote + 2, wanted->at, wanted->length) != 0)
			continue;
		if (question->published.length > 0 &&
		    (question->partition != found.partition || compare_ids(&found, question) < 0))
			continue;
		if (!is_decision(line))
			continue;
		take(published, question, line);
		question->partition = found.partition;
		question->offset = found.offset;
		question->index = found.index;
	}
}

/* ---- where they are ---- */

enum weir_status published_read_topic(struct published *published, struct weir_bus *bus, const char *directory,
                                      enum weir_topic topic, struct weir_error *error)
{
	struct topic_read *read;
	struct weir_message message;
	uint32_t partition = published->count > 0 ? published->questions[0].partition : 0;
	for (size_t i = 0; i < published->count; i++)
		if (published->questions[i].partition != partition)
			partition = WEIR_BUS_EVERY_PARTITION;
	enum weir_status status = topic_read_open(bus, directory, topic, partition, 0, &read, error);
	published->place = topic == WEIR_TOPIC_SHADOW ? "the topic decisions.shadow" : "the topic decisions";
	if (status == WEIR_INVALID)
		return WEIR_OK;
	if (status != WEIR_OK)
		return status;
	while ((status = topic_read_next(read, &message, error)) != WEIR_END && status != WEIR_IO) {
		if (status == WEIR_OK)
			consider(published, message.payload);
		status = patience_check(published->patience, error);
		if (status != WEIR_OK)
			break;
	}
	topic_read_free(read);
	return status == WEIR_END ? WEIR_OK : status;
}

/* Considers the whole lines of a buffer. @return how many bytes they are */
static size_t take_lines(struct published *published, const char *bytes, size_t length, bool *skips)
{
	const char *at = bytes, *end = bytes + length;
	for (const char *newline; (newline = memchr(at, '\n', (size_t)(end - at))) != NULL; at = newline + 1) {
		if (!*skips)
			consider(published, (struct weir_span){.at = at, .length = (uint32_t)(newline - at)});
		*skips = false;
	}
	return (size_t)(at - bytes);
}

/* The file may grow, or be cut, while it is read: so it is not mapped. A last line without its end is being written. */
static enum weir_status read_lines(struct published *published, int fd, struct weir_error *error)
{
	char *bytes = weir_alloc(READ_BYTES, 1);
	size_t held = 0;
	bool skips = false; /* the line is longer than any decision */
	ssize_t got = 0;
	enum weir_status status;
	while ((status = patience_check(published->patience, error)) == WEIR_OK &&
	       ((got = read(fd, bytes + held, READ_BYTES - held)) > 0 || (got < 0 && errno == EINTR))) {
		held += got > 0 ? (size_t)got : 0;
		size_t used = take_lines(published, bytes, held, &skips);
		if (used == 0 && held == READ_BYTES) {
			skips = true;
			used = held;
		}
		held -= used;
		memmove(bytes, bytes + used, held);
	}
	free(bytes);
	return status != WEIR_OK || got == 0
	           ? status
	           : weir_fail(error, WEIR_IO, "cannot read %s: %s", published->place, weir_errno_words(errno));
}

static enum weir_status read_one(struct published *published, const char *path, bool *there, struct weir_error *error)
{
	struct stat about;
	enum weir_status status = WEIR_OK;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	*there = fd >= 0;
	if (fd < 0)
		return errno == ENOENT ? WEIR_OK
		                       : weir_fail(error, WEIR_IO, "cannot open %s: %s", path, weir_errno_words(errno));
	published->place = path;
	if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode)) /* a pipe keeps nothing */
		status = read_lines(published, fd, error);
	close(fd);
	return status;
}

enum weir_status published_read_file(struct published *published, const char *path, bool *found,
                                     struct weir_error *error)
{
	char rotated[WEIR_PATH_BYTES];
	bool there = false;
	int gap = 0; /* files that are not there, one after another: someone may have deleted some */
	enum weir_status status = read_one(published, path, found, error);
	for (int i = 1; status == WEIR_OK && i < ROTATED_MAX && gap < GAP_MAX; i++) {
		status = weir_path_format(rotated, error, "%s.%d", path, i);
		if (status == WEIR_OK)
			status = read_one(published, rotated, &there, error);
		gap = there ? 0 : gap + 1;
		*found = *found || there;
	}
	return status;
}

/* ---- what they say ---- */

/* The joined key of a decision's values; false: it has bytes that JSON cannot show. */
static bool join_key(const json_t *values, struct weir_text *key)
{
	struct override_command command = {0};
	for (size_t i = 0; i < json_array_size(values); i++) {
		const char *value = json_string_value(json_array_get(values, i));
		if (value == NULL || strstr(value, "\xEF\xBF\xBD") != NULL)
			return false;
		struct weir_span span = {.at = value, .length = (uint32_t)json_string_length(json_array_get(values, i))};
		if (!override_key_add(&command, span))
			return false;
	}
	weir_text_append(key, command.key, command.key_length);
	return true;
}

static void settle(const struct published *published, struct question *question)
{
	if (question->published.length == 0)
		return;
	question->by_id = true;
	json_t *json = json_loadb(question->published.at, question->published.length, JSON_ALLOW_NUL, NULL);
	const char *name = json_string_value(json_object_get(json, "zone"));
	const json_t *values = json_object_get(json, "key");
	const struct weir_zone *zone = name != NULL ? weir_policy_zone_named(published->policy, weir_span_of(name)) : NULL;
	if (zone != NULL)
		question->zone_id = zone->id;
	if (!question->key_known && json_is_array(values))
		question->key_known = join_key(values, &question->key);
	json_decref(json);
}

void published_end(struct published *published)
{
	for (size_t i = 0; i < published->count; i++)
		settle(published, &published->questions[i]);
	for (size_t i = 0; i < published->by_key_count; i++)
		weir_text_deinit(&published->heads[i]);
	free(published->heads);
	free(published->by_key);
	free(published->by_id);
	free(published);
}
