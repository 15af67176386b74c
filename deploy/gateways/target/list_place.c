/* SPDX-License-Identifier: Apache-2.0 */
/* A list need not be there when its configuration is read, nor its folder: what there is of them is resolved by the system. */
#include "deploy/gateways/target/list_place.h"

#include "common/base/alloc.h"

#include <stdlib.h>
#include <string.h>

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

static void put(struct weir_text *text, size_t start, char *path)
{
	cut_slashes(path);
	char *whole = realpath(path[0] != '\0' ? path : "/", NULL);
	if (whole != NULL) {
		weir_text_puts(text, strcmp(whole, "/") == 0 ? "" : whole);
		free(whole);
		return;
	}
	if (strchr(path, '/') == NULL) {
		whole = realpath(".", NULL);
		weir_text_puts(text, whole != NULL ? whole : ".");
		free(whole);
		put_part(text, start, path);
		return;
	}
	const char *last = cut_last(path);
	put(text, start, path);
	put_part(text, start, last);
}

void list_place_put(struct weir_text *text, const char *path)
{
	char *copy = weir_copy(path, strlen(path));
	put(text, text->length, copy);
	free(copy);
}
