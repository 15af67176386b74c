/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rotation by renaming, from the oldest file down, so that a crash between two
 * renames leaves a gap in the numbers and never two files of one name. A gap is
 * filled by the next rotation.
 */
#include "common/files/line_file_names.h"

#include "common/files/durable_file.h"
#include "common/files/file_owner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* PATH for 0, PATH.<number> for others. */
static enum weir_status name_of(const char *path, uint32_t number, char name[WEIR_PATH_BYTES], struct weir_error *error)
{
	if (number == 0)
		return weir_path_format(name, error, "%s", path);
	return weir_path_format(name, error, "%s.%u", path, number);
}

static enum weir_status sync_names(const char *path, struct weir_error *error)
{
	char directory[WEIR_PATH_BYTES];
	enum weir_status status = weir_directory_of(path, directory, error);
	return status == WEIR_OK ? weir_directory_sync(directory, error) : status;
}

bool weir_line_names_identify(int fd, const char *path, struct weir_line_file_mark *mark)
{
	struct statx about;
	*mark = (struct weir_line_file_mark){0};
	if (statx(fd, path, AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &about) != 0 || !S_ISREG(about.stx_mode))
		return false;
	mark->device = (uint64_t)makedev(about.stx_dev_major, about.stx_dev_minor);
	mark->inode = about.stx_ino;
	mark->length = about.stx_size;
	if (about.stx_mask & STATX_BTIME)
		mark->born_ns = (uint64_t)about.stx_btime.tv_sec * 1000000000 + about.stx_btime.tv_nsec;
	return true;
}

static bool is_marked(const char *path, const struct weir_line_file_mark *mark)
{
	struct weir_line_file_mark seen;
	if (!weir_line_names_identify(AT_FDCWD, path, &seen) || seen.inode != mark->inode)
		return false;
	return seen.born_ns != 0 && mark->born_ns != 0 ? seen.born_ns == mark->born_ns : seen.device == mark->device;
}

static enum weir_status rename_to(const char *from, const char *to, struct weir_error *error)
{
	if (rename(from, to) != 0 && errno != ENOENT)
		return weir_fail(error, WEIR_IO, "cannot rename %s to %s: %s", from, to, weir_errno_words(errno));
	return WEIR_OK;
}

enum weir_status weir_line_names_rotate(const char *path, uint32_t keep, const struct weir_line_file_mark *protect,
                                        struct weir_error *error)
{
	char from[WEIR_PATH_BYTES], to[WEIR_PATH_BYTES];
	struct stat about;
	enum weir_status status = WEIR_OK;
	if (stat(path, &about) != 0 && errno == ENOENT)
		return WEIR_OK; /* somebody moved it, or a try before this one, which came no further */

	/* The files that stand without a gap move up; the first free number, or `keep`, takes the last of them. */
	uint32_t last = 1;
	for (; last < keep; last++) {
		status = name_of(path, last, from, error);
		if (status != WEIR_OK)
			return status;
		if (stat(from, &about) != 0)
			break;
	}
	status = name_of(path, last, to, error);
	if (status != WEIR_OK)
		return status;
	if (is_marked(to, protect))
		return weir_fail(error, WEIR_FULL, "%s is not rotated yet: %s is needed until the next checkpoint", path, to);
	for (uint32_t number = last; number > 0; number--) {
		status = name_of(path, number - 1, from, error);
		if (status == WEIR_OK)
			status = rename_to(from, to, error);
		if (status != WEIR_OK)
			return status;
		memcpy(to, from, sizeof to);
	}
	return sync_names(path, error);
}

/* Whether a line ends at the mark; else these are other lines than those that it was set behind. */
static bool ends_line(int fd, uint64_t length)
{
	char last;
	return length == 0 || (pread(fd, &last, 1, (off_t)length - 1) == 1 && last == '\n');
}

