/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as what a store holds of a partition: it is refused, or it is
 * buckets, positions and counts that work. The first byte says what follows: a
 * segment's blob (its checksum is put right first), a shard's part of the state,
 * or a tally.
 *
 * A bucket that was let in is judged by events around its newest time, under the
 * policy that it was written in and the one after, and with its rates multiplied.
 */
#include "common/base/alloc.h"
#include "limiter/bucket/bucket_judge.h"
#include "limiter/lane/policy_registry.h"
#include "limiter/lane/tally.h"
#include "limiter/shard/segment_blob.h"
#include "limiter/shard/shard.h"

#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { POLICIES = 2 };

/* The second keeps some limits, changes some, adds one and drops a zone. */
static const char *const policies[POLICIES] = {
	"{\"zones\":["
	"{\"id\":1,\"name\":\"site\",\"key\":[\"user\"],\"limits\":["
	"{\"algorithm\":\"sliding_window\",\"rate\":10,\"window\":\"1m\"},"
	"{\"algorithm\":\"fixed_window\",\"rate\":30,\"window\":\"1h\"},"
	"{\"algorithm\":\"fixed_window\",\"rate\":200,\"window\":\"1d\"}]},"
	"{\"id\":2,\"name\":\"tokens\",\"key\":[\"user\"],\"count\":\"all\",\"block_for\":[\"2m\",\"1h\"],"
	"\"forgive_after\":\"1d\",\"limits\":["
	"{\"algorithm\":\"token_bucket\",\"rate\":5,\"window\":\"10s\",\"burst\":8},"
	"{\"algorithm\":\"gcra\",\"rate\":6,\"window\":\"30s\",\"burst\":2},"
	"{\"algorithm\":\"token_bucket\",\"rate\":3,\"window\":\"5s\",\"burst\":4,\"penalize\":true}]},"
	"{\"id\":3,\"name\":\"queue\",\"key\":[\"user\"],\"limits\":["
	"{\"algorithm\":\"queue\",\"length\":4,\"hold\":\"20s\",\"done\":{\"path\":[\"/3\"]}},"
	"{\"algorithm\":\"uniform\",\"interval\":\"1500ms\"},"
	"{\"algorithm\":\"sliding_window\",\"rate\":3,\"window\":\"30s\",\"precision\":\"1s\"}]},"
	"{\"id\":4,\"name\":\"gone\",\"key\":[\"user\"],\"limits\":["
	"{\"algorithm\":\"sliding_window\",\"rate\":2,\"window\":\"1m\"}]}]}",
	"{\"zones\":["
	"{\"id\":1,\"name\":\"site\",\"key\":[\"user\"],\"limits\":["
	"{\"algorithm\":\"fixed_window\",\"rate\":30,\"window\":\"1h\"},"
	"{\"algorithm\":\"sliding_window\",\"rate\":20,\"window\":\"1m\"},"
	"{\"algorithm\":\"gcra\",\"rate\":6,\"window\":\"30s\",\"burst\":2}]},"
	"{\"id\":2,\"name\":\"tokens\",\"key\":[\"user\"],\"limits\":["
	"{\"algorithm\":\"token_bucket\",\"rate\":5,\"window\":\"10s\",\"burst\":8}]},"
	"{\"id\":3,\"name\":\"queue\",\"key\":[\"user\"],\"limits\":["
	"{\"algorithm\":\"sliding_window\",\"rate\":3,\"window\":\"30s\",\"precision\":\"1s\"},"
	"{\"algorithm\":\"queue\",\"length\":4,\"hold\":\"20s\",\"done\":{\"path\":[\"/3\"]}}]},"
	"{\"id\":5,\"name\":\"late\",\"key\":[\"user\"],\"count\":\"all\",\"limits\":["
	"{\"algorithm\":\"sliding_window\",\"rate\":3,\"window\":\"30s\",\"lateness\":\"2m\"},"
	"{\"algorithm\":\"sliding_window\",\"rate\":40,\"window\":\"30s\",\"precision\":\"1s\",\"lateness\":\"10s\"}]}]}",
};

