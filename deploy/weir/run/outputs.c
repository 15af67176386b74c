/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines are made where the verdicts are, by the workers, so that the one thread
 * that writes has only to sort pointers and copy.
 */
#include "deploy/weir/run/outputs.h"

#include "common/base/alloc.h"
#include "deploy/weir/terminal/readable.h"
#include "limiter/lane/decision.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Ends the line that began at `start` of the kind's text. */
static void end_line(struct output_batch *batch, enum output_kind kind, size_t start, uint64_t record, uint32_t zone)
{
	struct weir_text *text = &batch->text[kind];
	weir_text_append(text, "\n", 1);
	if (batch->count[kind] == batch->capacity[kind]) {
		batch->capacity[kind] = batch->capacity[kind] == 0 ? 64 : batch->capacity[kind] * 2;
		batch->lines[kind] = weir_realloc(batch->lines[kind], batch->capacity[kind], sizeof *batch->lines[kind]);
	}
	batch->lines[kind][batch->count[kind]++] = (struct output_line){
		.record = record,
		.zone = zone,
		.length = (uint32_t)(text->length - start),
		.at = (const char *)start,
	};
}

void output_batch_decision(struct output_batch *batch, enum output_kind kind, uint32_t partition,
                           const struct shard_decision *decision, uint64_t record)
{
	size_t start = batch->text[kind].length;
	decision_json(&batch->text[kind], partition, decision);
	end_line(batch, kind, start, record, decision->zone->order);
}

static void add_decisions(struct output_batch *batch, const struct output_choice *choice, const struct lane *lane,
                          const struct lane_result *result)
{
	for (uint32_t i = 0; i < result->judged.decision_count; i++) {
		const struct shard_decision *decision = &result->judged.decisions[i];
		enum output_kind kind = decision->zone->zone->mode == WEIR_SHADOW ? OUTPUT_SHADOW : OUTPUT_DECISIONS;
		if (!choice->wanted[kind])
			continue;
		uint64_t record = result->frame->events[decision->event].position;
		if (!choice->words || kind != OUTPUT_DECISIONS) {
			output_batch_decision(batch, kind, lane_partition(lane), decision, record);
			continue;
		}
		size_t start = batch->text[kind].length;
		words_decision(&batch->text[kind], decision, choice->coloured);
		end_line(batch, kind, start, record, decision->zone->order);
	}
}

/* By hand, as decisions are: there is a line for each verdict. */
static void add_judged(struct output_batch *batch, const struct lane *lane, const struct lane_result *result)
{
	const struct weir_frame *frame = result->frame;
	uint32_t pair = 0;
	for (uint32_t i = 0; i < frame->event_count; i++) {
		const struct weir_frame_event *event = &frame->events[i];
		const struct weir_frame_zone_set *set = &frame->zone_sets[event->zone_set];
		for (uint32_t j = 0; j < set->count; j++, pair++) {
			unsigned bits = weir_verdict_of(result->judged.verdicts, pair);
			const struct compiled_zone *zone = compiled_policy_zone(lane_compiled_policy(lane), set->zones[j].id);
			if ((bits & WEIR_VERDICT_NONE) || zone == NULL)
				continue;
			struct weir_text *text = &batch->text[OUTPUT_JUDGED];
			size_t start = text->length;
			weir_text_puts(text, "{\"zone\":");
			weir_text_json(text, weir_span_of(zone->zone->name));
			weir_text_puts(text, ",\"key\":");
			decision_key_json(text, zone->zone, frame->keys[event->key]);
			weir_text_puts(text, ",\"at\":");
			weir_text_int(text, event->time_ms);
			weir_text_puts(text, ",\"cost\":");
			weir_text_int(text, event->cost);
			weir_text_puts(text, bits & WEIR_VERDICT_BLOCK ? ",\"verdict\":\"block\"" : ",\"verdict\":\"pass\"");
			weir_text_puts(text, bits & WEIR_VERDICT_LATE ? ",\"late\":true}" : ",\"late\":false}");
			end_line(batch, OUTPUT_JUDGED, start, event->position, zone->order);
		}
	}
}

