/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drops what cannot be read of a partition's state, and no more. A segment is dropped by an empty base, which hides what
 * was there; the row, by an empty one that continues at the same offset. Both are current by one commit, under an epoch
 * that fences a limiter which holds the partition.
 */
#include "deploy/weir/inspect/recover_state.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "limiter/checkpoint/checkpoint.h"
#include "limiter/lane/lane.h"
#include "limiter/lane/lane_place.h"
#include "limiter/shard/segment_blob.h"

#include <stdio.h>
#include <stdlib.h>

struct damage {
	const struct backend *backend;
	struct policy_registry *registry;
	uint32_t partition;
	struct weir_partition_state state;
	struct weir_text extra; /* of the state */
	bool row;               /* the row cannot be read, and no segment is worth anything without it */
	int64_t clock_ms;       /* as `extra` has it; 0: that cannot be read */
	bool has[SHARD_SEGMENTS], lost[SHARD_SEGMENTS];
	uint32_t segments, lost_count;
	struct weir_error why; /* of the first */
};

static void note_segment(void *context, uint32_t segment, uint32_t deltas, uint64_t base_bytes, uint64_t delta_bytes)
{
	struct damage *damage = context;
	(void)deltas, (void)base_bytes, (void)delta_bytes;
	if (segment >= SHARD_SEGMENTS || damage->has[segment])
		return;
	damage->has[segment] = true;
	damage->segments++;
}

static struct lane *empty_lane(const struct damage *damage)
{
	const struct shard_options options = {.partition = damage->partition,
	                                      .seed = damage->backend->seed,
	                                      .lateness_ms = damage->backend->lateness_ms,
	                                      .ceiling_bytes = 1}; /* what is loaded is only looked at */
	bool known = policy_registry_compiled(damage->registry, damage->state.policy_version) != NULL;
	return lane_new(&options, damage->registry,
	                known ? damage->state.policy_version : policy_registry_newest(damage->registry));
}

static void lose(struct damage *damage, uint32_t segment, const struct weir_error *why)
{
	if (damage->lost_count++ == 0 && !damage->row)
		damage->why = *why;
	damage->lost[segment] = true;
}

static enum weir_status look_at_segment(struct damage *damage, struct lane *lane, uint32_t segment,
                                        struct weir_error *error)
{
	struct checkpoint_blobs blobs;
	struct weir_store *store = damage->backend->store;
	enum weir_status status = checkpoint_read(store, damage->partition, damage->state.epoch, damage->state.checkpoint,
	                                          &segment, 1, &blobs, error);
	if (status == WEIR_OK) {
		status = checkpoint_load(lane, &segment, 1, &blobs, error);
		if (status == WEIR_INVALID) {
			lose(damage, segment, error);
			status = WEIR_OK;
		}
	}
	checkpoint_blobs_deinit(&blobs);
	return status;
}

static enum weir_status look_at_segments(struct damage *damage, struct lane *lane, struct weir_error *error)
{
	enum weir_status status =
		damage->backend->store->ops->list_segments(damage->backend->store, damage->partition, damage->state.epoch,
	                                               damage->state.checkpoint, note_segment, damage, error);
	for (uint32_t i = 0; i < SHARD_SEGMENTS && status == WEIR_OK; i++)
		if (damage->has[i] && damage->row)
			lose(damage, i, NULL);
		else if (damage->has[i])
			status = look_at_segment(damage, lane, i, error);
	return status;
}

/* A policy that the store has lost comes back, with all that was saved under it: nothing of that is damaged. */
static enum weir_status check_policy(const struct damage *damage, struct weir_error *error)
{
	uint64_t version = damage->state.policy_version;
	if (version <= policy_registry_newest(damage->registry))
		return WEIR_OK;
	return weir_fail(error, WEIR_IO,
	                 "partition %u was saved under policy %llu, which the store does not have: that is no damage, and "
	                 "nothing of it is dropped (runbook: store-failed-over)",
	                 damage->partition, (unsigned long long)version);
}

static enum weir_status look(struct damage *damage, struct weir_error *error)
{
	struct weir_store *store = damage->backend->store;
	enum weir_status status =
		store->ops->inspect(store, WEIR_STORE_ROLE_LIMITER, damage->partition, &damage->state, error);
	if (status != WEIR_OK || damage->state.checkpoint == 0)
		return status;
	status = check_policy(damage, error);
	if (status != WEIR_OK)
		return status;
	weir_text_append(&damage->extra, damage->state.extra.at, damage->state.extra.length);
	damage->state.extra.at = damage->extra.at;
	struct lane *lane = empty_lane(damage);
	status = lane_restore(lane, &damage->state, error);
	damage->row = status == WEIR_INVALID;
	damage->clock_ms = shard_clock_ms(lane_shard(lane));
	if (damage->row)
		damage->why = *error;
	if (status == WEIR_OK || damage->row)
		status = look_at_segments(damage, lane, error);
	lane_free(lane);
	return status;
}

