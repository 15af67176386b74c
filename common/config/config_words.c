/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command in a log line or a remedy is pasted into a shell: the file's name stands there as one word, from any
 * directory. Its links are left as they are: where they lead to may be replaced while the line is kept.
 */
#include "common/base/alloc.h"
#include "common/base/shell.h"
#include "common/config/config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Appends it as it is named from any directory. */
static void put_whole(struct weir_text *text, const char *path)
{
	char *here = path[0] != '/' ? getcwd(NULL, 0) : NULL;
	while (here != NULL && strncmp(path, "./", 2) == 0)
		path += 2;
	if (here != NULL)
		weir_text_printf(text, "%s%s", here, strcmp(here, "/") != 0 ? "/" : "");
	weir_text_puts(text, path);
	weir_text_append(text, "", 1);
	free(here);
}

char *weir_command_words(const char *option, const char *path)
{
	struct weir_text text = {0}, whole = {0};
	put_whole(&whole, path);
	weir_text_printf(&text, "%s %s", option, weir_shell_word(whole.at).text);
	weir_text_append(&text, "", 1);
	weir_text_deinit(&whole);
	return text.at;
}

const char *weir_config_words(const struct weir_config *config)
{
	return config != NULL && config->command_words != NULL ? config->command_words : "--config FILE";
}

const char *weir_config_zones_words(const struct weir_config *config)
{
	return config != NULL && config->policy != NULL ? weir_config_words(config) : "--config FILE";
}
