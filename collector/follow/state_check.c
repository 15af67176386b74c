/* SPDX-License-Identifier: Apache-2.0 */
/* One file after another, each by its own reader: all that is damaged is told at once, where a start ends at the first. */
#include "collector/follow/state_check.h"

#include "collector/source/kinds/source_kinds.h"
#include "collector/source/source_memory.h"
#include "common/files/durable_file.h"

void state_check(const char *state, const struct weir_config *config, state_check_take *take, void *context)
{
	struct source_memory *memory = NULL;
	struct weir_error error;
	char path[WEIR_PATH_BYTES];
	if (source_memory_look(state, &memory, &error) != WEIR_OK)
		take(context, &error);
	source_memory_free(memory);
	for (size_t i = 0; i < config->source_count; i++) {
		struct weir_json source = weir_json_element(&config->sources, i), at = weir_json_member(&source, "name");
		const struct source_ops *kind = source_kind(&source);
		const char *name = json_string_value(at.value);
		if (kind == NULL || kind->check_spool == NULL || name == NULL)
			continue;
		enum weir_status status = weir_path_format(path, &error, "%s/spool-%s", state, name);
		if (status == WEIR_OK)
			status = kind->check_spool(path, &error);
		if (status != WEIR_OK)
			take(context, &error);
	}
}
