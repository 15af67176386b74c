/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File first, then the note: after a crash the file is cut back to the note's
 * length and the topic is read again from the note's offsets, so every decision
 * is in the file once.
 */
#include "deploy/weir/run/sink.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/bus/local/bus_local.h"
#include "common/files/file_place.h"
#include "common/files/line_file.h"
#include "common/json/json.h"
#include "deploy/weir/terminal/readable.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BATCH_MESSAGES = 256, WAIT_MS = 100, SAVE_PERIOD_MS = 1000, STOP_LIMIT_MS = 10000 };

/* Where one partition stands. */
struct place {
	uint64_t next;          /* in the topic */
	uint64_t offset, index; /* of the last decision written */
	bool any;               /* one was written */
};

struct sink {
	struct sink_options options;
	const struct weir_bus_ops *bus;
	struct weir_consumer *consumer;
	struct weir_line_file *file;
	struct place *places; /* by partition */
	bool dirty;
	int64_t save_due_ms;
	struct weir_fault fault;
	struct weir_text text;
	enum weir_status status;
	struct weir_error error;
	pthread_t thread;
	_Atomic bool stop, reopen, ended;
	pthread_mutex_t lock; /* of the problem, which other threads ask for */
	char problem[WEIR_ERROR_TEXT_BYTES];
};

/* Of the note, and of the reader. */
static const char *name_of(enum weir_topic topic)
{
	return topic == WEIR_TOPIC_SHADOW ? "sink-shadow" : "sink-decisions";
}

static const char *note_name(const struct sink *sink)
{
	return name_of(sink->options.topic);
}

/* ---- what is remembered: a line "DEVICE INODE BORN LENGTH", then a line a partition "NEXT ANY OFFSET INDEX" ---- */

static enum weir_status save(struct sink *sink, struct weir_error *error)
{
	enum weir_status status = weir_line_file_sync(sink->file, error);
	if (status != WEIR_OK)
		return status;
	struct weir_line_file_mark mark = weir_line_file_mark(sink->file);
	struct weir_text note = {0};
	weir_text_printf(&note, "%llu %llu %llu %llu\n", (unsigned long long)mark.device, (unsigned long long)mark.inode,
	                 (unsigned long long)mark.born_ns, (unsigned long long)mark.length);
	for (uint32_t i = 0; i < sink->options.bus->partitions; i++) {
		const struct place *place = &sink->places[i];
		weir_text_printf(&note, "%llu %d %llu %llu\n", (unsigned long long)place->next, place->any,
		                 (unsigned long long)place->offset, (unsigned long long)place->index);
	}
	struct weir_span value = {.at = note.at, .length = (uint32_t)note.length};
	status = sink->options.store->ops->note_put(sink->options.store, note_name(sink), value, error);
	weir_text_deinit(&note);
	if (status != WEIR_OK)
		return status;
	weir_line_file_protect(sink->file, &mark);
	for (uint32_t i = 0; i < sink->options.bus->partitions; i++)
		sink->bus->consumed(sink->consumer, i, sink->places[i].next);
	sink->dirty = false;
	return WEIR_OK;
}

static enum weir_status parse_note(struct sink *sink, const char *note, struct weir_line_file_mark *mark,
                                   struct weir_error *error)
{
	const char *at = note;
	char *end;
	uint64_t head[4];
	for (int i = 0; i < 4; i++, at = end)
		head[i] = strtoull(at, &end, 10);
	*mark = (struct weir_line_file_mark){.device = head[0], .inode = head[1], .born_ns = head[2], .length = head[3]};
	for (uint32_t p = 0; p < sink->options.bus->partitions; p++) {
		uint64_t numbers[4];
		for (int i = 0; i < 4; i++, at = end) {
			numbers[i] = strtoull(at, &end, 10);
			if (end == at)
				return weir_fail(error, WEIR_INVALID, "the saved position of the decisions file is damaged");
		}
		sink->places[p] =
			(struct place){.next = numbers[0], .any = numbers[1] != 0, .offset = numbers[2], .index = numbers[3]};
	}
	return WEIR_OK;
}

