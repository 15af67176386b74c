/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "exempt": networks and words, from the configuration or from files.
 *
 * A file of few entries is read here and nowhere later, so that the policy's record in the log holds all of it and
 * other machines need no file. One of more stays a file: the policy names it, and who matches records reads it.
 */
#include "common/base/alloc.h"
#include "common/bytes/http_address.h"
#include "common/json/json_shape.h"
#include "common/policy/exempt_entries.h"
#include "common/policy/internal.h"

#include <stdlib.h>
#include <string.h>

enum { EXEMPT_MAX = 100000, FILE_ENTRIES_MAX = 10000 };

static void add_network(void *context, const struct weir_network *network)
{
	struct weir_zone *zone = context;
	uint32_t count = zone->exempt_network_count++;
	if ((count & (count - 1)) == 0) /* a power of two: the array is full */
		zone->exempt_networks =
			weir_realloc(zone->exempt_networks, count == 0 ? 1 : 2 * (size_t)count, sizeof *network);
	zone->exempt_networks[count] = *network;
}

static void add_word(void *context, struct weir_span word)
{
	struct weir_zone *zone = context;
	uint32_t count = zone->exempt_word_count++;
	if ((count & (count - 1)) == 0)
		zone->exempt_words = weir_realloc(zone->exempt_words, count == 0 ? 1 : 2 * (size_t)count, sizeof(char *));
	zone->exempt_words[count] = weir_copy(word.at, word.length);
}

static enum weir_status check_count(const struct weir_json *at, const struct weir_zone *zone, struct weir_error *error)
{
	if (zone->exempt_network_count + zone->exempt_word_count <= EXEMPT_MAX)
		return WEIR_OK;
	return weir_json_fail(at, error, "is one entry too many: at most %d are allowed beside {\"list\": PATH}",
	                      EXEMPT_MAX);
}

static enum weir_status add_entry(const struct weir_json *at, struct weir_zone *zone, const char *text,
                                  struct weir_error *error)
{
	const struct weir_exempt_taker taker = {.context = zone, .network = add_network, .word = add_word};
	struct weir_error wrong;
	if (weir_exempt_entry(text, &taker, &wrong) != WEIR_OK)
		return weir_json_fail(at, error, "%s", wrong.text);
	return check_count(at, zone, error);
}

static char **add_path(char **paths, uint32_t *count, const char *path)
{
	paths = weir_realloc(paths, *count + (size_t)1, sizeof *paths);
	paths[(*count)++] = weir_copy(path, strlen(path));
	return paths;
}

/* A zone may name the list that all zones have. */
static void add_list(struct weir_zone *zone, const char *path)
{
	for (uint32_t i = 0; i < zone->exempt_list_count; i++)
		if (strcmp(zone->exempt_lists[i], path) == 0)
			return;
	zone->exempt_lists = add_path(zone->exempt_lists, &zone->exempt_list_count, path);
}

/* Takes back what a file gave. */
static void drop_entries(struct weir_zone *zone, uint32_t networks, uint32_t words)
{
	while (zone->exempt_word_count > words)
		free(zone->exempt_words[--zone->exempt_word_count]);
	zone->exempt_network_count = networks;
}

/* The entries of a file, or the file itself where they are many. */
static enum weir_status read_file(const struct weir_json *at, struct weir_zone *zone, const char *path,
                                  struct weir_error *error)
{
	const struct weir_exempt_taker taker = {
		.context = zone, .network = add_network, .word = add_word, .most = FILE_ENTRIES_MAX};
	uint32_t networks = zone->exempt_network_count, words = zone->exempt_word_count, count;
	struct weir_exempt_file_state state;
	struct weir_error wrong;
	if (weir_exempt_file_read(path, &taker, &state, &count, &wrong) != WEIR_OK)
		return weir_json_fail(at, error, "%s", wrong.text);
	if (count > FILE_ENTRIES_MAX) {
		drop_entries(zone, networks, words);
		add_list(zone, path);
		return WEIR_OK;
	}
	zone->exempt_files = weir_realloc(zone->exempt_files, zone->exempt_file_count + 1, sizeof *zone->exempt_files);
	zone->exempt_files[zone->exempt_file_count++] =
		(struct weir_exempt_file){.path = weir_copy(path, strlen(path)), .state = state};
	return check_count(at, zone, error);
}

#define PATH_NEEDED "the path of a list with one entry per line"

static const struct weir_json_rule file_members[] = {
	{.name = "file",
     .kind = WEIR_JSON_TEXT,
     .needed = PATH_NEEDED,
     .meaning = "a file, copied into the policy if short"},
	{.name = NULL},
};
static const struct weir_json_rule list_members[] = {
	{.name = "list",
     .kind = WEIR_JSON_TEXT,
     .needed = PATH_NEEDED,
     .meaning = "a file that every collector reads, or an address of HTTP that it fetches"},
	{.name = NULL},
};

