/* SPDX-License-Identifier: Apache-2.0 */
/* An import as a configuration, as JSON for machines, and as words. */
#include "common/base/words.h"
#include "common/json/json_writer.h"
#include "deploy/weir/import/plan.h"

#include <stdio.h>
#include <string.h>

static const char *const result_words[] = {[PLAN_WHOLE] = "whole", [PLAN_PART] = "part", [PLAN_NONE] = "none"};

/* Where zones in shadow mode say what they would do. */
#define SHADOW "{ \"shadow_path\": \"/var/lib/weir/shadow.jsonl\" }"

struct counts {
	unsigned of[3];
};

static struct counts count(const struct plan *plan)
{
	struct counts counts = {{0}};
	for (size_t i = 0; i < plan->item_count; i++)
		counts.of[plan_result(&plan->items[i])]++;
	return counts;
}

/* One line, whatever was in the text: a line's end would end the comment. */
static void put_line(struct weir_text *out, const char *text)
{
	for (size_t left = strlen(text); left > 0;) {
		size_t controls = weir_control_bytes(text, left), taken = controls > 0 ? controls : 1;
		weir_text_append(out, controls > 0 ? " " : text, 1);
		text += taken;
		left -= taken;
	}
}

static void put_place(struct weir_text *out, const struct plan_item *item)
{
	put_line(out, item->file);
	if (item->line > 0)
		weir_text_printf(out, ":%u", item->line);
}

static void put_notes(struct weir_text *out, const struct plan_item *item, const char *before)
{
	for (size_t i = 0; i < item->note_count; i++) {
		weir_text_puts(out, before);
		weir_text_puts(out, item->notes[i].loss ? "differs: " : "note: ");
		put_line(out, item->notes[i].text);
		weir_text_puts(out, "\n");
	}
}

static void put_zone_items(const struct plan *plan, struct weir_text *out)
{
	const char *between = "";
	for (size_t i = 0; i < plan->item_count; i++) {
		const struct plan_item *item = &plan->items[i];
		if (item->zone_count == 0)
			continue;
		weir_text_printf(out, "%s    // ", between);
		put_line(out, item->name);
		weir_text_puts(out, ", from ");
		put_place(out, item);
		weir_text_puts(out, "\n");
		put_notes(out, item, "    //   ");
		for (size_t k = 0; k < item->zone_count; k++) {
			weir_text_puts(out, k > 0 ? ",\n    " : "    ");
			weir_text_append(out, item->zones[k].at, item->zones[k].length);
		}
		between = ",\n\n";
	}
	weir_text_puts(out, "\n");
}

static void put_left_out(const struct plan *plan, struct weir_text *out)
{
	for (size_t i = 0; i < plan->item_count; i++) {
		const struct plan_item *item = &plan->items[i];
		if (item->zone_count > 0)
			continue;
		weir_text_puts(out, "    // not imported: ");
		put_line(out, item->name);
		weir_text_puts(out, ", from ");
		put_place(out, item);
		weir_text_puts(out, "\n");
		put_notes(out, item, "    //   ");
	}
}

void plan_write_config(const struct plan *plan, struct weir_text *out)
{
	struct counts counts = count(plan);
	weir_text_printf(out, "// Written by `weir import %s`: %u whole, %u in part, %u not at all.\n", plan->origin,
	                 counts.of[PLAN_WHOLE], counts.of[PLAN_PART], counts.of[PLAN_NONE]);
	if (plan->shadow)
		weir_text_puts(
			out, "// Every zone is in shadow mode: it decides, and blocks nobody until its mode is \"enforce\".\n"
				 "// To try it, which needs no file of \"decisions\": weir run --once --config FILE --shadow -\n");
	if (plan->refused != NULL) {
		weir_text_puts(out, "// weir refuses this until it is corrected: ");
		put_line(out, plan->refused);
		weir_text_puts(out, "\n");
	}
	for (size_t i = 0; i < plan->remark_count; i++) {
		weir_text_puts(out, "// ");
		put_line(out, plan->remarks[i]);
		weir_text_puts(out, "\n");
	}
	weir_text_puts(out, "{\n  \"zones\": [\n");
	put_zone_items(plan, out);
	put_left_out(plan, out);
	weir_text_puts(out, "  ],\n\n  \"sources\": [\n");
	for (size_t i = 0; i < plan->source_count; i++) {
		weir_text_puts(out, "    // ");
		put_line(out, plan->sources[i].comment);
		weir_text_puts(out, "\n    ");
		weir_text_append(out, plan->sources[i].json.at, plan->sources[i].json.length);
		weir_text_puts(out, i + 1 < plan->source_count ? ",\n" : "\n");
	}
	weir_text_puts(out, "  ]");
	if (plan->shadow)
		weir_text_puts(out, ",\n\n  \"decisions\": " SHADOW);
	weir_text_puts(out, "\n}\n");
}