static enum weir_status open_file(struct sink *sink, struct weir_error *error)
{
	struct weir_line_file_options options = {
		.path = sink->options.path,
		.rotate_bytes = sink->options.rotate_bytes,
		.keep = sink->options.keep,
		.log = sink->options.log,
	};
	bool open = weir_file_descriptor_of(options.path) >= 0;
	struct weir_line_file_mark mark = {0};
	char *note;
	size_t length;
	enum weir_status status =
		sink->options.store->ops->note_get(sink->options.store, note_name(sink), &note, &length, error);
	if (status != WEIR_OK)
		return status;
	bool fresh = note == NULL;
	if (!fresh)
		status = parse_note(sink, note, &mark, error);
	free(note);
	/* What was trimmed while nobody read the topic is gone. */
	for (uint32_t i = 0; fresh && status == WEIR_OK && i < sink->options.bus->partitions; i++) {
		uint64_t next;
		status = sink->bus->extent(sink->options.bus, sink->options.topic, i, &sink->places[i].next, &next, error);
	}
	if (status != WEIR_OK)
		return status;
	if (open)
		return weir_line_file_open(&options, &sink->file, error);
	if (!fresh && mark.inode != 0) {
		status = weir_line_file_resume(&options, &mark, &sink->file, error);
		if (status != WEIR_END)
			return status;
		/* What was in it is the affair of who removed or cut it; the decisions from the note on come behind the rest. */
		weir_log(sink->options.log, WEIR_LOG_WARNING, "decisions", "%s; appending after what is there", error->text);
	}
	status = weir_line_file_open(&options, &sink->file, error);
	if (status == WEIR_OK && fresh && weir_line_file_mark(sink->file).length > 0)
		return weir_fail(
			error, WEIR_INVALID,
			"%s is not empty, but this state has written nothing yet: choose another file, or move it away",
			options.path);
	return status;
}

/* ---- writing ---- */

/* The (offset, index) of {"id":"P-OFFSET-INDEX",…; false: that is no decision. */
static bool parse_id(struct weir_span payload, uint64_t *offset, uint64_t *index)
{
	static const char head[] = "{\"id\":\"";
	char id[64];
	if (payload.length < sizeof head || memcmp(payload.at, head, sizeof head - 1) != 0)
		return false;
	size_t length = payload.length - (sizeof head - 1);
	if (length > sizeof id - 1)
		length = sizeof id - 1;
	memcpy(id, payload.at + sizeof head - 1, length);
	id[length] = '\0';
	unsigned long long partition, parsed_offset, parsed_index;
	if (sscanf(id, "%llu-%llu-%llu\"", &partition, &parsed_offset, &parsed_index) != 3)
		return false;
	*offset = parsed_offset;
	*index = parsed_index;
	return true;
}

static void fail(struct sink *sink, enum weir_status status, const struct weir_error *error)
{
	if (sink->status != WEIR_OK)
		return;
	sink->status = status;
	sink->error = *error;
}

static void note_problem(struct sink *sink, const char *words)
{
	pthread_mutex_lock(&sink->lock);
	snprintf(sink->problem, sizeof sink->problem, "%s", words);
	pthread_mutex_unlock(&sink->lock);
}

static void tell_trouble(struct sink *sink, const struct weir_error *error)
{
	note_problem(sink, error->text);
	weir_fault_raise_at(
		&sink->fault, sink->options.log, WEIR_LOG_ERROR, "decisions",
		"%s. Judging goes on, but whoever reads these decisions learns of no new block; the log keeps "
		"them. Trying again every second: make room, or see to the file (runbook: gateway-not-blocking)",
		error->text);
}

static void append(struct sink *sink, struct weir_span payload)
{
	weir_text_clear(&sink->text);
	if (!sink->options.words || !words_decision_json(&sink->text, payload, sink->options.coloured))
		weir_text_append(&sink->text, payload.at, payload.length);
	weir_text_append(&sink->text, "\n", 1);
	struct weir_span line = {.at = sink->text.at, .length = (uint32_t)sink->text.length};
	struct weir_error error;
	while (sink->status == WEIR_OK && weir_line_file_append(sink->file, line) == WEIR_FULL) {
		enum weir_status status = weir_line_file_flush(sink->file, &error);
		if (status == WEIR_OK)
			continue;
		if (status != WEIR_IO || atomic_load(&sink->stop)) {
			fail(sink, status, &error); /* nothing is saved any more: the next start writes this line */
			return;
		}
		tell_trouble(sink, &error);
		nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
	}
}

