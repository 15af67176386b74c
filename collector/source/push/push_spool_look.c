/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A spool from outside: its id, whether a start could take it, and what nobody has read of it.
 *
 * The file "id" is the id and a hash of it. Earlier versions wrote the id alone: it is read, and written anew at the next
 * start.
 */
#include "collector/source/push/internal.h"
#include "common/base/clock.h"
#include "common/bus/local/bus_local.h"
#include "common/bytes/hash.h"
#include "common/files/durable_file.h"
#include "common/files/file_damage.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { OPEN_WAIT_MS = 1000, HASH_BYTES = 8, ID_FILE_BYTES = PUSH_SPOOL_ID_BYTES + HASH_BYTES };

/* ---- its id ---- */

static void encode(const uint8_t id[PUSH_SPOOL_ID_BYTES], char bytes[ID_FILE_BYTES])
{
	uint64_t hash = weir_hash64(id, PUSH_SPOOL_ID_BYTES);
	memcpy(bytes, id, PUSH_SPOOL_ID_BYTES);
	for (int i = 0; i < HASH_BYTES; i++)
		bytes[PUSH_SPOOL_ID_BYTES + i] = (char)(hash >> (8 * i));
}

static enum weir_status decode(const char *bytes, size_t length, uint8_t id[PUSH_SPOOL_ID_BYTES],
                               enum push_id_file *found)
{
	char whole[ID_FILE_BYTES];
	if (length != PUSH_SPOOL_ID_BYTES && length != ID_FILE_BYTES)
		return WEIR_INVALID;
	memcpy(id, bytes, PUSH_SPOOL_ID_BYTES);
	encode(id, whole);
	*found = length == ID_FILE_BYTES ? PUSH_ID_WHOLE : PUSH_ID_UNHASHED;
	return memcmp(bytes, whole, length) == 0 ? WEIR_OK : WEIR_INVALID;
}

enum weir_status push_spool_id_look(const char *directory, uint8_t id[PUSH_SPOOL_ID_BYTES], enum push_id_file *found,
                                    struct weir_error *error)
{
	char path[WEIR_PATH_BYTES], *bytes = NULL;
	size_t length;
	*found = PUSH_ID_MISSING;
	enum weir_status status = weir_path_format(path, error, "%s/id", directory);
	if (status == WEIR_OK)
		status = weir_durable_read(path, ID_FILE_BYTES, &bytes, &length, error);
	if (status == WEIR_OK && bytes != NULL && decode(bytes, length, id, found) != WEIR_OK)
		status = weir_fail(error, WEIR_INVALID, "%s is damaged: it is not %d bytes and their hash", path,
		                   PUSH_SPOOL_ID_BYTES);
	free(bytes);
	if (status == WEIR_INVALID && error != NULL)
		(void)weir_damage_move(error, path,
		                       "weir takes the id that sources.json has, and nothing is lost; where that is gone, too, "
		                       "batches that the spool still holds may count twice");
	return status;
}

/* On disk when this returns. */
static enum weir_status keep_id(const char *directory, const uint8_t id[PUSH_SPOOL_ID_BYTES], struct weir_error *error)
{
	char path[WEIR_PATH_BYTES], bytes[ID_FILE_BYTES];
	enum weir_status status = weir_path_format(path, error, "%s/id", directory);
	encode(id, bytes);
	return status == WEIR_OK ? weir_durable_write(path, bytes, sizeof bytes, error) : status;
}

/* Whether a spool that ends at this offset has the batches up to where its source has read. */
static bool reaches(const struct push_spool_last *last, uint64_t next)
{
	return last->position >> PUSH_POSITION_LINE_BITS <= next;
}

void push_spool_tell(const struct push_spool *spool, const char *what)
{
	if (spool->log != NULL)
		weir_log(spool->log, WEIR_LOG_WARNING, "collector", "%s: %s (runbook: state-file-damaged)", spool->name, what);
}

static void make_id(uint8_t id[PUSH_SPOOL_ID_BYTES])
{
	if (getrandom(id, PUSH_SPOOL_ID_BYTES, 0) != PUSH_SPOOL_ID_BYTES)
		abort(); /* does not happen: 16 random bytes are always available */
}

/* The id of a spool that has none. */
static void replace_lost_id(struct push_spool *spool, const struct push_spool_last *last, uint64_t next)
{
	if (next > 0 && last != NULL && reaches(last, next)) {
		memcpy(spool->id, last->id, sizeof spool->id);
		push_spool_tell(spool,
		                "its spool has lost its file \"id\", and has it again from sources.json: nothing counts twice");
		return;
	}
	make_id(spool->id);
	if (next > 0)
		push_spool_tell(
			spool, "its spool has lost its file \"id\", and sources.json does not have it either: batches of the last "
				   "seconds before the last stop may count twice");
}

