/* SPDX-License-Identifier: Apache-2.0 */
/* Heads are looked at byte by byte: they are four bytes long, and each command has a handful. */
#include "common/resp/resp_command.h"

#include "common/resp/resp_number.h"

enum { END_BYTES = 2, TLS_HANDSHAKE = 0x16, TLS_MAJOR = 3 /* how TLS begins */ };

static enum weir_status refuse(const char **why, const char *words)
{
	*why = words;
	return WEIR_INVALID;
}

/* The number of a head: "*3\r\n". @param at  behind its type; moved behind its end */
static enum weir_status read_head(const char **at, const char *end, int64_t *number)
{
	const char *start = *at, *digit = start;
	while (digit < end && *digit != '\r' && digit - start <= WEIR_RESP_NUMBER_MAX_BYTES)
		digit++;
	if (digit - start > WEIR_RESP_NUMBER_MAX_BYTES)
		return WEIR_INVALID;
	if (end - digit < END_BYTES)
		return WEIR_AGAIN;
	*at = digit + END_BYTES;
	bool good = digit[1] == '\n' &&
	            weir_resp_number((struct weir_span){.at = start, .length = (uint32_t)(digit - start)}, number);
	return good ? WEIR_OK : WEIR_INVALID;
}

/* One text: "$4\r\nPING\r\n". @param most  bytes that it may have */
static enum weir_status read_word(const char **at, const char *end, int64_t most, struct weir_span *word,
                                  const char **why)
{
	int64_t length = 0;
	if (*at == end)
		return WEIR_AGAIN;
	if (**at != '$')
		return refuse(why, "expected '$': a command is an array of bulk strings");
	(*at)++;
	enum weir_status status = read_head(at, end, &length);
	if (status == WEIR_AGAIN)
		return status;
	if (status != WEIR_OK || length < 0)
		return refuse(why, "invalid bulk length");
	if (length > most)
		return refuse(why, "invalid bulk length: the command would be too long");
	if (end - *at < length + END_BYTES)
		return WEIR_AGAIN;
	*word = (struct weir_span){.at = *at, .length = (uint32_t)length};
	*at += length;
	if ((*at)[0] != '\r' || (*at)[1] != '\n')
		return refuse(why, "a bulk string is longer than its length");
	*at += END_BYTES;
	return WEIR_OK;
}

static enum weir_status read_array(const char *bytes, size_t length, size_t most_bytes,
                                   struct weir_resp_command *command, const char **why)
{
	const char *at = bytes + 1, *end = bytes + length;
	struct weir_span passed_over;
	int64_t count = 0;
	enum weir_status status = read_head(&at, end, &count);
	if (status == WEIR_INVALID || (status == WEIR_OK && count > WEIR_RESP_WORDS_MAX))
		return refuse(why, "invalid multibulk length");
	command->count = count > 0 ? (uint32_t)count : 0;
	for (uint32_t i = 0; i < command->count && status == WEIR_OK; i++) {
		int64_t most = (int64_t)most_bytes - (at - bytes);
		status = read_word(&at, end, most, i < WEIR_RESP_WORDS_KEPT ? &command->words[i] : &passed_over, why);
	}
	command->bytes = (size_t)(at - bytes);
	return status;
}

static bool is_http(const struct weir_resp_command *command)
{
	static const char version[] = "HTTP/";
	uint32_t length = sizeof version - 1;
	return command->count == 3 && command->words[2].length > length &&
	       memcmp(command->words[2].at, version, length) == 0;
}

static enum weir_status read_line(const char *bytes, size_t length, struct weir_resp_command *command, const char **why)
{
	size_t looked_at = length < WEIR_RESP_LINE_MAX_BYTES ? length : WEIR_RESP_LINE_MAX_BYTES;
	const char *end = memchr(bytes, '\n', looked_at), *at = bytes;
	if (length >= 2 && bytes[0] == TLS_HANDSHAKE && bytes[1] == TLS_MAJOR)
		return refuse(why, "this port speaks Redis' protocol without TLS");
	if (end == NULL)
		return length < WEIR_RESP_LINE_MAX_BYTES ? WEIR_AGAIN : refuse(why, "too big inline request");
	command->count = 0;
	while (at < end) {
		while (at < end && (*at == ' ' || *at == '\t' || *at == '\r'))
			at++;
		const char *word = at;
		while (at < end && *at != ' ' && *at != '\t' && *at != '\r')
			at++;
		if (at > word && command->count < WEIR_RESP_WORDS_KEPT)
			command->words[command->count] = (struct weir_span){.at = word, .length = (uint32_t)(at - word)};
		command->count += at > word;
	}
	command->bytes = (size_t)(end - bytes) + 1;
	return is_http(command) ? refuse(why, "this port speaks Redis' protocol, not HTTP") : WEIR_OK;
}

enum weir_status weir_resp_command_read(const char *bytes, size_t length, size_t most_bytes,
                                        struct weir_resp_command *command, const char **why)
{
	if (length == 0)
		return WEIR_AGAIN;
	return bytes[0] == '*' ? read_array(bytes, length, most_bytes, command, why)
	                       : read_line(bytes, length, command, why);
}
