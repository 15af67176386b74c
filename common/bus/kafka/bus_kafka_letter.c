/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dead letters that are larger than their topic takes: what says where the line is and what is wrong with it stays whole,
 * and of the text as much as fits.
 */
#include "common/bus/kafka/internal.h"
#include "common/json/json.h"

enum { ESCAPED_MOST_BYTES = 6 }; /* what one byte of a text becomes at most */

static int put_part(const char *part, size_t length, void *text)
{
	weir_text_append(text, part, length);
	return 0;
}

/* A length that does not end within a character. */
static size_t whole_characters(const char *text, size_t length)
{
	while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80)
		length--;
	return length;
}

bool weir_kafka_letter_cut(struct weir_span letter, size_t most, struct weir_text *cut)
{
	json_t *tree = json_loadb(letter.at, letter.length, JSON_ALLOW_NUL, NULL);
	json_t *text = json_incref(json_object_get(tree, "text"));
	bool fits = false, more = json_is_string(text);
	size_t kept = json_string_length(text);
	if (more)
		json_object_set_new(tree, "cut", json_true());
	while (more && !fits) {
		json_object_set_new(tree, "text", json_stringn_nocheck(json_string_value(text), kept));
		weir_text_clear(cut);
		(void)json_dump_callback(tree, put_part, cut, JSON_COMPACT);
		fits = cut->length <= most;
		more = kept > 0;
		size_t less = fits ? 0 : (cut->length - most + ESCAPED_MOST_BYTES - 1) / ESCAPED_MOST_BYTES;
		kept = whole_characters(json_string_value(text), less < kept ? kept - less : 0);
	}
	json_decref(text);
	json_decref(tree);
	return fits;
}
