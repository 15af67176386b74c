/* SPDX-License-Identifier: Apache-2.0 */
/* Zones are compared by their canonical text, in which every default is filled in: what differs there differs. */
#include "deploy/weir/policy/policy_changes.h"

#include "common/bytes/http_address.h"
#include "common/json/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 256, ELEMENTS_SHOWN = 3, LEAP = 10 };

void policy_words_zones(struct weir_text *text, const struct weir_policy *policy)
{
	for (uint32_t i = 0; i < policy->zone_count; i++) {
		char *sentence = weir_zone_describe(&policy->zones[i]);
		weir_text_printf(text, "%u  ", policy->zones[i].id);
		weir_text_puts(text, sentence);
		weir_text_puts(text, "\n");
		free(sentence);
	}
}

/* A policy's zones as JSON, by id. */
static json_t *zones_of(const struct weir_policy *policy)
{
	json_t *root = policy != NULL ? json_loads(policy->text, 0, NULL) : NULL;
	json_t *zones = json_incref(json_object_get(root, "zones"));
	json_decref(root);
	return zones;
}

static const json_t *find_zone(const json_t *zones, json_int_t id)
{
	for (size_t i = 0; i < json_array_size(zones); i++)
		if (json_integer_value(json_object_get(json_array_get(zones, i), "id")) == id)
			return json_array_get(zones, i);
	return NULL;
}

static void put_comma(struct weir_text *text, size_t start)
{
	weir_text_puts(text, text->length > start ? ", " : "");
}

/* An address of HTTP is shown without what may be secret in it. */
static void put_value(struct weir_text *text, const json_t *value)
{
	const char *list = json_string_value(json_object_get(value, "list"));
	json_t *copy = NULL;
	if (list != NULL) {
		struct weir_text shown = {0};
		weir_http_address_show(list, &shown);
		copy = json_copy((json_t *)(uintptr_t)value);
		json_object_set_new(copy, "list", json_stringn(shown.at, shown.length));
		weir_text_deinit(&shown);
	}
	char *dumped = json_dumps(copy != NULL ? copy : value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);
	if (json_is_string(value))
		weir_http_address_show(json_string_value(value), text);
	else
		weir_text_puts(text, dumped != NULL ? dumped : "nothing");
	free(dumped);
	json_decref(copy);
}

static bool contains(const json_t *list, const json_t *value)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (json_equal(json_array_get(list, i), value))
			return true;
	return false;
}

/* The elements of one list that are not in the other, each behind a sign. */
static void put_elements(struct weir_text *text, size_t start, const char *path, char sign, const json_t *of,
                         const json_t *other)
{
	size_t shown = 0, more = 0;
	for (size_t i = 0; i < json_array_size(of); i++) {
		const json_t *element = json_array_get(of, i);
		if (contains(other, element))
			continue;
		if (shown++ >= ELEMENTS_SHOWN) {
			more++;
			continue;
		}
		put_comma(text, start);
		weir_text_printf(text, "%s %c", path, sign);
		put_value(text, element);
	}
	if (more > 0)
		weir_text_printf(text, ", %s %c%zu more", path, sign, more);
}

/* Where two values differ: "limits[0].rate 100 -> 20". */
static void put_difference(struct weir_text *text, size_t start, const char *path, const json_t *was, const json_t *is)
{
	char inner[PATH_BYTES];
	const char *name;
	json_t *value;
	if (json_equal(was, is))
		return;
	if (json_is_object(was) && json_is_object(is)) {
		json_object_foreach((json_t *)(uintptr_t)is, name, value)
		{
			snprintf(inner, sizeof inner, "%s%s%s", path, *path != '\0' ? "." : "", name);
			put_difference(text, start, inner, json_object_get(was, name), value);
		}
		json_object_foreach((json_t *)(uintptr_t)was, name, value)
		{
			snprintf(inner, sizeof inner, "%s%s%s", path, *path != '\0' ? "." : "", name);
			if (json_object_get(is, name) == NULL)
				put_difference(text, start, inner, value, NULL);
		}
	} else if (json_is_array(was) && json_is_array(is) && json_array_size(was) == json_array_size(is) &&
	           json_is_object(json_array_get(is, 0))) {
		for (size_t i = 0; i < json_array_size(is); i++) {
			snprintf(inner, sizeof inner, "%s[%zu]", path, i);
			put_difference(text, start, inner, json_array_get(was, i), json_array_get(is, i));
		}
	} else if (json_is_array(was) && json_is_array(is)) {
		put_elements(text, start, path, '+', is, was);
		put_elements(text, start, path, '-', was, is);
	} else {
		put_comma(text, start);
		weir_text_printf(text, "%s ", path);
		put_value(text, was);
		weir_text_puts(text, " -> ");
		put_value(text, is);
	}
}

static void put_change(struct weir_text *text, size_t start, const json_t *zone, const char *words)
{
	put_comma(text, start);
	weir_text_puts(text, json_string_value(json_object_get(zone, "name")));
	weir_text_puts(text, words);
}

static void put_zone_change(struct weir_text *text, size_t start, const json_t *was, const json_t *zone)
{
	put_change(text, start, zone, " changed (");
	put_difference(text, text->length, "", was, zone);
	weir_text_puts(text, ")");
}

static void put_leap(struct weir_text *text, const struct weir_zone *zone, uint32_t number, int64_t was, int64_t is)
{
	weir_text_printf(text, "zone \"%s\", limits[%u]: lets pass %lld where it let pass %lld: %s\n", zone->name, number,
	                 (long long)is, (long long)was,
	                 is < was ? "many more may be blocked than before" : "far fewer may be blocked than before");
}

void policy_words_leaps(struct weir_text *text, const struct weir_policy *before, const struct weir_policy *after)
{
	for (uint32_t z = 0; before != NULL && z < after->zone_count; z++) {
		const struct weir_zone *zone = &after->zones[z], *was = weir_policy_zone(before, zone->id);
		for (uint32_t i = 0; was != NULL && i < zone->limit_count && i < was->limit_count; i++) {
			const struct weir_limit *old = &was->limits[i], *new = &zone->limits[i];
			if (old->algorithm == new->algorithm && old->window_ms == new->window_ms &&
			    (new->rate <= old->rate / LEAP || new->rate / LEAP >= old->rate))
				put_leap(text, zone, i, old->rate, new->rate);
		}
	}
}

bool policy_words_changes(struct weir_text *text, const struct weir_policy *before, const struct weir_policy *after)
{
	json_t *old = zones_of(before), *new = zones_of(after);
	size_t start = text->length;
	for (size_t i = 0; i < json_array_size(new); i++) {
		const json_t *zone = json_array_get(new, i);
		const json_t *was = find_zone(old, json_integer_value(json_object_get(zone, "id")));
		if (was == NULL)
			put_change(text, start, zone, " new");
		else if (!json_equal(was, zone))
			put_zone_change(text, start, was, zone);
	}
	for (size_t i = 0; i < json_array_size(old); i++) {
		const json_t *zone = json_array_get(old, i);
		if (find_zone(new, json_integer_value(json_object_get(zone, "id"))) == NULL)
			put_change(text, start, zone, " removed");
	}
	bool differs = text->length > start;
	if (!differs)
		weir_text_puts(text, "no zone differs");
	json_decref(old);
	json_decref(new);
	return differs;
}
