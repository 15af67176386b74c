/* SPDX-License-Identifier: Apache-2.0 */
/* A record that is given by its fields is a line of JSON: so it is read, and its ip and path settled, as any other. */
#include "deploy/weir/test/subject.h"

#include "collector/follow/inputs.h"
#include "collector/source/kinds/source_kinds.h"
#include "common/base/suggest.h"
#include "deploy/weir/overrides/override_key.h"
#include "deploy/weir/test/template.h"

#include <string.h>

enum { VERSION = 1, POINTER_BEGIN = '/', POINTER_PLAIN = '_' };

#define TIME_MEMBER "_time"
#define COST_MEMBER "_cost"

enum weir_status subject_init(struct subject *subject, const struct weir_config *config, struct weir_error *error)
{
	*subject = (struct subject){.config = config, .partitions = (uint32_t)config->bus.partitions};
	weir_field_table_init(&subject->fields);
	subject->registry = policy_registry_new();
	subject->lists = weir_exempt_lists_new(NULL, NULL);
	if (config->policy == NULL) {
		struct weir_json root = weir_json_root(config->document), zones = weir_json_member(&root, "zones");
		return weir_json_require(&zones, "there is no policy to test", error);
	}
	enum weir_status status =
		policy_registry_add(subject->registry, VERSION, weir_span_of(config->policy->text), error);
	if (status != WEIR_OK)
		return status;
	subject->policy = policy_registry_policy(subject->registry, VERSION);
	return weir_matcher_new(subject->policy, subject->lists, &subject->fields, subject->partitions, &subject->matcher,
	                        error);
}

void subject_deinit(struct subject *subject)
{
	weir_matcher_free(subject->matcher);
	weir_exempt_lists_free(subject->lists);
	policy_registry_free(subject->registry);
	weir_field_table_deinit(&subject->fields);
}

/* ---- zones and keys ---- */

enum weir_status subject_find(const struct subject *subject, const struct weir_json *at, const char *zone,
                              const struct test_key *key, struct subject_key *found, struct weir_error *error)
{
	struct weir_error wrong;
	*found = (struct subject_key){.any = true};
	if (zone == NULL)
		return WEIR_OK;
	struct weir_json zone_at = weir_json_member(at, "zone");
	found->zone = weir_policy_find_zone(subject->policy, weir_span_of(zone), &wrong);
	if (found->zone == NULL)
		return weir_json_fail(&zone_at, error, "%s", wrong.text);
	if (key == NULL)
		return WEIR_OK;
	struct override_options options = {.kind = OVERRIDE_BLOCK, .zone = zone, .value_count = key->count};
	memcpy(options.values, key->values, sizeof options.values);
	found->any = false;
	found->key.kind = OVERRIDE_BLOCK;
	if (override_key_make(&options, subject->policy, &found->key, &wrong) != WEIR_OK)
		return weir_json_fail(&key->at, error, "%s", wrong.text);
	return WEIR_OK;
}

bool subject_is_key(const struct subject_key *wanted, uint32_t zone_id, struct weir_span key)
{
	if (wanted->zone == NULL)
		return true;
	return wanted->zone->id == zone_id && (wanted->any || weir_span_equal(override_key(&wanted->key), key));
}

/* ---- sources and formats ---- */

const char *subject_source_name(const struct subject *subject, size_t place)
{
	if (place >= subject->config->source_count)
		return NULL;
	struct weir_json source = weir_json_element(&subject->config->sources, place);
	const struct source_ops *kind = source_kind(&source);
	struct weir_json name = weir_json_member(&source, "name");
	return kind != NULL && kind->own_name != NULL ? kind->own_name : json_string_value(name.value);
}

/* The only source that has lines; weir's own decisions are made here. */
static size_t only_source(const struct weir_config *config)
{
	size_t found = SIZE_MAX;
	for (size_t i = 0; i < config->source_count; i++) {
		struct weir_json source = weir_json_element(&config->sources, i);
		const struct source_ops *kind = source_kind(&source);
		if (kind != NULL && kind->own_name != NULL)
			continue;
		if (found != SIZE_MAX)
			return SIZE_MAX;
		found = i;
	}
	return found;
}

