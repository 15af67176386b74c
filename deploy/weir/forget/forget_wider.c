/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of more fields that have the same values in theirs: whoever is to be forgotten as 203.0.113.5 is so as
 * 203.0.113.5|/login, too. A zone counts no such part by itself, so the archive says which keys there are: it is read
 * in steps, along its indexes. Where it cannot say so, because keys are hashed or there is no archive, the zone is named.
 * A zone of the same fields in another order has just one such key.
 */
#include "deploy/weir/forget/forget.h"

#include "common/base/alloc.h"
#include "deploy/weir/overrides/override_key.h"

#include <stdlib.h>
#include <string.h>

enum { STEP_KEYS = 5000, KEYS_MOST = 500 /* in a run: each is commanded, and waited for */ };

/* What a key of a zone must have, by part, as it stands in a joined key; length 0 and at NULL: anything. */
struct pattern {
	const struct weir_zone *zone;
	struct weir_span parts[WEIR_ZONE_KEY_MAX];
	char texts[WEIR_ZONE_KEY_MAX][WEIR_KEY_MAX_BYTES];
};

struct search {
	struct forget *forget;
	const struct pattern *pattern;
	bool live;
	uint32_t steps_keys;
	char last[WEIR_KEY_MAX_BYTES];
	uint32_t last_length;
	uint32_t found;
	bool too_many;
};

/* Up to the next | that no \ stands before. */
static struct weir_span take_part(struct weir_span *key)
{
	uint32_t end = 0;
	while (end < key->length && key->at[end] != '|')
		end += key->at[end] == '\\' && end + 1 < key->length ? 2 : 1;
	struct weir_span part = {key->at, end};
	bool more = end < key->length;
	*key = (struct weir_span){key->at + end + more, key->length - end - more};
	return part;
}

bool forget_is_shared(const struct weir_zone *zone, struct weir_span key)
{
	struct weir_network network;
	const char *why;
	for (uint32_t i = 0; i < zone->key_count; i++) {
		struct weir_span part = take_part(&key);
		if (weir_key_field_is_address(&zone->key[i]) && weir_network_parse(part, &network, &why) &&
		    network.prefix < 128)
			return true;
	}
	return false;
}

/* ---- which zones, and what their keys must have ---- */

/* The place of a field in a zone's key; its count of fields: it has none. */
static uint32_t place_of(const struct weir_zone *zone, const char *field)
{
	uint32_t place = 0;
	while (place < zone->key_count && strcmp(zone->key[place].field, field) != 0)
		place++;
	return place;
}

/* A value as the zone's key has it: an address as its network. */
static bool write_part(const struct forget *forget, uint32_t value, struct pattern *pattern, uint32_t place)
{
	struct override_options options = {.kind = OVERRIDE_LIFT, .values = {forget->options.values[value]}};
	struct override_command command = {.kind = OVERRIDE_LIFT};
	struct weir_zone part = *pattern->zone;
	options.value_count = part.key_count = 1;
	part.key[0] = pattern->zone->key[place];
	if (override_key_join(&options, &part, &command, NULL) != WEIR_OK)
		return false;
	memcpy(pattern->texts[place], command.key, command.key_length);
	pattern->parts[place] = (struct weir_span){pattern->texts[place], command.key_length};
	return true;
}

/* Of a zone that has all fields of one whose key the values are, in another order, or more. */
static bool make_pattern(const struct forget *forget, const struct weir_zone *known, const struct weir_zone *wider,
                         struct pattern *pattern)
{
	*pattern = (struct pattern){.zone = wider};
	if (wider->key_count < known->key_count)
		return false;
	for (uint32_t i = 0; i < known->key_count; i++) {
		uint32_t place = place_of(wider, known->key[i].field);
		if (place == wider->key_count || !write_part(forget, i, pattern, place))
			return false;
	}
	return known->key_count > 0;
}

/* ---- its keys ---- */

static bool fits(const struct pattern *pattern, struct weir_span key)
{
	for (uint32_t i = 0; i < pattern->zone->key_count; i++) {
		struct weir_span part = take_part(&key);
		if (pattern->parts[i].at != NULL && !weir_span_equal(part, pattern->parts[i]))
			return false;
	}
	return true;
}

static enum weir_status take_key(void *context, const struct weir_sql_value *columns, unsigned count)
{
	struct search *search = context;
	const struct weir_zone *zone = search->pattern->zone;
	struct weir_span key = columns[0].text;
	(void)count;
	search->steps_keys++;
	if (key.length == 0 || key.length > sizeof search->last)
		return WEIR_OK;
	memcpy(search->last, key.at, key.length);
	search->last_length = key.length;
	if (!fits(search->pattern, key) || forget_has(search->forget, zone->id, zone->name, key))
		return WEIR_OK;
	if (search->found == KEYS_MOST) {
		search->too_many = true;
		return WEIR_END;
	}
	search->found++;
	forget_add(search->forget, zone, key, search->live);
	return WEIR_OK;
}

