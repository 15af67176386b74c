/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of ids in the order in which they came, and a table of places in it.
 *
 * Number n of all ids ever added is at place n & mask of the ring; the table is open, probed in steps of one, and twice
 * as large as the ring. Both grow with use.
 *
 * An id that ends is written once more, with that mark, without waiting for its batch: who reads the files takes the mark
 * for the batch of that offset alone. A file is succeeded when it has half a million records or is an hour old, so the
 * last five hold at least the last million ids, each ended, or the last hour.
 */
#include "collector/source/push/push_ids.h"

#include "common/base/alloc.h"
#include "common/base/text.h"
#include "common/bytes/hash.h"
#include "common/files/durable_file.h"
#include "common/files/file_damage.h"
#include "common/files/file_owner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	RING_LEAST = 256,
	FILES_KEPT = 5,
	FILE_MOST_IDS = PUSH_IDS_MOST / 2,
	ENDED_MOST = 1 << 16, /* that wait to be written: of more, a start knows nothing */
	RECORD_BYTES = 48,
	WRITE_IDS = 4096, /* at once */
	AHEAD_BYTES = 1 << 20,
};

#define OVER_BIT (UINT64_C(1) << 63) /* of a record's offset */

static const char first_line[] = "weir push ids 1\n"; /* of sixteen bytes */
static const char known_less[] = "batches of the last hour that are sent again may be taken twice";

enum { HEAD_BYTES = sizeof first_line - 1, FILE_MOST_BYTES = HEAD_BYTES + 2 * FILE_MOST_IDS * RECORD_BYTES };

struct push_ids {
	char *directory;
	struct push_id *ring;
	uint32_t *table; /* the low bits of a number, plus 1; 0: free */
	size_t ring_size;
	uint64_t first, next;  /* numbers */
	uint64_t unsaved;      /* the first number that is in no file */
	struct push_id *ended; /* whose end is in no file */
	size_t ended_count, ended_room;
	uint64_t oldest_file, newest_file; /* 0: there is none */
	int fd;                            /* of the newest; -1 */
	uint64_t file_ids;
	int64_t file_begun_ms; /* when its first id came */
	uint64_t file_bytes;   /* whole records */
	char doubt[WEIR_PATH_BYTES + 160];
};

/* ---- the ring and its table ---- */

static struct push_id *at(const struct push_ids *ids, uint64_t number)
{
	return &ids->ring[number & (ids->ring_size - 1)];
}

static size_t table_mask(const struct push_ids *ids)
{
	return 2 * ids->ring_size - 1;
}

static size_t home(const struct push_ids *ids, const uint8_t *hash)
{
	uint64_t bits;
	memcpy(&bits, hash, sizeof bits);
	return (size_t)bits & table_mask(ids);
}

/* The ring's place that a place of the table leads to. */
static const struct push_id *led_to(const struct push_ids *ids, size_t place)
{
	return &ids->ring[(ids->table[place] - 1) & (ids->ring_size - 1)];
}

/* Where an id is, or the free place where it would be. */
static size_t place_of(const struct push_ids *ids, const uint8_t *hash)
{
	size_t place = home(ids, hash);
	while (ids->table[place] != 0 && memcmp(led_to(ids, place)->hash, hash, PUSH_ID_HASH_BYTES) != 0)
		place = (place + 1) & table_mask(ids);
	return place;
}

static void link_in(struct push_ids *ids, uint64_t number)
{
	ids->table[place_of(ids, at(ids, number)->hash)] = (uint32_t)(number & (ids->ring_size - 1)) + 1;
}

/* Frees a place, and moves up those that were put behind it for want of it. */
static void unlink_from(struct push_ids *ids, size_t hole)
{
	size_t mask = table_mask(ids);
	for (size_t place = (hole + 1) & mask; ids->table[place] != 0; place = (place + 1) & mask) {
		size_t wanted = home(ids, led_to(ids, place)->hash);
		if (((place - wanted) & mask) < ((place - hole) & mask))
			continue;
		ids->table[hole] = ids->table[place];
		hole = place;
	}
	ids->table[hole] = 0;
}

