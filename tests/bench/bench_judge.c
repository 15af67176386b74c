/*
 * What a verdict costs, and what a user costs.
 *
 * Ten million users by their addresses, one zone of three limits (10 a minute
 * sliding, 100 an hour, 1,000 a day), each user's state filled with ten requests
 * in the minute that came round-robin, as they do; then requests of users chosen
 * evenly, in frames, at the pace at which ten a minute come to each. Timed is what
 * a shard does with a decoded frame: fingerprint, lookup, judge, record.
 *
 * The ceiling is what the memory gives: a loop that reads, changes and writes 64
 * bytes at random places of as many bytes as the buckets take, on huge pages,
 * each place asked for well ahead. Time is the thread's own, so that what else
 * the machine does counts as little as it can. WEIR_BENCH=smoke runs a small
 * size, only to show that it works.
 */
#include "common/alloc.h"
#include "common/frame.h"
#include "limiter/shard.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { FRAME_EVENTS = 2048, KEY_BYTES = 16, RUNS = 5, ROUNDS = 10, ROUND_MS = 6000, PREFETCHED = 64 };

static const int64_t start_ms = INT64_C(1700000000000);

static double thread_seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(double *numbers, size_t count)
{
	qsort(numbers, count, sizeof *numbers, compare_doubles);
	return numbers[count / 2];
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

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
	struct rules *rules;
	uint32_t users;
};

struct part {
	struct bench *bench;
	struct shard *shard;
	struct frame_buffer *buffer;
	uint32_t first, users;
	uint64_t random;
	int64_t time_ms;
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
	part->shard = shard_new(&options, bench->rules);
	part->buffer = frame_buffer_new();
	part->time_ms = start_ms;
}

static void part_deinit(struct part *part)
{
	shard_free(part->shard);
	free(part->buffer);
}

/* So many requests of each user, round-robin in an order that has nothing to do with how they lie; seconds. */
static double fill(struct part *part, uint32_t rounds)
{
	double seconds = 0;
	uint32_t step = 7368787; /* a prime: every user comes up once a round */
	for (uint32_t round = 0; round < rounds; round++) {
		uint64_t user = round;
		for (uint32_t done = 0; done < part->users;) {
			frame_clear(part->buffer);
			for (uint32_t i = 0; i < FRAME_EVENTS && done < part->users; i++, done++) {
				user = (user + step) % part->users;
				int64_t time_ms = start_ms + (int64_t)round * ROUND_MS + (int64_t)done * ROUND_MS / part->users;
				frame_request(part->buffer, part->first + (uint32_t)user, false, time_ms);
			}
			seconds += judge_frame(part);
		}
	}
	part->time_ms = start_ms + (int64_t)rounds * ROUND_MS;
	return seconds;
}

