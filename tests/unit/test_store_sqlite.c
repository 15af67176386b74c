/* The SQLite store: checkpoints are whole, epochs fence, what is refused or fails leaves nothing behind. */
#include "common/durable_file.h"
#include "common/store.h"
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmocka.h>

enum { LIMITER = WEIR_STORE_ROLE_LIMITER, ARCHIVER = WEIR_STORE_ROLE_ARCHIVER };

static struct weir_error error;

static struct weir_store *open_store(const char *directory)
{
	struct weir_store *store = NULL;
	if (weir_store_sqlite_open(directory, &store, &error) != WEIR_OK || store == NULL) {
		fail_msg("%s", error.text);
		abort();
	}
	return store;
}

static struct weir_partition_state take(struct weir_store *store, int role, uint32_t partition)
{
	struct weir_partition_state state;
	if (store->ops->take(store, role, partition, &state, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	return state;
}

static enum weir_status commit(struct weir_store *store, struct weir_partition_state *state, uint64_t checkpoint)
{
	state->checkpoint = checkpoint;
	return store->ops->commit(store, LIMITER, state, 1, NULL, NULL, 0, &error);
}

static enum weir_status write_text(struct weir_store *store, const struct weir_partition_state *state, uint32_t segment,
                                   uint64_t checkpoint, bool base, const char *text)
{
	struct weir_segment_blob blob = {segment, checkpoint, base, weir_span_of(text)};
	return store->ops->write_segments(store, state->partition, state->epoch, &blob, 1, &error);
}

/* Blobs as text: "segment/checkpoint b|d bytes; ". */
static enum weir_status collect(void *context, const struct weir_segment_blob *blob)
{
	char *text = context;
	sprintf(text + strlen(text), "%u/%llu %c %.*s; ", blob->segment, (unsigned long long)blob->checkpoint,
	        blob->base ? 'b' : 'd', (int)blob->bytes.length, blob->bytes.at);
	return WEIR_OK;
}

static void assert_read(struct weir_store *store, const struct weir_partition_state *mine, const uint32_t *segments,
                        size_t count, const char *expected)
{
	char text[4096] = "";
	assert_int_equal(WEIR_OK, store->ops->read_segments(store, mine->partition, mine->epoch, segments, count, collect,
	                                                    text, &error));
	assert_string_equal(expected, text);
}

static void taking_raises_the_epoch(void **state)
{
	struct weir_store *store = open_store(*state);
	struct weir_partition_state limiter, archiver;
	assert_int_equal(WEIR_OK, store->ops->look(store, LIMITER, 3, &limiter, &error));
	assert_int_equal(0, limiter.epoch);
	assert_int_equal(3, limiter.partition);
	for (uint64_t epoch = 1; epoch < 4; epoch++) {
		limiter = take(store, LIMITER, 3);
		assert_int_equal(epoch, limiter.epoch);
		assert_int_equal(3, limiter.partition);
		assert_int_equal(0, limiter.checkpoint);
		assert_int_equal(0, limiter.next_offset);
		assert_int_equal(0, limiter.extra.length);
	}
	archiver = take(store, ARCHIVER, 3);
	assert_int_equal(1, archiver.epoch);
	store->ops->close(store);
	store = open_store(*state);
	assert_int_equal(WEIR_OK, store->ops->look(store, LIMITER, 3, &limiter, &error));
	assert_int_equal(3, limiter.epoch);
	assert_int_equal(4, take(store, LIMITER, 3).epoch);
	store->ops->close(store);
}

static void a_commit_is_there_after_a_restart(void **state)
{
	struct weir_store *store = open_store(*state);
	struct weir_partition_state states[2] = {take(store, LIMITER, 0), take(store, LIMITER, 1)};
	static const char *const names[] = {"once", "empty", "gone"};
	struct weir_span values[] = {weir_span_of("a\nb"), {.at = "", .length = 0}, {0}};
	char *value;
	size_t length;
	assert_int_equal(WEIR_OK, store->ops->note_put(store, "gone", weir_span_of("x"), &error));
	for (uint32_t i = 0; i < 2; i++) {
		states[i].checkpoint = 7 + i;
		states[i].next_offset = UINT64_C(1) << 60;
		states[i].clock_ms = 1732173600123;
		states[i].policy_version = 5;
		states[i].extra = (struct weir_span){.at = "e\0x", .length = 3};
	}
	assert_int_equal(WEIR_OK, store->ops->commit(store, LIMITER, states, 2, names, values, 3, &error));
	store->ops->close(store);
	store = open_store(*state);
	for (uint32_t i = 0; i < 2; i++) {
		struct weir_partition_state found = take(store, LIMITER, i);
		assert_int_equal(2, found.epoch);
		assert_int_equal(7 + i, found.checkpoint);
		assert_int_equal(UINT64_C(1) << 60, found.next_offset);
		assert_int_equal(1732173600123, found.clock_ms);
		assert_int_equal(5, found.policy_version);
		assert_int_equal(3, found.extra.length);
		assert_memory_equal("e\0x", found.extra.at, 3);
	}
	assert_int_equal(WEIR_OK, store->ops->note_get(store, "once", &value, &length, &error));
	assert_int_equal(3, length);
	assert_string_equal("a\nb", value);
	free(value);
	assert_int_equal(WEIR_OK, store->ops->note_get(store, "empty", &value, &length, &error));
	assert_non_null(value);
	assert_int_equal(0, length);
	free(value);
	assert_int_equal(WEIR_OK, store->ops->note_get(store, "gone", &value, &length, &error));
	assert_null(value);
	store->ops->close(store);
}

static void an_older_owner_writes_nothing(void **state)
{
	struct weir_store *old = open_store(*state), *new = open_store(*state);
	struct weir_partition_state mine = take(old, LIMITER, 0), other = take(old, LIMITER, 1);
	assert_int_equal(WEIR_OK, write_text(old, &mine, 5, 1, true, "old"));
	assert_int_equal(WEIR_OK, commit(old, &mine, 1));
	struct weir_partition_state theirs = take(new, LIMITER, 0);
	assert_int_equal(WEIR_FENCED, write_text(old, &mine, 5, 2, true, "zombie"));
	assert_string_equal("partition 0 has another owner by now", error.text);
	/* One partition that is lost takes the whole commit with it: states, notes. */
	struct weir_partition_state states[2] = {other, mine};
	states[0].checkpoint = states[1].checkpoint = 2;
	static const char *const names[] = {"note"};
	struct weir_span values[] = {weir_span_of("zombie")};
	assert_int_equal(WEIR_FENCED, old->ops->commit(old, LIMITER, states, 2, names, values, 1, &error));
	assert_int_equal(WEIR_FENCED, old->ops->clean(old, 0, mine.epoch, &error));
	char *value;
	size_t length;
	assert_int_equal(WEIR_OK, new->ops->note_get(new, "note", &value, &length, &error));
	assert_null(value);
	struct weir_partition_state found;
	assert_int_equal(WEIR_OK, new->ops->look(new, LIMITER, 1, &found, &error));
	assert_int_equal(0, found.checkpoint);
	char text[64] = "";
	uint32_t segment = 5;
	assert_int_equal(WEIR_FENCED, old->ops->read_segments(old, 0, mine.epoch, &segment, 1, collect, text, &error));
	assert_string_equal("", text);
	assert_read(new, &theirs, &segment, 1, "5/1 b old; ");
	assert_int_equal(WEIR_OK, commit(new, &theirs, 2));
	/* A partition that nobody took has no owner either. */
	struct weir_partition_state never = {.partition = 9, .epoch = 0};
	assert_int_equal(WEIR_FENCED, commit(new, &never, 1));
	assert_int_equal(WEIR_FENCED, write_text(new, &never, 0, 1, true, "x"));
	old->ops->close(old);
	new->ops->close(new);
}

static void segments_are_read_as_of_the_current_checkpoint(void **state)
{
	struct weir_store *store = open_store(*state);
	struct weir_partition_state mine = take(store, LIMITER, 2), other = take(store, LIMITER, 1);
	static const uint32_t both[] = {1, 0, 7};
	assert_read(store, &mine, both, 3, "");
	assert_int_equal(WEIR_OK, write_text(store, &mine, 0, 1, true, "A"));
	assert_int_equal(WEIR_OK, write_text(store, &mine, 1, 1, true, "B"));
	assert_read(store, &mine, both, 3, ""); /* not current yet */
	assert_int_equal(WEIR_OK, commit(store, &mine, 1));
	assert_read(store, &mine, both, 3, "1/1 b B; 0/1 b A; ");
	assert_int_equal(WEIR_INVALID, write_text(store, &mine, 1, 1, true, "changed"));
	assert_int_equal(WEIR_OK, write_text(store, &mine, 0, 2, false, "a2"));
	assert_int_equal(WEIR_OK, write_text(store, &mine, 0, 2, false, "a2 again"));
	assert_int_equal(WEIR_OK, commit(store, &mine, 2));
	assert_read(store, &mine, both, 3, "1/1 b B; 0/1 b A; 0/2 d a2 again; ");
	assert_int_equal(WEIR_OK, write_text(store, &mine, 1, 3, false, ""));
	assert_int_equal(WEIR_OK, commit(store, &mine, 3));
	assert_read(store, &mine, both, 3, "1/1 b B; 1/3 d ; 0/1 b A; 0/2 d a2 again; ");
	assert_int_equal(WEIR_OK, write_text(store, &mine, 0, 4, true, "A4"));
	assert_int_equal(WEIR_OK, commit(store, &mine, 4));
	assert_int_equal(WEIR_OK, write_text(store, &mine, 0, 5, false, "a5"));
	assert_read(store, &mine, both, 3, "1/1 b B; 1/3 d ; 0/4 b A4; ");
	assert_read(store, &other, both, 3, "");

	/* Removed is what is behind the new base, and not what is still being written. */
	assert_int_equal(WEIR_OK, store->ops->clean(store, 2, mine.epoch, &error));
	assert_read(store, &mine, both, 3, "1/1 b B; 1/3 d ; 0/4 b A4; ");
	assert_int_equal(WEIR_OK, commit(store, &mine, 5));
	assert_read(store, &mine, both, 3, "1/1 b B; 1/3 d ; 0/4 b A4; 0/5 d a5; ");
	/* The next owner does not see what this one has not made current. */
	assert_int_equal(WEIR_OK, write_text(store, &mine, 0, 6, false, "a6"));
	mine = take(store, LIMITER, 2);
	assert_int_equal(5, mine.checkpoint);
	assert_int_equal(WEIR_OK, commit(store, &mine, 6));
	assert_read(store, &mine, both, 3, "1/1 b B; 1/3 d ; 0/4 b A4; 0/5 d a5; ");
	store->ops->close(store);
}

static void list_one(void *context, uint32_t segment, uint32_t deltas, uint64_t base_bytes, uint64_t delta_bytes)
{
	char *text = context;
	sprintf(text + strlen(text), "%u: %u %llu %llu; ", segment, deltas, (unsigned long long)base_bytes,
	        (unsigned long long)delta_bytes);
}

static void segments_are_listed(void **state)
{
	struct weir_store *store = open_store(*state);
	struct weir_partition_state mine = take(store, LIMITER, 0);
	char text[256] = "";
	assert_int_equal(WEIR_OK, store->ops->list_segments(store, 0, 100, list_one, text, &error));
	assert_string_equal("", text);
	assert_int_equal(WEIR_OK, write_text(store, &mine, 3, 1, true, "123"));
	assert_int_equal(WEIR_OK, write_text(store, &mine, 3, 2, false, "12345"));
	assert_int_equal(WEIR_OK, write_text(store, &mine, 3, 3, false, "1"));
	assert_int_equal(WEIR_OK, write_text(store, &mine, 1000, 3, false, "12"));
	assert_int_equal(WEIR_OK, write_text(store, &mine, 1000, 4, true, "1234567"));
	assert_int_equal(WEIR_OK, write_text(store, &mine, 1000, 5, false, "12"));
	assert_int_equal(WEIR_OK, store->ops->list_segments(store, 0, 3, list_one, text, &error));
	assert_string_equal("3: 2 3 6; 1000: 1 0 2; ", text);
	text[0] = '\0';
	assert_int_equal(WEIR_OK, store->ops->list_segments(store, 0, 5, list_one, text, &error));
	assert_string_equal("3: 2 3 6; 1000: 1 7 2; ", text);
	store->ops->close(store);
}

static enum weir_status stop_at_once(void *context, const struct weir_segment_blob *blob)
{
	(void)blob;
	++*(int *)context;
	return WEIR_END;
}

static void a_reader_may_stop(void **state)
{
	struct weir_store *store = open_store(*state);
	struct weir_partition_state mine = take(store, LIMITER, 0);
	int calls = 0;
	assert_int_equal(WEIR_OK, write_text(store, &mine, 0, 1, true, "a"));
	assert_int_equal(WEIR_OK, write_text(store, &mine, 1, 1, true, "b"));
	assert_int_equal(WEIR_OK, commit(store, &mine, 1));
	assert_int_equal(
		WEIR_END, store->ops->read_segments(store, 0, mine.epoch, (uint32_t[]){0, 1}, 2, stop_at_once, &calls, &error));
	assert_int_equal(1, calls);
	store->ops->close(store);
}

static enum weir_status collect_policy(void *context, uint64_t version, struct weir_span text)
{
	char *all = context;
	sprintf(all + strlen(all), "%llu=%.*s; ", (unsigned long long)version, (int)text.length, text.at);
	return version == 9 ? WEIR_INVALID : WEIR_OK;
}

static void policies_are_numbered_and_never_change(void **state)
{
	struct weir_store *store = open_store(*state);
	char text[256] = "";
	assert_int_equal(WEIR_OK, store->ops->policy_put(store, 2, weir_span_of("two"), &error));
	assert_int_equal(WEIR_OK, store->ops->policy_put(store, 1, weir_span_of("one"), &error));
	assert_int_equal(WEIR_OK, store->ops->policy_put(store, 2, weir_span_of("two"), &error));
	assert_int_equal(WEIR_INVALID, store->ops->policy_put(store, 2, weir_span_of("other"), &error));
	assert_string_equal("policy version 2 is another policy already", error.text);
	assert_int_equal(WEIR_OK, store->ops->policy_each(store, 0, collect_policy, text, &error));
	assert_string_equal("1=one; 2=two; ", text);
	text[0] = '\0';
	assert_int_equal(WEIR_OK, store->ops->policy_put(store, 9, weir_span_of("nine"), &error));
	assert_int_equal(WEIR_OK, store->ops->policy_put(store, 10, weir_span_of("ten"), &error));
	assert_int_equal(WEIR_INVALID, store->ops->policy_each(store, 2, collect_policy, text, &error));
	assert_string_equal("2=two; 9=nine; ", text);
	text[0] = '\0';
	assert_int_equal(WEIR_OK, store->ops->policy_each(store, 11, collect_policy, text, &error));
	assert_string_equal("", text);
	store->ops->close(store);
}

/* ---- against a model ---- */

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
		assert_int_equal(WEIR_OK, store->ops->read_segments(store, partition, model->states[partition].epoch, all,
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
	assert_int_equal(model->states[partition].epoch + 1, taken.epoch);
	assert_int_equal(model->states[partition].checkpoint, taken.checkpoint);
	model->states[partition] = taken;
	for (uint32_t segment = 0; segment < MODEL_SEGMENTS; segment++)
		model->written[partition][segment][taken.checkpoint + 1] = 0;
}

static void random_operations_equal_a_model(void **state)
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
	const char *directory;
	uint32_t partition;
};

static void *commit_often(void *context)
{
	const struct committer *committer = context;
	struct weir_store *store;
	struct weir_partition_state mine;
	char bytes[20000] = {0};
	size_t wrong = weir_store_sqlite_open(committer->directory, &store, NULL) != WEIR_OK;
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

static void writers_wait_for_their_turn(void **state)
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

#define test(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(taking_raises_the_epoch),
		test(a_commit_is_there_after_a_restart),
		test(an_older_owner_writes_nothing),
		test(segments_are_read_as_of_the_current_checkpoint),
		test(segments_are_listed),
		test(a_reader_may_stop),
		test(policies_are_numbered_and_never_change),
		test(random_operations_equal_a_model),
		test(writers_wait_for_their_turn),
	};
	return cmocka_run_group_tests_name("store_sqlite", tests, NULL, NULL);
}
