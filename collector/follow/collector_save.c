/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Saves the read positions every second, on a thread of its own: an fsync on a busy
 * disk can take a tenth of a second. A start says where files go on by what was saved.
 */
#include "collector/follow/internal.h"

#include "common/base/clock.h"

#include <sys/stat.h>

enum {
	SAVE_PERIOD_MS = 1000,
	COUNTS_PERIOD_MS = 200,
	READ_AGAIN_MS = 5000, /* sources that give nothing for so long have nothing to be read again */
};

/* Makes the dead letters durable, and begins a new file if that was asked for. */
static enum weir_status save_dead_letters(struct collector *collector, struct weir_error *error)
{
	bool reopen = atomic_load(&collector->reopen);
	enum weir_status status = dead_letters_settle(collector->dead, reopen, error);
	if (status == WEIR_OK && reopen)
		atomic_store(&collector->reopen, false);
	return status;
}

void collector_publish_counts(struct collector *collector)
{
	struct record_counts counts = {0};
	collector->counts_due_ms = weir_monotonic_ms() + COUNTS_PERIOD_MS;
	collector->unpublished = false;
	inputs_counts(collector->inputs, &counts);
	pthread_mutex_lock(&collector->lock);
	collector->counts = counts;
	pthread_mutex_unlock(&collector->lock);
	weir_counter_set(&collector->dead_letters_written, dead_letters_written(collector->dead));
	weir_counter_set(&collector->dead_letters_dropped, dead_letters_dropped(collector->dead));
	low_water_publish_lines(collector->inputs);
}

/*
 * A new producer has nothing in flight, but what the broken one left is owed still, since it was read first: until
 * every source has been read again to where it was, and all that was sent up to then is acknowledged.
 */
int64_t collector_low_water_ms(struct collector *collector)
{
	int64_t now_ms = weir_monotonic_ms(), low_ms = sender_oldest_ms(collector->sender);
	if (framer_pending(collector->framer) > 0 && collector->oldest_ms < low_ms)
		low_ms = collector->oldest_ms;
	if (collector->owed_ms == 0)
		return low_ms;
	bool begun = collector->read_again || now_ms - collector->renewed_ms >= READ_AGAIN_MS;
	if (collector->resent_ms == 0 && begun && !low_water_is_behind(collector->inputs))
		collector->resent_ms = now_ms;
	if (collector->resent_ms != 0 && low_ms > collector->resent_ms)
		collector->owed_ms = 0;
	return collector->owed_ms != 0 && collector->owed_ms < low_ms ? collector->owed_ms : low_ms;
}

/*
 * Saves low-water marks, after the dead letters that they cover. The sources are told of the marks only here, because
 * they save what they know whenever a file begins.
 */
static enum weir_status save_by(struct collector *collector,
                                enum weir_status (*save_memory)(struct source_memory *, struct weir_error *),
                                struct weir_error *error)
{
	source_reports_tell(collector->reports, collector->inputs->sources, collector->inputs->source_count);
	collector->saving_until_ms = collector_low_water_ms(collector);
	if (!collector->dirty && !atomic_load(&collector->reopen))
		return WEIR_OK;
	enum weir_status status = save_dead_letters(collector, error);
	if (status != WEIR_OK)
		return status;
	low_water_acknowledge(collector->inputs);
	collector->dirty = false;
	return save_memory(collector->options.memory, error);
}

static void end_save(struct collector *collector, enum weir_status status, const struct weir_error *error)
{
	collector->saving = status == WEIR_AGAIN;
	if (status == WEIR_AGAIN)
		return;
	collector->dirty = collector->dirty || status != WEIR_OK;
	if (status == WEIR_OK) {
		atomic_store(&collector->low_water_ms, collector->saving_until_ms);
		atomic_store(&collector->unsaved_since_ms, 0);
		weir_fault_clear(&collector->fault, collector->options.log, "collector");
	} else if (status == WEIR_INVALID) { /* no later attempt can succeed: the next start reads unsaved lines again */
		collector_fail(collector, status, error);
	} else {
		if (atomic_load(&collector->unsaved_since_ms) == 0)
			atomic_store(&collector->unsaved_since_ms, weir_monotonic_ms());
		weir_fault_raise(
			&collector->fault, collector->options.log, "collector",
			"the read positions cannot be saved: %s. Lines are read and sent until the bus takes no more; a restart reads "
			"again what was read since, and it is not judged twice. Retrying every second. Give the disk room, or the "
			"directory its rights (runbook: positions-unsaved)",
			error->text);
	}
}

int64_t collector_unsaved_ms(const struct collector *collector)
{
	int64_t since_ms = atomic_load(&collector->unsaved_since_ms);
	return since_ms != 0 ? weir_monotonic_ms() - since_ms : 0;
}

void collector_save_at_once(struct collector *collector)
{
	struct weir_error error;
	collector_publish_counts(collector);
	end_save(collector, save_by(collector, source_memory_save, &error), &error);
}

void collector_save_if_due(struct collector *collector)
{
	struct weir_error error;
	if (collector->saving)
		end_save(collector, source_memory_save_end(collector->options.memory, &error), &error);
	if (collector->saving || weir_monotonic_ms() < collector->save_due_ms)
		return;
	collector->save_due_ms = weir_monotonic_ms() + SAVE_PERIOD_MS;
	end_save(collector, save_by(collector, source_memory_save_begin, &error), &error);
}

/* ---- what an earlier run has saved ---- */

/* Whether the file that was read last is at its path, and has no more. */
static bool is_at_end(const struct source_memory_stream *stream)
{
	const struct source_memory_part *part = source_memory_last_part(stream);
	const struct source_memory_file *file = part != NULL ? source_memory_file(stream, part->file) : NULL;
	struct stat about;
	return file != NULL && part->incarnation == source_position_incarnation(stream->low_water) &&
	       stat(stream->path, &about) == 0 && about.st_ino == file->inode && about.st_dev == file->device &&
	       (uint64_t)about.st_size == source_position_offset(stream->low_water);
}

void collector_tell_resumed(const struct collector *collector)
{
	static const char why[] =
		"an earlier run with this state has read what is before (`weir run --once`, or another state, reads it anew)";
	const struct source_memory_stream *first = NULL;
	size_t resumed = 0, at_end = 0;
	for (size_t i = 0; collector->options.memory != NULL && i < collector->inputs->source_count; i++) {
		struct source_stream **streams;
		size_t count = inputs_streams(collector->inputs, i, &streams);
		for (size_t j = 0; j < count && collector->inputs->sources[i]->ops->names_files; j++) {
			const struct source_memory_stream *stream = source_memory_find(collector->options.memory, streams[j]->name);
			if (stream == NULL || stream->low_water == 0)
				continue;
			first = resumed++ == 0 ? stream : first;
			at_end += is_at_end(stream);
		}
	}
	if (resumed == 1)
		weir_log(collector->options.log, WEIR_LOG_INFO, "collector", "%s: goes on at byte %llu%s: %s", first->path,
		         (unsigned long long)source_position_offset(first->low_water), at_end > 0 ? ", its end" : "", why);
	else if (resumed > 1)
		weir_log(collector->options.log, WEIR_LOG_INFO, "collector",
		         "goes on in %zu files where it stopped, %zu of them read to their end: %s", resumed, at_end, why);
}