static void forget_first(struct push_ids *ids)
{
	size_t place = place_of(ids, at(ids, ids->first)->hash);
	if (ids->table[place] != 0 && led_to(ids, place) == at(ids, ids->first)) /* else it came again since */
		unlink_from(ids, place);
	ids->first++;
	if (ids->unsaved < ids->first)
		ids->unsaved = ids->first;
}

static void grow(struct push_ids *ids)
{
	struct push_id *before = ids->ring;
	size_t mask_before = ids->ring_size - 1;
	ids->ring_size = ids->ring_size == 0 ? RING_LEAST : 2 * ids->ring_size;
	ids->ring = weir_alloc(ids->ring_size, sizeof *ids->ring);
	free(ids->table);
	ids->table = weir_alloc(2 * ids->ring_size, sizeof *ids->table);
	for (uint64_t number = ids->first; number < ids->next; number++) {
		*at(ids, number) = before[number & mask_before];
		link_in(ids, number);
	}
	free(before);
}

const struct push_id *push_ids_find(const struct push_ids *ids, const uint8_t hash[PUSH_ID_HASH_BYTES])
{
	size_t place = place_of(ids, hash);
	return ids->table[place] != 0 ? led_to(ids, place) : NULL;
}

void push_ids_end(struct push_ids *ids, const uint8_t hash[PUSH_ID_HASH_BYTES])
{
	size_t place = place_of(ids, hash);
	if (ids->table[place] == 0)
		return;
	struct push_id *id = &ids->ring[(ids->table[place] - 1) & (ids->ring_size - 1)];
	if (id->over)
		return;
	id->over = true;
	if (ids->ended_count == ENDED_MOST)
		return;
	if (ids->ended_count == ids->ended_room) {
		ids->ended_room = ids->ended_room == 0 ? RING_LEAST : 2 * ids->ended_room;
		ids->ended = weir_realloc(ids->ended, ids->ended_room, sizeof *ids->ended);
	}
	ids->ended[ids->ended_count++] = *id;
}

void push_ids_forget(struct push_ids *ids, int64_t now_ms)
{
	while (ids->first < ids->next && at(ids, ids->first)->at_ms < now_ms - PUSH_IDS_KEPT_MS)
		forget_first(ids);
}

void push_ids_add(struct push_ids *ids, const struct push_id *id, int64_t now_ms)
{
	push_ids_forget(ids, now_ms);
	if (ids->next - ids->first == PUSH_IDS_MOST)
		forget_first(ids);
	if (ids->next - ids->first == ids->ring_size)
		grow(ids);
	*at(ids, ids->next) = *id;
	link_in(ids, ids->next++);
}

void push_ids_learn(struct push_ids *ids, const struct push_id *id, int64_t now_ms)
{
	size_t place = place_of(ids, id->hash);
	struct push_id *known = ids->table[place] != 0 ? &ids->ring[(ids->table[place] - 1) & (ids->ring_size - 1)] : NULL;
	if (id->at_ms < now_ms - PUSH_IDS_KEPT_MS)
		return;
	if (known == NULL || known->offset < id->offset)
		push_ids_add(ids, id, now_ms);
	else if (known->offset == id->offset)
		known->over |= id->over;
}

size_t push_ids_count(const struct push_ids *ids)
{
	return (size_t)(ids->next - ids->first);
}

bool push_ids_unsaved(const struct push_ids *ids, uint64_t below)
{
	return ids->unsaved < ids->next && at(ids, ids->unsaved)->offset < below;
}

bool push_ids_unsaved_ends(const struct push_ids *ids)
{
	return ids->ended_count > 0;
}

/* ---- records ---- */

static void put_uint64(uint8_t *bytes, uint64_t number)
{
	for (int i = 0; i < 8; i++)
		bytes[i] = (uint8_t)(number >> (8 * i));
}

