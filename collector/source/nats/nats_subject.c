/* SPDX-License-Identifier: Apache-2.0 */
/* Subjects, token by token. */
#include "collector/source/nats/nats_subject.h"

#include <string.h>

/* The next token of at..end, and what is behind its dot. */
static struct weir_span next_token(const char **at, const char *end)
{
	const char *begin = *at, *dot = begin < end ? memchr(begin, '.', (size_t)(end - begin)) : NULL;
	const char *stop = dot != NULL ? dot : end;
	*at = dot != NULL ? dot + 1 : NULL;
	return (struct weir_span){.at = begin, .length = (uint32_t)(stop - begin)};
}

static bool is_one(struct weir_span token, char c)
{
	return token.length == 1 && token.at[0] == c;
}

bool nats_subject_valid(const char *pattern)
{
	size_t length = strlen(pattern);
	if (length == 0 || length > NATS_SUBJECT_BYTES)
		return false;
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)pattern[i] <= ' ' || pattern[i] == 0x7F)
			return false;
	for (const char *at = pattern, *end = pattern + length; at != NULL;) {
		struct weir_span token = next_token(&at, end);
		if (token.length == 0 || (is_one(token, '>') && at != NULL))
			return false;
		if (token.length > 1 && (memchr(token.at, '*', token.length) || memchr(token.at, '>', token.length)))
			return false;
	}
	return true;
}

bool nats_subject_fits(const char *pattern, struct weir_span subject)
{
	const char *wanted = pattern, *wanted_end = pattern + strlen(pattern);
	const char *at = subject.at, *end = subject.at + subject.length;
	while (wanted != NULL && at != NULL) {
		struct weir_span token = next_token(&wanted, wanted_end);
		if (is_one(token, '>'))
			return true;
		struct weir_span own = next_token(&at, end);
		if (!is_one(token, '*') && (token.length != own.length || memcmp(token.at, own.at, own.length) != 0))
			return false;
	}
	return wanted == NULL && at == NULL;
}

static bool read_number(struct weir_span token, uint64_t *number)
{
	*number = 0;
	for (uint32_t i = 0; i < token.length; i++) {
		if (token.at[i] < '0' || token.at[i] > '9' || *number > (UINT64_MAX - 9) / 10)
			return false;
		*number = *number * 10 + (uint64_t)(token.at[i] - '0');
	}
	return token.length > 0;
}

bool nats_place_read(struct weir_span reply, struct nats_place *place)
{
	enum { SHORT = 9, LONG = 11, MOST = 13, NUMBERS = 5 };
	struct weir_span tokens[MOST];
	uint64_t numbers[NUMBERS];
	size_t count = 0;
	for (const char *at = reply.at, *end = reply.at + reply.length; at != NULL && count < MOST;)
		tokens[count++] = next_token(&at, end);
	if (count < SHORT || reply.length < 8 || memcmp(reply.at, "$JS.ACK.", 8) != 0)
		return false;
	/* The longer form has domain and account before the stream, and perhaps more behind. */
	size_t first = count >= LONG ? 6 : 4;
	for (size_t i = 0; i < NUMBERS; i++)
		if (!read_number(tokens[first + i], &numbers[i]))
			return false;
	*place = (struct nats_place){
		.sequence = numbers[1], .consumer = numbers[2], .put_ns = (int64_t)numbers[3], .pending = numbers[4]};
	return place->sequence > 0 && numbers[3] <= INT64_MAX;
}
