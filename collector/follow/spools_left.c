/* SPDX-License-Identifier: Apache-2.0 */
/* A source's "name" is that of its spool: so a directory "spool-NAME" that no source has is left over. */
#include "collector/follow/spools_left.h"

#include "collector/source/kinds/source_kinds.h"
#include "collector/source/source_memory.h"
#include "common/base/clock.h"
#include "common/base/shell.h"
#include "common/files/durable_file.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COUNT_MOST_MS = 2000 }; /* all together: a start waits for it */

static const char prefix[] = "spool-";

/* Any kind that has spools: they are alike. */
static const struct source_ops *kind_of_spools(void)
{
	size_t count;
	const struct source_ops *const *kinds = source_kinds(&count);
	for (size_t i = 0; i < count; i++)
		if (kinds[i]->count_left != NULL)
			return kinds[i];
	return NULL;
}

static bool is_configured(const struct weir_config *config, const char *name)
{
	for (size_t i = 0; i < config->source_count; i++) {
		struct weir_json source = weir_json_element(&config->sources, i), at = weir_json_member(&source, "name");
		const struct source_ops *kind = source_kind(&source);
		const char *own = json_string_value(at.value);
		if (kind != NULL && kind->count_left != NULL && own != NULL && strcmp(own, name) == 0)
			return true;
	}
	return false;
}

/* What a source has made there. Another directory of such a name is somebody else's: it is let alone. */
static bool is_spool(const char *path)
{
	static const char *const parts[] = {"partitions", "events"};
	char part[WEIR_PATH_BYTES];
	struct weir_error error;
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (weir_path_format(part, &error, "%s/%s", path, parts[i]) != WEIR_OK || access(part, F_OK) != 0)
			return false;
	return true;
}

static void look_at(const char *path, const char *name, const struct source_memory *memory, int64_t end_ms,
                    spools_left_take *take, void *context)
{
	char words[2 * WEIR_PATH_BYTES + WEIR_SHELL_WORD_BYTES + 512], holds[256];
	struct source_left left = {.end_ms = end_ms};
	struct weir_error error;
	struct stat about;
	if (stat(path, &about) != 0 || !S_ISDIR(about.st_mode))
		return;
	if (about.st_uid != geteuid()) {
		snprintf(words, sizeof words,
		         "%s is another user's, and may be the spool of a source \"%s\" that is not configured: not looked at\n"
		         "What it holds is not judged\nlook as that user (runbook: source-unreadable)",
		         path, name);
		take(context, true, words);
		return;
	}
	if (!is_spool(path))
		return;
	enum weir_status status = kind_of_spools()->count_left(path, name, memory, &left, &error);
	if (status == WEIR_LOCKED) {
		snprintf(words, sizeof words,
		         "%s is the spool of a source \"%s\" that is not configured here: a running process has it open\n"
		         "That process takes and reads it\nleave it as it is (runbook: source-unreadable)",
		         path, name);
		take(context, false, words);
		return;
	}
	bool waits = status != WEIR_OK || left.requests > 0;
	if (status != WEIR_OK)
		snprintf(holds, sizeof holds, "how much it holds is not known, as %.180s", error.text);
	else
		snprintf(holds, sizeof holds, "it holds %s%llu requests with %llu lines that were not read",
		         left.more ? "more than " : "", (unsigned long long)left.requests, (unsigned long long)left.lines);
	snprintf(words, sizeof words,
	         "%s is the spool of a source \"%s\" that is not configured: %s\n%s\n%s it is of no use: rm -r %s "
	         "(runbook: source-unreadable)",
	         path, name, holds, waits ? "They are not judged; weir keeps them" : "weir keeps it",
	         waits ? "give a source of its type that \"name\" until they are read; or, if" : "if",
	         weir_shell_word(path).text);
	take(context, waits, words);
}

void spools_left(const char *state, const struct weir_config *config, const struct source_memory *memory,
                 spools_left_take *take, void *context)
{
	int64_t end_ms = weir_monotonic_ms() + COUNT_MOST_MS;
	struct source_memory *own = NULL;
	struct weir_error error;
	DIR *directory = opendir(state);
	if (directory == NULL)
		return;
	const struct dirent *entry;
	for (int found = 0; found < SPOOLS_LEFT_MAX && (entry = readdir(directory)) != NULL;) {
		const char *name = entry->d_name + sizeof prefix - 1;
		char path[WEIR_PATH_BYTES];
		if (strncmp(entry->d_name, prefix, sizeof prefix - 1) != 0 || is_configured(config, name) ||
		    weir_path_format(path, &error, "%s/%s", state, entry->d_name) != WEIR_OK)
			continue;
		if (memory == NULL && own == NULL && source_memory_look(state, &own, &error) != WEIR_OK)
			break; /* its own check says so */
		if (memory == NULL && own == NULL)
			own = source_memory_new(NULL);
		look_at(path, name, memory != NULL ? memory : own, end_ms, take, context);
		found++;
	}
	closedir(directory);
	source_memory_free(own);
}
