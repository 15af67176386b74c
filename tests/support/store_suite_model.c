/* SPDX-License-Identifier: Apache-2.0 */
/* Any store against a model of it, and against several writers at once. */
#include "tests/support/store_suite_parts.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { LIMITER = WEIR_STORE_ROLE_LIMITER };

static struct weir_error error;

enum { MODEL_PARTITIONS = 2, MODEL_SEGMENTS = 6, MODEL_CHECKPOINTS = 4000 };

/* Every blob ever written: its length tells which it is. 0: none. */
struct model {
	uint32_t written[MODEL_PARTITIONS][MODEL_SEGMENTS][MODEL_CHECKPOINTS];
	bool base[MODEL_PARTITIONS][MODEL_SEGMENTS][MODEL_CHECKPOINTS];
	struct weir_partition_state states[MODEL_PARTITIONS];
};

static void model_expect(const struct model *model, uint32_t partition, uint32_t segment, char *text)
{
	uint64_t upto = model->states[partition].checkpoint, from = 0;
	for (uint64_t c = 1; c <= upto; c++)
		if (model->written[partition][segment][c] > 0 && model->base[partition][segment][c])
			from = c;
	for (uint64_t c = from; c <= upto; c++)
		if (model->written[partition][segment][c] > 0)
			sprintf(text + strlen(text), "%u/%llu%c%u; ", segment, (unsigned long long)c,
			        model->base[partition][segment][c] ? 'b' : 'd', model->written[partition][segment][c] - 1);
}

static enum weir_status collect_lengths(void *context, const struct weir_segment_blob *blob)
{
	char *text = context;
	sprintf(text + strlen(text), "%u/%llu%c%u; ", blob->segment, (unsigned long long)blob->checkpoint,
	        blob->base ? 'b' : 'd', blob->bytes.length);
	for (uint32_t i = 0; i < blob->bytes.length; i++)
		assert_int_equal((char)(blob->segment + blob->checkpoint), blob->bytes.at[i]);
	return WEIR_OK;
}

static void model_check(const struct model *model, struct weir_store *store)
{
	static char expected[65536], found[65536];
	static const uint32_t all[MODEL_SEGMENTS] = {0, 1, 2, 3, 4, 5};
	for (uint32_t partition = 0; partition < MODEL_PARTITIONS; partition++) {
		expected[0] = found[0] = '\0';
		for (uint32_t segment = 0; segment < MODEL_SEGMENTS; segment++)
			model_expect(model, partition, segment, expected);
		assert_int_equal(WEIR_OK, store->ops->read_segments(store, partition, model->states[partition].epoch, 0, all,
		                                                    MODEL_SEGMENTS, collect_lengths, found, &error));
		assert_string_equal(expected, found);
	}
}

static void model_write(struct model *model, struct weir_store *store, uint32_t partition, unsigned *seed)
{
	static char bytes[40000];
	struct weir_partition_state *mine = &model->states[partition];
	struct weir_segment_blob blob = {.segment = (uint32_t)rand_r(seed) % MODEL_SEGMENTS,
	                                 .checkpoint = mine->checkpoint + 1,
	                                 .base = rand_r(seed) % 3 == 0};
	blob.bytes =
		(struct weir_span){.at = bytes, .length = (uint32_t)rand_r(seed) % (rand_r(seed) % 5 == 0 ? 40000 : 300)};
	memset(bytes, (int)(blob.segment + blob.checkpoint), blob.bytes.length);
	assert_int_equal(WEIR_OK, store->ops->write_segments(store, partition, mine->epoch, &blob, 1, &error));
	model->written[partition][blob.segment][blob.checkpoint] = blob.bytes.length + 1;
	model->base[partition][blob.segment][blob.checkpoint] = blob.base;
}

