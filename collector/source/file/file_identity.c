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
#include "common/files/file_owner.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How far a copy is compared with what is remembered, when only its being one is asked. */
enum { COPY_COMPARED_BYTES = 1 << 20, OPEN_FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, LINKS_MOST = 40 };

/* ---- names ---- */

const char *file_identity_base(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash != NULL ? slash + 1 : path;
}

char *file_identity_real(const char *path)
{
	char place[PATH_MAX];
	char *real = realpath(path, NULL);
	size_t length = 0;
	if (real != NULL && path[0] != '/' && getcwd(place, sizeof place) != NULL) {
		length = strlen(place);
		length += length > 1; /* its slash */
		while (strncmp(path, "./", 2) == 0)
			path += 2;
		if (strncmp(real, place, length - 1) != 0 || strlen(real) < length)
			length = 0;
	}
	if (real == NULL || strcmp(real + length, path) != 0)
		return real;
	free(real);
	return NULL;
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

static const char *const packed[] = {".gz", ".zst", ".bz2", ".xz"};

enum { PACKED_COUNT = sizeof packed / sizeof packed[0] };

/* A name's length without the ending that a packer gives it. */
static size_t unpacked(const char *name)
{
	size_t length = strlen(name);
	for (size_t i = 0; i < PACKED_COUNT; i++) {
		size_t ending = strlen(packed[i]);
		if (length > ending && memcmp(name + length - ending, packed[i], ending) == 0)
			return length - ending;
	}
	return length;
}

/* What a rotation added to base, in a name: "-2" in "x-2.log". */
struct addition {
	enum file_rotated rotated;
	const char *at;
	size_t length;
};

static struct addition addition_of(const char *base, const char *name)
{
	const struct addition none = {FILE_ROTATED_NOT, NULL, 0};
	size_t length = unpacked(name), base_length = strlen(base);
	if (length == base_length && name[length] != '\0' && memcmp(name, base, length) == 0)
		return (struct addition){FILE_ROTATED, name + length, 0};
	if (length <= base_length)
		return none;
	if (memcmp(name, base, base_length) == 0)
		return is_rotation(name + base_length, length - base_length)
		           ? (struct addition){FILE_ROTATED, name + base_length, length - base_length}
		           : none;
	size_t stem = file_identity_stem(base), ending = base_length - stem;
	bool maybe = ending > 0 && memcmp(name, base, stem) == 0 &&
	             memcmp(name + length - ending, base + stem, ending) == 0 &&
	             is_rotation(name + stem, length - base_length);
	return maybe ? (struct addition){FILE_ROTATED_MAYBE, name + stem, length - base_length} : none;
}

enum file_rotated file_identity_rotated(const char *base, const char *name)
{
	return addition_of(base, name).rotated;
}

size_t file_identity_stem(const char *base)
{
	const char *dot = strrchr(base, '.');
	return dot == NULL || dot == base ? strlen(base) : (size_t)(dot - base);
}

/* A row of numbers, "" being 0: -1 where it is none. */
static long number_of(const struct addition *addition)
{
	if (addition->length == 0 || addition->length > 6)
		return addition->length == 0 ? 0 : -1;
	long number = 0;
	for (size_t i = 1; i < addition->length; i++) {
		if (addition->at[i] < '0' || addition->at[i] > '9')
			return -1;
		number = 10 * number + (addition->at[i] - '0');
	}
	return number;
}

bool file_identity_follows(const char *base, const char *known, const char *name)
{
	struct addition before = addition_of(base, known), after = addition_of(base, name);
	if (before.rotated == FILE_ROTATED_NOT || after.rotated != before.rotated)
		return false;
	long place_before = number_of(&before), place_after = number_of(&after);
	if (place_before >= 0 && place_after >= 0)
		return place_after < place_before && place_after > 0;
	/* dates: of one form, and later */
	if (before.length != after.length || before.length == 0)
		return false;
	for (size_t i = 0; i < before.length; i++) {
		bool digit = before.at[i] >= '0' && before.at[i] <= '9';
		if (digit ? after.at[i] < '0' || after.at[i] > '9' : after.at[i] != before.at[i])
			return false;
	}
	return memcmp(after.at, before.at, before.length) > 0;
}

void *file_identity_each_base(const char *path, void *(*call)(void *context, const char *base), void *context)
{
	const char *name = file_identity_base(path);
	size_t directory = (size_t)(name - path), length = unpacked(name);
	const char *dot = memrchr(name, '.', length);
	char base[PATH_MAX];
	if (directory + length >= sizeof base)
		return NULL;
	memcpy(base, path, directory + length);
	base[directory + length] = '\0';
	void *found = name[length] != '\0' ? call(context, base) : NULL;
	for (size_t i = length; found == NULL && i-- > 1;) {
		if (strchr(".-_", name[i]) == NULL)
			continue;
		base[directory + i] = '\0';
		if (file_identity_rotated(base + directory, name) == FILE_ROTATED)
			found = call(context, base);
		if (found != NULL || dot == NULL || name + i >= dot)
			continue;
		size_t ending = length - (size_t)(dot - name);
		memcpy(base + directory + i, dot, ending);
		base[directory + i + ending] = '\0';
		if (file_identity_rotated(base + directory, name) == FILE_ROTATED_MAYBE)
			found = call(context, base);
		memcpy(base + directory + i, name + i, length - i);
	}
	return found;
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

bool file_identity_may_be(const struct source_memory_file *file, const char *path)
{
	const struct source_memory_stream *stream = file->stream;
	return file->fingerprint.head_bytes > 0 || file->beside || file->open || stream == NULL ||
	       strcmp(path, stream->path) == 0 ||
	       file_identity_rotated(file_identity_base(stream->path), file_identity_base(path)) != FILE_ROTATED_NOT;
}

/* What is no regular file, in words that say what to do. */
static void refuse(const char *path, const struct stat *about, struct weir_error *error)
{
	const char *what = "is a device: give a file";
	if (S_ISDIR(about->st_mode))
		what = "is a directory: give its files, as \"DIRECTORY/*.log\"";
	else if (S_ISFIFO(about->st_mode))
		what = "is a pipe (FIFO): read it as standard input, with a source of type \"stdin\" or as \"-\"";
	else if (S_ISSOCK(about->st_mode))
		what = "is a socket: a source of type \"syslog\" listens";
	weir_fail(error, WEIR_IO, "%s is not a regular file: it %s", path, what);
}

size_t file_identity_head(const char *head, size_t length)
{
	while (length > 0 && head[length - 1] == '\0')
		length--;
	return length;
}

enum file_opening file_identity_open_fd(int fd, const char *path, bool growing, struct file_beginning *beginning,
                                        struct weir_error *error)
{
	*beginning = (struct file_beginning){.input = NULL};
	int stated = fstat(fd, &beginning->about);
	if (stated != 0 || !S_ISREG(beginning->about.st_mode)) {
		if (stated != 0)
			weir_fail(error, WEIR_IO, "cannot stat %s: %s", path, weir_errno_words(errno));
		else
			refuse(path, &beginning->about, error);
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
	beginning->cut = input_cut(input);
	beginning->length = file_identity_head(beginning->head, beginning->length);
	fingerprint_head(&beginning->fingerprint, beginning->head, beginning->length);
	beginning->input = input;
	return FILE_OPENING_DONE;
}

/* A link to standard output leads to whatever the reader has there, and never to what the writer wrote. */
static bool leads_to_own_output(const char *path)
{
	char at[PATH_MAX], target[PATH_MAX];
	if (strlen(path) >= sizeof at)
		return false;
	memcpy(at, path, strlen(path) + 1);
	for (int i = 0; i < LINKS_MOST; i++) {
		if (strncmp(at, "/dev/std", 8) == 0 || strncmp(at, "/dev/fd/", 8) == 0 ||
		    strncmp(at, "/proc/self/fd/", 14) == 0)
			return i > 0 || strncmp(at, "/dev/stdout", 11) == 0 || strncmp(at, "/dev/stderr", 11) == 0;
		ssize_t length = readlink(at, target, sizeof target - 1);
		if (length <= 0)
			return false;
		target[length] = '\0';
		size_t directory = target[0] == '/' ? 0 : (size_t)(file_identity_base(at) - at);
		if (directory + (size_t)length >= sizeof at)
			return false;
		memcpy(at + directory, target, (size_t)length + 1);
	}
	return false;
}

enum file_opening file_identity_open(const char *path, bool growing, struct file_beginning *beginning,
                                     struct weir_error *error)
{
	struct stat about;
	if (lstat(path, &about) == 0 && S_ISLNK(about.st_mode) && leads_to_own_output(path)) {
		weir_fail(
			error, WEIR_IO,
			"%s is a link to a standard stream, which leads each process to its own: let the server write to a file",
			path);
		return FILE_OPENING_FAILED;
	}
	int fd = open(path, OPEN_FLAGS);
	if (fd >= 0)
		return file_identity_open_fd(fd, path, growing, beginning, error);
	int reason = errno;
	/* A log that is followed may be made later; what is read once is not there, though its name is. */
	if (reason == ENOENT && !growing && lstat(path, &about) == 0 && S_ISLNK(about.st_mode)) {
		weir_fail(error, WEIR_IO, "cannot open %s: it is a link to a file that is not there", path);
		return FILE_OPENING_FAILED;
	}
	errno = reason;
	(void)weir_file_unreadable(error, path);
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

/*
 * Whether what is at a path holds the lines of a known file that has another inode. Of a plain file that is asked where
 * its name says so. Nothing was read of either where both were named from the start: then both are read.
 */
static bool is_copy(const struct source_memory_file *file, struct file_beginning *beginning)
{
	bool plain = !input_compressed(beginning->input);
	if (file->fingerprint.head_bytes == 0 || file_identity_has_inode(file, &beginning->about) ||
	    (plain && file->taken == 0) ||
	    !fingerprint_begins(&file->fingerprint, &beginning->fingerprint, beginning->head) ||
	    has_more_than(beginning, file))
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

/* What is looked up: whose file it is, among what the memory knows. */
struct lookup {
	const struct source_memory *memory;
	struct file_beginning *beginning;
};

static struct source_memory_file *known_file(const struct lookup *lookup, const char *path)
{
	const struct file_beginning *beginning = lookup->beginning;
	struct source_memory_file *file =
		source_memory_file_with(lookup->memory, beginning->about.st_dev, beginning->about.st_ino);
	while (file != NULL && (!fingerprint_begins(&file->fingerprint, &beginning->fingerprint, beginning->head) ||
	                        !file_identity_may_be(file, path)))
		file = source_memory_file_next(file);
	return file;
}

bool file_beginning_short(const struct file_beginning *beginning, const struct source_memory_file *file)
{
	return beginning->cut && file->taken > 0 && file->taken != SOURCE_OFFSET_END &&
	       beginning->length < file->fingerprint.head_bytes;
}

/* Whether a compressed file may be a known one that was cut, or is being written anew: by its inode, or its place. */
static bool holds_less(const struct lookup *lookup, const struct source_memory_stream *record)
{
	struct file_beginning *beginning = lookup->beginning;
	const struct source_memory_file *file =
		source_memory_file_with(lookup->memory, beginning->about.st_dev, beginning->about.st_ino);
	if (!input_compressed(beginning->input))
		return false;
	for (; file != NULL; file = source_memory_file_next(file))
		if (file_beginning_short(beginning, file) ||
		    (beginning->length < file->fingerprint.head_bytes && file->taken != SOURCE_OFFSET_END &&
		     fingerprint_check(&file->fingerprint, beginning->input, file->taken, NULL) == FINGERPRINT_SHORTER))
			return true;
	for (size_t i = 0; record != NULL && i < record->file_count; i++)
		if (file_beginning_short(beginning, record->files[i]))
			return true;
	return false;
}

static struct source_memory_file *copied_from(const struct lookup *lookup, const struct source_memory_stream *stream)
{
	for (size_t i = 0; stream != NULL && i < stream->file_count; i++)
		if (is_copy(stream->files[i], lookup->beginning))
			return stream->files[i];
	return NULL;
}

static void *copied_from_path(void *context, const char *base)
{
	const struct lookup *lookup = context;
	return copied_from(lookup, source_memory_find(lookup->memory, base));
}

/* Whether a packed file, of which nothing was read, has all lines of a plain one, which is read once as it is. */
static bool holds_all(const struct source_memory_file *file, struct file_beginning *beginning)
{
	if (file->taken != 0 || file->fingerprint.head_bytes == 0 ||
	    !fingerprint_begins(&file->fingerprint, &beginning->fingerprint, beginning->head))
		return false;
	struct input *live = open_live(file);
	if (live == NULL)
		return false;
	bool all = input_compressed(live) && fingerprint_within(beginning->input, live) &&
	           input_seek(live, (uint64_t)beginning->about.st_size, NULL) == WEIR_OK;
	input_free(live);
	return all;
}

/* The packed file beside a plain one, under its name, that has all its lines. */
static struct source_memory_file *packed_already(const struct lookup *lookup, const char *path)
{
	char name[PATH_MAX];
	for (size_t i = 0; i < PACKED_COUNT; i++) {
		int length = snprintf(name, sizeof name, "%s%s", path, packed[i]);
		const struct source_memory_stream *stream =
			length > 0 && length < PATH_MAX ? source_memory_find(lookup->memory, name) : NULL;
		for (size_t k = 0; stream != NULL && k < stream->file_count; k++)
			if (holds_all(stream->files[k], lookup->beginning))
				return stream->files[k];
	}
	return NULL;
}

/* A packed file may be a copy of any; a plain one of those that its name says, or of the stream that asks. */
static struct source_memory_file *copied_file(struct lookup *lookup, const char *path,
                                              const struct source_memory_stream *record)
{
	struct source_memory_file *file = copied_from(lookup, record);
	if (file == NULL)
		file = copied_from_path(lookup, path);
	if (file == NULL)
		file = file_identity_each_base(path, copied_from_path, lookup);
	for (size_t i = 0; file == NULL && input_compressed(lookup->beginning->input) && i < lookup->memory->stream_count;
	     i++)
		file = copied_from(lookup, lookup->memory->streams[i]);
	return file;
}

void file_identity_judge(const struct file_settings *settings, const struct source_memory *memory, const char *path,
                         const struct source_memory_stream *record, struct file_judgement *judgement,
                         struct weir_error *error)
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
	struct lookup lookup = {memory, &beginning};
	judgement->verdict = FILE_NEW;
	judgement->file = known_file(&lookup, path);
	if (judgement->file != NULL) {
		judgement->verdict = FILE_KNOWN;
	} else if (holds_less(&lookup, record)) {
		judgement->verdict = FILE_UNREADABLE;
		weir_fail(error, WEIR_IO, "%s holds less than was read of it", path);
	} else if (beginning.length > 0) {
		judgement->file = copied_file(&lookup, path, record);
		if (judgement->file == NULL && !settings->follow && !input_compressed(beginning.input))
			judgement->file = packed_already(&lookup, path);
		judgement->verdict = judgement->file != NULL ? FILE_COPY : FILE_NEW;
	}
	if (judgement->file != NULL) {
		judgement->stream = judgement->file->stream;
		judgement->file->seen_s = weir_wall_ms() / 1000;
	}
	input_free(beginning.input);
}

bool file_judgement_compressed(const struct file_judgement *judgement)
{
	return judgement->kind != INPUT_PLAIN && judgement->kind != INPUT_UNKNOWN;
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

void file_candidate_remember(const struct file_candidate *candidate, struct source_memory *memory,
                             struct source_memory_file *file)
{
	source_memory_file_place(memory, file, candidate->device, candidate->inode);
	file->size = candidate->compressed ? 0 : candidate->size;
	file->modified_ns = candidate->modified_ns;
	file->fingerprint = candidate->fingerprint;
	file->seen_s = weir_wall_ms() / 1000;
	file->where = weir_copy(candidate->path, strlen(candidate->path));
}
