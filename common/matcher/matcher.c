/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Zones of the policy, made ready once, tried against every record.
 *
 * Zones with the same key template share its work: the key is joined and hashed
 * when the first of them takes the record. What a template or a field gave for a
 * record is kept under the record's number, so nothing is cleared between
 * records but that number. Zones that take the same records, as those of several
 * policies that are compared, are asked about once. Where zones are many, an index
 * says which of them to try.
 */
#include "common/matcher/matcher.h"

#include "common/base/alloc.h"
#include "common/bytes/hash.h"
#include "common/matcher/key_template.h"
#include "common/matcher/record_filter.h"
#include "common/matcher/zone_index.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* So few zones are tried sooner than they are looked up. */
enum { FEW_ZONES = 16 };

/* A key template, and the event that it made of the newest record. */
struct key_group {
	struct weir_key_template template;
	uint64_t record_number; /* event is of that record */
	uint32_t event;
};

/* Whether a record is in a zone. */
enum taken { NOT_TAKEN, TAKEN, DONE };

struct zone_matcher {
	uint32_t alike;         /* the first zone that takes the same records; mostly itself */
	enum taken taken;       /* of that record, where it is itself */
	uint64_t record_number; /* likewise */
	uint32_t id;
	uint32_t group;
	struct weir_record_filter match;
	struct weir_record_filter *done; /* of its queues */
	uint32_t done_count;
	const struct weir_zone *zone; /* of the policy: its sources */
	struct weir_record_filter *exempt_matches;
	uint32_t exempt_match_count;
	struct weir_exempt_list **exempt_lists; /* the zone's own entries, and behind them the lists that it names */
	uint32_t exempt_list_count;
	uint64_t address_fields; /* a bit each: those whose addresses the exempt networks and lists are about */
	uint64_t kept_fields;    /* likewise: those that "history" names */
	uint32_t agent_field;    /* where robots are exempt that are verified */
	bool exempts;
	bool by_source; /* it takes records of its sources alone */
};

struct weir_matcher {
	struct weir_verified_hosts *hosts;
	struct zone_matcher *zones; /* in the policy's order */
	uint32_t zone_count;
	struct weir_zone_index *index; /* NULL: all zones are tried */
	struct key_group *groups;
	uint32_t group_count;
	uint32_t partitions;
	char *kept_names[WEIR_FIELD_MAX]; /* of the fields that "history" names */
	/* of the newest record */
	uint64_t record_number;
	struct weir_address_cache addresses;
	struct weir_matched_event *events;
	uint32_t event_count;
	struct weir_frame_zone *taken; /* the zones that it is in, in order, and the event of each */
	uint32_t *taken_event;
	uint32_t taken_count;
	struct weir_frame_zone *sorted; /* the same by event, where there is more than one */
	struct weir_text kept;          /* what "history" keeps of it */
};

static enum weir_status init_done(struct zone_matcher *matcher, const struct weir_zone *zone,
                                  struct weir_field_table *fields, struct weir_error *error)
{
	matcher->done = weir_alloc(zone->limit_count, sizeof *matcher->done);
	for (uint32_t i = 0; i < zone->limit_count; i++) {
		if (zone->limits[i].done.field_count == 0)
			continue;
		enum weir_status status =
			weir_record_filter_init(&matcher->done[matcher->done_count++], &zone->limits[i].done, fields, error);
		if (status != WEIR_OK)
			return status;
	}
	return WEIR_OK;
}

