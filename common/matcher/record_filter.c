/* SPDX-License-Identifier: Apache-2.0 */
/* Matching is mostly one comparison: the exact words first, as they are what most zones have. */
#include "common/matcher/record_filter.h"

#include "common/base/alloc.h"
#include "common/record/field_value.h"

#include <stdlib.h>

enum { STATUS_WORDS = (WEIR_STATUS_COUNT + 63) / 64 };

enum weir_status weir_record_field_want(struct weir_field_table *fields, const char *name, uint32_t *index,
                                        struct weir_error *error)
{
	int found = weir_field_table_want(fields, name);
	if (found < 0)
		return weir_fail(error, WEIR_INVALID, "zones and formats use more than %d fields: \"%s\" is one too many",
		                 WEIR_FIELD_MAX, name);
	*index = (uint32_t)found;
	return WEIR_OK;
}

static unsigned digit(char c)
{
	return (unsigned)(c - '0');
}

/* The bits of "404", or those of "4xx". */
static void add_status(uint64_t *statuses, const char *text)
{
	unsigned first = digit(text[0]) * 100, count = 100;
	if (text[1] != 'x') {
		first += digit(text[1]) * 10 + digit(text[2]);
		count = 1;
	}
	for (unsigned status = first; status < first + count; status++)
		statuses[status / 64] |= UINT64_C(1) << status % 64;
}

static bool test_status(const uint64_t *statuses, struct weir_span value)
{
	if (value.length != 3)
		return false;
	unsigned hundreds = digit(value.at[0]), tens = digit(value.at[1]), ones = digit(value.at[2]);
	if (hundreds > 9 || tens > 9 || ones > 9)
		return false;
	unsigned status = hundreds * 100 + tens * 10 + ones;
	return statuses[status / 64] >> status % 64 & 1;
}

static void put_in_small(char *to, struct weir_span text)
{
	for (uint32_t i = 0; i < text.length; i++)
		to[i] = (char)(text.at[i] >= 'A' && text.at[i] <= 'Z' ? text.at[i] - 'A' + 'a' : text.at[i]);
}

/* @param room  moved behind its bytes */
static struct weir_span in_small(struct weir_span text, char **room)
{
	struct weir_span small = {.at = *room, .length = text.length};
	put_in_small(*room, text);
	*room += text.length;
	return small;
}

/* The networks of those values that stand for addresses. */
static void init_networks(struct weir_filter_field *field, const struct weir_match_field *match)
{
	struct weir_network found[WEIR_RANGE_NETWORKS_MAX], *all = NULL;
	uint32_t count = 0;
	for (uint32_t i = 0; i < match->value_count; i++) {
		const char *why;
		struct weir_span text = {.at = match->values[i].text, .length = match->values[i].length};
		uint32_t more = match->values[i].network ? weir_networks_parse(text, found, &why) : 0;
		if (more == 0)
			continue;
		all = weir_realloc(all, count + more, sizeof *all);
		memcpy(all + count, found, more * sizeof *all);
		count += more;
	}
	field->has_networks = count > 0;
	weir_network_set_init(&field->networks, all, count);
	free(all);
}

/* A value as records have the field, of one that may be written as clients write theirs; kept behind `room`, which is moved. */
static struct weir_span settled_value(uint32_t field, struct weir_span text, char **room)
{
	struct weir_field_value_room value_room = {0};
	struct weir_span value = text;
	if (field == WEIR_FIELD_PATH)
		value = weir_field_value_of_path(text, &value_room);
	else if (text.length > 0)
		value = weir_field_value(field, text, &value_room);
	if (!weir_span_equal(value, text)) {
		memcpy(*room, value.at, value.length);
		text = (struct weir_span){.at = *room, .length = value.length};
		*room += value.length;
	}
	weir_field_value_room_deinit(&value_room);
	return text;
}

/*
 * A pattern of methods that has small letters means those of HTTP, too, which records have in capitals.
 *
 * @param room  moved behind its bytes
 */
static void add_in_capitals(struct weir_filter_field *field, struct weir_span pattern, char **room)
{
	char *capitals = *room;
	for (uint32_t i = 0; i < pattern.length; i++)
		capitals[i] = (char)(pattern.at[i] >= 'a' && pattern.at[i] <= 'z' ? pattern.at[i] - 'a' + 'A' : pattern.at[i]);
	struct weir_span text = {.at = capitals, .length = pattern.length};
	if (weir_span_equal(text, pattern))
		return;
	wildcard_init(&field->wildcards[field->wildcard_count++], text);
	*room += pattern.length;
}

