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
 * more than WEIR_KEY_VALUE_WHOLE_BYTES (before escaping) stands there shortened: its
 * first WEIR_KEY_VALUE_HEAD_BYTES, cut wherever that is, then `~`, then its XXH128 as
 * 32 hexadecimal digits. So whoever sends a long path or token is counted like
 * anyone else, each long value by itself, and a key has a bound anyway.
 */
#ifndef WEIR_KEY_TEMPLATE_H
#define WEIR_KEY_TEMPLATE_H

#include "common/base/status.h"
#include "common/policy/policy.h"
#include "common/record/record.h"

enum {
	WEIR_KEY_VALUE_HEAD_BYTES = 27,
	WEIR_KEY_VALUE_DIGITS = 32,
	/* A shortened value has as many: shortening it again changes nothing. */
	WEIR_KEY_VALUE_WHOLE_BYTES = WEIR_KEY_VALUE_HEAD_BYTES + 1 + WEIR_KEY_VALUE_DIGITS,
};

struct weir_key_part {
	uint32_t field;
	bool grouped;
	uint8_t prefix4, prefix6;
};

struct weir_key_template {
	struct weir_key_part parts[WEIR_ZONE_KEY_MAX];
	uint32_t part_count;
	char *scratch; /* a key that is not simply a field's bytes, and behind it values that are shortened for it */
};

/** Addresses of one record's fields, each read at most once however many zones ask. */
struct weir_address_cache {
	uint64_t known, valid; /* a bit a field */
	struct weir_address addresses[WEIR_FIELD_MAX];
};

/** A field's value as an address, or NULL. `known` is to be cleared for each record. */
static inline const struct weir_address *weir_address_cache_get(struct weir_address_cache *cache,
                                                                const struct weir_record *record, uint32_t field)
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
WEIR_MUST_USE enum weir_status weir_key_template_init(struct weir_key_template *template, const struct weir_zone *zone,
                                                      struct weir_field_table *fields, struct weir_error *error);
void weir_key_template_deinit(struct weir_key_template *template);

bool weir_key_template_equal(const struct weir_key_template *a, const struct weir_key_template *b);

/** Whether the record has every field of the key. */
static inline bool weir_key_template_present(const struct weir_key_template *template, const struct weir_record *record)
{
	bool present = true;
	for (uint32_t i = 0; i < template->part_count; i++)
		present &= record->fields[template->parts[i].field].at != NULL;
	return present;
}

/** Writes a value as it stands in a key, `|` and `\` with a `\` before them. @return the end; NULL: it does not fit */
char *weir_key_append(char *at, const char *end, struct weir_span value);
/** A value of more than WEIR_KEY_VALUE_WHOLE_BYTES as it stands in a key that would be too long. @return text */
struct weir_span weir_key_shorten(struct weir_span value, char text[WEIR_KEY_VALUE_WHOLE_BYTES]);

/** The joined key of a record that has all its fields: points into the record, or into scratch until the next call. */
struct weir_span weir_key_template_join(const struct weir_key_template *template, const struct weir_record *record,
                                        struct weir_address_cache *cache);

#endif