static enum weir_status init_exempt(struct zone_matcher *matcher, const struct weir_zone *zone,
                                    struct weir_exempt_lists *lists, struct weir_field_table *fields,
                                    struct weir_error *error)
{
	matcher->exempts = weir_zone_exempts(zone);
	matcher->exempt_lists = weir_alloc(zone->exempt_list_count + (size_t)1, sizeof(struct weir_exempt_list *));
	matcher->exempt_lists[matcher->exempt_list_count++] = weir_exempt_list_of_zone(zone);
	for (uint32_t i = 0; i < zone->exempt_list_count; i++) {
		struct weir_error wrong;
		enum weir_status status =
			weir_exempt_list_open(lists, zone->exempt_lists[i], &matcher->exempt_lists[i + 1], &wrong);
		if (status != WEIR_OK)
			return weir_fail(error, status, "zone \"%s\", exempt: %s", zone->name, wrong.text);
		matcher->exempt_list_count++;
	}
	matcher->exempt_matches = weir_alloc(zone->exempt_match_count, sizeof *matcher->exempt_matches);
	for (uint32_t i = 0; i < zone->exempt_match_count; i++) {
		enum weir_status status = weir_record_filter_init(&matcher->exempt_matches[matcher->exempt_match_count++],
		                                                  &zone->exempt_matches[i], fields, error);
		if (status != WEIR_OK)
			return status;
	}
	return WEIR_OK;
}

/*
 * Exempt networks are about the zone's address: the ip in its key, and fields that are grouped. A zone that counts by
 * something else exempts by the record's ip. No other field is looked at, as clients write what they like there.
 */
static enum weir_status init_address_fields(struct zone_matcher *matcher, const struct weir_zone *zone,
                                            const struct weir_key_template *template, struct weir_field_table *fields,
                                            struct weir_error *error)
{
	uint32_t ip = WEIR_FIELD_IP;
	enum weir_status status = WEIR_OK;
	if (zone->exempt_verified_count > 0)
		status = weir_record_field_want(fields, "agent", &matcher->agent_field, error);
	if (status != WEIR_OK || zone->exempt_network_count + zone->exempt_list_count + zone->exempt_verified_count == 0)
		return status;
	for (uint32_t i = 0; i < template->part_count; i++)
		if (template->parts[i].field == WEIR_FIELD_IP || template->parts[i].grouped)
			matcher->address_fields |= UINT64_C(1) << template->parts[i].field;
	if (matcher->address_fields == 0) {
		status = weir_record_field_want(fields, "ip", &ip, error);
		matcher->address_fields = UINT64_C(1) << ip;
	}
	return status;
}

static enum weir_status init_kept_fields(struct weir_matcher *matcher, struct zone_matcher *made,
                                         const struct weir_zone *zone, struct weir_field_table *fields,
                                         struct weir_error *error)
{
	uint32_t field;
	for (uint32_t i = 0; i < zone->history_field_count; i++) {
		enum weir_status status = weir_record_field_want(fields, zone->history_fields[i], &field, error);
		if (status != WEIR_OK)
			return status;
		made->kept_fields |= UINT64_C(1) << field;
		if (matcher->kept_names[field] == NULL)
			matcher->kept_names[field] = weir_copy(zone->history_fields[i], strlen(zone->history_fields[i]));
	}
	return WEIR_OK;
}

/* The zone's template among those that are there, or a new one. */
static enum weir_status join_group(struct weir_matcher *matcher, struct zone_matcher *zone,
                                   const struct weir_zone *source, struct weir_field_table *fields,
                                   struct weir_error *error)
{
	struct key_group *made = &matcher->groups[matcher->group_count];
	enum weir_status status = weir_key_template_init(&made->template, source, fields, error);
	uint32_t group = 0;
	while (status == WEIR_OK && group < matcher->group_count &&
	       !weir_key_template_equal(&matcher->groups[group].template, &made->template))
		group++;
	zone->group = group;
	if (group == matcher->group_count && status == WEIR_OK)
		matcher->group_count++;
	else
		weir_key_template_deinit(&made->template);
	return status;
}

static enum weir_status init_zone(struct weir_matcher *matcher, struct zone_matcher *zone,
                                  const struct weir_zone *source, struct weir_exempt_lists *lists,
                                  struct weir_field_table *fields, struct weir_error *error)
{
	zone->id = source->id;
	zone->zone = source;
	zone->by_source = source->source_count > 0;
	enum weir_status status;
	if ((status = init_exempt(zone, source, lists, fields, error)) == WEIR_OK &&
	    (status = join_group(matcher, zone, source, fields, error)) == WEIR_OK &&
	    (status = init_address_fields(zone, source, &matcher->groups[zone->group].template, fields, error)) ==
	        WEIR_OK &&
	    (status = init_kept_fields(matcher, zone, source, fields, error)) == WEIR_OK &&
	    (status = weir_record_filter_init(&zone->match, &source->match, fields, error)) == WEIR_OK)
		status = init_done(zone, source, fields, error);
	return status;
}

