/* SPDX-License-Identifier: Apache-2.0 */
/* Heads are looked at byte by byte: they are four bytes long, and each command has a handful. */
#include "common/resp/resp_command.h"

#include "common/bytes/hex.h"
#include "common/resp/resp_number.h"

#include <string.h>

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

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

/* @param at  behind what opens it @return behind what closes it; NULL: nothing does, or no blank follows */
static const char *find_close(const char *at, const char *end, char quote)
{
	for (; at < end && *at != quote; at++)
		if (*at == '\\' && at + 1 < end && (quote == '"' || at[1] == quote))
			at++;
	return at < end && (at + 1 == end || is_blank(at[1])) ? at + 1 : NULL;
}

/* @param quoted  set if it has quotes @return its end; NULL: its quotes are not balanced */
static const char *find_word_end(const char *at, const char *end, bool *quoted)
{
	for (; at < end && !is_blank(*at); at++)
		if (*at == '"' || *at == '\'') {
			*quoted = true;
			return find_close(at + 1, end, *at);
		}
	return at;
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
	command->bytes = (size_t)(end - bytes) + 1;
	for (;;) {
		while (at < end && is_blank(*at))
			at++;
		if (at == end)
			break;
		const char *word = at;
		at = find_word_end(word, end, &command->quoted);
		if (at == NULL)
			return refuse(why, "unbalanced quotes in request");
		if (command->count < WEIR_RESP_WORDS_KEPT)
			command->words[command->count] = (struct weir_span){.at = word, .length = (uint32_t)(at - word)};
		command->count++;
	}
	return is_http(command) ? refuse(why, "this port speaks Redis' protocol, not HTTP") : WEIR_OK;
}

/* One byte of a word in quotes. @param at  moved behind it */
static char take_byte(const char **at, const char *end, char quote)
{
	static const char names[] = "nrtba", bytes[] = "\n\r\t\b\a";
	char c = *(*at)++;
	if (c != '\\' || *at == end || (quote == '\'' && **at != quote))
		return c;
	c = *(*at)++;
	if (quote == '\'')
		return c;
	int byte = c == 'x' && end - *at >= 2 ? weir_hex_byte(*at) : -1;
	if (byte >= 0) {
		*at += 2;
		return (char)byte;
	}
	const char *name = c != '\0' ? strchr(names, c) : NULL;
	return name != NULL ? bytes[name - names] : c;
}

/* @return behind what was written */
static char *unquote(struct weir_span word, char *to)
{
	const char *at = word.at, *end = word.at + word.length;
	while (at < end && *at != '"' && *at != '\'')
		*to++ = *at++;
	if (at == end)
		return to;
	char quote = *at++;
	while (at < end - 1)
		*to++ = take_byte(&at, end - 1, quote);
	return to;
}

void weir_resp_command_unquote(struct weir_resp_command *command, char *room)
{
	for (uint32_t i = 0; i < command->count && i < WEIR_RESP_WORDS_KEPT; i++) {
		char *end = unquote(command->words[i], room);
		command->words[i] = (struct weir_span){.at = room, .length = (uint32_t)(end - room)};
		room = end;
	}
	command->quoted = false;
}

enum weir_status weir_resp_command_read(const char *bytes, size_t length, size_t most_bytes,
                                        struct weir_resp_command *command, const char **why)
{
	command->quoted = false;
	if (length == 0)
		return WEIR_AGAIN;
	return bytes[0] == '*' ? read_array(bytes, length, most_bytes, command, why)
	                       : read_line(bytes, length, command, why);
}