/* Whether all keys that begin with the first value come before the last one that was read. */
static bool is_behind(const struct search *search)
{
	struct weir_span first = search->pattern->parts[0];
	int order = memcmp(search->last, first.length > 0 ? first.at : "",
	                   search->last_length < first.length ? search->last_length : first.length);
	return first.at != NULL &&
	       (order > 0 || (order == 0 && search->last_length > first.length && search->last[first.length] > '|'));
}

/* All of them that a table has, in the order of keys. */
static enum weir_status search_table(struct search *search, enum weir_archive_table table, struct weir_error *error)
{
	const struct weir_zone *zone = search->pattern->zone;
	struct weir_store *store = search->forget->backend.store;
	bool by_name = weir_archive_names[table].by_name;
	struct weir_text sql = {0};
	weir_text_printf(&sql,
	                 WEIR_SQL_SELECT "DISTINCT bucket FROM %s WHERE %s = ? AND bucket > ? ORDER BY bucket LIMIT %d",
	                 weir_archive_names[table].table, by_name ? "zone" : "zone_id", STEP_KEYS);
	weir_text_append(&sql, "", 1);
	/* Where the first value is known, keys begin with it. */
	search->last_length = search->pattern->parts[0].length;
	if (search->last_length > 0)
		memcpy(search->last, search->pattern->parts[0].at, search->last_length);
	enum weir_status status = WEIR_OK;
	bool more = true;
	while (status == WEIR_OK && more) {
		char after[WEIR_KEY_MAX_BYTES];
		memcpy(after, search->last, search->last_length);
		const struct weir_sql_value values[] = {by_name ? weir_sql_text(weir_span_of(zone->name))
		                                                : weir_sql_number(zone->id),
		                                        weir_sql_text((struct weir_span){after, search->last_length})};
		search->steps_keys = 0;
		status = store->ops->query(store, sql.at, values, 2, take_key, search, error);
		more = search->steps_keys == STEP_KEYS && !is_behind(search);
	}
	weir_text_deinit(&sql);
	return status == WEIR_END ? WEIR_OK : status;
}

/* ---- where they cannot be found ---- */

static void put_fields(struct weir_text *text, const struct pattern *pattern, bool known)
{
	bool some = false;
	for (uint32_t i = 0; i < pattern->zone->key_count; i++) {
		if (known && pattern->parts[i].at == NULL)
			continue;
		weir_text_printf(text, "%s%s", some ? ", " : "", pattern->zone->key[i].field);
		some = true;
	}
}

static void put_unfound(struct forget *forget, const struct pattern *pattern, const char *why)
{
	struct weir_text *text = &forget->unfound;
	weir_text_printf(text, "zone %s: its key (", pattern->zone->name);
	put_fields(text, pattern, false);
	weir_text_puts(text, ") also has ");
	put_fields(text, pattern, true);
	weir_text_printf(text, ", and %s: give all values of each, or choose a zone with --zone\n", why);
}

static enum weir_status take_any(void *context, const struct weir_sql_value *columns, unsigned count)
{
	(void)columns;
	(void)count;
	*(bool *)context = true;
	return WEIR_OK;
}

/* Whether the archive has rows of a zone, whoever's. */
static enum weir_status has_any(const struct forget *forget, const struct weir_zone *zone, bool *has,
                                struct weir_error *error)
{
	struct weir_store *store = forget->backend.store;
	enum weir_status status = WEIR_OK;
	for (int table = 0; status == WEIR_OK && table < WEIR_ARCHIVE_KEYED && !*has; table++) {
		struct weir_text sql = {0};
		bool by_name = weir_archive_names[table].by_name;
		weir_text_printf(&sql, WEIR_SQL_SELECT "%s FROM %s WHERE %s = ? LIMIT 1", weir_archive_names[table].time,
		                 weir_archive_names[table].table, by_name ? "zone" : "zone_id");
		weir_text_append(&sql, "", 1);
		const struct weir_sql_value value =
			by_name ? weir_sql_text(weir_span_of(zone->name)) : weir_sql_number(zone->id);
		status = store->ops->query(store, sql.at, &value, 1, take_any, has, error);
		weir_text_deinit(&sql);
	}
	return status;
}

