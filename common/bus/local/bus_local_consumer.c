/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a topic.
 *
 * A receive first chooses, under the topic's lock and by its indexes, which
 * messages come next: always the one that is first in the files, so that a
 * consumer of many partitions reads forward, and no partition starves. Then it
 * reads them without the lock, adjacent ones together, and checks their hashes.
 * What was just written comes from the page cache.
 */
#include "common/bus/local/bus_local_consumer.h"

#include "common/base/alloc.h"
#include "common/base/deadline.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	BUFFER_BYTES = 1024 * 1024, /* read at once; a larger message grows the buffer */
	PLAN_MESSAGES = 1024,
	GAP_BYTES = 4096, /* a gap of unwanted messages up to this size is read too, to save a call */
};

/* A message to read next. */
struct planned {
	uint64_t sequence, id; /* its segment's */
	struct weir_bus_place place;
	uint32_t partition;
	uint64_t offset;
	size_t buffered; /* where it goes in the buffer */
};

struct assigned {
	uint32_t partition;
	bool paused;
	uint64_t offset;  /* the next to receive */
	uint64_t planned; /* the next to plan */
	/* Where `planned` is, if `located`. */
	bool located;
	uint64_t sequence, id;
	struct weir_bus_place place;
};

struct weir_consumer {
	struct weir_bus_journal *journal;
	bool named;
	uint32_t reader; /* its index, if it has a name */
	struct assigned *assigned;
	uint32_t assigned_count;
	struct planned *plan;
	size_t planned_count;
	char *buffer;
	size_t buffer_bytes;
	uint32_t failed_partition; /* where the last failure was */
	uint64_t failed_offset;
	struct weir_bus_watcher watcher; /* among the journal's, if it has a descriptor */
	int fd;                          /* of the last segment read */
	uint64_t fd_sequence;
};

enum weir_status weir_consumer_new(struct weir_bus_journal *journal, const char *reader,
                                   struct weir_consumer **consumer, struct weir_error *error)
{
	uint32_t number = 0;
	if (reader != NULL) {
		enum weir_status status = weir_bus_readers_add(journal, reader, &number, error);
		if (status != WEIR_OK)
			return status;
	}
	struct weir_consumer *made = weir_alloc(1, sizeof *made);
	made->journal = journal;
	made->named = reader != NULL;
	made->reader = number;
	made->assigned = weir_alloc(journal->partitions, sizeof *made->assigned);
	made->plan = weir_alloc(PLAN_MESSAGES, sizeof *made->plan);
	made->buffer_bytes = BUFFER_BYTES;
	made->buffer = weir_realloc(NULL, made->buffer_bytes, 1);
	made->fd = made->watcher.descriptor = -1;
	*consumer = made;
	return WEIR_OK;
}

static void leave_watchers(struct weir_bus_journal *journal, const struct weir_bus_watcher *watcher)
{
	struct weir_bus_watcher **at = &journal->watchers;
	while (*at != NULL && *at != watcher)
		at = &(*at)->next;
	if (*at != NULL)
		*at = watcher->next;
}

void weir_consumer_wake(struct weir_consumer *consumer, int descriptor)
{
	struct weir_bus_journal *journal = consumer->journal;
	pthread_mutex_lock(&journal->lock);
	leave_watchers(journal, &consumer->watcher);
	consumer->watcher = (struct weir_bus_watcher){.next = journal->watchers, .descriptor = descriptor};
	journal->watchers = &consumer->watcher;
	pthread_mutex_unlock(&journal->lock);
}

void weir_consumer_free(struct weir_consumer *consumer)
{
	if (consumer == NULL)
		return;
	pthread_mutex_lock(&consumer->journal->lock);
	leave_watchers(consumer->journal, &consumer->watcher);
	pthread_mutex_unlock(&consumer->journal->lock);
	if (consumer->fd >= 0)
		close(consumer->fd);
	free(consumer->assigned);
	free(consumer->plan);
	free(consumer->buffer);
	free(consumer);
}

