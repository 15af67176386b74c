/* SPDX-License-Identifier: Apache-2.0 */
/* Writers before stores that answer as they are told: what each stores, side by side, and what it says of it. */
#include "archiver/work/writer.h"
#include "common/bytes/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

enum { WRITERS = 3, PARTITIONS = 8, HOURS = 5 };

struct fake_store {
	struct weir_store store; /* first */
	enum weir_status answer;
	int calls;
	size_t rows;
	uint64_t checkpoints;  /* their sum */
	_Atomic int *inside;   /* stores that are asked now */
	_Atomic int *together; /* the most of them that were at once */
};

static enum weir_status fake_archive(struct weir_store *store, int role, const struct weir_archive_batch *batch,
                                     const struct weir_partition_state *states, size_t count, const char *const *names,
                                     const struct weir_span *values, size_t note_count, struct weir_error *error)
{
	struct fake_store *fake = (struct fake_store *)store;
	(void)names;
	(void)values;
	assert_int_equal(role, WEIR_STORE_ROLE_ARCHIVER);
	assert_int_equal(note_count, 0);
	atomic_fetch_add(fake->inside, 1);
	/* Waits, some seconds at most, for the others: they come if they do not wait for this one. */
	for (int i = 0; i < 5000 && atomic_load(fake->together) < WRITERS; i++) {
		int inside = atomic_load(fake->inside);
		if (inside > atomic_load(fake->together))
			atomic_store(fake->together, inside);
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	fake->calls++;
	fake->rows += batch->hour_count;
	for (size_t i = 0; i < count; i++)
		fake->checkpoints += states[i].checkpoint;
	atomic_fetch_sub(fake->inside, 1);
	return fake->answer == WEIR_OK ? WEIR_OK : weir_fail(error, fake->answer, "as it was told");
}

static const struct weir_store_ops fake_ops = {.name = "fake", .archive = fake_archive};

struct scene {
	_Atomic int inside, together;
	struct fake_store stores[WRITERS];
	struct writer *writers[WRITERS];
	struct ledger *ledgers[PARTITIONS];
};

static void begin(struct scene *scene)
{
	struct weir_error error;
	*scene = (struct scene){.inside = 0};
	for (uint32_t i = 0; i < WRITERS; i++) {
		scene->stores[i] =
			(struct fake_store){.store = {&fake_ops}, .inside = &scene->inside, .together = &scene->together};
		assert_int_equal(writer_new(&scene->stores[i].store, NULL, i > 0, PARTITIONS, &scene->writers[i], &error),
		                 WEIR_OK);
	}
	for (uint32_t i = 0; i < PARTITIONS; i++)
		scene->ledgers[i] = ledger_new(i);
}

static void end(struct scene *scene)
{
	for (uint32_t i = 0; i < WRITERS; i++)
		writer_free(scene->writers[i]);
	for (uint32_t i = 0; i < PARTITIONS; i++)
		ledger_free(scene->ledgers[i]);
}

static void give(struct scene *scene)
{
	struct weir_span key = weir_span_of("k");
	for (uint32_t i = 0; i < PARTITIONS; i++) {
		for (int hour = 0; hour < HOURS; hour++)
			counts_add(scene->ledgers[i]->counts, i, key, counts_hash(scene->ledgers[i]->counts, key),
			           hour * (int64_t)WEIR_HOUR_MS, 1, 0, 0);
		writer_give(scene->writers[i % WRITERS], scene->ledgers[i]);
	}
	for (uint32_t i = WRITERS; i-- > 0;)
		writer_start(scene->writers[i]);
}

static void they_store_side_by_side(void **state)
{
	(void)state;
	struct scene scene;
	begin(&scene);
	for (int round = 1; round <= 3; round++) {
		give(&scene);
		for (uint32_t i = 0; i < WRITERS; i++) {
			struct writer_result result = writer_finish(scene.writers[i]);
			size_t wanted = (PARTITIONS + WRITERS - 1 - i) / WRITERS;
			assert_int_equal(result.status, WEIR_OK);
			assert_int_equal(result.count, wanted);
			assert_int_equal(result.rows, wanted * HOURS);
			assert_int_equal(scene.stores[i].calls, round);
			for (size_t j = 0; j < result.count; j++) {
				assert_int_equal(result.ledgers[j]->partition, i + j * WRITERS);
				ledger_stored(result.ledgers[j]);
			}
		}
	}
	assert_int_equal(scene.together, WRITERS);
	assert_int_equal(scene.stores[0].checkpoints, 3 * (1 + 2 + 3));
	end(&scene);
}

static void each_says_how_it_went(void **state)
{
	(void)state;
	struct scene scene;
	begin(&scene);
	atomic_store(&scene.together, WRITERS);
	scene.stores[1].answer = WEIR_IO;
	scene.stores[2].answer = WEIR_FENCED;
	give(&scene);
	for (uint32_t i = 0; i < WRITERS; i++) {
		struct writer_result result = writer_finish(scene.writers[i]);
		assert_int_equal(result.status, scene.stores[i].answer);
		if (result.status != WEIR_OK)
			assert_string_equal(result.error.text, "as it was told");
	}
	end(&scene);
}

static void with_nothing_given_no_store_is_asked(void **state)
{
	(void)state;
	struct scene scene;
	begin(&scene);
	for (uint32_t i = 0; i < WRITERS; i++) {
		writer_start(scene.writers[i]);
		struct writer_result result = writer_finish(scene.writers[i]);
		assert_int_equal(result.status, WEIR_OK);
		assert_int_equal(result.count, 0);
		assert_int_equal(scene.stores[i].calls, 0);
	}
	end(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(they_store_side_by_side),
		cmocka_unit_test(each_says_how_it_went),
		cmocka_unit_test(with_nothing_given_no_store_is_asked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
