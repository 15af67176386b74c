/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A zone's key made ready for records: from the fields of a record to the
 * joined key.
 *
 * The joined key is the values in order, each with `\` and `|` escaped by a
 * `\`, with `|` between them. A grouped value that is an address is its network
 * ("2001:db8:1:2::/64"), or the canonical address where the prefix is the whole
 * of it; other values stay as they are.
 *
 * Where the joined key would be longer than WEIR_KEY_MAX_BYTES, each value of
 * more than KEY_VALUE_WHOLE_BYTES (before escaping) stands there shortened: its
 * first KEY_VALUE_HEAD_BYTES, cut wherever that is, then `~`, then its XXH128 as
 * 32 hexadecimal digits. So whoever sends a long path or token is counted like
 * anyone else, each long value by itself, and a key has a bound anyway.
 */
#ifndef COLLECTOR_KEY_TEMPLATE_H
#define COLLECTOR_KEY_TEMPLATE_H

#include "collector/record/record.h"
#include "common/base/status.h"
#include "common/policy/policy.h"

enum {
	KEY_VALUE_HEAD_BYTES = 27,
	KEY_VALUE_DIGITS = 32,
	/* A shortened value has as many: shortening it again changes nothing. */
	KEY_VALUE_WHOLE_BYTES = KEY_VALUE_HEAD_BYTES + 1 + KEY_VALUE_DIGITS,
};

struct key_part {
	uint32_t field;
	bool grouped;
	uint8_t prefix4, prefix6;
};

struct key_template {
	struct key_part parts[WEIR_ZONE_KEY_MAX];
	uint32_t part_count;
	char *scratch; /* a key that is not simply a field's bytes, and behind it values that are shortened for it */
};

/** Addresses of one record's fields, each read at most once however many zones ask. */
struct address_cache {
	uint64_t known, valid; /* a bit a field */
	struct weir_address addresses[FIELD_MAX];
};

/** A field's value as an address, or NULL. `known` is to be cleared for each record. */
static inline const struct weir_address *address_cache_get(struct address_cache *cache, const struct record *record,
                                                           uint32_t field)
{
	uint64_t bit = UINT64_C(1) << field;
	if ((cache->known & bit) == 0) {
		cache->known |= bit;
		bool valid = weir_address_read(record->fields[field], &cache->addresses[field]);
		cache->valid = valid ? cache->valid | bit : cache->valid & ~bit;
	}
	return cache->valid & bit ? &cache->addresses[field] : NULL;
}

/** @return WEIR_OK; WEIR_INVALID: there is no room for another field. To be deinited in both cases */
WEIR_MUST_USE enum weir_status key_template_init(struct key_template *template, const struct weir_zone *zone,
                                                 struct field_table *fields, struct weir_error *error);
void key_template_deinit(struct key_template *template);

bool key_template_equal(const struct key_template *a, const struct key_template *b);

/** Whether the record has every field of the key. */
static inline bool key_template_present(const struct key_template *template, const struct record *record)
{
	bool present = true;
	for (uint32_t i = 0; i < template->part_count; i++)
		present &= record->fields[template->parts[i].field].at != NULL;
	return present;
}

/** The joined key of a record that has all its fields: points into the record, or into scratch until the next call. */
struct weir_span key_template_join(const struct key_template *template, const struct record *record,
                                   struct address_cache *cache);

#endif
