/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers are those of an id, and several files may have the same ones: whose entry it was is for the caller to see. */
#include "collector/source/journal/journal_lines.h"

#include "collector/source/journal/internal.h"
#include "common/base/alloc.h"
#include "common/bytes/hex.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

struct journal_lines {
	struct journal_files files;
};

struct journal_lines *journal_lines_new(const struct weir_json *source)
{
	struct weir_json directory = weir_json_member(source, "directory");
	struct journal_lines *lines = weir_alloc(1, sizeof *lines);
	journal_files_init(&lines->files, json_string_value(directory.value));
	(void)journal_files_scan(&lines->files);
	return lines;
}

void journal_lines_free(struct journal_lines *lines)
{
	journal_files_deinit(&lines->files);
	free(lines);
}

static bool has_id(const char *stream, const uint8_t id[JOURNAL_ID_BYTES])
{
	char digits[2 * JOURNAL_ID_BYTES + 1];
	*weir_hex_put(digits, id, JOURNAL_ID_BYTES) = '\0';
	return strstr(stream, digits) != NULL;
}

static bool read_from(const struct journal_listed *listed, uint64_t seqnum, size_t line_max, struct weir_text *line)
{
	static const struct journal_filter every = {.count = 0};
	struct journal_file *file;
	struct journal_entry entry;
	struct weir_error error;
	int fd = open(listed->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	bool found = false;
	if (fd < 0)
		return false;
	if (journal_file_open(fd, &every, listed->header.id, seqnum - 1, &file, &error) == WEIR_OK) {
		found = journal_file_next(file, &entry, &error) == WEIR_OK && entry.seqnum == seqnum;
		weir_text_clear(line);
		if (found)
			(void)journal_file_text(file, &entry, line_max, line);
		journal_file_close(file);
	}
	close(fd);
	return found;
}

bool journal_lines_read(const struct journal_lines *lines, const char *stream, uint64_t position, size_t line_max,
                        struct weir_text *line, const char **path)
{
	if (position <= JOURNAL_POSITION_BASE)
		return false;
	uint64_t seqnum = position - JOURNAL_POSITION_BASE;
	for (size_t i = 0; i < lines->files.count; i++) {
		const struct journal_listed *listed = &lines->files.list[i];
		*path = listed->path;
		if (listed->header.head <= seqnum && (seqnum <= listed->header.tail || !listed->header.archived) &&
		    has_id(stream, listed->header.id) && read_from(listed, seqnum, line_max, line))
			return true;
	}
	return false;
}
