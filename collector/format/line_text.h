/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking a line apart: each function looks at a span that begins where the last one stopped.
 *
 * None looks at a byte twice, so a reader that goes forward with them costs no more than a few looks at each byte.
 */
#ifndef COLLECTOR_LINE_TEXT_H
#define COLLECTOR_LINE_TEXT_H

#include "common/base/span.h"

static inline bool text_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline struct weir_span text_between(const char *from, const char *to)
{
	return (struct weir_span){.at = from, .length = (uint32_t)(to - from)};
}

static inline const char *text_end(struct weir_span text)
{
	return text.at + text.length;
}

/* What is left of a text from a place in it; behind its end, nothing. */
static inline struct weir_span text_from(struct weir_span text, const char *at)
{
	return at < text_end(text) ? text_between(at, text_end(text)) : text_between(text_end(text), text_end(text));
}

static inline void text_skip(struct weir_span *rest, uint32_t bytes)
{
	rest->at += bytes;
	rest->length -= bytes;
}

static inline bool text_begins(struct weir_span text, const char *literal)
{
	size_t length = strlen(literal);
	return text.at != NULL && text.length >= length && memcmp(text.at, literal, length) == 0;
}

static inline bool text_ends(struct weir_span text, const char *literal)
{
	size_t length = strlen(literal);
	return text.at != NULL && text.length >= length && memcmp(text_end(text) - length, literal, length) == 0;
}

static inline bool text_is(struct weir_span text, const char *literal)
{
	return text.at != NULL && weir_span_equal(text, weir_span_of(literal));
}

/* A line that stands within another, without the newlines and CRs at its end: formats are given none. */
static inline struct weir_span text_line(struct weir_span text)
{
	while (text.length > 0 && (text.at[text.length - 1] == '\n' || text.at[text.length - 1] == '\r'))
		text.length--;
	return text;
}

/* Takes the literal off the front; false: it does not stand there. */
static inline bool text_take(struct weir_span *rest, const char *literal)
{
	if (!text_begins(*rest, literal))
		return false;
	text_skip(rest, (uint32_t)strlen(literal));
	return true;
}

/* Takes the literal off the back; false: it does not stand there. */
static inline bool text_cut(struct weir_span *rest, const char *literal)
{
	if (!text_ends(*rest, literal))
		return false;
	rest->length -= (uint32_t)strlen(literal);
	return true;
}

/* Where a literal first stands, or NULL. */
static inline const char *text_find(struct weir_span text, const char *literal)
{
	return text.at != NULL ? memmem(text.at, text.length, literal, strlen(literal)) : NULL;
}

/* Where a literal last stands, or NULL. */
static inline const char *text_find_last(struct weir_span text, const char *literal)
{
	size_t length = strlen(literal);
	for (size_t at = text.at != NULL && text.length >= length ? text.length - length + 1 : 0; at-- > 0;)
		if (text.at[at] == literal[0] && memcmp(text.at + at, literal, length) == 0)
			return text.at + at;
	return NULL;
}

/* Takes what stands before a byte, and the byte; false: the byte is not there, and nothing is taken. */
static inline bool text_until(struct weir_span *rest, char byte, struct weir_span *taken)
{
	const char *found = rest->length > 0 ? memchr(rest->at, byte, rest->length) : NULL;
	if (found == NULL)
		return false;
	*taken = text_between(rest->at, found);
	*rest = text_from(*rest, found + 1);
	return true;
}

/* Takes a word, up to a blank or the end, and the one blank behind it. Empty at a blank or the end. */
static inline struct weir_span text_word(struct weir_span *rest)
{
	struct weir_span word;
	if (text_until(rest, ' ', &word))
		return word;
	word = *rest;
	*rest = text_from(*rest, text_end(*rest));
	return word;
}

/* Takes digits: how many there were. */
static inline uint32_t text_digits(struct weir_span *rest, struct weir_span *digits)
{
	uint32_t count = 0;
	while (count < rest->length && text_is_digit(rest->at[count]))
		count++;
	*digits = text_between(rest->at, rest->at + count);
	text_skip(rest, count);
	return count;
}

