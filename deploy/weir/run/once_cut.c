/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cut is taken when every worker is idle, so it is one instant of everything:
 * streams, lanes, output files, counters. The files are on disk before the
 * store names their lengths. Where somebody cuts a file meanwhile, as copytruncate
 * does, one is taken at once, so that the lengths fit what is there.
 */
#include "deploy/weir/run/once_run.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/stop.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Whether somebody has cut or removed a file: the last cut's mark does not fit what is written there since. */
static bool is_unmarked(struct weir_line_file *file)
{
	bool unmarked = false;
	return file != NULL && weir_line_file_look(file, &unmarked, NULL) == WEIR_OK && unmarked;
}

bool once_cut_due(const struct once *once)
{
	if (once->store == NULL)
		return false;
	bool unmarked = is_unmarked(once->dead_file);
	for (int i = 0; i < OUTPUT_COUNT; i++)
		unmarked |= is_unmarked(once->files.files[i]);
	if (unmarked)
		return true;
	return weir_monotonic_ms() >= once->checkpoint_due_ms || rounds_want_cut(once->rounds);
}

static void note_stream(const struct merge_input *input, struct once_stream *stream)
{
	const struct record_reader *reader = input->reader;
	struct weir_span header = format_header(reader->format);
	*stream = (struct once_stream){
		.name = weir_copy(reader->stream->name, strlen(reader->stream->name)),
		.position = reader->taken_position,
		.maximum_ms = input->given_maximum_ms,
		.counts = reader->counts,
	};
	if (header.at != NULL) {
		stream->header = weir_copy(header.at, header.length);
		stream->header_length = header.length;
	}
}

/* The sources remember their files up to what was taken. */
static void acknowledge_streams(const struct once *once)
{
	for (size_t i = 0; i < once->stream_count; i++) {
		const struct merge_input *input = &once->merge_inputs[i];
		if (input->reader->taken_position > 0)
			input->source->ops->acknowledge(input->source, input->reader->stream, input->reader->taken_position);
	}
}

static void fill_note(const struct once *once, bool finished, struct once_note *note)
{
	*note = (struct once_note){
		.zones = once->before.zones,
		.sources = once->before.sources,
		.lists = once->before.lists,
		.partitions = once->partition_count,
		.finished = finished,
		.records = once->records,
		.seconds = once->before.seconds + (double)(weir_monotonic_ms() - once->started_ms) / 1000.0,
		.dead_letters_written = dead_letters_written(once->dead),
		.dead_letters_dropped = dead_letters_dropped(once->dead),
		.stream_count = once->stream_count,
	};
	for (int i = 0; i < OUTPUT_COUNT; i++)
		if (once->files.files[i] != NULL)
			note->files[i] = weir_line_file_mark(once->files.files[i]);
	if (once->dead_file != NULL)
		note->dead_letters = weir_line_file_mark(once->dead_file);
	note->streams = weir_alloc(once->stream_count, sizeof *note->streams);
	for (size_t i = 0; i < once->stream_count; i++)
		note_stream(&once->merge_inputs[i], &note->streams[i]);
	size_t length;
	note->memory = source_memory_export(once->memory, &length);
}

/* Stores the cuts; a store that cannot be written now is tried again each second. WEIR_AGAIN: until the stop. */
static enum weir_status store_cuts(struct once *once, struct checkpoint_cut *cuts, const char *note,
                                   struct weir_error *error)
{
	const char *name = ONCE_NOTE_NAME;
	struct weir_span value = weir_span_of(note);
	struct weir_fault fault = {0};
	const struct weir_archive_batch *batch = once_archive_batch(once->archive);
	enum weir_status status;
	while ((status = checkpoint_store(once->store, cuts, once->partition_count, batch, &name, &value, 1, error)) ==
	           WEIR_IO &&
	       !atomic_load(weir_stop_flag())) {
		weir_fault_raise(
			&fault, once->log, "checkpoint",
			"%s. The run waits, and loses nothing. Trying again every second: make room, or see to the disk of %s",
			error->text, once->options->state_directory);
		nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
	}
	if (status == WEIR_OK) {
		weir_fault_clear(&fault, once->log, "checkpoint");
		once_archive_stored(once->archive);
	}
	return status == WEIR_IO ? WEIR_AGAIN : status;
}

enum weir_status once_cut(struct once *once, bool finished, struct weir_error *error)
{
	int64_t began_ms = weir_monotonic_ms();
	enum weir_status status = rounds_drain(once->rounds, error);
	if (status != WEIR_OK)
		return status;
	merge_take(once->merge);
	status = output_files_sync(&once->files, error);
	if (status == WEIR_OK && once->dead_file != NULL)
		status = weir_line_file_sync(once->dead_file, error);
	if (status != WEIR_OK)
		return status;

	struct once_note note;
	acknowledge_streams(once);
	fill_note(once, finished, &note);
	char *text = once_note_encode(&note);
	struct checkpoint_cut *cuts = weir_alloc(once->partition_count, sizeof *cuts);
	for (uint32_t i = 0; i < once->partition_count; i++)
		checkpoint_cut(&cuts[i], once->lanes[i], &once->partitions[i]);
	status = store_cuts(once, cuts, text, error);
	for (uint32_t i = 0; i < once->partition_count; i++)
		checkpoint_finish(&cuts[i], once->lanes[i], status == WEIR_OK);
	free(cuts);
	free(text);
	for (int i = 0; i < OUTPUT_COUNT && status == WEIR_OK; i++)
		if (once->files.files[i] != NULL)
			weir_line_file_protect(once->files.files[i], &note.files[i]);
	if (status == WEIR_OK && once->dead_file != NULL)
		weir_line_file_protect(once->dead_file, &note.dead_letters);
	once_note_deinit(&note);

	/* a slow store is asked less often: at most a quarter of the time goes into cuts */
	int64_t now_ms = weir_monotonic_ms();
	int64_t pause_ms = 3 * (now_ms - began_ms);
	if (pause_ms < once->config->limiter.checkpoint_interval_ms)
		pause_ms = once->config->limiter.checkpoint_interval_ms;
	once->checkpoint_due_ms = now_ms + pause_ms;
	return status;
}
