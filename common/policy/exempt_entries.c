/* SPDX-License-Identifier: Apache-2.0 */
/* Files are read through a buffer, as a list may be larger than one likes to hold twice. */
#include "common/policy/exempt_entries.h"

#include "common/base/alloc.h"
#include "common/json/json.h"

#include <errno.h>
#include <fcntl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER_BYTES = 256 << 10 };

static void state_of(const struct stat *about, struct weir_exempt_file_state *state)
{
	state->device = about->st_dev;
	state->inode = about->st_ino;
	state->bytes = about->st_size;
	state->modified_ns = (int64_t)about->st_mtim.tv_sec * 1000000000 + about->st_mtim.tv_nsec;
	state->changed_ns = (int64_t)about->st_ctim.tv_sec * 1000000000 + about->st_ctim.tv_nsec;
}

bool weir_exempt_file_look(const char *path, struct weir_exempt_file_state *state)
{
	struct stat about;
	if (stat(path, &about) != 0)
		return false;
	state_of(&about, state);
	return true;
}

bool weir_exempt_file_same(const struct weir_exempt_file_state *a, const struct weir_exempt_file_state *b)
{
	return a->device == b->device && a->inode == b->inode && a->bytes == b->bytes && a->modified_ns == b->modified_ns &&
	       a->changed_ns == b->changed_ns;
}

enum weir_status weir_exempt_entry(const char *text, const struct weir_exempt_taker *taker, struct weir_error *error)
{
	struct weir_network networks[WEIR_RANGE_NETWORKS_MAX];
	struct weir_span word = weir_span_of(text);
	const char *why = "";
	if (word.length == 0)
		return weir_fail(error, WEIR_INVALID, "must not be empty");
	uint32_t count = weir_networks_parse(word, networks, &why);
	for (uint32_t i = 0; i < count; i++)
		taker->network(taker->context, &networks[i]);
	if (count > 0)
		return WEIR_OK;
	enum weir_status status = weir_network_check(text, why, error);
	if (status == WEIR_OK)
		taker->word(taker->context, word);
	return status;
}

static bool is_plain(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (text[i] == '\0' || (unsigned char)text[i] >= 0x80)
			return false;
	return true;
}

