/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file is replaced by a rename, under a name that begins with a dot meanwhile: a server that includes all of a folder
 * does not find it. The backups lie in a folder of their own for the same reason.
 */
#include "deploy/weir/setup/setup_files.h"

#include "common/base/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { NEW_MODE = 0644, FOLDER_MODE = 0755, BACKUP_MODE = 0700 };

void setup_files_deinit(struct setup_files *files)
{
	for (size_t i = 0; i < files->count; i++) {
		free(files->at[i]->before);
		weir_text_deinit(&files->at[i]->after);
		free(files->at[i]);
	}
	files->count = 0;
}

enum weir_status setup_files_read(struct setup_files *files, const char *path, struct setup_file **out,
                                  struct weir_error *error)
{
	char real[PATH_MAX];
	struct stat about;
	if (realpath(path, real) == NULL && snprintf(real, sizeof real, "%s", path) >= (int)sizeof real)
		return weir_fail(error, WEIR_INVALID, "the path is too long: %s", path);
	for (size_t i = 0; i < files->count; i++)
		if (strcmp(files->at[i]->path, real) == 0) {
			*out = files->at[i];
			return WEIR_OK;
		}
	if (files->count == SETUP_FILES_MAX)
		return weir_fail(error, WEIR_INVALID, "more than %d files are included", SETUP_FILES_MAX);
	struct setup_file *file = weir_alloc(1, sizeof *file);
	files->at[files->count++] = file;
	memcpy(file->path, real, sizeof real);
	file->mode = NEW_MODE;
	file->owner = geteuid();
	file->group = getegid();
	enum weir_status status =
		weir_durable_read(real, SETUP_FILE_MOST_BYTES, &file->before, &file->before_length, error);
	if (status != WEIR_OK)
		return status;
	if (file->before != NULL && stat(real, &about) == 0) {
		file->mode = about.st_mode & 07777;
		file->owner = about.st_uid;
		file->group = about.st_gid;
	}
	file->gone = file->before == NULL;
	weir_text_append(&file->after, file->before, file->before_length);
	*out = file;
	return WEIR_OK;
}

bool setup_file_is_own(const struct setup_file *file, const char *lines)
{
	size_t bytes = strcspn(lines, "\n");
	return file->before == NULL || (file->before_length >= bytes && memcmp(file->before, lines, bytes) == 0 &&
	                                (file->before_length == bytes || file->before[bytes] == '\n'));
}

enum weir_status setup_files_own(struct setup_files *files, const char *path, const char *lines, bool gone, bool *own,
                                 struct weir_error *error)
{
	struct setup_file *file;
	enum weir_status status = setup_files_read(files, path, &file, error);
	if (status != WEIR_OK)
		return status;
	*own = setup_file_is_own(file, lines);
	if (!*own)
		return gone ? WEIR_OK
		            : weir_fail(error, WEIR_INVALID,
		                        "%s is not of weir setup, which would replace it: give it another name first", path);
	setup_file_set(file, lines);
	file->gone = gone;
	return WEIR_OK;
}

bool setup_file_changes(const struct setup_file *file)
{
	if (file->gone || file->before == NULL)
		return file->gone ? file->before != NULL : true;
	return file->after.length != file->before_length ||
	       (file->before_length > 0 && memcmp(file->after.at, file->before, file->before_length) != 0);
}

bool setup_files_change(const struct setup_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		if (setup_file_changes(files->at[i]))
			return true;
	return false;
}

void setup_file_insert(struct setup_file *file, size_t at, const char *text)
{
	size_t bytes = strlen(text);
	weir_text_reserve(&file->after, bytes);
	memmove(file->after.at + at + bytes, file->after.at + at, file->after.length - at);
	memcpy(file->after.at + at, text, bytes);
	file->after.length += bytes;
}

void setup_file_set(struct setup_file *file, const char *text)
{
	weir_text_clear(&file->after);
	weir_text_puts(&file->after, text);
}

void setup_file_strip(struct setup_file *file, enum setup_mark place, const char *mark)
{
	struct weir_text *text = &file->after;
	size_t bytes = strlen(mark), from = 0;
	while (text->length - from >= bytes && text->length > 0) {
		const char *found = memmem(text->at + from, text->length - from, mark, bytes);
		if (found == NULL)
			return;
		size_t end = (size_t)(found - text->at) + bytes, start = end - bytes;
		while (start > 0 && text->at[start] != '\n')
			start--;
		from = end;
		size_t first = start + (text->at[start] == '\n');
		while (text->at[first] == ' ' || text->at[first] == '\t')
			first++;
		if (place == SETUP_LINE_BEGINS ? first + bytes != end
		                               : text->at[first] == '#' || (end < text->length && text->at[end] != '\n'))
			continue;
		memmove(text->at + start, text->at + end, text->length - end);
		text->length -= end - start;
		from = start;
	}
}

/* ---- writing ---- */

