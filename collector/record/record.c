/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of field names that a configuration's zones, formats and costs share.
 *
 * It is a short list that is searched only while the configuration is read: at run time a field is its index.
 */
#include "collector/record/record.h"

#include "common/base/alloc.h"

#include <assert.h>
#include <stdlib.h>

static const char *const standard_names[FIELD_STANDARD_COUNT] = {
	[FIELD_IP] = "ip",         [FIELD_USER] = "user",   [FIELD_METHOD] = "method", [FIELD_PATH] = "path",
	[FIELD_STATUS] = "status", [FIELD_BYTES] = "bytes", [FIELD_HOST] = "host",     [FIELD_AGENT] = "agent",
};

void field_table_init(struct field_table *table)
{
	*table = (struct field_table){.count = FIELD_STANDARD_COUNT};
	for (uint32_t i = 0; i < FIELD_STANDARD_COUNT; i++)
		table->names[i] = weir_copy(standard_names[i], strlen(standard_names[i]));
}

void field_table_deinit(struct field_table *table)
{
	for (uint32_t i = 0; i < table->count; i++)
		free((char *)table->names[i]);
	*table = (struct field_table){0};
}

int field_table_find(const struct field_table *table, struct weir_span name)
{
	for (uint32_t i = 0; i < table->count; i++) {
		if (weir_span_equal(weir_span_of(table->names[i]), name))
			return (int)i;
	}
	return -1;
}

int field_table_want(struct field_table *table, const char *name)
{
	assert(table->count >= FIELD_STANDARD_COUNT);
	int index = field_table_find(table, weir_span_of(name));
	if (index < 0) {
		if (table->count == FIELD_MAX)
			return -1;
		index = (int)table->count++;
		table->names[index] = weir_copy(name, strlen(name));
	}
	table->wanted |= UINT64_C(1) << index;
	return index;
}
