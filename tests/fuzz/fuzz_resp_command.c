/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as what a Redis client sends: commands lie within them, and do not depend on how much has come at a time. */
#include "common/resp/resp_command.h"

#include "tests/fuzz/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_BYTES = 3000, SHORT_BYTES = 400 };

static void check_words(const struct weir_resp_command *command, const char *bytes)
{
	const char *before = bytes;
	require(command->bytes > 0 && command->count <= (bytes[0] == '*' ? WEIR_RESP_WORDS_MAX : WEIR_RESP_LINE_MAX_BYTES));
	for (uint32_t i = 0; i < command->count && i < WEIR_RESP_WORDS_KEPT; i++) {
		require(command->words[i].at >= before);
		before = command->words[i].at + command->words[i].length;
		require(before <= bytes + command->bytes);
	}
}

/* Taking the quotes off makes no word longer, and takes no room beyond a line's. */
static void check_unquoted(struct weir_resp_command *command)
{
	static char room[WEIR_RESP_LINE_MAX_BYTES];
	uint32_t count = command->count, kept = count < WEIR_RESP_WORDS_KEPT ? count : WEIR_RESP_WORDS_KEPT;
	size_t before = 0, after = 0;
	for (uint32_t i = 0; i < kept; i++)
		before += command->words[i].length;
	weir_resp_command_unquote(command, room);
	for (uint32_t i = 0; i < kept; i++)
		after += command->words[i].length;
	require(after < before && command->count == count && !command->quoted);
}

/* With less of it there, a command that is whole is not, and one that is refused is not read differently. */
static void check_beginnings(const char *bytes, size_t length, enum weir_status whole)
{
	struct weir_resp_command command;
	const char *why;
	for (size_t some = 0; some < length; some++) {
		enum weir_status status = weir_resp_command_read(bytes, some, MOST_BYTES, &command, &why);
		require(status == WEIR_AGAIN || (whole == WEIR_INVALID && status == WEIR_INVALID));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct weir_resp_command command;
	const char *why = NULL, *at = (const char *)data;
	for (;;) {
		enum weir_status status = weir_resp_command_read(at, size, MOST_BYTES, &command, &why);
		require(status != WEIR_INVALID || why != NULL);
		if (status == WEIR_OK)
			check_words(&command, at);
		if (status == WEIR_OK && command.quoted)
			check_unquoted(&command);
		size_t looked_at = status == WEIR_OK ? command.bytes : size;
		require(looked_at <= size);
		if (looked_at <= SHORT_BYTES)
			check_beginnings(at, looked_at, status);
		if (status != WEIR_OK)
			return 0;
		at += command.bytes;
		size -= command.bytes;
	}
}