enum weir_status subject_source(const struct subject *subject, const struct test_given *given, size_t *place,
                                struct weir_error *error)
{
	const struct weir_config *config = subject->config;
	const char *wanted = json_string_value(given->source.value);
	if (!weir_json_exists(&given->source)) {
		*place = only_source(config);
		return WEIR_OK;
	}
	for (*place = 0; *place < config->source_count; ++*place) {
		const char *name = subject_source_name(subject, *place);
		if (wanted != NULL ? name != NULL && strcmp(name, wanted) == 0
		                   : json_integer_value(given->source.value) == (json_int_t)*place)
			return WEIR_OK;
	}
	if (wanted != NULL)
		return weir_json_fail(&given->source, error, "no source of the configuration has the name \"%s\"", wanted);
	return weir_json_fail(&given->source, error, "the configuration has %zu source%s, the first of which is 0",
	                      config->source_count, config->source_count == 1 ? "" : "s");
}

/* {"type": "json", "unit": "ms", "time": …, "fields": …}: a pointer's name is a plain member here. */
static json_t *fields_format(const struct weir_field_table *fields)
{
	json_t *map = json_object();
	for (uint32_t i = 0; i < fields->count; i++)
		if (fields->names[i][0] == POINTER_BEGIN) {
			struct weir_text plain = {0};
			weir_text_puts(&plain, fields->names[i]);
			plain.at[0] = POINTER_PLAIN;
			json_object_set_new(map, fields->names[i], json_stringn(plain.at, plain.length));
			weir_text_deinit(&plain);
		}
	return json_pack("{s:s, s:s, s:s, s:s, s:o}", "type", "json", "unit", "ms", "time", TIME_MEMBER, "cost",
	                 COST_MEMBER, "fields", map);
}

enum weir_status subject_format(const struct subject *subject, const struct test_given *given, size_t place,
                                struct format **format, struct weir_error *error)
{
	if (given->kind == TEST_GIVES_FIELDS) {
		struct weir_json at = given->what;
		at.value = fields_format(&subject->fields);
		enum weir_status status = format_new(&at, &subject->fields, format, error);
		json_decref(at.value);
		return status;
	}
	if (weir_json_exists(&given->format))
		return format_new_behind(NULL, &given->format, &subject->fields, format, error);
	if (place == SIZE_MAX)
		return weir_json_fail(&given->at, error,
		                      subject->config->source_count == 0
		                          ? "the configuration has no source: say the lines' \"format\", as \"combined\""
		                          : "the configuration has several sources: say which by \"source\", its name or its "
		                            "place from 0 on, or the lines' \"format\"");
	return inputs_format(subject->config, &subject->fields, place, format, error);
}

/* ---- fields ---- */

void subject_put_fields(struct weir_text *text, const struct test_given *given, uint64_t number, int64_t time_ms)
{
	const char *name;
	json_t *value;
	struct weir_text made = {0};
	weir_text_puts(text, "{");
	json_object_foreach(given->what.value, name, value)
	{
		weir_text_clear(&made);
		weir_text_puts(&made, name);
		if (name[0] == POINTER_BEGIN)
			made.at[0] = POINTER_PLAIN;
		weir_text_json(text, weir_text_span(&made));
		weir_text_puts(text, ":");
		weir_text_clear(&made);
		if (json_is_string(value)) {
			template_put(
				&made,
				(struct weir_span){.at = json_string_value(value), .length = (uint32_t)json_string_length(value)},
				number, time_ms);
			weir_text_json(text, weir_text_span(&made));
		} else if (json_is_integer(value)) {
			weir_text_int(text, json_integer_value(value));
		} else {
			weir_text_puts(text, json_is_true(value) ? "true" : "false");
		}
		weir_text_puts(text, ",");
	}
	weir_text_printf(text, "\"" TIME_MEMBER "\":%lld,\"" COST_MEMBER "\":%lld}", (long long)time_ms,
	                 (long long)given->cost);
	weir_text_deinit(&made);
}

enum weir_status subject_check_fields(const struct subject *subject, const struct test_given *given,
                                      struct weir_error *error)
{
	const char *name, *names[WEIR_FIELD_MAX + 1] = {NULL};
	json_t *value;
	memcpy(names, subject->fields.names, subject->fields.count * sizeof *names);
	json_object_foreach(given->what.value, name, value)
	{
		if (weir_field_table_find(&subject->fields, weir_span_of(name)) >= 0)
			continue;
		struct weir_json at = weir_json_member(&given->what, name);
		const char *near = weir_nearest_name(name, names);
		return near != NULL
		           ? weir_json_fail(&at, error, "no zone asks for this field (did you mean \"%s\"?)", near)
		           : weir_json_fail(&at, error, "no zone asks for this field, so it says nothing: leave it out");
	}
	return WEIR_OK;
}
