/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every consumer has a cursor of its own, and the bus one a topic that knows where the topic ends. A consumer compares
 * the place that it has in each partition with the offset that the cursor's next record of it has: where that is
 * further on, something is gone.
 *
 * Which log it is, the file DIRECTORY/partitions tells: it is written once, when the log is made.
 */
#include "common/bus/local/bus_local_view.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/text.h"
#include "common/bus/local/bus_local_cursor.h"
#include "common/bus/local/bus_local_scan.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

enum { NAP_MS = 10, LOOK_MS = 100, BATCH_BYTES = 4 << 20 };

/* Where a topic ends, as last looked. */
struct ends {
	struct weir_bus_cursor cursor;
	bool begun;
	uint64_t *first; /* of each partition */
	int64_t look_at_ms;
};

struct view {
	struct weir_bus bus; /* first, so that a pointer to it is one to this */
	char *directory;
	dev_t device;
	ino_t inode; /* of DIRECTORY/partitions */
	_Atomic bool replaced;
	pthread_mutex_t lock; /* of the ends */
	struct ends ends[WEIR_TOPIC_COUNT];
};

struct weir_consumer {
	struct view *view;
	enum weir_topic topic;
	uint32_t partitions;
	struct weir_bus_cursor cursor;
	uint64_t *position;
	bool *assigned, *paused;
	struct weir_text bodies; /* of the last batch */
	size_t *starts;          /* where each of its messages begins there */
	size_t room;
};

static struct view *view_of(struct weir_bus *bus)
{
	return (struct view *)bus;
}

static bool identify(const char *directory, struct stat *about)
{
	char path[WEIR_PATH_BYTES];
	return weir_path_format(path, NULL, "%s/partitions", directory) == WEIR_OK && stat(path, about) == 0;
}

static bool is_replaced(struct view *view)
{
	struct stat about;
	if (!identify(view->directory, &about) || about.st_dev != view->device || about.st_ino != view->inode)
		atomic_store(&view->replaced, true);
	return atomic_load(&view->replaced);
}

static void begin_cursor(const struct view *view, enum weir_topic topic, struct weir_bus_cursor *cursor)
{
	char path[WEIR_PATH_BYTES];
	/* A path that is too long was refused when the bus was opened. */
	(void)!weir_path_format(path, NULL, "%s/%s", view->directory, weir_topic_name(topic) + sizeof "weir." - 1);
	weir_bus_cursor_init(cursor, path, topic, weir_topic_partitions(topic, view->bus.partitions));
}

/* ---- where a topic begins and ends ---- */

static enum weir_status find_first(struct ends *ends, struct weir_error *error)
{
	uint64_t *sequences;
	uint32_t count;
	struct weir_bus_segment *segment = NULL;
	enum weir_status status = weir_bus_segment_list(ends->cursor.directory, &sequences, &count, error);
	if (status != WEIR_OK)
		return status;
	status = WEIR_AGAIN;
	for (uint32_t i = 0; i < count && status != WEIR_OK; i++) /* the oldest may be trimmed this moment */
		status = weir_bus_segment_open(ends->cursor.directory, ends->cursor.topic, ends->cursor.partitions,
		                               sequences[i], &segment, error);
	free(sequences);
	if (status == WEIR_OK)
		memcpy(ends->first, segment->first, ends->cursor.partitions * sizeof *ends->first);
	weir_bus_segment_free(segment);
	return status == WEIR_AGAIN ? WEIR_OK : status;
}

static enum weir_status look(struct view *view, enum weir_topic topic, struct weir_error *error)
{
	struct ends *ends = &view->ends[topic];
	struct weir_bus_record record;
	const char *body;
	if (!ends->begun) {
		begin_cursor(view, topic, &ends->cursor);
		ends->first = weir_alloc(ends->cursor.partitions, sizeof *ends->first);
		ends->begun = true;
	} else if (weir_monotonic_ms() < ends->look_at_ms) {
		return WEIR_OK;
	}
	enum weir_status status = WEIR_OK;
	if (ends->cursor.segment == NULL)
		status = weir_bus_cursor_place(&ends->cursor, NULL, error);
	while (status == WEIR_OK || status == WEIR_END)
		status = weir_bus_cursor_read(&ends->cursor, &record, &body, error);
	if (status == WEIR_AGAIN)
		status = ends->cursor.segment != NULL ? find_first(ends, error) : WEIR_OK;
	if (status == WEIR_OK)
		ends->look_at_ms = weir_monotonic_ms() + LOOK_MS;
	return status;
}

