/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Format `logfmt`: key=value pairs between blanks, as Heroku, Grafana and many Go programs write them.
 *
 * A pass over the tokens; only the values of wanted names are kept. A key alone is the word "true". Of a line that lacks its end
 * the last token is none.
 */
#include "collector/format/format_slots.h"
#include "collector/record/unescape.h"
#include "common/base/alloc.h"
#include "common/record/find.h"

#include <stdlib.h>

struct format_logfmt {
	struct format format;
	struct format_options options;
	struct format_slots slots;
	struct unescape_scratch scratch;
	int path_slot, target_slot; /* -1: not wanted */
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* The end of a key: a blank, '=', '"' or the line's end. */
static const char *key_end(const char *at, const char *end)
{
	while (at < end) {
		weir_find_block block = weir_find_load_until(at, end);
		uint64_t mask = weir_find_space_or_quote(block) | weir_find_equal(block, '=') | weir_find_equal(block, '\t');
		if (mask != 0)
			return at + weir_find_index(mask);
		at += end - at < WEIR_FIND_BYTES ? end - at : WEIR_FIND_BYTES;
	}
	return end;
}

/* Takes what follows "key=": gives its raw value and moves past it; false: a quote that does not end. */
static bool take_value(const char **at, const char *end, struct weir_span *raw, bool *quoted)
{
	const char *begin = *at, *close;
	*quoted = begin < end && *begin == '"';
	if (*quoted) {
		begin++;
		close = weir_find_closing_quote(begin, end);
		if (close == NULL)
			return false;
		*at = close + 1;
	} else {
		close = weir_find_either(begin, end, ' ', '\t');
		*at = close;
	}
	*raw = (struct weir_span){.at = begin, .length = (uint32_t)(close - begin)};
	return true;
}

static enum format_reason parse(struct format *format, const char *line, uint32_t length, struct weir_record *record)
{
	struct format_logfmt *logfmt = (struct format_logfmt *)format;
	struct weir_span values[FORMAT_SLOTS_MAX];
	memset(values, 0, logfmt->slots.count * sizeof values[0]);
	unescape_scratch_clear(&logfmt->scratch);
	const char *at = line, *end = line + length;
	bool has_pair = false;
	for (;;) {
		while (at < end && is_blank(*at))
			at++;
		if (at == end)
			break;
		const char *key = at;
		at = key_end(at, end);
		if (at == key)
			return format->malformed;
		int slot = format_slots_find(&logfmt->slots, key, (uint32_t)(at - key));
		struct weir_span value = weir_span_of("true");
		if (at < end && *at == '=') {
			bool quoted;
			has_pair = true;
			at++;
			if (!take_value(&at, end, &value, &quoted)) {
				if (!format->cut)
					return format->malformed;
				break;
			}
			if (slot >= 0 && quoted && memchr(value.at, '\\', value.length) != NULL)
				value = unescape(&logfmt->scratch, value, length, true);
			else if (slot >= 0 && !quoted && (slot == logfmt->path_slot || slot == logfmt->target_slot))
				value = unescape_log(&logfmt->scratch, value, length);
		}
		if (at < end && !is_blank(*at))
			return format->malformed;
		if (slot >= 0 && (at < end || !format->cut))
			values[slot] = value;
	}
	if (!has_pair)
		return format->malformed;
	enum format_reason reason = format_slots_finish(&logfmt->slots, &logfmt->options, values, record);
	bool nobody = format->client_ip == NULL && record->fields[WEIR_FIELD_IP].at == NULL;
	return format->cut && (reason == FORMAT_NO_TIME || nobody) ? format->malformed : reason;
}

static void logfmt_free(struct format *format)
{
	struct format_logfmt *logfmt = (struct format_logfmt *)format;
	unescape_scratch_deinit(&logfmt->scratch);
	format_options_deinit(&logfmt->options);
	free(logfmt);
}

static enum weir_status create(const struct weir_json *config, const struct format_kind *kind,
                               const struct weir_field_table *fields, struct format **format, struct weir_error *error)
{
	struct format_logfmt *logfmt = weir_alloc(1, sizeof *logfmt);
	logfmt->format.parse = parse;
	logfmt->format.free = logfmt_free;
	logfmt->format.takes_cut = true;
	enum weir_status status = format_options_init(&logfmt->options, config, fields, kind, &logfmt->format, error);
	if (status != WEIR_OK) {
		format_free(&logfmt->format);
		return status;
	}
	format_slots_init(&logfmt->slots, &logfmt->options);
	logfmt->path_slot = format_slots_of_field(&logfmt->slots, WEIR_FIELD_PATH);
	logfmt->target_slot =
		logfmt->format.target >= 0 ? format_slots_of_field(&logfmt->slots, (uint32_t)logfmt->format.target) : -1;
	*format = &logfmt->format;
	return WEIR_OK;
}

const struct format_kind format_logfmt = {
	.name = "logfmt",
	.meaning = "`key=value key=\"a value\"`",
	.malformed = "not logfmt",
	.takes = FORMAT_TAKES_FIELDS | FORMAT_TAKES_TIME | FORMAT_TAKES_YEAR | FORMAT_NEEDS_IP,
	.create = create,
};
