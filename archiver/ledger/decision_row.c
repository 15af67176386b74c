/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decisions are rare beside events, so a JSON library reads them. Their bucket
 * is the message's key behind the zone's name: its exact bytes, where JSON has
 * U+FFFD for what is not UTF-8.
 */
#include "archiver/ledger/decision_row.h"

#include "common/algorithm/algorithm.h"
#include "common/base/alloc.h"
#include "common/json/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OVERRIDE_TEXT_MAX_BYTES = 1024 };

/* "partition-offset-pair" */
static bool read_id(const char *text, struct weir_archive_id *id)
{
	int used = 0;
	return sscanf(text, "%" SCNu32 "-%" SCNu64 "-%" SCNu32 "%n", &id->partition, &id->offset, &id->pair, &used) == 3 &&
	       text[used] == '\0';
}

static int64_t number_or(const struct weir_json *object, const char *name, int64_t otherwise)
{
	struct weir_json at = weir_json_member(object, name);
	int64_t number;
	return weir_json_exists(&at) && weir_json_int(&at, INT64_MIN, INT64_MAX, &number, NULL) == WEIR_OK ? number
	                                                                                                   : otherwise;
}

static enum weir_status read_text(const struct weir_json *object, const char *name, const char **text,
                                  struct weir_error *error)
{
	struct weir_json at = weir_json_member(object, name);
	enum weir_status status = weir_json_require(&at, "a text", error);
	return status == WEIR_OK ? weir_json_string(&at, text, error) : status;
}

static enum weir_status read_time(const struct weir_json *object, const char *name, int64_t *time_ms,
                                  struct weir_error *error)
{
	struct weir_json at = weir_json_member(object, name);
	enum weir_status status = weir_json_require(&at, "a time in ms", error);
	return status == WEIR_OK ? weir_json_int(&at, INT64_MIN, INT64_MAX, time_ms, error) : status;
}

/* Rate and window by the algorithm's own names for them; one that only a newer weir has may name them so itself. */
static enum weir_status read_limit(const struct weir_json *root, struct weir_archive_decision *row,
                                   const char **algorithm, struct weir_error *error)
{
	struct weir_json limit = weir_json_member(root, "limit");
	if (!weir_json_exists(&limit))
		return WEIR_OK;
	struct weir_limit decided = {.rate = number_or(&limit, "rate", 1), .window_ms = number_or(&limit, "window", 0)};
	(void)weir_limit_read(limit.value, &decided);
	row->limited = true;
	row->rate = decided.rate;
	row->window_ms = decided.window_ms;
	row->held = number_or(root, "count", 0);
	return read_text(&limit, "algorithm", algorithm, error);
}

/* What is optional, cut to its bound at the beginning of a character. */
static struct weir_span override_text(const struct weir_json *root, const char *name)
{
	struct weir_json at = weir_json_member(root, name);
	const char *text;
	if (!weir_json_exists(&at) || weir_json_string(&at, &text, NULL) != WEIR_OK)
		return (struct weir_span){.at = NULL};
	struct weir_span span = weir_span_of(text);
	if (span.length > OVERRIDE_TEXT_MAX_BYTES) {
		span.length = OVERRIDE_TEXT_MAX_BYTES;
		while (span.length > 0 && ((unsigned char)text[span.length] & 0xc0) == 0x80)
			span.length--;
	}
	return span;
}

/* Copies texts, which are borrowed, one behind the other. */
static char *own_texts(struct weir_span *const *texts, size_t count)
{
	size_t bytes = 1;
	for (size_t i = 0; i < count; i++)
		bytes += texts[i]->length;
	char *owned = weir_alloc(bytes, 1), *end = owned;
	for (size_t i = 0; i < count; i++) {
		if (texts[i]->at == NULL)
			continue;
		memcpy(end, texts[i]->at, texts[i]->length);
		texts[i]->at = end;
		end += texts[i]->length;
	}
	return owned;
}

static enum weir_status read_row(const struct weir_message *message, const struct weir_json *root,
                                 struct decision_row *out, struct weir_error *error)
{
	struct weir_archive_decision *row = &out->row;
	const char *id = "", *zone = "", *action = "", *mode = "", *algorithm = "";
	enum weir_status status = read_text(root, "id", &id, error);
	if (status == WEIR_OK && !read_id(id, &row->id))
		status = weir_fail(error, WEIR_INVALID, "id: expected PARTITION-OFFSET-INDEX");
	if (status == WEIR_OK)
		status = read_text(root, "zone", &zone, error);
	if (status == WEIR_OK)
		status = read_text(root, "action", &action, error);
	if (status == WEIR_OK)
		status = read_text(root, "mode", &mode, error);
	if (status == WEIR_OK)
		status = read_time(root, "at", &row->at_ms, error);
	if (status == WEIR_OK)
		status = read_time(root, "until", &row->until_ms, error);
	if (status == WEIR_OK)
		status = read_limit(root, row, &algorithm, error);
	row->zone = weir_span_of(zone);
	row->action = weir_span_of(action);
	row->mode = weir_span_of(mode);
	out->shadow = strcmp(mode, "shadow") == 0;
	row->algorithm = weir_span_of(algorithm);
	if (status == WEIR_OK && (row->zone.length > 64 || row->action.length > 16 || row->mode.length > 16 ||
	                          row->algorithm.length > 32 || message->key.length > row->zone.length + 1 + 1024))
		status = weir_fail(error, WEIR_INVALID, "a value is longer than weir ever writes");
	if (status != WEIR_OK)
		return status;
	int64_t nth = number_or(root, "nth", 0);
	row->nth = nth > 0 && nth <= UINT32_MAX ? (uint32_t)nth : 0;
	row->ordered_by = override_text(root, "by");
	row->reason = override_text(root, "reason");
	if (message->key.at != NULL && message->key.length > row->zone.length)
		row->bucket = (struct weir_span){.at = message->key.at + row->zone.length + 1,
		                                 .length = message->key.length - row->zone.length - 1};
	struct weir_json key = weir_json_member(root, "key");
	if (!weir_json_exists(&key) || json_is_null(key.value))
		row->bucket = (struct weir_span){.at = NULL};
	out->texts = own_texts((struct weir_span *const[]){&row->zone, &row->bucket, &row->action, &row->mode,
	                                                   &row->algorithm, &row->ordered_by, &row->reason},
	                       7);
	return WEIR_OK;
}

enum weir_status decision_row_read(const struct weir_message *message, struct decision_row *row,
                                   struct weir_error *error)
{
	struct weir_json_document *document;
	*row = (struct decision_row){.texts = NULL};
	if (message->payload.at == NULL)
		return weir_fail(error, WEIR_INVALID, "it is empty");
	enum weir_status status =
		weir_json_parse_record("decision", message->payload.at, message->payload.length, &document, error);
	if (status != WEIR_OK)
		return status;
	struct weir_json root = weir_json_root(document);
	status = read_row(message, &root, row, error);
	weir_json_document_free(document);
	return status;
}

void decision_row_deinit(struct decision_row *row)
{
	free(row->texts);
	row->texts = NULL;
}