static enum weir_status extent(struct weir_bus *bus, enum weir_topic topic, uint32_t partition, uint64_t *first,
                               uint64_t *next, struct weir_error *error)
{
	struct view *view = view_of(bus);
	if (partition >= weir_topic_partitions(topic, bus->partitions))
		return weir_fail(error, WEIR_INVALID, "%s has no partition %u", weir_topic_name(topic), partition);
	*first = *next = 0;
	if (is_replaced(view))
		return WEIR_OK;
	pthread_mutex_lock(&view->lock);
	enum weir_status status = look(view, topic, error);
	if (status == WEIR_OK) {
		*first = view->ends[topic].first[partition];
		*next = view->ends[topic].cursor.next[partition];
	}
	pthread_mutex_unlock(&view->lock);
	return status;
}

/* ---- consumers ---- */

static enum weir_status consumer_new(struct weir_bus *bus, enum weir_topic topic, const char *reader,
                                     struct weir_consumer **out, struct weir_error *error)
{
	if (reader != NULL)
		return weir_fail(error, WEIR_INVALID, "a view of a log keeps nothing in it: it has no readers of a name");
	struct weir_consumer *consumer = weir_alloc(1, sizeof *consumer);
	consumer->view = view_of(bus);
	consumer->topic = topic;
	consumer->partitions = weir_topic_partitions(topic, bus->partitions);
	begin_cursor(consumer->view, topic, &consumer->cursor);
	consumer->position = weir_alloc(consumer->partitions, sizeof *consumer->position);
	consumer->assigned = weir_alloc(consumer->partitions, sizeof *consumer->assigned);
	consumer->paused = weir_alloc(consumer->partitions, sizeof *consumer->paused);
	*out = consumer;
	return WEIR_OK;
}

static void consumer_free(struct weir_consumer *consumer)
{
	weir_bus_cursor_deinit(&consumer->cursor);
	weir_text_deinit(&consumer->bodies);
	free(consumer->starts);
	free(consumer->position);
	free(consumer->assigned);
	free(consumer->paused);
	free(consumer);
}

static enum weir_status assign(struct weir_consumer *consumer, uint32_t partition, uint64_t offset,
                               struct weir_error *error)
{
	uint64_t first, next;
	enum weir_status status = extent(&consumer->view->bus, consumer->topic, partition, &first, &next, error);
	if (status != WEIR_OK)
		return status;
	if (offset < first || offset > next)
		return weir_fail(error, WEIR_INVALID, "%s partition %u has offsets %llu to %llu, not %llu",
		                 weir_topic_name(consumer->topic), partition, (unsigned long long)first,
		                 (unsigned long long)next, (unsigned long long)offset);
	consumer->position[partition] = offset;
	consumer->assigned[partition] = true;
	if (consumer->cursor.segment != NULL && offset < consumer->cursor.next[partition])
		weir_bus_cursor_leave(&consumer->cursor); /* it is past that: another place is found by the next receive */
	return WEIR_OK;
}

/* Nobody goes on from a stored position beside the log's owner: what is read here is read from its beginning on. */
static enum weir_status resume(struct weir_consumer *consumer, uint32_t partition, uint64_t offset,
                               const struct weir_mark *mark, struct weir_error *error)
{
	(void)mark;
	return assign(consumer, partition, offset, error);
}

static void unassign(struct weir_consumer *consumer, uint32_t partition)
{
	consumer->assigned[partition] = false;
}

/* A partition that is paused is read again from its position when it goes on. */
static void set_paused(struct weir_consumer *consumer, uint32_t partition, bool paused)
{
	consumer->paused[partition] = paused;
	if (!paused)
		weir_bus_cursor_leave(&consumer->cursor);
}

static bool is_read(const struct weir_consumer *consumer, uint32_t partition)
{
	return consumer->assigned[partition] && !consumer->paused[partition];
}