static void init_index(struct weir_matcher *matcher)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < matcher->zone_count; i++)
		count += 1 + matcher->zones[i].done_count;
	struct weir_zone_filter *filters = weir_alloc(count, sizeof *filters);
	count = 0;
	for (uint32_t i = 0; i < matcher->zone_count; i++) {
		const struct zone_matcher *zone = &matcher->zones[i];
		filters[count++] = (struct weir_zone_filter){.filter = &zone->match, .zone = i};
		for (uint32_t k = 0; k < zone->done_count; k++)
			filters[count++] = (struct weir_zone_filter){.filter = &zone->done[k], .zone = i};
	}
	matcher->index = weir_zone_index_new(filters, count, matcher->zone_count);
	free(filters);
}

/* For each zone the first that takes the same records. There are few zones, or few texts that are alike: hashes tell. */
static void find_alike(struct weir_matcher *matcher)
{
	uint64_t *hashes = weir_alloc(matcher->zone_count, sizeof *hashes);
	for (uint32_t i = 0; i < matcher->zone_count; i++) {
		char *text = weir_zone_records_text(matcher->zones[i].zone);
		hashes[i] = weir_hash64(text, strlen(text)) + (uint64_t)matcher->zones[i].zone->feed;
		free(text);
		uint32_t alike = 0;
		while (hashes[alike] != hashes[i])
			alike++;
		matcher->zones[i].alike = alike;
	}
	free(hashes);
}

enum weir_status weir_matcher_new(const struct weir_policy *policy, struct weir_exempt_lists *lists,
                                  struct weir_field_table *fields, uint32_t partitions, struct weir_matcher **matcher,
                                  struct weir_error *error)
{
	assert(partitions >= 1 && partitions <= WEIR_PARTITIONS_MAX);
	struct weir_matcher *made = weir_alloc(1, sizeof *made);
	uint32_t count = policy->zone_count;
	made->zones = weir_alloc(count, sizeof *made->zones);
	made->groups = weir_alloc(count, sizeof *made->groups);
	made->events = weir_alloc(WEIR_ZONES_MAX, sizeof *made->events);
	made->taken = weir_alloc(count, sizeof *made->taken);
	made->taken_event = weir_alloc(count, sizeof *made->taken_event);
	made->sorted = weir_alloc(count, sizeof *made->sorted);
	made->partitions = partitions;
	made->hosts = weir_exempt_lists_hosts(lists);
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t k = 0; k < policy->zones[i].exempt_verified_count; k++)
			weir_verified_hosts_want(made->hosts, &policy->zones[i].exempt_verified[k]);
	enum weir_status status = WEIR_OK;
	for (uint32_t i = 0; i < count && status == WEIR_OK; i++)
		status = init_zone(made, &made->zones[made->zone_count++], &policy->zones[i], lists, fields, error);
	if (status != WEIR_OK) {
		weir_matcher_free(made);
		return status;
	}
	if (count > FEW_ZONES)
		init_index(made);
	find_alike(made);
	*matcher = made;
	return WEIR_OK;
}