static void init_values(struct weir_filter_field *field, const struct weir_match_field *match)
{
	struct weir_span *words = weir_alloc(match->value_count, sizeof *words);
	uint32_t word_count = 0;
	size_t bytes = 0;
	bool hosts = field->field == WEIR_FIELD_HOST, methods = field->field == WEIR_FIELD_METHOD;
	bool settles = hosts || methods || field->field == WEIR_FIELD_PATH;
	for (uint32_t i = 0; i < match->value_count; i++)
		bytes += ((size_t)settles + match->any_case) * match->values[i].length;
	field->settled = bytes > 0 ? weir_alloc(bytes, 1) : NULL;
	char *room = field->settled;
	field->wildcards = weir_alloc((methods ? 2 : 1) * (size_t)match->value_count, sizeof *field->wildcards);
	for (uint32_t i = 0; i < match->value_count; i++) {
		struct weir_span text = {.at = match->values[i].text, .length = match->values[i].length};
		bool wildcard = match->values[i].wildcard;
		if (room != NULL && settles && (hosts || !wildcard))
			text = settled_value(field->field, text, &room);
		if (room != NULL && match->any_case)
			text = in_small(text, &room);
		wildcard = wildcard && memchr(text.at, '*', text.length) != NULL; /* it may have been its port's */
		if (wildcard)
			wildcard_init(&field->wildcards[field->wildcard_count++], text);
		else
			words[word_count++] = text;
		if (wildcard && methods && !match->any_case)
			add_in_capitals(field, text, &room);
	}
	weir_word_set_init(&field->words, words, word_count);
	init_networks(field, match);
	free(words);
}

enum weir_status weir_record_filter_init(struct weir_record_filter *filter, const struct weir_match *match,
                                         struct weir_field_table *fields, struct weir_error *error)
{
	*filter = (struct weir_record_filter){.fields = weir_alloc(match->field_count, sizeof *filter->fields)};
	for (uint32_t i = 0; i < match->field_count; i++) {
		const struct weir_match_field *source = &match->fields[i];
		struct weir_filter_field *field = &filter->fields[filter->field_count++];
		enum weir_status status = weir_record_field_want(fields, source->field, &field->field, error);
		if (status != WEIR_OK)
			return status;
		field->negated = source->negated;
		field->any_case = source->any_case;
		if (strcmp(source->field, "status") != 0) {
			init_values(field, source);
			continue;
		}
		field->statuses = weir_alloc(STATUS_WORDS, sizeof *field->statuses);
		for (uint32_t k = 0; k < source->value_count; k++)
			add_status(field->statuses, source->values[k].text);
	}
	return WEIR_OK;
}

void weir_record_filter_deinit(struct weir_record_filter *filter)
{
	for (uint32_t i = 0; i < filter->field_count; i++) {
		struct weir_filter_field *field = &filter->fields[i];
		for (uint32_t k = 0; k < field->wildcard_count; k++)
			wildcard_deinit(&field->wildcards[k]);
		free(field->wildcards);
		free(field->statuses);
		free(field->settled);
		weir_word_set_deinit(&field->words);
		weir_network_set_deinit(&field->networks);
	}
	free(filter->fields);
	*filter = (struct weir_record_filter){0};
}

static bool has_text(const struct weir_filter_field *field, struct weir_span value)
{
	return weir_word_set_has(&field->words, value) || wildcards_match(field->wildcards, field->wildcard_count, value);
}

static __attribute__((noinline)) bool has_text_in_any_case(const struct weir_filter_field *field,
                                                           struct weir_span value)
{
	enum { MOST_BYTES = 1024 }; /* of nearly all */
	char few[MOST_BYTES], *small = value.length <= MOST_BYTES ? few : weir_alloc(value.length, 1);
	put_in_small(small, value);
	bool has = has_text(field, (struct weir_span){.at = small, .length = value.length});
	if (small != few)
		free(small);
	return has;
}

static bool test_field(const struct weir_filter_field *field, struct weir_span value)
{
	if (value.at == NULL)
		return false;
	if (field->statuses != NULL)
		return test_status(field->statuses, value);
	if (field->any_case ? has_text_in_any_case(field, value) : has_text(field, value))
		return true;
	struct weir_address address;
	return field->has_networks && weir_address_read(value, &address) &&
	       weir_network_set_has(&field->networks, &address);
}

bool weir_record_filter_test(const struct weir_record_filter *filter, const struct weir_record *record)
{
	for (uint32_t i = 0; i < filter->field_count; i++)
		if (test_field(&filter->fields[i], record->fields[filter->fields[i].field]) == filter->fields[i].negated)
			return false;
	return true;
}

bool weir_record_filter_is_told(const struct weir_record_filter *filter, const struct weir_record *record)
{
	for (uint32_t i = 0; i < filter->field_count; i++)
		if (record->fields[filter->fields[i].field].at == NULL)
			return false;
	return true;
}
