/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a verdict costs, and what a user costs.
 *
 * Ten million users by their addresses, one zone of three limits: a minute that
 * slides, an hour, a day. Each user comes ten times a minute: first round-robin,
 * until the rings have grown as far as they do in a process that has been running
 * for a while, then chosen evenly at random, in frames, at the same pace, so that
 * old times leave as new ones come. Timed is what a shard does with a decoded
 * frame: fingerprint, lookup, judge, record.
 *
 *   judge       twenty a minute are allowed: users stay below
 *   judge_over  ten a minute are: most requests are blocked, or publish a decision
 *   judge_hot   as judge, with every second request of one user
 *   judge_two   as judge, the users on two shards, each with a thread, against one
 *   bytes_ten   memory after ten requests of each user in the minute
 *   bytes_once  memory of users that came once
 *   load        buckets of a checkpoint brought into an empty shard
 *
 * The ceiling is what the memory gives: a loop that reads, changes and writes 64
 * bytes at random places of as many bytes as the buckets take, on huge pages,
 * each place asked for well ahead. Verdicts are held against two more: touch only
 * reads and writes the lines that a verdict needs, and work is the same verdicts on
 * two thousand users, whose state the nearest caches have. Time is the thread's own,
 * so that what else the machine does counts as little as it can.
 *
 * usage: bench_judge [one | over | two | once | lateness | load]...   (all without)
 *
 * WEIR_BENCH=smoke runs a small size, only to show that it works; WEIR_BENCH_USERS=N so many users.
 */
#include "common/base/alloc.h"
#include "common/frame/frame.h"
#include "limiter/shard/shard.h"
#include "tests/bench/measure.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FRAME_EVENTS = 2048, KEY_BYTES = 16, RUNS = 5, ROUND_MS = 6000, PREFETCHED = 64 };

enum { LATENESS_MS = 120000, LATE_OF = 20 };

/* Rounds of one request of each user: a minute; and as long as a time of a sliding minute is kept. */
enum { MINUTE_ROUNDS = 10, WARM_ROUNDS = 20, OVER_WARM_RUNS = 8 };

enum { FEW_USERS = 2000 }; /* their state is in the nearest caches */

static const int64_t start_ms = INT64_C(1700000000000);

static uint32_t random_below(uint64_t *state, uint32_t below)
{
	return (uint32_t)((next_random(state) >> 32) * below >> 32);
}

/* Resident bytes of the process. */
static uint64_t resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long size = 0, resident = 0;
	if (file == NULL || fscanf(file, "%lu %lu", &size, &resident) != 2)
		resident = 0;
	if (file != NULL)
		fclose(file);
	return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* ---- users, and frames of their requests ---- */

/* An address for each user, and no address for two. */
static uint32_t user_key(uint32_t user, char *text)
{
	static const char digits[] = "0123456789";
	uint32_t ip = (user + 1) * UINT32_C(2654435761);
	uint32_t length = 0;
	for (int shift = 24; shift >= 0; shift -= 8) {
		uint32_t part = ip >> shift & 255;
		if (part >= 100)
			text[length++] = digits[part / 100];
		if (part >= 10)
			text[length++] = digits[part / 10 % 10];
		text[length++] = digits[part % 10];
		if (shift > 0)
			text[length++] = '.';
	}
	return length;
}

struct frame_buffer {
	struct weir_frame frame;
	struct weir_frame_zone zone;
	struct weir_frame_zone_set set;
	struct weir_frame_event events[FRAME_EVENTS];
	struct weir_span keys[FRAME_EVENTS];
	char bytes[FRAME_EVENTS][KEY_BYTES];
	uint64_t position;
	uint32_t hot; /* key of the hot user in the frame, plus 1 */
};

static struct frame_buffer *frame_buffer_new(void)
{
	struct frame_buffer *buffer = weir_alloc(1, sizeof *buffer);
	buffer->zone.id = 1;
	buffer->set = (struct weir_frame_zone_set){.zones = &buffer->zone, .count = 1};
	buffer->frame = (struct weir_frame){.kind = WEIR_FRAME_EVENTS,
	                                    .zone_sets = &buffer->set,
	                                    .zone_set_count = 1,
	                                    .keys = buffer->keys,
	                                    .events = buffer->events};
	return buffer;
}

static void frame_clear(struct frame_buffer *buffer)
{
	buffer->frame.event_count = buffer->frame.key_count = buffer->frame.pair_count = 0;
	buffer->hot = 0;
}