enum weir_status push_spool_id_settle(struct push_spool *spool, const char *directory,
                                      const struct push_spool_last *last, struct weir_error *error)
{
	enum push_id_file found = PUSH_ID_MISSING;
	uint64_t first, next;
	enum weir_status status = spool->bus->ops->extent(spool->bus, WEIR_TOPIC_EVENTS, 0, &first, &next, error);
	if (status == WEIR_OK)
		status = push_spool_id_look(directory, spool->id, &found, error);
	if (status != WEIR_OK)
		return status;
	bool same = found != PUSH_ID_MISSING && last != NULL && memcmp(spool->id, last->id, sizeof spool->id) == 0;
	bool gone = same && !reaches(last, next);
	if (found == PUSH_ID_MISSING) {
		replace_lost_id(spool, last, next);
	} else if (gone) {
		make_id(spool->id); /* positions begin anew: under the old id, new batches would be taken for judged ones */
		push_spool_tell(spool, "batches of its spool are gone: those that were not judged yet are lost");
	} else if (last != NULL && !same && next > 0) {
		push_spool_tell(
			spool, "its spool is not the one that sources.json knows: batches that it still holds may count twice");
	}
	return found != PUSH_ID_WHOLE || gone ? keep_id(directory, spool->id, error) : WEIR_OK;
}

/* ---- whether it can be taken ---- */

enum weir_status push_spool_check(const char *directory, struct weir_error *error)
{
	const struct weir_bus_local_options log = {.partitions = 1, .events_only = true};
	uint8_t id[PUSH_SPOOL_ID_BYTES];
	enum push_id_file found;
	struct push_ids *ids = NULL;
	if (access(directory, F_OK) != 0)
		return WEIR_OK;
	enum weir_status status = weir_bus_local_check(directory, &log, error);
	if (status == WEIR_OK)
		status = push_spool_id_look(directory, id, &found, error);
	if (status == WEIR_OK)
		status = push_ids_open(directory, weir_wall_ms(), &ids, error);
	push_ids_free(ids);
	return status;
}

/* ---- what nobody reads ---- */

/* The lines of a batch behind a position. */
static uint64_t lines_behind(const struct weir_message *message, uint64_t low)
{
	uint64_t lines = 0, read = 0, place = low >> PUSH_POSITION_LINE_BITS;
	const char *at = message->payload.at, *end = at + message->payload.length;
	if (message->offset + 1 < place)
		return 0;
	if (message->offset + 1 == place)
		read = (low & (PUSH_BATCH_MOST_LINES - 1)) + 1;
	for (; at < end && (at = memchr(at, '\n', (size_t)(end - at))) != NULL; at++)
		lines++;
	return lines > read ? lines - read : 0;
}

/* @param low  a start would read all of a spool that does not reach so far: push_spool_id_settle() */
static enum weir_status count_batches(struct weir_bus *bus, uint64_t low, struct source_left *left,
                                      struct weir_error *error)
{
	struct weir_consumer *consumer = NULL;
	uint64_t first = 0, next = 0;
	enum weir_status status = bus->ops->consumer_new(bus, WEIR_TOPIC_EVENTS, NULL, &consumer, error);
	if (status == WEIR_OK)
		status = bus->ops->extent(bus, WEIR_TOPIC_EVENTS, 0, &first, &next, error);
	if (status == WEIR_OK)
		status = bus->ops->assign(consumer, 0, first, error);
	if (!reaches(&(struct push_spool_last){.position = low}, next))
		low = 0;
	while (status == WEIR_OK && first < next && !left->more) {
		struct weir_message messages[PUSH_MESSAGES];
		size_t count = 0;
		status = bus->ops->receive(consumer, messages, PUSH_MESSAGES, OPEN_WAIT_MS, &count, error);
		for (size_t i = 0; status == WEIR_OK && i < count; i++) {
			uint64_t lines = lines_behind(&messages[i], low);
			first = messages[i].offset + 1;
			left->requests += lines > 0;
			left->lines += lines;
		}
		left->more = first < next && weir_monotonic_ms() >= left->end_ms;
	}
	if (consumer != NULL)
		bus->ops->consumer_free(consumer);
	return status;
}

enum weir_status push_spool_count(const char *directory, uint64_t (*low)(void *context, const uint8_t *id),
                                  void *context, struct source_left *left, struct weir_error *error)
{
	const struct weir_bus_local_options log = {.partitions = 1, .events_only = true};
	uint8_t id[PUSH_SPOOL_ID_BYTES];
	enum push_id_file found;
	struct weir_bus *bus;
	enum weir_status status = weir_bus_local_open(directory, &log, &bus, error);
	if (status != WEIR_OK)
		return status;
	status = push_spool_id_look(directory, id, &found, error);
	if (status == WEIR_OK)
		status = count_batches(bus, low(context, found != PUSH_ID_MISSING ? id : NULL), left, error);
	bus->ops->close(bus);
	return status;
}
