/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of one message: decode, look up its keys, wait for segments that are
 * not in memory, judge, count. An operator's command waits for its bucket's
 * segment as a frame does. A policy record switches the policy between two
 * messages.
 */
#include "limiter/lane/lane.h"

#include "common/base/alloc.h"
#include "limiter/lane/internal.h"
#include "limiter/lane/policy_switch.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct lane {
	uint32_t partition;
	struct policy_registry *registry; /* borrowed */
	struct shard *shard;
	struct tally *tally;
	struct weir_frame_reader *reader;
	struct weir_frame frame; /* the current message */
	int64_t appended_ms;     /* when the log took it, by the log's clock; 0: not known */
	int64_t ahead_ms;        /* by how much its sending time was reduced */
	struct override_command command;
	struct lane_place place;
	uint64_t next_offset;
	uint64_t policy_version;
	const struct compiled_policy *compiled; /* of policy_version */
	struct policy_switch change;            /* the last one */
	struct lane_checks *checks;             /* NULL: it has answered none */
	bool waiting;
	uint32_t missing_count;
	uint32_t missing[SHARD_MISSING_MOST];
};

struct lane *lane_new(const struct shard_options *options, struct policy_registry *registry, uint64_t version)
{
	struct lane *lane = weir_alloc(1, sizeof *lane);
	lane->partition = options->partition;
	lane->registry = registry;
	lane->policy_version = version;
	lane->compiled = policy_registry_compiled(registry, version);
	lane->shard = shard_new(options, lane->compiled);
	lane->tally = tally_new();
	lane->reader = weir_frame_reader_new();
	return lane;
}

void lane_free(struct lane *lane)
{
	if (lane == NULL)
		return;
	shard_free(lane->shard);
	tally_free(lane->tally);
	weir_frame_reader_free(lane->reader);
	policy_switch_deinit(&lane->change);
	lane_checks_free(lane->checks);
	free(lane);
}

/* Reads a partition's `extra`: its place, the length of the shard's part (u32, little-endian), that part, the tally. */
static enum weir_status import_extra(struct lane *lane, struct weir_span extra, struct weir_error *error)
{
	enum weir_status status = lane_place_read(&extra, &lane->place, error);
	if (status != WEIR_OK) {
		weir_error_prefix(error, "partition %u", lane->partition);
		return status;
	}
	if (extra.length < 4)
		return weir_fail(error, WEIR_INVALID, "the saved state of partition %u is truncated", lane->partition);
	const unsigned char *at = (const unsigned char *)extra.at;
	uint32_t length = at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
	if (length > extra.length - 4)
		return weir_fail(error, WEIR_INVALID, "the saved state of partition %u is truncated", lane->partition);
	struct weir_span shard = {.at = extra.at + 4, .length = length};
	struct weir_span tally = {.at = shard.at + length, .length = extra.length - 4 - length};
	status = shard_import_extra(lane->shard, shard, error);
	return status == WEIR_OK ? tally_import(lane->tally, tally, error) : status;
}

/*
 * A row says its clock and its policy twice: in columns, for people, and in its `extra`. What differs was not written so. A
 * clock that is far ahead would have every bucket forgotten without a word, and never goes back.
 */
static enum weir_status check_columns(const struct lane *lane, const struct weir_partition_state *state,
                                      struct weir_error *error)
{
	int64_t clock_ms = shard_clock_ms(lane->shard);
	uint64_t version = shard_policy_version(lane->shard);
	if (state->clock_ms != clock_ms)
		return weir_fail(
			error, WEIR_INVALID,
			"the saved state of partition %u is damaged: its clock is %lld in one place and %lld in the other",
			lane->partition, (long long)state->clock_ms, (long long)clock_ms);
	if (state->policy_version != version)
		return weir_fail(
			error, WEIR_INVALID,
			"the saved state of partition %u is damaged: its policy is %llu in one place and %llu in the other",
			lane->partition, (unsigned long long)state->policy_version, (unsigned long long)version);
	return WEIR_OK;
}

enum weir_status lane_restore(struct lane *lane, const struct weir_partition_state *state, struct weir_error *error)
{
	if (state->checkpoint == 0)
		return WEIR_OK;
	const struct compiled_policy *compiled = policy_registry_compiled(lane->registry, state->policy_version);
	if (compiled == NULL)
		return weir_fail(
			error, WEIR_INVALID,
			"partition %u was saved under policy %llu, which the store does not have, and which could not be "
			"read from the policy topic. Nothing is judged in it meanwhile (runbook: store-failed-over)",
			lane->partition, (unsigned long long)state->policy_version);
	enum weir_status status = import_extra(lane, state->extra, error);
	if (status == WEIR_OK)
		status = check_columns(lane, state, error);
	if (status != WEIR_OK)
		return status;
	lane->policy_version = state->policy_version;
	lane->compiled = compiled;
	lane->next_offset = state->next_offset;
	shard_set_policy(lane->shard, compiled);
	tally_keep_zones(lane->tally, policy_registry_policy(lane->registry, state->policy_version));
	return WEIR_OK;
}