static void write_item(struct weir_json_writer *json, const struct plan_item *item)
{
	weir_json_write_object(json, NULL);
	weir_json_write_words(json, "name", item->name);
	weir_json_write_words(json, "file", item->file);
	if (item->line > 0)
		weir_json_write_uint(json, "line", item->line);
	weir_json_write_words(json, "result", result_words[plan_result(item)]);
	weir_json_write_array(json, "notes");
	for (size_t i = 0; i < item->note_count; i++) {
		weir_json_write_object(json, NULL);
		weir_json_write_bool(json, "differs", item->notes[i].loss);
		weir_json_write_words(json, "text", item->notes[i].text);
		weir_json_write_end(json);
	}
	weir_json_write_end(json);
	weir_json_write_end(json);
}

static void write_json_config(struct weir_json_writer *json, const struct plan *plan)
{
	weir_json_write_object(json, "config");
	weir_json_write_array(json, "zones");
	for (size_t i = 0; i < plan->item_count; i++)
		for (size_t k = 0; k < plan->items[i].zone_count; k++)
			weir_text_append(weir_json_write_value(json, NULL), plan->items[i].zones[k].at,
			                 plan->items[i].zones[k].length);
	weir_json_write_end(json);
	weir_json_write_array(json, "sources");
	for (size_t i = 0; i < plan->source_count; i++)
		weir_text_append(weir_json_write_value(json, NULL), plan->sources[i].json.at, plan->sources[i].json.length);
	weir_json_write_end(json);
	if (plan->shadow)
		weir_text_puts(weir_json_write_value(json, "decisions"), SHADOW);
	weir_json_write_end(json);
}

void plan_write_json(const struct plan *plan, struct weir_text *out)
{
	struct counts counts = count(plan);
	struct weir_json_writer json = weir_json_writer(out);
	weir_json_write_object(&json, NULL);
	weir_json_write_words(&json, "origin", plan->origin);
	weir_json_write_object(&json, "counts");
	for (int result = PLAN_WHOLE; result <= PLAN_NONE; result++)
		weir_json_write_uint(&json, result_words[result], counts.of[result]);
	weir_json_write_uint(&json, "not_enabled", plan->not_enabled);
	weir_json_write_end(&json);
	if (plan->refused != NULL)
		weir_json_write_words(&json, "refused", plan->refused);
	weir_json_write_array(&json, "items");
	for (size_t i = 0; i < plan->item_count; i++)
		write_item(&json, &plan->items[i]);
	weir_json_write_end(&json);
	weir_json_write_array(&json, "remarks");
	for (size_t i = 0; i < plan->remark_count; i++)
		weir_json_write_words(&json, NULL, plan->remarks[i]);
	weir_json_write_end(&json);
	write_json_config(&json, plan);
	weir_json_write_end(&json);
	weir_json_write_newline(&json);
}

void plan_write_summary(const struct plan *plan, struct weir_text *out)
{
	static const char *const headings[] = {[PLAN_WHOLE] = "", [PLAN_PART] = "in part", [PLAN_NONE] = "not imported"};
	struct counts counts = count(plan);
	for (size_t i = 0; i < plan->item_count; i++) {
		const struct plan_item *item = &plan->items[i];
		enum plan_result result = plan_result(item);
		if (result == PLAN_WHOLE)
			continue;
		weir_text_printf(out, "%s: ", headings[result]);
		put_line(out, item->name);
		weir_text_puts(out, " (");
		put_place(out, item);
		weir_text_puts(out, ")\n");
		put_notes(out, item, "  ");
	}
	if (plan->warning != NULL) {
		weir_text_puts(out, "note: ");
		put_line(out, plan->warning);
		weir_text_puts(out, "\n");
	}
	weir_text_printf(out, "%zu from %s: %u whole, %u in part, %u not at all", plan->item_count, plan->origin,
	                 counts.of[PLAN_WHOLE], counts.of[PLAN_PART], counts.of[PLAN_NONE]);
	if (plan->not_enabled > 0)
		weir_text_printf(out, "; %u %s, left aside", plan->not_enabled, plan->aside);
	weir_text_puts(out, "\n");
	if (plan->refused != NULL) {
		weir_text_puts(out, "weir refuses what was written until it is corrected: ");
		put_line(out, plan->refused);
		weir_text_puts(out, "\n");
	}
}
