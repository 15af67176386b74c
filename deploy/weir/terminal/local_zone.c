/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C library takes a TZ that it cannot read for UTC, and calls it by the letters that TZ begins with: "Europe/Berln"
 * gives times of UTC that are said to be those of "Europe". Such times are said to be UTC's.
 */
#include "deploy/weir/terminal/local_zone.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Whether a zone's name is a file of the tz database, or of its format. */
static bool is_file(const char *name)
{
	char path[4096], head[4];
	const char *folder = getenv("TZDIR");
	if (folder == NULL || folder[0] == '\0')
		folder = "/usr/share/zoneinfo";
	if (name[0] == '/')
		folder = "";
	if (snprintf(path, sizeof path, "%s%s%s", folder, name[0] == '/' ? "" : "/", name) >= (int)sizeof path)
		return false;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	bool good = read(fd, head, sizeof head) == (ssize_t)sizeof head && memcmp(head, "TZif", sizeof head) == 0;
	close(fd);
	return good;
}

/* Whether it is a rule of POSIX, which begins with a name and an offset: "CET-1CEST", "<+03>-3". */
static bool is_rule(const char *text)
{
	size_t length = 0;
	if (text[0] == '<') {
		const char *end = strchr(text, '>');
		length = end != NULL ? (size_t)(end - text) + 1 : 0;
	} else {
		while (isalpha((unsigned char)text[length]) != 0)
			length++;
	}
	const char *offset = text + length;
	offset += *offset == '+' || *offset == '-';
	return length >= 3 && isdigit((unsigned char)*offset) != 0;
}

const char *local_zone(const struct tm *parts)
{
	const char *name = getenv("TZ");
	if (name != NULL && name[0] == ':')
		name++;
	bool known = name == NULL || name[0] == '\0' || is_file(name) || is_rule(name);
	return known || parts->tm_gmtoff != 0 ? parts->tm_zone : "UTC";
}