static struct assigned *find(const struct weir_consumer *consumer, uint32_t partition)
{
	for (uint32_t i = 0; i < consumer->assigned_count; i++)
		if (consumer->assigned[i].partition == partition)
			return &consumer->assigned[i];
	return NULL;
}

enum weir_status weir_consumer_assign(struct weir_consumer *consumer, uint32_t partition, uint64_t offset,
                                      struct weir_error *error)
{
	struct weir_bus_journal *journal = consumer->journal;
	const char *topic = weir_topic_name(journal->options.topic);
	if (partition >= journal->partitions)
		return weir_fail(error, WEIR_INVALID, "%s has no partition %u", topic, partition);
	pthread_mutex_lock(&journal->lock);
	uint64_t first = weir_bus_journal_first(journal, partition), next = journal->next[partition];
	pthread_mutex_unlock(&journal->lock);
	if (offset < first || offset > next)
		return weir_fail(error, WEIR_INVALID, "%s partition %u has offsets %llu to %llu, not %llu", topic, partition,
		                 (unsigned long long)first, (unsigned long long)next, (unsigned long long)offset);
	struct assigned *assigned = find(consumer, partition);
	if (assigned == NULL)
		assigned = &consumer->assigned[consumer->assigned_count++];
	*assigned = (struct assigned){.partition = partition, .offset = offset};
	return WEIR_OK;
}

/*
 * Reads the marked message by a consumer of its own, which needs no place among this one's partitions. One that cannot
 * be read, as it is damaged, says nothing about those behind it.
 */
static enum weir_status verify(const struct weir_consumer *consumer, uint32_t partition, const struct weir_mark *mark,
                               struct weir_error *error)
{
	struct weir_consumer *reader;
	struct weir_message message;
	size_t count = 0;
	enum weir_status status = weir_consumer_new(consumer->journal, NULL, &reader, error);
	if (status != WEIR_OK)
		return status;
	struct weir_mark found = *mark;
	if (weir_consumer_assign(reader, partition, mark->offset, NULL) == WEIR_OK &&
	    weir_consumer_receive(reader, &message, 1, 0, &count, NULL) == WEIR_OK && count > 0)
		found = weir_mark_of(message.payload, message.offset, message.appended_ms);
	weir_consumer_free(reader);
	if (weir_mark_equal(&found, mark))
		return WEIR_OK;
	return weir_bus_has_another(error, weir_topic_name(consumer->journal->options.topic), partition, mark);
}

enum weir_status weir_consumer_resume(struct weir_consumer *consumer, uint32_t partition, uint64_t offset,
                                      const struct weir_mark *mark, struct weir_error *error)
{
	struct weir_bus_journal *journal = consumer->journal;
	enum weir_status status = weir_consumer_assign(consumer, partition, offset, error);
	if (partition >= journal->partitions)
		return status;
	pthread_mutex_lock(&journal->lock);
	uint64_t first = weir_bus_journal_first(journal, partition), next = journal->next[partition];
	pthread_mutex_unlock(&journal->lock);
	if (offset > next || (weir_mark_is_set(mark) && mark->offset >= next))
		status = weir_bus_ends_before(error, weir_topic_name(journal->options.topic), partition, next, offset);
	else if (status == WEIR_OK && weir_mark_is_set(mark) && mark->offset >= first)
		status = verify(consumer, partition, mark, error);
	if (status != WEIR_OK)
		weir_consumer_unassign(consumer, partition);
	return status;
}

void weir_consumer_unassign(struct weir_consumer *consumer, uint32_t partition)
{
	struct assigned *assigned = find(consumer, partition);
	if (assigned != NULL)
		*assigned = consumer->assigned[--consumer->assigned_count];
}

void weir_consumer_pause(struct weir_consumer *consumer, uint32_t partition, bool paused)
{
	struct assigned *assigned = find(consumer, partition);
	if (assigned != NULL)
		assigned->paused = paused;
}

