/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "exempt": networks and words, from the configuration or from files.
 *
 * Files are read here and nowhere later, so that the policy's record in the log
 * holds all of it and a replay needs no file. An entry that is an address, a
 * network or a range counts as such, an object says which records by their
 * fields, any other is a word; what only looks like a network is refused, for as
 * a word it would exempt nobody.
 */
#include "common/base/alloc.h"
#include "common/base/read_file.h"
#include "common/policy/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXEMPT_MAX = 100000, EXEMPT_FILE_MAX_BYTES = 16 << 20 };

const char *weir_network_format(const struct weir_network *network, char *buffer)
{
	uint32_t length = weir_address_format(&network->base, buffer);
	bool v4 = weir_address_is_v4(&network->base) && network->prefix >= 96;
	if (network->prefix < 128)
		snprintf(buffer + length, 5, "/%d", v4 ? network->prefix - 96 : network->prefix);
	return buffer;
}

static void add_network(struct weir_zone *zone, const struct weir_network *network)
{
	uint32_t count = zone->exempt_network_count++;
	if ((count & (count - 1)) == 0) /* a power of two: the array is full */
		zone->exempt_networks =
			weir_realloc(zone->exempt_networks, count == 0 ? 1 : 2 * (size_t)count, sizeof *network);
	zone->exempt_networks[count] = *network;
}

/*
 * One entry. `where` is put before the words: the file and line, or nothing.
 */
static enum weir_status add_entry(const struct weir_json *at, struct weir_zone *zone, const char *text,
                                  const char *where, struct weir_error *error)
{
	struct weir_network networks[WEIR_RANGE_NETWORKS_MAX];
	const char *why = "";
	if (*text == '\0')
		return weir_json_fail(at, error, "%smust not be empty", where);
	if (zone->exempt_network_count + zone->exempt_word_count >= EXEMPT_MAX)
		return weir_json_fail(at, error, "%sat most %d entries are allowed", where, EXEMPT_MAX);
	uint32_t more = weir_networks_parse(weir_span_of(text), networks, &why);
	for (uint32_t i = 0; i < more; i++)
		add_network(zone, &networks[i]);
	if (more > 0)
		return WEIR_OK;
	if (weir_network_meant(text) && strchr(text, '*') != NULL)
		return weir_json_fail(at, error,
		                      "%s\"%s\" is a wildcard in an address; give a network such as 192.0.2.0/24, or a "
		                      "range such as 192.0.2.1-192.0.2.9",
		                      where, text);
	if (strcmp(why, "not an address") != 0 || weir_network_meant(text))
		return weir_json_fail(at, error, "%s\"%s\" is not a network: %s", where, text, why);
	uint32_t count = zone->exempt_word_count++;
	if ((count & (count - 1)) == 0)
		zone->exempt_words = weir_realloc(zone->exempt_words, count == 0 ? 1 : 2 * (size_t)count, sizeof(char *));
	zone->exempt_words[count] = weir_copy(text, strlen(text));
	return WEIR_OK;
}

/* A copy of a line without the blanks around it; NULL where JSON, as which the policy travels, cannot hold it. */
static char *line_entry(const char *line, size_t length)
{
	while (length > 0 && memchr(" \t\r", line[length - 1], 3) != NULL)
		length--;
	while (length > 0 && (*line == ' ' || *line == '\t')) {
		line++;
		length--;
	}
	json_t *string = memchr(line, '\0', length) == NULL ? json_stringn(line, length) : NULL;
	char *entry = string != NULL ? weir_copy(line, length) : NULL;
	json_decref(string);
	return entry;
}

/* One entry a line; empty lines and those that begin with '#' are passed over. */
static enum weir_status read_entries(const struct weir_json *at, struct weir_zone *zone, const char *path,
                                     struct weir_error *error)
{
	char *text;
	size_t length;
	struct weir_error failure;
	if (weir_read_file(path, EXEMPT_FILE_MAX_BYTES, &text, &length, &failure) != WEIR_OK)
		return weir_json_fail(at, error, "%s", failure.text);
	enum weir_status status = WEIR_OK;
	const char *end = text + length;
	unsigned number = 1;
	for (const char *line = text; line < end && status == WEIR_OK; number++) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		const char *line_end = newline != NULL ? newline : end;
		char where[300];
		snprintf(where, sizeof where, "%.250s:%u: ", path, number);
		char *entry = line_entry(line, (size_t)(line_end - line));
		if (entry == NULL)
			status = weir_json_fail(at, error, "%sis not UTF-8 text", where);
		else if (*entry != '\0' && *entry != '#')
			status = add_entry(at, zone, entry, where, error);
		free(entry);
		line = line_end + 1;
	}
	free(text);
	return status;
}