static uint64_t get_uint64(const uint8_t *bytes)
{
	uint64_t number = 0;
	for (int i = 0; i < 8; i++)
		number |= (uint64_t)bytes[i] << (8 * i);
	return number;
}

static void put_record(uint8_t *record, const struct push_id *id)
{
	memcpy(record, id->hash, PUSH_ID_HASH_BYTES);
	put_uint64(record + 16, id->body);
	put_uint64(record + 24, (uint64_t)id->at_ms);
	put_uint64(record + 32, id->offset | (id->over ? OVER_BIT : 0));
	put_uint64(record + 40, weir_hash64(record, 40));
}

static bool get_record(const uint8_t *record, struct push_id *id)
{
	if (get_uint64(record + 40) != weir_hash64(record, 40))
		return false;
	memcpy(id->hash, record, PUSH_ID_HASH_BYTES);
	id->body = get_uint64(record + 16);
	id->at_ms = (int64_t)get_uint64(record + 24);
	id->offset = get_uint64(record + 32) & ~OVER_BIT;
	id->over = (get_uint64(record + 32) & OVER_BIT) != 0;
	return true;
}

/* ---- files ---- */

static enum weir_status file_path(const struct push_ids *ids, uint64_t number, char path[WEIR_PATH_BYTES],
                                  struct weir_error *error)
{
	return weir_path_format(path, error, "%s/ids-%" PRIu64, ids->directory, number);
}

/* Takes what a file has. @param end  set behind its last whole record */
static bool take_records(struct push_ids *ids, const uint8_t *bytes, size_t length, int64_t now_ms, size_t *end)
{
	struct push_id id;
	if (length < HEAD_BYTES || memcmp(bytes, first_line, HEAD_BYTES) != 0)
		return false;
	for (*end = HEAD_BYTES; length - *end >= RECORD_BYTES && get_record(bytes + *end, &id); *end += RECORD_BYTES) {
		if (ids->file_ids++ == 0)
			ids->file_begun_ms = id.at_ms;
		push_ids_learn(ids, &id, now_ms);
	}
	return *end == length;
}

/*
 * Whether a whole record stands behind one that is not. A crash of weir alone leaves no such tail; a power loss may, as
 * thousands of records are written at once, and a disk may keep the later ones.
 */
static bool is_damaged(const uint8_t *bytes, size_t length, size_t end)
{
	struct push_id id;
	bool found = length >= HEAD_BYTES && end < HEAD_BYTES;
	for (size_t at = end + RECORD_BYTES; !found && length >= RECORD_BYTES && at <= length - RECORD_BYTES;
	     at += RECORD_BYTES)
		found = get_record(bytes + at, &id);
	return found;
}

/* What was being written at a crash is the tail of the last file, whose batches the spool still has. */
static enum weir_status read_file(struct push_ids *ids, uint64_t number, int64_t now_ms, struct weir_error *error)
{
	char path[WEIR_PATH_BYTES], *bytes = NULL;
	size_t length, end = 0;
	ids->file_ids = 0;
	enum weir_status status = file_path(ids, number, path, error);
	if (status == WEIR_OK)
		status = weir_durable_read(path, FILE_MOST_BYTES, &bytes, &length, error);
	if (status == WEIR_INVALID && error != NULL)
		return weir_damage_move(error, path, known_less);
	if (status != WEIR_OK || bytes == NULL)
		return status;
	bool whole = take_records(ids, (const uint8_t *)bytes, length, now_ms, &end);
	if (!whole && is_damaged((const uint8_t *)bytes, length, end))
		snprintf(ids->doubt, sizeof ids->doubt,
		         "%s may be damaged at byte %zu, and what stands behind is not known: %s", path, end, known_less);
	free(bytes);
	if (!whole && number != ids->newest_file) {
		status = weir_fail(error, WEIR_INVALID, "%s is damaged at byte %zu", path, end);
		return error != NULL ? weir_damage_move(error, path, known_less) : status;
	}
	if (number == ids->newest_file)
		ids->file_bytes = end;
	return WEIR_OK;
}

