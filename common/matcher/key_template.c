/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Most keys are one field as it stands, without a byte to escape: those are not
 * copied. A grouped IPv4 address at full length is canonical as it is written,
 * for there is but one way to write it; that of a record whose parser has seen
 * that it is one is not read again.
 */
#include "common/matcher/key_template.h"

#include "common/base/alloc.h"
#include "common/bytes/hash.h"
#include "common/bytes/hex.h"
#include "common/bytes/scan.h"
#include "common/matcher/record_filter.h"

#include <assert.h>
#include <stdlib.h>

enum {
	NETWORK_TEXT_BYTES = WEIR_ADDRESS_TEXT_BYTES + 4,
	SHORTENED_BYTES = WEIR_ZONE_KEY_MAX * WEIR_KEY_VALUE_WHOLE_BYTES, /* those of one key */
};

/* Values that are not shortened, with every byte escaped and a bar behind each. */
_Static_assert(WEIR_ZONE_KEY_MAX *(2 * WEIR_KEY_VALUE_WHOLE_BYTES + 1) <= WEIR_KEY_MAX_BYTES, "a shortened key fits");

enum weir_status weir_key_template_init(struct weir_key_template *template, const struct weir_zone *zone,
                                        struct weir_field_table *fields, struct weir_error *error)
{
	*template = (struct weir_key_template){.scratch = weir_alloc(WEIR_KEY_MAX_BYTES + SHORTENED_BYTES, 1)};
	for (uint32_t i = 0; i < zone->key_count; i++) {
		struct weir_key_part *part = &template->parts[template->part_count++];
		*part = (struct weir_key_part){
			.grouped = zone->key[i].grouped, .prefix4 = zone->key[i].prefix4, .prefix6 = zone->key[i].prefix6};
		enum weir_status status = weir_record_field_want(fields, zone->key[i].field, &part->field, error);
		if (status != WEIR_OK)
			return status;
	}
	return WEIR_OK;
}

void weir_key_template_deinit(struct weir_key_template *template)
{
	free(template->scratch);
	*template = (struct weir_key_template){0};
}

bool weir_key_template_equal(const struct weir_key_template *a, const struct weir_key_template *b)
{
	if (a->part_count != b->part_count)
		return false;
	for (uint32_t i = 0; i < a->part_count; i++) {
		const struct weir_key_part *x = &a->parts[i], *y = &b->parts[i];
		if (x->field != y->field || x->grouped != y->grouped || x->prefix4 != y->prefix4 || x->prefix6 != y->prefix6)
			return false;
	}
	return true;
}

/* The network that an address is counted in, as text. */
static struct weir_span network_text(const struct weir_key_part *part, struct weir_address address,
                                     char text[NETWORK_TEXT_BYTES])
{
	bool v4 = weir_address_is_v4(&address);
	unsigned prefix = v4 ? part->prefix4 : part->prefix6;
	weir_address_mask(&address, part->prefix4, part->prefix6);
	uint32_t length = weir_address_format(&address, text);
	if (prefix < (v4 ? 32 : 128)) {
		text[length++] = '/';
		if (prefix >= 100)
			text[length++] = '1';
		if (prefix >= 10)
			text[length++] = (char)('0' + prefix / 10 % 10);
		text[length++] = (char)('0' + prefix % 10);
	}
	return (struct weir_span){.at = text, .length = length};
}

/*
 * Whether a part is an address as it is written: of IPv4, counted by itself, and in its one form already. Every other
 * address has a colon.
 */
static bool is_plain_ipv4(const struct weir_key_part *part, const struct weir_record *record)
{
	struct weir_span value = record->fields[part->field];
	return part->field == WEIR_FIELD_IP && part->prefix4 == 32 && record->ip == WEIR_RECORD_IP_PLAIN &&
	       !weir_scan_has(value.at, value.length, ':', ':');
}

/* Of a text that is an address of IPv4: neither brackets nor blanks are around it, and no port is behind it. */
static bool is_bare_ipv4(struct weir_span value)
{
	char first = value.at[0], last = value.at[value.length - 1];
	return first >= '0' && first <= '9' && last >= '0' && last <= '9' && memchr(value.at, ':', value.length) == NULL;
}