uint64_t weir_consumer_position(const struct weir_consumer *consumer, uint32_t partition)
{
	const struct assigned *assigned = find(consumer, partition);
	return assigned != NULL ? assigned->offset : 0;
}

uint64_t weir_consumer_waiting(const struct weir_consumer *consumer, uint32_t partition)
{
	const struct assigned *assigned = find(consumer, partition);
	if (assigned == NULL)
		return 0;
	pthread_mutex_lock(&consumer->journal->lock);
	uint64_t next = consumer->journal->next[partition];
	pthread_mutex_unlock(&consumer->journal->lock);
	return next > assigned->offset ? next - assigned->offset : 0;
}

void weir_consumer_consumed(struct weir_consumer *consumer, uint32_t partition, uint64_t offset)
{
	if (consumer->named && partition < consumer->journal->partitions)
		weir_bus_readers_move(consumer->journal, consumer->reader, partition, offset);
}

/* ---- choosing; the lock is held ---- */

/*
 * Finds where a partition's next message is.
 *
 * @return WEIR_OK: located, or there is none yet; WEIR_AGAIN: *load is a segment whose index must be loaded first
 */
static enum weir_status locate(struct weir_consumer *consumer, struct assigned *at, uint64_t *load,
                               struct weir_error *error)
{
	struct weir_bus_journal *journal = consumer->journal;
	consumer->failed_partition = at->partition;
	consumer->failed_offset = at->planned;
	if (at->located || at->planned >= journal->next[at->partition])
		return WEIR_OK;
	if (at->planned < weir_bus_journal_first(journal, at->partition))
		return weir_fail(error, WEIR_INVALID, "%s partition %u: offset %llu was trimmed before it was read",
		                 weir_topic_name(journal->options.topic), at->partition, (unsigned long long)at->planned);
	struct weir_bus_segment *segment = weir_bus_journal_find(journal, at->partition, at->planned);
	if (segment->index == NULL) {
		*load = segment->sequence;
		return WEIR_AGAIN;
	}
	const struct weir_bus_index_partition *of = &segment->index->of[at->partition];
	uint64_t number = at->planned - segment->first[at->partition];
	if (number >= of->count)
		return weir_fail(error, WEIR_INVALID, "%s/%020llu.log is damaged: offset %llu of partition %u is missing",
		                 journal->directory, (unsigned long long)segment->sequence, (unsigned long long)at->planned,
		                 at->partition);
	segment->used = ++journal->index_uses;
	at->sequence = segment->sequence;
	at->id = segment->id;
	at->place = of->places[number];
	at->located = true;
	return WEIR_OK;
}

/* Finds the assigned partition whose next message is first in the files, or NULL. */
static enum weir_status choose(struct weir_consumer *consumer, struct assigned **chosen, uint64_t *load,
                               struct weir_error *error)
{
	*chosen = NULL;
	for (uint32_t i = 0; i < consumer->assigned_count; i++) {
		struct assigned *at = &consumer->assigned[i];
		if (at->paused)
			continue;
		enum weir_status status = locate(consumer, at, load, error);
		if (status != WEIR_OK)
			return status;
		if (at->located && (*chosen == NULL || at->sequence < (*chosen)->sequence ||
		                    (at->sequence == (*chosen)->sequence && at->place.at < (*chosen)->place.at)))
			*chosen = at;
	}
	return WEIR_OK;
}

/*
 * Plans up to `most` messages, as far as they fit into the buffer.
 *
 * @return WEIR_OK; WEIR_AGAIN: *load is a segment whose index must be loaded first; WEIR_INVALID
 */
