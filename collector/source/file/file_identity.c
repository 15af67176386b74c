/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Telling files by what they are: which of the known ones lies at a path.
 *
 * Device and inode together with the first bytes make a file known. Where they
 * do not, it may still hold a known file's lines: compressed (gzip makes a new
 * inode), or copied by logrotate's copytruncate. Then the bytes must agree
 * further on too, since many logs begin with the same banner.
 */
#include "collector/source/file/file_identity.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How far a copy is compared with what is remembered, when only its being one is asked. */
enum { COPY_COMPARED_BYTES = 1 << 20, OPEN_FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY };

/* ---- names ---- */

const char *file_identity_base(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash != NULL ? slash + 1 : path;
}

/* Numbers and dates: "1", "20240131", "2024-01-31T12:00", "old". */
static bool is_rotation(const char *text, size_t length)
{
	if (length == 0 || strchr(".-_", text[0]) == NULL)
		return false;
	text++;
	length--;
	if (length == 3 && memcmp(text, "old", 3) == 0)
		return true;
	bool digit = false;
	for (size_t i = 0; i < length; i++) {
		if (strchr("0123456789.-_:T", text[i]) == NULL)
			return false;
		digit = digit || (text[i] >= '0' && text[i] <= '9');
	}
	return digit;
}

enum file_rotated file_identity_rotated(const char *base, const char *name)
{
	static const char *const packed[] = {".gz", ".zst"};
	size_t length = strlen(name), base_length = strlen(base);
	for (size_t i = 0; i < 2; i++) {
		size_t ending = strlen(packed[i]);
		if (length > ending && memcmp(name + length - ending, packed[i], ending) == 0) {
			length -= ending;
			if (length == base_length && memcmp(name, base, length) == 0)
				return FILE_ROTATED;
			break;
		}
	}
	if (length <= base_length)
		return FILE_ROTATED_NOT;
	if (memcmp(name, base, base_length) == 0)
		return is_rotation(name + base_length, length - base_length) ? FILE_ROTATED : FILE_ROTATED_NOT;
	const char *dot = strrchr(base, '.');
	if (dot == NULL || dot == base)
		return FILE_ROTATED_NOT;
	size_t stem = (size_t)(dot - base), ending = base_length - stem;
	bool maybe = memcmp(name, base, stem) == 0 && memcmp(name + length - ending, dot, ending) == 0 &&
	             is_rotation(name + stem, length - base_length);
	return maybe ? FILE_ROTATED_MAYBE : FILE_ROTATED_NOT;
}

/* ---- a file that is there ---- */

int64_t file_identity_modified_ns(const struct stat *about)
{
	return (int64_t)about->st_mtim.tv_sec * 1000000000 + about->st_mtim.tv_nsec;
}

bool file_identity_has_inode(const struct source_memory_file *file, const struct stat *about)
{
	return file->inode == about->st_ino && file->device == about->st_dev;
}

enum file_opening file_identity_open_fd(int fd, const char *path, bool growing, struct file_beginning *beginning,
                                        struct weir_error *error)
{
	*beginning = (struct file_beginning){.input = NULL};
	if (fstat(fd, &beginning->about) != 0 || !S_ISREG(beginning->about.st_mode)) {
		weir_fail(error, WEIR_IO, "%s is not a regular file", path);
		close(fd);
		return FILE_OPENING_FAILED;
	}
	struct input *input = input_new(fd, growing);
	/* Damaged or cut data has as much of a beginning as can be read. */
	if (input_read_full(input, beginning->head, sizeof beginning->head, &beginning->length, error) == WEIR_IO) {
		weir_error_prefix(error, "%s", path);
		input_free(input);
		return FILE_OPENING_FAILED;
	}
	fingerprint_head(&beginning->fingerprint, beginning->head, beginning->length);
	beginning->input = input;
	return FILE_OPENING_DONE;
}

enum file_opening file_identity_open(const char *path, bool growing, struct file_beginning *beginning,
                                     struct weir_error *error)
{
	int fd = open(path, OPEN_FLAGS);
	if (fd >= 0)
		return file_identity_open_fd(fd, path, growing, beginning, error);
	int reason = errno;
	weir_fail(error, WEIR_IO, "cannot open %s: %s", path, strerror(reason));
	return reason == ENOENT || reason == ENOTDIR ? FILE_OPENING_ABSENT : FILE_OPENING_FAILED;
}

/* ---- whose it is ---- */

/* The file itself, if it lies where it was last seen, with the content that it had; NULL if not. */
static struct input *open_live(const struct source_memory_file *file)
{
	struct file_beginning live;
	if (file->where == NULL || file_identity_open(file->where, true, &live, NULL) != FILE_OPENING_DONE)
		return NULL;
	if (file_identity_has_inode(file, &live.about) &&
	    fingerprint_begins(&file->fingerprint, &live.fingerprint, live.head))
		return live.input;
	input_free(live.input);
	return NULL;
}

/* How many bytes a file is known to have; 0: that is not known. */
static uint64_t known_bytes(const struct source_memory_file *file)
{
	uint64_t known = file->taken != SOURCE_OFFSET_END && file->taken > file->size ? file->taken : file->size;
	/* What has no full head has no more than that. */
	return known == 0 && file->fingerprint.head_bytes < FINGERPRINT_HEAD_BYTES ? file->fingerprint.head_bytes : known;
}

/*
 * Whether a file only begins like a known one: that had been read to its end, and this one has more. Many logs begin
 * with the same banner or header, and a quiet day's has nothing else.
 */
