/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields that a zone needs and that no line has had: a format may read each line and yet find, in a log of another form,
 * no request in any. Such a run is no error, but would look like one in which nobody was over a limit.
 */
#include "collector/follow/inputs.h"

#include "collector/source/kinds/source_kinds.h"

#include <string.h>

/* What the first records of a zone's sources had. */
struct looked {
	uint64_t records, fields; /* a bit for each field that one of them had */
	uint64_t possible;        /* and for each that some format may give */
};

/* Lines of such formats are messages of many kinds: that a field was in none so far says nothing of the next. */
static bool is_of_messages(const struct format *format)
{
	for (; format != NULL; format = format->inner)
		for (const char *const *name = format->names; name != NULL && *name != NULL; name++)
			if (strcmp(*name, "event") == 0 || strcmp(*name, "message") == 0)
				return true;
	return false;
}

static void look_at_source(const struct inputs *inputs, size_t place, struct looked *looked)
{
	struct source_stream **streams;
	size_t count = inputs_streams(inputs, place, &streams);
	for (size_t i = 0; i < count; i++) {
		const struct record_reader *reader = streams[i]->context;
		if (reader == NULL || reader->looked_records == 0 || is_of_messages(reader->format))
			continue;
		looked->records += reader->looked_records;
		looked->fields |= reader->looked_fields;
		for (uint32_t field = 0; field < inputs->fields.count; field++)
			looked->possible |= (uint64_t)!format_lacks(reader->format, field) << field;
	}
}

static bool is_absent(const struct inputs *inputs, const struct looked *looked, const char *name)
{
	int field = weir_field_table_find(&inputs->fields, weir_span_of(name));
	return field >= 0 && (looked->fields >> field & 1) == 0 && (looked->possible >> field & 1) != 0;
}

const char *inputs_absent_field(const struct inputs *inputs, const struct weir_zone *zone, uint64_t *records)
{
	struct looked looked = {0};
	for (size_t i = 0; i < inputs->source_count && zone->feed != WEIR_FEED_CHECK; i++) {
		struct weir_json source = weir_json_element(&inputs->config->sources, i);
		const struct source_ops *kind = source_kind(&source);
		if (kind != NULL && kind->own_name == NULL && weir_zone_takes_source(zone, source_zones_name(&source)))
			look_at_source(inputs, i, &looked);
	}
	*records = looked.records;
	for (uint32_t i = 0; i < zone->key_count; i++)
		if (is_absent(inputs, &looked, zone->key[i].field))
			return zone->key[i].field;
	for (uint32_t i = 0; i < zone->match.field_count; i++)
		if (!zone->match.fields[i].negated && is_absent(inputs, &looked, zone->match.fields[i].field))
			return zone->match.fields[i].field;
	return NULL;
}

bool inputs_absent_words(const struct inputs *inputs, const struct weir_zone *zone, struct weir_text *words)
{
	uint64_t records;
	const char *field = inputs_absent_field(inputs, zone, &records);
	if (field == NULL || records < ABSENT_TELLING_RECORDS)
		return false;
	weir_text_printf(
		words,
		"matches nothing so far: none of the first %llu events has the field \"%.80s\", without which no event is in the zone: does the "
		"log write it where the format expects it? `weir validate` shows what is read",
		(unsigned long long)records, field);
	weir_text_append(words, "", 1);
	return true;
}
