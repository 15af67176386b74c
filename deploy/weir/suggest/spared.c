/* SPDX-License-Identifier: Apache-2.0 */
/* A line becomes a key as the values of `weir allow` do, so an address may stand in any of its forms. */
#include "deploy/weir/suggest/spared.h"

#include "common/base/alloc.h"
#include "common/base/read_file.h"
#include "deploy/weir/inspect/topic_read.h"
#include "deploy/weir/overrides/override_key.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_BYTES_MAX = 16 << 20 };

static int compare(const void *left, const void *right)
{
	const struct weir_text *a = left, *b = right;
	size_t shorter = a->length < b->length ? a->length : b->length;
	int order = shorter > 0 ? memcmp(a->at, b->at, shorter) : 0;
	return order != 0 ? order : (a->length > b->length) - (a->length < b->length);
}

static void sort(struct spared *spared)
{
	if (spared->key_count > 1)
		qsort(spared->keys, spared->key_count, sizeof *spared->keys, compare);
}

/* Cuts the line at each "|", in place; "\" stands before one that is part of a value. @return how many values */
static uint32_t split(char *line, struct override_options *options)
{
	char *to = line;
	options->values[0] = line;
	options->value_count = 1;
	for (const char *at = line; *at != '\0'; at++) {
		if (*at == '|' && options->value_count == WEIR_ZONE_KEY_MAX)
			return WEIR_ZONE_KEY_MAX + 1;
		if (*at == '|') {
			*to++ = '\0';
			options->values[options->value_count++] = to;
			continue;
		}
		if (*at == '\\' && at[1] != '\0')
			at++;
		*to++ = *at;
	}
	*to = '\0';
	return options->value_count;
}

static enum weir_status refuse(const struct weir_zone *zone, const char *line, struct weir_error *error)
{
	struct weir_text fields = {0};
	if (override_zone_takes_networks(zone))
		return weir_fail(error, WEIR_INVALID, "\"%.100s\" is neither an address nor a network", line);
	for (uint32_t i = 0; i < zone->key_count; i++)
		weir_text_printf(&fields, "%s%s", i > 0 ? "|" : "", zone->key[i].field);
	weir_fail(error, WEIR_INVALID, "\"%.100s\" is no key of %.*s: write the %u values with | between them", line,
	          (int)fields.length, fields.at, zone->key_count);
	weir_text_deinit(&fields);
	return WEIR_INVALID;
}

/* Whom a command is about. */
static void add_key(struct spared *spared, enum override_scope scope, struct weir_span key)
{
	struct weir_network network;
	const char *why;
	if (scope == OVERRIDE_OF_NETWORK && weir_network_parse(key, &network, &why)) {
		spared->networks = weir_realloc(spared->networks, spared->network_count + 1, sizeof *spared->networks);
		spared->networks[spared->network_count++] = network;
		return;
	}
	struct weir_text text = {0};
	weir_text_append(&text, key.at, key.length);
	spared->keys = weir_realloc(spared->keys, spared->key_count + 1, sizeof *spared->keys);
	spared->keys[spared->key_count++] = text;
}

static enum weir_status add_line(struct spared *spared, const struct weir_policy *policy, char *line,
                                 struct weir_error *error)
{
	const struct weir_zone *zone = &policy->zones[0];
	struct override_options options = {.kind = OVERRIDE_ALLOW, .zone = zone->name};
	struct override_command command = {.kind = OVERRIDE_ALLOW};
	struct weir_address address;
	struct weir_network network;
	const char *why;
	char *given = weir_copy(line, strlen(line));
	enum weir_status status = WEIR_OK;
	if (split(line, &options) != zone->key_count ||
	    (override_zone_takes_networks(zone) && !weir_address_read(weir_span_of(line), &address) &&
	     !weir_network_parse(weir_span_of(line), &network, &why) && !weir_network_meant(line)))
		status = refuse(zone, given, error);
	free(given);
	if (status == WEIR_OK)
		status = override_key_make(&options, policy, &command, error);
	if (status != WEIR_OK)
		return status;
	add_key(spared, command.scope, override_key(&command));
	return WEIR_OK;
}

/* Without the white space at both ends. */
static char *trimmed(char *line)
{
	line += strspn(line, " \t\r");
	size_t length = strlen(line);
	while (length > 0 && strchr(" \t\r", line[length - 1]) != NULL)
		length--;
	line[length] = '\0';
	return line;
}

enum weir_status spared_read(const char *path, const struct weir_policy *policy, struct spared *spared,
                             struct weir_error *error)
{
	char *bytes;
	size_t length;
	enum weir_status status = weir_read_file(path, FILE_BYTES_MAX, &bytes, &length, error);
	if (status != WEIR_OK)
		return status;
	char *text = weir_copy(bytes, length), *rest = text, *line;
	free(bytes);
	for (uint64_t number = 1; status == WEIR_OK && (line = strsep(&rest, "\n")) != NULL; number++) {
		line = trimmed(line);
		if (*line == '\0' || *line == '#')
			continue;
		status = add_line(spared, policy, line, error);
		if (status != WEIR_OK)
			weir_error_prefix(error, "%s:%" PRIu64, path, number);
	}
	free(text);
	sort(spared);
	return status;
}

