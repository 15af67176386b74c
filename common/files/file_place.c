/* SPDX-License-Identifier: Apache-2.0 */
/* A file need not be there when its configuration is read, nor its folder: what there is of them is resolved by the system. */
#include "common/files/file_place.h"

#include "common/base/alloc.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINKS_MOST = 40 }; /* as the system follows */

/* Takes the last part off a path, which has no slash at its end. @return it; "": there is no other one */
static const char *cut_last(char *path)
{
	char *slash = strrchr(path, '/');
	if (slash == NULL)
		return "";
	*slash = '\0';
	return slash + 1;
}

static void cut_slashes(char *path)
{
	size_t length = strlen(path);
	while (length > 1 && path[length - 1] == '/')
		path[--length] = '\0';
}

/* Appends a part behind what is there. */
static void put_part(struct weir_text *text, size_t start, const char *part)
{
	if (part[0] == '\0' || strcmp(part, ".") == 0)
		return;
	if (strcmp(part, "..") == 0) {
		const char *slash = memrchr(text->at + start, '/', text->length - start);
		text->length = slash != NULL ? (size_t)(slash - text->at) : start;
		return;
	}
	weir_text_printf(text, "/%s", part);
}

static void put(struct weir_text *text, size_t start, char *path, int links);

/* Of a link to nothing: the place that it leads to, where the file would be made. Apart, as put() is on the stack often. */
static __attribute__((noinline)) bool put_target(struct weir_text *text, size_t start, char *path, int links)
{
	char target[PATH_MAX];
	ssize_t length = links < LINKS_MOST ? readlink(path, target, sizeof target - 1) : -1;
	if (length <= 0)
		return false;
	target[length] = '\0';
	struct weir_text whole = {0};
	const char *slash = strrchr(path, '/');
	if (target[0] != '/' && slash != NULL)
		weir_text_append(&whole, path, (size_t)(slash - path) + 1);
	weir_text_append(&whole, target, (size_t)length + 1);
	put(text, start, whole.at, links + 1);
	weir_text_deinit(&whole);
	return true;
}

static void put(struct weir_text *text, size_t start, char *path, int links)
{
	cut_slashes(path);
	char *whole = realpath(path[0] != '\0' ? path : "/", NULL);
	if (whole != NULL) {
		weir_text_puts(text, strcmp(whole, "/") == 0 ? "" : whole);
		free(whole);
		return;
	}
	if (put_target(text, start, path, links))
		return;
	if (strchr(path, '/') == NULL) {
		whole = realpath(".", NULL);
		weir_text_puts(text, whole != NULL ? whole : ".");
		free(whole);
		put_part(text, start, path);
		return;
	}
	const char *last = cut_last(path);
	put(text, start, path, links);
	put_part(text, start, last);
}

void weir_file_place_put(struct weir_text *text, const char *path)
{
	char *copy = weir_copy(path, strlen(path));
	put(text, text->length, copy, 0);
	free(copy);
}

int weir_file_descriptor_of(const char *path)
{
	static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
	if (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0)
		return STDOUT_FILENO;
	if (strcmp(path, "/dev/stderr") == 0)
		return STDERR_FILENO;
	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
		size_t length = strlen(folders[i]), digits = 0;
		if (strncmp(path, folders[i], length) != 0)
			continue;
		digits = strspn(path + length, "0123456789");
		if (digits > 0 && digits < 8 && path[length + digits] == '\0')
			return atoi(path + length);
	}
	return -1;
}

/* ---- what a rename may replace ---- */

/* Whether a path is of a descriptor, of this process or another: the file behind it, if it is one, has other writers. */
static bool is_of_descriptor(const char *path)
{
	return weir_file_descriptor_of(path) >= 0 || strcmp(path, "/dev/stdin") == 0 || strncmp(path, "/dev/fd/", 8) == 0 ||
	       strncmp(path, "/proc/", 6) == 0;
}

static const char *name_of(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR: return "a directory";
	case S_IFCHR:
	case S_IFBLK: return "a device";
	case S_IFIFO: return "a pipe";
	case S_IFSOCK: return "a socket";
	default: return "not a regular file";
	}
}

enum weir_status weir_file_replaced(const char *path, char place[WEIR_PATH_BYTES], struct weir_error *error)
{
	struct stat about;
	int descriptor = weir_file_descriptor_of(path);
	if (is_of_descriptor(path))
		return weir_fail(error, WEIR_INVALID, "%s is %s: only a regular file can be replaced", path,
		                 descriptor == STDOUT_FILENO   ? "standard output"
		                 : descriptor == STDERR_FILENO ? "standard error"
		                                               : "a descriptor that is open already");
	if (stat(path, &about) == 0) {
		if (!S_ISREG(about.st_mode))
			return weir_fail(error, WEIR_INVALID, "%s is %s: only a regular file can be replaced", path,
			                 name_of(about.st_mode));
	} else if (errno != ENOENT && errno != ENOTDIR) {
		return weir_fail(error, WEIR_IO, "cannot look at %s: %s", path, weir_errno_words(errno));
	}
	struct weir_text text = {0};
	weir_file_place_put(&text, path);
	enum weir_status status = weir_path_format(place, error, "%.*s", (int)text.length, text.at);
	weir_text_deinit(&text);
	return status;
}
