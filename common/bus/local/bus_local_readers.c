/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readers' positions, and trimming up to the slowest reader.
 *
 * The file is text: its name and version, then one line per position: READER
 * PARTITION OFFSET. It may lag, because a position only ever delays trimming.
 */
#include "common/bus/local/bus_local_journal.h"

#include "common/base/alloc.h"
#include "common/base/text.h"
#include "common/files/file_damage.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char first_line[] = "weir readers 1\n";
static const char nothing_lost[] =
	"nothing is lost: weir writes it again, and removes what was read later than it could";

enum { FILE_MAX_BYTES = 4 * 1024 * 1024 };

static enum weir_status readers_path(const struct weir_bus_journal *journal, char path[WEIR_PATH_BYTES],
                                     struct weir_error *error)
{
	return weir_path_format(path, error, "%s/readers", journal->directory);
}

static bool name_is_good(const char *name)
{
	size_t length = strlen(name);
	return length > 0 && length <= WEIR_BUS_READER_NAME_BYTES &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == length;
}

static struct weir_bus_reader *find(struct weir_bus_journal *journal, const char *name)
{
	for (uint32_t i = 0; i < WEIR_BUS_READERS_MAX; i++)
		if (journal->readers[i].positions != NULL && strcmp(journal->readers[i].name, name) == 0)
			return &journal->readers[i];
	return NULL;
}

/* Adds a reader at the first offsets. @return NULL: there are too many */
static struct weir_bus_reader *add(struct weir_bus_journal *journal, const char *name)
{
	uint32_t place = 0;
	while (place < WEIR_BUS_READERS_MAX && journal->readers[place].positions != NULL)
		place++;
	if (place == WEIR_BUS_READERS_MAX)
		return NULL;
	struct weir_bus_reader *reader = &journal->readers[place];
	snprintf(reader->name, sizeof reader->name, "%s", name);
	reader->positions = weir_alloc(journal->partitions, sizeof *reader->positions);
	for (uint32_t i = 0; i < journal->partitions; i++)
		reader->positions[i] = weir_bus_journal_first(journal, i);
	return reader;
}

/* Reads one line of the file. @return false: it is malformed */
static bool parse_line(struct weir_bus_journal *journal, const char *line)
{
	char name[WEIR_BUS_READER_NAME_BYTES + 1];
	uint32_t partition;
	uint64_t offset;
	int used = 0;
	if (sscanf(line, "%64s %" SCNu32 " %" SCNu64 "%n", name, &partition, &offset, &used) != 3 || line[used] != '\0' ||
	    !name_is_good(name) || partition >= journal->partitions)
		return false;
	struct weir_bus_reader *reader = find(journal, name);
	if (reader == NULL)
		reader = add(journal, name);
	if (reader == NULL)
		return false;
	if (offset > reader->positions[partition])
		reader->positions[partition] = offset;
	return true;
}

static enum weir_status check_against_end(const struct weir_bus_journal *journal, const struct weir_bus_reader *reader,
                                          struct weir_error *error)
{
	for (uint32_t i = 0; i < journal->partitions; i++)
		if (reader->positions[i] > journal->next[i])
			return weir_fail(error, WEIR_INVALID,
			                 "%s: %s has read partition %u up to %" PRIu64 ", but it ends at %" PRIu64
			                 ": acknowledged messages are missing",
			                 journal->directory, reader->name, i, reader->positions[i], journal->next[i]);
	return WEIR_OK;
}

/* Whether the first line is that of a newer version. */
static bool is_newer(const char *text)
{
	unsigned known, version;
	return sscanf(first_line, "weir readers %u", &known) == 1 && sscanf(text, "weir readers %u", &version) == 1 &&
	       version > known;
}

enum weir_status weir_bus_readers_load(struct weir_bus_journal *journal, struct weir_error *error)
{
	char path[WEIR_PATH_BYTES], *text;
	size_t length;
	enum weir_status status = readers_path(journal, path, error);
	if (status == WEIR_OK)
		status = weir_durable_read(path, FILE_MAX_BYTES, &text, &length, error);
	if (status == WEIR_INVALID)
		return weir_damage_move(error, path, nothing_lost);
	if (status != WEIR_OK || text == NULL)
		return status;
	if (is_newer(text)) {
		free(text);
		return weir_fail(error, WEIR_NEWER, "%s: written by a newer version of weir", path);
	}
	bool good = strncmp(text, first_line, sizeof first_line - 1) == 0;
	char *line = good ? text + sizeof first_line - 1 : text;
	while (good && *line != '\0') {
		char *end = strchr(line, '\n');
		if (end != NULL)
			*end = '\0';
		good = end != NULL && parse_line(journal, line);
		line = end != NULL ? end + 1 : line;
	}
	if (!good) {
		status = weir_fail(error, WEIR_INVALID, "%s is damaged at byte %td", path, line - text);
		(void)weir_damage_move(error, path, nothing_lost);
	}
	free(text);
	for (uint32_t i = 0; i < WEIR_BUS_READERS_MAX && status == WEIR_OK; i++)
		if (journal->readers[i].positions != NULL)
			status = check_against_end(journal, &journal->readers[i], error);
	return status;
}

