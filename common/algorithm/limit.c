/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits by their algorithms' tables: read from a configuration and written as
 * canonical JSON, in decisions, in a few words; compared and multiplied. What
 * one algorithm does otherwise than all others is in its own file.
 */
#include "common/algorithm/internal.h"
#include "common/base/suggest.h"
#include "common/json/json_shape.h"
#include "common/json/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "algorithm", and the members of all algorithms, each once. */
enum { ALL_NAMES_MAX = 64 };

static int64_t *number_in(struct weir_limit *limit, const struct weir_limit_member *member)
{
	return (int64_t *)((char *)limit + member->at);
}

static int64_t number_of(const struct weir_limit *limit, const struct weir_limit_member *member)
{
	return *(const int64_t *)((const char *)limit + member->at);
}

/* ---- from a configuration ---- */

static void add_name(const char **names, size_t *count, const char *name)
{
	for (size_t i = 0; i < *count; i++)
		if (strcmp(names[i], name) == 0)
			return;
	if (*count + 1 < ALL_NAMES_MAX)
		names[(*count)++] = name;
}

/* Adds an algorithm's own; the list ends with NULL, as it was zeroed. */
static void add_names(const char **names, size_t *count, const struct weir_algorithm *algorithm)
{
	for (const struct weir_limit_member *member = algorithm->members; member->name != NULL; member++)
		add_name(names, count, member->name);
}

/* Refuses what is no algorithm's member, so that a misplaced one can be told from a mistyped one. */
static enum weir_status check_known(const struct weir_json *at, struct weir_error *error)
{
	const char *names[ALL_NAMES_MAX] = {"algorithm"};
	size_t count = 1;
	const struct weir_algorithm *algorithm;
	for (size_t i = 0; (algorithm = weir_algorithm_at(i)) != NULL; i++)
		add_names(names, &count, algorithm);
	return weir_json_only(at, names, error);
}

static enum weir_status parse_algorithm(const struct weir_json *at, struct weir_limit *limit, struct weir_error *error)
{
	char known[192], words[200];
	int index = 0;
	struct weir_json name = weir_json_member(at, "algorithm");
	weir_list_names(weir_algorithm_names(), "", known, sizeof known);
	snprintf(words, sizeof words, "one of %s", known);
	enum weir_status status = weir_json_require(&name, words, error);
	if (status == WEIR_OK)
		status = weir_json_word(&name, weir_algorithm_names(), &index, error);
	if (status == WEIR_OK)
		limit->algorithm = weir_algorithm_at((size_t)index);
	return status;
}

/* Refuses what is another algorithm's. */
static enum weir_status check_own(const struct weir_json *at, const struct weir_algorithm *algorithm,
                                  struct weir_error *error)
{
	const char *names[ALL_NAMES_MAX] = {NULL};
	size_t count = 0;
	const char *name;
	json_t *value;
	add_names(names, &count, algorithm);
	json_object_foreach(at->value, name, value)
	{
		size_t i = 0;
		while (i < count && strcmp(names[i], name) != 0)
			i++;
		if (i < count || strcmp(name, "algorithm") == 0)
			continue;
		struct weir_json member = weir_json_member(at, name);
		char known[128];
		weir_list_names(names, "", known, sizeof known);
		return weir_json_fail(&member, error, "is not a setting of %s, which has %s", algorithm->name, known);
	}
	return WEIR_OK;
}

static enum weir_status parse_done(const struct weir_json *at, struct weir_limit *limit, struct weir_error *error)
{
	enum weir_status status = weir_match_parse(at, &limit->done, error);
	if (status == WEIR_OK && weir_json_exists(at) && limit->done.field_count == 0)
		status = weir_json_fail(at, error, "must name at least one field: it would match every record");
	return status;
}

static enum weir_status parse_member(const struct weir_json *limit_at, const struct weir_limit_member *member,
                                     struct weir_limit *limit, struct weir_error *error)
{
	struct weir_json at = weir_json_member(limit_at, member->name);
	enum weir_status status = member->needed != NULL ? weir_json_require(&at, member->needed, error) : WEIR_OK;
	if (status != WEIR_OK)
		return status;
	if (member->kind == WEIR_MEMBER_MATCH)
		return parse_done(&at, limit, error);
	int64_t number = member->otherwise != NULL ? member->otherwise(limit) : member->least;
	int64_t most = member->bound != NULL ? member->bound(limit) : member->most;
	bool on = number != 0;
	switch (member->kind) {
	case WEIR_MEMBER_NUMBER: status = weir_json_int(&at, member->least, most, &number, error); break;
	case WEIR_MEMBER_TIME: status = weir_json_duration(&at, member->least, most, &number, error); break;
	case WEIR_MEMBER_SWITCH:
		status = weir_json_bool(&at, &on, error);
		number = on;
		break;
	case WEIR_MEMBER_MATCH: break;
	}
	*number_in(limit, member) = number;
	return status;
}

