/* SPDX-License-Identifier: Apache-2.0 */
/* Amazon Data Firehose's requests: records in base64. A record without a line end is a line. */
#include "collector/source/push/decode/decode_tree.h"

static int value_of(char digit)
{
	if (digit >= 'A' && digit <= 'Z')
		return digit - 'A';
	if (digit >= 'a' && digit <= 'z')
		return digit - 'a' + 26;
	if (digit >= '0' && digit <= '9')
		return digit - '0' + 52;
	if (digit == '+' || digit == '-')
		return 62;
	return digit == '/' || digit == '_' ? 63 : -1;
}

bool decode_base64(struct weir_span text, struct weir_text *bytes)
{
	uint32_t bits = 0, count = 0, length = text.length;
	while (length > 0 && text.at[length - 1] == '=')
		length--;
	if (text.length - length > 2 || length % 4 == 1)
		return false;
	char *out = weir_text_reserve(bytes, (size_t)length / 4 * 3 + 3);
	for (uint32_t i = 0; i < length; i++) {
		int value = value_of(text.at[i]);
		if (value < 0)
			return false;
		bits = bits << 6 | (uint32_t)value;
		count += 6;
		if (count >= 8) {
			count -= 8;
			*out++ = (char)(bits >> count);
			bytes->length++;
		}
	}
	return true;
}

static enum weir_status take_record(const json_t *record, size_t most, struct weir_text *lines,
                                    struct weir_error *error)
{
	const json_t *data = json_object_get(record, "data");
	size_t before = lines->length;
	if (!json_is_string(data) ||
	    !decode_base64((struct weir_span){json_string_value(data), (uint32_t)json_string_length(data)}, lines))
		return weir_fail(error, WEIR_INVALID, "the \"data\" of a record is no base64");
	if (lines->length > before && lines->at[lines->length - 1] != '\n')
		weir_text_append(lines, "\n", 1);
	return decode_fits(lines, most, error);
}

enum weir_status decode_firehose(struct weir_span body, size_t most, struct weir_text *lines, struct weir_text *answer,
                                 struct weir_error *error)
{
	json_t *tree;
	const json_t *records = NULL, *record;
	size_t place;
	enum weir_status status = decode_tree(body, "\"records\"", &tree, error);
	if (status != WEIR_OK)
		return status;
	const json_t *id = json_object_get(tree, "requestId");
	weir_text_append(answer, json_string_value(id), json_string_length(id));
	status = decode_list(tree, "records", &records, error);
	json_array_foreach(records, place, record)
	{
		if (status == WEIR_OK)
			status = take_record(record, most, lines, error);
	}
	json_decref(tree);
	return status;
}