void weir_matcher_free(struct weir_matcher *matcher)
{
	if (matcher == NULL)
		return;
	weir_zone_index_free(matcher->index);
	for (uint32_t i = 0; i < matcher->zone_count; i++) {
		struct zone_matcher *zone = &matcher->zones[i];
		for (uint32_t k = 0; k < zone->done_count; k++)
			weir_record_filter_deinit(&zone->done[k]);
		free(zone->done);
		weir_record_filter_deinit(&zone->match);
		for (uint32_t k = 0; k < zone->exempt_match_count; k++)
			weir_record_filter_deinit(&zone->exempt_matches[k]);
		free(zone->exempt_matches);
		for (uint32_t k = 0; k < zone->exempt_list_count; k++)
			weir_exempt_list_close(zone->exempt_lists[k]);
		free(zone->exempt_lists);
	}
	for (uint32_t i = 0; i < matcher->group_count; i++)
		weir_key_template_deinit(&matcher->groups[i].template);
	for (uint32_t i = 0; i < WEIR_FIELD_MAX; i++)
		free(matcher->kept_names[i]);
	free(matcher->zones);
	free(matcher->groups);
	free(matcher->events);
	free(matcher->taken);
	free(matcher->taken_event);
	free(matcher->sorted);
	weir_text_deinit(&matcher->kept);
	free(matcher);
}

void weir_matcher_renew_lists(struct weir_matcher *matcher, struct weir_exempt_lists *lists)
{
	for (uint32_t i = 0; i < matcher->zone_count; i++) {
		struct zone_matcher *zone = &matcher->zones[i];
		for (uint32_t k = 1; k < zone->exempt_list_count; k++) {
			struct weir_exempt_list *newest;
			struct weir_error ignored; /* the list of before stays: whoever refreshed them has told why */
			if (weir_exempt_list_open(lists, zone->zone->exempt_lists[k - 1], &newest, &ignored) != WEIR_OK)
				continue;
			weir_exempt_list_close(zone->exempt_lists[k]);
			zone->exempt_lists[k] = newest;
		}
	}
}

static bool is_exempt_word(const struct zone_matcher *zone, struct weir_span value)
{
	for (uint32_t i = 0; i < zone->exempt_list_count; i++)
		if (weir_exempt_list_has_word(zone->exempt_lists[i], value))
			return true;
	return false;
}

static bool is_exempt_address(const struct zone_matcher *zone, const struct weir_address *address)
{
	for (uint32_t i = 0; i < zone->exempt_list_count; i++)
		if (weir_network_set_has(&zone->exempt_lists[i]->networks, address))
			return true;
	return false;
}

/* Whether the record came from one of the zone's sources. */
static bool is_of_source(const struct weir_zone *zone, const struct weir_record *record)
{
	for (uint32_t i = 0; i < zone->source_count; i++)
		if (record->source != NULL && strcmp(zone->sources[i], record->source) == 0)
			return true;
	return false;
}

/* Whether it says that it is a robot which its address is, too. */
static bool is_verified(const struct weir_matcher *matcher, const struct zone_matcher *zone,
                        const struct weir_record *record, const struct weir_address *address)
{
	struct weir_span agent = record->fields[zone->agent_field];
	for (uint32_t i = 0; i < zone->zone->exempt_verified_count && agent.at != NULL; i++) {
		const struct weir_verified *verified = &zone->zone->exempt_verified[i];
		if (weir_verified_claims(verified, agent) && weir_verified_hosts_has(matcher->hosts, address, verified))
			return true;
	}
	return false;
}

/* @param whole  what the record has not is absent; else nobody knows it, and no object that looks at it says anything */
static bool is_exempt(struct weir_matcher *matcher, const struct zone_matcher *zone,
                      const struct weir_key_template *template, const struct weir_record *record, bool whole)
{
	for (uint32_t i = 0; i < template->part_count; i++)
		if (is_exempt_word(zone, record->fields[template->parts[i].field]))
			return true;
	for (uint32_t i = 0; i < zone->exempt_match_count; i++)
		if ((whole || weir_record_filter_is_told(&zone->exempt_matches[i], record)) &&
		    weir_record_filter_test(&zone->exempt_matches[i], record))
			return true;
	for (uint64_t left = zone->address_fields; left != 0; left &= left - 1) {
		uint32_t field = (uint32_t)__builtin_ctzll(left);
		const struct weir_address *address = weir_address_cache_get(&matcher->addresses, record, field);
		if (address != NULL && (is_exempt_address(zone, address) || is_verified(matcher, zone, record, address)))
			return true;
	}
	return false;
}

