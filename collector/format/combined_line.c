/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits combined lines by the letter of the grammar.
 *
 * Most lines never come here: format_combined.c takes the common shape in one go. This is for all others, and what the
 * tests hold that shortcut against, so it is written to be read.
 */
#include "collector/format/combined_line.h"

#include "common/bytes/address.h"
#include "common/record/find.h"

static struct weir_span between(const char *begin, const char *end)
{
	return (struct weir_span){.at = begin, .length = (uint32_t)(end - begin)};
}

/* ---- the head ---- */

/* 1+ bytes without a space, then a space, which is passed over. */
static bool take_word(const char **at, const char *end, struct weir_span *word)
{
	const char *space = memchr(*at, ' ', (size_t)(end - *at));
	if (space == NULL || space == *at)
		return false;
	*word = between(*at, space);
	*at = space + 1;
	return true;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter_or_digit(char c)
{
	return is_digit(c) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static bool is_address(struct weir_span word)
{
	struct weir_address address;
	return weir_address_read(word, &address);
}

/* Letters, digits, '-', '_' and '.': what names of hosts are made of. */
static bool is_name(struct weir_span word)
{
	for (uint32_t i = 0; i < word.length; i++)
		if (!is_letter_or_digit(word.at[i]) && word.at[i] != '-' && word.at[i] != '_' && word.at[i] != '.')
			return false;
	return word.length > 0;
}

/* A virtual host without ":" and 1 to 5 digits behind it. */
static struct weir_span without_port(struct weir_span word)
{
	uint32_t length = word.length;
	while (length > 0 && is_digit(word.at[length - 1]))
		length--;
	bool port = length > 1 && length < word.length && word.length - length <= 5 && word.at[length - 1] == ':';
	return port ? between(word.at, word.at + length - 1) : word;
}

bool combined_line_client(struct weir_span word)
{
	return is_name(word) || is_address(word) || weir_span_equal(word, weir_span_of("unix:"));
}

static bool is_absent(struct weir_span word)
{
	return word.length == 1 && word.at[0] == '-';
}

/* The last " [" before a place; NULL: none is there. */
static const char *bracket_before(const char *at, const char *place)
{
	for (const char *open = place - 2; open >= at; open--)
		if (open[0] == ' ' && open[1] == '[')
			return open;
	return NULL;
}

/* In a line that is cut, where the bracket closes that opens last. */
static const char *cut_time_end(const char *at, const char *end)
{
	const char *open = bracket_before(at, end);
	const char *close = open != NULL ? memchr(open, ']', (size_t)(end - open)) : NULL;
	return close != NULL && (close + 1 == end || close[1] == ' ') ? close : NULL;
}

/*
 * Where the time's bracket closes: before a quote. Some servers write a user as he calls himself, with brackets and
 * quotes; so it is the first place behind a bracket in which something begins with a digit, or else the first of all.
 */
static const char *time_end(const char *at, const char *end)
{
	enum { TIME_LEAST_BYTES = 8 };
	const char *first = NULL, *open = NULL;
	for (const char *from = at, *close; (close = memmem(from, (size_t)(end - from), "] \"", 3)) != NULL;
	     from = close + 3) {
		const char *opens = bracket_before(from, close); /* each byte is passed once */
		open = opens != NULL ? opens : open;
		if (open != NULL && close - open >= 2 + TIME_LEAST_BYTES && is_digit(open[2]))
			return close;
		first = first == NULL && open != NULL ? close : first;
	}
	return first;
}

/* Whether a user stands before the time: whose name may begin with a bracket. A request behind the time may have one, too. */
static bool has_user(const char *at, const char *end)
{
	if (at < end && *at != '[')
		return true;
	const char *close = memmem(at, (size_t)(end - at), "] \"", 3);
	return close != NULL && bracket_before(at, close) != NULL;
}

/* A list of clients, as of X-Forwarded-For, is no client, and what it ends with is not behind a virtual host. */
static bool begins_list(struct weir_span word)
{
	return word.at[word.length - 1] == ',' && is_address(between(word.at, word.at + word.length - 1));
}

/*
 * A client behind a virtual host that is empty, as nginx writes $host for a request without a Host where the server has no
 * name: a blank stands first. As behind any host, it must be an address.
 */
static bool take_client_behind_nothing(const char **at, const char *end, struct combined_line *line)
{
	struct weir_span *client = &line->parts[COMBINED_IP], *ident = &line->parts[COMBINED_IDENT];
	++*at;
	return take_word(at, end, client) && take_word(at, end, ident) && is_address(*client) && is_absent(*ident) &&
	       has_user(*at, end);
}

/*
 * The client and the ident, and the virtual host if there is one: a word before an address, or a name with its port, and
 * an ident of "-" behind the client. A stranger may write an ident, and a user, which may look like a second head: so what
 * stands first counts, as a host has no blank: servers refuse one that has. In other heads the first word may look like a host's name
 * ("May 17 10:05:03 web nginx: ..."); then more than a user stands before the time.
 */
static bool take_client(const char **at, const char *end, struct combined_line *line, bool *may_be_head)
{
	struct weir_span first, second, third;
	*may_be_head = false;
	line->parts[COMBINED_HOST] = (struct weir_span){0};
	if (*at < end && **at == ' ')
		return take_client_behind_nothing(at, end, line);
	if (!take_word(at, end, &first) || !take_word(at, end, &second))
		return false;
	struct weir_span host = without_port(first);
	bool port = host.length < first.length && is_name(host) && !is_address(first);
	const char *behind = *at;
	if (port || is_address(second)) {
		if (take_word(&behind, end, &third) && is_absent(third) && (port || has_user(behind, end))) {
			*at = behind;
			line->parts[COMBINED_HOST] = host;
			line->parts[COMBINED_IP] = second;
			line->parts[COMBINED_IDENT] = third;
			return combined_line_client(second) && !begins_list(first);
		}
		if (!is_address(first))
			return false;
	}
	line->parts[COMBINED_IP] = first;
	line->parts[COMBINED_IDENT] = second;
	*may_be_head = !is_absent(second) && !is_address(first);
	return combined_line_client(first);
}

/* user SP "[" time "]" and what follows up to and with a quote; to the end where there is none. */
static bool take_user_and_time(const char **at, const char *end, struct combined_line *line)
{
	const char *close;
	line->cut = memmem(*at, (size_t)(end - *at), "] \"", 3) == NULL;
	close = line->cut ? cut_time_end(*at, end) : time_end(*at, end);
	const char *open = close != NULL ? bracket_before(*at, close) : NULL;
	if (open == NULL)
		return false;
	line->parts[COMBINED_USER] = between(*at, open);
	line->parts[COMBINED_TIME] = between(open + 2, close);
	*at = line->cut ? end : close + 3;
	return true;
}

/* ---- the request ---- */

static bool is_method_byte(char c)
{
	return is_letter_or_digit(c) || c == '-' || c == '_';
}

static bool is_blank(char c)
{
	return c == ' ';
}

static const char *skip_blanks(const char *at, const char *end)
{
	while (at < end && is_blank(*at))
		at++;
	return at;
}

static const char *skip_word(const char *at, const char *end)
{
	while (at < end && !is_blank(*at))
		at++;
	return at;
}

/*
 * Where the target ends that begins at `at`: before the next blank; where more than a protocol follows that, before the
 * protocol, if it is one. NULL: there is no telling.
 */
static const char *target_end(const char *at, const char *end)
{
	const char *behind = skip_word(at, end);
	const char *protocol = skip_blanks(behind, end);
	if (skip_word(protocol, end) == end)
		return behind;
	protocol = end;
	while (!is_blank(protocol[-1]))
		protocol--;
	if (end - protocol < 5 || memcmp(protocol, "HTTP/", 5) != 0)
		return NULL;
	for (behind = protocol; is_blank(behind[-1]);)
		behind--;
	return behind;
}

/* METHOD blanks target[ blanks protocol] blanks, or neither part. */
static void split_request(const char *begin, const char *end, struct combined_line *line)
{
	line->parts[COMBINED_METHOD] = line->parts[COMBINED_TARGET] = line->parts[COMBINED_PATH] = (struct weir_span){0};
	line->served = false;
	const char *method_end = begin;
	while (method_end < end && is_method_byte(*method_end))
		method_end++;
	const char *target = skip_blanks(method_end, end);
	while (end > target && is_blank(end[-1]))
		end--;
	if (method_end == begin || target == method_end || target >= end)
		return;
	const char *behind = target_end(target, end);
	if (behind == NULL)
		return;
	line->parts[COMBINED_METHOD] = between(begin, method_end);
	line->parts[COMBINED_TARGET] = line->parts[COMBINED_PATH] = between(target, behind);
}

/* SP (DDD | "-") SP ("-" | 1+ digits) (SP | end): gives the place behind, or NULL. */
static const char *status_and_bytes(const char *at, const char *end, struct weir_span *status, struct weir_span *bytes)
{
	if (end - at < 4 || at[0] != ' ')
		return NULL;
	const char *behind = at[1] == '-' ? at + 2 : at + 4;
	if (end - behind < 2 || *behind != ' ')
		return NULL;
	*status = between(at + 1, behind);
	for (uint32_t i = 0; i < status->length && at[1] != '-'; i++)
		if (!is_digit(status->at[i]))
			return NULL;
	at = ++behind;
	if (*behind == '-')
		behind++;
	else
		while (behind < end && is_digit(*behind))
			behind++;
	*bytes = between(at, behind);
	return behind > at && (behind == end || *behind == ' ') ? behind : NULL;
}

static bool ends_request(const char *quote, const char *end)
{
	struct weir_span status, bytes;
	return status_and_bytes(quote + 1, end, &status, &bytes) != NULL;
}

/* The quote that closes a request; NULL: none does. */
static const char *closing_quote(const char *at, const char *end)
{
	const char *first = weir_find_closing_quote(at, end);
	for (const char *quote = first; quote != NULL; quote = weir_find_closing_quote(quote + 1, end))
		if (ends_request(quote, end))
			return quote;
	if (first != NULL && (first + 1 == end || first[1] == ' '))
		return first;
	/* A server that does not escape quotes does not escape backslashes either. */
	for (const char *quote = at; (quote = memchr(quote, '"', (size_t)(end - quote))) != NULL; quote++)
		if (ends_request(quote, end))
			return quote;
	return first;
}

const char *combined_line_request(const char *at, const char *end, struct combined_line *line)
{
	const char *quote = closing_quote(at, end);
	line->cut = quote == NULL;
	split_request(at, quote != NULL ? quote : end, line);
	return quote != NULL ? quote + 1 : end;
}

/* ---- what follows ---- */

/* The status and the bytes as far as they are there; gives the place behind, or the end: nothing follows. */
static const char *take_status_and_bytes(const char *at, const char *end, struct combined_line *line)
{
	struct weir_span *status = &line->parts[COMBINED_STATUS], *bytes = &line->parts[COMBINED_BYTES];
	const char *behind = status_and_bytes(at, end, status, bytes);
	if (behind != NULL)
		return behind;
	line->cut = true;
	*status = *bytes = (struct weir_span){0};
	if (end - at >= 4 && at[0] == ' ' && is_digit(at[1]) && is_digit(at[2]) && is_digit(at[3]) &&
	    (end - at == 4 || at[4] == ' '))
		*status = between(at + 1, at + 4);
	return end;
}

void combined_line_tail(const char *at, const char *end, struct combined_line *line)
{
	for (enum combined_part part = COMBINED_REFERER; part <= COMBINED_XFF; part++)
		line->parts[part] = (struct weir_span){0};
	for (enum combined_part part = COMBINED_REFERER; part <= COMBINED_XFF; part++) {
		if (end - at < 3 || at[0] != ' ' || at[1] != '"')
			return;
		const char *quote = weir_find_closing_quote(at + 2, end);
		line->cut |= quote == NULL;
		if (quote == NULL)
			return;
		line->parts[part] = between(at + 2, quote);
		at = quote + 1;
	}
}

bool combined_line_split(struct weir_span text, struct combined_line *line)
{
	const char *at = text.at, *end = text.at + text.length;
	bool may_be_head;
	line->cut = false;
	if (!take_client(&at, end, line, &may_be_head) || !take_user_and_time(&at, end, line))
		return false;
	struct weir_span user = line->parts[COMBINED_USER];
	if (may_be_head && user.length > 0 && memchr(user.at, ' ', user.length) != NULL)
		return false;
	at = combined_line_request(at, end, line);
	at = take_status_and_bytes(at, end, line);
	combined_line_tail(at, end, line);
	return true;
}