static json_t *verified_shape(void)
{
	return weir_shape_list(1, WEIR_VERIFIED_MAX, weir_verified_shape());
}

static const struct weir_json_rule verified_members[] = {
	{.name = "verified",
     .meaning = "robots whose hosts are asked for by name: search engines, or {\"agent\": ..., \"hosts\": [...]}",
     .shape = verified_shape},
	{.name = NULL},
};

/* A list may be another server's. */
static enum weir_status check_address(const struct weir_json *at, const char *address, bool list,
                                      struct weir_error *error)
{
	struct weir_text host = {0};
	if (!weir_http_address_meant(address))
		return WEIR_OK;
	bool good = weir_http_address_host(address, &host);
	weir_text_deinit(&host);
	if (!list)
		return weir_json_fail(at, error, "is the address of a server: lists that are fetched are {\"list\": ADDRESS}");
	for (const char *c = address; *c != '\0'; c++)
		good &= (unsigned char)*c > ' ' && *c != 0x7f;
	return good ? WEIR_OK
	            : weir_json_fail(
					  at, error,
					  "must be https://HOST/..., or http:// on this machine: who is between could exempt anybody");
}

/* {"file": PATH}, or {"list": PATH or ADDRESS}, which is not read here. */
static enum weir_status parse_file(const struct weir_json *at, const struct weir_json_rule *members,
                                   struct weir_zone *zone, struct weir_error *error)
{
	struct weir_json file = weir_json_member(at, members->name);
	const char *path = NULL;
	enum weir_status status;
	if ((status = weir_json_known(at, members, error)) != WEIR_OK ||
	    (status = weir_json_read(at, members, &path, error)) != WEIR_OK ||
	    (status = check_address(&file, path, members == list_members, error)) != WEIR_OK)
		return status;
	if (members == file_members)
		return read_file(&file, zone, path, error);
	add_list(zone, path);
	return WEIR_OK;
}

/* Where an "exempt" names a list; else itself. */
static struct weir_json place_in(const struct weir_json *exempt, const char *path)
{
	static const char *const kinds[] = {"file", "list"};
	size_t count = json_is_array(exempt->value) ? json_array_size(exempt->value) : 0;
	for (size_t i = 0; i < count || (i == 0 && json_is_object(exempt->value)); i++) {
		struct weir_json entry = count > 0 ? weir_json_element(exempt, i) : *exempt;
		for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
			struct weir_json named = weir_json_member(&entry, kinds[k]);
			if (json_is_string(named.value) && strcmp(json_string_value(named.value), path) == 0)
				return named;
		}
	}
	return *exempt;
}

