/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The local bus: the log of one machine, on its disk, for one process.
 *
 * It gives the guarantees of a Kafka cluster (bus.h) with a directory for each
 * topic. This file joins the parts: topics (bus_local_journal.c, with its thread
 * in bus_local_sync.c), producers, consumers.
 */
#include "common/bus/local/bus_local.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/shell.h"
#include "common/bus/local/bus_local_consumer.h"
#include "common/bus/local/bus_local_producer.h"
#include "common/files/file_damage.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KIB INT64_C(1024)
#define SEGMENT_LEAST_BYTES (64 * KIB)
#define SEGMENT_MOST_BYTES (1024 * 1024 * KIB)
#define SEGMENT_DEFAULT_BYTES (64 * 1024 * KIB)
#define RETENTION_DEFAULT_BYTES (1024 * 1024 * KIB)
#define INDEXES_MAX_BYTES (32 * 1024 * KIB) /* per topic: four million messages */

enum {
	BUSY_MS = 5000, /* a disk that takes longer hangs */
	CHECK_LOOKS = 3,
	CHECK_NAP_NS = 20 * 1000 * 1000,
};

static const char nothing_lost[] = "nothing is lost: weir writes it again";

struct bus_local {
	struct weir_bus bus; /* first, so that a pointer to it is one to this */
	struct weir_directory_lock lock;
	struct weir_bus_journal *journals[WEIR_TOPIC_COUNT];
};

static struct bus_local *local(struct weir_bus *bus)
{
	return (struct bus_local *)bus;
}

static enum weir_status producer_new(struct weir_bus *bus, struct weir_producer **producer, struct weir_error *error)
{
	(void)error;
	*producer = weir_producer_new(local(bus)->journals);
	return WEIR_OK;
}

static enum weir_status consumer_new(struct weir_bus *bus, enum weir_topic topic, const char *reader,
                                     struct weir_consumer **consumer, struct weir_error *error)
{
	return weir_consumer_new(local(bus)->journals[topic], reader, consumer, error);
}

static enum weir_status extent(struct weir_bus *bus, enum weir_topic topic, uint32_t partition, uint64_t *first,
                               uint64_t *next, struct weir_error *error)
{
	struct weir_bus_journal *journal = local(bus)->journals[topic];
	if (partition >= journal->partitions)
		return weir_fail(error, WEIR_INVALID, "%s has no partition %u", weir_topic_name(topic), partition);
	pthread_mutex_lock(&journal->lock);
	*first = weir_bus_journal_first(journal, partition);
	*next = journal->next[partition];
	pthread_mutex_unlock(&journal->lock);
	return WEIR_OK;
}

static bool problem(struct weir_bus *bus, char *text, size_t bytes)
{
	for (int topic = 0; topic < WEIR_TOPIC_COUNT; topic++) {
		struct weir_bus_journal *journal = local(bus)->journals[topic];
		if (journal == NULL)
			continue;
		pthread_mutex_lock(&journal->lock);
		int64_t busy_ms = journal->busy_ms != 0 ? weir_monotonic_ms() - journal->busy_ms : 0;
		bool fails = journal->problem[0] != '\0', some = fails || busy_ms > BUSY_MS;
		if (fails)
			snprintf(text, bytes, "%s", journal->problem);
		else if (some)
			snprintf(text, bytes, "the disk of %s has not answered for %lld s", journal->directory,
			         (long long)(busy_ms / 1000));
		pthread_mutex_unlock(&journal->lock);
		if (some)
			return true;
	}
	return false;
}

static void bus_close(struct weir_bus *bus)
{
	if (bus == NULL)
		return;
	for (int topic = 0; topic < WEIR_TOPIC_COUNT; topic++)
		if (local(bus)->journals[topic] != NULL)
			weir_bus_journal_close(local(bus)->journals[topic]);
	weir_directory_unlock(&local(bus)->lock);
	free(local(bus));
}

static const struct weir_bus_ops operations = {
	.name = "local",
	.advice = "Look at the disk that has the log (runbook: state-file-damaged)",
	.producer_new = producer_new,
	.send = weir_producer_send,
	.hurry = weir_producer_hurry,
	.poll = weir_producer_poll,
	.wake_producer = weir_producer_wake,
	.producer_free = weir_producer_free,
	.consumer_new = consumer_new,
	.assign = weir_consumer_assign,
	.resume = weir_consumer_resume,
	.unassign = weir_consumer_unassign,
	.pause = weir_consumer_pause,
	.receive = weir_consumer_receive,
	.position = weir_consumer_position,
	.waiting = weir_consumer_waiting,
	.consumed = weir_consumer_consumed,
	.wake_consumer = weir_consumer_wake,
	.consumer_free = weir_consumer_free,
	.extent = extent,
	.problem = problem,
	.close = bus_close,
};