/* Adds a request; the hot user's key is in the dictionary once, as any key is (others meet too seldom to matter). */
static void frame_request(struct frame_buffer *buffer, uint32_t user, bool hot, int64_t time_ms)
{
	struct weir_frame *frame = &buffer->frame;
	uint32_t key = buffer->hot - 1;
	if (!hot || buffer->hot == 0) {
		key = frame->key_count++;
		uint32_t length = user_key(user, buffer->bytes[key]);
		buffer->keys[key] = (struct weir_span){.at = buffer->bytes[key], .length = length};
		if (hot)
			buffer->hot = key + 1;
	}
	buffer->events[frame->event_count++] =
		(struct weir_frame_event){.key = key, .time_ms = time_ms, .cost = 1, .position = ++buffer->position};
	frame->pair_count++;
	frame->sending_time_ms = time_ms;
}

/* ---- a shard's share of the users ---- */

struct bench {
	struct weir_zone zone;
	struct weir_policy policy;
	struct compiled_policy *compiled;
	uint32_t users;
	uint64_t requests; /* of a run */
};

static void bench_init(struct bench *bench, uint32_t users, uint64_t requests, int64_t a_minute, int64_t lateness_ms)
{
	*bench = (struct bench){.users = users, .requests = requests};
	bench->zone = (struct weir_zone){.id = 1, .name = "site", .description = "", .limit_count = 3};
	bench->zone.limits[0] =
		(struct weir_limit){.algorithm = weir_algorithm_named("sliding_window"), .rate = a_minute, .window_ms = 60000};
	bench->zone.limits[0].own[1] = lateness_ms;
	bench->zone.limits[1] =
		(struct weir_limit){.algorithm = weir_algorithm_named("fixed_window"), .rate = 100, .window_ms = 3600000};
	bench->zone.limits[2] =
		(struct weir_limit){.algorithm = weir_algorithm_named("fixed_window"), .rate = 1000, .window_ms = 86400000};
	bench->policy = (struct weir_policy){.version = 1, .zones = &bench->zone, .zone_count = 1};
	const struct weir_policy *policies[] = {&bench->policy};
	bench->compiled = compiled_policy_new(policies, 1);
}

struct part {
	struct bench *bench;
	struct shard *shard;
	struct frame_buffer *buffer;
	uint32_t first, users;
	uint64_t random;
	int64_t time_ms;
	uint32_t rounds;  /* of filling that were done */
	uint32_t late_of; /* one event in so many is up to LATENESS_MS late; 0: none */
	uint64_t passed, blocked, decided;
};

static __attribute__((noinline)) double judge_frame(struct part *part)
{
	struct shard_result result;
	uint32_t segments[SHARD_SEGMENTS];
	double begin = thread_seconds();
	shard_frame_begin(part->shard, &part->buffer->frame, 0);
	if (shard_missing(part->shard, segments) > 0)
		abort();
	shard_frame_judge(part->shard, &result);
	double seconds = thread_seconds() - begin;
	for (uint32_t i = 0; i < result.pair_count; i++) {
		unsigned bits = result.verdicts[i / 2] >> (i % 2 * 4) & 15u;
		part->passed += !(bits & WEIR_VERDICT_BLOCK);
		part->blocked += (bits & WEIR_VERDICT_BLOCK) != 0;
	}
	part->decided += result.decision_count;
	return seconds;
}

static void part_init(struct part *part, struct bench *bench, uint32_t first, uint32_t users)
{
	struct shard_options options = {.seed = 42, .lateness_ms = 600000};
	*part = (struct part){.bench = bench, .first = first, .users = users, .random = first + 88172645463325252u};
	part->shard = shard_new(&options, bench->compiled);
	part->buffer = frame_buffer_new();
	part->time_ms = start_ms;
}

static void part_deinit(struct part *part)
{
	shard_free(part->shard);
	free(part->buffer);
}

/* One request of each user a round, in an order that has nothing to do with how they lie; seconds. */
static double fill(struct part *part, uint32_t rounds)
{
	double seconds = 0;
	uint32_t step = 7368787; /* a prime: every user comes up once a round */
	for (; part->rounds < rounds; part->rounds++) {
		uint64_t user = part->rounds;
		for (uint32_t done = 0; done < part->users;) {
			frame_clear(part->buffer);
			for (uint32_t i = 0; i < FRAME_EVENTS && done < part->users; i++, done++) {
				user = (user + step) % part->users;
				int64_t time_ms = part->time_ms + (int64_t)done * ROUND_MS / part->users;
				frame_request(part->buffer, part->first + (uint32_t)user, false, time_ms);
			}
			seconds += judge_frame(part);
		}
		part->time_ms += ROUND_MS;
	}
	return seconds;
}