static bool has_more_than(const struct file_beginning *beginning, const struct source_memory_file *file)
{
	uint64_t known = known_bytes(file);
	uint64_t least = input_compressed(beginning->input) ? beginning->length : (uint64_t)beginning->about.st_size;
	return file->state != SOURCE_FILE_READING && known > 0 && least > known;
}

/* Whether what is at a path holds the lines of a known file that has another inode. */
static bool is_copy(const struct source_memory_stream *stream, const struct source_memory_file *file, const char *path,
                    struct file_beginning *beginning)
{
	if (file->fingerprint.head_bytes == 0 || file_identity_has_inode(file, &beginning->about) ||
	    !fingerprint_begins(&file->fingerprint, &beginning->fingerprint, beginning->head) ||
	    has_more_than(beginning, file))
		return false;
	if (!input_compressed(beginning->input) && strcmp(path, stream->path) != 0 &&
	    !file_identity_rotated(file_identity_base(stream->path), file_identity_base(path)))
		return false;
	struct input *live = open_live(file);
	bool copy;
	if (live != NULL) {
		/* A copy cannot have more than what it was made from, where that can be seen. */
		copy =
			fingerprint_within(beginning->input, live) &&
			(input_compressed(beginning->input) || input_compressed(live) ||
		     input_ahead(beginning->input) + input_offset(beginning->input) <= input_ahead(live) + input_offset(live));
		input_free(live);
		return copy;
	}
	if (file->taken == 0)
		return false; /* nothing of it was read: nothing can come twice */
	uint64_t upto = file->taken < COPY_COMPARED_BYTES ? file->taken : COPY_COMPARED_BYTES;
	/* A shorter one has nothing that was not read: it is still being made. */
	enum fingerprint_match match = fingerprint_check(&file->fingerprint, beginning->input, upto, NULL);
	return match == FINGERPRINT_SAME || match == FINGERPRINT_SHORTER;
}

static bool look_up(const struct source_memory *memory, const char *path, struct file_beginning *beginning,
                    struct file_judgement *judgement)
{
	for (int copies = 0; copies < 2; copies++)
		for (size_t i = 0; i < memory->stream_count; i++)
			for (size_t j = 0; j < memory->streams[i]->file_count; j++) {
				struct source_memory_file *file = memory->streams[i]->files[j];
				if (copies ? !is_copy(memory->streams[i], file, path, beginning)
				           : !file_identity_has_inode(file, &beginning->about) ||
				                 !fingerprint_begins(&file->fingerprint, &beginning->fingerprint, beginning->head))
					continue;
				judgement->verdict = copies ? FILE_COPY : FILE_KNOWN;
				judgement->stream = memory->streams[i];
				judgement->file = file;
				return true;
			}
	return false;
}

void file_identity_judge(const struct file_settings *settings, const struct source_memory *memory, const char *path,
                         struct file_judgement *judgement, struct weir_error *error)
{
	struct file_beginning beginning;
	*judgement = (struct file_judgement){.verdict = FILE_UNREADABLE};
	enum file_opening opening = file_identity_open(path, settings->follow, &beginning, error);
	if (opening != FILE_OPENING_DONE) {
		judgement->verdict = opening == FILE_OPENING_ABSENT ? FILE_ABSENT : FILE_UNREADABLE;
		return;
	}
	judgement->about = beginning.about;
	judgement->kind = input_kind(beginning.input);
	judgement->fingerprint = beginning.fingerprint;
	if (!look_up(memory, path, &beginning, judgement))
		judgement->verdict = FILE_NEW;
	else
		judgement->file->seen_s = weir_wall_ms() / 1000;
	input_free(beginning.input);
}

bool file_judgement_compressed(const struct file_judgement *judgement)
{
	return judgement->kind == INPUT_GZIP || judgement->kind == INPUT_ZSTD;
}

bool file_judgement_ready(const struct file_judgement *judgement, const struct file_settings *settings)
{
	if (!settings->follow)
		return true;
	if (judgement->about.st_size == 0 || judgement->kind == INPUT_UNKNOWN)
		return false;
	int64_t age_ms = weir_wall_ms() - file_identity_modified_ns(&judgement->about) / 1000000;
	return judgement->kind == INPUT_PLAIN || age_ms >= settings->timing.complete || age_ms < 0;
}

void file_candidate_init(struct file_candidate *candidate, const char *path, const struct file_judgement *judgement)
{
	const struct stat *about = &judgement->about;
	*candidate = (struct file_candidate){.path = weir_copy(path, strlen(path)),
	                                     .device = about->st_dev,
	                                     .inode = about->st_ino,
	                                     .size = (uint64_t)about->st_size,
	                                     .modified_ns = file_identity_modified_ns(about),
	                                     .compressed = file_judgement_compressed(judgement),
	                                     .ready = true,
	                                     .fingerprint = judgement->fingerprint};
}

void file_candidate_deinit(struct file_candidate *candidate)
{
	free(candidate->path);
	candidate->path = NULL;
}

void file_candidate_remember(const struct file_candidate *candidate, struct source_memory_file *file)
{
	file->device = candidate->device;
	file->inode = candidate->inode;
	file->size = candidate->compressed ? 0 : candidate->size;
	file->modified_ns = candidate->modified_ns;
	file->fingerprint = candidate->fingerprint;
	file->seen_s = weir_wall_ms() / 1000;
	file->where = weir_copy(candidate->path, strlen(candidate->path));
}
