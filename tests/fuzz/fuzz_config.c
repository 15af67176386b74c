/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a configuration: it is read or refused in words, and what is read can be described. */
#include "common/config/config.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The same text as options: split at line breaks into a format, a key, a limit and a log. */
static void try_shorthand(const uint8_t *data, size_t size)
{
	char *text = calloc(size + 1, 1), *rest = text, *made = NULL;
	const char *pieces[4] = {NULL};
	memcpy(text, data, size);
	for (size_t i = 0; i < 4 && rest != NULL; i++)
		pieces[i] = strsep(&rest, "\n");
	struct weir_shorthand shorthand = {.format = pieces[0],
	                                   .keys = &pieces[1],
	                                   .key_count = pieces[1] != NULL,
	                                   .limits = &pieces[2],
	                                   .limit_count = pieces[2] != NULL,
	                                   .logs = &pieces[3],
	                                   .log_count = pieces[3] != NULL};
	struct weir_error error = {.text = ""};
	struct weir_config *config = NULL;
	if (weir_config_shorthand(&shorthand, &made, &error) == WEIR_OK) {
		/* What the options make is accepted, but for what only the parser bounds. */
		if (weir_config_parse(WEIR_JSON_COMMAND_LINE, made, strlen(made), &config, &error) == WEIR_OK)
			weir_config_free(config);
		free(made);
	} else {
		assert(error.text[0] != '\0');
	}
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct weir_config *config = NULL;
	struct weir_error error = {.text = ""};
	/* No file is read: what a list or a secret names would be another input. */
	if (memmem(data, size, "file", 4) == NULL &&
	    weir_config_parse("fuzz.json", (const char *)data, size, &config, &error) == WEIR_OK) {
		for (uint32_t i = 0; i < config->policy->zone_count; i++)
			free(weir_zone_describe(&config->policy->zones[i]));
		assert(config->limiter.threads >= 1 && config->limiter.threads <= config->bus.partitions);
		assert(config->limiter.memory_bytes > 0);
		weir_config_free(config);
	}
	assert(strchr(error.text, '\n') == NULL);
	try_shorthand(data, size);
	return 0;
}