static inline bool text_is_number(struct weir_span text)
{
	struct weir_span digits;
	return text.length > 0 && text_digits(&text, &digits) > 0 && text.length == 0;
}

/* A part that is "-", or empty, is absent. */
static inline struct weir_span text_or_absent(struct weir_span text)
{
	bool absent = text.length == 0 || (text.length == 1 && text.at[0] == '-');
	return absent ? (struct weir_span){0} : text;
}

/* Whether each byte may stand in an address: IPv4 or IPv6, with a zone. */
static inline bool text_is_address(struct weir_span text)
{
	bool point = false;
	for (uint32_t i = 0; i < text.length; i++) {
		char c = text.at[i];
		if (c == '%' && point && i > 0)
			return i + 1 < text.length && memchr(text.at, ' ', text.length) == NULL;
		point |= c == ':' || c == '.';
		if (!text_is_digit(c) && c != ':' && c != '.' && !(c >= 'a' && c <= 'f') && !(c >= 'A' && c <= 'F'))
			return false;
	}
	return point;
}

/* Cuts ":PORT" off an address that has one, brackets too. What is no address stays as it is. */
static inline struct weir_span text_without_port(struct weir_span text)
{
	struct weir_span cut = text;
	if (text.length > 2 && text.at[0] == '[') {
		const char *close = memchr(text.at, ']', text.length);
		return close != NULL ? text_between(text.at + 1, close) : text;
	}
	while (cut.length > 0 && text_is_digit(cut.at[cut.length - 1]))
		cut.length--;
	if (cut.length == text.length || cut.length < 2 || cut.at[--cut.length] != ':')
		return text;
	return text_is_address(cut) || memchr(cut.at, ':', cut.length) == NULL ? cut : text;
}

/* The same where there may be no port: one behind an IPv6 address is told by brackets alone. */
static inline struct weir_span text_without_any_port(struct weir_span text)
{
	const char *colon = text.length > 0 ? memchr(text.at, ':', text.length) : NULL;
	bool many = colon != NULL && memchr(colon + 1, ':', (size_t)(text_end(text) - colon - 1)) != NULL;
	bool six = many && memchr(text.at, '.', text.length) == NULL && text.at[0] != '[';
	return six ? text : text_without_port(text);
}

/* The host of a target, with its port: of "http://HOST:PORT/PATH", of "HOST:443" as CONNECT has it; a path has none. */
static inline struct weir_span text_host(struct weir_span target)
{
	const char *scheme = text_find(target, "://");
	if (target.length == 0 || target.at[0] == '/' || target.at[0] == '*')
		return (struct weir_span){0};
	struct weir_span rest = scheme != NULL ? text_from(target, scheme + 3) : target;
	uint32_t length = 0;
	while (length < rest.length && rest.at[length] != '/' && rest.at[length] != '?' && rest.at[length] != '#')
		length++;
	const char *account = length > 0 ? memrchr(rest.at, '@', length) : NULL; /* "http://USER@HOST/" */
	return text_between(account != NULL ? account + 1 : rest.at, rest.at + length);
}

/*
 * A request line up to its quote, or as far as it is there: METHOD TARGET[ PROTOCOL]. What is none gives neither.
 * Gives what stands behind the quote, or nothing.
 */
static inline struct weir_span text_request(struct weir_span rest, struct weir_span *method, struct weir_span *target)
{
	const char *quote = rest.length > 0 ? memchr(rest.at, '"', rest.length) : NULL;
	struct weir_span request = quote != NULL ? text_between(rest.at, quote) : rest, word;
	struct weir_span behind = quote != NULL ? text_from(rest, quote + 1) : text_from(rest, text_end(rest));
	uint32_t letters = 0;
	for (; letters < request.length; letters++) {
		char c = request.at[letters];
		if (!text_is_digit(c) && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && c != '-' && c != '_')
			break;
	}
	if (letters == 0 || letters == request.length || request.at[letters] != ' ')
		return behind;
	word = text_between(request.at, request.at + letters);
	text_skip(&request, letters);
	while (text_take(&request, " "))
		;
	struct weir_span written = text_word(&request);
	if (written.length > 0) {
		*method = word;
		*target = written;
	}
	return behind;
}

#endif
