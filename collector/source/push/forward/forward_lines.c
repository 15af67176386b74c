/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries as lines, from the message itself or from a window on what is unpacked.
 *
 * A sender says how many bytes it packed, if at all, in a place that may lie: so no size is believed, and what one
 * message may unpack to has a limit of its own.
 */
#include "collector/source/push/forward/forward_lines.h"

enum { UNPACK_BYTES = 64 << 10 };

/* Fluent Bit's marks between groups of records, where a time would be. */
enum { GROUP_BEGINS = -1, GROUP_ENDS = -2 };

void forward_lines_init(struct forward_lines *lines, const struct forward_frame *frame,
                        const struct forward_limits *limits)
{
	*lines = (struct forward_lines){.frame = frame, .limits = *limits, .rest = frame->entries};
	weir_text_puts(&lines->head, "\"tag\":\"");
	msgpack_json_bytes(frame->tag, SIZE_MAX, &lines->head);
	weir_text_puts(&lines->head, "\"");
	lines->codec = frame->packing == FORWARD_GZIP ? &input_gzip : frame->packing == FORWARD_ZSTD ? &input_zstd : NULL;
	if (lines->codec != NULL)
		lines->codec_state = lines->codec->create();
}

void forward_lines_deinit(struct forward_lines *lines)
{
	if (lines->codec != NULL)
		lines->codec->destroy(lines->codec_state);
	weir_text_deinit(&lines->head);
	weir_text_deinit(&lines->window);
	*lines = (struct forward_lines){.frame = NULL};
}

/* ---- one entry ---- */

static bool is_named(const struct msgpack_item *key, const char *name)
{
	return (key->kind == MSGPACK_STRING || key->kind == MSGPACK_BINARY) &&
	       weir_span_equal(key->bytes, weir_span_of(name));
}

/* ,"a":1,"b":2 @return WEIR_OK, or as msgpack_skip() */
static enum weir_status put_members(struct msgpack *from, uint32_t count, bool has_metadata, size_t most,
                                    struct weir_text *text)
{
	for (uint32_t i = 0; i < count; i++) {
		struct msgpack_item key;
		enum weir_status status = msgpack_next(from, &key);
		if (status != WEIR_OK)
			return status;
		bool taken = is_named(&key, "time") || is_named(&key, "tag") || (has_metadata && is_named(&key, "metadata"));
		msgpack_json_put(text, most, ",", 1);
		if (taken) {
			msgpack_json_put(text, most, "\"_", 2);
			msgpack_json_put(text, most, key.bytes.at, key.bytes.length);
			msgpack_json_put(text, most, "\":", 2);
		} else {
			status = msgpack_json_key(from, &key, most, text);
		}
		if (status == WEIR_OK)
			status = msgpack_json(from, most, text);
		if (status != WEIR_OK)
			return status;
	}
	return WEIR_OK;
}

/* What an entry is made of. */
struct entry {
	struct msgpack_item time;
	struct msgpack metadata; /* a map; at NULL: it has none */
	struct msgpack record;   /* behind its map's head */
	uint32_t record_count;
	bool good;
	bool mark; /* it only begins or ends a group */
};

/* Takes the time apart from the metadata beside it. @return false: they are no such pair */
static bool look_at_pair(struct msgpack *from, struct entry *entry)
{
	struct msgpack_item map;
	int64_t seconds;
	uint32_t nanoseconds;
	if (entry->time.count != 2 || msgpack_next(from, &entry->time) != WEIR_OK)
		return false;
	struct msgpack begin = *from, inside = *from;
	if (msgpack_next(&inside, &map) != WEIR_OK || map.kind != MSGPACK_MAP || msgpack_skip(from) != WEIR_OK)
		return false;
	if (map.count > 0)
		entry->metadata = begin;
	if (msgpack_time(&entry->time, &seconds, &nanoseconds))
		entry->mark = (int32_t)seconds == GROUP_BEGINS || (int32_t)seconds == GROUP_ENDS;
	return true;
}

/* Looks at the parts of an entry. @param from  where its time begins */
static void look(struct msgpack from, struct entry *entry)
{
	struct msgpack_item item;
	*entry = (struct entry){.good = false};
	if (msgpack_next(&from, &entry->time) != WEIR_OK)
		return;
	if (entry->time.kind == MSGPACK_ARRAY && !look_at_pair(&from, entry))
		return;
	bool is_head = entry->time.kind == MSGPACK_MAP || entry->time.kind == MSGPACK_ARRAY;
	if (is_head || msgpack_next(&from, &item) != WEIR_OK || item.kind != MSGPACK_MAP)
		return;
	entry->record = from;
	entry->record_count = item.count;
	entry->good = true;
}

static void put_time(const struct msgpack_item *time, size_t most, struct weir_text *text)
{
	int64_t seconds;
	uint32_t nanoseconds;
	if (!msgpack_time(time, &seconds, &nanoseconds))
		return; /* without one the line is a dead letter, which shows it */
	msgpack_json_put(text, most, "\"time\":", 7);
	if (time->kind == MSGPACK_UNSIGNED || time->kind == MSGPACK_NEGATIVE)
		msgpack_json_item(time, most, text);
	else
		msgpack_json_time(seconds, nanoseconds, most, text);
	msgpack_json_put(text, most, ",", 1);
}

/* A good entry. @return WEIR_OK, or as msgpack_skip() */
static enum weir_status put_entry(const struct forward_lines *lines, const struct entry *entry, size_t most,
                                  struct weir_text *text)
{
	struct msgpack metadata = entry->metadata, record = entry->record;
	enum weir_status status = WEIR_OK;
	msgpack_json_put(text, most, "{", 1);
	put_time(&entry->time, most, text);
	msgpack_json_put(text, most, lines->head.at, lines->head.length);
	if (metadata.at != NULL) {
		msgpack_json_put(text, most, ",\"metadata\":", 12);
		status = msgpack_json(&metadata, most, text);
	}
	if (status == WEIR_OK)
		status = put_members(&record, entry->record_count, metadata.at != NULL, most, text);
	msgpack_json_put(text, most, "}", 1);
	return status;
}