/* What is lost with a topic. A reader that knows its place in it goes on where somebody has accepted that it is another. */
static const struct topic_loss {
	const char *lost;
	bool recovered;
} losses[WEIR_TOPIC_COUNT] = {
	[WEIR_TOPIC_EVENTS] = {"what was read and is not judged yet is lost; counts and blocks are kept", true},
	[WEIR_TOPIC_JUDGED] = {"what is not archived of it yet is lost; counts and blocks are kept", true},
	[WEIR_TOPIC_DECISIONS] =
		{"gateways let those through who are blocked now, until they are over the limit again, and "
         "what is not archived of it yet is lost; counts are kept",
         true},
	[WEIR_TOPIC_SHADOW] = {"its messages are lost; counts and blocks are kept", false},
	[WEIR_TOPIC_POLICY] = {"its messages are lost; counts and blocks are kept", false},
	[WEIR_TOPIC_DEADLETTER] = {"its messages are lost; counts and blocks are kept", false},
};

/* What moving a topic away costs, or all of it where it is no more than one log. The log is a folder of the state. */
static enum weir_status say_remedy(const char *directory, const char *path, enum weir_topic topic,
                                   const struct weir_bus_local_options *options, struct weir_error *error)
{
	if (options->events_only)
		return weir_damage_move(error, directory,
		                        "what was sent and is not judged yet is lost, and what is sent again may count twice");
	char state[WEIR_PATH_BYTES], recover[WEIR_ERROR_TEXT_BYTES];
	int length = weir_directory_of(directory, state, NULL) == WEIR_OK
	                 ? snprintf(recover, sizeof recover, "weir recover --accept-gap --state %s --all --yes",
	                            weir_shell_word(state).text)
	                 : -1;
	if (!losses[topic].recovered || length < 0 || (size_t)length >= sizeof recover)
		return weir_damage_move(error, path, losses[topic].lost);
	return weir_damage_move_then(error, path, losses[topic].lost, recover);
}

/*
 * Opens a topic, or looks whether it could be (opened NULL). Its folder is named like it, without "weir.".
 */
static enum weir_status open_topic(struct bus_local *opened, const char *directory, enum weir_topic topic,
                                   const struct weir_bus_local_options *options, struct weir_error *error)
{
	char path[WEIR_PATH_BYTES];
	struct weir_bus_journal_options of_topic = {
		.topic = topic,
		.partitions = weir_topic_partitions(topic, options->partitions),
		.segment_bytes = options->segment_bytes > 0 ? options->segment_bytes : SEGMENT_DEFAULT_BYTES,
		.retention_bytes = options->retention_bytes > 0 ? options->retention_bytes : RETENTION_DEFAULT_BYTES,
		.read_bytes = topic == WEIR_TOPIC_EVENTS ? options->explain_bytes : 0,
		.sync_delay_ms = options->sync_delay_ms,
		.indexes_max_bytes = INDEXES_MAX_BYTES,
	};
	if (of_topic.segment_bytes < SEGMENT_LEAST_BYTES)
		of_topic.segment_bytes = SEGMENT_LEAST_BYTES;
	if (of_topic.segment_bytes > SEGMENT_MOST_BYTES)
		of_topic.segment_bytes = SEGMENT_MOST_BYTES;
	enum weir_status status =
		weir_path_format(path, error, "%s/%s", directory, weir_topic_name(topic) + sizeof "weir." - 1);
	if (status != WEIR_OK)
		return status;
	status = opened != NULL ? weir_bus_journal_open(path, &of_topic, &opened->journals[topic], error)
	                        : weir_bus_journal_check(path, &of_topic, error);
	return status == WEIR_INVALID ? say_remedy(directory, path, topic, options, error) : status;
}

/* Whether all files of topics were created with a number of partitions, and there is one. Topics of one have no other. */
static bool segments_say(const char *directory, uint32_t partitions)
{
	uint32_t count, said = 0, all = 0;
	for (int topic = 0; topic < WEIR_TOPIC_COUNT; topic++) {
		char path[WEIR_PATH_BYTES];
		uint64_t *sequences;
		if (weir_topic_partitions((enum weir_topic)topic, 2) == 1 ||
		    weir_path_format(path, NULL, "%s/%s", directory,
		                     weir_topic_name((enum weir_topic)topic) + sizeof "weir." - 1) != WEIR_OK ||
		    weir_bus_segment_list(path, &sequences, &count, NULL) != WEIR_OK)
			continue;
		all += count;
		for (uint32_t i = 0; i < count; i++) {
			struct weir_bus_segment *segment;
			if (weir_bus_segment_open(path, (enum weir_topic)topic, partitions, sequences[i], &segment, NULL) !=
			    WEIR_OK)
				continue;
			weir_bus_segment_free(segment);
			said++;
		}
		free(sequences);
	}
	return said > 0 && said == all;
}

