/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that fails answers with a page of HTML as often as with a code, and an answer may have been cut. So what has no
 * entry, or fewer good ones than bad ones, is no list.
 */
#include "common/exempt/exempt_body.h"

#include "common/base/alloc.h"
#include "common/base/words.h"
#include "common/json/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRY_MAX_BYTES = 256, SHOWN_BYTES = 40, JSON_DEPTH_MAX = 16 };

/* One bad entry. @param place  "line", "entry" */
static void refuse(struct weir_exempt_body *body, const char *place, uint64_t number, const char *why)
{
	if (body->bad++ < WEIR_EXEMPT_BODY_MISTAKES_TOLD)
		weir_text_printf(&body->mistakes, "%s%s %llu: %s", body->mistakes.length > 0 ? "; " : "", place,
		                 (unsigned long long)number, why);
}

static bool is_v4(const struct weir_network *network)
{
	return network->prefix >= 96 && weir_address_is_v4(&network->base);
}

static bool is_too_wide(const struct weir_network *network)
{
	return network->prefix < (is_v4(network) ? 96 + WEIR_EXEMPT_BODY_PREFIX4 : WEIR_EXEMPT_BODY_PREFIX6);
}

static void add_space(struct weir_exempt_body *body, const struct weir_network *network)
{
	if (body->space_count == body->space_room) {
		body->space_room = body->space_room == 0 ? 64 : 2 * body->space_room;
		body->spaces = weir_realloc(body->spaces, body->space_room, sizeof *body->spaces);
	}
	body->spaces[body->space_count++] = *network;
}

static void take_entry(struct weir_exempt_body *body, struct weir_span entry, const char *place, uint64_t number)
{
	struct weir_network networks[WEIR_RANGE_NETWORKS_MAX];
	char words[160], shown[SHOWN_BYTES + 1], text[WEIR_NETWORK_TEXT_BYTES];
	const char *why = "";
	uint32_t count = entry.length <= ENTRY_MAX_BYTES ? weir_networks_parse(entry, networks, &why) : 0;
	if (count == 0) {
		snprintf(shown, sizeof shown, "%.*s", (int)(entry.length < SHOWN_BYTES ? entry.length : SHOWN_BYTES), entry.at);
		weir_words_clean(shown);
		snprintf(words, sizeof words, "\"%s\" is no address", shown);
		refuse(body, place, number, words);
		return;
	}
	for (uint32_t i = 0; i < count; i++)
		if (is_too_wide(&networks[i])) {
			snprintf(words, sizeof words, "%s is wider than a list that is fetched may have (/%d, IPv6 /%d)",
			         weir_network_format(&networks[i], text), WEIR_EXEMPT_BODY_PREFIX4, WEIR_EXEMPT_BODY_PREFIX6);
			refuse(body, place, number, words);
			return;
		}
	for (uint32_t i = 0; i < count && body->networks < WEIR_EXEMPT_BODY_NETWORKS_MAX; i++) {
		weir_text_printf(&body->lines, "%s\n", weir_network_format(&networks[i], text));
		add_space(body, &networks[i]);
	}
	body->networks += count;
	body->entries++;
}

/* Up to its remark and without blanks around it. */
static struct weir_span entry_of(const char *at, const char *end)
{
	while (at < end && memchr(" \t\r", *at, 3) != NULL)
		at++;
	const char *last = at;
	while (last < end && *last != '#' && *last != ';')
		last++;
	while (last > at && memchr(" \t\r", last[-1], 3) != NULL)
		last--;
	return (struct weir_span){.at = at, .length = (uint32_t)(last - at)};
}

static void read_lines(struct weir_exempt_body *body, const char *at, const char *end)
{
	for (uint64_t number = 1; at < end && body->networks <= WEIR_EXEMPT_BODY_NETWORKS_MAX; number++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at)), *last = newline != NULL ? newline : end;
		struct weir_span entry = entry_of(at, last);
		if (entry.length > 0)
			take_entry(body, entry, "line", number);
		at = newline != NULL ? newline + 1 : end;
	}
}

