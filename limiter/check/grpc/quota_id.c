/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs are sorted where they are; ids of more than a few have room of their own for as long as that takes. */
#include "limiter/check/grpc/quota_id.h"

#include "common/base/alloc.h"

#include <stdlib.h>

enum { ID_BUCKET = 1, PAIR_KEY = 1, PAIR_VALUE = 2, FEW_PAIRS = 16 };

static bool read_pair(struct weir_span message, struct quota_pair *pair)
{
	struct protobuf_reader reader = protobuf_reader_of(message);
	struct protobuf_field field;
	pair->key = pair->value = (struct weir_span){.at = ""};
	while (protobuf_next(&reader, &field)) {
		if (protobuf_is_bytes(&field, PAIR_KEY))
			pair->key = field.bytes;
		else if (protobuf_is_bytes(&field, PAIR_VALUE))
			pair->value = field.bytes;
	}
	return !reader.bad;
}

bool quota_id_next(struct protobuf_reader *reader, struct quota_pair *pair)
{
	struct protobuf_field field;
	while (protobuf_next(reader, &field)) {
		if (!protobuf_is_bytes(&field, ID_BUCKET))
			continue;
		reader->bad = !read_pair(field.bytes, pair);
		return !reader->bad;
	}
	return false;
}

static int compare_keys(const struct quota_pair *one, const struct quota_pair *other)
{
	size_t common = one->key.length < other->key.length ? one->key.length : other->key.length;
	int order = memcmp(one->key.at, other->key.at, common);
	return order != 0 ? order : (one->key.length > other->key.length) - (one->key.length < other->key.length);
}

static int compare(const void *one, const void *other)
{
	const struct quota_pair *a = one, *b = other;
	int order = compare_keys(a, b);
	return order != 0 ? order : (a->place > b->place) - (a->place < b->place);
}

static void put_pair(struct weir_text *text, const struct quota_pair *pair)
{
	size_t opened = protobuf_open(text, ID_BUCKET);
	if (pair->key.length > 0)
		protobuf_put_bytes(text, PAIR_KEY, pair->key);
	if (pair->value.length > 0)
		protobuf_put_bytes(text, PAIR_VALUE, pair->value);
	protobuf_close(text, opened);
}

bool quota_id_put(struct weir_text *text, struct weir_span id)
{
	struct quota_pair few[FEW_PAIRS], *more = NULL, *pairs = few, pair;
	struct protobuf_reader reader = protobuf_reader_of(id);
	uint32_t count = 0, room = FEW_PAIRS;
	while (quota_id_next(&reader, &pair)) {
		if (count == room) {
			more = weir_realloc(more, room *= 2, sizeof *more);
			if (pairs == few)
				memcpy(more, few, sizeof few);
			pairs = more;
		}
		pair.place = count;
		pairs[count++] = pair;
	}
	if (!reader.bad && count > 1)
		qsort(pairs, count, sizeof *pairs, compare);
	for (uint32_t i = 0; i < count && !reader.bad; i++)
		if (i + 1 == count || compare_keys(&pairs[i], &pairs[i + 1]) != 0)
			put_pair(text, &pairs[i]);
	free(more);
	return !reader.bad;
}
