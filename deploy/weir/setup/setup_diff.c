/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A difference of two texts, line by line, as diff -u shows one. What changes are lines put in or taken out here and
 * there, so the nearest place where both agree again is looked for; a difference it is wherever that is.
 */
#include "common/base/alloc.h"
#include "common/base/words.h"
#include "deploy/weir/setup/setup_files.h"

#include <stdlib.h>

enum { CONTEXT = 3 };

struct lines {
	struct weir_span *at; /* owned; without their ends */
	size_t count;
};

struct change {
	char kind; /* ' ' '-' '+' */
	struct weir_span line;
};

static struct lines split(const char *text, size_t length)
{
	struct lines lines = {.at = weir_alloc(length + 1, sizeof *lines.at)};
	for (size_t start = 0; start < length;) {
		const char *end = memchr(text + start, '\n', length - start);
		size_t bytes = end != NULL ? (size_t)(end - text) - start : length - start;
		lines.at[lines.count++] = (struct weir_span){.at = text + start, .length = (uint32_t)bytes};
		start += bytes + 1;
	}
	return lines;
}

/* How far behind `from` a line stands; SIZE_MAX: nowhere. */
static size_t distance(const struct lines *lines, size_t from, struct weir_span line)
{
	for (size_t i = from; i < lines->count; i++)
		if (weir_span_equal(lines->at[i], line))
			return i - from;
	return SIZE_MAX;
}

static size_t compare(const struct lines *old, const struct lines *new, struct change *changes)
{
	size_t i = 0, j = 0, count = 0;
	while (i < old->count || j < new->count) {
		if (i < old->count && j < new->count &&weir_span_equal(old->at[i], new->at[j])) {
			changes[count++] = (struct change){' ', old->at[i++]};
			j++;
			continue;
		}
		size_t added = i < old->count ? distance(new, j, old->at[i]) : new->count - j;
		size_t removed = j < new->count ? distance(old, i, new->at[j]) : old->count - i;
		bool add = i == old->count || (j < new->count &&added != SIZE_MAX &&added <= removed);
		changes[count++] = add ? (struct change){'+', new->at[j++]} : (struct change){'-', old->at[i++]};
	}
	return count;
}

static void put(FILE *out, const struct change *change)
{
	char *words = weir_copy(change->line.at, change->line.length);
	for (char *at = words; *at != '\0'; at++)
		memset(at, ' ', *at == '\t' ? 0 : weir_control_bytes(at, strlen(at)));
	fprintf(out, "%c%s\n", change->kind, words);
	free(words);
}

/* Changes that lie near one another are one part; before and behind each stand some lines that are as they were. */
static void put_parts(FILE *out, const struct change *changes, size_t count)
{
	size_t line = 1;
	for (size_t i = 0; i < count;) {
		size_t next = i, end;
		while (next < count && changes[next].kind == ' ')
			next++;
		if (next == count)
			return;
		size_t start = next - i > CONTEXT ? next - CONTEXT : i;
		line += start - i;
		for (end = next; end < count; end++) {
			size_t same = 0;
			while (end + same < count && same <= 2 * (size_t)CONTEXT && changes[end + same].kind == ' ')
				same++;
			if (same > 2 * (size_t)CONTEXT || end + same == count) {
				end += same < CONTEXT ? same : CONTEXT;
				break;
			}
		}
		fprintf(out, "@@ line %zu @@\n", line);
		for (i = start; i < end; i++) {
			put(out, &changes[i]);
			line += changes[i].kind != '-';
		}
	}
}

static void show_one(const struct setup_file *file, FILE *out)
{
	size_t length = file->gone ? 0 : file->after.length;
	struct lines old = split(file->before, file->before_length), new = split(file->after.at, length);
	struct change *changes = weir_alloc(old.count + new.count + 1, sizeof *changes);
	fprintf(out, "--- %s\n", file->before != NULL ? file->path : "/dev/null");
	fprintf(out, "+++ %s%s\n", file->gone ? "/dev/null" : file->path,
	        !file->gone && length == 0 ? " (an empty file)" : "");
	put_parts(out, changes, compare(&old, &new, changes));
	free(changes);
	free(old.at);
	free(new.at);
}

void setup_files_show(const struct setup_files *files, FILE *out)
{
	for (size_t i = 0; i < files->count; i++)
		if (setup_file_changes(files->at[i]))
			show_one(files->at[i], out);
}