enum weir_status weir_limit_parse(const struct weir_json *at, struct weir_limit *limit, struct weir_error *error)
{
	enum weir_status status = check_known(at, error);
	if (status == WEIR_OK)
		status = parse_algorithm(at, limit, error);
	if (status == WEIR_OK)
		status = check_own(at, limit->algorithm, error);
	if (status != WEIR_OK)
		return status;
	limit->rate = 1;
	const struct weir_limit_member *member = limit->algorithm->members;
	for (; member->name != NULL && status == WEIR_OK; member++)
		status = parse_member(at, member, limit, error);
	if (status == WEIR_OK && limit->algorithm->check != NULL)
		status = limit->algorithm->check(at, limit, error);
	return status;
}

static json_t *member_shape(const struct weir_limit_member *member)
{
	json_t *shape = NULL;
	switch (member->kind) {
	case WEIR_MEMBER_NUMBER:
		shape = weir_shape_number(member->least, member->bound != NULL ? WEIR_RATE_MAX : member->most);
		break;
	case WEIR_MEMBER_TIME: shape = weir_shape_time(); break;
	case WEIR_MEMBER_SWITCH: shape = weir_shape_flag(); break;
	case WEIR_MEMBER_MATCH:
		shape = weir_shape_named("match");
		json_object_set_new(shape, "minProperties", json_integer(1));
		break;
	}
	return weir_shape_explained(shape, member->meaning);
}

json_t *weir_limit_json_shape(void)
{
	static const struct weir_json_rule tag[] = {{.name = "algorithm"}, {.name = NULL}};
	json_t *kinds = json_array();
	const struct weir_algorithm *algorithm;
	for (size_t i = 0; (algorithm = weir_algorithm_at(i)) != NULL; i++) {
		json_t *shape = weir_shape_tagged(weir_shape_object(tag), "algorithm", algorithm->name);
		json_t *members = json_object_get(shape, "properties");
		for (const struct weir_limit_member *member = algorithm->members; member->name != NULL; member++) {
			json_object_set_new(members, member->name, member_shape(member));
			if (member->needed != NULL)
				weir_shape_needs(shape, member->name);
		}
		json_array_append_new(kinds, shape);
	}
	return weir_shape_one_of(kinds);
}

enum weir_status weir_limit_check_capacity(const struct weir_json *at, int64_t tokens, int64_t window_ms,
                                           struct weir_error *error)
{
	if (tokens <= WEIR_BURST_WINDOW_MAX / window_ms)
		return WEIR_OK;
	return weir_json_fail(at, error, "burst times window, in ms, must be at most %lld",
	                      (long long)WEIR_BURST_WINDOW_MAX);
}

int64_t weir_limit_member(const struct weir_limit *limit, const char *name)
{
	for (const struct weir_limit_member *member = limit->algorithm->members; member->name != NULL; member++)
		if (member->kind != WEIR_MEMBER_MATCH && strcmp(member->name, name) == 0)
			return number_of(limit, member);
	return 0;
}

/* ---- as JSON ---- */

static json_t *member_json(const struct weir_limit *limit, const struct weir_limit_member *member)
{
	char buffer[24];
	if (member->kind == WEIR_MEMBER_MATCH)
		return limit->done.field_count > 0 ? weir_match_json(&limit->done) : NULL;
	int64_t number = number_of(limit, member);
	if (member->is_optional && number <= member->least)
		return NULL;
	switch (member->kind) {
	case WEIR_MEMBER_TIME: return json_string(weir_format_duration(number, buffer, sizeof buffer));
	case WEIR_MEMBER_SWITCH: return json_boolean(number != 0);
	default: return json_integer(number);
	}
}

int64_t weir_limit_value(const struct weir_limit *limit, const char *name)
{
	for (const struct weir_limit_member *member = limit->algorithm->members; member->name != NULL; member++)
		if (member->kind != WEIR_MEMBER_MATCH && strcmp(member->name, name) == 0)
			return number_of(limit, member);
	return 0;
}

json_t *weir_limit_json(const struct weir_limit *limit)
{
	json_t *object = json_object();
	json_object_set_new(object, "algorithm", json_string(limit->algorithm->name));
	for (const struct weir_limit_member *member = limit->algorithm->members; member->name != NULL; member++)
		json_object_set_new(object, member->name, member_json(limit, member)); /* NULL is not set */
	return object;
}

json_t *weir_limit_shorthand(const struct weir_limit *given, const char *window, const char **wrong)
{
	struct weir_limit limit = *given;
	*wrong = limit.algorithm->shorthand != NULL ? limit.algorithm->shorthand(&limit) : NULL;
	if (*wrong != NULL)
		return NULL;
	json_t *object = json_object();
	json_object_set_new(object, "algorithm", json_string(limit.algorithm->name));
	for (const struct weir_limit_member *member = limit.algorithm->members; member->name != NULL; member++) {
		if (member->needed == NULL)
			continue;
		bool as_written = member->at == offsetof(struct weir_limit, window_ms);
		json_object_set_new(object, member->name, as_written ? json_string(window) : member_json(&limit, member));
	}
	return object;
}

/* ---- in decisions: their bytes are a promise, and a flood makes many ---- */

