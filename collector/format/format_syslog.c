/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Format `syslog`: the parts of a message's head as fields (syslog_header.h).
 *
 * A field that is named "id.param" is a parameter of the structured data; the last of its name counts. A time without
 * a year is read where the option "year" says one: the source `syslog`, which has a clock, writes whole times. A repeated
 * message (repeated_line.h) is the one within, and stands for all of them, whichever format reads it.
 */
#include "collector/format/format_slots.h"
#include "collector/format/repeated_line.h"
#include "collector/record/syslog_header.h"
#include "common/base/alloc.h"

#include <stdlib.h>

enum part {
	PART_TIME,
	PART_HOST,
	PART_APP,
	PART_PROCID,
	PART_MSGID,
	PART_SEVERITY,
	PART_FACILITY,
	PART_MESSAGE,
	PART_DATA, /* a parameter, or nothing that there is */
};

struct format_syslog {
	struct format format;
	struct format_options options;
	struct format_slots slots;
	uint8_t parts[FORMAT_SLOTS_MAX];
	bool wants_data;
	char *scratch; /* values without their backslashes, all of a line */
	size_t scratch_bytes;
};

static enum part part_of(const char *name)
{
	static const char *const names[PART_DATA] = {
		[PART_TIME] = "time",   [PART_HOST] = "host",         [PART_APP] = "app",           [PART_PROCID] = "procid",
		[PART_MSGID] = "msgid", [PART_SEVERITY] = "severity", [PART_FACILITY] = "facility", [PART_MESSAGE] = "message"};
	int part = 0;
	while (part < PART_DATA && strcmp(names[part], name) != 0)
		part++;
	return (enum part)part;
}

static bool is_named(struct weir_span name, const struct syslog_param *param)
{
	uint32_t id = param->id.length;
	return name.length == id + 1 + param->name.length && name.at[id] == '.' && memcmp(name.at, param->id.at, id) == 0 &&
	       memcmp(name.at + id + 1, param->name.at, param->name.length) == 0;
}

static void take_data(struct format_syslog *syslog, struct weir_span data, struct weir_span *values)
{
	struct weir_span id = {0};
	struct syslog_param param;
	if (data.length > syslog->scratch_bytes) {
		syslog->scratch_bytes = data.length;
		syslog->scratch = weir_realloc(syslog->scratch, data.length, 1);
	}
	char *room = syslog->scratch;
	while (syslog_data_next(&data, &id, &param))
		for (uint32_t slot = 0; slot < syslog->slots.count; slot++) {
			if (syslog->parts[slot] != PART_DATA || !is_named(syslog->slots.names[slot], &param))
				continue;
			values[slot] = param.value;
			if (!param.escaped)
				continue;
			values[slot] = (struct weir_span){.at = room, .length = syslog_unescape(param.value, room)};
			room += values[slot].length;
		}
}

static struct weir_span part_value(const struct syslog_header *header, enum part part)
{
	switch (part) {
	case PART_TIME: return header->time;
	case PART_HOST: return header->host;
	case PART_APP: return header->app;
	case PART_PROCID: return header->procid;
	case PART_MSGID: return header->msgid;
	case PART_SEVERITY:
		return header->priority < 0 ? (struct weir_span){0} : weir_span_of(syslog_severity(header->priority));
	case PART_FACILITY:
		return header->priority < 0 ? (struct weir_span){0} : weir_span_of(syslog_facility(header->priority));
	case PART_MESSAGE: return header->message;
	case PART_DATA: break;
	}
	return (struct weir_span){0};
}

static enum format_reason parse(struct format *format, const char *line, uint32_t length, struct weir_record *record)
{
	struct format_syslog *syslog = (struct format_syslog *)format;
	struct weir_span values[FORMAT_SLOTS_MAX];
	struct syslog_header header;
	if (!syslog_header_parse((struct weir_span){.at = line, .length = length}, &header))
		return format->malformed;
	bool cut;
	record->times = repeated_take(&header.message, &cut);
	record->cut |= cut;
	for (uint32_t slot = 0; slot < syslog->slots.count; slot++)
		values[slot] = part_value(&header, (enum part)syslog->parts[slot]);
	if (syslog->wants_data && header.data.at != NULL)
		take_data(syslog, header.data, values);
	return format_slots_finish(&syslog->slots, &syslog->options, values, record);
}

static void syslog_free(struct format *format)
{
	struct format_syslog *syslog = (struct format_syslog *)format;
	format_options_deinit(&syslog->options);
	free(syslog->scratch);
	free(syslog);
}

static enum weir_status create(const struct weir_json *config, const struct format_kind *kind,
                               const struct weir_field_table *fields, struct format **format, struct weir_error *error)
{
	struct weir_json body = weir_json_member(config, "message");
	if (weir_json_exists(&body))
		return format_message_split(kind, config, fields, format, error);
	struct format_syslog *syslog = weir_alloc(1, sizeof *syslog);
	syslog->format.parse = parse;
	syslog->format.free = syslog_free;
	syslog->format.takes_cut = true;
	enum weir_status status = format_options_init(&syslog->options, config, fields, kind, &syslog->format, error);
	if (status != WEIR_OK) {
		format_free(&syslog->format);
		return status;
	}
	format_slots_init(&syslog->slots, &syslog->options);
	for (uint32_t slot = 0; slot < syslog->slots.count; slot++) {
		enum part part = part_of(syslog->slots.names[slot].at);
		syslog->parts[slot] = (uint8_t)part;
		syslog->wants_data |= part == PART_DATA && strchr(syslog->slots.names[slot].at, '.') != NULL;
	}
	*format = &syslog->format;
	return WEIR_OK;
}

static const struct weir_json_rule options[] = {
	{.name = "message", .meaning = "the format of the message", .shape = format_message_shape},
	{.name = NULL},
};

const struct format_kind format_syslog = {
	.name = "syslog",
	.meaning = "messages with an RFC 5424 or RFC 3164 header",
	.malformed = "not syslog",
	.takes = FORMAT_TAKES_FIELDS | FORMAT_TAKES_YEAR,
	.options = options,
	.message = "message",
	.message_is_whole = true,
	.create = create,
};
