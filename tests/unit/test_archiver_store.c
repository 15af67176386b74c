/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Storing over several connections, of which any may break, before its commit or behind it, while partitions get other
 * owners and the store loses what it had last: what it has in the end is what was taken, each once. The store is one
 * that obeys its header, and no more.
 */
#include "archiver/work/internal.h"
#include "common/base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { WRITERS = 3, PARTITIONS = 7, STEPS = 400, SEEDS = 100 };

enum answer { GOOD, AWAY, LOST, ANSWERS }; /* LOST: it was done, and nobody hears so */

static uint64_t next_number(uint64_t *random)
{
	*random ^= *random >> 12;
	*random ^= *random << 25;
	*random ^= *random >> 27;
	return *random * UINT64_C(2685821657736338717) >> 33;
}

/* ---- a server, and connections to it ---- */

struct row {
	uint64_t epoch, checkpoint, next_offset, passed; /* passed: the sum of what was added to the partition */
	struct weir_text extra;
};

struct server {
	pthread_mutex_t lock;
	struct row rows[PARTITIONS], before[PARTITIONS]; /* before: as they were before what each was given last */
	bool away;
	unsigned asked;                                 /* how often a row was inspected */
	unsigned answers[ANSWERS], fenced, known, lost; /* how often */
};

struct connection {
	struct weir_store store; /* first */
	struct server *server;
	uint64_t random;
	enum answer always; /* ANSWERS: by chance */
};

static void copy_row(struct row *to, const struct row *from)
{
	struct weir_text extra = to->extra;
	*to = *from;
	to->extra = extra;
	weir_text_clear(&to->extra);
	weir_text_append(&to->extra, from->extra.at, from->extra.length);
}

/* Another server takes over, which is one transaction behind. */
static void lose_last(struct server *server, uint32_t partition)
{
	if (server->before[partition].epoch == server->rows[partition].epoch &&
	    server->before[partition].checkpoint < server->rows[partition].checkpoint) {
		copy_row(&server->rows[partition], &server->before[partition]);
		server->lost++;
	}
}

/* One state that is current already says that all of the batch was added before. */
static enum weir_status add(struct server *server, const struct weir_archive_batch *batch,
                            const struct weir_partition_state *states, size_t count)
{
	bool known = false;
	for (size_t i = 0; i < count; i++) {
		const struct row *row = &server->rows[states[i].partition];
		if (row->epoch != states[i].epoch || row->checkpoint + 1 < states[i].checkpoint) {
			server->fenced++;
			return WEIR_FENCED;
		}
		known = known || row->checkpoint >= states[i].checkpoint;
	}
	server->known += known;
	for (size_t i = 0; i < count && !known; i++) {
		struct row *row = &server->rows[states[i].partition];
		copy_row(&server->before[states[i].partition], row);
		row->checkpoint = states[i].checkpoint;
		row->next_offset = states[i].next_offset;
		weir_text_clear(&row->extra);
		weir_text_append(&row->extra, states[i].extra.at, states[i].extra.length);
	}
	for (size_t i = 0; i < batch->hour_count && !known; i++)
		server->rows[batch->hours[i].zone].passed += batch->hours[i].passed;
	return WEIR_OK;
}

static enum weir_status fake_archive(struct weir_store *store, int role, const struct weir_archive_batch *batch,
                                     const struct weir_partition_state *states, size_t count, const char *const *names,
                                     const struct weir_span *values, size_t note_count, struct weir_error *error)
{
	struct connection *connection = (struct connection *)(void *)store;
	struct server *server = connection->server;
	enum answer answer =
		connection->always != ANSWERS ? connection->always : (enum answer)(next_number(&connection->random) % ANSWERS);
	(void)role;
	(void)names;
	(void)values;
	(void)note_count;
	pthread_mutex_lock(&server->lock);
	server->answers[answer]++;
	enum weir_status status = answer != AWAY ? add(server, batch, states, count) : WEIR_OK;
	pthread_mutex_unlock(&server->lock);
	if (answer != GOOD)
		return weir_fail(error, WEIR_IO, "the connection broke");
	return status == WEIR_OK ? status : weir_fail(error, status, "another owner");
}

static enum weir_status fake_inspect(struct weir_store *store, int role, uint32_t partition,
                                     struct weir_partition_state *state, struct weir_error *error)
{
	struct server *server = ((struct connection *)(void *)store)->server;
	(void)role;
	server->asked++;
	if (server->away)
		return weir_fail(error, WEIR_IO, "nobody answers");
	const struct row *row = &server->rows[partition];
	*state = (struct weir_partition_state){.partition = partition,
	                                       .epoch = row->epoch,
	                                       .checkpoint = row->checkpoint,
	                                       .next_offset = row->next_offset,
	                                       .extra = {row->extra.at, (uint32_t)row->extra.length}};
	return WEIR_OK;
}

