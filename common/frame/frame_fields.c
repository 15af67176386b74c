/* SPDX-License-Identifier: Apache-2.0 */
/* Few fields of few bytes: they are found by walking through them. */
#include "common/frame/frame_fields.h"

#include "common/bytes/varint.h"

#define CUT "\xe2\x80\xa6" /* an ellipsis */

static void put_length(struct weir_text *fields, uint32_t length)
{
	uint8_t *at = (uint8_t *)weir_text_reserve(fields, WEIR_VARINT_MAX_BYTES);
	fields->length += (size_t)(weir_varint_put(at, length) - at);
}

void weir_fields_put(struct weir_text *fields, struct weir_span name, struct weir_span value)
{
	bool cut = value.length > WEIR_FIELD_VALUE_MAX_BYTES;
	if (cut) {
		value.length = WEIR_FIELD_VALUE_MAX_BYTES - (sizeof CUT - 1);
		/* Not within a character; bytes that are none are cut anywhere. */
		for (int i = 0; i < 3 && ((unsigned char)value.at[value.length] & 0xC0) == 0x80; i++)
			value.length--;
	}
	put_length(fields, name.length);
	weir_text_append(fields, name.at, name.length);
	put_length(fields, value.length + (cut ? (uint32_t)sizeof CUT - 1 : 0));
	weir_text_append(fields, value.at, value.length);
	if (cut)
		weir_text_puts(fields, CUT);
}

static bool take(struct weir_span *rest, struct weir_span *bytes)
{
	if (rest->length == 0) /* and perhaps without an address */
		return false;
	const uint8_t *begin = (const uint8_t *)rest->at, *end = begin + rest->length;
	uint64_t length;
	const uint8_t *at = weir_varint_get(begin, end, &length);
	if (at == NULL || length > (size_t)(end - at))
		return false;
	*bytes = (struct weir_span){.at = (const char *)at, .length = (uint32_t)length};
	*rest = (struct weir_span){.at = bytes->at + length, .length = (uint32_t)((size_t)(end - at) - length)};
	return true;
}

bool weir_fields_next(struct weir_span *rest, struct weir_span *name, struct weir_span *value)
{
	struct weir_span left = *rest;
	if (!take(&left, name) || !take(&left, value))
		return false;
	*rest = left;
	return true;
}

struct weir_span weir_fields_find(struct weir_span fields, const char *name)
{
	struct weir_span found, value, sought = weir_span_of(name);
	while (weir_fields_next(&fields, &found, &value))
		if (weir_span_equal(found, sought))
			return value;
	return (struct weir_span){.at = NULL};
}

static void put_member(struct weir_text *text, bool *any, struct weir_span name, struct weir_span value)
{
	weir_text_puts(text, *any ? "," : "{");
	weir_text_json(text, name);
	weir_text_puts(text, ":");
	weir_text_json(text, value);
	*any = true;
}

bool weir_fields_json(struct weir_text *text, struct weir_span fields, char *const *names, uint32_t count)
{
	struct weir_span name, value;
	bool any = false;
	for (uint32_t i = 0; names != NULL && i < count; i++)
		if ((value = weir_fields_find(fields, names[i])).at != NULL)
			put_member(text, &any, weir_span_of(names[i]), value);
	while (names == NULL && weir_fields_next(&fields, &name, &value))
		put_member(text, &any, name, value);
	if (any)
		weir_text_puts(text, "}");
	return any;
}
