/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which field of a filter is looked up: lines are taken to be spread as the policy's own values are. So a path that no other
 * zone has says more than a method, and a host of one zone more than the "/api/" that all have.
 */
#include "common/matcher/zone_index.h"

#include "common/base/alloc.h"

#include <stdlib.h>

/* For fewer filters, a field is not worth a lookup a line. */
enum { FIELD_FILTERS_LEAST = 4 };

/* What all filters together want of a field. */
struct field_literals {
	struct weir_literal *literals; /* their owners are filters */
	uint32_t count, room;
};

/* The field that a filter is looked up by, and what part of the lines has one of its values there. */
struct choice {
	uint32_t field; /* WEIR_FIELD_NONE: there is none */
	double share;
};

static void add_literal(struct field_literals *all, struct weir_literal literal)
{
	if (all->count == all->room) {
		all->room = all->room == 0 ? 16 : 2 * all->room;
		all->literals = weir_realloc(all->literals, all->room, sizeof *all->literals);
	}
	all->literals[all->count++] = literal;
}

/* The values that a field takes, by how they must begin, or as they must be. */
static void add_values(struct field_literals *all, const struct weir_filter_field *field, uint32_t owner)
{
	static const char digits[] = "0123456789";
	if (field->negated || field->has_networks || field->any_case)
		return;
	for (unsigned status = 0; field->statuses != NULL && status < WEIR_STATUS_COUNT; status++)
		if (field->statuses[status / 64] >> status % 64 & 1) {
			add_literal(all, (struct weir_literal){.text = {.at = digits + status / 100, .length = 1}, .owner = owner});
			status = status / 100 * 100 + 99; /* the next class */
		}
	for (uint32_t i = 0; i < field->words.count; i++)
		add_literal(all, (struct weir_literal){.text = field->words.words[i], .owner = owner, .whole = true});
	for (uint32_t i = 0; i < field->wildcard_count; i++)
		add_literal(all, (struct weir_literal){.text = field->wildcards[i].prefix, .owner = owner});
}

static bool begins_with(struct weir_span text, struct weir_span beginning)
{
	return weir_literal_common(text, beginning) == beginning.length;
}

/* Adds the share of the literals with one text, which `end` is the first behind `first` not to begin with. */
static void add_share(const struct field_literals *all, uint32_t first, uint32_t end, double *shares)
{
	const struct weir_literal *literals = all->literals;
	uint32_t same = first + 1;
	while (same < end && literals[same].text.length == literals[first].text.length)
		same++;
	for (uint32_t i = first; i < same; i++)
		shares[literals[i].owner] += (double)((literals[i].whole ? same : end) - first) / all->count;
}

/* Of each filter what part of the field's literals its own take. */
static void add_shares(const struct field_literals *all, double *shares)
{
	const struct weir_literal *literals = all->literals;
	uint32_t *open = weir_alloc(all->count, sizeof *open),
			 open_count = 0; /* texts that each begin with the one before */
	for (uint32_t i = 0; i < all->count; i++) {
		while (open_count > 0 && !begins_with(literals[i].text, literals[open[open_count - 1]].text))
			add_share(all, open[--open_count], i, shares);
		if (open_count == 0 || literals[i].text.length > literals[open[open_count - 1]].text.length)
			open[open_count++] = i;
	}
	while (open_count > 0)
		add_share(all, open[--open_count], all->count, shares);
	free(open);
}

static void choose_field(const struct field_literals *all, uint32_t field, struct choice *choices, uint32_t count)
{
	double *shares = weir_alloc(count, sizeof *shares);
	add_shares(all, shares);
	for (uint32_t i = 0; i < count; i++)
		if (shares[i] > 0 && (choices[i].field == WEIR_FIELD_NONE || shares[i] < choices[i].share))
			choices[i] = (struct choice){.field = field, .share = shares[i]};
	free(shares);
}

static bool is_always(const struct weir_zone_index *index, uint32_t zone)
{
	return index->always[zone / 64] >> zone % 64 & 1;
}

/* Zones that cannot be looked up by each of their filters are not looked up. */
static void set_always(struct weir_zone_index *index, const struct weir_zone_filter *filters,
                       const struct choice *choices, uint32_t count)
{
	uint32_t chosen[WEIR_FIELD_MAX + 1] = {0};
	for (uint32_t i = 0; i < count; i++)
		chosen[choices[i].field]++;
	for (uint32_t i = 0; i < count; i++)
		if (choices[i].field == WEIR_FIELD_NONE || chosen[choices[i].field] < FIELD_FILTERS_LEAST)
			index->always[filters[i].zone / 64] |= UINT64_C(1) << filters[i].zone % 64;
}

