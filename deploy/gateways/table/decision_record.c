/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Anyone who may write to the topic can put anything on it: whatever is not
 * exactly a decision is refused in words, and the reader continues.
 *
 * The bucket is taken from the message key, which has its bytes as they are;
 * the JSON has U+FFFD where they are not UTF-8.
 */
#include "deploy/gateways/table/decision_record.h"

#include "common/json/json.h"
#include "common/json/json_writer.h"
#include "common/policy/policy.h"

#include <stdio.h>
#include <stdlib.h>

#define YEAR_10000_MS INT64_C(253402300800000)

static const char *read_number(const char *at, uint64_t *number)
{
	const char *start = at;
	*number = 0;
	for (; *at >= '0' && *at <= '9'; at++)
		if (__builtin_mul_overflow(*number, 10, number) ||
		    __builtin_add_overflow(*number, (uint64_t)(*at - '0'), number))
			return NULL;
	return at > start ? at : NULL;
}

/* PARTITION-OFFSET-INDEX */
static bool read_id(const char *id, uint32_t partition, struct decision_version *version)
{
	uint64_t said;
	const char *at = read_number(id, &said);
	if (at == NULL || *at != '-' || said != partition)
		return false;
	at = read_number(at + 1, &version->offset);
	if (at == NULL || *at != '-')
		return false;
	at = read_number(at + 1, &version->index);
	return at != NULL && *at == '\0';
}

static bool zone_byte(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
	       byte == '_' || byte == '.' || byte == '-';
}

static enum weir_status read_message_key(struct weir_span message_key, struct decision_record *record,
                                         struct weir_error *error)
{
	uint32_t length = 0;
	while (length < message_key.length && zone_byte(message_key.at[length]))
		length++;
	if (length == 0 || length > WEIR_ZONE_NAME_MAX_BYTES || length == message_key.length ||
	    message_key.at[length] != '|')
		return weir_fail(error, WEIR_INVALID, "the message key is not ZONE|KEY");
	record->zone = (struct weir_span){.at = message_key.at, .length = length};
	record->key = (struct weir_span){.at = message_key.at + length + 1, .length = message_key.length - length - 1};
	if (record->key.length > WEIR_KEY_MAX_BYTES)
		return weir_fail(error, WEIR_INVALID, "the key has more than %d bytes", WEIR_KEY_MAX_BYTES);
	return WEIR_OK;
}

static bool string_is(const json_t *object, const char *name, struct weir_span wanted)
{
	const json_t *value = json_object_get(object, name);
	struct weir_span found = {.at = json_string_value(value), .length = (uint32_t)json_string_length(value)};
	return found.at != NULL && weir_span_equal(found, wanted);
}

static bool read_time(const json_t *value, int64_t *time_ms)
{
	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return false;
	*time_ms = json_integer_value(value);
	return true;
}

static enum weir_status read_key(const json_t *key, struct decision_record *record, struct weir_error *error)
{
	record->whole_zone = json_is_null(key);
	if (record->whole_zone && (!record->lift || record->key.length > 0))
		return weir_fail(error, WEIR_INVALID, "only the lift of a whole zone has no key");
	if (!record->whole_zone && !json_is_array(key))
		return weir_fail(error, WEIR_INVALID, "\"key\" is not an array");
	return WEIR_OK;
}

static enum weir_status read_object(const json_t *object, struct decision_record *record, struct weir_error *error)
{
	const json_t *id = json_object_get(object, "id");
	if (!json_is_string(id) || strlen(json_string_value(id)) != json_string_length(id) ||
	    !read_id(json_string_value(id), record->partition, &record->version))
		return weir_fail(error, WEIR_INVALID, "\"id\" is not PARTITION-OFFSET-INDEX of this partition");
	if (!string_is(object, "zone", record->zone))
		return weir_fail(error, WEIR_INVALID, "\"zone\" differs from the zone in the message key");
	record->lift = string_is(object, "action", weir_span_of("lift"));
	if (!record->lift && !string_is(object, "action", weir_span_of("block")))
		return weir_fail(error, WEIR_INVALID, "\"action\" is neither block nor lift");
	record->by_operator = json_object_get(object, "by") != NULL;
	record->shadow = string_is(object, "mode", weir_span_of("shadow"));
	if (!read_time(json_object_get(object, "at"), &record->at_ms))
		return weir_fail(error, WEIR_INVALID, "\"at\" is not a time in Unix ms");
	const json_t *until = json_object_get(object, "until");
	record->until_ms = DECISION_NO_END;
	if (until != NULL && !json_is_null(until) && !read_time(until, &record->until_ms))
		return weir_fail(error, WEIR_INVALID, "\"until\" is not a time in Unix ms");
	if (record->until_ms >= YEAR_10000_MS)
		record->until_ms = DECISION_NO_END;
	return read_key(json_object_get(object, "key"), record, error);
}

enum weir_status decision_record_parse(const struct weir_message *message, struct decision_record *record,
                                       struct weir_error *error)
{
	*record = (struct decision_record){.partition = message->partition, .json = message->payload};
	if (message->payload.length > DECISION_RECORD_MAX_BYTES)
		return weir_fail(error, WEIR_INVALID, "it has more than %d bytes", DECISION_RECORD_MAX_BYTES);
	enum weir_status status = read_message_key(message->key, record, error);
	if (status != WEIR_OK)
		return status;
	json_error_t mistake;
	const char *text = message->payload.length > 0 ? message->payload.at : "";
	json_t *object = json_loadb(text, message->payload.length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &mistake);
	if (!json_is_object(object))
		status = weir_fail(error, WEIR_INVALID, "it is not a JSON object");
	else
		status = read_object(object, record, error);
	json_decref(object);
	return status;
}

void decision_record_end_json(struct weir_text *text, struct weir_span block, uint32_t partition,
                              struct decision_version version, const char *action, int64_t at_ms)
{
	json_t *object = json_loadb(block.length > 0 ? block.at : "", block.length, JSON_ALLOW_NUL, NULL);
	char *zone = json_dumps(json_object_get(object, "zone"), JSON_ENCODE_ANY);
	char *key = json_dumps(json_object_get(object, "key"), JSON_COMPACT | JSON_ENCODE_ANY);
	struct weir_json_writer json = weir_json_writer(text);
	char id[64];
	snprintf(id, sizeof id, "%u-%llu-%llu", partition, (unsigned long long)version.offset,
	         (unsigned long long)version.index);
	weir_json_write_object(&json, NULL);
	weir_json_write_words(&json, "id", id);
	weir_text_puts(weir_json_write_value(&json, "zone"), zone != NULL ? zone : "null");
	weir_text_puts(weir_json_write_value(&json, "key"), key != NULL ? key : "null");
	weir_json_write_words(&json, "action", action);
	weir_json_write_int(&json, "at", at_ms);
	weir_json_write_int(&json, "until", at_ms);
	weir_json_write_end(&json);
	free(zone);
	free(key);
	json_decref(object);
}
