/* SPDX-License-Identifier: Apache-2.0 */
/* What an import has made so far. */
#include "deploy/weir/import/plan.h"

#include "common/base/alloc.h"
#include "common/files/durable_file.h"
#include "common/json/units.h"
#include "common/policy/policy.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The array with room for one more; it grows by doubling. */
static void *grown(void *array, size_t count, size_t bytes)
{
	if ((count & (count - 1)) != 0)
		return array;
	return weir_realloc(array, count == 0 ? 1 : 2 * count, bytes);
}

void plan_deinit(struct plan *plan)
{
	for (size_t i = 0; i < plan->item_count; i++) {
		for (size_t k = 0; k < plan->items[i].zone_count; k++)
			weir_text_deinit(&plan->items[i].zones[k]);
		free(plan->items[i].zones);
		free(plan->items[i].notes);
	}
	for (size_t i = 0; i < plan->source_count; i++)
		weir_text_deinit(&plan->sources[i].json);
	for (size_t i = 0; i < plan->kept_count; i++)
		free(plan->kept[i]);
	free(plan->items);
	free(plan->sources);
	free(plan->names);
	free(plan->remarks);
	free(plan->kept);
}

char *plan_keep(struct plan *plan, const char *at, size_t length)
{
	plan->kept = grown(plan->kept, plan->kept_count, sizeof *plan->kept);
	plan->kept_bytes += length + 1;
	return plan->kept[plan->kept_count++] = weir_copy(at, length);
}

static char *keep_printed(struct plan *plan, const char *format, va_list arguments)
{
	char *text = NULL;
	int length = vasprintf(&text, format, arguments);
	char *kept = plan_keep(plan, length < 0 ? "" : text, length < 0 ? 0 : (size_t)length);
	free(text);
	return kept;
}

char *plan_print(struct plan *plan, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	char *text = keep_printed(plan, format, arguments);
	va_end(arguments);
	return text;
}

enum weir_status plan_read_file(struct plan *plan, const char *path, char **text, size_t *length,
                                struct weir_error *error)
{
	*text = NULL;
	if (plan_is_full(plan) || ++plan->files > PLAN_FILES_MAX)
		return weir_fail(error, WEIR_INVALID, "%s: there is more than an import takes", path);
	enum weir_status status = weir_durable_read(path, PLAN_FILE_MAX_BYTES, text, length, error);
	if (status == WEIR_OK && *text == NULL)
		return weir_fail(error, WEIR_IO, "%s: cannot be read: there is no such file", path);
	return status;
}

struct plan_item *plan_item(struct plan *plan, const char *name, const char *file, unsigned line)
{
	plan->items = grown(plan->items, plan->item_count, sizeof *plan->items);
	struct plan_item *item = &plan->items[plan->item_count++];
	*item = (struct plan_item){.line = line};
	item->name = plan_keep(plan, name, strlen(name));
	item->file = plan_keep(plan, file, strlen(file));
	return item;
}

static void add_note(struct plan_item *item, bool loss, char *text)
{
	for (size_t i = 0; i < item->note_count; i++)
		if (strcmp(item->notes[i].text, text) == 0)
			return;
	item->notes = grown(item->notes, item->note_count, sizeof *item->notes);
	item->notes[item->note_count++] = (struct plan_note){.loss = loss, .text = text};
}

void plan_loss(struct plan *plan, struct plan_item *item, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	add_note(item, true, keep_printed(plan, format, arguments));
	va_end(arguments);
}

void plan_explain(struct plan *plan, struct plan_item *item, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	add_note(item, false, keep_printed(plan, format, arguments));
	va_end(arguments);
}

void plan_forget(struct plan_item *item, size_t from, size_t to)
{
	if (from == to) /* there may be no notes at all */
		return;
	memmove(item->notes + from, item->notes + to, (item->note_count - to) * sizeof *item->notes);
	/* What is left may need more room than the array's growth supposes: it keeps what it has. */
	item->note_count -= to - from;
	item->notes = weir_realloc(item->notes, 2 * (item->note_count + 1), sizeof *item->notes);
}

void plan_remark(struct plan *plan, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	char *text = keep_printed(plan, format, arguments);
	va_end(arguments);
	for (size_t i = 0; i < plan->remark_count; i++)
		if (strcmp(plan->remarks[i], text) == 0)
			return;
	plan->remarks = grown(plan->remarks, plan->remark_count, sizeof *plan->remarks);
	plan->remarks[plan->remark_count++] = text;
}