static enum weir_status parse_file(const struct weir_json *at, struct weir_zone *zone, struct weir_error *error)
{
	static const char *const names[] = {"file", NULL};
	struct weir_json file = weir_json_member(at, "file");
	const char *path = NULL;
	enum weir_status status;
	if ((status = weir_json_only(at, names, error)) != WEIR_OK ||
	    (status = weir_json_require(&file, "the path of a list with one entry per line", error)) != WEIR_OK ||
	    (status = weir_json_string(&file, &path, error)) != WEIR_OK)
		return status;
	zone->exempt_files = weir_realloc(zone->exempt_files, zone->exempt_file_count + 1, sizeof *zone->exempt_files);
	zone->exempt_files[zone->exempt_file_count++] = weir_copy(path, strlen(path));
	return read_entries(&file, zone, path, error);
}

static int compare_networks(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct weir_network));
}

static int compare_words(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort_entries(struct weir_zone *zone)
{
	uint32_t kept = 0;
	if (zone->exempt_network_count > 0)
		qsort(zone->exempt_networks, zone->exempt_network_count, sizeof *zone->exempt_networks, compare_networks);
	for (uint32_t i = 0; i < zone->exempt_network_count; i++)
		if (kept == 0 || compare_networks(&zone->exempt_networks[kept - 1], &zone->exempt_networks[i]) != 0)
			zone->exempt_networks[kept++] = zone->exempt_networks[i];
	zone->exempt_network_count = kept;
	kept = 0;
	if (zone->exempt_word_count > 0)
		qsort(zone->exempt_words, zone->exempt_word_count, sizeof *zone->exempt_words, compare_words);
	for (uint32_t i = 0; i < zone->exempt_word_count; i++) {
		if (kept == 0 || strcmp(zone->exempt_words[kept - 1], zone->exempt_words[i]) != 0)
			zone->exempt_words[kept++] = zone->exempt_words[i];
		else
			free(zone->exempt_words[i]);
	}
	zone->exempt_word_count = kept;
}

/* {"file": PATH}, or fields as in "match". */
static enum weir_status parse_object(const struct weir_json *at, struct weir_zone *zone, struct weir_error *error)
{
	struct weir_json file = weir_json_member(at, "file");
	if (weir_json_exists(&file))
		return parse_file(at, zone, error);
	if (json_object_size(at->value) == 0)
		return weir_json_fail(at, error, "must be {\"file\": PATH}, or fields such as {\"agent\": [\"monitor/*\"]}");
	if (zone->exempt_match_count == WEIR_ZONE_EXEMPT_MATCHES_MAX)
		return weir_json_fail(at, error, "is one object too many: at most %d are allowed",
		                      WEIR_ZONE_EXEMPT_MATCHES_MAX);
	if (zone->exempt_matches == NULL)
		zone->exempt_matches = weir_alloc(WEIR_ZONE_EXEMPT_MATCHES_MAX, sizeof *zone->exempt_matches);
	return weir_match_parse(at, &zone->exempt_matches[zone->exempt_match_count++], error);
}

enum weir_status weir_exempt_parse(const struct weir_json *at, struct weir_zone *zone, struct weir_error *error)
{
	if (!weir_json_exists(at))
		return WEIR_OK;
	enum weir_status status = WEIR_OK;
	if (json_is_object(at->value)) {
		status = parse_object(at, zone, error);
	} else {
		size_t count = 0;
		status = weir_json_list(at, 0, EXEMPT_MAX, &count, error);
		for (size_t i = 0; i < count && status == WEIR_OK; i++) {
			struct weir_json element = weir_json_element(at, i);
			const char *text = NULL;
			if (json_is_object(element.value))
				status = parse_object(&element, zone, error);
			else if ((status = weir_json_string(&element, &text, error)) == WEIR_OK)
				status = add_entry(&element, zone, text, "", error);
		}
	}
	sort_entries(zone);
	return status;
}