static bool is_member(const char *name)
{
	static const char *const names[] = {"ipv4Prefix", "ipv6Prefix", "ip_prefix", "ipv6_prefix"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

/* An array's texts are entries where the whole is an array; an object's where their names say so. */
static void read_value(struct weir_exempt_body *body, const json_t *value, bool taken, int depth, uint64_t *number)
{
	const char *name;
	json_t *member;
	if (json_is_string(value) && taken)
		take_entry(body, (struct weir_span){json_string_value(value), (uint32_t)json_string_length(value)}, "entry",
		           ++*number);
	for (size_t i = 0; depth < JSON_DEPTH_MAX && i < json_array_size(value); i++)
		read_value(body, json_array_get(value, i), taken, depth + 1, number);
	if (depth < JSON_DEPTH_MAX && json_is_object(value))
		json_object_foreach((json_t *)(uintptr_t)value, name, member)
			read_value(body, member, is_member(name), depth + 1, number);
}

static enum weir_status read_json(struct weir_exempt_body *body, const char *at, const char *end,
                                  struct weir_error *error)
{
	json_error_t wrong;
	uint64_t number = 0;
	json_t *root = json_loadb(at, (size_t)(end - at), 0, &wrong);
	if (root == NULL)
		return weir_fail(error, WEIR_INVALID, "is no whole JSON: it ends or goes wrong at line %d", wrong.line);
	read_value(body, root, json_is_array(root), 0, &number);
	json_decref(root);
	return WEIR_OK;
}

static int compare_networks(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct weir_network));
}

/* Of all that there is of IPv4, and of IPv6, the part that the networks cover. What lies in another counts once. */
static void sum_spaces(const struct weir_exempt_body *body, double *part4, double *part6)
{
	const struct weir_network *outer = NULL;
	if (body->space_count > 0)
		qsort(body->spaces, body->space_count, sizeof *body->spaces, compare_networks);
	for (uint32_t i = 0; i < body->space_count; i++) {
		const struct weir_network *network = &body->spaces[i];
		if (outer != NULL && weir_network_contains(outer, &network->base))
			continue;
		outer = network;
		if (is_v4(network))
			*part4 += ldexp(1, 96 - network->prefix);
		else
			*part6 += ldexp(1, -network->prefix);
	}
}

static enum weir_status check(const struct weir_exempt_body *body, struct weir_error *error)
{
	if (body->networks > WEIR_EXEMPT_BODY_NETWORKS_MAX)
		return weir_fail(error, WEIR_INVALID, "has more than %d networks", WEIR_EXEMPT_BODY_NETWORKS_MAX);
	if (body->bad > body->entries)
		return weir_fail(error, WEIR_INVALID, "is no list of addresses: %u of its %llu entries are none (%.*s)",
		                 body->bad, (unsigned long long)body->bad + body->entries, (int)body->mistakes.length,
		                 body->mistakes.at);
	if (body->entries == 0)
		return weir_fail(error, WEIR_INVALID, "has no address in it");
	double part4 = 0, part6 = 0;
	sum_spaces(body, &part4, &part6);
	if (part4 > ldexp(1, -WEIR_EXEMPT_BODY_ALL4) || part6 > ldexp(1, -WEIR_EXEMPT_BODY_ALL6))
		return weir_fail(error, WEIR_INVALID,
		                 "exempts too many: its networks are wider together than a list that is fetched may be (/%d of "
		                 "IPv4, /%d of IPv6)",
		                 WEIR_EXEMPT_BODY_ALL4, WEIR_EXEMPT_BODY_ALL6);
	return WEIR_OK;
}

static const char *skip_blanks(const char *at, const char *end)
{
	while (at < end && memchr(" \t\r\n", *at, 4) != NULL)
		at++;
	return at;
}

/* An address of IPv6 may begin with a bracket, too. */
static bool is_json(const char *at, const char *end)
{
	const char *next = skip_blanks(at + 1, end);
	return *at == '{' || (*at == '[' && next < end && memchr("\"{[]", *next, 4) != NULL);
}

enum weir_status weir_exempt_body_read(struct weir_span bytes, struct weir_exempt_body *body, struct weir_error *error)
{
	if (bytes.length == 0)
		return weir_fail(error, WEIR_INVALID, "is empty");
	bool marked = bytes.length >= 3 && memcmp(bytes.at, "\xef\xbb\xbf", 3) == 0;
	const char *begin = bytes.at + (marked ? 3 : 0), *end = bytes.at + bytes.length, *at = skip_blanks(begin, end);
	enum weir_status status = WEIR_OK;
	if (at == end)
		return weir_fail(error, WEIR_INVALID, "is empty");
	if (*at == '<')
		return weir_fail(error, WEIR_INVALID, "is a page of HTML");
	if (is_json(at, end))
		status = read_json(body, at, end, error);
	else
		read_lines(body, begin, end);
	return status == WEIR_OK ? check(body, error) : status;
}

void weir_exempt_body_deinit(struct weir_exempt_body *body)
{
	weir_text_deinit(&body->lines);
	weir_text_deinit(&body->mistakes);
	free(body->spaces);
	*body = (struct weir_exempt_body){0};
}