static struct policy_registry *open_registry(void)
{
	static struct policy_registry *registry;
	struct weir_error error;
	if (registry != NULL)
		return registry;
	registry = policy_registry_new();
	for (uint32_t i = 0; i < POLICIES; i++) {
		enum weir_status status = policy_registry_add(registry, i + 1, weir_span_of(policies[i]), &error);
		assert(status == WEIR_OK);
		(void)status;
	}
	return registry;
}

/* ---- a segment's blob ---- */

/* Opens the bucket under a compiled policy, as the shard does. */
static void open_bucket(struct bucket_work *work, struct bucket_scratch *scratch, struct bucket *bucket,
                        const struct compiled_policy *compiled, const struct layout *to)
{
	if (bucket->layout == to->id && bucket_scale(bucket) == to->scale && !(bucket->flags & BUCKET_SINGLE))
		bucket_work_open(work, scratch, bucket, to);
	else
		bucket_work_convert(work, scratch, bucket,
		                    compiled_policy_layout(compiled, bucket->layout, bucket_scale(bucket)), to, 1);
}

static void judge_around(struct bucket *bucket, const struct compiled_policy *compiled, uint32_t scale)
{
	static const int64_t steps_ms[] = {-90000, -1, 0, 1, 999, 30000, 3600000, 86400000};
	static const int64_t costs[] = {1, 0, 3, 1000000000};
	const struct layout *layout = compiled_policy_layout(compiled, bucket->layout, bucket_scale(bucket));
	const struct compiled_zone *zone = compiled_policy_zone(compiled, layout->zone_id);
	struct bucket_scratch scratch = {.next = 0};
	struct bucket_work work;
	if (zone == NULL)
		return;
	const struct layout *to =
		compiled_policy_layout(compiled, zone->layout->id | (scale == SCALE_ONE ? 0 : LAYOUT_SCALED), scale);
	open_bucket(&work, &scratch, bucket, compiled, to);
	for (size_t i = 0; i < sizeof steps_ms / sizeof *steps_ms; i++) {
		struct bucket_verdict verdict = {.bits = 0};
		int64_t t = (int64_t)work.view.bucket->newest_ms + steps_ms[i];
		if (t < 0 || t >= WEIR_TIME_END_MS)
			continue;
		bucket_judge(&work, zone->zone, t, costs[i % (sizeof costs / sizeof *costs)], false, ANSWER_NONE, &verdict);
		bucket_done(&work, zone->zone, t, 0, &verdict);
		size_t used = bucket_used(work.view.bucket, to);
		assert(bucket_check(work.view.bucket, to, used));
		(void)used;
	}
	bucket_scratch_deinit(&scratch);
}

static void use_buckets(struct policy_registry *registry, struct weir_span blob)
{
	struct weir_error error;
	for (uint64_t version = 1; version <= POLICIES; version++) {
		const struct compiled_policy *compiled = policy_registry_compiled(registry, version);
		struct segment_blob_reader reader;
		struct segment_blob_bucket stored;
		if (segment_blob_open(&reader, blob, &error) != WEIR_OK)
			return;
		while (segment_blob_next(&reader, &stored, &error) == WEIR_OK) {
			static const uint32_t scales[] = {SCALE_ONE, 100, 10000};
			for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
				/* In a block of exactly its size, so that a step beyond it is seen. */
				struct bucket *bucket = weir_alloc(1, sizeof *bucket + stored.body_bytes);
				if (segment_blob_restore(&stored, compiled, bucket, &error) == WEIR_OK)
					judge_around(bucket, compiled, scales[i]);
				free(bucket);
			}
		}
	}
}

static void count_bucket(void *context, const struct shard_bucket *image)
{
	(void)image;
	++*(uint64_t *)context;
}

