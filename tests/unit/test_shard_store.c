/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shard with a store beside it: checkpoints that are stored or fail, starts
 * from the last one stored, tiny ceilings, loads in any order. Whatever happens,
 * the verdicts are those of the model that never lost a thing.
 */
#include "limiter/memory/swap.h"
#include "limiter/shard/segment_blob.h"
#include "shard_scene.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

enum { FRAMES = 300, POLICIES = 12, BLOBS_MAX = 6, PAIRS_MAX = SCENE_EVENTS * SCENE_SET_ZONES };

/* What the log holds: a policy, a command, or a frame, with what the model said to it. */
struct record {
	uint32_t policy; /* 0: none */
	bool commanded;
	struct override_command command;
	int64_t at_ms;
	struct model_published published;
	struct scene_frame frame;
	uint8_t verdicts[PAIRS_MAX];
	struct shard_decision *decisions;
	uint32_t decision_count;
};

/* The blobs of one segment that the current checkpoint is made of. */
struct stored_segment {
	struct weir_span blobs[BLOBS_MAX];
	uint32_t count;
};

struct store {
	struct stored_segment segments[SHARD_SEGMENTS];
	char *extra;
	size_t extra_length;
	uint32_t policy; /* in force at the checkpoint */
	uint32_t next;   /* record that comes after it */
	int64_t clock_ms;
	bool exists;
};

struct stage {
	struct scene scene;
	struct shard_options options;
	const struct weir_policy *policies[POLICIES];
	struct compiled_policy *compiled[POLICIES];
	uint32_t policy_count, next_id;
	struct record *records;
	uint32_t record_count;
	struct model *model;
	char swap_directory[64];

	struct shard *shard;
	uint32_t policy; /* in force in the shard */
	uint32_t next;   /* record that it takes next */
	struct store store;
	struct shard_snapshot snapshot;          /* on its way */
	struct weir_span deltas[SHARD_SEGMENTS]; /* its, until it is stored */
	struct store cut;                        /* what goes with it: extra, policy, next, clock */
	bool pending;
	uint64_t evictions, loads, recalls, restarts, given_up, lost, parts;
	bool filled_swap;
	bool writable, was_writable;             /* swap, now and at the last look at it */
	uint64_t swap_failures, swap_file_bytes; /* at the last look */
};

static int64_t below(struct stage *stage, int64_t number)
{
	return scene_below(&stage->scene.random, number);
}

/* ---- the store ---- */

static void clear_segment(struct stored_segment *segment)
{
	for (uint32_t i = 0; i < segment->count; i++)
		free((char *)segment->blobs[i].at);
	segment->count = 0;
}

static void merge_segment(struct stage *stage, struct stored_segment *segment)
{
	char *merged;
	size_t length;
	struct weir_error error;
	assert_int_equal(segment_blob_merge(segment->blobs, segment->count, stage->compiled[stage->store.policy],
	                                    stage->store.clock_ms, stage->options.lateness_ms, &merged, &length, &error),
	                 WEIR_OK);
	clear_segment(segment);
	segment->blobs[segment->count++] = (struct weir_span){.at = merged, .length = (uint32_t)length};
}

static void take_snapshot(struct stage *stage)
{
	shard_snapshot(stage->shard, &stage->snapshot);
	stage->cut = (struct store){.policy = stage->policy, .next = stage->next, .clock_ms = shard_clock_ms(stage->shard)};
	stage->cut.extra = shard_export_extra(stage->shard, &stage->cut.extra_length);
	stage->pending = true;
}

static void take_deltas(struct stage *stage)
{
	for (uint32_t i = 0; i < stage->snapshot.segment_count; i++) {
		struct weir_span delta = stage->snapshot.deltas[i], *own = &stage->deltas[stage->snapshot.segments[i]];
		assert_null(own->at); /* a segment is in one part */
		*own = (struct weir_span){.at = weir_copy(delta.at, delta.length), .length = delta.length};
	}
}

/* A snapshot is stored whole, or not at all. */
static void store_deltas(struct stage *stage, bool stored)
{
	for (uint32_t i = 0; i < SHARD_SEGMENTS; i++) {
		struct stored_segment *segment = &stage->store.segments[i];
		if (stage->deltas[i].at == NULL)
			continue;
		if (stored && segment->count == BLOBS_MAX)
			merge_segment(stage, segment);
		if (stored)
			segment->blobs[segment->count++] = stage->deltas[i];
		else
			free((char *)stage->deltas[i].at);
		stage->deltas[i] = (struct weir_span){0};
	}
}

