/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Beginning and end are compared where they must stand. Between them each piece
 * is taken at its first place behind the piece before: if any choice of places
 * works, the first ones do, so nothing is ever tried twice.
 */
#include "common/match/wildcard.h"

#include "common/base/alloc.h"

#include <assert.h>
#include <stdlib.h>

void wildcard_init(struct wildcard *wildcard, struct weir_span pattern)
{
	const char *end = pattern.at + pattern.length;
	const char *star = memchr(pattern.at, '*', pattern.length);
	assert(star != NULL);
	*wildcard = (struct wildcard){.prefix = {.at = pattern.at, .length = (uint32_t)(star - pattern.at)},
	                              .pieces = weir_alloc(pattern.length, sizeof *wildcard->pieces)};
	for (;;) {
		const char *piece = star + 1;
		star = memchr(piece, '*', (size_t)(end - piece));
		struct weir_span span = {.at = piece, .length = (uint32_t)((star != NULL ? star : end) - piece)};
		if (star == NULL) {
			wildcard->suffix = span;
			return;
		}
		if (span.length > 0)
			wildcard->pieces[wildcard->piece_count++] = span;
	}
}

void wildcard_deinit(struct wildcard *wildcard)
{
	free(wildcard->pieces);
	*wildcard = (struct wildcard){0};
}

bool wildcard_match(const struct wildcard *wildcard, struct weir_span value)
{
	struct weir_span prefix = wildcard->prefix, suffix = wildcard->suffix;
	if (value.length < (size_t)prefix.length + suffix.length)
		return false;
	const char *at = value.at + prefix.length, *end = value.at + value.length - suffix.length;
	if (memcmp(value.at, prefix.at, prefix.length) != 0 || memcmp(end, suffix.at, suffix.length) != 0)
		return false;
	for (uint32_t i = 0; i < wildcard->piece_count; i++) {
		struct weir_span piece = wildcard->pieces[i];
		at = memmem(at, (size_t)(end - at), piece.at, piece.length);
		if (at == NULL)
			return false;
		at += piece.length;
	}
	return true;
}