static void model_take(struct model *model, struct weir_store *store, uint32_t partition)
{
	struct weir_partition_state taken = take(store, LIMITER, partition);
	assert_true(taken.epoch > model->states[partition].epoch);
	assert_int_equal(model->states[partition].checkpoint, taken.checkpoint);
	model->states[partition] = taken;
	for (uint32_t segment = 0; segment < MODEL_SEGMENTS; segment++)
		model->written[partition][segment][taken.checkpoint + 1] = 0;
}

void random_operations_equal_a_model(void **state)
{
	struct model *model = calloc(1, sizeof *model);
	struct weir_store *stores[2] = {open_store(*state), open_store(*state)};
	unsigned seed = 11;
	for (uint32_t i = 0; i < MODEL_PARTITIONS; i++)
		model_take(model, stores[0], i);
	for (int i = 0; i < 2500; i++) {
		uint32_t partition = (uint32_t)rand_r(&seed) % MODEL_PARTITIONS;
		int which = rand_r(&seed) % 2, roll = rand_r(&seed) % 100;
		struct weir_store *store = stores[which];
		struct weir_partition_state *mine = &model->states[partition];
		if (roll < 55) {
			model_write(model, store, partition, &seed);
		} else if (roll < 80) {
			struct weir_partition_state next = *mine;
			next.extra = (struct weir_span){0};
			assert_int_equal(WEIR_OK, commit(store, &next, mine->checkpoint + 1));
			mine->checkpoint++;
		} else if (roll < 85) {
			struct weir_partition_state old = *mine;
			old.epoch--;
			assert_int_equal(WEIR_FENCED, commit(store, &old, mine->checkpoint + 1));
		} else if (roll < 92) {
			assert_int_equal(WEIR_OK, store->ops->clean(store, partition, mine->epoch, &error));
		} else if (roll < 97) {
			model_take(model, store, partition);
		} else if (roll < 99) {
			model_check(model, store);
		} else {
			store->ops->close(store);
			stores[which] = open_store(*state);
		}
	}
	model_check(model, stores[0]);
	model_check(model, stores[1]);
	stores[0]->ops->close(stores[0]);
	stores[1]->ops->close(stores[1]);
	free(model);
}

enum { THREADS = 4, COMMITS = 40 };

struct committer {
	void *place;
	uint32_t partition;
};

static void *commit_often(void *context)
{
	const struct committer *committer = context;
	struct weir_store *store;
	struct weir_partition_state mine;
	char bytes[20000] = {0};
	size_t wrong = store_suite_open(committer->place, &store, NULL) != WEIR_OK;
	wrong += store->ops->take(store, LIMITER, committer->partition, &mine, NULL) != WEIR_OK;
	for (uint64_t i = 1; i <= COMMITS; i++) {
		struct weir_segment_blob blob = {(uint32_t)i % 8, i, i % 3 == 0, {.at = bytes, .length = sizeof bytes}};
		wrong += store->ops->write_segments(store, committer->partition, mine.epoch, &blob, 1, NULL) != WEIR_OK;
		mine.checkpoint = i;
		mine.extra = (struct weir_span){0};
		wrong += store->ops->commit(store, LIMITER, &mine, 1, NULL, NULL, 0, NULL) != WEIR_OK;
		wrong += store->ops->clean(store, committer->partition, mine.epoch, NULL) != WEIR_OK;
	}
	store->ops->close(store);
	return (void *)wrong;
}

void writers_wait_for_their_turn(void **state)
{
	pthread_t threads[THREADS];
	struct committer committers[THREADS];
	for (uint32_t i = 0; i < THREADS; i++) {
		committers[i] = (struct committer){*state, i};
		assert_int_equal(0, pthread_create(&threads[i], NULL, commit_often, &committers[i]));
	}
	struct weir_store *store = open_store(*state);
	for (uint32_t i = 0; i < THREADS; i++) {
		void *wrong;
		pthread_join(threads[i], &wrong);
		assert_null(wrong);
		assert_int_equal(COMMITS, take(store, LIMITER, i).checkpoint);
	}
	store->ops->close(store);
}
