/*
 * nginx-map: a map's body that nginx includes, and a command that makes it read
 * it again. nginx has no other way in; so changes are gathered for a second.
 */
#include "common/alloc.h"
#include "deploy/gateways/nginx_map.h"
#include "deploy/gateways/target_file.h"

#include <stdlib.h>

enum { INTERVAL_MS = 1000, CHECK_MS = 1000 };

static int compare(const void *a, const void *b)
{
	const struct block_entry *x = *(const struct block_entry *const *)a, *y = *(const struct block_entry *const *)b;
	int order = nginx_map_compare(block_entry_key(x), block_entry_key(y));
	/* Of the same, the one that ends last comes first. */
	return order != 0 ? order : (x->until_ms < y->until_ms) - (x->until_ms > y->until_ms);
}

static const struct block_entry **sorted(struct file_target *file, const struct block_table *table, size_t *count)
{
	const struct block_entry **entries =
		weir_alloc((size_t)block_table_count(table) + 1, sizeof(const struct block_entry *));
	struct block_walk walk = {0};
	const struct block_entry *entry;
	*count = 0;
	while ((entry = block_table_next(table, &walk)) != NULL) {
		if (nginx_map_fits(block_entry_key(entry)))
			entries[(*count)++] = entry;
		else
			weir_counter_add(&file->target.unfit, 1);
	}
	qsort(entries, *count, sizeof(const struct block_entry *), compare);
	return entries;
}

static enum weir_status copy(struct target *target, const struct block_table *table, int64_t now_ms,
                             struct weir_error *error)
{
	(void)now_ms;
	struct file_target *file = (struct file_target *)target;
	enum weir_status status = list_file_begin(&file->file, error);
	if (status != WEIR_OK)
		return status;
	size_t count;
	const struct block_entry **entries = sorted(file, table, &count);
	for (size_t i = 0; i < count; i++) {
		if (i > 0 && nginx_map_compare(block_entry_key(entries[i - 1]), block_entry_key(entries[i])) == 0)
			continue;
		nginx_map_line(&file->file.buffer, block_entry_key(entries[i]), entries[i]->until_ms);
		list_file_flow(&file->file);
	}
	free(entries);
	return file_target_end(file, error);
}

static const struct target_ops ops = {
	.kind = "nginx-map",
	.interval_ms = INTERVAL_MS,
	.copies_only = true,
	.may_reload = true,
	.check_after_ms = CHECK_MS,
	.copy = copy,
	.check = file_target_check,
	.close = file_target_close,
};

enum weir_status target_nginx_make(const char *rest, const struct target_options *options, struct target **target,
                                   struct weir_error *error)
{
	return file_target_make(&ops, rest, options, target, error);
}