/* ---- operators ---- */

/* Whom an operator let go, in a zone. */
struct let_go {
	char zone[WEIR_ZONE_NAME_MAX_BYTES + 1];
	enum override_scope scope;
	struct weir_text key;
};

struct operators {
	const struct weir_zone *zone;
	const char *of_zone;
	struct let_go *list;
	size_t count;
	uint64_t *unknown;
};

static void take_out(struct operators *operators, const struct override_command *command)
{
	size_t kept = 0;
	for (size_t i = 0; i < operators->count; i++) {
		struct let_go *one = &operators->list[i];
		if (one->scope == command->scope && strcmp(one->zone, command->zone) == 0 &&
		    weir_span_equal(weir_text_span(&one->key), override_key(command)))
			weir_text_deinit(&one->key);
		else
			operators->list[kept++] = *one;
	}
	operators->count = kept;
}

/* @param at_ms  when it was given: an allow that is over then ends one of before */
static void take_command(struct operators *operators, const struct override_command *command, int64_t at_ms)
{
	if ((command->kind != OVERRIDE_LIFT && command->kind != OVERRIDE_ALLOW) ||
	    command->value_count != operators->zone->key_count ||
	    (operators->of_zone != NULL && strcmp(operators->of_zone, command->zone) != 0))
		return;
	if ((command->kind == OVERRIDE_ALLOW && command->until_ms <= at_ms) ||
	    strcmp(command->reason, OVERRIDE_REASON_FORGET) == 0) {
		take_out(operators, command);
		return;
	}
	operators->list = weir_realloc(operators->list, operators->count + 1, sizeof *operators->list);
	struct let_go *one = &operators->list[operators->count++];
	*one = (struct let_go){.scope = command->scope};
	snprintf(one->zone, sizeof one->zone, "%s", command->zone);
	weir_text_append(&one->key, command->key, command->key_length);
}

static void take_message(struct operators *operators, struct weir_frame_reader *reader,
                         const struct weir_message *message)
{
	struct weir_frame frame;
	struct override_command command;
	if (weir_frame_decode(reader, message->payload, &frame, NULL) != WEIR_OK ||
	    (frame.kind == WEIR_FRAME_COMMAND && override_command_parse(frame.body, &command, NULL) != WEIR_OK))
		++*operators->unknown;
	else if (frame.kind == WEIR_FRAME_COMMAND)
		take_command(operators, &command, frame.sending_time_ms);
}

static void add_operators(struct spared *spared, struct operators *operators)
{
	for (size_t i = 0; i < operators->count; i++) {
		struct let_go *one = &operators->list[i];
		add_key(spared, one->scope, weir_text_span(&one->key));
		weir_text_deinit(&one->key);
	}
	free(operators->list);
	sort(spared);
}

enum weir_status spared_read_state(const char *directory, const struct weir_zone *zone, const char *of_zone,
                                   struct spared *spared, uint64_t *unknown, struct weir_error *error)
{
	struct topic_read *read = NULL;
	struct weir_message message;
	struct operators operators = {.zone = zone, .of_zone = of_zone, .unknown = unknown};
	struct weir_frame_reader *reader = weir_frame_reader_new();
	enum weir_status status =
		topic_read_open(NULL, directory, WEIR_TOPIC_EVENTS, WEIR_BUS_EVERY_PARTITION, 0, &read, error);
	while (status == WEIR_OK) {
		status = topic_read_next(read, &message, error);
		if (status == WEIR_OK)
			take_message(&operators, reader, &message);
		if (status != WEIR_INVALID && status != WEIR_NEWER)
			continue;
		++*unknown;
		status = WEIR_OK;
	}
	topic_read_free(read);
	weir_frame_reader_free(reader);
	add_operators(spared, &operators);
	return status == WEIR_END ? WEIR_OK : status;
}

void spared_deinit(struct spared *spared)
{
	for (size_t i = 0; i < spared->key_count; i++)
		weir_text_deinit(&spared->keys[i]);
	free(spared->keys);
	free(spared->networks);
}

bool spared_has(const struct spared *spared, struct weir_span key)
{
	struct weir_text wanted = {.at = (char *)key.at, .length = key.length};
	struct weir_network own;
	const char *why;
	if (spared->key_count > 0 &&
	    bsearch(&wanted, spared->keys, spared->key_count, sizeof *spared->keys, compare) != NULL)
		return true;
	if (spared->network_count == 0 || !weir_network_parse(key, &own, &why))
		return false;
	for (size_t i = 0; i < spared->network_count; i++)
		if (own.prefix >= spared->networks[i].prefix && weir_network_contains(&spared->networks[i], &own.base))
			return true;
	return false;
}
