/* file: the live blocks as JSON lines, the decisions as they were published, in no order. */
#include "deploy/gateways/target_file.h"

#include "common/alloc.h"
#include "deploy/gateways/program.h"

#include <stdlib.h>

enum { INTERVAL_MS = 200, CHECK_MS = 1000 };

enum weir_status file_target_make(const struct target_ops *ops, const char *path, const struct target_options *options,
                                  struct target **target, struct weir_error *error)
{
	struct file_target *made = weir_alloc(1, sizeof *made);
	made->target.ops = ops;
	made->reload = options->reload;
	enum weir_status status = weir_path_format(made->file.path, error, "%s", path);
	if (status != WEIR_OK) {
		free(made);
		return WEIR_INVALID;
	}
	*target = &made->target;
	return WEIR_OK;
}

enum weir_status file_target_end(struct file_target *target, struct weir_error *error)
{
	bool changed;
	enum weir_status status = list_file_end(&target->file, &changed, error);
	if (status != WEIR_OK)
		return status;
	target->reload_due |= changed;
	if (!target->reload_due || target->reload == NULL)
		return WEIR_OK;
	const char *arguments[] = {"/bin/sh", "-c", target->reload, NULL};
	struct program_run run = {.arguments = arguments, .timeout_ms = TARGET_TIMEOUT_MS};
	status = program_run(&run, error);
	if (status != WEIR_OK)
		weir_error_prefix(error, "--reload %s", target->reload);
	target->reload_due = status != WEIR_OK;
	return status;
}

enum weir_status file_target_check(struct target *target, const struct block_table *table, int64_t now_ms,
                                   struct weir_error *error)
{
	(void)table;
	(void)now_ms;
	const struct file_target *file = (const struct file_target *)target;
	if (list_file_stands(&file->file))
		return WEIR_OK;
	return weir_fail(error, WEIR_AGAIN, "%s is gone, or another stands in its place", file->file.path);
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

static const struct target_ops ops = {
	.kind = "file",
	.interval_ms = INTERVAL_MS,
	.keeps_json = true,
	.copies_only = true,
	.may_reload = true,
	.check_after_ms = CHECK_MS,
	.copy = copy,
	.check = file_target_check,
	.close = file_target_close,
};

enum weir_status target_file_make(const char *rest, const struct target_options *options, struct target **target,
                                  struct weir_error *error)
{
	return file_target_make(&ops, rest, options, target, error);
}