/* Requests of users chosen evenly, every second one of the hot user if there is one; rate by the thread's time. */
static double verdict_rate(struct part *part, bool hot)
{
	uint64_t requests = part->bench->requests;
	double seconds = 0;
	double a_request_ms = (double)ROUND_MS / part->users;
	double time_ms = (double)part->time_ms;
	for (uint64_t done = 0; done < requests;) {
		frame_clear(part->buffer);
		for (uint32_t i = 0; i < FRAME_EVENTS; i++, done++) {
			bool is_hot = hot && i % 2 == 0;
			uint32_t user = is_hot ? 0 : random_below(&part->random, part->users);
			int64_t late_ms = part->late_of > 0 && random_below(&part->random, part->late_of) == 0
			                      ? random_below(&part->random, LATENESS_MS)
			                      : 0;
			frame_request(part->buffer, part->first + user, is_hot, (int64_t)time_ms - late_ms);
			time_ms += a_request_ms;
		}
		seconds += judge_frame(part);
	}
	part->time_ms = (int64_t)time_ms;
	return (double)(requests + FRAME_EVENTS - 1) / FRAME_EVENTS * FRAME_EVENTS / seconds;
}

/* ---- the ceiling ---- */

struct memory {
	uint64_t *words;
	size_t bytes;
};

static void memory_init(struct memory *memory, uint64_t bytes)
{
	const size_t huge = 2 << 20;
	memory->bytes = (size_t)bytes / huge * huge + 2 * huge;
	char *mapped = mmap(NULL, memory->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mapped == MAP_FAILED)
		abort();
	madvise(mapped, memory->bytes, MADV_HUGEPAGE);
	memset(mapped, 1, memory->bytes);
	memory->words = (uint64_t *)(void *)mapped;
}

static double memory_rate(const struct memory *memory, uint64_t changes)
{
	const uint64_t places = memory->bytes / 64;
	uint64_t random = 88172645463325252u, ahead[PREFETCHED] = {0};
	double begin = thread_seconds();
	for (uint64_t i = 0; i < changes; i++) {
		uint64_t place = (uint64_t)(((unsigned __int128)next_random(&random) * places) >> 64);
		__builtin_prefetch(&memory->words[place * 8], 1);
		uint64_t *line = &memory->words[ahead[i % PREFETCHED] * 8];
		ahead[i % PREFETCHED] = place;
		for (int word = 0; word < 8; word++)
			line[word] += i;
	}
	return (double)changes / (thread_seconds() - begin);
}

/*
 * What a verdict must touch at least, and nothing else: one line of the table, and the lines that a bucket of so many
 * bytes spans. How near a shard comes to this says how much is left to be gained without a change of what lies where.
 */
static double touch_rate(const struct memory *memory, uint64_t touches, uint32_t users)
{
	const uint64_t lines = users / 6, bucket_bytes = memory->bytes / users - 64 / 6;
	const uint64_t places = (memory->bytes - lines * 64) / bucket_bytes;
	uint64_t random = 88172645463325252u, ahead[PREFETCHED] = {0}, sum = 0;
	char *bytes = (char *)memory->words, *buckets = bytes + lines * 64;
	double begin = thread_seconds();
	for (uint64_t i = 0; i < touches; i++) {
		uint64_t number = next_random(&random), old = ahead[i % PREFETCHED];
		uint64_t line = (uint64_t)(((unsigned __int128)number * lines) >> 64) * 64;
		char *bucket = buckets + (uint64_t)(((unsigned __int128)number * places) >> 64) * bucket_bytes;
		__builtin_prefetch(bytes + line);
		__builtin_prefetch(bucket, 1);
		__builtin_prefetch(bucket + bucket_bytes - 1, 1);
		sum += (uint64_t)bytes[(uint64_t)(((unsigned __int128)old * lines) >> 64) * 64];
		bucket = buckets + (uint64_t)(((unsigned __int128)old * places) >> 64) * bucket_bytes;
		bucket[0] = (char)(bucket[0] + 1);
		bucket[bucket_bytes - 1] = (char)(bucket[bucket_bytes - 1] + (char)sum);
		ahead[i % PREFETCHED] = number;
	}
	return (double)touches / (thread_seconds() - begin);
}

/* ---- measurements ---- */

static void measure_once(struct bench *bench)
{
	struct part part;
	uint64_t before = resident_bytes();
	part_init(&part, bench, 0, bench->users);
	double seconds = fill(&part, 1);
	double once = (double)(resident_bytes() - before) / bench->users;
	printf("{\"bench\":\"bytes_once\",\"unit\":\"bytes/user\",\"bytes\":%.1f,\"goal\":36,\"fill_ns\":%.1f}\n", once,
	       seconds * 1e9 / bench->users);
	fflush(stdout);
	part_deinit(&part);
}