/* Requests of users chosen evenly, every second one of the hot user if there is one; rate by the thread's time. */
static double verdict_rate(struct part *part, uint64_t requests, bool hot)
{
	double seconds = 0;
	double a_request_ms = (double)ROUND_MS / part->bench->users * ((double)part->bench->users / part->users);
	double time_ms = (double)part->time_ms;
	for (uint64_t done = 0; done < requests;) {
		frame_clear(part->buffer);
		for (uint32_t i = 0; i < FRAME_EVENTS; i++, done++) {
			bool is_hot = hot && i % 2 == 0;
			uint32_t user = is_hot ? 0 : random_below(&part->random, part->users);
			frame_request(part->buffer, part->first + user, is_hot, (int64_t)time_ms);
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

/* ---- measurements ---- */

static void measure_bytes(struct bench *bench)
{
	struct part part;
	uint64_t before = resident_bytes();
	part_init(&part, bench, 0, bench->users);
	double seconds = fill(&part, 1);
	double once = (double)(resident_bytes() - before) / bench->users;
	printf("{\"bench\":\"bytes_once\",\"unit\":\"bytes/user\",\"bytes\":%.1f,\"goal\":48,\"fill_ns\":%.1f}\n", once,
	       seconds * 1e9 / bench->users);
	part_deinit(&part);
}

/* Verdicts against memory, evenly and with a hot user; what the users cost. */
static double measure_one(struct bench *bench, uint64_t requests)
{
	struct part part;
	struct memory memory;
	uint64_t before = resident_bytes();
	part_init(&part, bench, 0, bench->users);
	double seconds = fill(&part, ROUNDS);
	uint64_t bytes = resident_bytes() - before;
	printf("{\"bench\":\"bytes_ten\",\"unit\":\"bytes/user\",\"bytes\":%.1f,\"goal\":96,\"fill_ns\":%.1f}\n",
	       (double)bytes / bench->users, seconds * 1e9 / bench->users / ROUNDS);
	fflush(stdout);
	memory_init(&memory, bytes);
	double verdicts[RUNS], changes[RUNS], hot[RUNS], ratios[RUNS], hot_ratios[RUNS];
	part.passed = part.blocked = part.decided = 0;
	for (int i = 0; i < RUNS; i++) {
		changes[i] = memory_rate(&memory, requests);
		verdicts[i] = verdict_rate(&part, requests, false);
		ratios[i] = verdicts[i] / changes[i];
	}
	double all = (double)(part.passed + part.blocked);
	double blocked = (double)part.blocked / all, decided = (double)part.decided / all;
	for (int i = 0; i < RUNS; i++) {
		double even = verdict_rate(&part, requests, false);
		hot[i] = verdict_rate(&part, requests, true);
		hot_ratios[i] = hot[i] / even;
	}
	double rate = median(verdicts, RUNS);
	printf("{\"bench\":\"judge\",\"unit\":\"verdicts/s\",\"rate\":%.0f,\"ceiling\":%.0f,\"ratio\":%.3f,\"goal\":0.4,"
	       "\"ns\":%.1f,\"blocked\":%.3f,\"decided\":%.3f}\n",
	       rate, median(changes, RUNS), median(ratios, RUNS), 1e9 / rate, blocked, decided);
	printf("{\"bench\":\"judge_hot\",\"unit\":\"verdicts/s\",\"rate\":%.0f,\"ratio\":%.3f,\"goal\":0.9}\n",
	       median(hot, RUNS), median(hot_ratios, RUNS));
	fflush(stdout);
	part_deinit(&part);
	munmap(memory.words, memory.bytes);
	return rate;
}

struct worker {
	struct part part;
	pthread_barrier_t *barrier;
	uint64_t requests;
	double rates[RUNS];
};

static void *work(void *context)
{
	struct worker *worker = context;
	fill(&worker->part, ROUNDS);
	for (int i = 0; i < RUNS; i++) {
		pthread_barrier_wait(worker->barrier);
		worker->rates[i] = verdict_rate(&worker->part, worker->requests, false);
	}
	return NULL;
}

/* The same users on two shards, each with a thread, against all of them on one. */
static void measure_two(struct bench *bench, uint64_t requests, double one)
{
	struct worker workers[2];
	pthread_t threads[2];
	pthread_barrier_t barrier;
	pthread_barrier_init(&barrier, NULL, 2);
	for (uint32_t i = 0; i < 2; i++) {
		part_init(&workers[i].part, bench, i * (bench->users / 2), bench->users / 2);
		workers[i].barrier = &barrier;
		workers[i].requests = requests;
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

int main(void)
{
	const char *size = getenv("WEIR_BENCH");
	bool smoke = size != NULL && strcmp(size, "smoke") == 0;
	struct bench bench = {.users = smoke ? 50000 : 10000000};
	uint64_t requests = smoke ? 50000 : 4000000;
	bench.zone = (struct weir_zone){.id = 1, .name = "site", .description = "", .limit_count = 3};
	bench.zone.limits[0] = (struct weir_limit){.algorithm = WEIR_SLIDING_WINDOW, .rate = 10, .window_ms = 60000};
	bench.zone.limits[1] = (struct weir_limit){.algorithm = WEIR_FIXED_WINDOW, .rate = 100, .window_ms = 3600000};
	bench.zone.limits[2] = (struct weir_limit){.algorithm = WEIR_FIXED_WINDOW, .rate = 1000, .window_ms = 86400000};
	bench.policy = (struct weir_policy){.version = 1, .zones = &bench.zone, .zone_count = 1};
	const struct weir_policy *policies[] = {&bench.policy};
	bench.rules = rules_new(policies, 1);
	double one = measure_one(&bench, requests);
	measure_two(&bench, requests, one);
	measure_bytes(&bench);
	rules_free(bench.rules);
	return 0;
}
