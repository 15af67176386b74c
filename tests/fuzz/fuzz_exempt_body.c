/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a list that a server gives: what is taken of it is a list as a file has it, and reads as the same again. */
#include "common/bytes/address.h"
#include "common/exempt/exempt_body.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Each line is one network, none of them as wide as a whole family. */
static void check_lines(const struct weir_exempt_body *body)
{
	struct weir_network networks[WEIR_RANGE_NETWORKS_MAX];
	const char *at = body->lines.at, *end = at + body->lines.length, *why;
	uint32_t count = 0;
	for (; at < end; count++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		assert(newline != NULL);
		struct weir_span line = {.at = at, .length = (uint32_t)(newline - at)};
		assert(weir_networks_parse(line, networks, &why) == 1 && networks[0].prefix >= WEIR_EXEMPT_BODY_PREFIX6);
		at = newline + 1;
	}
	assert(count == body->networks && count >= body->entries);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct weir_exempt_body body = {0}, again = {0};
	struct weir_error error = {.text = ""};
	struct weir_span bytes = {.at = (const char *)data, .length = (uint32_t)size};
	enum weir_status status = weir_exempt_body_read(bytes, &body, &error);
	assert(status == WEIR_OK || (status == WEIR_INVALID && error.text[0] != '\0'));
	for (size_t i = 0; i < body.mistakes.length; i++)
		assert((unsigned char)body.mistakes.at[i] >= ' ' && body.mistakes.at[i] != 0x7f);
	if (status == WEIR_OK) {
		assert(body.entries > 0 && body.bad <= body.entries);
		check_lines(&body);
		assert(weir_exempt_body_read(weir_text_span(&body.lines), &again, &error) == WEIR_OK);
		assert(again.bad == 0 && again.lines.length == body.lines.length &&
		       memcmp(again.lines.at, body.lines.at, body.lines.length) == 0);
	}
	weir_exempt_body_deinit(&body);
	weir_exempt_body_deinit(&again);
	return 0;
}