static enum weir_status plan(struct weir_consumer *consumer, size_t most, uint64_t *load, struct weir_error *error)
{
	size_t used = 0, limit = consumer->buffer_bytes;
	struct planned *planned = consumer->plan;
	assert(planned != NULL);
	consumer->planned_count = 0;
	for (uint32_t i = 0; i < consumer->assigned_count; i++) {
		struct assigned *at = &consumer->assigned[i];
		at->located = at->located && at->planned == at->offset;
		at->planned = at->offset;
	}
	while (consumer->planned_count < most && consumer->planned_count < PLAN_MESSAGES) {
		struct assigned *at;
		enum weir_status status = choose(consumer, &at, load, error);
		if (status != WEIR_OK && consumer->planned_count > 0)
			break; /* it occurs again after the messages before it were received */
		if (status != WEIR_OK)
			return status;
		if (at == NULL)
			break;
		const struct planned *before = consumer->planned_count > 0 ? &planned[consumer->planned_count - 1] : NULL;
		size_t gap = 0;
		if (before != NULL && before->sequence == at->sequence) {
			uint32_t end = before->place.at + before->place.bytes;
			if (at->place.at >= end && at->place.at - end <= GAP_BYTES)
				gap = at->place.at - end;
		}
		if (before != NULL && used + gap + at->place.bytes > limit)
			break;
		planned[consumer->planned_count++] = (struct planned){.sequence = at->sequence,
		                                                      .id = at->id,
		                                                      .place = at->place,
		                                                      .partition = at->partition,
		                                                      .offset = at->planned,
		                                                      .buffered = used + gap};
		used += gap + at->place.bytes;
		at->planned++;
		at->located = false;
	}
	return WEIR_OK;
}

/* Waits until something is planned or the deadline passes. */
static enum weir_status wait_for_plan(struct weir_consumer *consumer, size_t most, int timeout_ms,
                                      struct weir_error *error)
{
	struct weir_bus_journal *journal = consumer->journal;
	struct weir_deadline deadline = weir_deadline_in_ms(timeout_ms > 0 ? timeout_ms : 0);
	bool in_time = timeout_ms > 0;
	enum weir_status status;
	pthread_mutex_lock(&journal->lock);
	for (;;) {
		uint64_t load = 0;
		status = plan(consumer, most, &load, error);
		if (status == WEIR_AGAIN) {
			pthread_mutex_unlock(&journal->lock);
			status = weir_bus_journal_load(journal, load, error);
			pthread_mutex_lock(&journal->lock);
			if (status == WEIR_OK)
				continue;
			break;
		}
		if (status != WEIR_OK || consumer->planned_count > 0 || !in_time)
			break;
		in_time = weir_condition_wait(&journal->durable, &journal->lock, &deadline);
	}
	consumer->watcher.waits = status == WEIR_OK && consumer->planned_count == 0;
	pthread_mutex_unlock(&journal->lock);
	return status;
}

/* ---- reading; without the lock ---- */

static enum weir_status open_segment(struct weir_consumer *consumer, uint64_t sequence, struct weir_error *error)
{
	char path[WEIR_PATH_BYTES];
	if (consumer->fd >= 0 && consumer->fd_sequence == sequence)
		return WEIR_OK;
	if (consumer->fd >= 0)
		close(consumer->fd);
	consumer->fd = -1;
	enum weir_status status =
		weir_bus_segment_open_file(consumer->journal->directory, sequence, O_RDONLY, path, &consumer->fd, error);
	if (status == WEIR_OK)
		consumer->fd_sequence = sequence;
	else if (errno == ENOENT)
		status = weir_fail(error, WEIR_INVALID, "%s has been trimmed before it was read", path);
	return status;
}

/* How many planned messages from `start` on can be read by one call. @param bytes  set to their size */
static size_t run_of(const struct weir_consumer *consumer, size_t start, size_t *bytes)
{
	const struct planned *first = &consumer->plan[start];
	size_t end = start + 1;
	while (end < consumer->planned_count && consumer->plan[end].sequence == first->sequence &&
	       consumer->plan[end].buffered - first->buffered == consumer->plan[end].place.at - first->place.at)
		end++;
	const struct planned *last = &consumer->plan[end - 1];
	*bytes = last->buffered + last->place.bytes - first->buffered;
	return end - start;
}