/* A number names one policy for ever. Another text under one that is in force is skipped, and is not to be silent. */
static enum weir_status check_same(const struct lane *lane, struct weir_error *error)
{
	uint64_t version = lane->frame.policy_version;
	const struct weir_policy *ours = policy_registry_policy(lane->registry, version);
	struct weir_policy *theirs;
	enum weir_status status = weir_policy_decode(version, lane->frame.body.at, lane->frame.body.length, &theirs, error);
	if (status != WEIR_OK || ours == NULL)
		return status;
	bool same = strcmp(ours->text, theirs->text) == 0;
	weir_policy_free(theirs);
	return same ? WEIR_OK
	            : weir_fail(error, WEIR_INVALID,
	                        "policy %llu is in the log with other zones than policy %llu that was in force here: its "
	                        "zones are not in force. Apply them again (runbook: store-failed-over)",
	                        (unsigned long long)version, (unsigned long long)version);
}

static enum weir_status take_policy(struct lane *lane, struct lane_result *result, struct weir_error *error)
{
	uint64_t version = lane->frame.policy_version;
	shard_advance_clock(lane->shard, lane->frame.sending_time_ms);
	if (version <= lane->policy_version)
		return check_same(lane, error); /* appended again, by a start that could not know that it was there */
	if (policy_registry_policy(lane->registry, version) == NULL)
		return weir_fail(error, WEIR_INVALID, "policy %llu is in the log but not in the store",
		                 (unsigned long long)version);
	const struct weir_policy *before = policy_registry_policy(lane->registry, lane->policy_version);
	const struct weir_policy *after = policy_registry_policy(lane->registry, version);
	lane->policy_version = version;
	lane->compiled = policy_registry_compiled(lane->registry, version);
	shard_set_policy(lane->shard, lane->compiled);
	tally_keep_zones(lane->tally, after);
	policy_switch_find(&lane->change, before, after, shard_overrides(lane->shard), result->at_ms);
	result->change = &lane->change;
	return WEIR_OK;
}

/* Whether the current message is a newer policy that the registry does not have. */
static bool is_unknown_policy(const struct lane *lane)
{
	uint64_t version = lane->frame.policy_version;
	return lane->frame.kind == WEIR_FRAME_POLICY && version > lane->policy_version &&
	       policy_registry_policy(lane->registry, version) == NULL;
}

bool lane_awaits_policy(const struct lane *lane)
{
	struct weir_policy *policy;
	struct weir_error error;
	uint64_t version = lane->frame.policy_version;
	if (!lane->waiting || !is_unknown_policy(lane) || policy_registry_policy(lane->registry, version - 1) == NULL ||
	    weir_policy_decode(version, lane->frame.body.at, lane->frame.body.length, &policy, &error) != WEIR_OK)
		return false;
	weir_policy_free(policy);
	return true;
}

/* Turns any failure of a record into WEIR_INVALID: it is skipped, and the lane's caller counts it. */
static enum weir_status refuse(enum weir_status status)
{
	return status == WEIR_OK ? WEIR_OK : WEIR_INVALID;
}

/* Takes a record that is neither events nor a command. It is done after this, whatever the status. */
static enum weir_status take_record(struct lane *lane, struct lane_result *result, struct weir_error *error)
{
	enum weir_status status;
	if (lane->frame.kind == WEIR_FRAME_POLICY)
		status = take_policy(lane, result, error);
	else
		status = weir_fail(error, WEIR_INVALID, "limiters do not read frames of kind %d", lane->frame.kind);
	lane->waiting = false;
	lane->next_offset++;
	return refuse(status);
}

static struct lane_result begin_result(const struct lane *lane)
{
	return (struct lane_result){.offset = lane->next_offset,
	                            .number = lane->place.base + lane->next_offset,
	                            .at_ms = lane->frame.sending_time_ms,
	                            .ahead_ms = lane->ahead_ms,
	                            .source = lane->frame.source};
}

enum weir_status lane_go_on(struct lane *lane, struct lane_result *result, struct weir_error *error)
{
	assert(lane->waiting);
	*result = begin_result(lane);
	if (lane_awaits_policy(lane))
		return WEIR_AGAIN;
	if (!weir_frame_is_of_events(&lane->frame) && lane->frame.kind != WEIR_FRAME_COMMAND)
		return take_record(lane, result, error);
	lane->missing_count = shard_missing(lane->shard, lane->missing);
	if (lane->missing_count > 0)
		return WEIR_AGAIN;
	enum weir_status status = WEIR_OK;
	if (lane->frame.kind == WEIR_FRAME_COMMAND) {
		status = refuse(shard_command_apply(lane->shard, &result->override, error));
		result->command = status == WEIR_OK ? &lane->command : NULL;
		if (status == WEIR_OK && lane->command.kind == OVERRIDE_LIFT && result->override != NULL)
			top_keys_forget(tally_keys(lane->tally), result->override->zone->id, override_key(&lane->command));
	} else {
		shard_frame_judge(lane->shard, &result->judged);
		if (lane->frame.kind == WEIR_FRAME_CHECKS)
			lane_checks_see(lane, &lane->frame);
		tally_frame(lane->tally, &lane->frame, &result->judged);
		result->frame = &lane->frame;
	}
	lane->waiting = false;
	lane->next_offset++;
	return status;
}