static void tell(const struct damage *damage)
{
	if (damage->row)
		printf(
			"partition %u: its state cannot be read (%s): the counts, blocks and overrides of all its keys are lost, "
			"and what a collector sends again counts twice\n",
			damage->partition, damage->why.text);
	else if (damage->lost_count > 0)
		printf(
			"partition %u: %u of the %u parts of its state cannot be read (%s): the counts and blocks of %s keys are "
			"lost\n",
			damage->partition, damage->lost_count, damage->segments, damage->why.text,
			damage->lost_count == damage->segments ? "its" : "those");
	else
		printf("partition %u: all of its state can be read\n", damage->partition);
}

/*
 * The clock that the partition goes on with. One that is ahead of this machine's may be damage, and would never go back; any
 * frame advances one that is behind, and of what is empty nothing is forgotten.
 */
static int64_t clock_left(const struct damage *damage)
{
	int64_t clock_ms = damage->clock_ms > 0 ? damage->clock_ms : damage->state.clock_ms;
	return clock_ms > 0 && clock_ms <= weir_wall_ms() ? clock_ms : 0;
}

/* What replaces a row that cannot be read: nothing is known, and the log goes on where it was. */
static void make_row(const struct damage *damage, struct weir_partition_state *row, struct weir_text *extra)
{
	struct lane *lane = empty_lane(damage);
	struct weir_text empty = {0};
	struct lane_place place, none;
	struct weir_error ignored;
	struct weir_span before = damage->state.extra;
	shard_set_clock_ms(lane_shard(lane), clock_left(damage));
	lane_state(lane, row, &empty);
	struct weir_span rest = row->extra;
	if (lane_place_read(&before, &place, &ignored) != WEIR_OK)
		place = (struct lane_place){0};
	if (lane_place_read(&rest, &none, &ignored) == WEIR_OK) /* it was just written */
		lane_place_write(&place, extra);
	weir_text_append(extra, rest.at, rest.length);
	row->extra = (struct weir_span){.at = extra->at, .length = (uint32_t)extra->length};
	row->next_offset = damage->state.next_offset;
	weir_text_deinit(&empty);
	lane_free(lane);
}

static enum weir_status hide_segments(const struct damage *damage, uint64_t epoch, struct weir_error *error)
{
	char empty[SEGMENT_BLOB_HEAD_BYTES];
	size_t count = 0;
	struct weir_store *store = damage->backend->store;
	struct weir_segment_blob *blobs = weir_alloc(damage->lost_count + 1, sizeof *blobs);
	segment_blob_seal(empty, sizeof empty, 0);
	for (uint32_t i = 0; i < SHARD_SEGMENTS; i++)
		if (damage->lost[i])
			blobs[count++] = (struct weir_segment_blob){.segment = i,
			                                            .checkpoint = damage->state.checkpoint + 1,
			                                            .base = true,
			                                            .bytes = {.at = empty, .length = sizeof empty}};
	enum weir_status status =
		count > 0 ? store->ops->write_segments(store, damage->partition, epoch, blobs, count, error) : WEIR_OK;
	free(blobs);
	return status;
}

static enum weir_status drop(const struct damage *damage, struct weir_error *error)
{
	struct weir_partition_state taken, row = damage->state;
	struct weir_text extra = {0};
	struct weir_store *store = damage->backend->store;
	enum weir_status status = store->ops->take(store, WEIR_STORE_ROLE_LIMITER, damage->partition, &taken, error);
	if (status == WEIR_OK && taken.checkpoint != damage->state.checkpoint)
		return weir_fail(error, WEIR_IO, "partition %u was stored meanwhile: run the command again", damage->partition);
	if (status == WEIR_OK)
		status = hide_segments(damage, taken.epoch, error);
	if (status == WEIR_OK) {
		if (damage->row)
			make_row(damage, &row, &extra);
		row.epoch = taken.epoch;
		row.checkpoint = taken.checkpoint + 1;
		status = store->ops->commit(store, WEIR_STORE_ROLE_LIMITER, &row, 1, NULL, NULL, 0, error);
	}
	if (status == WEIR_OK)
		printf("partition %u continues without it at offset %llu\n", damage->partition,
		       (unsigned long long)row.next_offset);
	weir_text_deinit(&extra);
	return status;
}

enum weir_status recover_state(const struct backend *backend, struct policy_registry *registry, uint32_t partition,
                               bool yes, bool *damaged, struct weir_error *error)
{
	struct damage *damage = weir_alloc(1, sizeof *damage);
	*damage = (struct damage){.backend = backend, .registry = registry, .partition = partition};
	enum weir_status status = look(damage, error);
	bool bad = damage->row || damage->lost_count > 0;
	if (status == WEIR_OK)
		tell(damage);
	if (status == WEIR_OK && bad && yes)
		status = drop(damage, error);
	else if (status == WEIR_FENCED)
		status = weir_fail(error, WEIR_IO, "partition %u was stored meanwhile: run the command again", partition);
	*damaged |= bad;
	weir_text_deinit(&damage->extra);
	free(damage);
	return status;
}