/* Whether the next message of a partition is gone; then messages[0] says which. */
static bool find_gap(const struct weir_consumer *consumer, struct weir_message *messages, struct weir_error *error)
{
	for (uint32_t i = 0; i < consumer->partitions; i++) {
		if (!is_read(consumer, i) || consumer->cursor.next[i] <= consumer->position[i])
			continue;
		messages[0] = (struct weir_message){.topic = consumer->topic, .partition = i, .offset = consumer->position[i]};
		(void)weir_fail(error, WEIR_INVALID, "%s partition %u: offsets %llu to %llu were removed or are damaged",
		                weir_topic_name(consumer->topic), i, (unsigned long long)consumer->position[i],
		                (unsigned long long)consumer->cursor.next[i] - 1);
		return true;
	}
	return false;
}

static enum weir_status place(struct weir_consumer *consumer, struct weir_error *error)
{
	uint64_t *wanted = weir_alloc(consumer->partitions, sizeof *wanted);
	for (uint32_t i = 0; i < consumer->partitions; i++)
		wanted[i] = is_read(consumer, i) ? consumer->position[i] : UINT64_MAX;
	enum weir_status status = weir_bus_cursor_place(&consumer->cursor, wanted, error);
	free(wanted);
	return status;
}

/* The holder writes again what it could not write into the file before. */
static void step_back(struct weir_consumer *consumer)
{
	for (uint32_t i = 0; i < consumer->partitions; i++) {
		if (consumer->position[i] > consumer->cursor.retreat[i] && consumer->assigned[i])
			consumer->position[i] = consumer->cursor.retreat[i];
		consumer->cursor.retreat[i] = UINT64_MAX;
	}
}

static void add_message(struct weir_consumer *consumer, struct weir_message *message, size_t place_in_batch,
                        const struct weir_bus_record *record, const char *body)
{
	*message = (struct weir_message){.topic = consumer->topic};
	weir_bus_record_message(record, body, message);
	consumer->starts[place_in_batch] = consumer->bodies.length;
	weir_text_append(&consumer->bodies, body, record->body_bytes);
	consumer->position[record->partition] = record->offset + 1;
}

/* The bodies have their place only when the batch is whole. */
static void point_to_bodies(const struct weir_consumer *consumer, struct weir_message *messages, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *at = consumer->bodies.at != NULL ? consumer->bodies.at + consumer->starts[i] : "";
		if (messages[i].key.at != NULL)
			messages[i].key.at = at;
		messages[i].payload.at = at + messages[i].key.length;
	}
}

/* What is there. @return WEIR_AGAIN: nothing more; WEIR_INVALID: a gap is next */
static enum weir_status take(struct weir_consumer *consumer, struct weir_message *messages, size_t most, size_t *count,
                             struct weir_error *error)
{
	struct weir_bus_record record;
	const char *body;
	while (*count < most && consumer->bodies.length < BATCH_BYTES) {
		enum weir_status status = consumer->cursor.segment == NULL ? place(consumer, error) : WEIR_OK;
		if (status != WEIR_OK)
			return status;
		step_back(consumer);
		if (find_gap(consumer, messages + *count, error))
			return WEIR_INVALID;
		status = weir_bus_cursor_read(&consumer->cursor, &record, &body, error);
		if (status == WEIR_END)
			continue;
		if (status != WEIR_OK)
			return status;
		if (!is_read(consumer, record.partition) || record.offset < consumer->position[record.partition])
			continue;
		if (record.offset > consumer->position[record.partition])
			continue; /* what is before it is gone: find_gap() says so */
		add_message(consumer, &messages[*count], *count, &record, body);
		++*count;
	}
	return WEIR_OK;
}

