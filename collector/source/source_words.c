/* SPDX-License-Identifier: Apache-2.0 */
/* Describes a checked configuration for people. Members that are absent, or of another type, are skipped. */
#include "collector/source/source_words.h"

#include "common/json/json_shape.h"

#include <string.h>

const char *const source_starts[] = {[SOURCE_FROM_BEGINNING] = "beginning", [SOURCE_FROM_END] = "end", NULL};

const char *const source_guarantees[] = {"exactly once", "at least once", "at most once"};

void source_words_problem(struct weir_text *text, const struct source_status *status)
{
	if (strstr(status->problem, status->name) == NULL)
		weir_text_printf(text, "%s: ", status->name);
	weir_text_puts(text, status->problem);
}

void source_words_list(struct weir_text *text, const struct weir_json *at)
{
	if (json_is_string(at->value))
		weir_text_puts(text, json_string_value(at->value));
	for (size_t i = 0; i < json_array_size(at->value); i++)
		weir_text_printf(text, "%s%s", i > 0 ? ", " : "", json_string_value(json_array_get(at->value, i)));
}

void source_words_start(struct weir_text *text, const struct weir_json *config)
{
	struct weir_json start = weir_json_member(config, "start");
	const char *word = json_string_value(start.value);
	weir_text_printf(text, "; initially from the %s of what exists",
	                 word != NULL ? word : source_starts[SOURCE_FROM_BEGINNING]);
}

void source_words_manner(struct weir_text *text, const struct weir_json *config, bool follows)
{
	struct weir_json follow = weir_json_member(config, "follow");
	follows = json_is_true(follow.value) || (follows && !json_is_false(follow.value));
	weir_text_puts(text, follows ? "followed" : "read to its end");
	if (follows)
		source_words_start(text, config);
}

json_t *source_format_shape(void)
{
	return weir_shape_named("format");
}
