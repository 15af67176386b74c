/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Near misses by Damerau and Levenshtein's distance: a mistyped name is mostly one edit from the right one, and "JSON"
 * none from "json".
 */
#include "common/base/suggest.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 64 }; /* longer names get no suggestion */

static bool alike(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Edits (insert, delete, replace, swap neighbours) between two names of fewer than NAME_BYTES bytes. */
static size_t edit_distance(const char *a, const char *b)
{
	size_t rows = strlen(a), columns = strlen(b);
	size_t cost[3][NAME_BYTES + 1];
	for (size_t j = 0; j <= columns; j++)
		cost[0][j] = j;
	for (size_t i = 1; i <= rows; i++) {
		size_t *here = cost[i % 3], *above = cost[(i - 1) % 3], *two_above = cost[(i + 1) % 3];
		here[0] = i;
		for (size_t j = 1; j <= columns; j++) {
			size_t best = above[j - 1] + !alike(a[i - 1], b[j - 1]);
			best = above[j] + 1 < best ? above[j] + 1 : best;
			best = here[j - 1] + 1 < best ? here[j - 1] + 1 : best;
			if (i > 1 && j > 1 && alike(a[i - 1], b[j - 2]) && alike(a[i - 2], b[j - 1]) && two_above[j - 2] + 1 < best)
				best = two_above[j - 2] + 1;
			here[j] = best;
		}
	}
	return cost[rows % 3][columns];
}

const char *weir_nearest_name(const char *written, const char *const *names)
{
	const char *best = NULL;
	size_t length = strlen(written), least = length / 2 < 2 ? length / 2 : 2;
	for (; *names != NULL; names++) {
		if (length >= NAME_BYTES || strlen(*names) >= NAME_BYTES)
			continue;
		size_t distance = edit_distance(written, *names);
		if (distance < least || (distance == least && best == NULL)) {
			best = *names;
			least = distance;
		}
	}
	return best;
}

void weir_list_names(const char *const *names, const char *quote, char *buffer, size_t bytes)
{
	static const char dots[] = ", ...";
	size_t used = 0, fits = 0; /* fits: up to where the dots have room behind a name */
	buffer[0] = '\0';
	for (size_t i = 0; names[i] != NULL; i++) {
		int wrote = snprintf(buffer + used, bytes - used, "%s%s%s%s", i > 0 ? ", " : "", quote, names[i], quote);
		if (wrote < 0 || (size_t)wrote >= bytes - used) {
			snprintf(buffer + fits, bytes - fits, "%s", fits > 0 ? dots : "");
			return;
		}
		used += (size_t)wrote;
		if (used + sizeof dots <= bytes)
			fits = used;
	}
}
