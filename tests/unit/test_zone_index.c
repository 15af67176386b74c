/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index of zones against the obvious: literals compared one after another, and zones asked one after another, each by a
 * matcher of its own, which has no index.
 */
#include "common/base/alloc.h"
#include "common/matcher/literal_index.h"
#include "common/matcher/matcher.h"
#include "common/matcher/zone_index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* Numbers that are the same in each run. */
static uint64_t random_state = 1;

static uint32_t below(uint32_t end)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(random_state >> 33) % end;
}

/* ---- literals ---- */

enum { OWNERS = 64, TEXTS = 200, TEXT_BYTES = 12 };

static bool fits(const struct weir_literal *literal, struct weir_span value)
{
	if (literal->whole)
		return weir_span_equal(literal->text, value);
	return value.length >= literal->text.length && memcmp(value.at, literal->text.at, literal->text.length) == 0;
}

static uint64_t fitting(const struct weir_literal *literals, uint32_t count, struct weir_span value)
{
	uint64_t owners = 0;
	for (uint32_t i = 0; i < count; i++)
		if (fits(&literals[i], value))
			owners |= UINT64_C(1) << literals[i].owner;
	return owners;
}

/* Of few letters, so that texts begin with one another; a NUL and a byte beyond ASCII among them. */
static struct weir_span random_text(char *bytes, uint32_t letters, uint32_t length)
{
	static const char alphabet[] = {'a', 'b', '/', '\0', '\xff', '%'};
	for (uint32_t i = 0; i < length; i++)
		bytes[i] = alphabet[below(letters)];
	return (struct weir_span){.at = bytes, .length = length};
}

static void literals_are_found_as_by_comparing_each(void **state)
{
	(void)state;
	static char bytes[TEXTS][TEXT_BYTES];
	static struct weir_literal literals[TEXTS];
	uint64_t found = 0;
	for (int round = 0; round < 600; round++) {
		struct weir_literal_index index;
		uint32_t count = below(round % 2 == 0 ? 8 : TEXTS), letters = 1 + below(6);
		for (uint32_t i = 0; i < count; i++)
			literals[i] = (struct weir_literal){.text = random_text(bytes[i], letters, below(TEXT_BYTES)),
			                                    .owner = below(OWNERS),
			                                    .whole = below(2) == 0};
		qsort(literals, count, sizeof *literals, weir_literal_compare);
		weir_literal_index_init(&index, literals, count);
		assert_true(index.node_count <= 2 * index.key_count && index.key_count <= count);
		for (int i = 0; i < 200; i++) {
			char value_bytes[2 * TEXT_BYTES];
			struct weir_span value = random_text(value_bytes, letters, below(2 * TEXT_BYTES));
			uint64_t owners = 0;
			weir_literal_index_mark(&index, value, &owners);
			assert_true(owners == fitting(literals, count, value));
			found += owners != 0;
		}
		weir_literal_index_deinit(&index);
	}
	assert_true(found > 10000);
}

/* "a", "aa", ... : as deep as values allow, and as many as a policy may have room for. */
static void literals_may_begin_with_one_another_to_any_depth(void **state)
{
	(void)state;
	enum { DEPTH = WEIR_MATCH_VALUE_MAX_BYTES, LONG = 1 << 20 };
	struct weir_literal *literals = weir_alloc(DEPTH, sizeof *literals);
	char *value = weir_alloc(LONG, 1);
	struct weir_literal_index index;
	memset(value, 'a', LONG);
	for (uint32_t i = 0; i < DEPTH; i++)
		literals[i] = (struct weir_literal){.text = {.at = value, .length = i + 1}, .owner = i % OWNERS};
	weir_literal_index_init(&index, literals, DEPTH);
	for (uint32_t length = 0; length <= OWNERS; length++) {
		uint64_t owners = 0;
		weir_literal_index_mark(&index, (struct weir_span){.at = value, .length = length}, &owners);
		assert_true(owners == (length == OWNERS ? UINT64_MAX : (UINT64_C(1) << length) - 1));
	}
	uint64_t owners = 0;
	weir_literal_index_mark(&index, (struct weir_span){.at = value, .length = LONG}, &owners);
	assert_true(owners == UINT64_MAX);
	weir_literal_index_deinit(&index);
	free(literals);
	free(value);
}

/* ---- policies ---- */