/* Whether a decision names it: what is needed, and what differs from a default that is always the same. */
static bool is_decided(const struct weir_limit *limit, const struct weir_limit_member *member)
{
	if (member->kind == WEIR_MEMBER_MATCH)
		return false;
	return member->needed != NULL || member->otherwise != NULL || number_of(limit, member) > member->least;
}

void weir_limit_decided(struct weir_text *text, const struct weir_limit *limit)
{
	weir_text_puts(text, "{\"algorithm\":\"");
	weir_text_puts(text, limit->algorithm->name);
	weir_text_append(text, "\"", 1);
	for (const struct weir_limit_member *member = limit->algorithm->members; member->name != NULL; member++) {
		if (!is_decided(limit, member))
			continue;
		weir_text_append(text, ",\"", 2);
		weir_text_puts(text, member->name);
		weir_text_append(text, "\":", 2);
		if (member->kind == WEIR_MEMBER_SWITCH)
			weir_text_puts(text, "true");
		else
			weir_text_int(text, number_of(limit, member));
	}
	weir_text_append(text, "}", 1);
}

bool weir_limit_read(const json_t *decided, struct weir_limit *limit)
{
	const char *name = json_string_value(json_object_get(decided, "algorithm"));
	const struct weir_algorithm *algorithm = weir_algorithm_named(name);
	if (algorithm == NULL)
		return false;
	*limit = (struct weir_limit){.algorithm = algorithm, .rate = 1};
	for (const struct weir_limit_member *member = algorithm->members; member->name != NULL; member++) {
		const json_t *value = json_object_get(decided, member->name);
		if (member->kind != WEIR_MEMBER_MATCH)
			*number_in(limit, member) = json_is_true(value) ? 1 : json_integer_value(value);
	}
	return true;
}

/* ---- in words ---- */

void weir_limit_put_time(struct weir_text *text, int64_t duration_ms)
{
	char buffer[24];
	weir_text_puts(text, weir_format_duration(duration_ms, buffer, sizeof buffer));
}

void weir_limit_put_period(struct weir_text *text, int64_t duration_ms)
{
	switch (duration_ms) {
	case 1000: weir_text_puts(text, "second"); break;
	case 60000: weir_text_puts(text, "minute"); break;
	case 3600000: weir_text_puts(text, "hour"); break;
	case 86400000: weir_text_puts(text, "day"); break;
	default: weir_limit_put_time(text, duration_ms);
	}
}

void weir_limit_brief(struct weir_text *text, const struct weir_limit *limit)
{
	if (limit->algorithm->brief != NULL) {
		limit->algorithm->brief(text, limit);
		return;
	}
	weir_text_int(text, limit->rate);
	weir_text_puts(text, " in ");
	weir_limit_put_time(text, limit->window_ms);
}

void weir_limit_brief_burst(struct weir_text *text, const struct weir_limit *limit)
{
	weir_text_int(text, limit->rate);
	weir_text_puts(text, " in ");
	weir_limit_put_time(text, limit->window_ms);
	weir_text_puts(text, ", bursts of ");
	weir_text_int(text, limit->burst);
}

/* ---- what a limit comes to ---- */

bool weir_limit_equal(const struct weir_limit *a, const struct weir_limit *b)
{
	return a->algorithm == b->algorithm && a->rate == b->rate && a->window_ms == b->window_ms && a->burst == b->burst &&
	       memcmp(a->own, b->own, sizeof a->own) == 0;
}

int64_t weir_limit_memory_ms(const struct weir_limit *limit)
{
	return limit->algorithm->memory_ms != NULL ? limit->algorithm->memory_ms(limit) : limit->window_ms;
}

int64_t weir_limit_multiply(int64_t number, uint32_t thousandths, int64_t least, int64_t most)
{
	weir_wide product = (weir_wide)number * thousandths / WEIR_SCALE_ONE;
	return product > most ? most : product < least ? least : (int64_t)product;
}

int64_t weir_limit_capacity(int64_t window_ms)
{
	int64_t tokens = WEIR_BURST_WINDOW_MAX / window_ms;
	return tokens < WEIR_RATE_MAX ? tokens : WEIR_RATE_MAX;
}

struct weir_limit weir_limit_scaled(const struct weir_limit *limit, uint32_t thousandths)
{
	struct weir_limit scaled = *limit;
	if (limit->algorithm->scale != NULL)
		limit->algorithm->scale(&scaled, thousandths);
	else
		scaled.rate = weir_limit_multiply(limit->rate, thousandths, 1, WEIR_RATE_MAX);
	return scaled;
}

int64_t weir_limit_most_in(int64_t windows, int64_t rate)
{
	int64_t most;
	return __builtin_mul_overflow(windows, rate, &most) ? INT64_MAX : most;
}

int64_t weir_limit_most_refilled(const struct weir_limit *limit, int64_t span_ms)
{
	weir_wide refilled = (weir_wide)span_ms * limit->rate / limit->window_ms + 1;
	return (refilled > INT64_MAX / 2 ? INT64_MAX / 2 : (int64_t)refilled) + limit->burst + 1;
}
