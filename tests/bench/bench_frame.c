/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an event costs on its way into a frame and out again.
 *
 * Addresses by a skewed choice among many users, one zone, times a few ms apart:
 * frames as a busy access log gives them, filled to the target size. Keys lie one
 * after another, as they do in a log's lines. Medians of
 * several runs; one JSON line a measurement. WEIR_BENCH=smoke runs a small size,
 * only to show that it works.
 */
#include "common/base/alloc.h"
#include "common/bytes/hash.h"
#include "common/frame/frame.h"
#include "tests/bench/measure.h"

#include <stdio.h>
#include <stdlib.h>

enum { RUNS = 7, USERS = 200000 };

struct workload {
	char (*keys)[16]; /* of each event */
	struct weir_span *spans;
	uint64_t *hashes;
	size_t events;
	char *frames; /* what was written, one after another */
	uint32_t *lengths;
	size_t frame_count, bytes;
};

static void workload_init(struct workload *load, size_t events)
{
	*load = (struct workload){.keys = weir_alloc(events, 16),
	                          .spans = weir_alloc(events, sizeof *load->spans),
	                          .hashes = weir_alloc(events, sizeof *load->hashes),
	                          .events = events,
	                          .frames = weir_alloc(events, 32),
	                          .lengths = weir_alloc(events, sizeof *load->lengths)};
	uint64_t random = 1;
	for (size_t i = 0; i < events; i++) {
		random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		double uniform = (double)(random >> 11) / (double)(UINT64_C(1) << 53);
		uint32_t user = (uint32_t)(uniform * uniform * uniform * USERS);
		snprintf(load->keys[i], 16, "%u.%u.%u.%u", 1 + user % 223, user * 7 % 256, user / 223 % 256, user * 31 % 256);
		load->spans[i] = weir_span_of(load->keys[i]);
		load->hashes[i] = weir_hash64(load->spans[i].at, load->spans[i].length);
	}
}

static void workload_deinit(struct workload *load)
{
	free(load->keys);
	free(load->spans);
	free(load->hashes);
	free(load->frames);
	free(load->lengths);
}

static void take(struct workload *load, struct weir_span frame)
{
	memcpy(load->frames + load->bytes, frame.at, frame.length);
	load->bytes += frame.length;
	load->lengths[load->frame_count++] = frame.length;
}

static double encode_seconds(struct workload *load)
{
	static const uint8_t source[WEIR_SOURCE_ID_BYTES] = {1};
	static const struct weir_frame_zone zone = {.id = 1};
	struct weir_frame_writer *writer = weir_frame_writer_new();
	load->bytes = load->frame_count = 0;
	double start = thread_seconds();
	bool open = false;
	for (size_t i = 0; i < load->events; i++) {
		int64_t time_ms = INT64_C(1700000000000) + (int64_t)(i / 4);
		if (!open)
			weir_frame_begin(writer, source, 1, time_ms, i * 190);
		open = true;
		if (weir_frame_add(writer, load->spans[i], load->hashes[i], time_ms, i * 190, 1, &zone, 1) != WEIR_OK)
			abort();
		if (weir_frame_size(writer) >= WEIR_FRAME_TARGET_BYTES) {
			take(load, weir_frame_finish(writer, time_ms));
			open = false;
		}
	}
	if (open)
		take(load, weir_frame_finish(writer, 0));
	double seconds = thread_seconds() - start;
	weir_frame_writer_free(writer);
	return seconds;
}

static double decode_seconds(struct workload *load)
{
	struct weir_frame_reader *reader = weir_frame_reader_new();
	struct weir_frame frame;
	size_t events = 0, at = 0;
	double start = thread_seconds();
	for (size_t i = 0; i < load->frame_count; i++) {
		struct weir_span message = {.at = load->frames + at, .length = load->lengths[i]};
		if (weir_frame_decode(reader, message, &frame, NULL) != WEIR_OK)
			abort();
		events += frame.event_count;
		at += load->lengths[i];
	}
	double seconds = thread_seconds() - start;
	if (events != load->events)
		abort();
	weir_frame_reader_free(reader);
	return seconds;
}

static double median_of(double (*measure)(struct workload *load), struct workload *load)
{
	double seconds[RUNS];
	for (int i = 0; i < RUNS; i++)
		seconds[i] = measure(load);
	return median(seconds, RUNS);
}

static void report(const char *bench, const struct workload *load, double seconds, double goal_ns)
{
	double rate = (double)load->events / seconds, goal = 1e9 / goal_ns;
	printf("{\"bench\":\"%s\",\"unit\":\"events/s\",\"rate\":%.0f,\"goal\":%.0f,\"ratio\":%.2f,\"ns\":%.1f,"
	       "\"bytes_per_event\":%.1f}\n",
	       bench, rate, goal, rate / goal, 1e9 / rate, (double)load->bytes / (double)load->events);
}

int main(void)
{
	bool smoke = is_smoke();
	struct workload load;
	workload_init(&load, smoke ? 50000 : 4000000);
	report("frame_encode", &load, median_of(encode_seconds, &load), 25);
	report("frame_decode", &load, median_of(decode_seconds, &load), 10);
	workload_deinit(&load);
	return 0;
}