static enum weir_status check(struct weir_consumer *consumer, const struct planned *planned,
                              struct weir_message *message, struct weir_error *error)
{
	const char *bytes = consumer->buffer + planned->buffered;
	struct weir_bus_record record;
	if (!weir_bus_record_decode(bytes, planned->id, consumer->journal->partitions, &record) ||
	    record.partition != planned->partition || record.offset != planned->offset ||
	    weir_bus_record_bytes(&record) != planned->place.bytes ||
	    !weir_bus_record_body_is_whole(&record, bytes + WEIR_BUS_RECORD_HEADER_BYTES))
		return weir_fail(error, WEIR_INVALID, "%s/%020llu.log is damaged at byte %u: offset %llu of partition %u",
		                 consumer->journal->directory, (unsigned long long)planned->sequence, planned->place.at,
		                 (unsigned long long)planned->offset, planned->partition);
	message->topic = consumer->journal->options.topic;
	weir_bus_record_message(&record, bytes + WEIR_BUS_RECORD_HEADER_BYTES, message);
	return WEIR_OK;
}

/* Reads and returns one run of messages. @param count  incremented for each valid one */
static enum weir_status read_run(struct weir_consumer *consumer, size_t start, size_t length, size_t bytes,
                                 struct weir_message *messages, size_t *count, struct weir_error *error)
{
	const struct planned *first = &consumer->plan[start];
	consumer->failed_partition = first->partition;
	consumer->failed_offset = first->offset;
	enum weir_status status = open_segment(consumer, first->sequence, error);
	if (status != WEIR_OK)
		return status;
	ssize_t got = weir_bus_read(consumer->fd, consumer->buffer + first->buffered, bytes, first->place.at);
	if (got < 0)
		return weir_fail(error, WEIR_IO, "cannot read %s/%020llu.log: %s", consumer->journal->directory,
		                 (unsigned long long)first->sequence, weir_errno_words(errno));
	/* Clear what a truncated file does not have: else the buffer's old contents might be taken for it. */
	memset(consumer->buffer + first->buffered + got, 0, bytes - (size_t)got);
	for (size_t i = start; i < start + length; i++) {
		consumer->failed_partition = consumer->plan[i].partition;
		consumer->failed_offset = consumer->plan[i].offset;
		status = check(consumer, &consumer->plan[i], &messages[*count], error);
		if (status != WEIR_OK)
			return status;
		find(consumer, consumer->plan[i].partition)->offset = consumer->plan[i].offset + 1;
		(*count)++;
	}
	return WEIR_OK;
}

static void name_failed_place(const struct weir_consumer *consumer, struct weir_message *messages)
{
	messages[0] = (struct weir_message){.topic = consumer->journal->options.topic,
	                                    .partition = consumer->failed_partition,
	                                    .offset = consumer->failed_offset};
}

enum weir_status weir_consumer_receive(struct weir_consumer *consumer, struct weir_message *messages, size_t most,
                                       int timeout_ms, size_t *count, struct weir_error *error)
{
	*count = 0;
	if (most == 0)
		return WEIR_OK;
	enum weir_status status = wait_for_plan(consumer, most, timeout_ms, error);
	if (status != WEIR_OK) {
		name_failed_place(consumer, messages);
		return status;
	}
	if (consumer->planned_count > 0 && consumer->plan[0].place.bytes > consumer->buffer_bytes) {
		consumer->buffer_bytes = consumer->plan[0].place.bytes;
		consumer->buffer = weir_realloc(consumer->buffer, consumer->buffer_bytes, 1);
	}
	for (size_t start = 0; start < consumer->planned_count && status == WEIR_OK;) {
		size_t bytes;
		size_t length = run_of(consumer, start, &bytes);
		status = read_run(consumer, start, length, bytes, messages, count, error);
		start += length;
	}
	if (*count > 0)
		return WEIR_OK; /* messages before a failure are returned first; the failure occurs again after them */
	if (status != WEIR_OK)
		name_failed_place(consumer, messages);
	return status;
}
