/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of field names that a configuration's zones, formats and costs share.
 *
 * It is a short list that is searched only while the configuration is read: at run time a field is its index.
 */
#include "common/record/record.h"

#include "common/base/alloc.h"

#include <assert.h>
#include <stdlib.h>

static const char *const standard_names[WEIR_FIELD_STANDARD_COUNT] = {
	[WEIR_FIELD_IP] = "ip",     [WEIR_FIELD_USER] = "user",     [WEIR_FIELD_METHOD] = "method",
	[WEIR_FIELD_PATH] = "path", [WEIR_FIELD_STATUS] = "status", [WEIR_FIELD_BYTES] = "bytes",
	[WEIR_FIELD_HOST] = "host", [WEIR_FIELD_AGENT] = "agent",
};

void weir_field_table_init(struct weir_field_table *table)
{
	*table = (struct weir_field_table){.count = WEIR_FIELD_STANDARD_COUNT};
	for (uint32_t i = 0; i < WEIR_FIELD_STANDARD_COUNT; i++)
		table->names[i] = weir_copy(standard_names[i], strlen(standard_names[i]));
}

void weir_field_table_deinit(struct weir_field_table *table)
{
	for (uint32_t i = 0; i < table->count; i++)
		free((char *)table->names[i]);
	*table = (struct weir_field_table){0};
}

int weir_field_table_find(const struct weir_field_table *table, struct weir_span name)
{
	for (uint32_t i = 0; i < table->count; i++) {
		if (weir_span_equal(weir_span_of(table->names[i]), name))
			return (int)i;
	}
	return -1;
}

int weir_field_table_want(struct weir_field_table *table, const char *name)
{
	assert(table->count >= WEIR_FIELD_STANDARD_COUNT);
	int index = weir_field_table_find(table, weir_span_of(name));
	if (index < 0) {
		if (table->count == WEIR_FIELD_MAX)
			return -1;
		index = (int)table->count++;
		table->names[index] = weir_copy(name, strlen(name));
	}
	table->wanted |= UINT64_C(1) << index;
	return index;
}

enum { SINGLE_PARTS = 32 };

uint32_t weir_record_parts(uint32_t times, uint32_t parts[WEIR_RECORD_PARTS_MAX])
{
	uint32_t count = 0, left = times < WEIR_RECORD_TIMES_MAX ? times : WEIR_RECORD_TIMES_MAX;
	for (; left > SINGLE_PARTS; left -= parts[count++])
		parts[count] = left / 2;
	for (; left > 0; left--)
		parts[count++] = 1;
	return count;
}