static const char *const paths[] = {
	"/",       "/api/*",    "/api/v1/*",   "/api/v1/things", "/api/*/edit", "*.php", "*",        "/a%2Fb",
	"/a%252f", "/%61pi/v1", "/login",      "/Login",         "/log*",       "/api",  "/a/../b*", "/?*",
	"/a\\\\b", "/ä",        "/api/v1/t*s", "/b|c",           "/api/v2*"};
static const char *const words[] = {"GET", "POST", "PUT", "get", "G*", "*T", "PATCH", "P*T"};
static const char *const statuses[] = {"4xx", "404", "5xx", "200", "2xx", "301", "999", "0xx"};
static const char *const hosts[] = {"a.example", "*.example", "b.example",   "10.0.0.1",
                                    "b.*",       "A.example", "192.0.2.0/24"};
static const char *const addresses[] = {"10.0.0.1", "10.0.0.0/8", "2001:db8::/32", "::ffff:10.0.0.1",
                                        "192.0.2.1-192.0.2.9"};

static const struct vocabulary {
	const char *field;
	const char *const *values;
	uint32_t count;
} vocabularies[] = {
	{"path", paths, sizeof paths / sizeof *paths},
	{"method", words, sizeof words / sizeof *words},
	{"status", statuses, sizeof statuses / sizeof *statuses},
	{"host", hosts, sizeof hosts / sizeof *hosts},
	{"ip", addresses, sizeof addresses / sizeof *addresses},
	{"tenant", hosts, sizeof hosts / sizeof *hosts},
};

enum { VOCABULARIES = sizeof vocabularies / sizeof *vocabularies };

static void put_values(struct weir_text *text, const struct vocabulary *vocabulary)
{
	weir_text_puts(text, "[");
	for (uint32_t i = 0, count = 1 + below(below(8) == 0 ? 9 : 2); i < count; i++)
		weir_text_printf(text, "%s\"%s\"", i > 0 ? "," : "", vocabulary->values[below(vocabulary->count)]);
	weir_text_puts(text, "]");
}

/* @param indexed  mostly by what can be looked up @param some  names one field at least, as "done" must */
static void put_match(struct weir_text *text, bool indexed, bool some)
{
	uint32_t left = below(4);
	const char *before = "";
	weir_text_puts(text, "{");
	for (uint32_t i = 0; i < VOCABULARIES; i++) {
		if (i == 0 && indexed ? below(8) == 0 : below(VOCABULARIES) >= left)
			continue;
		weir_text_printf(text, "%s\"%s\": ", before, vocabularies[i].field);
		before = ",";
		uint32_t kind = below(indexed ? 12 : 6);
		weir_text_puts(text, kind == 0 ? "{\"not\": " : kind == 1 ? "{\"is\": " : "");
		put_values(text, &vocabularies[i]);
		if (kind == 1) {
			weir_text_puts(text, ", \"not\": ");
			put_values(text, &vocabularies[i]);
		}
		weir_text_puts(text, kind <= 1 ? "}" : "");
	}
	weir_text_puts(text, some && *before == '\0' ? "\"agent\": \"curl\"}" : "}");
}

static void put_zone(struct weir_text *text, uint32_t number, bool indexed)
{
	static const char *const keys[] = {"[\"ip\"]", "[\"user\"]",   "[\"ip\", \"path\"]",
	                                   "[]",       "[\"tenant\"]", "[{\"field\": \"ip\", \"prefix4\": 24}]"};
	weir_text_printf(text, "%s{\"name\": \"z%u\", \"id\": %u, \"key\": %s, \"match\": ", number > 0 ? "," : "", number,
	                 1 + number * 3, keys[below(6)]);
	put_match(text, indexed, false);
	if (below(6) == 0)
		weir_text_puts(text, ", \"exempt\": [\"10.0.0.1\", {\"method\": \"PUT\"}]");
	if (below(6) == 0)
		weir_text_puts(text, ", \"sources\": [\"web\"]");
	if (below(6) == 0)
		weir_text_printf(text, ", \"history\": {\"fields\": [\"%s\", \"agent\"]}",
		                 vocabularies[below(VOCABULARIES)].field);
	weir_text_puts(text, ", \"limits\": [");
	if (below(5) == 0) {
		weir_text_puts(text, "{\"algorithm\": \"queue\", \"length\": 2, \"hold\": \"1m\", \"done\": ");
		put_match(text, indexed, true);
		weir_text_puts(text, "},");
	}
	weir_text_puts(text, "{\"algorithm\": \"fixed_window\", \"rate\": 10, \"window\": \"1m\"}]}");
}