bool weir_matcher_exempts_key(struct weir_matcher *matcher, const struct weir_zone *zone,
                              const struct weir_record *record)
{
	const struct zone_matcher *asked = &matcher->zones[zone - matcher->zones[0].zone];
	matcher->addresses.known = 0;
	return is_exempt(matcher, asked, &matcher->groups[asked->group].template, record, false);
}

/* As for exempt records: what a cut line lacks makes it none. */
static bool is_done(const struct zone_matcher *zone, const struct weir_record *record)
{
	for (uint32_t i = 0; i < zone->done_count; i++)
		if ((!record->cut || weir_record_filter_is_told(&zone->done[i], record)) &&
		    weir_record_filter_test(&zone->done[i], record))
			return true;
	return false;
}

/* The record's event with this key: two templates may give the same. */
static uint32_t find_or_add_event(struct weir_matcher *matcher, struct weir_span key, int64_t cost)
{
	uint64_t hash = weir_hash64(key.at, key.length);
	for (uint32_t i = 0; i < matcher->event_count; i++)
		if (matcher->events[i].key_hash == hash && weir_span_equal(matcher->events[i].key, key))
			return i;
	uint32_t partition = matcher->partitions > 1 ? weir_partition(weir_slot(key), matcher->partitions) : 0;
	matcher->events[matcher->event_count] =
		(struct weir_matched_event){.key = key, .key_hash = hash, .cost = cost, .partition = partition};
	return matcher->event_count++;
}

/* Gives each event its zones. They are in order already where there is one event, as there mostly is. */
static void hand_out_zones(struct weir_matcher *matcher)
{
	if (matcher->event_count == 1) {
		matcher->events[0].zones = matcher->taken;
		matcher->events[0].zone_count = matcher->taken_count;
		return;
	}
	for (uint32_t i = 0; i < matcher->taken_count; i++)
		matcher->events[matcher->taken_event[i]].zone_count++;
	struct weir_frame_zone *next = matcher->sorted;
	for (uint32_t i = 0; i < matcher->event_count; i++) {
		struct weir_matched_event *event = &matcher->events[i];
		event->zones = next;
		next += event->zone_count;
		event->zone_count = 0;
	}
	for (uint32_t i = 0; i < matcher->taken_count; i++) {
		struct weir_matched_event *event = &matcher->events[matcher->taken_event[i]];
		matcher->sorted[(event->zones - matcher->sorted) + event->zone_count++] = matcher->taken[i];
	}
}

static int64_t cost_of(int64_t cost, uint32_t times)
{
	return cost > WEIR_COST_MAX / times ? WEIR_COST_MAX : cost * times;
}

/* What is done takes one entry out of a queue, whatever it costs: as many events as records, if there is room. */
static uint32_t single_parts(uint32_t times, uint32_t taken, uint32_t parts[WEIR_ZONES_MAX])
{
	uint32_t count = times < WEIR_ZONES_MAX / taken ? times : WEIR_ZONES_MAX / taken;
	for (uint32_t i = 0; i < count; i++)
		parts[i] = 1;
	return count;
}

/* Gives a record's events once for each of its parts. Where that would be more than a record may have, one is for all. */
static __attribute__((noinline)) void repeat_events(struct weir_matcher *matcher, uint32_t times)
{
	uint32_t parts[WEIR_ZONES_MAX], keys = matcher->event_count, taken = matcher->taken_count;
	bool done = false;
	for (uint32_t i = 0; i < taken; i++)
		done |= matcher->taken[i].done;
	uint32_t count = done ? single_parts(times, taken, parts) : weir_record_parts(times, parts);
	if (count * taken > WEIR_ZONES_MAX) {
		count = 1;
		parts[0] = times;
	}
	for (uint32_t part = count; part-- > 0;) /* the first one at last, as the others are made from it */
		for (uint32_t i = 0; i < keys; i++) {
			struct weir_matched_event *event = &matcher->events[part * keys + i];
			*event = matcher->events[i];
			event->cost = cost_of(event->cost, parts[part]);
		}
	matcher->event_count = keys * count;
}