/* Makes all parts, after a try that may have failed at any. @return false: changes were lost */
static bool make_parts(struct stage *stage)
{
	struct weir_error error;
	enum weir_status status = WEIR_OK;
	for (int64_t tried = below(stage, 4); tried > 0 && status == WEIR_OK; tried--)
		status = shard_snapshot_part(stage->shard, &stage->snapshot, &error);
	stage->snapshot.next_segment = 0;
	for (status = WEIR_OK; status == WEIR_OK;) {
		status = shard_snapshot_part(stage->shard, &stage->snapshot, &error);
		if (status == WEIR_OK)
			take_deltas(stage);
		stage->parts += status == WEIR_OK;
	}
	return status == WEIR_END;
}

static void finish_snapshot(struct stage *stage, bool stored)
{
	struct store *store = &stage->store;
	if (stage->options.swap_changes)
		stored = make_parts(stage) && stored;
	else
		take_deltas(stage);
	store_deltas(stage, stored);
	if (stored) {
		free(store->extra);
		store->extra = stage->cut.extra;
		store->extra_length = stage->cut.extra_length;
		store->policy = stage->cut.policy;
		store->next = stage->cut.next;
		store->clock_ms = stage->cut.clock_ms;
		store->exists = true;
		for (uint32_t i = 0; i < SHARD_SEGMENTS; i++)
			if (store->segments[i].count > 1 && below(stage, 4) == 0)
				merge_segment(stage, &store->segments[i]);
	} else {
		free(stage->cut.extra);
	}
	shard_snapshot_done(stage->shard, &stage->snapshot, stored);
	stage->pending = false;
}

static void load_segment(struct stage *stage, uint32_t segment)
{
	struct weir_error error;
	const struct stored_segment *stored = &stage->store.segments[segment];
	enum weir_status status = shard_load(stage->shard, segment, stored->blobs, stored->count, &error);
	if (status != WEIR_OK)
		print_message("load: %s\n", error.text);
	assert_int_equal(status, WEIR_OK);
}

static void count_work(struct stage *stage)
{
	struct shard_stats stats;
	shard_stats(stage->shard, &stats);
	stage->evictions += stats.evictions;
	stage->loads += stats.loads;
	stage->recalls += stats.recalls;
}

/* The process dies; another starts from the store. */
static void restart(struct stage *stage)
{
	struct store *store = &stage->store;
	struct weir_error error;
	if (stage->pending) {
		free(stage->cut.extra);
		free(stage->snapshot.memory);
		stage->pending = false;
	}
	count_work(stage);
	shard_free(stage->shard);
	stage->restarts++;
	stage->policy = store->exists ? store->policy : 0;
	stage->next = store->exists ? store->next : 0;
	stage->shard = shard_new(&stage->options, stage->compiled[below(stage, 2) ? 0 : stage->policy]);
	if (!store->exists)
		return;
	struct weir_span extra = {.at = store->extra, .length = (uint32_t)store->extra_length};
	assert_int_equal(shard_import_extra(stage->shard, extra, &error), WEIR_OK);
	shard_set_policy(stage->shard, stage->compiled[stage->policy]);
	shard_set_clock_ms(stage->shard, store->clock_ms);
	for (uint32_t i = 0; i < SHARD_SEGMENTS; i++)
		if (store->segments[i].count > 0)
			shard_set_stored(stage->shard, i);
}

/* ---- the log ---- */

/* Changes were lost with swap: the process ends, and goes on from the store. */
static bool has_lost(struct stage *stage)
{
	struct weir_error error;
	if (shard_check_whole(stage->shard, &error) == WEIR_OK)
		return false;
	assert_true(stage->options.swap_changes);
	stage->lost++;
	restart(stage);
	return true;
}

static void append_policy(struct stage *stage)
{
	uint32_t policy = stage->policy_count++;
	stage->policies[policy] = scene_next_policy(&stage->scene.random, stage->policies[policy - 1], &stage->next_id);
	stage->compiled[policy] = compiled_policy_new(stage->policies, stage->policy_count);
	model_set_policy(stage->model, stage->policies[policy]);
	stage->records[stage->record_count++] = (struct record){.policy = policy};
}