enum weir_status weir_bus_readers_save(struct weir_bus_journal *journal, struct weir_error *error)
{
	char path[WEIR_PATH_BYTES];
	struct weir_text text = {0};
	enum weir_status status = readers_path(journal, path, error);
	if (status != WEIR_OK)
		return status;
	pthread_mutex_lock(&journal->readers_file);
	weir_text_puts(&text, first_line);
	pthread_mutex_lock(&journal->lock);
	for (uint32_t i = 0; i < WEIR_BUS_READERS_MAX; i++) {
		const struct weir_bus_reader *reader = &journal->readers[i];
		for (uint32_t partition = 0; reader->positions != NULL && partition < journal->partitions; partition++)
			weir_text_printf(&text, "%s %u %" PRIu64 "\n", reader->name, partition, reader->positions[partition]);
	}
	journal->readers_unsaved = false;
	pthread_mutex_unlock(&journal->lock);
	status = weir_durable_write(path, text.at, text.length, error);
	if (status != WEIR_OK) {
		pthread_mutex_lock(&journal->lock);
		journal->readers_unsaved = true;
		pthread_mutex_unlock(&journal->lock);
	}
	pthread_mutex_unlock(&journal->readers_file);
	weir_text_deinit(&text);
	return status;
}

enum weir_status weir_bus_readers_add(struct weir_bus_journal *journal, const char *name, uint32_t *number,
                                      struct weir_error *error)
{
	if (!name_is_good(name))
		return weir_fail(error, WEIR_INVALID, "'%s' is not a valid reader name", name);
	pthread_mutex_lock(&journal->lock);
	struct weir_bus_reader *reader = find(journal, name);
	bool made = reader == NULL;
	if (made)
		reader = add(journal, name);
	if (reader != NULL)
		*number = (uint32_t)(reader - journal->readers);
	pthread_mutex_unlock(&journal->lock);
	if (reader == NULL)
		return weir_fail(error, WEIR_FULL, "%s already has %d readers", weir_topic_name(journal->options.topic),
		                 WEIR_BUS_READERS_MAX);
	return made ? weir_bus_readers_save(journal, error) : WEIR_OK;
}

enum weir_status weir_bus_readers_forget(struct weir_bus_journal *journal, const char *name, struct weir_error *error)
{
	pthread_mutex_lock(&journal->lock);
	struct weir_bus_reader *reader = find(journal, name);
	if (reader != NULL) {
		free(reader->positions);
		*reader = (struct weir_bus_reader){.positions = NULL};
		journal->readers_moved = true;
		pthread_cond_signal(&journal->work);
	}
	pthread_mutex_unlock(&journal->lock);
	return reader != NULL ? weir_bus_readers_save(journal, error) : WEIR_OK;
}

uint64_t weir_bus_readers_position(struct weir_bus_journal *journal, const char *name, uint32_t partition)
{
	pthread_mutex_lock(&journal->lock);
	const struct weir_bus_reader *reader = find(journal, name);
	uint64_t position = reader != NULL ? reader->positions[partition] : 0;
	pthread_mutex_unlock(&journal->lock);
	return position;
}

void weir_bus_readers_move(struct weir_bus_journal *journal, uint32_t number, uint32_t partition, uint64_t offset)
{
	pthread_mutex_lock(&journal->lock);
	uint64_t *position = &journal->readers[number].positions[partition];
	if (offset > *position) {
		*position = offset;
		if (!journal->readers_moved)
			pthread_cond_signal(&journal->work);
		journal->readers_moved = true;
		journal->readers_unsaved = true;
	}
	pthread_mutex_unlock(&journal->lock);
}

/* ---- trimming ---- */

/*
 * Whether no reader needs the oldest file, and the files without it are as many bytes as stay after that; or, without
 * readers, whether the files exceed the retention: not before something was written, as a log whose list of readers was
 * moved away is opened before they come.
 */
static bool oldest_may_go(const struct weir_bus_journal *journal)
{
	if (journal->segment_count < 2)
		return false;
	const uint64_t *end = journal->segments[1]->first;
	bool read_by_some = false;
	for (uint32_t i = 0; i < WEIR_BUS_READERS_MAX; i++) {
		const uint64_t *positions = journal->readers[i].positions;
		if (positions == NULL)
			continue;
		read_by_some = true;
		for (uint32_t partition = 0; partition < journal->partitions; partition++)
			if (positions[partition] < end[partition])
				return false;
	}
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < journal->segment_count; i++)
		bytes += journal->segments[i]->length;
	bool full = journal->problem[0] != '\0'; /* a disk that takes no more: what was read gives way */
	if (read_by_some)
		return full || bytes - journal->segments[0]->length >= (uint64_t)journal->options.read_bytes;
	return (journal->published || full) && bytes > (uint64_t)journal->options.retention_bytes;
}

uint32_t weir_bus_journal_trim(struct weir_bus_journal *journal)
{
	for (uint32_t gone_count = 0;; gone_count++) {
		char path[WEIR_PATH_BYTES];
		pthread_mutex_lock(&journal->lock);
		bool go = oldest_may_go(journal);
		uint64_t sequence = go ? journal->segments[0]->sequence : 0;
		pthread_mutex_unlock(&journal->lock);
		if (!go || weir_bus_segment_path(journal->directory, sequence, path, NULL) != WEIR_OK)
			return gone_count;
		/* One at a time, each removal durable before the next, so that a crash leaves no gap among the files. */
		if ((unlink(path) != 0 && errno != ENOENT) || weir_directory_sync(journal->directory, NULL) != WEIR_OK)
			return gone_count;
		pthread_mutex_lock(&journal->lock);
		struct weir_bus_segment *gone = journal->segments[0];
		journal->segment_count--;
		memmove(journal->segments, journal->segments + 1, journal->segment_count * sizeof(struct weir_bus_segment *));
		if (gone->index != NULL)
			journal->index_bytes -= gone->index->bytes;
		pthread_mutex_unlock(&journal->lock);
		weir_bus_segment_free(gone);
	}
}