/* The file `partitions` is whole, and has another number. */
static enum weir_status refuse_partitions(const char *directory, const char *path, uint32_t found, uint32_t wanted,
                                          struct weir_error *error)
{
	if (segments_say(directory, wanted)) {
		enum weir_status status =
			weir_fail(error, WEIR_INVALID, "%s is damaged: it says %u partitions, and the files of its topics have %u",
		              path, found, wanted);
		return error != NULL ? weir_damage_move(error, path, nothing_lost) : status;
	}
	enum weir_status status =
		weir_fail(error, WEIR_INVALID, "%s was created with %u partitions, not %u", directory, found, wanted);
	return error != NULL ? weir_damage_remedy(error, WEIR_BUS_PARTITIONS_REMEDY, found) : status;
}

/* Checks DIRECTORY/partitions, which keeps the number since the first opening, as keys were placed by it. */
static enum weir_status check_partitions(const char *directory, uint32_t partitions, bool looks,
                                         struct weir_error *error)
{
	char path[WEIR_PATH_BYTES], *text, wanted[16];
	size_t length;
	enum weir_status status = weir_path_format(path, error, "%s/partitions", directory);
	if (status == WEIR_OK)
		status = weir_durable_read(path, sizeof wanted, &text, &length, error);
	if (status != WEIR_OK)
		return status == WEIR_INVALID ? weir_damage_move(error, path, nothing_lost) : status;
	int used = snprintf(wanted, sizeof wanted, "%u\n", partitions);
	if (text == NULL)
		return looks ? WEIR_OK : weir_durable_write(path, wanted, (size_t)used, error);
	uint32_t found;
	bool good = weir_bus_partitions_decode(text, &found); /* a wrong number is refused by the segments' headers */
	free(text);
	if (good)
		return found == partitions ? WEIR_OK : refuse_partitions(directory, path, found, partitions, error);
	status = weir_fail(error, WEIR_INVALID, "%s is damaged: it must be one line with the number of partitions", path);
	return error != NULL ? weir_damage_move(error, path, nothing_lost) : status;
}

static enum weir_status check_once(const char *directory, const struct weir_bus_local_options *options,
                                   struct weir_error *error)
{
	enum weir_status status = check_partitions(directory, options->partitions, true, error);
	for (int topic = 0; topic < WEIR_TOPIC_COUNT && status == WEIR_OK; topic++)
		if (topic == WEIR_TOPIC_EVENTS || !options->events_only)
			status = open_topic(NULL, directory, (enum weir_topic)topic, options, error);
	return status;
}

enum weir_status weir_bus_local_check(const char *directory, const struct weir_bus_local_options *options,
                                      struct weir_error *error)
{
	struct weir_error before = {.text = ""};
	enum weir_status status = WEIR_OK;
	for (int looks = 0; looks < CHECK_LOOKS; looks++) {
		status = check_once(directory, options, error);
		bool again = looks == 0 || strcmp(before.text, error->text) == 0;
		if (status == WEIR_OK || !again)
			return WEIR_OK;
		if (weir_directory_look(directory) != WEIR_DIRECTORY_HELD)
			break;
		before = *error;
		nanosleep(&(struct timespec){.tv_nsec = CHECK_NAP_NS}, NULL);
	}
	return status;
}

enum weir_status weir_bus_local_open(const char *directory, const struct weir_bus_local_options *options,
                                     struct weir_bus **bus, struct weir_error *error)
{
	assert(options->partitions > 0 && options->partitions <= WEIR_BUS_PARTITIONS_MAX);
	struct bus_local *opened = weir_alloc(1, sizeof *opened);
	opened->bus = (struct weir_bus){.ops = &operations, .partitions = options->partitions};
	opened->lock.fd = -1;
	enum weir_status status = weir_directory_make(directory, error);
	if (status == WEIR_OK)
		status = weir_directory_lock(directory, &opened->lock, error);
	if (status == WEIR_OK)
		status = check_partitions(directory, options->partitions, false, error);
	for (int topic = 0; topic < WEIR_TOPIC_COUNT && status == WEIR_OK; topic++)
		if (topic == WEIR_TOPIC_EVENTS || !options->events_only)
			status = open_topic(opened, directory, (enum weir_topic)topic, options, error);
	if (status == WEIR_OK)
		*bus = &opened->bus;
	else
		bus_close(&opened->bus);
	return status;
}

enum weir_status weir_bus_local_forget(struct weir_bus *bus, enum weir_topic topic, const char *reader,
                                       struct weir_error *error)
{
	return weir_bus_readers_forget(local(bus)->journals[topic], reader, error);
}

uint64_t weir_bus_local_read_to(struct weir_bus *bus, enum weir_topic topic, const char *reader, uint32_t partition)
{
	return weir_bus_readers_position(local(bus)->journals[topic], reader, partition);
}

uint64_t weir_bus_local_bytes(struct weir_bus *bus, enum weir_topic topic)
{
	struct weir_bus_journal *journal = local(bus)->journals[topic];
	uint64_t bytes = 0;
	pthread_mutex_lock(&journal->lock);
	for (uint32_t i = 0; i < journal->segment_count; i++)
		bytes += journal->segments[i]->length;
	pthread_mutex_unlock(&journal->lock);
	return bytes;
}
