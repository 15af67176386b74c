/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libsystemd's reader on a single file.
 *
 * The library silently removes a file that it finds damaged from its list. That shows in the space that the list's
 * files use: it is then 0, as the list is empty.
 */
#include "collector/source/journal/journal_file.h"

#include "collector/source/journal/journal_files.h"
#include "common/base/alloc.h"
#include "common/bytes/hex.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef WEIR_JOURNAL

#include <errno.h>
#include <fcntl.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

enum { FIELD_USUAL_BYTES = 4096 }; /* a longer one may take half of an entry's room, so that the message has the rest */

struct journal_file {
	sd_journal *journal;
};

bool journal_built_in(void)
{
	return true;
}

static enum weir_status add_matches(sd_journal *journal, const struct journal_filter *filter)
{
	int result = 0;
	for (size_t i = 0; result >= 0 && i < filter->count; i++)
		result = sd_journal_add_match(journal, filter->matches[i], 0);
	return result >= 0 ? WEIR_OK : WEIR_INVALID;
}

static int seek(sd_journal *journal, const uint8_t *id, uint64_t after)
{
	char digits[2 * JOURNAL_ID_BYTES + 1], cursor[64];
	if (after == 0)
		return sd_journal_seek_head(journal);
	*weir_hex_put(digits, id, JOURNAL_ID_BYTES) = '\0';
	snprintf(cursor, sizeof cursor, "s=%s;i=%llx", digits, (unsigned long long)after + 1);
	return sd_journal_seek_cursor(journal, cursor);
}

enum weir_status journal_file_open(int fd, const struct journal_filter *filter, const uint8_t *id, uint64_t after,
                                   struct journal_file **file, struct weir_error *error)
{
	sd_journal *journal;
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0); /* the library owns it, once it has opened the file */
	if (own < 0)
		return weir_fail(error, WEIR_IO, "cannot open it: %s", weir_errno_words(errno));
	int result = sd_journal_open_files_fd(&journal, &own, 1, 0);
	if (result < 0) {
		close(own);
		return weir_fail(error, result == -EBADMSG || result == -ENODATA ? WEIR_INVALID : WEIR_IO,
		                 "cannot read it as a journal: %s", weir_errno_words(-result));
	}
	enum weir_status status = add_matches(journal, filter);
	if (status == WEIR_OK)
		result = seek(journal, id, after);
	if (status != WEIR_OK || result < 0) {
		sd_journal_close(journal);
		return weir_fail(error, WEIR_INVALID, "cannot search the journal: %s", weir_errno_words(-result));
	}
	(void)sd_journal_set_data_threshold(journal, 0); /* whole fields, so that what is too long is noticed, not cut */
	*file = weir_alloc(1, sizeof **file);
	(*file)->journal = journal;
	return WEIR_OK;
}

void journal_file_close(struct journal_file *file)
{
	if (file == NULL)
		return;
	sd_journal_close(file->journal);
	free(file);
}

/* The sequence number, from the cursor "s=…;i=1f;…". */
static bool read_seqnum(sd_journal *journal, uint64_t *seqnum)
{
	char *cursor = NULL;
	if (sd_journal_get_cursor(journal, &cursor) < 0)
		return false;
	const char *number = strstr(cursor, ";i=");
	*seqnum = number != NULL ? strtoull(number + 3, NULL, 16) : 0;
	free(cursor);
	return *seqnum > 0;
}

enum weir_status journal_file_next(struct journal_file *file, struct journal_entry *entry, struct weir_error *error)
{
	uint64_t realtime_us, used_bytes = 1;
	int result = sd_journal_next(file->journal);
	if (result > 0 && read_seqnum(file->journal, &entry->seqnum) &&
	    sd_journal_get_realtime_usec(file->journal, &realtime_us) >= 0) {
		entry->realtime_us = (int64_t)realtime_us;
		return WEIR_OK;
	}
	if (result == 0 && (sd_journal_get_usage(file->journal, &used_bytes) < 0 || used_bytes > 0))
		return WEIR_AGAIN;
	return weir_fail(error, WEIR_INVALID, "is damaged%s%s", result < 0 ? ": " : "",
	                 result < 0 ? weir_errno_words(-result) : "");
}

uint64_t journal_file_text(struct journal_file *file, const struct journal_entry *entry, size_t most,
                           struct weir_text *text)
{
	const void *data;
	size_t length, begin = text->length;
	uint64_t left_out = 0;
	weir_text_printf(text, "{\"__REALTIME_TIMESTAMP\":\"%lld\"", (long long)entry->realtime_us);
	SD_JOURNAL_FOREACH_DATA(file->journal, data, length)
	{
		const char *field = data, *equals = memchr(field, '=', length);
		if (equals == NULL)
			continue;
		size_t name = (size_t)(equals - field), value = length - name - 1;
		bool message = name == 7 && memcmp(field, "MESSAGE", 7) == 0;
		if (!message && value > FIELD_USUAL_BYTES && value + (text->length - begin) > most / 2)
			continue;
		size_t taken = value < most ? value : most, before = text->length;
		weir_text_append(text, ",", 1);
		weir_text_json_bytes(text, (struct weir_span){.at = field, .length = (uint32_t)name});
		weir_text_append(text, ":", 1);
		weir_text_json_bytes(text, (struct weir_span){.at = equals + 1, .length = (uint32_t)taken});
		/* Escaped, it may be six times as long. */
		if (!message && text->length - before > FIELD_USUAL_BYTES && text->length - begin > most / 2)
			text->length = before;
		else
			left_out += value - taken;
	}
	weir_text_append(text, "}", 1);
	return left_out;
}

#else

bool journal_built_in(void)
{
	return false;
}

enum weir_status journal_file_open(int fd, const struct journal_filter *filter, const uint8_t *id, uint64_t after,
                                   struct journal_file **file, struct weir_error *error)
{
	(void)fd, (void)filter, (void)id, (void)after, (void)file;
	return weir_fail(error, WEIR_INVALID, "this program was built without libsystemd");
}

void journal_file_close(struct journal_file *file)
{
	(void)file;
}

enum weir_status journal_file_next(struct journal_file *file, struct journal_entry *entry, struct weir_error *error)
{
	(void)file, (void)entry;
	return weir_fail(error, WEIR_INVALID, "this program was built without libsystemd");
}

uint64_t journal_file_text(struct journal_file *file, const struct journal_entry *entry, size_t most,
                           struct weir_text *text)
{
	(void)file, (void)entry, (void)most, (void)text;
	return 0;
}

#endif