static void append_frame(struct stage *stage)
{
	struct record *record = &stage->records[stage->record_count];
	struct shard_decision decisions[PAIRS_MAX];
	*record = (struct record){.policy = 0};
	scene_fill(&stage->scene, stage->policies[stage->policy_count - 1], &record->frame);
	if (below(stage, 3) == 0)
		scene_answer(&stage->scene, &record->frame);
	record->decision_count =
		model_frame(stage->model, &record->frame.frame, stage->record_count, record->verdicts, decisions);
	record->decisions = (void *)weir_copy(decisions, record->decision_count * sizeof *decisions);
	stage->record_count++;
}

static void append_command(struct stage *stage)
{
	struct record *record = &stage->records[stage->record_count++];
	*record = (struct record){.commanded = true};
	const struct weir_policy *policy = stage->policies[stage->policy_count - 1];
	const struct weir_zone *zone = scene_command(&stage->scene, policy, &record->command, &record->at_ms);
	record->published = model_command(stage->model, zone, &record->command, record->at_ms);
}

static void compare(const struct record *record, const struct shard_result *result)
{
	assert_int_equal(result->pair_count, record->frame.frame.pair_count);
	for (uint32_t i = 0; i < result->pair_count; i++)
		assert_int_equal((result->verdicts[i / 2] >> (i % 2 * 4)) & 15, record->verdicts[i]);
	assert_int_equal(result->decision_count, record->decision_count);
	for (uint32_t i = 0; i < result->decision_count; i++) {
		const struct shard_decision *got = &result->decisions[i], *wanted = &record->decisions[i];
		assert_int_equal(got->pair, wanted->pair);
		assert_int_equal(got->id_offset, wanted->id_offset);
		assert_int_equal(got->id_index, wanted->id_index);
		assert_int_equal(got->kind, wanted->kind);
		assert_int_equal(got->limit, wanted->limit);
		assert_int_equal(got->at_ms, wanted->at_ms);
		assert_int_equal(got->until_ms, wanted->until_ms);
		assert_int_equal(got->count, wanted->count);
	}
}

/* The shard takes the next record, loading what that needs, in any order and with other work in between. */
static void take_record(struct stage *stage)
{
	struct record *record = &stage->records[stage->next];
	if (record->policy != 0) {
		stage->policy = record->policy;
		shard_set_policy(stage->shard, stage->compiled[record->policy]);
		stage->next++;
		return;
	}
	uint32_t segments[SHARD_SEGMENTS], count;
	struct shard_result result;
	struct weir_error error;
	if (record->commanded)
		assert_int_equal(shard_command_begin(stage->shard, &record->command, record->at_ms, &error), WEIR_OK);
	else
		shard_frame_begin(stage->shard, &record->frame.frame, stage->next);
	while ((count = shard_missing(stage->shard, segments)) > 0) {
		uint32_t some = 1 + (uint32_t)below(stage, count);
		for (uint32_t i = 0; i < some; i++)
			load_segment(stage, segments[i]);
		if (below(stage, 3) == 0)
			shard_sweep(stage->shard, 100);
		if (below(stage, 3) == 0)
			load_segment(stage, (uint32_t)below(stage, SHARD_SEGMENTS));
		if (stage->pending && below(stage, 4) == 0)
			finish_snapshot(stage, below(stage, 3) > 0);
	}
	if (record->commanded) {
		const struct shard_override_decision *decision;
		assert_int_equal(shard_command_apply(stage->shard, &decision, &error), WEIR_OK);
		if (has_lost(stage))
			return;
		assert_int_equal(decision != NULL, record->published.any);
		if (decision != NULL)
			assert_int_equal(decision->until_ms, record->published.until);
	} else {
		shard_frame_judge(stage->shard, &result);
		if (has_lost(stage))
			return;
		compare(record, &result);
	}
	stage->next++;
}

static void compare_buckets(struct stage *stage);

/* What else may happen between two records. */
/* What was in swap is lost, or can no longer be written: a disk does that. */
static void hurt_swap(struct stage *stage)
{
	char link[64], name[256];
	const struct rlimit limits[] = {{0, RLIM_INFINITY}, {64 << 10, RLIM_INFINITY}, {RLIM_INFINITY, RLIM_INFINITY}};
	int64_t limit = below(stage, 3);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limits[limit]), 0);
	stage->writable = limit == 2;
	for (int file = 3; file < 64 && below(stage, 2) == 0; file++) {
		snprintf(link, sizeof link, "/proc/self/fd/%d", file);
		ssize_t length = readlink(link, name, sizeof name - 1);
		if (length <= 0)
			continue;
		name[length] = '\0';
		if (strncmp(name, stage->swap_directory, strlen(stage->swap_directory)) == 0 &&
		    strstr(name, "(deleted)") != NULL)
			assert_int_equal(ftruncate(file, 0), 0);
	}
}