/* Whether JSON, as which the policy travels, can hold it. */
static bool is_text(const char *text, size_t length)
{
	if (is_plain(text, length))
		return true;
	json_t *string = memchr(text, '\0', length) == NULL ? json_stringn(text, length) : NULL;
	json_decref(string);
	return string != NULL;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* The first of these marks with a blank before it, from `at` on; end: there is none. */
static char *find_mark(char *at, char *end, const char *marks)
{
	while (at < end && !(is_blank(at[-1]) && strchr(marks, *at) != NULL && *at != '\0'))
		at++;
	return at;
}

/*
 * Where an entry ends that has a remark behind it: " # …" or " ; …" behind a network, as public lists have. A word may hold
 * these, as "user #1" and the names of browsers do: behind one, a remark has a '#' with a blank on either side.
 */
static char *remark_of(char *line, char *end)
{
	struct weir_network networks[WEIR_RANGE_NETWORKS_MAX];
	const char *why;
	char *mark = find_mark(line + 1, end, "#;");
	if (mark >= end)
		return end;
	struct weir_span entry = {.at = line, .length = (uint32_t)(mark - line)};
	while (is_blank(entry.at[entry.length - 1]))
		entry.length--;
	if (weir_networks_parse(entry, networks, &why) > 0)
		return line + entry.length;
	for (mark = find_mark(mark, end, "#"); mark < end - 1 && !is_blank(mark[1]);)
		mark = find_mark(mark + 1, end, "#");
	while (mark < end && is_blank(mark[-1]))
		mark--;
	return mark;
}

/* One line, behind which a byte may be written. */
static enum weir_status take_line(char *line, char *end, const struct weir_exempt_taker *taker, uint32_t *count,
                                  struct weir_error *error)
{
	while (end > line && memchr(" \t\r", end[-1], 3) != NULL)
		end--;
	while (line < end && (*line == ' ' || *line == '\t'))
		line++;
	if (line == end || *line == '#' || *line == ';')
		return WEIR_OK;
	end = remark_of(line, end);
	if (!is_text(line, (size_t)(end - line)))
		return weir_fail(error, WEIR_INVALID, "is not UTF-8 text");
	if (*count == WEIR_EXEMPT_FILE_ENTRIES_MAX)
		return weir_fail(error, WEIR_INVALID, "at most %d entries are allowed", WEIR_EXEMPT_FILE_ENTRIES_MAX);
	if (++*count > taker->most)
		return WEIR_OK;
	*end = '\0';
	return weir_exempt_entry(line, taker, error);
}

/* What is left of a file, by whole lines. */
struct list_reader {
	int file;
	const char *path;
	uint64_t line; /* the number of the next one */
	char *buffer;  /* BUFFER_BYTES, and one more */
	size_t held;
};

/* Takes the whole lines of the buffer, and at the file's end what follows them. */
static enum weir_status take_lines(struct list_reader *reader, bool at_end, const struct weir_exempt_taker *taker,
                                   uint32_t *count, struct weir_error *error)
{
	char *at = reader->buffer, *end = reader->buffer + reader->held;
	while (at < end && *count <= taker->most) {
		char *newline = memchr(at, '\n', (size_t)(end - at)), *line_end = newline != NULL ? newline : end;
		struct weir_error wrong = {0};
		enum weir_status status = WEIR_OK;
		if (line_end - at > WEIR_EXEMPT_LINE_MAX_BYTES)
			status = weir_fail(&wrong, WEIR_INVALID, "is longer than %d bytes", WEIR_EXEMPT_LINE_MAX_BYTES);
		else if (newline == NULL && !at_end)
			break;
		else
			status = take_line(at, line_end, taker, count, &wrong);
		if (status != WEIR_OK)
			return weir_fail(error, status, "%.250s:%llu: %s", reader->path, (unsigned long long)reader->line,
			                 wrong.text);
		reader->line++;
		at = newline != NULL ? newline + 1 : end;
	}
	reader->held = (size_t)(end - at);
	memmove(reader->buffer, at, reader->held);
	return WEIR_OK;
}

/* A byte order mark. */
static void skip_mark(struct list_reader *reader)
{
	if (memcmp(reader->buffer, "\xef\xbb\xbf", 3) == 0)
		memmove(reader->buffer, reader->buffer + 3, reader->held -= 3);
}

static enum weir_status read_list(struct list_reader *reader, const struct weir_exempt_taker *taker, uint32_t *count,
                                  struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	bool begun = false;
	for (bool at_end = false; status == WEIR_OK && !at_end && *count <= taker->most;) {
		ssize_t got = read(reader->file, reader->buffer + reader->held, BUFFER_BYTES - reader->held);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return weir_fail(error, WEIR_IO, "cannot read %s: %s", reader->path, weir_errno_words(errno));
		reader->held += (size_t)got;
		at_end = got == 0;
		if (!begun && reader->held >= 3) {
			begun = true;
			skip_mark(reader);
		}
		status = take_lines(reader, at_end, taker, count, error);
	}
	return status;
}

enum weir_status weir_exempt_file_read(const char *path, const struct weir_exempt_taker *taker,
                                       struct weir_exempt_file_state *state, uint32_t *count, struct weir_error *error)
{
	struct stat about;
	struct list_reader reader = {.file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), .path = path, .line = 1};
	*count = 0;
	if (reader.file < 0)
		return weir_fail(error, WEIR_IO, "cannot open %s: %s", path, weir_errno_words(errno));
	enum weir_status status = WEIR_OK;
	if (fstat(reader.file, &about) != 0) {
		status = weir_fail(error, WEIR_IO, "cannot read %s: %s", path, weir_errno_words(errno));
	} else if (!S_ISREG(about.st_mode)) {
		status = weir_fail(error, WEIR_INVALID, "%s is not a regular file", path);
	} else {
		state_of(&about, state);
		reader.buffer = weir_alloc(BUFFER_BYTES + 1, 1);
		status = read_list(&reader, taker, count, error);
		free(reader.buffer);
	}
	close(reader.file);
	return status;
}