/* The lowest and highest number of a file. */
static enum weir_status list_files(struct push_ids *ids, struct weir_error *error)
{
	DIR *listing = opendir(ids->directory);
	if (listing == NULL)
		return weir_fail(error, WEIR_IO, "cannot list %s: %s", ids->directory, weir_errno_words(errno));
	for (;;) {
		uint64_t number;
		int used = 0;
		errno = 0;
		const struct dirent *entry = readdir(listing);
		if (entry == NULL)
			break;
		if (sscanf(entry->d_name, "ids-%" SCNu64 "%n", &number, &used) != 1 || entry->d_name[used] != '\0' ||
		    number == 0)
			continue;
		if (ids->oldest_file == 0 || number < ids->oldest_file)
			ids->oldest_file = number;
		if (number > ids->newest_file)
			ids->newest_file = number;
	}
	int failed = errno;
	closedir(listing);
	return failed == 0 ? WEIR_OK
	                   : weir_fail(error, WEIR_IO, "cannot list %s: %s", ids->directory, weir_errno_words(failed));
}

static void close_file(struct push_ids *ids)
{
	if (ids->fd >= 0)
		close(ids->fd);
	ids->fd = -1;
}

/* Opens the file to write behind what is whole. Where that fails it is closed, so that the next attempt begins here again. */
static enum weir_status open_newest(struct push_ids *ids, struct weir_error *error)
{
	char path[WEIR_PATH_BYTES];
	enum weir_status status = file_path(ids, ids->newest_file, path, error);
	if (status != WEIR_OK)
		return status;
	bool is_new = ids->file_bytes == 0;
	ids->fd = weir_file_make(path, O_WRONLY, 0640);
	if (ids->fd < 0)
		return weir_file_refused(error, "cannot write", path);
	/* Room ahead: a disk that the spool has filled must still take the ids of what may go. */
	(void)fallocate(ids->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)ids->file_bytes + AHEAD_BYTES);
	if (ftruncate(ids->fd, (off_t)ids->file_bytes) != 0 || lseek(ids->fd, (off_t)ids->file_bytes, SEEK_SET) < 0 ||
	    (is_new && weir_write_all(ids->fd, first_line, HEAD_BYTES, &(size_t){0}) != 0))
		status = weir_fail(error, WEIR_IO, "cannot write %s: %s", path, weir_errno_words(errno));
	if (status == WEIR_OK && is_new)
		status = weir_directory_sync(ids->directory, error);
	if (status != WEIR_OK)
		close_file(ids);
	else if (is_new)
		ids->file_bytes = HEAD_BYTES;
	return status;
}

enum weir_status push_ids_open(const char *directory, int64_t now_ms, struct push_ids **made, struct weir_error *error)
{
	struct push_ids *ids = weir_alloc(1, sizeof *ids);
	ids->directory = weir_copy(directory, strlen(directory));
	ids->fd = -1;
	grow(ids);
	enum weir_status status = list_files(ids, error);
	for (uint64_t number = ids->oldest_file; number != 0 && number <= ids->newest_file && status == WEIR_OK; number++)
		status = read_file(ids, number, now_ms, error);
	ids->unsaved = ids->next;
	if (status == WEIR_OK)
		*made = ids;
	else
		push_ids_free(ids);
	return status;
}

const char *push_ids_doubt(const struct push_ids *ids)
{
	return ids->doubt;
}

void push_ids_free(struct push_ids *ids)
{
	if (ids == NULL)
		return;
	close_file(ids);
	free(ids->ring);
	free(ids->ended);
	free(ids->table);
	free(ids->directory);
	free(ids);
}