static void take(struct sink *sink, const struct weir_message *message)
{
	struct place *place = &sink->places[message->partition];
	uint64_t offset, index;
	place->next = message->offset + 1;
	sink->dirty = true;
	if (!parse_id(message->payload, &offset, &index)) {
		weir_log(sink->options.log, WEIR_LOG_WARNING, "decisions", "partition %u, offset %llu: skipped: not a decision",
		         message->partition, (unsigned long long)message->offset);
		return;
	}
	if (place->any && (offset < place->offset || (offset == place->offset && index <= place->index)))
		return; /* written before the partition was judged again */
	*place = (struct place){.next = message->offset + 1, .offset = offset, .index = index, .any = true};
	append(sink, message->payload);
}

/* The path afresh, with a note on either side: a crash between finds the file that the note names. */
static enum weir_status reopen(struct sink *sink, struct weir_error *error)
{
	enum weir_status status = save(sink, error);
	if (status == WEIR_OK)
		status = weir_line_file_reopen(sink->file, error);
	return status == WEIR_OK ? save(sink, error) : status;
}

/* Where somebody cut or removed the file, the note no longer fits it: a new one, before it has grown to the length of then. */
static enum weir_status renew(struct sink *sink, struct weir_error *error)
{
	bool unmarked;
	enum weir_status status = weir_line_file_look(sink->file, &unmarked, error);
	return status == WEIR_OK && unmarked ? save(sink, error) : status;
}

/* Lines have the screen to themselves until the last one is whole there. */
static void share_screen(struct sink *sink, bool writing)
{
	if (sink->options.progress == NULL)
		return;
	if (writing)
		progress_leave(sink->options.progress);
	else if (!sink->fault.on)
		progress_return(sink->options.progress);
}

/* What was received is written whether the note can be renewed before or not: it is tried again behind it. */
static enum weir_status write_batch(struct sink *sink, const struct weir_message *messages, size_t count,
                                    struct weir_error *error)
{
	enum weir_status status = renew(sink, error);
	if (status == WEIR_INVALID)
		return status;
	for (size_t i = 0; i < count && sink->status == WEIR_OK; i++)
		take(sink, &messages[i]);
	if (sink->status != WEIR_OK)
		return sink->status;
	/* readers want decisions at once; the disk's word for them may come each second */
	status = weir_line_file_flush(sink->file, error);
	return status == WEIR_OK ? renew(sink, error) : status;
}

/* One batch; gives whether there was any. */
static bool turn(struct sink *sink, int timeout_ms)
{
	struct weir_message messages[BATCH_MESSAGES];
	struct weir_error error;
	size_t count = 0;
	enum weir_status status = sink->bus->receive(sink->consumer, messages, BATCH_MESSAGES, timeout_ms, &count, &error);
	if (count > 0)
		share_screen(sink, true);
	bool received = status == WEIR_OK;
	if (count > 0)
		status = write_batch(sink, messages, count, &error);
	if (sink->status != WEIR_OK)
		return true; /* it has ended, for a reason that is told when it is stopped */
	if (status == WEIR_OK && atomic_exchange(&sink->reopen, false))
		status = reopen(sink, &error);
	if (status == WEIR_OK && sink->dirty && weir_monotonic_ms() >= sink->save_due_ms) {
		status = save(sink, &error);
		sink->save_due_ms = weir_monotonic_ms() + SAVE_PERIOD_MS;
	}
	if (status == WEIR_INVALID || status == WEIR_END)
		fail(sink, status, &error);
	else if (status != WEIR_OK)
		tell_trouble(sink, &error);
	else if (!sink->dirty) { /* saved since: between two tries nothing is known */
		weir_fault_clear(&sink->fault, sink->options.log, "decisions");
		note_problem(sink, "");
	}
	share_screen(sink, false);
	if (!received && sink->status == WEIR_OK)
		nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
	return count > 0;
}

/* Whether everything in the topic was taken. */
static bool caught_up(struct sink *sink)
{
	for (uint32_t i = 0; i < sink->options.bus->partitions; i++) {
		uint64_t first, next;
		struct weir_error error;
		if (sink->bus->extent(sink->options.bus, sink->options.topic, i, &first, &next, &error) != WEIR_OK ||
		    sink->places[i].next < next)
			return false;
	}
	return true;
}

static void *work(void *context)
{
	struct sink *sink = context;
	while (!atomic_load(&sink->stop) && sink->status == WEIR_OK)
		turn(sink, WAIT_MS);
	int64_t end_ms = weir_monotonic_ms() + STOP_LIMIT_MS;
	while (sink->status == WEIR_OK && !caught_up(sink) && weir_monotonic_ms() < end_ms)
		turn(sink, WAIT_MS);
	atomic_store(&sink->ended, true);
	return NULL;
}