enum weir_status setup_files_make_folders(const char *path, struct weir_error *error)
{
	char part[PATH_MAX];
	for (const char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		struct stat above;
		snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
		if (mkdir(part, FOLDER_MODE) != 0) {
			if (errno != EEXIST)
				return weir_fail(error, WEIR_IO, "cannot create directory %s: %s", part, weir_errno_words(errno));
			continue;
		}
		int folder = open(part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		bool good = folder >= 0 && fchmod(folder, FOLDER_MODE) == 0 && fstatat(folder, "..", &above, 0) == 0 &&
		            (geteuid() != 0 || fchown(folder, above.st_uid, above.st_gid) == 0);
		int reason = errno;
		if (folder >= 0)
			close(folder);
		if (!good)
			return weir_fail(error, WEIR_IO, "cannot set up directory %s: %s", part, weir_errno_words(reason));
	}
	return WEIR_OK;
}

static bool fill(int fd, const struct setup_file *file, const char *bytes, size_t length)
{
	size_t written;
	return weir_write_all(fd, bytes, length, &written) == 0 &&
	       ((file->owner == geteuid() && file->group == getegid()) || fchown(fd, file->owner, file->group) == 0) &&
	       fchmod(fd, file->mode) == 0 && fsync(fd) == 0;
}

static enum weir_status replace(const struct setup_file *file, const char *bytes, size_t length,
                                struct weir_error *error)
{
	char directory[WEIR_PATH_BYTES], temporary[WEIR_PATH_BYTES];
	const char *slash = strrchr(file->path, '/');
	enum weir_status status = weir_directory_of(file->path, directory, error);
	if (status == WEIR_OK)
		status =
			weir_path_format(temporary, error, "%s/.%s.weir-setup", directory, slash != NULL ? slash + 1 : file->path);
	if (status != WEIR_OK)
		return status;
	unlink(temporary);
	int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return weir_fail(error, WEIR_IO, "cannot create %s: %s", temporary, weir_errno_words(errno));
	bool good = fill(fd, file, bytes, length);
	if (!good)
		status = weir_fail(error, WEIR_IO, "cannot write %s: %s", temporary, weir_errno_words(errno));
	close(fd);
	if (status == WEIR_OK && rename(temporary, file->path) != 0)
		status =
			weir_fail(error, WEIR_IO, "cannot rename %s to %s: %s", temporary, file->path, weir_errno_words(errno));
	if (status != WEIR_OK)
		unlink(temporary);
	return status == WEIR_OK ? weir_directory_sync(directory, error) : status;
}

/* "%etc%nginx%nginx.conf.20261126T020000Z": which file it was, and when; "-2" is the second one of that second. */
static enum weir_status back_up(const struct setup_file *file, const char *backup, struct weir_error *error)
{
	struct setup_file copy = {.mode = file->mode, .owner = file->owner, .group = file->group};
	char name[WEIR_PATH_BYTES], moment[32];
	time_t now = time(NULL);
	struct tm parts;
	gmtime_r(&now, &parts);
	strftime(moment, sizeof moment, "%Y%m%dT%H%M%SZ", &parts);
	snprintf(name, sizeof name, "%s", file->path);
	for (char *slash = name; (slash = strchr(slash, '/')) != NULL;)
		*slash = '%';
	enum weir_status status = weir_path_format(copy.path, error, "%s/%s.%s", backup, name, moment);
	for (unsigned i = 2; status == WEIR_OK && access(copy.path, F_OK) == 0; i++)
		status = weir_path_format(copy.path, error, "%s/%s.%s-%u", backup, name, moment, i);
	return status == WEIR_OK ? replace(&copy, file->before, file->before_length, error) : status;
}

static enum weir_status write_one(struct setup_file *file, const char *backup, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	if (file->before != NULL)
		status = back_up(file, backup, error);
	else
		status = setup_files_make_folders(file->path, error);
	if (status != WEIR_OK)
		return status;
	file->written = true;
	if (!file->gone)
		return replace(file, file->after.at, file->after.length, error);
	return unlink(file->path) == 0
	           ? WEIR_OK
	           : weir_fail(error, WEIR_IO, "cannot remove %s: %s", file->path, weir_errno_words(errno));
}

/* What others name comes before them, and goes after them: a reload between two of the steps finds what it needs. */
enum turn { NEW, CHANGED, GONE };

static enum turn turn_of(const struct setup_file *file)
{
	return file->gone ? GONE : file->before == NULL ? NEW : CHANGED;
}

enum weir_status setup_files_write(struct setup_files *files, const char *backup, struct weir_error *error)
{
	char folder[WEIR_PATH_BYTES];
	enum weir_status status = weir_path_format(folder, error, "%s/", backup);
	bool there = access(backup, F_OK) == 0;
	if (status == WEIR_OK)
		status = setup_files_make_folders(folder, error);
	if (status == WEIR_OK && !there && chmod(backup, BACKUP_MODE) != 0)
		status = weir_fail(error, WEIR_IO, "cannot set the mode of %s: %s", backup, weir_errno_words(errno));
	for (enum turn turn = NEW; turn <= GONE; turn++)
		for (size_t i = 0; status == WEIR_OK && i < files->count; i++)
			if (setup_file_changes(files->at[i]) && turn_of(files->at[i]) == turn)
				status = write_one(files->at[i], backup, error);
	return status;
}

enum weir_status setup_files_undo(struct setup_files *files, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	for (size_t i = files->count; i-- > 0;) {
		struct setup_file *file = files->at[i];
		struct weir_error one;
		enum weir_status done = WEIR_OK;
		if (!file->written)
			continue;
		if (file->before != NULL)
			done = replace(file, file->before, file->before_length, &one);
		else if (unlink(file->path) != 0 && errno != ENOENT)
			done = weir_fail(&one, WEIR_IO, "cannot remove %s: %s", file->path, weir_errno_words(errno));
		if (done != WEIR_OK && status == WEIR_OK) {
			status = done;
			*error = one;
		}
	}
	return status;
}