/* Makes a guard of a field that has one value. @return false: it has more, or a long one, or cannot be looked up */
static bool set_guard(struct weir_zone_guard *guard, const struct weir_filter_field *field)
{
	struct field_literals values = {0};
	add_values(&values, field, 0);
	bool fits = values.count == 1 && values.literals[0].text.length <= WEIR_GUARD_BYTES;
	if (fits) {
		*guard = (struct weir_zone_guard){.field = (uint8_t)field->field,
		                                  .whole = values.literals[0].whole,
		                                  .length = (uint8_t)values.literals[0].text.length};
		memcpy(guard->bytes, values.literals[0].text.at, guard->length);
	}
	free(values.literals);
	return fits;
}

static void init_guards(struct weir_zone_index *index, const struct weir_zone_filter *filters,
                        const struct choice *choices, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		bool alone = (i == 0 || filters[i - 1].zone != filters[i].zone) &&
		             (i + 1 == count || filters[i + 1].zone != filters[i].zone);
		struct weir_zone_guard *guard = &index->guards[filters[i].zone];
		const struct weir_record_filter *filter = filters[i].filter;
		*guard = (struct weir_zone_guard){.field = WEIR_FIELD_NONE};
		for (uint32_t k = 0; alone && k < filter->field_count; k++)
			if (filter->fields[k].field != choices[i].field && set_guard(guard, &filter->fields[k]))
				break;
	}
}

/* Indexes those literals of a field that filters are looked up by, under their zones. */
static void init_field(struct weir_zone_index *index, uint32_t field, struct field_literals *all,
                       const struct weir_zone_filter *filters, const struct choice *choices)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < all->count; i++) {
		struct weir_literal literal = all->literals[i];
		uint32_t zone = filters[literal.owner].zone;
		if (choices[literal.owner].field != field || is_always(index, zone))
			continue;
		literal.owner = zone;
		all->literals[count++] = literal;
	}
	if (count == 0)
		return;
	weir_literal_index_init(&index->literals[field], all->literals, count);
	index->fields |= UINT64_C(1) << field;
}

struct weir_zone_index *weir_zone_index_new(const struct weir_zone_filter *filters, uint32_t filter_count,
                                            uint32_t zone_count)
{
	struct weir_zone_index *index = weir_alloc(1, sizeof *index);
	index->words = (zone_count + 63) / 64;
	index->always = weir_alloc(index->words, sizeof *index->always);
	index->found = weir_alloc(index->words, sizeof *index->found);
	index->guards = weir_alloc(zone_count, sizeof *index->guards);
	struct field_literals *fields = weir_alloc(WEIR_FIELD_MAX, sizeof *fields);
	struct choice *choices = weir_alloc(filter_count, sizeof *choices);
	for (uint32_t i = 0; i < filter_count; i++) {
		choices[i].field = WEIR_FIELD_NONE;
		for (uint32_t k = 0; k < filters[i].filter->field_count; k++)
			add_values(&fields[filters[i].filter->fields[k].field], &filters[i].filter->fields[k], i);
	}
	for (uint32_t i = 0; i < WEIR_FIELD_MAX; i++)
		if (fields[i].count > 0) {
			qsort(fields[i].literals, fields[i].count, sizeof *fields[i].literals, weir_literal_compare);
			choose_field(&fields[i], i, choices, filter_count);
		}
	set_always(index, filters, choices, filter_count);
	init_guards(index, filters, choices, filter_count);
	for (uint32_t i = 0; i < WEIR_FIELD_MAX; i++) {
		init_field(index, i, &fields[i], filters, choices);
		free(fields[i].literals);
	}
	free(fields);
	free(choices);
	if (index->fields != 0)
		return index;
	weir_zone_index_free(index);
	return NULL;
}

void weir_zone_index_free(struct weir_zone_index *index)
{
	if (index == NULL)
		return;
	for (uint64_t left = index->fields; left != 0; left &= left - 1)
		weir_literal_index_deinit(&index->literals[__builtin_ctzll(left)]);
	free(index->always);
	free(index->found);
	free(index->guards);
	free(index);
}

const uint64_t *weir_zone_index_find(struct weir_zone_index *index, const struct weir_record *record)
{
	memcpy(index->found, index->always, index->words * sizeof *index->found);
	for (uint64_t left = index->fields; left != 0; left &= left - 1) {
		unsigned field = (unsigned)__builtin_ctzll(left);
		if (record->fields[field].at != NULL)
			weir_literal_index_mark(&index->literals[field], record->fields[field], index->found);
	}
	return index->found;
}
