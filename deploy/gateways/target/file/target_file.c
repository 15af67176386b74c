/* SPDX-License-Identifier: Apache-2.0 */
/* file: the live blocks as JSON lines, the decisions as they were published, in no order. */
#include "deploy/gateways/target/file/target_file.h"

#include "common/base/alloc.h"
#include "common/base/read_file.h"
#include "common/files/file_place.h"
#include "common/json/json.h"
#include "deploy/gateways/target/exec/program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { INTERVAL_MS = 200, CHECK_MS = 1000, AGE_MAX_BYTES = 1 << 30 };

enum weir_status file_target_make(const struct target_ops *ops, const char *path, const struct target_options *options,
                                  struct target **target, struct weir_error *error)
{
	struct file_target *made = weir_alloc(1, sizeof *made);
	made->target.ops = ops;
	made->reload = options->reload;
	enum weir_status status = weir_path_format(made->file.path, error, "%s", path);
	struct weir_error why; /* what is not allowed to be looked at now may be later */
	if (status == WEIR_OK && weir_file_replaced(path, made->file.place, &why) == WEIR_INVALID)
		status = weir_fail(error, WEIR_INVALID,
		                   "%s; `weir list` prints the blocks, and the target exec:cat each change", why.text);
	if (status != WEIR_OK) {
		free(made);
		return WEIR_INVALID;
	}
	*target = &made->target;
	return WEIR_OK;
}

static enum weir_status reload(struct file_target *target, struct weir_error *error)
{
	if (!target->reload_due || target->reload == NULL)
		return WEIR_OK;
	const char *arguments[] = {"/bin/sh", "-c", target->reload, NULL};
	struct program_run run = {.arguments = arguments, .timeout_ms = TARGET_TIMEOUT_MS};
	enum weir_status status = program_run(&run, error);
	if (status != WEIR_OK)
		weir_error_prefix(error, "--reload %s", target->reload);
	target->reload_due = status != WEIR_OK;
	return status;
}

enum weir_status file_target_end(struct file_target *target, struct weir_error *error)
{
	bool changed;
	enum weir_status status = list_file_end(&target->file, &changed, error);
	if (status != WEIR_OK)
		return status;
	target->reload_due |= changed;
	target->age_at_ms = 0;
	return reload(target, error);
}

enum weir_status file_target_check(struct target *target, const struct block_table *table, int64_t now_ms,
                                   struct weir_error *error)
{
	(void)table;
	(void)now_ms;
	const struct file_target *file = (const struct file_target *)target;
	if (list_file_is_in_place(&file->file))
		return WEIR_OK;
	return weir_fail(error, WEIR_AGAIN, "%s was removed or replaced", file->file.path);
}

/* ---- what is over, while the topic is not read ---- */

/* Looks through the file. @return whether all of it is entries, and one of them is over; `next_ms`: when the next is */
static bool find_over(struct weir_span text, file_target_entry *entry, int64_t now_ms, int64_t *next_ms)
{
	const char *at = text.at, *end = text.at + text.length;
	int64_t until_ms;
	bool found = false;
	*next_ms = INT64_MAX;
	while (at < end) {
		if (!entry(&at, end, &until_ms)) {
			*next_ms = INT64_MAX;
			return false;
		}
		if (until_ms <= now_ms)
			found = true;
		else if (until_ms < *next_ms)
			*next_ms = until_ms;
	}
	return found;
}

static enum weir_status write_rest(struct file_target *target, struct weir_span text, file_target_entry *entry,
                                   int64_t now_ms, struct weir_error *error)
{
	enum weir_status status = list_file_begin(&target->file, error);
	if (status != WEIR_OK)
		return status;
	const char *end = text.at + text.length;
	int64_t until_ms;
	for (const char *at = text.at, *from = at; at < end && entry(&at, end, &until_ms); from = at)
		if (until_ms > now_ms) {
			weir_text_append(&target->file.buffer, from, (size_t)(at - from));
			list_file_flow(&target->file);
		}
	return file_target_end(target, error);
}

enum weir_status file_target_age(struct file_target *target, file_target_entry *entry, int64_t now_ms,
                                 struct weir_error *error)
{
	if (now_ms < target->age_at_ms)
		return reload(target, error);
	char *bytes = NULL;
	size_t length = 0;
	if (access(target->file.path, F_OK) != 0)
		return WEIR_OK; /* none was written yet */
	enum weir_status status = weir_read_file(target->file.path, AGE_MAX_BYTES, &bytes, &length, error);
	if (status != WEIR_OK)
		return WEIR_IO;
	struct weir_span text = {.at = bytes, .length = (uint32_t)length};
	int64_t next_ms;
	if (find_over(text, entry, now_ms, &next_ms))
		status = write_rest(target, text, entry, now_ms, error);
	if (status == WEIR_OK)
		target->age_at_ms = next_ms;
	free(bytes);
	return status;
}