/* What a shard takes it gives back in its next snapshot: all that is not forgotten, once. */
static void use_segment(struct policy_registry *registry, struct weir_span blob)
{
	struct weir_error error;
	struct shard_options options = {.seed = 1, .lateness_ms = -1};
	struct shard *shard = shard_new(&options, policy_registry_compiled(registry, POLICIES));
	struct segment_blob_reader reader;
	struct segment_blob_bucket first;
	uint32_t segment = 0;
	if (segment_blob_open(&reader, blob, &error) == WEIR_OK && segment_blob_next(&reader, &first, &error) == WEIR_OK)
		segment = shard_segment_of(first.header.low);
	if (shard_load(shard, segment, &blob, 1, &error) == WEIR_OK) {
		uint64_t seen = 0;
		struct shard_stats stats;
		shard_each(shard, count_bucket, &seen);
		shard_stats(shard, &stats);
		assert(seen <= stats.buckets);
		shard_sweep(shard, 1000);
	}
	shard_free(shard);
	char *merged;
	size_t length;
	const struct compiled_policy *compiled = policy_registry_compiled(registry, POLICIES);
	if (segment_blob_merge(&blob, 1, compiled, 0, -1, &merged, &length, &error) == WEIR_OK) {
		struct weir_span whole = {.at = merged, .length = (uint32_t)length};
		assert(length <= blob.length && segment_blob_open(&reader, whole, &error) == WEIR_OK);
		(void)whole;
		free(merged);
	}
}

static void try_blob(struct policy_registry *registry, char *bytes, size_t length)
{
	struct weir_span blob = {.at = bytes, .length = (uint32_t)length};
	if (length >= SEGMENT_BLOB_HEAD_BYTES && bytes[2] >= 1 && bytes[2] <= SEGMENT_BLOB_VERSION) {
		uint32_t buckets = (uint8_t)bytes[4] | (uint32_t)(uint8_t)bytes[5] << 8;
		char version = bytes[2];
		segment_blob_seal(bytes, length, buckets);
		if (version < SEGMENT_BLOB_VERSION) { /* whose checksum is of what follows the header alone */
			bytes[2] = version;
			weir_bytes_put((uint8_t *)bytes + 8, 8,
			               weir_hash64(bytes + SEGMENT_BLOB_HEAD_BYTES, length - SEGMENT_BLOB_HEAD_BYTES));
		}
	}
	use_buckets(registry, blob);
	use_segment(registry, blob);
}

/* ---- the rest of a state ---- */

static void try_extra(struct policy_registry *registry, struct weir_span bytes)
{
	struct weir_error error;
	struct shard_options options = {.seed = 1, .lateness_ms = -1};
	struct shard *shard = shard_new(&options, policy_registry_compiled(registry, POLICIES));
	if (shard_import_extra(shard, bytes, &error) == WEIR_OK) {
		size_t length;
		char *again = shard_export_extra(shard, &length);
		struct weir_span span = {.at = again, .length = (uint32_t)length};
		enum weir_status status = shard_import_extra(shard, span, &error);
		assert(length <= bytes.length && status == WEIR_OK);
		(void)status;
		free(again);
	}
	shard_free(shard);
}

static void try_tally(struct weir_span bytes)
{
	struct weir_error error;
	struct tally *tally = tally_new();
	if (tally_import(tally, bytes, &error) == WEIR_OK) {
		struct weir_text again = {0}, twice = {0};
		tally_export(tally, &again);
		struct weir_span span = {.at = again.at, .length = (uint32_t)again.length};
		enum weir_status status = tally_import(tally, span, &error);
		tally_export(tally, &twice);
		assert(status == WEIR_OK && again.length == twice.length && memcmp(again.at, twice.at, again.length) == 0);
		(void)status;
		weir_text_deinit(&again);
		weir_text_deinit(&twice);
	}
	tally_free(tally);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	struct policy_registry *registry = open_registry();
	char *bytes = weir_copy(data + 1, size - 1);
	struct weir_span span = {.at = bytes, .length = (uint32_t)(size - 1)};
	switch (data[0] % 3) {
	case 0: try_blob(registry, bytes, size - 1); break;
	case 1: try_extra(registry, span); break;
	default: try_tally(span); break;
	}
	free(bytes);
	return 0;
}