static enum weir_status fake_take(struct weir_store *store, int role, uint32_t partition,
                                  struct weir_partition_state *state, struct weir_error *error)
{
	struct server *server = ((struct connection *)(void *)store)->server;
	if (!server->away)
		server->rows[partition].epoch++;
	return fake_inspect(store, role, partition, state, error);
}

static const struct weir_store_ops store_ops = {
	.name = "fake", .archive = fake_archive, .inspect = fake_inspect, .take = fake_take};

/* ---- a bus without messages ---- */

static unsigned *receives_of(struct weir_consumer *consumer)
{
	return (unsigned *)(void *)consumer;
}

static void nothing_consumed(struct weir_consumer *consumer, uint32_t partition, uint64_t offset)
{
	(void)consumer;
	(void)partition;
	(void)offset;
}

static void nothing_unassigned(struct weir_consumer *consumer, uint32_t partition)
{
	(void)consumer;
	(void)partition;
}

static enum weir_status receive_gap(struct weir_consumer *consumer, struct weir_message *messages, size_t capacity,
                                    int timeout_ms, size_t *count, struct weir_error *error)
{
	(void)capacity;
	(void)timeout_ms;
	++*receives_of(consumer);
	*count = 0;
	messages[0] = (struct weir_message){.partition = 0};
	return weir_fail(error, WEIR_INVALID, "what comes next is gone");
}

static enum weir_status resumed(struct weir_consumer *consumer, uint32_t partition, uint64_t next,
                                const struct weir_mark *last, struct weir_error *error)
{
	(void)consumer;
	(void)partition;
	(void)next;
	(void)last;
	(void)error;
	return WEIR_OK;
}

static enum weir_status extent_unknown(struct weir_bus *bus, enum weir_topic topic, uint32_t partition, uint64_t *first,
                                       uint64_t *next, struct weir_error *error)
{
	(void)bus;
	(void)topic;
	(void)partition;
	(void)first;
	(void)next;
	return weir_fail(error, WEIR_IO, "nobody answers");
}

static const struct weir_bus_ops bus_ops = {.name = "fake",
                                            .consumed = nothing_consumed,
                                            .unassign = nothing_unassigned,
                                            .resume = resumed,
                                            .extent = extent_unknown,
                                            .receive = receive_gap};

/* ---- an archiver between them ---- */

struct scene {
	struct weir_config config;
	struct weir_log log;
	struct weir_bus bus;
	unsigned judged, decisions, shadow; /* how often each was asked for messages */
	struct server server;
	struct connection connections[WRITERS];
	struct writer *writers[WRITERS];
	struct partition partitions[PARTITIONS];
	char reasons[PARTITIONS][ARCHIVER_REASON_BYTES];
	struct archiver archiver;
};

/* As its taking would: its row's epoch goes up, and it begins where that stands. */
static void take(struct scene *scene, uint32_t number)
{
	struct weir_partition_state state;
	struct weir_error error;
	scene->server.rows[number].epoch++;
	fake_inspect(&scene->connections[0].store, WEIR_STORE_ROLE_ARCHIVER, number, &state, &error);
	struct ledger *ledger = ledger_new(number);
	assert_int_equal(ledger_restore(ledger, &state, &error), WEIR_OK);
	scene->partitions[number] = (struct partition){.state = PARTITION_LIVE, .ledger = ledger};
}

static struct scene *begin(uint64_t seed)
{
	struct weir_error error;
	struct scene *scene = weir_alloc(1, sizeof *scene);
	scene->config.archiver.interval_ms = 1000;
	scene->log = (struct weir_log){.fd = STDERR_FILENO, .level = WEIR_LOG_ERROR};
	scene->bus = (struct weir_bus){.ops = &bus_ops, .partitions = PARTITIONS};
	pthread_mutex_init(&scene->server.lock, NULL);
	for (uint32_t i = 0; i < WRITERS; i++) {
		scene->connections[i] =
			(struct connection){{&store_ops}, &scene->server, .random = 1 + seed * WRITERS + i, .always = ANSWERS};
		assert_int_equal(writer_new(&scene->connections[i].store, NULL, i > 0, PARTITIONS, &scene->writers[i], &error),
		                 WEIR_OK);
	}
	scene->archiver.options = (struct archiver_options){.config = &scene->config,
	                                                    .bus = &scene->bus,
	                                                    .writers = WRITERS,
	                                                    .assignment = weir_assignment_new(PARTITIONS),
	                                                    .log = &scene->log};
	weir_partition_faults_init(&scene->archiver.faults, PARTITIONS, &scene->log, "archiver");
	scene->archiver.store = &scene->connections[0].store;
	scene->archiver.writers = scene->writers;
	scene->archiver.partitions = scene->partitions;
	scene->archiver.reasons.parked = scene->reasons;
	pthread_mutex_init(&scene->archiver.reasons.lock, NULL);
	scene->archiver.judged = (struct weir_consumer *)(void *)&scene->judged;
	scene->archiver.decisions = (struct weir_consumer *)(void *)&scene->decisions;
	scene->archiver.shadow = (struct weir_consumer *)(void *)&scene->shadow;
	for (uint32_t i = 0; i < PARTITIONS; i++)
		take(scene, i);
	return scene;
}