/* Begins a command, which may have to wait for its bucket. */
static enum weir_status begin_command(struct lane *lane, struct weir_error *error)
{
	shard_advance_clock(lane->shard, lane->frame.sending_time_ms);
	enum weir_status status = override_command_parse(lane->frame.body, &lane->command, error);
	lane->command.offset = lane->place.base + lane->next_offset;
	if (status == WEIR_OK)
		status = shard_command_begin(lane->shard, &lane->command, lane->frame.sending_time_ms, error);
	return refuse(status);
}

/*
 * Decodes a message, and bounds its times. A partition's clock never goes back, so one sender's clock far ahead would
 * make every bucket forgotten for good; and events of tomorrow would make those of today late, which count nothing.
 */
static enum weir_status decode(struct lane *lane, struct weir_span message, struct weir_error *error)
{
	enum weir_status status = weir_frame_decode(lane->reader, message, &lane->frame, error);
	if (status != WEIR_OK)
		return status;
	lane->ahead_ms = weir_frame_bound_times(lane->reader, &lane->frame, lane->appended_ms);
	return WEIR_OK;
}

enum weir_status lane_offer(struct lane *lane, struct weir_span message, uint64_t offset, int64_t appended_ms,
                            struct lane_result *result, struct weir_error *error)
{
	assert(!lane->waiting);
	*result = (struct lane_result){.offset = offset, .number = lane->place.base + offset};
	if (offset < lane->next_offset)
		return WEIR_OK;
	lane->appended_ms = appended_ms;
	enum weir_status status = decode(lane, message, error);
	if (status == WEIR_NEWER)
		return status;
	lane->place.last = weir_mark_of(message, offset, appended_ms);
	if (status != WEIR_OK) {
		lane->next_offset = offset + 1;
		return refuse(status);
	}
	lane->next_offset = offset;
	if (lane->frame.kind == WEIR_FRAME_COMMAND && (status = begin_command(lane, error)) != WEIR_OK) {
		*result = begin_result(lane);
		lane->next_offset = offset + 1;
		return status;
	}
	lane->waiting = true;
	lane->missing_count = 0;
	if (weir_frame_is_of_events(&lane->frame))
		shard_frame_begin(lane->shard, &lane->frame, lane->place.base + offset);
	else if (is_unknown_policy(lane))
		return WEIR_AGAIN;
	return lane_go_on(lane, result, error);
}

/* Decoding the same bytes again fills the same arrays, except that keys point to the copy. */
void lane_keep_message(struct lane *lane, struct weir_span copy)
{
	struct weir_error error;
	enum weir_status status = decode(lane, copy, &error);
	assert(lane->waiting && status == WEIR_OK);
	(void)status;
}

const uint32_t *lane_missing(const struct lane *lane, uint32_t *count)
{
	*count = lane->missing_count;
	return lane->missing;
}

void lane_state(const struct lane *lane, struct weir_partition_state *state, struct weir_text *extra)
{
	size_t length;
	char *shard = shard_export_extra(lane->shard, &length);
	char head[4] = {(char)length, (char)(length >> 8), (char)(length >> 16), (char)(length >> 24)};
	size_t start = extra->length;
	lane_place_write(&lane->place, extra);
	weir_text_append(extra, head, sizeof head);
	weir_text_append(extra, shard, length);
	tally_export(lane->tally, extra);
	free(shard);
	state->partition = lane->partition;
	state->next_offset = lane->next_offset;
	state->clock_ms = shard_clock_ms(lane->shard);
	state->policy_version = lane->policy_version;
	state->extra = (struct weir_span){.at = extra->at + start, .length = (uint32_t)(extra->length - start)};
}

struct lane_checks **lane_checks_of(struct lane *lane)
{
	return &lane->checks;
}

struct shard *lane_shard(struct lane *lane)
{
	return lane->shard;
}

struct tally *lane_tally(struct lane *lane)
{
	return lane->tally;
}

uint32_t lane_partition(const struct lane *lane)
{
	return lane->partition;
}

uint64_t lane_next_offset(const struct lane *lane)
{
	return lane->next_offset;
}

const struct lane_place *lane_place(const struct lane *lane)
{
	return &lane->place;
}

uint64_t lane_awaited_policy(const struct lane *lane)
{
	return lane_awaits_policy(lane) ? lane->frame.policy_version : 0;
}

uint64_t lane_policy_version(const struct lane *lane)
{
	return lane->policy_version;
}

const struct compiled_policy *lane_compiled_policy(const struct lane *lane)
{
	return lane->compiled;
}