/* Verdicts on users chosen evenly, against memory and against few users, who wait for none, in turn. @return the rate */
static double measure_verdicts(struct part *part, const char *name, const char *goal)
{
	struct memory memory;
	struct shard_stats stats;
	struct part few;
	double verdicts[RUNS], changes[RUNS], touches[RUNS], works[RUNS], ratios[RUNS];
	part_init(&few, part->bench, 0, FEW_USERS);
	fill(&few, part->rounds);
	shard_stats(part->shard, &stats);
	memory_init(&memory, stats.bytes);
	part->passed = part->blocked = part->decided = 0;
	for (int i = 0; i < RUNS; i++) {
		changes[i] = memory_rate(&memory, part->bench->requests);
		touches[i] = touch_rate(&memory, part->bench->requests, part->users);
		works[i] = verdict_rate(&few, false);
		verdicts[i] = verdict_rate(part, false);
		ratios[i] = verdicts[i] / changes[i];
	}
	double all = (double)(part->passed + part->blocked), rate = median(verdicts, RUNS);
	printf("{\"bench\":\"%s\",\"unit\":\"verdicts/s\",\"rate\":%.0f,\"ceiling\":%.0f,\"ratio\":%.3f,%s"
	       "\"touch_ns\":%.1f,\"work_ns\":%.1f,\"ns\":%.1f,\"blocked\":%.3f,\"decided\":%.3f,\"bytes\":%.1f}\n",
	       name, rate, median(changes, RUNS), median(ratios, RUNS), goal, 1e9 / median(touches, RUNS),
	       1e9 / median(works, RUNS), 1e9 / rate, (double)part->blocked / all, (double)part->decided / all,
	       (double)stats.bytes / part->users);
	fflush(stdout);
	munmap(memory.words, memory.bytes);
	part_deinit(&few);
	return rate;
}

/* The same with a hot user, against without, in turn. */
static void measure_hot(struct part *part)
{
	double hot[RUNS], ratios[RUNS];
	for (int i = 0; i < RUNS; i++) {
		double even = verdict_rate(part, false);
		hot[i] = verdict_rate(part, true);
		ratios[i] = hot[i] / even;
	}
	printf("{\"bench\":\"judge_hot\",\"unit\":\"verdicts/s\",\"rate\":%.0f,\"ratio\":%.3f,\"goal\":0.9}\n",
	       median(hot, RUNS), median(ratios, RUNS));
	fflush(stdout);
}

/* Users below their limits, and what they cost. @return verdicts a second */
static double measure_one(struct bench *bench)
{
	struct part part;
	uint64_t before = resident_bytes();
	part_init(&part, bench, 0, bench->users);
	double seconds = fill(&part, MINUTE_ROUNDS);
	printf("{\"bench\":\"bytes_ten\",\"unit\":\"bytes/user\",\"bytes\":%.1f,\"goal\":72,\"fill_ns\":%.1f}\n",
	       (double)(resident_bytes() - before) / bench->users, seconds * 1e9 / bench->users / MINUTE_ROUNDS);
	fflush(stdout);
	fill(&part, WARM_ROUNDS);
	double rate = measure_verdicts(&part, "judge", "\"goal\":0.4,");
	measure_hot(&part);
	part_deinit(&part);
	return rate;
}

/* Users over their limit. Before that most have been so once: a bucket takes room for decisions with its first. */
static void measure_over(struct bench *bench)
{
	struct part part;
	part_init(&part, bench, 0, bench->users);
	fill(&part, MINUTE_ROUNDS);
	for (int i = 0; i < OVER_WARM_RUNS; i++)
		verdict_rate(&part, false);
	measure_verdicts(&part, "judge_over", "");
	part_deinit(&part);
}

/* The same with a lateness of two minutes, in order and with one event in twenty out of it, against without one. */
static void measure_lateness(struct bench *bench, double one)
{
	struct part part;
	double in_order[RUNS], out_of_order[RUNS];
	part_init(&part, bench, 0, bench->users);
	fill(&part, MINUTE_ROUNDS + WARM_ROUNDS);
	for (int i = 0; i < RUNS; i++) {
		part.late_of = 0;
		in_order[i] = verdict_rate(&part, false);
		part.late_of = LATE_OF;
		out_of_order[i] = verdict_rate(&part, false);
	}
	double rate = median(in_order, RUNS), late = median(out_of_order, RUNS);
	printf("{\"bench\":\"judge_lateness\",\"unit\":\"verdicts/s\",\"rate\":%.0f,\"ns\":%.1f,\"without\":%.0f,"
	       "\"ratio\":%.3f,\"out_of_order_ns\":%.1f}\n",
	       rate, 1e9 / rate, one, rate / one, 1e9 / late);
	fflush(stdout);
	part_deinit(&part);
}