void output_batch_add(struct output_batch *batch, const struct output_choice *choice, const struct lane *lane,
                      const struct lane_result *result)
{
	add_decisions(batch, choice, lane, result);
	if (choice->wanted[OUTPUT_JUDGED])
		add_judged(batch, lane, result);
}

static void clear_batch(struct output_batch *batch)
{
	for (int kind = 0; kind < OUTPUT_COUNT; kind++) {
		weir_text_clear(&batch->text[kind]);
		batch->count[kind] = 0;
	}
}

void output_batch_deinit(struct output_batch *batch)
{
	for (int kind = 0; kind < OUTPUT_COUNT; kind++) {
		weir_text_deinit(&batch->text[kind]);
		free(batch->lines[kind]);
	}
	*batch = (struct output_batch){0};
}

static int compare_lines(const void *left, const void *right)
{
	const struct output_line *a = left, *b = right;
	if (a->record != b->record)
		return a->record < b->record ? -1 : 1;
	if (a->zone != b->zone)
		return a->zone < b->zone ? -1 : 1;
	return a->at < b->at ? -1 : a->at > b->at; /* of a record that stands for several: as they were written */
}

/* All batches' lines of one kind in order; gives how many. */
static size_t gather(struct output_files *files, const struct output_batch *batches, size_t count, int kind)
{
	size_t total = 0;
	for (size_t i = 0; i < count; i++)
		total += batches[i].count[kind];
	if (total > files->capacity) {
		files->sorted = weir_realloc(files->sorted, total, sizeof *files->sorted);
		files->capacity = total;
	}
	size_t at = 0;
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < batches[i].count[kind]; j++) {
			files->sorted[at] = batches[i].lines[kind][j];
			files->sorted[at].at = batches[i].text[kind].at + (size_t)(uintptr_t)files->sorted[at].at;
			at++;
		}
	if (total > 1)
		qsort(files->sorted, total, sizeof *files->sorted, compare_lines);
	return total;
}

/* Flushes or syncs one file; a file that cannot be written now is tried again each second. WEIR_AGAIN: until the stop. */
static enum weir_status put(struct output_files *files, struct weir_line_file *file,
                            enum weir_status (*step)(struct weir_line_file *, struct weir_error *),
                            struct weir_error *error)
{
	enum weir_status status;
	if (files->on_screen)
		progress_clear(files->progress);
	while ((status = step(file, error)) == WEIR_IO && !*files->stop) {
		weir_fault_raise(
			&files->fault, files->log, "output",
			"%s. The run waits, and loses nothing. Trying again every second: make room, or see to the file",
			error->text);
		nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
	}
	if (status == WEIR_OK)
		weir_fault_clear(&files->fault, files->log, "output");
	return status == WEIR_IO ? WEIR_AGAIN : status;
}

enum weir_status output_files_sync(struct output_files *files, struct weir_error *error)
{
	for (int kind = 0; kind < OUTPUT_COUNT; kind++) {
		if (files->files[kind] == NULL)
			continue;
		enum weir_status status = put(files, files->files[kind], weir_line_file_sync, error);
		if (status != WEIR_OK)
			return status;
	}
	return WEIR_OK;
}

void output_files_deinit(struct output_files *files)
{
	free(files->sorted);
	files->sorted = NULL;
}

enum weir_status output_files_write(struct output_files *files, struct output_batch *batches, size_t count,
                                    struct weir_error *error)
{
	for (int kind = 0; kind < OUTPUT_COUNT; kind++) {
		if (files->files[kind] == NULL)
			continue;
		size_t lines = gather(files, batches, count, kind);
		if (lines > 0 && files->on_screen)
			progress_clear(files->progress); /* a full buffer is written as lines come */
		for (size_t i = 0; i < lines; i++) {
			struct weir_span line = {.at = files->sorted[i].at, .length = files->sorted[i].length};
			while (weir_line_file_append(files->files[kind], line) == WEIR_FULL) {
				enum weir_status status = put(files, files->files[kind], weir_line_file_flush, error);
				if (status != WEIR_OK)
					return status;
			}
		}
	}
	for (size_t i = 0; i < count; i++)
		clear_batch(&batches[i]);
	return WEIR_OK;
}
