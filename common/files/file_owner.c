/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The owner of a directory may put links into it, by which root must not be led to give away a file: the directory is held
 * open, its own owner is asked for, and only what is made there itself, by no link, changes hands.
 */
#include "common/files/file_owner.h"

#include "common/base/shell.h"
#include "common/files/durable_file.h"
#include "common/files/file_damage.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	ENTRY_BYTES = 4096, /* of the user table */
	OWNERS = S_IRUSR | S_IWUSR,
	MODE_BITS = 07777,
};

/* Where a path's last name is in; an O_PATH descriptor. *name is in the path. */
static int open_folder(const char *path, const char **name, struct stat *about)
{
	char directory[WEIR_PATH_BYTES];
	const char *slash = strrchr(path, '/');
	*name = slash != NULL ? slash + 1 : path;
	if (weir_directory_of(path, directory, NULL) != WEIR_OK) {
		errno = ENAMETOOLONG;
		return -1;
	}
	int folder = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (folder >= 0 && fstat(folder, about) == 0)
		return folder;
	int reason = errno;
	if (folder >= 0)
		close(folder);
	errno = reason;
	return -1;
}

/* Best effort: a file system that has no owners, or lets root change none, has nothing to hand on. */
static void hand_on(int fd, const struct stat *folder)
{
	if (folder->st_uid != 0 && fchown(fd, folder->st_uid, folder->st_gid) != 0)
		errno = 0;
}

int weir_file_make(const char *path, int flags, mode_t mode)
{
	struct stat about;
	const char *name;
	if (geteuid() != 0)
		return open(path, flags | O_CREAT | O_CLOEXEC, mode);
	int folder = open_folder(path, &name, &about);
	if (folder < 0)
		return -1;
	int fd = openat(folder, name, flags | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	int reason = errno;
	if (fd >= 0)
		hand_on(fd, &about);
	close(folder);
	errno = reason;
	if (fd >= 0 || reason != EEXIST || (flags & O_EXCL) != 0)
		return fd;
	return open(path, flags | O_CREAT | O_CLOEXEC, mode);
}

int weir_directory_make_one(const char *path, mode_t mode)
{
	struct stat about;
	const char *name;
	if (mkdir(path, mode) != 0)
		return -1;
	int folder = geteuid() == 0 ? open_folder(path, &name, &about) : -1;
	int made = folder >= 0 ? openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
	if (made >= 0) {
		hand_on(made, &about);
		close(made);
	}
	if (folder >= 0)
		close(folder);
	return 0;
}

/* ---- what is not allowed ---- */

void weir_user_name(uid_t user, char name[WEIR_USER_NAME_BYTES])
{
	char bytes[ENTRY_BYTES];
	struct passwd entry, *found = NULL;
	if (getpwuid_r(user, &entry, bytes, sizeof bytes, &found) == 0 && found != NULL)
		snprintf(name, WEIR_USER_NAME_BYTES, "%s", found->pw_name);
	else
		snprintf(name, WEIR_USER_NAME_BYTES, "%u", (unsigned)user);
}

enum weir_status weir_file_refused(struct weir_error *error, const char *what, const char *path)
{
	int reason = errno;
	char directory[WEIR_PATH_BYTES], owner[WEIR_USER_NAME_BYTES], self[WEIR_USER_NAME_BYTES];
	struct stat folder, file;
	if (reason != EACCES || weir_directory_of(path, directory, NULL) != WEIR_OK || stat(directory, &folder) != 0)
		return weir_fail(error, WEIR_IO, "%s %s: %s", what, path, weir_errno_words(reason));
	bool there = stat(path, &file) == 0, ours = folder.st_uid == geteuid();
	uid_t of = there ? file.st_uid : folder.st_uid;
	if (of == geteuid() && there && (file.st_mode & OWNERS) != OWNERS) {
		enum weir_status status = weir_fail(error, WEIR_IO, "%s %s: %s: its owner may not read and write it", what,
		                                    path, weir_errno_words(reason));
		(void)weir_damage_remedy(error, "chmod u+rw %s (runbook: process-down)", weir_shell_word(path).text);
		return status;
	}
	if (of == geteuid())
		return weir_fail(error, WEIR_IO, "%s %s: %s", what, path, weir_errno_words(reason));
	weir_user_name(of, owner);
	weir_user_name(geteuid(), self);
	return weir_fail(error, WEIR_IO, "%s %s: %s: %s belongs to %s, and this process runs as %s: %s%s%schown -R %s %s",
	                 what, path, weir_errno_words(reason), there ? "it" : directory, owner, self,
	                 ours ? "" : "run it as ", ours ? "" : owner, ours ? "" : ", or ", self,
	                 weir_shell_word(directory).text);
}

static void group_name(gid_t group, char name[WEIR_USER_NAME_BYTES])
{
	char bytes[ENTRY_BYTES];
	struct group entry, *found = NULL;
	if (getgrgid_r(group, &entry, bytes, sizeof bytes, &found) == 0 && found != NULL)
		snprintf(name, WEIR_USER_NAME_BYTES, "%s", found->gr_name);
	else
		snprintf(name, WEIR_USER_NAME_BYTES, "%u", (unsigned)group);
}

/* What is closed: the file, or the directory under whose names this process may not look. @return false: not known */
static bool find_closed(const char *path, char closed[WEIR_PATH_BYTES], struct stat *about)
{
	struct weir_error ignored;
	if (weir_path_format(closed, &ignored, "%s", path) != WEIR_OK)
		return false;
	while (stat(closed, about) != 0) {
		char below[WEIR_PATH_BYTES];
		memcpy(below, closed, sizeof below);
		if (errno != EACCES || weir_directory_of(below, closed, NULL) != WEIR_OK || strcmp(below, closed) == 0)
			return false;
	}
	return true;
}

enum weir_status weir_file_unreadable(struct weir_error *error, const char *path)
{
	int reason = errno;
	char closed[WEIR_PATH_BYTES], owner[WEIR_USER_NAME_BYTES], group[WEIR_USER_NAME_BYTES], self[WEIR_USER_NAME_BYTES];
	char remedy[WEIR_USER_NAME_BYTES * 3];
	struct stat about;
	if (reason != EACCES || !find_closed(path, closed, &about))
		return weir_fail(error, WEIR_IO, "cannot open %s: %s", path, weir_errno_words(reason));
	bool directory = S_ISDIR(about.st_mode);
	mode_t needed = directory ? S_IXGRP : S_IRGRP;
	weir_user_name(about.st_uid, owner);
	group_name(about.st_gid, group);
	weir_user_name(geteuid(), self);
	/* Group 0 may read far more than a log. */
	if (about.st_uid == geteuid())
		snprintf(remedy, sizeof remedy, "chmod u+r%s", directory ? "x" : "");
	else if ((about.st_mode & needed) != 0 && about.st_gid != 0)
		snprintf(remedy, sizeof remedy, "usermod -aG %s %s, and start it again", group, self);
	else
		snprintf(remedy, sizeof remedy, "let a group read it that %s is in (chgrp, chmod g+r%s)", self,
		         directory ? "x" : "");
	return weir_fail(error, WEIR_IO,
	                 "cannot open %s: %s: %s belongs to %s, group %s, mode %04o, and this process runs as %s: %s", path,
	                 weir_errno_words(reason), directory ? closed : "it", owner, group,
	                 (unsigned)(about.st_mode & MODE_BITS), self, remedy);
}
