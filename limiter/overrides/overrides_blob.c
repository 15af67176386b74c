/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Overrides as bytes, the last part of what a checkpoint keeps of a shard besides
 * its buckets (shard_extra.c): varints, and bytes with their length before them.
 *
 *   overrides: count, then for each, in the order of their first commands:
 *     zone id, bits (1: of a prefix, 2: a block, 4: an allow, 8: an override, 16: of a network), the joined key, or the
 *       network's text
 *     for each of block, allow, override that there is: given at, until, offset, by, reason
 *     of an override: thousandths
 */
#include "limiter/overrides/overrides.h"

#include "common/bytes/varint.h"
#include "common/frame/frame.h"

enum { IS_PREFIX = 1, HAS_BLOCK = 2, HAS_ALLOW = 4, HAS_RATE = 8, IS_NETWORK = 16, BITS_END = 32 };
enum { RATE_ONE = 1000, RATE_MAX = 100 * RATE_ONE };

static void put(struct weir_text *bytes, uint64_t number)
{
	char *at = weir_text_reserve(bytes, WEIR_VARINT_MAX_BYTES);
	bytes->length += (size_t)(weir_varint_put((uint8_t *)at, number) - (uint8_t *)at);
}

static void put_bytes(struct weir_text *bytes, const char *at, size_t length)
{
	put(bytes, length);
	weir_text_append(bytes, at, length);
}

static void put_setting(struct weir_text *bytes, const struct override_setting *setting)
{
	if (!setting->active)
		return;
	put(bytes, (uint64_t)setting->at_ms);
	put(bytes, (uint64_t)setting->until_ms);
	put(bytes, setting->offset);
	put_bytes(bytes, setting->by, strlen(setting->by));
	put_bytes(bytes, setting->reason, strlen(setting->reason));
}

void overrides_export(const struct overrides *overrides, struct weir_text *bytes)
{
	put(bytes, overrides->count);
	for (uint32_t i = 0; i < overrides->count; i++) {
		const struct override *override = overrides->list[i];
		put(bytes, override->zone_id);
		put(bytes, (override->scope == OVERRIDE_OF_PREFIX ? IS_PREFIX : 0u) |
		               (override->scope == OVERRIDE_OF_NETWORK ? IS_NETWORK : 0u) |
		               (override->block.active ? HAS_BLOCK : 0u) | (override->allow.active ? HAS_ALLOW : 0u) |
		               (override->rate.active ? HAS_RATE : 0u));
		put_bytes(bytes, override->key.at, override->key.length);
		put_setting(bytes, &override->block);
		put_setting(bytes, &override->allow);
		put_setting(bytes, &override->rate);
		if (override->rate.active)
			put(bytes, override->thousandths);
	}
}

/* ---- reading ---- */

static bool get(struct weir_span *bytes, uint64_t most, uint64_t *number)
{
	const uint8_t *at = (const uint8_t *)bytes->at;
	const uint8_t *next = weir_varint_get(at, at + bytes->length, number);
	if (next == NULL || *number > most)
		return false;
	bytes->length -= (uint32_t)(next - at);
	bytes->at = (const char *)next;
	return true;
}

static bool get_bytes(struct weir_span *bytes, uint64_t most, struct weir_span *out)
{
	uint64_t length;
	if (!get(bytes, most, &length) || length > bytes->length)
		return false;
	*out = (struct weir_span){.at = bytes->at, .length = (uint32_t)length};
	bytes->at += length;
	bytes->length -= (uint32_t)length;
	return true;
}

static bool get_text(struct weir_span *bytes, char *out, size_t room)
{
	struct weir_span text;
	if (!get_bytes(bytes, room - 1, &text) || memchr(text.at, '\0', text.length) != NULL)
		return false;
	memcpy(out, text.at, text.length);
	out[text.length] = '\0';
	return true;
}

static bool get_setting(struct weir_span *bytes, struct overrides *overrides, struct override_setting *setting)
{
	uint64_t at_ms, until_ms, offset;
	char by[OVERRIDE_BY_MAX_BYTES + 1], reason[OVERRIDE_REASON_MAX_BYTES + 1];
	if (!get(bytes, INT64_MAX, &at_ms) || !get(bytes, OVERRIDE_NO_END, &until_ms) || !get(bytes, UINT64_MAX, &offset) ||
	    !get_text(bytes, by, sizeof by) || !get_text(bytes, reason, sizeof reason))
		return false;
	overrides_set(overrides, setting, (int64_t)at_ms, (int64_t)until_ms, offset, by, reason);
	return true;
}

static bool get_override(struct weir_span *bytes, struct overrides *overrides)
{
	uint64_t zone_id, bits, thousandths = RATE_ONE;
	struct weir_span key;
	uint32_t before = overrides->count;
	if (!get(bytes, WEIR_ZONE_ID_MAX, &zone_id) || !get(bytes, BITS_END - 1, &bits) ||
	    !get_bytes(bytes, WEIR_KEY_MAX_BYTES, &key))
		return false;
	/* Something is in force; not both a block and an allow; of a prefix nothing but an override, of a network none. */
	struct weir_network network;
	enum override_scope scope = bits & IS_PREFIX    ? OVERRIDE_OF_PREFIX
	                            : bits & IS_NETWORK ? OVERRIDE_OF_NETWORK
	                                                : OVERRIDE_OF_KEY;
	if ((bits & (HAS_BLOCK | HAS_ALLOW | HAS_RATE)) == 0 ||
	    (bits & (HAS_BLOCK | HAS_ALLOW)) == (HAS_BLOCK | HAS_ALLOW) ||
	    ((bits & IS_PREFIX) && bits != (IS_PREFIX | HAS_RATE)) || ((bits & IS_NETWORK) && (bits & HAS_RATE)) ||
	    (scope == OVERRIDE_OF_NETWORK && !override_network_parse(key, &network)))
		return false;
	struct override *override = overrides_make(overrides, (uint32_t)zone_id, scope, key);
	if (overrides->count == before)
		return false; /* the same one twice */
	if (((bits & HAS_BLOCK) && !get_setting(bytes, overrides, &override->block)) ||
	    ((bits & HAS_ALLOW) && !get_setting(bytes, overrides, &override->allow)) ||
	    ((bits & HAS_RATE) && !get_setting(bytes, overrides, &override->rate)))
		return false;
	if ((bits & HAS_RATE) && (!get(bytes, RATE_MAX, &thousandths) || thousandths < 1 || thousandths == RATE_ONE))
		return false;
	override->thousandths = (uint32_t)thousandths;
	return true;
}

bool overrides_import(struct overrides *overrides, struct weir_span bytes)
{
	uint64_t count;
	overrides_deinit(overrides);
	bool good = get(&bytes, OVERRIDES_MAX, &count);
	for (uint64_t i = 0; good && i < count; i++)
		good = get_override(&bytes, overrides);
	if (good && bytes.length == 0) {
		overrides_settle(overrides);
		return true;
	}
	overrides_deinit(overrides);
	return false;
}
