/* SPDX-License-Identifier: Apache-2.0 */
/* The folder is opened first, and all else is done within it by the list's name. */
#include "deploy/weir/setup/setup_list.h"

#include "deploy/weir/setup/setup_files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIST_MODE = 0644 };

/* Where it lies; a folder that is a link is none, as weir's user may have made it. */
static int open_folder(const char *path, const char **name)
{
	char directory[WEIR_PATH_BYTES];
	struct weir_error ignored;
	const char *slash = strrchr(path, '/');
	*name = slash != NULL ? slash + 1 : path;
	if (weir_directory_of(path, directory, &ignored) != WEIR_OK)
		return -1;
	return open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

bool setup_list_is_there(const char *path)
{
	struct stat about;
	const char *name;
	int folder = open_folder(path, &name);
	bool there = folder >= 0 && fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) == 0;
	if (folder >= 0)
		close(folder);
	return there;
}

static bool make_in(int folder, const char *name)
{
	struct stat above;
	int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, LIST_MODE);
	if (fd < 0)
		return errno == EEXIST;
	bool good = fstat(folder, &above) == 0 && fchmod(fd, LIST_MODE) == 0 &&
	            (geteuid() != 0 || fchown(fd, above.st_uid, above.st_gid) == 0);
	int reason = errno;
	close(fd);
	if (!good)
		unlinkat(folder, name, 0);
	errno = reason;
	return good;
}

enum weir_status setup_list_make(const char *path, struct weir_error *error)
{
	const char *name;
	enum weir_status status = setup_files_make_folders(path, error);
	if (status != WEIR_OK)
		return status;
	int folder = open_folder(path, &name);
	if (folder < 0)
		return weir_fail(error, WEIR_IO, "cannot open the folder of %s, which must not be a link: %s", path,
		                 weir_errno_words(errno));
	if (!make_in(folder, name))
		status = weir_fail(error, WEIR_IO, "cannot create %s: %s", path, weir_errno_words(errno));
	close(folder);
	return status;
}

enum weir_status setup_list_remove(const char *path, struct weir_error *error)
{
	const char *name;
	enum weir_status status = WEIR_OK;
	int folder = open_folder(path, &name);
	if (folder < 0)
		return WEIR_OK;
	if (unlinkat(folder, name, 0) != 0 && errno != ENOENT)
		status = weir_fail(error, WEIR_IO, "cannot remove %s: %s", path, weir_errno_words(errno));
	close(folder);
	return status;
}