/* A part's value, before escaping: the field's bytes, or text if they are an address to be grouped. */
static struct weir_span part_value(const struct weir_key_part *part, const struct weir_record *record,
                                   struct weir_address_cache *cache, char text[NETWORK_TEXT_BYTES])
{
	struct weir_span value = record->fields[part->field];
	if (!part->grouped || is_plain_ipv4(part, record))
		return value;
	const struct weir_address *address = weir_address_cache_get(cache, record, part->field);
	if (address == NULL)
		return value;
	if (part->prefix4 == 32 && weir_address_is_v4(address) && is_bare_ipv4(value))
		return value;
	return network_text(part, *address, text);
}

char *weir_key_append(char *at, const char *end, struct weir_span value)
{
	if (!weir_scan_has(value.at, value.length, '|', '\\')) {
		if (value.length > (size_t)(end - at))
			return NULL;
		if (value.length > 0)
			memcpy(at, value.at, value.length);
		return at + value.length;
	}
	for (uint32_t i = 0; i < value.length; i++) {
		bool escape = value.at[i] == '|' || value.at[i] == '\\';
		if (end - at < 1 + escape)
			return NULL;
		if (escape)
			*at++ = '\\';
		*at++ = value.at[i];
	}
	return at;
}

struct weir_span weir_key_shorten(struct weir_span value, char text[WEIR_KEY_VALUE_WHOLE_BYTES])
{
	uint8_t hash[WEIR_KEY_VALUE_DIGITS / 2];
	weir_hash128(value.at, value.length, hash);
	memcpy(text, value.at, WEIR_KEY_VALUE_HEAD_BYTES);
	char *at = text + WEIR_KEY_VALUE_HEAD_BYTES;
	*at++ = '~';
	(void)weir_hex_put(at, hash, sizeof hash);
	return (struct weir_span){.at = text, .length = WEIR_KEY_VALUE_WHOLE_BYTES};
}

/* Joins the values in scratch; gives the end, or NULL where they do not fit. */
static char *join_values(const struct weir_key_template *template, const struct weir_record *record,
                         struct weir_address_cache *cache)
{
	char text[NETWORK_TEXT_BYTES];
	char *at = template->scratch;
	const char *end = template->scratch + WEIR_KEY_MAX_BYTES;
	for (uint32_t i = 0; i < template->part_count; i++) {
		if (i > 0) {
			if (at == end)
				return NULL;
			*at++ = '|';
		}
		at = weir_key_append(at, end, part_value(&template->parts[i], record, cache, text));
		if (at == NULL)
			return NULL;
	}
	return at;
}

/* The same with the long values shortened. Kept out of the common way, which it would slow down. */
static __attribute__((noinline, cold)) char *join_shortened(const struct weir_key_template *template,
                                                            const struct weir_record *record,
                                                            struct weir_address_cache *cache)
{
	struct weir_record shortened = *record;
	char *text = template->scratch + WEIR_KEY_MAX_BYTES;
	for (uint32_t i = 0; i < template->part_count; i++) {
		struct weir_span *value = &shortened.fields[template->parts[i].field];
		if (value->length <= WEIR_KEY_VALUE_WHOLE_BYTES)
			continue;
		*value = weir_key_shorten(*value, text);
		text += WEIR_KEY_VALUE_WHOLE_BYTES;
	}
	char *end = join_values(template, &shortened, cache);
	assert(end != NULL);
	return end;
}

/* Flattened: what it calls has a second caller above, and a call each would cost a tenth. */
__attribute__((flatten)) struct weir_span weir_key_template_join(const struct weir_key_template *template,
                                                                 const struct weir_record *record,
                                                                 struct weir_address_cache *cache)
{
	const struct weir_key_part *first = &template->parts[0];
	if (template->part_count == 1) {
		struct weir_span value = record->fields[first->field];
		if (first->grouped ? is_plain_ipv4(first, record)
		                   : value.length <= WEIR_KEY_MAX_BYTES && !weir_scan_has(value.at, value.length, '|', '\\'))
			return value;
	}
	const char *end = join_values(template, record, cache);
	if (__builtin_expect(end == NULL, 0))
		end = join_shortened(template, record, cache);
	return (struct weir_span){.at = template->scratch, .length = (uint32_t)(end - template->scratch)};
}