static void end(struct scene *scene)
{
	for (uint32_t i = 0; i < WRITERS; i++)
		writer_free(scene->writers[i]);
	for (uint32_t i = 0; i < PARTITIONS; i++) {
		ledger_free(scene->partitions[i].ledger);
		weir_text_deinit(&scene->server.rows[i].extra);
		weir_text_deinit(&scene->server.before[i].extra);
	}
	weir_partition_faults_deinit(&scene->archiver.faults);
	weir_assignment_free(scene->archiver.options.assignment);
	pthread_mutex_destroy(&scene->archiver.reasons.lock);
	pthread_mutex_destroy(&scene->server.lock);
	free(scene);
}

/* Message n of a partition's topic counts n + 1 events. */
static void receive(struct scene *scene, uint32_t number)
{
	struct ledger *ledger = scene->partitions[number].ledger;
	struct weir_span key = weir_span_of("k");
	counts_add(ledger->counts, number, key, counts_hash(ledger->counts, key), 0,
	           ledger->positions[WEIR_TOPIC_JUDGED].next + 1, 0, 0);
	ledger->positions[WEIR_TOPIC_JUDGED].next++;
	ledger->changed = true;
}

static uint64_t sum_up_to(uint64_t next)
{
	return next * (next + 1) / 2;
}

/* ---- tests ---- */

static void every_event_is_stored_once(void **state)
{
	(void)state;
	unsigned answers[ANSWERS] = {0}, fenced = 0, known = 0, lost = 0;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct scene *scene = begin(seed);
		struct archiver *archiver = &scene->archiver;
		uint64_t random = 1000 + seed;
		for (int step = 0; step < STEPS; step++) {
			uint32_t number = (uint32_t)(next_number(&random) % PARTITIONS);
			if (scene->partitions[number].ledger == NULL)
				take(scene, number);
			else if (!archiver->unsettled && next_number(&random) % 4 > 0)
				receive(scene, number);
			if (next_number(&random) % 20 == 0)
				scene->server.rows[number].epoch++; /* another archiver takes it, and stores nothing */
			if (next_number(&random) % 20 == 0)
				lose_last(&scene->server, number);
			if (next_number(&random) % 3 == 0)
				(void)archiver_store(archiver);
		}
		for (uint32_t i = 0; i < WRITERS; i++)
			scene->connections[i].always = GOOD;
		assert_true(archiver_store(archiver));
		for (uint32_t i = 0; i < PARTITIONS; i++) /* what was lost shows with the next */
			if (scene->partitions[i].ledger != NULL)
				receive(scene, i);
		assert_true(archiver_store(archiver));
		for (uint32_t i = 0; i < PARTITIONS; i++) {
			if (scene->partitions[i].ledger == NULL)
				take(scene, i);
			assert_int_equal(scene->server.rows[i].passed,
			                 sum_up_to(scene->partitions[i].ledger->positions[WEIR_TOPIC_JUDGED].next));
		}
		for (int i = 0; i < ANSWERS; i++)
			answers[i] += scene->server.answers[i];
		fenced += scene->server.fenced;
		known += scene->server.known;
		lost += scene->server.lost;
		end(scene);
	}
	assert_true(answers[GOOD] > SEEDS && answers[AWAY] > SEEDS && answers[LOST] > SEEDS && fenced > 0 &&
	            known > SEEDS && lost > SEEDS);
}