enum weir_status file_target_bytes(const struct file_target *target, char **bytes, struct weir_span *text,
                                   struct target_reading *reading, struct weir_error *error)
{
	struct stat about;
	size_t length = 0;
	if (stat(target->file.path, &about) != 0)
		return weir_fail(error, WEIR_IO, "%s", weir_errno_words(errno));
	if (weir_read_file(target->file.path, AGE_MAX_BYTES, bytes, &length, error) != WEIR_OK)
		return WEIR_IO;
	reading->written_ms = (int64_t)about.st_mtim.tv_sec * 1000;
	*text = (struct weir_span){.at = *bytes, .length = (uint32_t)length};
	return WEIR_OK;
}

enum weir_status file_target_close(struct target *target, struct weir_error *error)
{
	(void)error;
	struct file_target *file = (struct file_target *)target;
	list_file_deinit(&file->file);
	free(file);
	return WEIR_OK;
}

static enum weir_status copy(struct target *target, const struct block_table *table, int64_t now_ms,
                             struct weir_error *error)
{
	(void)now_ms;
	struct file_target *file = (struct file_target *)target;
	enum weir_status status = list_file_begin(&file->file, error);
	if (status != WEIR_OK)
		return status;
	struct block_walk walk = {0};
	const struct block_entry *entry;
	while ((entry = block_table_next(table, &walk)) != NULL) {
		weir_text_append(&file->file.buffer, entry->json, entry->json_length);
		weir_text_append(&file->file.buffer, "\n", 1);
		list_file_flow(&file->file);
	}
	return file_target_end(file, error);
}

/* A line is a decision, and "until" is a number where its block ends. */
static bool read_line(const char **at, const char *end, int64_t *until_ms)
{
	const char *line_end = memchr(*at, '\n', (size_t)(end - *at));
	json_t *object = line_end != NULL ? json_loadb(*at, (size_t)(line_end - *at), JSON_ALLOW_NUL, NULL) : NULL;
	bool good = json_is_object(object);
	const json_t *until = json_object_get(object, "until");
	*until_ms = json_is_integer(until) ? json_integer_value(until) : INT64_MAX;
	json_decref(object);
	if (good)
		*at = line_end + 1;
	return good;
}

static enum weir_status age(struct target *target, int64_t now_ms, struct weir_error *error)
{
	return file_target_age((struct file_target *)target, read_line, now_ms, error);
}

/* ---- read back ---- */

/* The zone and the key of a decision: another version of the same blocks as well. */
static bool put_bucket(struct weir_text *words, struct weir_span line)
{
	json_t *object = json_loadb(line.at, line.length, JSON_ALLOW_NUL, NULL);
	const json_t *zone = json_object_get(object, "zone"), *key = json_object_get(object, "key");
	char *text = zone != NULL && key != NULL ? json_dumps(key, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
	bool good = text != NULL && json_is_string(zone);
	if (good)
		weir_text_printf(words, "%s %s", json_string_value(zone), text);
	free(text);
	json_decref(object);
	return good;
}

static enum weir_status read_back(struct target *target, int64_t end_ms, target_seen *seen, void *context,
                                  struct target_reading *reading, struct weir_error *error)
{
	(void)end_ms;
	struct weir_text words = {0};
	struct weir_span text;
	char *bytes = NULL;
	enum weir_status status = file_target_bytes((struct file_target *)target, &bytes, &text, reading, error);
	if (status != WEIR_OK)
		return status;
	const char *at = text.at, *end = text.at + text.length;
	while (at < end) {
		const char *line_end = memchr(at, '\n', (size_t)(end - at));
		line_end = line_end != NULL ? line_end : end;
		struct weir_span line = {.at = at, .length = (uint32_t)(line_end - at)};
		weir_text_clear(&words);
		if (!put_bucket(&words, line))
			weir_text_append(&words, line.at, line.length);
		seen(context, weir_text_span(&words));
		at = line_end + (line_end < end);
	}
	weir_text_deinit(&words);
	free(bytes);
	return WEIR_OK;
}

static bool spell(struct target *target, const struct block_table *table, const struct block_entry *entry,
                  struct weir_text *words)
{
	(void)target;
	(void)table;
	return put_bucket(words, block_entry_json(entry));
}

void file_target_lists(const struct target *target, struct weir_text *lines)
{
	weir_text_puts(lines, TARGET_LIST_FILE);
	weir_file_place_put(lines, ((const struct file_target *)target)->file.path);
	weir_text_puts(lines, "\n");
}

static const struct target_ops ops = {
	.lists = file_target_lists,
	.read = read_back,
	.spell = spell,
	.kind = "file",
	.interval_ms = INTERVAL_MS,
	.keeps_json = true,
	.copies_only = true,
	.may_reload = true,
	.check_after_ms = CHECK_MS,
	.copy = copy,
	.check = file_target_check,
	.age = age,
	.close = file_target_close,
};

enum weir_status target_file_make(const char *rest, const struct target_options *options, struct target **target,
                                  struct weir_error *error)
{
	return file_target_make(&ops, rest, options, target, error);
}
