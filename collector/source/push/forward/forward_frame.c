/* SPDX-License-Identifier: Apache-2.0 */
/* A message's parts. What is in its entries is read later (forward_lines.c). */
#include "collector/source/push/forward/forward_frame.h"

static bool is_text(const struct msgpack_item *item)
{
	return item->kind == MSGPACK_STRING || item->kind == MSGPACK_BINARY;
}

static bool says(struct weir_span text, const char *word)
{
	return weir_span_equal(text, weir_span_of(word));
}

static enum weir_status cut_short(struct weir_error *error)
{
	return weir_fail(error, WEIR_INVALID, "it is cut off");
}

static enum weir_status read_ping(struct msgpack *from, uint32_t count, struct forward_frame *frame,
                                  struct weir_error *error)
{
	struct msgpack_item item;
	frame->kind = FORWARD_PING;
	if (count != FORWARD_PING_WORDS + 1)
		return weir_fail(error, WEIR_INVALID, "a PING has %u elements instead of 6", count);
	for (int i = 0; i < FORWARD_PING_WORDS; i++) {
		if (msgpack_next(from, &item) != WEIR_OK || !is_text(&item))
			return weir_fail(error, WEIR_INVALID, "a PING's element %d is no string", i + 1);
		frame->ping[i] = item.bytes;
	}
	return WEIR_OK;
}

/* One of the options. @return WEIR_INVALID: its value cannot be used */
static enum weir_status read_option(struct weir_span name, const struct msgpack_item *value,
                                    struct forward_frame *frame, struct weir_error *error)
{
	if (says(name, "chunk")) {
		if (!is_text(value) || value->bytes.length > FORWARD_CHUNK_MOST_BYTES)
			return weir_fail(error, WEIR_INVALID, "its \"chunk\" is no string of at most %d bytes",
			                 FORWARD_CHUNK_MOST_BYTES);
		if (value->bytes.length > 0)
			frame->chunk = value->bytes;
	} else if (says(name, "compressed") && is_text(value)) {
		bool gzip = says(value->bytes, "gzip"), zstd = says(value->bytes, "zstd");
		if (!gzip && !zstd && !says(value->bytes, "text"))
			return weir_fail(error, WEIR_INVALID, "it is \"compressed\" with \"%.*s\"; use gzip, zstd or text",
			                 value->bytes.length < 32 ? (int)value->bytes.length : 32, value->bytes.at);
		frame->packing = gzip ? FORWARD_GZIP : zstd ? FORWARD_ZSTD : FORWARD_PLAIN;
	} else if (says(name, "fluent_signal")) {
		frame->other_signal = value->kind == MSGPACK_UNSIGNED && value->number != 0;
	}
	return WEIR_OK;
}

static enum weir_status read_options(struct msgpack *from, struct forward_frame *frame, struct weir_error *error)
{
	struct msgpack_item map, name, value;
	if (msgpack_next(from, &map) != WEIR_OK)
		return cut_short(error);
	if (map.kind == MSGPACK_NIL)
		return WEIR_OK;
	if (map.kind != MSGPACK_MAP)
		return weir_fail(error, WEIR_INVALID, "its options are no map");
	for (uint32_t i = 0; i < map.count; i++) {
		struct msgpack at = *from;
		if (msgpack_next(&at, &name) != WEIR_OK || msgpack_skip(from) != WEIR_OK)
			return cut_short(error);
		at = *from;
		if (msgpack_next(&at, &value) != WEIR_OK || msgpack_skip(from) != WEIR_OK)
			return cut_short(error);
		enum weir_status status = is_text(&name) ? read_option(name.bytes, &value, frame, error) : WEIR_OK;
		if (status != WEIR_OK)
			return status;
	}
	if (frame->packing != FORWARD_PLAIN && frame->kind != FORWARD_PACKED)
		return weir_fail(error, WEIR_INVALID, "it is \"compressed\", and its entries are not bytes");
	return WEIR_OK;
}

/* The entries, which tell the mode. @param rest  of the message's elements, behind the tag; lowered */
static enum weir_status read_entries(struct msgpack *from, uint32_t *rest, struct forward_frame *frame,
                                     struct weir_error *error)
{
	struct msgpack whole = *from;
	struct msgpack_item item;
	if (*rest == 0 || msgpack_next(from, &item) != WEIR_OK)
		return weir_fail(error, WEIR_INVALID, "it has nothing behind its tag");
	--*rest;
	if (is_text(&item)) {
		frame->kind = FORWARD_PACKED;
		frame->entries = msgpack_of(item.bytes.at, item.bytes.length);
		return WEIR_OK;
	}
	struct msgpack begin = *from;
	uint32_t values = item.count;
	frame->kind = FORWARD_LIST;
	if (item.kind != MSGPACK_ARRAY) {
		frame->kind = FORWARD_MESSAGE;
		begin = whole;
		values = 1; /* the record */
		if (item.kind == MSGPACK_MAP || *rest == 0)
			return weir_fail(error, WEIR_INVALID,
			                 "it has no time and record, no list of entries and no packed entries");
		--*rest;
	}
	for (uint32_t i = 0; i < values; i++)
		if (msgpack_skip(from) != WEIR_OK)
			return cut_short(error);
	frame->entries = (struct msgpack){.at = begin.at, .end = from->at};
	return WEIR_OK;
}

enum weir_status forward_frame_read(const void *bytes, size_t length, struct forward_frame *frame,
                                    struct weir_error *error)
{
	struct msgpack from = msgpack_of(bytes, length);
	struct msgpack_item whole, tag;
	*frame = (struct forward_frame){.kind = FORWARD_HEARTBEAT};
	if (msgpack_next(&from, &whole) != WEIR_OK)
		return cut_short(error);
	if (whole.kind == MSGPACK_NIL)
		return WEIR_OK;
	if (whole.kind != MSGPACK_ARRAY || whole.count == 0)
		return weir_fail(error, WEIR_INVALID, "it is no array that begins with a tag");
	if (msgpack_next(&from, &tag) != WEIR_OK || !is_text(&tag))
		return weir_fail(error, WEIR_INVALID, "its first element, the tag, is no string");
	if (says(tag.bytes, "PING"))
		return read_ping(&from, whole.count, frame, error);
	if (tag.bytes.length > FORWARD_TAG_MOST_BYTES)
		return weir_fail(error, WEIR_INVALID, "its tag has more than %d bytes", FORWARD_TAG_MOST_BYTES);
	frame->tag = tag.bytes;
	uint32_t rest = whole.count - 1;
	enum weir_status status = read_entries(&from, &rest, frame, error);
	if (status == WEIR_OK && rest > 1)
		status = weir_fail(error, WEIR_INVALID, "it has %u elements behind its entries instead of 1", rest);
	return status == WEIR_OK && rest == 1 ? read_options(&from, frame, error) : status;
}