/* Cuts the newest file behind what is whole: of one that is not the newest, a start refuses a torn tail. */
static enum weir_status cut_newest(struct push_ids *ids, struct weir_error *error)
{
	enum weir_status status = ids->fd >= 0 ? WEIR_OK : open_newest(ids, error);
	if (status == WEIR_OK && fsync(ids->fd) != 0) {
		status = weir_fail(error, WEIR_IO, "cannot write %s: %s", ids->directory, weir_errno_words(errno));
		close_file(ids);
	}
	return status;
}

/* Begins the next file, and removes those that are too old to matter. */
static enum weir_status succeed(struct push_ids *ids, struct weir_error *error)
{
	char path[WEIR_PATH_BYTES];
	enum weir_status status = ids->newest_file != 0 ? cut_newest(ids, error) : WEIR_OK;
	if (status != WEIR_OK)
		return status;
	close_file(ids);
	ids->newest_file++;
	ids->file_bytes = ids->file_ids = 0;
	if (ids->oldest_file == 0)
		ids->oldest_file = ids->newest_file;
	for (; ids->newest_file - ids->oldest_file >= FILES_KEPT; ids->oldest_file++)
		if (file_path(ids, ids->oldest_file, path, NULL) == WEIR_OK)
			unlink(path);
	return WEIR_OK;
}

/* Has a file to write to. @param first_ms  when the id that is written next came */
static enum weir_status prepare(struct push_ids *ids, int64_t first_ms, int64_t now_ms, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	if (ids->newest_file == 0 || ids->file_ids >= FILE_MOST_IDS ||
	    (ids->file_ids > 0 && ids->file_begun_ms < now_ms - PUSH_IDS_KEPT_MS))
		status = succeed(ids, error);
	if (status != WEIR_OK)
		return status;
	if (ids->file_ids == 0)
		ids->file_begun_ms = first_ms;
	return ids->fd >= 0 ? WEIR_OK : open_newest(ids, error);
}

static void add_record(struct weir_text *records, const struct push_id *id)
{
	put_record((uint8_t *)weir_text_reserve(records, RECORD_BYTES), id);
	records->length += RECORD_BYTES;
}

/* Writes records, and empties the text; where that fails, the file is cut before them by the next attempt. */
static enum weir_status write_records(struct push_ids *ids, struct weir_text *records, struct weir_error *error)
{
	size_t written = 0;
	bool good = weir_write_all(ids->fd, records->at, records->length, &written) == 0 && fdatasync(ids->fd) == 0;
	int why = errno;
	if (good) {
		ids->file_bytes += records->length;
		ids->file_ids += records->length / RECORD_BYTES;
	} else {
		close_file(ids);
	}
	weir_text_deinit(records);
	return good ? WEIR_OK : weir_fail(error, WEIR_IO, "cannot write %s: %s", ids->directory, weir_errno_words(why));
}

enum weir_status push_ids_save(struct push_ids *ids, uint64_t below, int64_t now_ms, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	while (status == WEIR_OK && push_ids_unsaved(ids, below)) {
		struct weir_text records = {0};
		uint64_t end = ids->unsaved;
		status = prepare(ids, at(ids, end)->at_ms, now_ms, error);
		if (status != WEIR_OK)
			break;
		for (; end < ids->next && end - ids->unsaved < WRITE_IDS && at(ids, end)->offset < below; end++)
			add_record(&records, at(ids, end));
		status = write_records(ids, &records, error);
		if (status == WEIR_OK)
			ids->unsaved = end;
	}
	return status;
}

enum weir_status push_ids_save_ends(struct push_ids *ids, int64_t now_ms, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	while (status == WEIR_OK && ids->ended_count > 0) {
		struct weir_text records = {0};
		size_t left = ids->ended_count > WRITE_IDS ? ids->ended_count - WRITE_IDS : 0;
		status = prepare(ids, ids->ended[left].at_ms, now_ms, error);
		if (status != WEIR_OK)
			break;
		for (size_t i = left; i < ids->ended_count; i++)
			add_record(&records, &ids->ended[i]);
		status = write_records(ids, &records, error);
		if (status == WEIR_OK)
			ids->ended_count = left;
	}
	return status;
}