static enum weir_status receive(struct weir_consumer *consumer, struct weir_message *messages, size_t most,
                                int timeout_ms, size_t *count, struct weir_error *error)
{
	int64_t end_ms = weir_monotonic_ms() + timeout_ms, left_ms;
	enum weir_status status;
	if (most > consumer->room) {
		consumer->starts = weir_realloc(consumer->starts, most, sizeof *consumer->starts);
		consumer->room = most;
	}
	weir_text_clear(&consumer->bodies);
	*count = 0;
	while ((status = take(consumer, messages, most, count, error)) == WEIR_AGAIN && *count == 0 &&
	       (left_ms = end_ms - weir_monotonic_ms()) > 0)
		nanosleep(&(struct timespec){.tv_nsec = (left_ms < NAP_MS ? left_ms : NAP_MS) * 1000000L}, NULL);
	if (*count > 0 || status == WEIR_AGAIN) {
		point_to_bodies(consumer, messages, *count);
		/* A log that was taken away ends here: the next one to ask for its extent learns of it. */
		if (*count > 0 || !is_replaced(consumer->view))
			return WEIR_OK;
		messages[0] = (struct weir_message){.topic = consumer->topic, .offset = consumer->position[0]};
		return weir_fail(error, WEIR_INVALID, "the log in %s was removed, or made anew", consumer->view->directory);
	}
	return status;
}

static uint64_t position(const struct weir_consumer *consumer, uint32_t partition)
{
	return consumer->assigned[partition] ? consumer->position[partition] : 0;
}

static uint64_t waiting(const struct weir_consumer *consumer, uint32_t partition)
{
	uint64_t first, next;
	if (!consumer->assigned[partition] ||
	    extent(&consumer->view->bus, consumer->topic, partition, &first, &next, NULL) != WEIR_OK)
		return 0;
	return next > consumer->position[partition] ? next - consumer->position[partition] : 0;
}

static void consumed(struct weir_consumer *consumer, uint32_t partition, uint64_t offset)
{
	(void)consumer;
	(void)partition;
	(void)offset;
}

/* ---- the bus ---- */

static enum weir_status producer_new(struct weir_bus *bus, struct weir_producer **producer, struct weir_error *error)
{
	(void)producer;
	return weir_fail(error, WEIR_INVALID, "%s is only read here", view_of(bus)->directory);
}

static bool problem(struct weir_bus *bus, char *text, size_t bytes)
{
	struct view *view = view_of(bus);
	if (!is_replaced(view))
		return false;
	snprintf(text, bytes, "the log in %s was removed, or made anew", view->directory);
	return true;
}

static void bus_close(struct weir_bus *bus)
{
	struct view *view = view_of(bus);
	for (int topic = 0; topic < WEIR_TOPIC_COUNT; topic++) {
		if (!view->ends[topic].begun)
			continue;
		weir_bus_cursor_deinit(&view->ends[topic].cursor);
		free(view->ends[topic].first);
	}
	pthread_mutex_destroy(&view->lock);
	free(view->directory);
	free(view);
}

static const struct weir_bus_ops operations = {
	.name = "local",
	.advice = "Look at the disk that has the log (runbook: state-file-damaged)",
	.producer_new = producer_new,
	.consumer_new = consumer_new,
	.assign = assign,
	.resume = resume,
	.unassign = unassign,
	.pause = set_paused,
	.receive = receive,
	.position = position,
	.waiting = waiting,
	.consumed = consumed,
	.consumer_free = consumer_free,
	.extent = extent,
	.problem = problem,
	.close = bus_close,
};

enum weir_status weir_bus_local_view(const char *directory, struct weir_bus **bus, struct weir_error *error)
{
	struct stat about;
	uint32_t partitions;
	char longest[WEIR_PATH_BYTES];
	enum weir_status status = weir_path_format(longest, error, "%s/deadletter/%020d.log", directory, 0);
	if (status != WEIR_OK)
		return status;
	if (!identify(directory, &about)) {
		int reason = errno;
		return weir_fail(error, reason == ENOENT ? WEIR_AGAIN : WEIR_IO, "there is no log in %s: %s", directory,
		                 weir_errno_words(reason));
	}
	status = weir_bus_scan_partitions(directory, &partitions, error);
	if (status != WEIR_OK)
		return status;
	struct view *view = weir_alloc(1, sizeof *view);
	view->bus = (struct weir_bus){.ops = &operations, .partitions = partitions};
	view->directory = weir_copy(directory, strlen(directory));
	view->device = about.st_dev;
	view->inode = about.st_ino;
	pthread_mutex_init(&view->lock, NULL);
	*bus = &view->bus;
	return WEIR_OK;
}