static void sink_free(struct sink *sink)
{
	if (sink->consumer != NULL)
		sink->bus->consumer_free(sink->consumer);
	if (sink->options.store != NULL)
		sink->options.store->ops->close(sink->options.store);
	weir_text_deinit(&sink->text);
	pthread_mutex_destroy(&sink->lock);
	free(sink->places);
	free(sink);
}

/*
 * Where a log was removed beside its store, the topic begins anew: it is written from its first message on. `weir
 * recover` has made sure that its decisions have higher ids than those that are in the file.
 */
static enum weir_status begin_anew(struct sink *sink, uint32_t partition, struct weir_error *error)
{
	uint64_t first, next;
	struct place *place = &sink->places[partition];
	enum weir_status status =
		sink->bus->extent(sink->options.bus, sink->options.topic, partition, &first, &next, error);
	if (status != WEIR_OK || place->next <= next)
		return status;
	weir_log(sink->options.log, WEIR_LOG_WARNING, "decisions",
	         "%s was recreated (partition %u ends at %llu, and had been written up to %llu): writing it from its first "
	         "message on (runbook: topic-recreated)",
	         weir_topic_name(sink->options.topic), partition, (unsigned long long)next,
	         (unsigned long long)place->next);
	place->next = first;
	return WEIR_OK;
}

enum weir_status sink_start(const struct sink_options *options, struct sink **out, struct weir_error *error)
{
	struct sink *sink = weir_alloc(1, sizeof *sink);
	sink->options = *options;
	pthread_mutex_init(&sink->lock, NULL);
	sink->bus = options->bus->ops;
	sink->places = weir_alloc(options->bus->partitions, sizeof *sink->places);
	enum weir_status status = open_file(sink, error);
	if (status == WEIR_OK)
		status = sink->bus->consumer_new(options->bus, options->topic, note_name(sink), &sink->consumer, error);
	for (uint32_t i = 0; status == WEIR_OK && i < options->bus->partitions; i++)
		status = begin_anew(sink, i, error);
	for (uint32_t i = 0; status == WEIR_OK && i < options->bus->partitions; i++)
		status = sink->bus->assign(sink->consumer, i, sink->places[i].next, error);
	if (status == WEIR_OK) {
		status = save(sink, error); /* a crash before the first line finds its own file, not somebody's */
		if (status == WEIR_INVALID)
			status = WEIR_IO; /* the disk failed: nothing is wrong with what was asked for */
	}
	if (status == WEIR_OK) {
		int failed = pthread_create(&sink->thread, NULL, work, sink);
		if (failed != 0)
			status = weir_fail(error, WEIR_IO, "cannot start the thread of the decisions file: %s",
			                   weir_errno_words(failed));
	}
	if (status != WEIR_OK) {
		struct weir_error ignored;
		if (sink->file != NULL && weir_line_file_close(sink->file, &ignored) != WEIR_OK)
			weir_log(options->log, WEIR_LOG_WARNING, "decisions", "%s", ignored.text);
		sink_free(sink);
		return status;
	}
	*out = sink;
	return WEIR_OK;
}

enum weir_status sink_forget(struct weir_bus *bus, struct weir_store *store, enum weir_topic topic,
                             struct weir_error *error)
{
	/* The note first: one without its reader could name offsets that are gone by then. */
	struct weir_span none = {0};
	enum weir_status status = store->ops->note_put(store, name_of(topic), none, error);
	return status == WEIR_OK ? weir_bus_local_forget(bus, topic, name_of(topic), error) : status;
}

void sink_reopen(struct sink *sink)
{
	atomic_store(&sink->reopen, true);
}

bool sink_problem(struct sink *sink, char *words, size_t size)
{
	pthread_mutex_lock(&sink->lock);
	snprintf(words, size, "%s", sink->problem);
	pthread_mutex_unlock(&sink->lock);
	return words[0] != '\0';
}

bool sink_ended(const struct sink *sink)
{
	return atomic_load(&sink->ended);
}

enum weir_status sink_stop(struct sink *sink, struct weir_error *error)
{
	atomic_store(&sink->stop, true);
	pthread_join(sink->thread, NULL);
	enum weir_status status = sink->status;
	if (status != WEIR_OK)
		*error = sink->error;
	else
		status = save(sink, error);
	struct weir_error closing;
	enum weir_status closed = weir_line_file_close(sink->file, &closing);
	if (status == WEIR_OK && closed != WEIR_OK) {
		status = closed;
		*error = closing;
	}
	sink_free(sink);
	return status;
}
