/* SPDX-License-Identifier: Apache-2.0 */
/* combined and common: their quick ways against the grammar read by the letter, and against one another. */
#include "collector/format/combined_line.h"
#include "collector/format/combined_usual.h"
#include "tests/fuzz/format_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const configs[] = {
	"{\"type\": \"combined\"}",
	"{\"type\": \"common\", \"time_zone\": \"Europe/Berlin\"}",
	"{\"type\": \"combined\", \"cost\": \"bytes\", \"client_ip\": {\"header\": \"xff\", \"trusted\": "
	"[\"10.0.0.0/8\", \"::1\", \"unix:\"]}}",
	NULL,
};

/* With AVX2 and without it, a line is the same, with what was learnt from the lines before. */
static void check_plain(const struct target *target, const char *line, uint32_t length, enum format_reason reason,
                        const struct weir_record *record)
{
	static struct format *plain[TARGET_FORMATS_MAX];
	struct weir_record other;
	for (size_t i = 0; i < target->count; i++) {
		if (target->formats[i] != target->parsed)
			continue;
		if (plain[i] == NULL) {
			plain[i] = target_format(configs[i], &target->fields);
			plain[i]->parse = combined_parse_plain;
		}
		require(format_parse(plain[i], line, length, &other) == reason);
	}
	if (reason != FORMAT_OK)
		return;
	require(other.time_ms == record->time_ms && other.cost == record->cost && other.ip == record->ip);
	require(other.cut == record->cut);
	for (uint32_t i = 0; i < target->fields.count; i++)
		require((target->fields.wanted >> i & 1) == 0 || weir_span_equal(other.fields[i], record->fields[i]));
}

static void check(struct target *target, const char *line, uint32_t length, enum format_reason reason,
                  const struct weir_record *record)
{
	static const struct {
		enum combined_part part;
		const char *name;
	} parts[] = {
		{COMBINED_USER, "user"},     {COMBINED_METHOD, "method"},   {COMBINED_TARGET, "target"},
		{COMBINED_STATUS, "status"}, {COMBINED_REFERER, "referer"}, {COMBINED_AGENT, "agent"},
		{COMBINED_XFF, "xff"},       {COMBINED_HOST, "host"},
	};
	static struct unescape_scratch scratch;
	struct combined_line split;
	if (length == 0)
		return;
	check_plain(target, line, length, reason, record);
	bool taken = combined_line_split((struct weir_span){.at = line, .length = length}, &split);
	require(taken == (reason < FORMAT_MALFORMED));
	for (size_t i = 0; reason == FORMAT_OK && i < sizeof parts / sizeof parts[0]; i++) {
		char room[WEIR_SERVED_HOST_BYTES];
		struct weir_span part = split.parts[parts[i].part];
		if (part.length == 0 || (part.length == 1 && part.at[0] == '-'))
			part = (struct weir_span){0};
		unescape_scratch_clear(&scratch);
		part = unescape_log(&scratch, part, length);
		bool escaped = part.length > 0 && part.at == scratch.bytes;
		bool host = parts[i].part == COMBINED_HOST && part.at != NULL;
		if (host)
			part = weir_served_host(part, room);
		bool method = parts[i].part == COMBINED_METHOD && part.at != NULL;
		if (method)
			part = weir_served_method(part);
		int field = weir_field_table_find(&target->fields, weir_span_of(parts[i].name));
		require(host || method || escaped || record->fields[field].at == part.at);
		require(weir_span_equal(record->fields[field], part));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"ip",   "ident", "user",    "method", "target", "status", "path",
	                                    "host", "bytes", "referer", "agent",  "xff",    NULL};
	static struct target target;
	if (target.count == 0)
		target_init(&target, names, configs);
	target_run(&target, data, size, check);
	return 0;
}