/* What lies before a gap is stored first. Where that fails it may have been done: nothing is added to it. */
static void behind_a_gap_that_was_not_stored_nothing_is_received(void **state)
{
	(void)state;
	struct scene *scene = begin(0);
	struct archiver *archiver = &scene->archiver;
	receive(scene, 0);
	scene->connections[0].always = LOST;
	archiver_receive(archiver, 0);
	assert_true(archiver->unsettled);
	assert_int_equal(scene->judged, 1);
	assert_int_equal(scene->decisions, 0);
	assert_int_equal(scene->shadow, 0);
	/* Whoever asks is told why, then and after. */
	char why[ARCHIVER_REASON_BYTES];
	assert_true(archiver_store_failed(archiver, why) && why[0] != '\0');
	assert_int_equal(weir_counter_read(&archiver->stats.store_failures), 1);
	assert_false(archiver_parked(archiver, 0, why));
	scene->connections[0].always = GOOD;
	archiver_receive(archiver, 0);
	assert_int_equal(scene->partitions[0].state, PARTITION_PARKED);
	assert_false(archiver_store_failed(archiver, why));
	assert_true(archiver_parked(archiver, 0, why));
	assert_non_null(strstr(why, "weir recover"));
	archiver_drop(archiver, 0, PARTITION_EMPTY);
	assert_false(archiver_parked(archiver, 0, why));
	assert_int_equal(scene->decisions, 1);
	assert_int_equal(scene->shadow, 1);
	end(scene);
}

/* How often the log has said that something is over. */
static int count_recoveries(FILE *log)
{
	char line[4096];
	int count = 0;
	rewind(log);
	while (fgets(line, sizeof line, log) != NULL)
		count += strstr(line, "recovered after") != NULL;
	return count;
}

/* A store that was not asked has not answered: who waits for partitions, and who has nothing to store, are told nothing. */
static void a_store_that_nobody_asks_is_not_back(void **state)
{
	(void)state;
	char why[ARCHIVER_REASON_BYTES];
	FILE *log = tmpfile();
	struct scene *scene = begin(0);
	struct archiver *archiver = &scene->archiver;
	scene->log = (struct weir_log){.fd = fileno(log), .level = WEIR_LOG_INFO};
	archiver_drop(archiver, 0, PARTITION_EMPTY);
	weir_assignment_set(archiver->options.assignment, (bool[PARTITIONS]){true, true, true, true, true, true, true}, 1);
	scene->server.away = true;
	scene->server.asked = 0;
	archiver_follow_assignment(archiver);
	for (int i = 0; i < 5; i++) {
		archiver_store_if_due(archiver);
		assert_true(archiver_store_failed(archiver, why));
		assert_true(archiver_store(archiver)); /* nothing is left */
		assert_true(archiver_store_failed(archiver, why));
	}
	assert_int_equal(count_recoveries(log), 0);
	assert_int_equal(scene->server.asked, 1); /* by its taking, which is tried again */
	/* The partition is another's from now on: only asking can tell that the store is back. */
	weir_assignment_lose(archiver->options.assignment);
	archiver_follow_assignment(archiver);
	assert_true(archiver_store(archiver) && archiver_store(archiver));
	assert_true(archiver_store_failed(archiver, why));
	assert_int_equal(scene->server.asked, 2); /* once a second */
	assert_int_equal(count_recoveries(log), 0);
	scene->server.away = false;
	archiver->ask_ms = 0;
	assert_true(archiver_store(archiver));
	assert_false(archiver_store_failed(archiver, why));
	assert_int_equal(count_recoveries(log), 1);
	assert_true(archiver_store(archiver));
	assert_int_equal(scene->server.asked, 3); /* it works: nobody needs to ask */
	end(scene);
	fclose(log);
}

/* What the store has lost is stored again by what comes next, and not by having nothing to store. */
static void rows_that_were_lost_are_stored_again_by_a_commit(void **state)
{
	(void)state;
	FILE *log = tmpfile();
	struct scene *scene = begin(0);
	struct archiver *archiver = &scene->archiver;
	for (uint32_t i = 0; i < WRITERS; i++)
		scene->connections[i].always = GOOD;
	scene->log = (struct weir_log){.fd = fileno(log), .level = WEIR_LOG_INFO};
	receive(scene, 0);
	assert_true(archiver_store(archiver));
	receive(scene, 0);
	assert_true(archiver_store(archiver));
	lose_last(&scene->server, 0);
	receive(scene, 0);
	assert_true(archiver_store(archiver));
	assert_int_equal(scene->server.fenced, 1);
	assert_int_equal(count_recoveries(log), 0);
	take(scene, 0);
	receive(scene, 0);
	assert_true(archiver_store(archiver));
	assert_int_equal(count_recoveries(log), 1);
	end(scene);
	fclose(log);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_store_that_nobody_asks_is_not_back),
		cmocka_unit_test(rows_that_were_lost_are_stored_again_by_a_commit),
		cmocka_unit_test(every_event_is_stored_once),
		cmocka_unit_test(behind_a_gap_that_was_not_stored_nothing_is_received),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