struct worker {
	struct part part;
	pthread_barrier_t *barrier;
	double rates[RUNS];
};

static void *work(void *context)
{
	struct worker *worker = context;
	fill(&worker->part, WARM_ROUNDS);
	for (int i = 0; i < RUNS; i++) {
		pthread_barrier_wait(worker->barrier);
		worker->rates[i] = verdict_rate(&worker->part, false);
	}
	return NULL;
}

/* The same users on two shards, each with a thread, against all of them on one. */
static void measure_two(struct bench *bench, double one)
{
	struct worker workers[2];
	pthread_t threads[2];
	pthread_barrier_t barrier;
	pthread_barrier_init(&barrier, NULL, 2);
	for (uint32_t i = 0; i < 2; i++) {
		part_init(&workers[i].part, bench, i * (bench->users / 2), bench->users / 2);
		workers[i].barrier = &barrier;
		if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0)
			abort();
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	double rates[RUNS];
	for (int i = 0; i < RUNS; i++)
		rates[i] = workers[0].rates[i] + workers[1].rates[i];
	double rate = median(rates, RUNS);
	printf("{\"bench\":\"judge_two\",\"unit\":\"verdicts/s\",\"rate\":%.0f,\"one\":%.0f,\"ratio\":%.3f,\"goal\":1.8}\n",
	       rate, one, rate / one);
	fflush(stdout);
	for (int i = 0; i < 2; i++)
		part_deinit(&workers[i].part);
	pthread_barrier_destroy(&barrier);
}

/* All buckets as a checkpoint has them, brought into a shard that has none: what a partition's new owner does. */
static void measure_load(struct bench *bench)
{
	struct part from;
	struct shard_snapshot snapshot;
	struct weir_error error;
	double seconds[RUNS];
	uint64_t bytes = 0;
	part_init(&from, bench, 0, bench->users);
	fill(&from, MINUTE_ROUNDS);
	shard_snapshot(from.shard, &snapshot);
	for (int i = 0; i < RUNS; i++) {
		struct part to;
		part_init(&to, bench, 0, bench->users);
		double begin = thread_seconds();
		for (uint32_t j = 0; j < snapshot.segment_count; j++)
			if (shard_load(to.shard, snapshot.segments[j], &snapshot.deltas[j], 1, &error) != WEIR_OK)
				abort();
		seconds[i] = thread_seconds() - begin;
		part_deinit(&to);
	}
	for (uint32_t j = 0; j < snapshot.segment_count; j++)
		bytes += snapshot.deltas[j].length;
	double each = median(seconds, RUNS) / bench->users;
	printf("{\"bench\":\"load\",\"unit\":\"buckets/s\",\"rate\":%.0f,\"ns\":%.1f,\"stored_bytes\":%.1f}\n", 1 / each,
	       each * 1e9, (double)bytes / bench->users);
	fflush(stdout);
	shard_snapshot_done(from.shard, &snapshot, true);
	part_deinit(&from);
}

static bool is_asked_for(int argc, char **argv, const char *name)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return true;
	return argc == 1;
}

int main(int argc, char **argv)
{
	const char *number = getenv("WEIR_BENCH_USERS");
	bool smoke = is_smoke();
	uint32_t users = smoke ? 50000 : number != NULL ? (uint32_t)strtoul(number, NULL, 10) : 10000000;
	struct bench below, over, late;
	double one = 0;
	bench_init(&below, users, users / 5 * 2, 20, 0);
	bench_init(&over, users, below.requests, 10, 0);
	bench_init(&late, users, below.requests, 20, LATENESS_MS);
	if (is_asked_for(argc, argv, "one") || is_asked_for(argc, argv, "two") || is_asked_for(argc, argv, "lateness"))
		one = measure_one(&below);
	if (is_asked_for(argc, argv, "two"))
		measure_two(&below, one);
	if (is_asked_for(argc, argv, "lateness"))
		measure_lateness(&late, one);
	if (is_asked_for(argc, argv, "over"))
		measure_over(&over);
	if (is_asked_for(argc, argv, "once"))
		measure_once(&below);
	if (is_asked_for(argc, argv, "load"))
		measure_load(&below);
	compiled_policy_free(below.compiled);
	compiled_policy_free(over.compiled);
	compiled_policy_free(late.compiled);
	return 0;
}
