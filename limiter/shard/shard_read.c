/* SPDX-License-Identifier: Apache-2.0 */
/* Reads buckets, for people and tests: as they would be judged at the shard's clock. */
#include "limiter/shard/internal.h"

#include "common/base/alloc.h"

#include <stdlib.h>

static void read_limits(const struct bucket_view *view, struct shard_bucket *image)
{
	image->limit_count = view->layout->limit_count;
	if (view->decided != NULL) {
		image->decided_at_ms = bucket_decided_at(view);
		image->decided_until_ms = bucket_decided_until(view);
		image->decided_nth = decided_nth(view->decided, view->bucket->flags);
	}
	for (uint32_t i = 0; i < image->limit_count; i++) {
		const struct weir_limit_view *limit = &view->limits[i];
		if (!limit->shape->ops->is_empty(limit))
			limit->shape->ops->show(limit, &image->limits[i]);
	}
}

/* Opens a bucket as the policy in force has it; false: it is forgotten. */
static bool open_bucket(struct shard *shard, struct bucket *bucket, struct bucket_work *work)
{
	if (shard_is_forgotten(shard, bucket, shard->clock_ms))
		return false;
	const struct layout *layout = shard_layout_in_force(shard_layout_of(shard, bucket));
	shard_open(shard, bucket, bucket->low, bucket->high, layout, 1, work);
	return true;
}

static bool read_bucket(struct shard *shard, struct bucket *bucket, struct shard_bucket *image)
{
	struct bucket_work work;
	if (!open_bucket(shard, bucket, &work))
		return false;
	*image = (struct shard_bucket){.zone = compiled_policy_zone(shard->compiled, work.view.layout->zone_id),
	                               .print = {.low = bucket->low, .high = bucket->high},
	                               .decided_at_ms = -1,
	                               .decided_until_ms = -1};
	read_limits(&work.view, image);
	return true;
}

bool shard_read(struct shard *shard, uint32_t zone_id, struct weir_span key, struct shard_bucket *image)
{
	struct weir_fingerprint print = weir_fingerprint(shard->options.seed, zone_id, key);
	uint32_t ref = shard_find_ref(shard, print.low, print.high);
	return ref != 0 && read_bucket(shard, slab_at(&shard->slab, ref), image);
}

uint32_t shard_read_held(struct shard *shard, uint32_t zone_id, struct weir_span key, int64_t t,
                         struct shard_held held[WEIR_ZONE_LIMITS_MAX])
{
	struct weir_fingerprint print = weir_fingerprint(shard->options.seed, zone_id, key);
	uint32_t ref = shard_find_ref(shard, print.low, print.high);
	struct bucket_work work;
	if (ref == 0 || !open_bucket(shard, slab_at(&shard->slab, ref), &work))
		return 0;
	for (uint32_t i = 0; i < work.view.layout->limit_count; i++) {
		const struct weir_limit_view *limit = &work.view.limits[i];
		bool any = !limit->shape->ops->is_empty(limit);
		held[i] = (struct shard_held){.any = any,
		                              .late = any && (limit->shape->ops->judge(limit, t, 1) & WEIR_LIMIT_LATE) != 0,
		                              .held = any ? limit->shape->ops->held(limit, t) : 0};
	}
	return work.view.layout->limit_count;
}

uint32_t shard_segment_of(uint64_t fingerprint_low)
{
	return table_segment_of(bucket_tag(fingerprint_low));
}

void shard_bucket_deinit(struct shard_bucket *image)
{
	for (uint32_t i = 0; i < image->limit_count; i++)
		weir_text_deinit(&image->limits[i]);
	*image = (struct shard_bucket){0};
}

struct giving {
	struct shard *shard;
	void (*each)(void *context, const struct shard_bucket *image);
	void *context;
};

static void give_swapped(void *context, const struct bucket *bucket, size_t used)
{
	const struct giving *giving = context;
	struct shard_bucket image;
	struct bucket *copy = (void *)weir_copy(bucket, used);
	if (read_bucket(giving->shard, copy, &image)) {
		giving->each(giving->context, &image);
		shard_bucket_deinit(&image);
	}
	free(copy);
}

void shard_each(struct shard *shard, void (*each)(void *context, const struct shard_bucket *image), void *context)
{
	uint32_t refs[SLAB_PAGE_BLOCKS];
	struct shard_bucket image;
	uint32_t place = 0;
	for (uint32_t page = 0; page <= slab_page_end(&shard->slab); page++) {
		uint32_t count;
		if (page < slab_page_end(&shard->slab)) {
			count = slab_page_blocks(&shard->slab, page, refs);
		} else { /* the large blocks, one at a time */
			refs[0] = slab_next_large(&shard->slab, &place);
			count = refs[0] != 0;
			if (count > 0)
				page--;
			place++;
		}
		for (uint32_t i = 0; i < count; i++) {
			if (!read_bucket(shard, slab_at(&shard->slab, refs[i]), &image))
				continue;
			each(context, &image);
			shard_bucket_deinit(&image);
		}
	}
	struct giving giving = {.shard = shard, .each = each, .context = context};
	shard_each_swapped(shard, give_swapped, &giving);
}