static struct weir_policy *parse(struct weir_text *text)
{
	struct weir_json_document *document;
	struct weir_policy *policy = NULL;
	struct weir_error error;
	if (weir_json_parse("zones", text->at, text->length, &document, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	struct weir_json root = weir_json_root(document);
	if (weir_policy_parse(&root, NULL, &policy, &error) != WEIR_OK)
		fail_msg("%s: %.*s", error.text, (int)text->length, text->at);
	weir_json_document_free(document);
	return policy;
}

/* A policy's matcher, and one for each of its zones. */
struct scene {
	struct weir_policy *policy, *alone;
	struct weir_field_table fields;
	struct weir_matcher *matcher, **matchers;
	struct weir_record record;
	char *bytes;
	struct weir_text made, expected, kept;
};

enum { VALUE_BYTES = 100000 };

static void scene_init(struct scene *scene, struct weir_policy *policy)
{
	struct weir_error error;
	*scene = (struct scene){.policy = policy,
	                        .alone = weir_alloc(policy->zone_count, sizeof *scene->alone),
	                        .matchers = weir_alloc(policy->zone_count, sizeof(struct weir_matcher *)),
	                        .bytes = weir_alloc(VALUE_BYTES, WEIR_FIELD_MAX)};
	weir_field_table_init(&scene->fields);
	assert_int_equal(weir_matcher_new(policy, NULL, &scene->fields, 16, &scene->matcher, &error), WEIR_OK);
	for (uint32_t i = 0; i < policy->zone_count; i++) {
		scene->alone[i] = *policy;
		scene->alone[i].zones += i;
		scene->alone[i].zone_count = 1;
		assert_int_equal(weir_matcher_new(&scene->alone[i], NULL, &scene->fields, 16, &scene->matchers[i], &error),
		                 WEIR_OK);
	}
}

static void scene_deinit(struct scene *scene)
{
	for (uint32_t i = 0; i < scene->policy->zone_count; i++)
		weir_matcher_free(scene->matchers[i]);
	weir_matcher_free(scene->matcher);
	weir_field_table_deinit(&scene->fields);
	free(scene->matchers);
	free(scene->alone);
	free(scene->bytes);
	weir_policy_free(scene->policy);
	weir_text_deinit(&scene->made);
	weir_text_deinit(&scene->expected);
	weir_text_deinit(&scene->kept);
}

static void put_event(struct weir_text *text, const struct weir_matched_event *event)
{
	weir_text_append(text, event->key.at, event->key.length);
	weir_text_printf(text, " %llx %u:", (unsigned long long)event->key_hash, event->partition);
}

static void put_zones(struct weir_text *text, const struct weir_matched_event *event)
{
	for (uint32_t i = 0; i < event->zone_count; i++)
		weir_text_printf(text, " %u%s", event->zones[i].id, event->zones[i].done ? "-done" : "");
}

/* What a policy's matcher makes of the record, as bytes. */
static void match_together(struct scene *scene)
{
	struct weir_matched matched;
	weir_text_clear(&scene->made);
	weir_matcher_match(scene->matcher, &scene->record, &matched);
	for (uint32_t i = 0; i < matched.event_count; i++) {
		put_event(&scene->made, &matched.events[i]);
		put_zones(&scene->made, &matched.events[i]);
		weir_text_puts(&scene->made, "\n");
	}
	if (matched.fields.length > 0)
		weir_text_append(&scene->made, matched.fields.at, matched.fields.length);
}

/* The same of the zones asked one after another: an event for each key, the zones of each, then the fields that are kept. */
static void match_each(struct scene *scene)
{
	uint32_t zones = scene->policy->zone_count;
	struct weir_matched *each = weir_alloc(zones, sizeof *each);
	bool *given = weir_alloc(zones, 1);
	weir_text_clear(&scene->expected);
	for (uint32_t i = 0; i < zones; i++) {
		weir_matcher_match(scene->matchers[i], &scene->record, &each[i]);
		assert_true(each[i].event_count <= 1);
	}
	for (uint32_t i = 0; i < zones; i++) {
		if (each[i].event_count == 0 || given[i])
			continue;
		put_event(&scene->expected, each[i].events);
		for (uint32_t k = i; k < zones; k++)
			if (each[k].event_count > 0 && weir_span_equal(each[k].events->key, each[i].events->key)) {
				put_zones(&scene->expected, each[k].events);
				given[k] = true;
			}
		weir_text_puts(&scene->expected, "\n");
	}
	for (uint32_t field = 0; field < scene->fields.count; field++) {
		struct weir_span value = {0};
		for (uint32_t i = 0; i < zones && value.at == NULL; i++)
			if (each[i].event_count > 0 && each[i].fields.length > 0)
				value = weir_fields_find(each[i].fields, scene->fields.names[field]);
		if (value.at != NULL)
			weir_fields_put(&scene->expected, weir_span_of(scene->fields.names[field]), value);
	}
	free(each);
	free(given);
}

/* A value that some zone may want: one of a vocabulary, with something in place of each star; longer; or any bytes. */
static struct weir_span random_value(const struct vocabulary *vocabulary, char *at)
{
	static const char *const stars[] = {"", "x", "/", "/edit", "example", "v1/", "php", "%2f", "..", "T"};
	const char *text = vocabulary->values[below(vocabulary->count)], *begin = at;
	for (; *text != '\0'; text++)
		if (*text != '*')
			*at++ = *text;
		else
			for (const char *star = stars[below(10)]; *star != '\0'; star++)
				*at++ = *star;
	switch (below(20)) {
	case 0: return random_text(at, 6, below(20));
	case 1:
		for (int i = 0; i < 10000; i++)
			*at++ = "/a"[i % 2];
		break;
	case 2: at -= at > begin; break;
	default: break;
	}
	return (struct weir_span){.at = begin, .length = (uint32_t)(at - begin)};
}

static void set_record(struct scene *scene)
{
	struct weir_record *record = &scene->record;
	memset(record, 0, sizeof *record);
	record->source = below(2) == 0 ? "web" : NULL;
	record->by_name = below(16) == 0;
	for (uint32_t i = 0; i < VOCABULARIES; i++) {
		int field = weir_field_table_find(&scene->fields, weir_span_of(vocabularies[i].field));
		if (field >= 0 && below(8) != 0)
			record->fields[field] = random_value(&vocabularies[i], scene->bytes + (size_t)field * VALUE_BYTES);
	}
	if (below(2) == 0)
		record->fields[WEIR_FIELD_USER] = weir_span_of("10.0.0.1");
	if (below(2) == 0)
		record->fields[WEIR_FIELD_AGENT] = weir_span_of("curl");
}

static void compare(struct scene *scene)
{
	match_together(scene);
	match_each(scene);
	if (scene->made.length != scene->expected.length ||
	    (scene->made.length > 0 && memcmp(scene->made.at, scene->expected.at, scene->made.length) != 0))
		fail_msg("of %s\nmade:\n%.*s\nexpected:\n%.*s", scene->policy->text, (int)scene->made.length, scene->made.at,
		         (int)scene->expected.length, scene->expected.at);
}

static void zones_are_found_as_by_asking_each(void **state)
{
	(void)state;
	uint64_t bytes = 0;
	for (int round = 0; round < 150; round++) {
		struct weir_text text = {0};
		struct scene scene;
		uint32_t zones = 17 + below(round % 5 == 0 ? 200 : 50);
		bool indexed = round % 3 != 0;
		weir_text_puts(&text, "[");
		for (uint32_t i = 0; i < zones; i++)
			put_zone(&text, i, indexed);
		weir_text_puts(&text, "]");
		scene_init(&scene, parse(&text));
		for (int i = 0; i < 60; i++) {
			set_record(&scene);
			compare(&scene);
			bytes += scene.made.length;
		}
		scene_deinit(&scene);
		weir_text_deinit(&text);
	}
	assert_true(bytes > 100000);
}

/* ---- what is looked up ---- */

/* Filters of "match" objects, their index, and how many zones a record of a method and a path meets. */
struct filters {
	struct weir_policy *policy;
	struct weir_field_table fields;
	struct weir_record_filter *filters;
	struct weir_zone_filter *zone_filters;
	struct weir_zone_index *index;
};

static void filters_init(struct filters *filters, struct weir_text *zones)
{
	*filters = (struct filters){.policy = parse(zones)};
	uint32_t count = filters->policy->zone_count;
	filters->filters = weir_alloc(count, sizeof *filters->filters);
	filters->zone_filters = weir_alloc(count, sizeof *filters->zone_filters);
	weir_field_table_init(&filters->fields);
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(
			weir_record_filter_init(&filters->filters[i], &filters->policy->zones[i].match, &filters->fields, NULL),
			WEIR_OK);
		filters->zone_filters[i] = (struct weir_zone_filter){.filter = &filters->filters[i], .zone = i};
	}
	filters->index = weir_zone_index_new(filters->zone_filters, count, count);
	assert_non_null(filters->index);
	weir_text_deinit(zones);
}

static void filters_deinit(struct filters *filters)
{
	weir_zone_index_free(filters->index);
	for (uint32_t i = 0; i < filters->policy->zone_count; i++)
		weir_record_filter_deinit(&filters->filters[i]);
	free(filters->filters);
	free(filters->zone_filters);
	weir_field_table_deinit(&filters->fields);
	weir_policy_free(filters->policy);
}

static uint32_t found(struct filters *filters, const char *method, const char *path)
{
	struct weir_record record = {0};
	uint32_t count = 0;
	record.fields[WEIR_FIELD_METHOD] = weir_span_of(method);
	record.fields[WEIR_FIELD_PATH] = weir_span_of(path);
	record.fields[WEIR_FIELD_STATUS] = weir_span_of("500");
	const uint64_t *bits = weir_zone_index_find(filters->index, &record);
	for (uint32_t i = 0; i < filters->policy->zone_count; i++)
		count += (bits[i / 64] >> i % 64 & 1) && weir_zone_guard_passes(&filters->index->guards[i], &record);
	return count;
}

static void put_route(struct weir_text *text, uint32_t number, const char *match)
{
	weir_text_printf(text,
	                 "%s{\"name\": \"z%u\", \"key\": [\"ip\"], \"match\": %s, \"limits\": [{\"algorithm\": "
	                 "\"fixed_window\", \"rate\": 10, \"window\": \"1m\"}]}%s",
	                 number == 0 ? "[" : ",", number, match, number == 999 ? "]" : "");
}

static void a_line_meets_the_zones_of_its_route(void **state)
{
	(void)state;
	static const char *const methods[] = {"GET", "POST", "PUT", "DELETE"};
	struct weir_text text = {0};
	struct filters filters;
	for (uint32_t i = 0; i < 1000; i++) {
		char match[128];
		snprintf(match, sizeof match, "{\"method\": \"%s\", \"path\": \"/api/v1/r%03u/%s\"}", methods[i % 4], i / 4,
		         i / 4 % 2 == 0 ? "*" : "one");
		put_route(&text, i, match);
	}
	filters_init(&filters, &text);
	assert_int_equal(found(&filters, "GET", "/api/v1/r010/x/y"), 1);
	assert_int_equal(found(&filters, "GET", "/api/v1/r011/one"), 1);
	assert_int_equal(found(&filters, "GET", "/api/v1/r011/ones"), 0);
	assert_int_equal(found(&filters, "GET", "/"), 0);
	assert_int_equal(found(&filters, "GET", "/api/v1/s"), 0);
	filters_deinit(&filters);
}

static void what_most_zones_share_is_not_looked_up(void **state)
{
	(void)state;
	struct weir_text text = {0};
	struct filters filters;
	for (uint32_t i = 0; i < 1000; i++) {
		char match[128];
		snprintf(match, sizeof match, "{\"method\": \"M%u\", \"path\": [\"/api/*\", \"/health\"], \"status\": \"5xx\"}",
		         i);
		put_route(&text, i, i < 2 ? "{\"status\": {\"not\": \"2xx\"}}" : match);
	}
	filters_init(&filters, &text);
	assert_int_equal(found(&filters, "M7", "/api/x"), 3);
	assert_int_equal(found(&filters, "M", "/api/x"), 2);
	filters_deinit(&filters);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(literals_are_found_as_by_comparing_each),
		cmocka_unit_test(literals_may_begin_with_one_another_to_any_depth),
		cmocka_unit_test(zones_are_found_as_by_asking_each),
		cmocka_unit_test(a_line_meets_the_zones_of_its_route),
		cmocka_unit_test(what_most_zones_share_is_not_looked_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