static void do_something(struct stage *stage)
{
	if (stage->options.swap_directory != NULL && below(stage, 20) == 0)
		hurt_swap(stage);
	bool full = shard_is_full(stage->shard), wants = shard_wants_checkpoint(stage->shard);
	if (!stage->pending && (full || wants || below(stage, stage->options.swap_changes ? 30 : 6) == 0))
		take_snapshot(stage);
	if (stage->pending && (full || stage->options.swap_changes || below(stage, 4) == 0))
		finish_snapshot(stage, full || below(stage, 4) > 0);
	if (has_lost(stage))
		return;
	if (below(stage, stage->options.swap_directory != NULL ? 150 : 25) == 0) /* swap ends with the process */
		restart(stage);
	if (below(stage, 5) == 0)
		shard_sweep(stage->shard, (uint32_t)below(stage, 2000));
	if (below(stage, 5) == 0)
		load_segment(stage, (uint32_t)below(stage, SHARD_SEGMENTS));
}

/* ---- states ---- */

static void compare_limit(const struct weir_text *got, const struct model_limit *wanted)
{
	struct weir_text text = {0};
	model_show(&text, wanted);
	weir_text_append(&text, "", 1);
	char *shown = weir_copy(got->at != NULL ? got->at : "", got->length);
	assert_string_equal(shown, text.at);
	free(shown);
	weir_text_deinit(&text);
}

/* Every bucket of the model that holds something is in the shard, the same. */
static void compare_buckets(struct stage *stage)
{
	for (uint32_t i = 0; i < SHARD_SEGMENTS; i++)
		load_segment(stage, i);
	for (uint32_t i = 0; i < MODEL_CHAINS; i++) {
		for (struct model_bucket *bucket = stage->model->chains[i]; bucket != NULL; bucket = bucket->next) {
			bool holds = bucket->blocked_until >= 0;
			for (uint32_t j = 0; j < bucket->limit_count; j++)
				holds |= bucket->limits[j].recorded &&
				         (model_kind(bucket->limits[j].limit) != MODEL_QUEUE || bucket->limits[j].count > 0);
			if (!holds || model_forgotten(stage->model, bucket))
				continue;
			struct shard_bucket image;
			struct weir_span key = {.at = bucket->key, .length = bucket->key_length};
			assert_true(shard_read(stage->shard, bucket->zone_id, key, &image));
			assert_int_equal(image.decided_at_ms, bucket->blocked_at);
			assert_int_equal(image.decided_until_ms, bucket->blocked_until);
			assert_int_equal(image.limit_count, bucket->limit_count);
			for (uint32_t j = 0; j < image.limit_count; j++)
				compare_limit(&image.limits[j], &bucket->limits[j]);
			shard_bucket_deinit(&image);
		}
	}
}

/* ---- a run ---- */

/* The file keeps its ceiling, but for a page or two that others are moved to. One that cannot be read is given up whole. */
static void check_swap(struct stage *stage)
{
	struct shard_stats stats;
	shard_stats(stage->shard, &stats);
	uint64_t ceiling = (uint64_t)stage->options.swap_bytes, some = (uint64_t)2 * SWAP_PAGE_BYTES;
	if (ceiling > 0) {
		assert_true(stats.swap_file_bytes <= ceiling + some);
		stage->filled_swap |= stats.swap_file_bytes >= ceiling;
	}
	if (stats.swap_failures > stage->swap_failures && stage->writable && stage->was_writable) {
		assert_true(stats.swap_file_bytes <= some || stats.swap_file_bytes < stage->swap_file_bytes);
		stage->given_up++;
	}
	stage->was_writable = stage->writable;
	stage->swap_failures = stats.swap_failures;
	stage->swap_file_bytes = stats.swap_file_bytes;
}

