/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A topic's files as one log: recovery when it is opened, and finding an
 * offset in it.
 *
 * All partitions of a topic share its files, so that one fsync acknowledges all of
 * them. Each topic has files and a thread of its own: fsyncs of several files in
 * parallel cost little more than one, but in succession they add up. Closed
 * segments are checked only when someone reads them: their lengths are in their
 * successors' headers, and their records have hashes.
 */
#include "common/bus/local/bus_local_journal.h"

#include "common/base/alloc.h"
#include "common/base/deadline.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/*
 * A crash while a segment is created leaves a last file with an incomplete header and nothing after it. Removes such a
 * file, if it can be nothing else; who only looks passes it over.
 */
static bool pass_unborn(const struct weir_bus_journal *journal, uint64_t sequence, bool looks)
{
	char path[WEIR_PATH_BYTES], *bytes = NULL;
	size_t length;
	if (weir_bus_segment_path(journal->directory, sequence, path, NULL) != WEIR_OK ||
	    weir_durable_read(path, weir_bus_segment_header_bytes(journal->partitions), &bytes, &length, NULL) != WEIR_OK ||
	    bytes == NULL)
		return false;
	bool whole = weir_bus_segment_header_is_whole((struct weir_span){.at = bytes, .length = (uint32_t)length});
	free(bytes);
	return !whole && (journal->segment_count > 0 || sequence == 1) && (looks || unlink(path) == 0);
}

/* Checks a file against the previous one, whose length is in its header. */
static enum weir_status join_segments(const struct weir_bus_journal *journal, struct weir_bus_segment *previous,
                                      const struct weir_bus_segment *segment, struct weir_error *error)
{
	char path[WEIR_PATH_BYTES];
	enum weir_status status = weir_bus_segment_path(journal->directory, previous->sequence, path, error);
	if (status != WEIR_OK)
		return status;
	if (segment->sequence != previous->sequence + 1)
		return weir_fail(error, WEIR_INVALID, "a file is missing after %s", path);
	if (previous->length < segment->previous_bytes)
		return weir_fail(error, WEIR_INVALID, "%s is damaged at byte %llu: it ends there but had %llu bytes", path,
		                 (unsigned long long)previous->length, (unsigned long long)segment->previous_bytes);
	previous->length = segment->previous_bytes;
	for (uint32_t i = 0; i < journal->partitions; i++)
		if (segment->first[i] < previous->first[i])
			return weir_fail(error, WEIR_INVALID, "offsets go backward after %s", path);
	return WEIR_OK;
}

/* @param looks  nothing is changed, and no file is open behind it */
static enum weir_status open_segments(struct weir_bus_journal *journal, bool looks, struct weir_error *error)
{
	uint64_t *sequences = NULL;
	uint32_t count = 0;
	enum weir_status status = weir_bus_segment_list(journal->directory, &sequences, &count, error);
	if (status != WEIR_OK)
		return status;
	journal->segments = weir_alloc(count, sizeof(struct weir_bus_segment *));
	for (uint32_t i = 0; i < count && status == WEIR_OK; i++) {
		struct weir_bus_segment *segment;
		status = weir_bus_segment_open(journal->directory, journal->options.topic, journal->partitions, sequences[i],
		                               &segment, error);
		if (status == WEIR_INVALID && i == count - 1 && pass_unborn(journal, sequences[i], looks)) {
			status = WEIR_OK;
			break;
		}
		if (status != WEIR_OK)
			break;
		if (i > 0)
			status = join_segments(journal, journal->segments[i - 1], segment, error);
		journal->segments[journal->segment_count++] = segment;
	}
	free(sequences);
	if (status != WEIR_OK || journal->segment_count == 0)
		return status;
	struct weir_bus_segment *last = journal->segments[journal->segment_count - 1];
	if (looks)
		return weir_bus_segment_examine(journal->directory, last, journal->next, error);
	status = weir_bus_segment_mend(journal->directory, last, journal->next, &journal->fd, &journal->torn, error);
	if (status == WEIR_OK)
		journal->index_bytes = last->index->bytes;
	return status;
}

static void journal_free(struct weir_bus_journal *journal)
{
	if (journal->fd >= 0)
		close(journal->fd);
	for (uint32_t i = 0; i < journal->segment_count; i++)
		weir_bus_segment_free(journal->segments[i]);
	for (uint32_t i = 0; i < WEIR_BUS_READERS_MAX; i++)
		free(journal->readers[i].positions);
	pthread_mutex_destroy(&journal->lock);
	pthread_mutex_destroy(&journal->readers_file);
	pthread_mutex_destroy(&journal->loading);
	pthread_cond_destroy(&journal->work);
	pthread_cond_destroy(&journal->durable);
	free(journal->segments);
	free(journal->next);
	free(journal->planned);
	free(journal->directory);
	free(journal);
}

static struct weir_bus_journal *journal_new(const char *directory, const struct weir_bus_journal_options *options)
{
	struct weir_bus_journal *opened = weir_alloc(1, sizeof *opened);
	opened->options = *options;
	opened->partitions = options->partitions;
	opened->directory = weir_copy(directory, strlen(directory));
	opened->next = weir_alloc(options->partitions, sizeof *opened->next);
	opened->planned = weir_alloc(options->partitions, sizeof *opened->planned);
	opened->fd = -1;
	pthread_mutex_init(&opened->lock, NULL);
	pthread_mutex_init(&opened->readers_file, NULL);
	pthread_mutex_init(&opened->loading, NULL);
	weir_condition_init(&opened->work);
	weir_condition_init(&opened->durable);
	weir_bus_entries_init(&opened->queue);
	return opened;
}