static enum weir_status cut(const char *name, const struct weir_line_file_mark *mark, struct weir_error *error)
{
	int fd = open(name, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return weir_file_refused(error, "cannot open", name);
	enum weir_status status = WEIR_OK;
	struct stat about;
	if (fstat(fd, &about) != 0)
		status = weir_fail(error, WEIR_IO, "cannot stat %s: %s", name, weir_errno_words(errno));
	else if ((uint64_t)about.st_size < mark->length)
		status = weir_fail(error, WEIR_END, "%s has %lld bytes, but %llu were written when the state was saved", name,
		                   (long long)about.st_size, (unsigned long long)mark->length);
	else if (!ends_line(fd, mark->length))
		status = weir_fail(error, WEIR_END, "%s was cut and written again since the state was saved", name);
	else if (ftruncate(fd, (off_t)mark->length) != 0 || fsync(fd) != 0)
		status = weir_fail(error, WEIR_IO, "cannot truncate %s: %s", name, weir_errno_words(errno));
	close(fd);
	return status;
}

/*
 * Whether a name in the directory may be the path's file under a date or a number: it begins as the path's does, up to
 * its ending. Where births are not told an inode is no proof, as a removed file's is given to the next one made.
 */
static bool is_kin(const char *name, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *own = slash != NULL ? slash + 1 : path;
	const char *ending = strrchr(own, '.');
	size_t stem = ending != NULL && ending != own ? (size_t)(ending - own) : strlen(own);
	return strncmp(name, own, stem) == 0;
}

/* Looks through the directory for the marked file under another name. */
static bool find_elsewhere(const char *path, const struct weir_line_file_mark *mark, char found[WEIR_PATH_BYTES])
{
	char directory[WEIR_PATH_BYTES];
	if (weir_directory_of(path, directory, NULL) != WEIR_OK)
		return false;
	DIR *listing = opendir(directory);
	if (listing == NULL)
		return false;
	bool seen = false;
	for (struct dirent *entry; !seen && (entry = readdir(listing)) != NULL;)
		seen = is_kin(entry->d_name, path) &&
		       weir_path_format(found, NULL, "%s/%s", directory, entry->d_name) == WEIR_OK && is_marked(found, mark);
	closedir(listing);
	return seen;
}

/* Moves the numbered files down to 1, where the numbers before them are free. */
static enum weir_status close_gap(const char *path, uint32_t keep, struct weir_error *error)
{
	char from[WEIR_PATH_BYTES], to[WEIR_PATH_BYTES];
	struct stat about;
	uint32_t first = 0;
	for (uint32_t number = 1; number <= keep; number++) {
		enum weir_status status = name_of(path, number, from, error);
		if (status != WEIR_OK)
			return status;
		if (stat(from, &about) != 0)
			continue;
		if (first == 0)
			first = number;
		status = name_of(path, number - first + 1, to, error);
		if (status == WEIR_OK && first > 1)
			status = rename_to(from, to, error);
		if (status != WEIR_OK)
			return status;
	}
	return sync_names(path, error);
}

/*
 * PATH.<number> is PATH again. The files younger than it go first, so that a crash on the way leaves either the marked
 * file where it was or a gap behind it, and the next resume ends the work.
 */
static enum weir_status undo_rotations(const char *path, uint32_t number, struct weir_error *error)
{
	char name[WEIR_PATH_BYTES];
	for (uint32_t younger = 1; younger < number; younger++) {
		enum weir_status status = name_of(path, younger, name, error);
		if (status != WEIR_OK)
			return status;
		if (unlink(name) != 0 && errno != ENOENT)
			return weir_fail(error, WEIR_IO, "cannot remove %s: %s", name, weir_errno_words(errno));
	}
	enum weir_status status = name_of(path, number, name, error);
	return status == WEIR_OK ? rename_to(name, path, error) : status;
}

enum weir_status weir_line_names_restore(const char *path, uint32_t keep, const struct weir_line_file_mark *mark,
                                         struct weir_error *error)
{
	char name[WEIR_PATH_BYTES];
	struct stat about;
	for (uint32_t number = 0; number <= keep; number++) {
		enum weir_status status = name_of(path, number, name, error);
		if (status != WEIR_OK)
			return status;
		if (!is_marked(name, mark))
			continue;
		status = cut(name, mark, error);
		if (status == WEIR_OK && number > 0)
			status = undo_rotations(path, number, error);
		return status == WEIR_OK ? close_gap(path, keep, error) : status;
	}
	bool empty = stat(path, &about) != 0 || (S_ISREG(about.st_mode) && about.st_size == 0);
	if (!empty)
		return weir_fail(error, WEIR_INVALID, "%s is not the output file that the saved state belongs to", path);
	if (find_elsewhere(path, mark, name))
		return cut(name, mark, error);
	if (mark->length > 0)
		return weir_fail(error, WEIR_END,
		                 "neither %s nor a file next to it is the output file that the saved state belongs to", path);
	return WEIR_OK; /* nothing was written before the mark, so nothing is missing */
}