/* The fields that some zone of the record keeps, where the record has them. */
static __attribute__((noinline)) struct weir_span keep_fields(struct weir_matcher *matcher,
                                                              const struct weir_record *record, uint64_t kept)
{
	weir_text_clear(&matcher->kept);
	for (uint64_t left = kept; left != 0; left &= left - 1) {
		unsigned field = (unsigned)__builtin_ctzll(left);
		if (record->fields[field].at != NULL)
			weir_fields_put(&matcher->kept, weir_span_of(matcher->kept_names[field]), record->fields[field]);
	}
	return weir_text_span(&matcher->kept);
}

static enum taken take(struct weir_matcher *matcher, const struct zone_matcher *zone, const struct weir_record *record)
{
	const struct weir_key_template *template = &matcher->groups[zone->group].template;
	if (zone->zone->feed == (record->asks ? WEIR_FEED_LOG : WEIR_FEED_CHECK) ||
	    !weir_key_template_present(template, record))
		return NOT_TAKEN;
	if (zone->by_source ? !is_of_source(zone->zone, record) : record->by_name)
		return NOT_TAKEN;
	bool done = is_done(zone, record);
	if (!done && !weir_record_filter_test(&zone->match, record))
		return NOT_TAKEN;
	if (zone->exempts && is_exempt(matcher, zone, template, record, !record->cut))
		return NOT_TAKEN;
	return done ? DONE : TAKEN;
}

/* Takes the record for a zone if it is in it. @return the fields that the zone keeps of it */
static inline __attribute__((always_inline)) uint64_t try_zone(struct weir_matcher *matcher,
                                                               const struct zone_matcher *zone,
                                                               const struct weir_record *record)
{
	struct zone_matcher *first = &matcher->zones[zone->alike];
	if (first->record_number != matcher->record_number) {
		first->record_number = matcher->record_number;
		first->taken = take(matcher, first, record);
	}
	if (first->taken == NOT_TAKEN)
		return 0;
	struct key_group *group = &matcher->groups[zone->group];
	if (group->record_number != matcher->record_number) {
		group->event = find_or_add_event(matcher, weir_key_template_join(&group->template, record, &matcher->addresses),
		                                 record->cost);
		group->record_number = matcher->record_number;
	}
	matcher->taken_event[matcher->taken_count] = group->event;
	matcher->taken[matcher->taken_count++] = (struct weir_frame_zone){.id = zone->id, .done = first->taken == DONE};
	return zone->kept_fields;
}

static __attribute__((noinline)) uint64_t try_found(struct weir_matcher *matcher, const struct weir_record *record)
{
	uint64_t kept = 0;
	struct weir_zone_index *index = matcher->index;
	const uint64_t *found = weir_zone_index_find(index, record);
	for (uint32_t i = 0; i < index->words; i++)
		for (uint64_t left = found[i]; left != 0; left &= left - 1) {
			uint32_t zone = i * 64 + (uint32_t)__builtin_ctzll(left);
			if (weir_zone_guard_passes(&index->guards[zone], record))
				kept |= try_zone(matcher, &matcher->zones[zone], record);
		}
	return kept;
}

void weir_matcher_match(struct weir_matcher *matcher, const struct weir_record *record, struct weir_matched *matched)
{
	matcher->record_number++;
	matcher->addresses.known = 0;
	matcher->event_count = matcher->taken_count = 0;
	uint64_t kept = 0;
	if (__builtin_expect(matcher->index != NULL, 0))
		kept = try_found(matcher, record);
	else
		for (uint32_t i = 0; i < matcher->zone_count; i++)
			kept |= try_zone(matcher, &matcher->zones[i], record);
	hand_out_zones(matcher);
	uint32_t keys = matcher->event_count;
	if (__builtin_expect(record->times > 1, 0) && keys > 0)
		repeat_events(matcher, record->times);
	*matched = (struct weir_matched){.events = matcher->events, .event_count = matcher->event_count, .key_count = keys};
	if (kept != 0)
		matched->fields = keep_fields(matcher, record, kept);
}
