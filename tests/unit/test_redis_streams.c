/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of Redis: what a server's counts mean for losses and departures, and where they are in a cluster. */
#include "collector/source/queue/internal.h"
#include "collector/source/redis/internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* A source that is not begun, with one stream that is read and has departures. */
static struct redis_source *make(const char *workers)
{
	static const struct queue_found entries = {.id = {1}, .label = "redis:jobs"},
									done = {.id = {2}, .label = "redis:jobs done"};
	struct redis_source *source = calloc(1, sizeof *source);
	struct source_context context = {0};
	struct weir_error error;
	source->config = (struct redis_config){.name = "redis", .departures = true, .workers = workers};
	source->entry.line_max = source->queue.line_max = 4096;
	assert_int_equal(
		queue_init(&source->queue, &source_redis_ops, NULL, SOURCE_REDIS_PREFIX, "redis", &context, &error), WEIR_OK);
	struct redis_stream *stream = redis_add_stream(source, weir_span_of("jobs"));
	stream->entries = queue_open_stream(&source->queue, &entries, &error);
	stream->done = queue_open_stream(&source->queue, &done, &error);
	stream->tallied = stream->counted = source->keeps = true;
	return source;
}

static void drop(struct redis_source *source)
{
	redis_free_streams(source);
	queue_deinit(&source->queue);
	weir_text_deinit(&source->entry.text);
	free(source);
}

/* Reads so many entries, and hears what the server counts. @return how many departures were given in all */
static uint64_t hear(struct redis_source *source, uint64_t read, uint64_t added, uint64_t length, uint64_t acknowledged)
{
	struct redis_stream *stream = source->streams[0];
	stream->place.position += read;
	stream->place.added += read;
	stream->place.read += read;
	stream->extent = (struct redis_extent){
		.known = true,
		.counts = true,
		.last = stream->place.position,
		.added = added,
		.length = length,
		.acknowledges = true,
		.acknowledged = acknowledged,
	};
	redis_settle(source, stream);
	return stream->departed;
}

static void departures_are_what_was_read_and_is_not_there(void **state)
{
	(void)state;
	struct redis_source *source = make(NULL);
	assert_int_equal(hear(source, 10, 10, 10, 0), 0);
	assert_int_equal(hear(source, 0, 10, 7, 0), 3);
	assert_int_equal(hear(source, 5, 17, 12, 0), 3); /* two were removed before they were read */
	assert_int_equal(source->streams[0]->entries->lost, 2);
	assert_int_equal(hear(source, 0, 17, 0, 0), 15);
	drop(source);
	source = make("workers");
	assert_int_equal(hear(source, 10, 10, 10, 4), 4);
	assert_int_equal(hear(source, 5, 17, 15, 4), 4);
	assert_int_equal(hear(source, 0, 17, 15, 17), 15);
	drop(source);
}

static void departures_go_on_where_the_server_counts_anew(void **state)
{
	(void)state;
	static const char *const manners[] = {NULL, "workers"};
	for (size_t i = 0; i < 2; i++) {
		struct redis_source *source = make(manners[i]);
		const struct queue_stream *entries = source->streams[0]->entries;
		assert_int_equal(hear(source, 1000, 1000, 10, 990), 990);
		assert_int_equal(entries->unknown, 0);
		/* a failover has lost five entries that were there: they have left */
		assert_int_equal(hear(source, 0, 995, 5, 990), 995);
		assert_int_equal(entries->unknown, 1);
		assert_int_equal(hear(source, 3, 998, 6, 992), 997);
		assert_int_equal(source->streams[0]->marks[source->streams[0]->mark_count - 1].added, 998);
		/* made anew */
		assert_int_equal(hear(source, 2, 2, 2, 0), 1003);
		assert_int_equal(hear(source, 0, 2, 1, 1), 1004);
		assert_int_equal(entries->unknown, 2);
		assert_int_equal(entries->lost, 0);
		/* what a restart goes on with */
		assert_int_equal(source->streams[0]->marks[source->streams[0]->mark_count - 1].added, 2);
		assert_int_equal(source->streams[0]->marks[source->streams[0]->mark_count - 1].read, 1005);
		drop(source);
	}
}

static void nothing_departs_that_left_before_it_was_asked_for(void **state)
{
	(void)state;
	static const char *const manners[] = {NULL, "workers"};
	for (size_t i = 0; i < 2; i++) {
		struct redis_source *source = make(manners[i]);
		source->streams[0]->tallied = false;
		assert_int_equal(hear(source, 10, 100, i == 0 ? 7 : 100, 93), 0);
		assert_int_equal(hear(source, 0, 100, i == 0 ? 5 : 100, 95), 2);
		drop(source);
	}
}

static bool find_node(struct redis_source *source, int number, size_t *node)
{
	char at[32];
	snprintf(at, sizeof at, "10.0.0.%d:6379", number);
	return redis_find_node(source, 0, weir_span_of(at), node);
}

/* As many nodes as can be known, and after a new connection others in their places. */
static void nodes_of_a_cluster_are_forgotten(void **state)
{
	(void)state;
	struct redis_source *source = make(NULL);
	struct weir_error error;
	size_t node;
	source->config.url_count = 1;
	assert_int_equal(weir_redis_url_parse("redis://127.0.0.1:1", &source->urls[0], &error), WEIR_OK);
	assert_int_equal(redis_connect(source, 0, &error), WEIR_IO); /* nothing listens there */
	for (int round = 0; round < 3; round++) {
		for (int i = 1; i < REDIS_NODES_MAX; i++) {
			assert_true(find_node(source, round * REDIS_NODES_MAX + i, &node));
			assert_int_equal(node, i);
		}
		assert_true(find_node(source, round * REDIS_NODES_MAX + 3, &node)); /* known */
		assert_int_equal(node, 3);
		assert_false(find_node(source, round * REDIS_NODES_MAX + REDIS_NODES_MAX, &node));
		source->streams[0]->node = 3;
		redis_forget_nodes(source);
		assert_int_equal(source->streams[0]->node, 0);
	}
	redis_server_deinit(source->servers[0]);
	free(source->servers[0]);
	weir_redis_url_deinit(&source->urls[0]);
	drop(source);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(departures_are_what_was_read_and_is_not_there),
		cmocka_unit_test(departures_go_on_where_the_server_counts_anew),
		cmocka_unit_test(nodes_of_a_cluster_are_forgotten),
		cmocka_unit_test(nothing_departs_that_left_before_it_was_asked_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