static void run_stage(uint64_t seed, uint64_t totals[8])
{
	static const int64_t ceilings[] = {0, 150000, 200000, 400000};
	const int64_t more = SWAP_PAGE_BYTES * 2; /* of swap's own */
	struct stage *stage = weir_alloc(1, sizeof *stage);
	stage->scene = scene_new(seed);
	stage->scene.key_space = below(stage, 3) == 0 ? 12 : 3000;
	bool overrides = below(stage, 3) > 0;
	stage->next_id = 100;
	stage->policies[0] = scene_policy(&stage->scene.random, 1);
	stage->policy_count = 1;
	stage->compiled[0] = compiled_policy_new(stage->policies, 1);
	stage->options = (struct shard_options){.seed = seed, .lateness_ms = below(stage, 2) ? 3000 : -1};
	stage->options.count_events = below(stage, 2);
	snprintf(stage->swap_directory, sizeof stage->swap_directory, "/tmp/weir-test-swap-XXXXXX");
	assert_non_null(mkdtemp(stage->swap_directory));
	stage->options.swap_directory = below(stage, 4) > 0 ? stage->swap_directory : NULL;
	stage->options.ceiling_bytes = ceilings[below(stage, 4)];
	if (stage->options.swap_directory != NULL && stage->options.ceiling_bytes > 0) {
		stage->options.ceiling_bytes += more - 130000;
		stage->scene.key_space = 300; /* so that many come back */
		stage->options.swap_changes = below(stage, 2) == 0;
		if (below(stage, 3) == 0) {
			stage->options.swap_bytes = SWAP_PAGE_BYTES;
			stage->scene.key_space = 3000;
		}
	}
	stage->records = weir_alloc(FRAMES, sizeof *stage->records);
	stage->model = model_new(stage->policies[0], stage->options.lateness_ms, stage->options.count_events);
	stage->shard = shard_new(&stage->options, stage->compiled[0]);
	while (stage->record_count < FRAMES || stage->next < stage->record_count) {
		if (stage->next == stage->record_count) {
			if (stage->policy_count < POLICIES && below(stage, 30) == 0)
				append_policy(stage);
			else if (overrides && below(stage, 5) == 0)
				append_command(stage);
			else
				append_frame(stage);
		}
		take_record(stage);
		do_something(stage);
		check_swap(stage);
	}
	if (stage->pending)
		finish_snapshot(stage, true);
	count_work(stage);
	stage->options.ceiling_bytes = 0; /* for the comparison all of them are needed at once */
	do {                              /* what is lost on the way is judged again */
		while (stage->next < stage->record_count)
			take_record(stage);
		take_snapshot(stage);
		finish_snapshot(stage, true);
	} while (has_lost(stage));
	restart(stage);
	compare_buckets(stage);
	totals[0] += stage->evictions;
	totals[1] += stage->loads;
	totals[2] += stage->restarts;
	totals[3] += stage->recalls;
	totals[4] += stage->filled_swap;
	totals[5] += stage->given_up;
	totals[6] += stage->lost;
	totals[7] += stage->parts;

	shard_free(stage->shard);
	model_free(stage->model);
	for (uint32_t i = 0; i < SHARD_SEGMENTS; i++)
		clear_segment(&stage->store.segments[i]);
	free(stage->store.extra);
	rmdir(stage->swap_directory);
	for (uint32_t i = 0; i < stage->record_count; i++)
		free(stage->records[i].decisions);
	free(stage->records);
	for (uint32_t i = 0; i < stage->policy_count; i++) {
		compiled_policy_free(stage->compiled[i]);
		free(stage->policies[i]->zones);
		free((struct weir_policy *)stage->policies[i]);
	}
	free(stage);
}

static void nothing_is_lost_or_counted_twice(void **state)
{
	(void)state;
	const char *from = getenv("WEIR_SEED"), *count = getenv("WEIR_SCENES");
	uint64_t first = from != NULL ? strtoull(from, NULL, 10) : 1;
	uint64_t scenes = count != NULL ? strtoull(count, NULL, 10) : 80;
	uint64_t totals[8] = {0};
	signal(SIGXFSZ, SIG_IGN);
	for (uint64_t seed = first; seed < first + scenes; seed++) {
		if (from != NULL)
			print_message("seed %llu\n", (unsigned long long)seed);
		run_stage(seed, totals);
	}
	print_message(
		"%llu evictions, %llu loads, %llu restarts, %llu recalls, %llu files at their ceiling, %llu given up, "
		"%llu with changes, %llu parts of snapshots\n",
		(unsigned long long)totals[0], (unsigned long long)totals[1], (unsigned long long)totals[2],
		(unsigned long long)totals[3], (unsigned long long)totals[4], (unsigned long long)totals[5],
		(unsigned long long)totals[6], (unsigned long long)totals[7]);
	if (from == NULL)
		assert_true(totals[4] > 0 && totals[5] > 0 && totals[6] > 0 && totals[7] > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_lost_or_counted_twice)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