struct weir_text *plan_zone(struct plan *plan, struct plan_item *item)
{
	(void)plan;
	item->zones = grown(item->zones, item->zone_count, sizeof *item->zones);
	item->zones[item->zone_count] = (struct weir_text){0};
	return &item->zones[item->zone_count++];
}

static enum weir_status check_zone(const struct weir_text *zone, struct weir_error *error)
{
	struct weir_text text = {0};
	weir_text_puts(&text, "[");
	weir_text_append(&text, zone->at, zone->length);
	weir_text_puts(&text, "]");
	struct weir_json_document *document = NULL;
	enum weir_status status = weir_json_parse("zone", text.at, text.length, &document, error);
	if (status == WEIR_OK) {
		struct weir_json zones = weir_json_root(document);
		struct weir_policy *policy = NULL;
		status = weir_policy_parse(&zones, NULL, &policy, error);
		if (status == WEIR_OK)
			weir_policy_free(policy);
		weir_json_document_free(document);
	}
	weir_text_deinit(&text);
	return status;
}

void plan_zone_end(struct plan *plan, struct plan_item *item)
{
	struct weir_text *zone = &item->zones[item->zone_count - 1];
	struct weir_error error;
	enum weir_status status = check_zone(zone, &error);
	if (status == WEIR_OK &&
	    (plan->zone_count == WEIR_ZONES_MAX || plan->zone_bytes + zone->length > PLAN_ZONES_MAX_BYTES))
		status = weir_fail(&error, WEIR_INVALID, "zone: there are more zones than a policy takes");
	if (status == WEIR_OK) {
		plan->zone_count++;
		plan->zone_bytes += zone->length;
		return;
	}
	weir_text_deinit(zone);
	item->zone_count--;
	const char *words = strstr(error.text, ": ");
	plan_loss(plan, item, "its zone is none of weir's: %s", words != NULL ? words + 2 : error.text);
}

struct weir_text *plan_source(struct plan *plan, const char *comment)
{
	plan->sources = grown(plan->sources, plan->source_count, sizeof *plan->sources);
	struct plan_source *source = &plan->sources[plan->source_count++];
	*source = (struct plan_source){.comment = plan_keep(plan, comment, strlen(comment))};
	return &source->json;
}

enum plan_result plan_result(const struct plan_item *item)
{
	if (item->zone_count == 0)
		return PLAN_NONE;
	for (size_t i = 0; i < item->note_count; i++)
		if (item->notes[i].loss)
			return PLAN_PART;
	return PLAN_WHOLE;
}

static struct plan_name *name_like(const struct plan *plan, const char *text)
{
	for (size_t i = 0; i < plan->name_count; i++)
		if (strcmp(plan->names[i].text, text) == 0)
			return &plan->names[i];
	return NULL;
}

char *plan_zone_name(struct plan *plan, const char *name)
{
	char clean[PLAN_NAME_BYTES - 8];
	size_t length = 0;
	for (const char *at = name; *at != '\0' && length < sizeof clean - 1; at++) {
		bool fits = isalnum((unsigned char)*at) || *at == '-' || *at == '_' || *at == '.';
		if (fits || (length > 0 && clean[length - 1] != '-'))
			clean[length++] = fits ? *at : '-';
	}
	while (length > 0 && clean[length - 1] == '-')
		length--;
	clean[length] = '\0';
	const char *base = length > 0 ? clean : "zone";
	char given[PLAN_NAME_BYTES + 8];
	snprintf(given, sizeof given, "%s", base);
	struct plan_name *like = name_like(plan, base);
	while (name_like(plan, given) != NULL)
		snprintf(given, sizeof given, "%s-%u", base, like->next++);
	plan->names = grown(plan->names, plan->name_count, sizeof *plan->names);
	struct plan_name *taken = &plan->names[plan->name_count++];
	*taken = (struct plan_name){.text = plan_keep(plan, given, strlen(given)), .next = 2};
	return taken->text;
}

void put_string(struct weir_text *text, const char *string)
{
	weir_text_json(text, weir_span_of(string));
}

void put_duration(struct weir_text *text, int64_t duration_ms)
{
	char buffer[32];
	put_string(text, weir_format_duration(duration_ms, buffer, sizeof buffer));
}