/*
 * Appends the line of one entry.
 *
 * @param whole  the entry with all that belongs to it; a message's is its time and its record, without an array
 */
static enum weir_status put_line(const struct forward_lines *lines, struct msgpack whole, struct weir_text *text,
                                 uint32_t *count)
{
	size_t most = text->length + lines->limits.line_max + 1;
	struct msgpack_item head;
	struct msgpack inside = whole;
	struct entry entry = {.good = false};
	bool bare = lines->frame->kind == FORWARD_MESSAGE;
	if (bare)
		look(whole, &entry);
	else if (msgpack_next(&inside, &head) == WEIR_OK && head.kind == MSGPACK_ARRAY && head.count >= 2)
		look(inside, &entry);
	if (entry.good && entry.mark)
		return WEIR_OK;
	enum weir_status status = WEIR_OK;
	if (entry.good) {
		status = put_entry(lines, &entry, most, text);
	} else {
		msgpack_json_put(text, most, "{", 1);
		msgpack_json_put(text, most, lines->head.at, lines->head.length);
		msgpack_json_put(text, most, ",\"entry\":", 9);
		if (bare)
			status = msgpack_skip(&whole); /* of the two values the record is what tells more */
		if (status == WEIR_OK)
			status = msgpack_json(&whole, most, text);
		msgpack_json_put(text, most, "}", 1);
	}
	weir_text_append(text, "\n", 1);
	++*count;
	return status;
}

/* ---- entry after entry ---- */

/* Unpacks some more. @return WEIR_OK: the window has grown; WEIR_END: there is no more; WEIR_INVALID */
static enum weir_status unpack(struct forward_lines *lines, struct msgpack *packed, struct weir_error *error)
{
	if (lines->begin > 0) {
		memmove(lines->window.at, lines->window.at + lines->begin, lines->window.length - lines->begin);
		lines->window.length -= lines->begin;
		lines->begin = 0;
	}
	struct input_step step = {.at = packed->at,
	                          .rest = (size_t)(packed->end - packed->at),
	                          .out = (unsigned char *)weir_text_reserve(&lines->window, UNPACK_BYTES),
	                          .room = UNPACK_BYTES};
	enum weir_status status = lines->codec->decode(lines->codec_state, &step, error);
	bool moved = packed->at != step.at;
	packed->at = step.at;
	size_t got = UNPACK_BYTES - step.room;
	lines->window.length += got;
	lines->unpacked += got;
	if (lines->unpacked > lines->limits.packed_most)
		return weir_fail(error, WEIR_INVALID, "it unpacks to more than %llu bytes",
		                 (unsigned long long)lines->limits.packed_most);
	if (status != WEIR_OK || got > 0 || moved)
		return status;
	if (!lines->codec->complete(lines->codec_state))
		return weir_fail(error, WEIR_INVALID, "its %s data is cut off", lines->codec->name);
	return WEIR_END;
}

/* Finds the next entry in what is unpacked. @param packed  what is not, moved on */
static enum weir_status next_unpacked(struct forward_lines *lines, struct msgpack *packed, struct msgpack *entry,
                                      struct weir_error *error)
{
	for (;;) {
		size_t there = lines->window.length - lines->begin;
		const char *at = there > 0 ? lines->window.at + lines->begin : "";
		enum weir_status status = msgpack_measure(&lines->extent, at, there, lines->limits.entry_most, error);
		if (status == WEIR_OK) {
			*entry = msgpack_of(at, lines->extent.seen);
			lines->begin += lines->extent.seen;
			lines->extent = (struct msgpack_extent){0};
			return WEIR_OK;
		}
		if (status == WEIR_AGAIN)
			status = unpack(lines, packed, error);
		if (status == WEIR_END && there > 0)
			return weir_fail(error, WEIR_INVALID, "its last entry is cut off");
		if (status != WEIR_OK)
			return status == WEIR_FULL ? WEIR_INVALID : status;
	}
}

static enum weir_status next_plain(struct msgpack *entries, bool bare, struct msgpack *entry, struct weir_error *error)
{
	if (entries->at == entries->end)
		return WEIR_END;
	*entry = *entries;
	enum weir_status status = msgpack_skip(entries);
	if (status == WEIR_OK && bare)
		status = msgpack_skip(entries);
	entry->end = entries->at;
	return status == WEIR_OK ? WEIR_OK : weir_fail(error, WEIR_INVALID, "an entry is no MessagePack or is cut off");
}

enum weir_status forward_lines_next(struct forward_lines *lines, size_t bytes, uint32_t most_lines,
                                    struct weir_text *text, uint32_t *count, struct weir_error *error)
{
	while (text->length < bytes && *count < most_lines) {
		struct msgpack entry;
		enum weir_status status = lines->codec != NULL
		                              ? next_unpacked(lines, &lines->rest, &entry, error)
		                              : next_plain(&lines->rest, lines->frame->kind == FORWARD_MESSAGE, &entry, error);
		if (status != WEIR_OK)
			return status;
		size_t before = text->length;
		uint32_t lines_before = *count;
		if (put_line(lines, entry, text, count) != WEIR_OK) {
			text->length = before;
			*count = lines_before;
			return weir_fail(error, WEIR_INVALID, "an entry is no MessagePack or is cut off");
		}
	}
	return WEIR_OK;
}