enum weir_status weir_bus_journal_check(const char *directory, const struct weir_bus_journal_options *options,
                                        struct weir_error *error)
{
	if (access(directory, F_OK) != 0 && errno == ENOENT)
		return WEIR_OK;
	struct weir_bus_journal *looked = journal_new(directory, options);
	enum weir_status status = open_segments(looked, true, error);
	if (status == WEIR_OK)
		status = weir_bus_readers_load(looked, error);
	journal_free(looked);
	return status;
}

enum weir_status weir_bus_journal_open(const char *directory, const struct weir_bus_journal_options *options,
                                       struct weir_bus_journal **journal, struct weir_error *error)
{
	struct weir_bus_journal *opened = journal_new(directory, options);
	enum weir_status status = weir_directory_make(directory, error);
	if (status == WEIR_OK)
		status = open_segments(opened, false, error);
	if (status == WEIR_OK)
		status = weir_bus_readers_load(opened, error);
	if (status == WEIR_OK && pthread_create(&opened->thread, NULL, weir_bus_journal_run, opened) != 0)
		status = weir_fail(error, WEIR_IO, "cannot start a thread for %s", directory);
	if (status == WEIR_OK)
		*journal = opened;
	else
		journal_free(opened);
	return status;
}

void weir_bus_journal_close(struct weir_bus_journal *journal)
{
	pthread_mutex_lock(&journal->lock);
	journal->stopping = true;
	pthread_cond_signal(&journal->work);
	pthread_mutex_unlock(&journal->lock);
	pthread_join(journal->thread, NULL);
	/* If this fails, the saved positions are old, and the next run trims later than it could. */
	if (journal->readers_unsaved && weir_bus_readers_save(journal, NULL) != WEIR_OK)
		journal->readers_unsaved = true;
	journal_free(journal);
}

void weir_bus_journal_send(struct weir_bus_journal *journal, struct weir_bus_entry *entry)
{
	pthread_mutex_lock(&journal->lock);
	weir_bus_entries_add(&journal->queue, entry);
	if (!journal->pausing || journal->queue.bytes >= WEIR_BUS_GATHERED_BYTES)
		pthread_cond_signal(&journal->work);
	pthread_mutex_unlock(&journal->lock);
}

void weir_bus_journal_hurry(struct weir_bus_journal *journal)
{
	pthread_mutex_lock(&journal->lock);
	journal->hurried = true;
	pthread_cond_signal(&journal->work);
	pthread_mutex_unlock(&journal->lock);
}

uint64_t weir_bus_journal_first(const struct weir_bus_journal *journal, uint32_t partition)
{
	return journal->segment_count > 0 ? journal->segments[0]->first[partition] : 0;
}

struct weir_bus_segment *weir_bus_journal_find(const struct weir_bus_journal *journal, uint32_t partition,
                                               uint64_t offset)
{
	/*
	 * The last segment that begins at or below the offset. A segment without messages of the partition begins at the
	 * same offset as the next one.
	 */
	uint32_t low = 0, high = journal->segment_count;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (journal->segments[middle]->first[partition] <= offset)
			low = middle;
		else
			high = middle;
	}
	return journal->segments[low];
}

static struct weir_bus_segment *segment_of(const struct weir_bus_journal *journal, uint64_t sequence)
{
	for (uint32_t i = 0; i < journal->segment_count; i++)
		if (journal->segments[i]->sequence == sequence)
			return journal->segments[i];
	return NULL;
}

void weir_bus_journal_bound_indexes(struct weir_bus_journal *journal, const struct weir_bus_segment *keep)
{
	while (journal->index_bytes > journal->options.indexes_max_bytes) {
		struct weir_bus_segment *oldest = NULL;
		for (uint32_t i = 0; i + 1 < journal->segment_count; i++) {
			struct weir_bus_segment *segment = journal->segments[i];
			if (segment->index != NULL && segment != keep && (oldest == NULL || segment->used < oldest->used))
				oldest = segment;
		}
		if (oldest == NULL)
			return;
		journal->index_bytes -= oldest->index->bytes;
		weir_bus_index_free(oldest->index);
		oldest->index = NULL;
	}
}

enum weir_status weir_bus_journal_load(struct weir_bus_journal *journal, uint64_t sequence, struct weir_error *error)
{
	/* Walk the file with a copy of the segment's data, as trimming may free the segment meanwhile. */
	struct weir_bus_segment copy = {.partitions = journal->partitions};
	struct weir_bus_index *index = NULL;
	enum weir_status status = WEIR_OK;
	bool wanted = false;

	pthread_mutex_lock(&journal->loading);
	pthread_mutex_lock(&journal->lock);
	struct weir_bus_segment *segment = segment_of(journal, sequence);
	if (segment == NULL) {
		status = weir_fail(error, WEIR_INVALID, "%s: the requested offset was trimmed",
		                   weir_topic_name(journal->options.topic));
	} else if (segment->index == NULL) {
		wanted = true;
		copy.sequence = sequence;
		copy.id = segment->id;
		copy.length = segment->length;
		copy.first = weir_alloc(journal->partitions, sizeof *copy.first);
		memcpy(copy.first, segment->first, journal->partitions * sizeof *copy.first);
	}
	pthread_mutex_unlock(&journal->lock);
	if (wanted)
		status = weir_bus_segment_load(journal->directory, &copy, &index, error);
	if (wanted && status == WEIR_OK) {
		pthread_mutex_lock(&journal->lock);
		segment = segment_of(journal, sequence);
		if (segment != NULL) {
			segment->index = index;
			segment->used = ++journal->index_uses;
			journal->index_bytes += index->bytes;
			weir_bus_journal_bound_indexes(journal, segment);
		} else {
			weir_bus_index_free(index);
		}
		pthread_mutex_unlock(&journal->lock);
	}
	pthread_mutex_unlock(&journal->loading);
	free(copy.first);
	return status;
}