static enum weir_status search_zone(struct forget *forget, const struct pattern *pattern, bool live,
                                    struct weir_error *error)
{
	struct search search = {.forget = forget, .pattern = pattern, .live = live};
	enum weir_status status = WEIR_OK;
	if (forget->hash != NULL) {
		bool has_rows = false;
		status = has_any(forget, pattern->zone, &has_rows, error);
		if (has_rows)
			put_unfound(forget, pattern, "keys are kept as hashes, which do not say which these are");
		return status;
	}
	if (live && !forget->backend.once && !forget_is_archived(forget))
		put_unfound(forget, pattern, "no archive says which keys there are");
	for (int table = 0; status == WEIR_OK && table < WEIR_ARCHIVE_KEYED && !search.too_many; table++)
		status = search_table(&search, (enum weir_archive_table)table, error);
	if (status == WEIR_IO) { /* the key itself is forgotten all the same */
		put_unfound(forget, pattern, error->text);
		status = WEIR_OK;
	}
	if (search.too_many)
		weir_text_printf(&forget->unfound,
		                 "zone %s: more than %d of its keys have these values: run it again for the rest\n",
		                 pattern->zone->name, KEYS_MOST);
	return status;
}

/* Whether a zone of a policy stands in a newer one, too: it was searched with that. */
static bool is_in_newer(const struct forget *forget, size_t policy, const struct weir_zone *zone)
{
	for (size_t p = policy + 1; p < forget->history.count; p++)
		for (uint32_t i = 0; i < forget->history.policies[p]->zone_count; i++) {
			const struct weir_zone *other = &forget->history.policies[p]->zones[i];
			if (other->id == zone->id && strcmp(other->name, zone->name) == 0)
				return true;
		}
	return false;
}

/*
 * A zone that has the fields of a known one in another order. Values fit both by their places, so only one that takes an
 * address says which of them it is: `ann bob` may be whoever of the two wrote to the other.
 */
static void take_reordered(struct forget *forget, const struct weir_zone *known, const struct weir_zone *other,
                           bool live)
{
	struct override_options options = {.kind = OVERRIDE_LIFT, .value_count = other->key_count};
	struct override_command command = {.kind = OVERRIDE_LIFT};
	struct weir_network network;
	const char *why;
	bool sure = false;
	for (uint32_t i = 0; i < known->key_count; i++) {
		const char *value = forget->options.values[i];
		bool is_address = weir_key_field_is_address(&known->key[i]);
		if (is_address && !weir_network_parse(weir_span_of(value), &network, &why))
			return;
		sure |= is_address;
		options.values[place_of(other, known->key[i].field)] = value;
	}
	if (!sure)
		weir_text_printf(&forget->unfound,
		                 "zone %s: its key has the fields of zone %s in another order: choose one with --zone\n",
		                 other->name, known->name);
	else if (override_key_join(&options, other, &command, NULL) == WEIR_OK &&
	         !forget_has(forget, other->id, other->name, override_key(&command)))
		forget_add(forget, other, override_key(&command), live);
}

/* Whether the fields stand at the same places: then the key is known. */
static bool is_same_key(const struct weir_zone *known, const struct weir_zone *other)
{
	for (uint32_t i = 0; i < known->key_count; i++)
		if (strcmp(known->key[i].field, other->key[i].field) != 0)
			return false;
	return true;
}

/* Of a zone that has all fields of a known one. */
static enum weir_status take_wider(struct forget *forget, const struct weir_zone *known, const struct pattern *pattern,
                                   bool live, struct weir_error *error)
{
	if (known->key_count < pattern->zone->key_count)
		return search_zone(forget, pattern, live, error);
	if (!is_same_key(known, pattern->zone))
		take_reordered(forget, known, pattern->zone, live);
	return WEIR_OK;
}

enum weir_status forget_find_wider(struct forget *forget, struct weir_error *error)
{
	struct pattern *pattern = weir_alloc(1, sizeof *pattern);
	uint32_t known = forget->options.key_hex == NULL && forget->options.zone == NULL ? forget->known_count : 0;
	enum weir_status status = WEIR_OK;
	weir_text_clear(&forget->unfound);
	for (size_t p = forget->history.count; known > 0 && p > 0; p--) {
		const struct weir_policy *policy = forget->history.policies[p - 1];
		for (uint32_t i = 0; i < policy->zone_count; i++) {
			const struct weir_zone *wider = &policy->zones[i];
			for (uint32_t k = 0; status == WEIR_OK && k < known && !is_in_newer(forget, p - 1, wider); k++)
				if (!forget->zones[k].velocity && make_pattern(forget, forget->zones[k].zone, wider, pattern))
					status = take_wider(forget, forget->zones[k].zone, pattern, p == forget->history.count, error);
		}
	}
	free(pattern);
	return status;
}