struct weir_json weir_exempt_place(const struct weir_json *root, uint32_t zone, const char *path)
{
	struct weir_json zones = weir_json_member(root, "zones"), at = weir_json_element(&zones, zone);
	struct weir_json own = weir_json_member(&at, "exempt"), shared = weir_json_member(root, "exempt");
	struct weir_json place = place_in(&own, path);
	return place.value != own.value ? place : place_in(&shared, path);
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

/* {"verified": [...]}. All zones and a zone may name the same robot. */
static enum weir_status parse_verified(const struct weir_json *at, struct weir_zone *zone, struct weir_error *error)
{
	struct weir_json list = weir_json_member(at, "verified");
	size_t count = 0;
	enum weir_status status = weir_json_known(at, verified_members, error);
	if (status == WEIR_OK)
		status = weir_json_list(&list, 1, WEIR_VERIFIED_MAX, &count, error);
	if (zone->exempt_verified == NULL)
		zone->exempt_verified = weir_alloc(WEIR_VERIFIED_MAX, sizeof *zone->exempt_verified);
	for (size_t i = 0; i < count && status == WEIR_OK; i++) {
		struct weir_json entry = weir_json_element(&list, i);
		if (zone->exempt_verified_count == WEIR_VERIFIED_MAX)
			return weir_json_fail(&entry, error, "is one too many: at most %d are allowed", WEIR_VERIFIED_MAX);
		status = weir_verified_parse(&entry, &zone->exempt_verified[zone->exempt_verified_count++], error);
	}
	return status;
}

/* A record describes each robot, where a field of "match" has values: one that an older weir wrote may have that field. */
static bool has_robots(const struct weir_json *verified, bool record)
{
	return record ? json_is_object(json_array_get(verified->value, 0)) : weir_json_exists(verified);
}

/* {"file": PATH}, {"list": PATH}, {"verified": ROBOTS}, or fields as in "match". */
static enum weir_status parse_object(const struct weir_json *at, bool record, struct weir_zone *zone,
                                     struct weir_error *error)
{
	struct weir_json file = weir_json_member(at, "file"), list = weir_json_member(at, "list"),
					 verified = weir_json_member(at, "verified");
	if (weir_json_exists(&file))
		return parse_file(at, file_members, zone, error);
	if (json_is_string(list.value))
		return parse_file(at, list_members, zone, error);
	if (has_robots(&verified, record))
		return parse_verified(at, zone, error);
	if (json_object_size(at->value) == 0)
		return weir_json_fail(
			at, error, "must be {\"file\": PATH}, {\"list\": PATH}, or fields such as {\"agent\": [\"monitor/*\"]}");
	if (zone->exempt_match_count == WEIR_ZONE_EXEMPT_MATCHES_MAX)
		return weir_json_fail(at, error, "is one object too many: at most %d are allowed",
		                      WEIR_ZONE_EXEMPT_MATCHES_MAX);
	if (zone->exempt_matches == NULL)
		zone->exempt_matches = weir_alloc(WEIR_ZONE_EXEMPT_MATCHES_MAX, sizeof *zone->exempt_matches);
	return weir_match_parse(at, &zone->exempt_matches[zone->exempt_match_count++], error);
}

/* As parse_object() chooses: by "file", by a "list" that is a string, by "verified", else as "match". */
static json_t *object_shape(void)
{
	json_t *match = weir_shape_named("match");
	json_object_set_new(match, "minProperties", json_integer(1));
	json_t *other = json_pack("{s:{s:[s]}, s:o, s:o}", "if", "required", "verified", "then",
	                          weir_shape_object(verified_members), "else", match);
	json_t *shape = json_pack("{s:{s:{s:{s:s}}, s:[s]}, s:o, s:o}", "if", "properties", "list", "type", "string",
	                          "required", "list", "then", weir_shape_object(list_members), "else", other);
	return json_pack("{s:s, s:{s:[s]}, s:o, s:o}", "type", "object", "if", "required", "file", "then",
	                 weir_shape_object(file_members), "else", shape);
}

static json_t *exempt_shape(json_t *text)
{
	json_t *entry = weir_shape_either(text, object_shape());
	return weir_shape_either(weir_shape_list(0, EXEMPT_MAX, entry), object_shape());
}

json_t *weir_exempt_shape(void)
{
	return exempt_shape(weir_shape_name(0));
}

json_t *weir_exempt_shared_shape(void)
{
	return exempt_shape(weir_shape_pattern("^\\[?[0-9A-Fa-f]*[.:]"));
}

static enum weir_status parse_entry(const struct weir_json *at, bool record, struct weir_zone *zone,
                                    struct weir_error *error)
{
	const char *text = NULL;
	if (json_is_object(at->value))
		return parse_object(at, record, zone, error);
	enum weir_status status = weir_json_string(at, &text, error);
	return status == WEIR_OK ? add_entry(at, zone, text, error) : status;
}

/* A word is a value of one zone's key: among the entries of all zones it would be meant for one and taken by others. */
static enum weir_status refuse_word(const struct weir_json *at, const char *word, struct weir_error *error)
{
	return weir_json_fail(at, error,
	                      "\"%.80s\" is no address: a word is compared with the key of a zone, so give it to that "
	                      "zone's \"exempt\", or name its field, as in {\"user\": [\"...\"]}",
	                      word);
}

/* @param words  whether words may be among the entries */
static enum weir_status parse_exempt(const struct weir_json *at, bool words, bool record, struct weir_zone *zone,
                                     struct weir_error *error)
{
	bool one = json_is_object(at->value);
	size_t count = one ? 1 : 0;
	enum weir_status status = one ? WEIR_OK : weir_json_list(at, 0, EXEMPT_MAX, &count, error);
	for (size_t i = 0; i < count && status == WEIR_OK; i++) {
		struct weir_json entry = one ? *at : weir_json_element(at, i);
		uint32_t before = zone->exempt_word_count;
		status = parse_entry(&entry, record, zone, error);
		if (status == WEIR_OK && !words && zone->exempt_word_count > before)
			status = refuse_word(&entry, zone->exempt_words[before], error);
	}
	return status;
}

enum weir_status weir_exempt_parse(const struct weir_json *own, const struct weir_json *shared, bool record,
                                   struct weir_zone *zone, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	if (shared != NULL && weir_json_exists(shared))
		status = parse_exempt(shared, false, record, zone, error);
	if (status == WEIR_OK && weir_json_exists(own))
		status = parse_exempt(own, true, record, zone, error);
	sort_entries(zone);
	return status;
}
