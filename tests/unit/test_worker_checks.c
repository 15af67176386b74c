/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks at workers: callers that ask while partitions come and go, the bus is full or
 * its acknowledgements are late. Never does one more pass than the limit says, and the
 * log judged again gives the same.
 */
#include "limiter/worker/partition_checks.h"
#include "worker_callers.h"
#include "worker_results.h"

/* Whether it may have been counted, though its caller was told of no verdict. */
static bool is_unsure(const struct check_answer *answer)
{
	return answer->outcome == CHECK_UNAVAILABLE &&
	       (answer->why == CHECK_WHY_UNACKNOWLEDGED || answer->why == CHECK_WHY_LATE);
}

static void assert_why(const struct check_answer *answer, const char *why)
{
	assert_int_equal(answer->outcome, CHECK_UNAVAILABLE);
	assert_string_equal(check_why_word(answer->why), why);
}

/* Judges the same log again by a worker that nothing disturbs. */
static void compare_with_replay(struct stage *stage)
{
	struct scene *scene = stage->scene, *reference = stage->reference;
	struct weir_consumer *consumer;
	struct weir_message messages[64];
	assert_int_equal(scene->own->consumer_new(scene->bus, WEIR_TOPIC_EVENTS, NULL, &consumer, NULL), WEIR_OK);
	for (uint32_t partition = 0; partition < SCENE_PARTITIONS; partition++) {
		uint64_t first, next, copied;
		assert_int_equal(scene->own->extent(scene->bus, WEIR_TOPIC_EVENTS, partition, &first, &next, NULL), WEIR_OK);
		assert_int_equal(reference->own->extent(reference->bus, WEIR_TOPIC_EVENTS, partition, &first, &copied, NULL),
		                 WEIR_OK);
		assert_int_equal(scene->own->assign(consumer, partition, copied, NULL), WEIR_OK);
		while (copied < next) {
			size_t count;
			assert_int_equal(scene->own->receive(consumer, messages, 64, SCENE_PATIENCE_MS, &count, NULL), WEIR_OK);
			for (size_t i = 0; i < count; i++)
				scene_send(reference, partition, messages[i].payload);
			copied += count;
		}
		scene->own->unassign(consumer, partition);
	}
	scene->own->consumer_free(consumer);
	compare_with_undisturbed(scene, reference);
}

static int set_up(void **state)
{
	stage_set_up(state);
	struct stage *stage = *state;
	put_policy(stage, 1, scene_config);
	return 0;
}

/* ---- callers at once ---- */

enum { CALLERS = 8, CALLER_KEYS = 40, CALLER_ROUNDS = 20 };

struct caller {
	struct callers *callers;
	pthread_t thread;
	uint32_t number;
	uint32_t passed[CALLER_KEYS], unsure[CALLER_KEYS];
};

static void *keep_calling(void *context)
{
	struct caller *caller = context;
	uint64_t numbers[CALLER_KEYS];
	char key[16];
	for (int round = 0; round < CALLER_ROUNDS; round++) {
		for (uint32_t i = 0; i < CALLER_KEYS; i++) {
			snprintf(key, sizeof key, "key%u", i);
			numbers[i] = call(caller->callers, (caller->number + i) % SCENE_THREADS_MAX, key, false, i % 3 == 0);
		}
		for (uint32_t i = 0; i < CALLER_KEYS; i++) {
			struct check_answer answer = answer_of(caller->callers, numbers[i]);
			caller->passed[i] += answer.outcome == CHECK_PASSED;
			caller->unsure[i] += is_unsure(&answer);
		}
	}
	return NULL;
}

/* @param passed, unsure  by key: how many calls passed, or may have been counted */
static void call_at_once(struct callers *callers, uint32_t *passed, uint32_t *unsure)
{
	struct caller crowd[CALLERS];
	for (uint32_t i = 0; i < CALLERS; i++) {
		crowd[i] = (struct caller){.callers = callers, .number = i};
		assert_int_equal(pthread_create(&crowd[i].thread, NULL, keep_calling, &crowd[i]), 0);
	}
	for (uint32_t i = 0; i < CALLERS; i++) {
		pthread_join(crowd[i].thread, NULL);
		for (uint32_t key = 0; key < CALLER_KEYS; key++) {
			passed[key] += crowd[i].passed[key];
			unsure[key] += crowd[i].unsure[key];
		}
	}
}

/* A key passes as often as the limit says, but for calls that nothing is known of; then it is blocked. @return how often */
static uint32_t exhaust(struct callers *callers, const char *key, uint32_t passed, uint32_t unsure)
{
	while (insist(callers, 0, key).outcome == CHECK_PASSED) /* a busy machine's log may have refused all calls before */
		passed++;
	assert_true(passed <= LIMIT && LIMIT <= passed + unsure);
	struct check_answer peeked = repeat_until_judged(callers, 0, key, true);
	assert_int_equal(peeked.outcome, CHECK_BLOCKED);
	assert_int_equal(peeked.remaining, 0);
	return passed;
}

/* Two threads have the partitions: half of the asks travel to the other one. */
static void as_many_pass_as_the_limit_says(void **state)
{
	struct stage *stage = *state;
	struct process *process = &stage->processes[0];
	struct callers *callers = callers_new(2);
	uint32_t passed[CALLER_KEYS] = {0}, unsure[CALLER_KEYS] = {0};
	char key[16];
	stage->scene->checks = &callers->checks;
	process_start_threads(process, stage->scene, false, 0, 2);
	for (uint32_t i = 0; i < CALLER_KEYS; i++) {
		snprintf(key, sizeof key, "key%u", i);
		assert_int_equal(insist(callers, i % 2, key).outcome, CHECK_PASSED);
		passed[i] = 1;
	}
	call_at_once(callers, passed, unsure);
	uint64_t told = 0;
	for (uint32_t i = 0; i < CALLER_KEYS; i++) {
		snprintf(key, sizeof key, "key%u", i);
		told += exhaust(callers, key, passed[i], unsure[i]);
	}
	uint64_t counted = weir_counter_read(&worker_stats(process->workers[0])->checks_passed) +
	                   weir_counter_read(&worker_stats(process->workers[1])->checks_passed);
	assert_true(told <= counted && counted <= CALLER_KEYS * LIMIT);
	process_stop(process, true);
	compare_with_replay(stage);
	callers_free(callers);
}

/* ---- other owners ---- */

/* A marker, or a check that passed, as another owner of all partitions appends them. */
static void append_as_another(struct scene *scene, uint64_t epoch)
{
	static const uint8_t source[WEIR_SOURCE_ID_BYTES] = "another owner...";
	struct weir_frame_writer *writer = weir_frame_writer_new();
	for (uint32_t partition = 0; partition < SCENE_PARTITIONS; partition++) {
		weir_frame_begin(writer, source, 1, weir_wall_ms(), 1);
		scene_send(scene, partition, weir_frame_finish_checks(writer, weir_wall_ms(), epoch, NULL, NULL, 0));
	}
	weir_frame_writer_free(writer);
}

/* Not all that is acknowledged may be told: another owner's marker may stand before it. */
static void a_durable_answer_waits_for_the_log(void **state)
{
	struct stage *stage = *state;
	struct process *process = &stage->processes[0];
	struct callers *callers = callers_new(1);
	stage->scene->checks = &callers->checks;
	process_start(process, stage->scene, true, 0);
	process_give(process, 15);
	assert_int_equal(insist(callers, 0, "ann").outcome, CHECK_PASSED);

	faults.deaf = true;
	append_as_another(stage->scene, UINT64_MAX / 2);
	uint64_t durable = call(callers, 0, "ann", false, true);
	nanosleep(&(struct timespec){.tv_nsec = 300000000L}, NULL); /* acknowledged long ago */
	assert_false(callers->calls[durable].answered);
	faults.deaf = false;
	struct check_answer answer = answer_of(callers, durable);
	assert_why(&answer, "moving");
	process_stop(process, false);
	callers_free(callers);
}

/* A store from an older copy gives epochs below the log's: whoever has them is asked for, and found to be nobody. */
static void epochs_of_a_lost_store_are_passed(void **state)
{
	struct stage *stage = *state;
	struct process *process = &stage->processes[0];
	struct callers *callers = callers_new(1);
	stage->scene->checks = &callers->checks;
	process_start(process, stage->scene, false, 0);
	assert_int_equal(insist(callers, 0, "ann").outcome, CHECK_PASSED);
	append_as_another(stage->scene, UINT64_MAX / 2);
	uint32_t passed = 1;
	while (insist(callers, 0, "ann").outcome == CHECK_PASSED)
		passed++;
	assert_int_equal(passed, LIMIT);
	/* Nothing but the other's marker comes after it. */
	append_as_another(stage->scene, UINT64_MAX / 2 + 10);
	assert_int_equal(insist(callers, 0, "bob").outcome, CHECK_PASSED);
	/* One that ends then has nothing to begin anew: the log ends with what is judged. */
	append_as_another(stage->scene, UINT64_MAX / 2 + 20);
	process_stop(process, true);
	compare_with_replay(stage);
	callers_free(callers);
}

/* The store says that others have all partitions. Nobody carries there what they are asked. */
static struct owners *others_own_all(void)
{
	struct owners *owners = owners_new(SCENE_PARTITIONS, "127.0.0.1", 1);
	owners_read_begin(owners, weir_monotonic_ms());
	for (uint32_t partition = 0; partition < SCENE_PARTITIONS; partition++)
		owners_learn(owners, partition, 1, weir_span_of("1 127.0.0.1:2"));
	owners_read_end(owners);
	return owners;
}

/* One that travels with the other kind is told neither sooner nor later than alone. */
static void each_ask_has_its_own_time(void **state)
{
	struct stage *stage = *state;
	struct process *process = &stage->processes[0];
	struct callers *callers = callers_new(1);
	struct owners *owners = others_own_all();
	callers->checks.owners = owners;
	stage->scene->checks = &callers->checks;
	process_start(process, stage->scene, true, 0);
	process_give(process, 0);
	for (int round = 0; round < 2; round++) {
		bool apart = false;
		for (int attempt = 0; !apart && attempt < 5; attempt++) { /* the machine may stand still meanwhile */
			int64_t began_ms = weir_monotonic_ms();
			uint64_t one = write_call(callers, "ann", false, round == 0),
					 other = write_call(callers, "ann", false, round == 1);
			uint64_t plain = round == 0 ? other : one, durable = round == 0 ? one : other;
			hand_in(callers, 0, one, 2);
			struct check_answer answer = answer_of(callers, plain);
			apart = !callers->calls[durable].answered;
			assert_why(&answer, "late");
			assert_true(weir_monotonic_ms() - began_ms >= ANSWER_ELSEWHERE_MS);
			answer = answer_of(callers, durable);
			assert_why(&answer, "late");
			assert_true(weir_monotonic_ms() - began_ms >= ANSWER_AWAY_MS);
		}
		assert_true(apart);
	}
	process_stop(process, false);
	callers_free(callers);
	owners_free(owners);
}

/* ---- what the log does not take ---- */

static void a_durable_answer_waits_for_the_acknowledgement(void **state)
{
	struct stage *stage = *state;
	struct process *process = &stage->processes[0];
	struct callers *callers = callers_new(1);
	stage->scene->checks = &callers->checks;
	process_start(process, stage->scene, false, 0);
	assert_int_equal(insist(callers, 0, "ann").outcome, CHECK_PASSED);

	faults.withheld = WEIR_TOPIC_EVENTS + 1;
	uint64_t durable = call(callers, 0, "ann", false, true);
	assert_int_equal(answer_of(callers, call(callers, 0, "ann", false, false)).outcome, CHECK_PASSED);
	assert_false(callers->calls[durable].answered);
	faults.withheld = 0;
	assert_int_equal(answer_of(callers, durable).outcome, CHECK_PASSED);

	/* For how long nothing is acknowledged is bounded, and so what a crash forgets. What was answered is not taken back. */
	faults.withheld = WEIR_TOPIC_EVENTS + 1;
	durable = call(callers, 0, "ann", false, true);
	struct check_answer answer;
	do
		answer = answer_of(callers, call(callers, 0, "ann", true, false));
	while (answer.outcome != CHECK_UNAVAILABLE);
	assert_why(&answer, "unacknowledged");
	answer = answer_of(callers, durable);
	assert_why(&answer, "unacknowledged");
	faults.withheld = 0;
	assert_int_equal(insist(callers, 0, "ann").outcome, CHECK_PASSED);
	assert_int_equal(insist(callers, 0, "ann").outcome, CHECK_BLOCKED); /* ann has had five: one was told of later */
	process_stop(process, true);
	compare_with_replay(stage);
	callers_free(callers);
}

/* A key of which another thread has the partition. */
static void find_key_of(const struct process *process, uint32_t thread, char key[16])
{
	uint32_t partition, number = 0;
	do {
		snprintf(key, 16, "key%u", number++);
		partition = weir_partition(weir_slot(weir_span_of(key)), SCENE_PARTITIONS);
	} while (placement_holder(process->placement, partition) != thread);
}

/* What travels to another thread at once with a durable ask, of whatever keys, does not wait for the log with it. */
static void only_durable_asks_wait_for_the_log(void **state)
{
	struct stage *stage = *state;
	struct process *process = &stage->processes[0];
	struct callers *callers = callers_new(2);
	char key[16];
	stage->scene->checks = &callers->checks;
	process_start_threads(process, stage->scene, false, 0, 2);
	assert_int_equal(insist(callers, 0, "ann").outcome, CHECK_PASSED);
	find_key_of(process, 1, key);
	assert_int_equal(insist(callers, 0, key).outcome, CHECK_PASSED);

	faults.withheld = WEIR_TOPIC_EVENTS + 1;
	uint64_t durable = write_call(callers, key, false, true), plain = write_call(callers, key, false, false);
	hand_in(callers, 0, durable, 2);
	assert_int_equal(answer_of(callers, plain).outcome, CHECK_PASSED);
	assert_false(callers->calls[durable].answered);
	faults.withheld = 0;
	assert_int_equal(answer_of(callers, durable).outcome, CHECK_PASSED);
	while (insist(callers, 0, key).outcome == CHECK_PASSED)
		continue;
	process_stop(process, true);
	compare_with_replay(stage);
	callers_free(callers);
}

enum { PAIRS = 200000, PAIRS_OF_ROUND = 30000, EDGE_ROUNDS = 6 };

/* Keys of two partitions of one worker, and what was made of the last pair. */
static struct {
	char keys[PAIRS][2][16];
	uint32_t used;
	int64_t from_ms; /* monotonic: when they are asked */
	struct check_answer answers[2];
} pairs;

static void make_pairs(void)
{
	uint32_t made[2] = {0};
	for (uint32_t i = 0; made[0] < PAIRS || made[1] < PAIRS; i++) {
		char key[16];
		snprintf(key, sizeof key, "pair%u", i);
		uint32_t partition = weir_partition(weir_slot(weir_span_of(key)), SCENE_PARTITIONS);
		if (partition < 2 && made[partition] < PAIRS)
			memcpy(pairs.keys[made[partition]++][partition], key, sizeof key);
	}
}

/* Asks one pair after the other, without a pause, until one does not pass. */
static void ask_pairs(struct desk *desk)
{
	bool passed = true;
	while (weir_monotonic_ms() < pairs.from_ms)
		continue;
	for (uint32_t end = pairs.used + PAIRS_OF_ROUND; passed && pairs.used < end;) {
		struct check_ask asks[2];
		for (int i = 0; i < 2; i++)
			asks[i] = (struct check_ask){
				.zone = weir_span_of("site"), .key = weir_span_of(pairs.keys[pairs.used][i]), .cost = 1, .bundle = 1};
		pairs.used++;
		desk->judge.ask(desk->judge.context, asks, 2, pairs.answers);
		passed = pairs.answers[0].outcome == CHECK_PASSED && pairs.answers[1].outcome == CHECK_PASSED;
	}
}

/*
 * The log stalls, and two partitions become overdue, one sooner than the other. What is asked in both at that very moment counts in
 * both or in none.
 */
static void all_or_none_count_at_the_edge_of_a_stall(void **state)
{
	struct stage *stage = *state;
	struct process *process = &stage->processes[0];
	struct callers *callers = callers_new(1);
	struct desk *desk = &callers->desks[0];
	make_pairs();
	stage->scene->checks = &callers->checks;
	process_start(process, stage->scene, false, 0);
	for (int round = 0; round < EDGE_ROUNDS; round++) {
		for (int i = 1; i >= 0; i--) /* all that was sent before is acknowledged soon */
			while (answer_of(callers, call(callers, 0, pairs.keys[pairs.used][i], false, true)).outcome !=
			       CHECK_PASSED) {
				usleep(1000);
				pairs.used++;
				assert_true(pairs.used + PAIRS_OF_ROUND < PAIRS);
			}
		pairs.used++;
		faults.withheld = WEIR_TOPIC_EVENTS + 1;
		pairs.from_ms = weir_monotonic_ms() + PARTITION_CHECKS_ACKNOWLEDGED_MS - 5;
		for (int i = 1; i >= 0; i--) {
			assert_int_equal(answer_of(callers, call(callers, 0, pairs.keys[pairs.used][i], false, false)).outcome,
			                 CHECK_PASSED);
			usleep((useconds_t)i * 3000);
		}
		pairs.used++;
		uint32_t first = pairs.used;
		usleep((PARTITION_CHECKS_ACKNOWLEDGED_MS - 100) * 1000);
		desk->act = ask_pairs;
		weir_wake_up(desk->wake);
		AWAIT(desk->act == NULL);
		faults.withheld = 0;
		if (pairs.used == first + PAIRS_OF_ROUND && pairs.answers[0].outcome == CHECK_PASSED)
			continue; /* on a busy machine the frames were sent too late for as many pairs to reach the edge */
		for (int i = 0; i < 2 && pairs.used > first; i++)
			assert_int_equal(pairs.answers[i].outcome, CHECK_UNAVAILABLE);
		for (uint32_t pair = pairs.used - 1; pair >= first && pair + 3 > pairs.used; pair--) {
			struct check_answer one = repeat_until_judged(callers, 0, pairs.keys[pair][0], true);
			struct check_answer other = repeat_until_judged(callers, 0, pairs.keys[pair][1], true);
			assert_int_equal(one.remaining, other.remaining);
			assert_int_equal(one.remaining, pair == pairs.used - 1 ? LIMIT : LIMIT - 1);
		}
	}
	while (insist(callers, 0, "ann").outcome == CHECK_PASSED) /* there is a decision to compare */
		continue;
	process_stop(process, true);
	compare_with_replay(stage);
	callers_free(callers);
}

/* ---- keys that are only in the store ---- */

enum { COLD_KEYS = 1500, WARM_KEYS = 16, ASKED_KEYS = 4, LOADED_WITHIN_MS = 60000 };

/* Asks for keys that are in memory, all the time: so each partition has something to store. */
struct warmth {
	struct callers *callers;
	pthread_t thread;
	_Atomic bool stop;
};

static void *keep_warm(void *context)
{
	struct warmth *warmth = context;
	char key[16];
	while (!warmth->stop) {
		for (uint32_t i = 0; i < WARM_KEYS; i++) {
			snprintf(key, sizeof key, "warm%u", i);
			(void)answer_of(warmth->callers, call(warmth->callers, 0, key, false, false));
		}
		usleep(5000); /* more often than a checkpoint is due */
	}
	return NULL;
}

static void ask_each(struct callers *callers, const char *name, uint32_t count)
{
	char key[16];
	uint64_t first = callers->called;
	for (uint32_t i = 0; i < count; i++) {
		snprintf(key, sizeof key, "%s%u", name, i);
		call(callers, 0, key, false, false);
	}
	for (uint32_t i = 0; i < count; i++) {
		struct check_answer answer = answer_of(callers, first + i);
		if (answer.outcome == CHECK_UNAVAILABLE)
			answer = insist(callers, 0, callers->calls[first + i].key);
		assert_int_equal(answer.outcome, CHECK_PASSED);
	}
}

/*
 * A store that reads more slowly than checkpoints follow one another: what it gives is older than the last checkpoint, each time.
 * A key that was not asked for since the limiter came back is answered all the same.
 */
static void a_key_is_loaded_while_checkpoints_follow_one_another(void **state)
{
	struct stage *stage = *state;
	struct process *process = &stage->processes[0];
	struct callers *callers = callers_new(1);
	struct warmth warmth = {.callers = callers};
	stage->scene->checks = &callers->checks;
	process_start(process, stage->scene, false, 0);
	ask_each(callers, "cold", COLD_KEYS);
	ask_each(callers, "warm", WARM_KEYS);
	process_stop(process, true);

	struct callers *later = callers_new(1);
	stage->scene->checks = &later->checks;
	warmth.callers = later;
	faults.read_takes_ms = 70; /* checkpoint_interval, twice */
	process_start(process, stage->scene, false, 0);
	ask_each(later, "warm", WARM_KEYS);
	assert_int_equal(pthread_create(&warmth.thread, NULL, keep_warm, &warmth), 0);
	usleep(200000);
	int64_t began_ms = weir_monotonic_ms();
	for (uint32_t i = 0; i < ASKED_KEYS; i++) {
		char key[16];
		struct check_answer answer;
		snprintf(key, sizeof key, "cold%u", COLD_KEYS / 2 + i * 31);
		do {
			usleep(5000);
			answer = answer_of(later, call(later, 0, key, false, false));
			if (weir_monotonic_ms() - began_ms > LOADED_WITHIN_MS)
				fail_msg("%s is not loaded: %s", key, check_why_word(answer.why));
		} while (answer.outcome == CHECK_UNAVAILABLE);
		assert_int_equal(answer.outcome, CHECK_PASSED);
		assert_int_equal(answer.remaining, LIMIT - 2); /* what was counted before is among it */
	}
	faults.read_takes_ms = 0;
	warmth.stop = true;
	pthread_join(warmth.thread, NULL);
	process_stop(process, true);
	callers_free(callers);
	callers_free(later);
}

/*
 * Whoever asked has been told that there is no answer, and asks no more: what is too old when it comes is not read again. Other
 * segments are read all the time, and are too old, too.
 */
static void nothing_is_read_again_for_nobody(void **state)
{
	enum { READ_MS = 2600 }; /* for longer than it is wanted */
	struct stage *stage = *state;
	struct process *process = &stage->processes[0];
	struct callers *callers = callers_new(1), *later = callers_new(1);
	struct warmth warmth = {.callers = later};
	stage->scene->checks = &callers->checks;
	process_start(process, stage->scene, false, 0);
	ask_each(callers, "cold", COLD_KEYS);
	ask_each(callers, "warm", WARM_KEYS);
	process_stop(process, true);

	stage->scene->checks = &later->checks;
	faults.read_takes_ms = 70;
	process_start(process, stage->scene, false, 0);
	ask_each(later, "warm", WARM_KEYS);
	assert_int_equal(pthread_create(&warmth.thread, NULL, keep_warm, &warmth), 0);
	usleep(200000);
	faults.one_takes_ms = READ_MS;
	struct check_answer answer = answer_of(later, call(later, 0, "cold750", false, false));
	assert_why(&answer, "loading");
	AWAIT(faults.ones > 0);
	usleep((READ_MS + 1000) * 1000);
	assert_int_equal(faults.ones, 1);
	faults.one_takes_ms = 0;
	assert_int_equal(insist(later, 0, "cold750").outcome, CHECK_PASSED);
	faults.read_takes_ms = 0;
	warmth.stop = true;
	pthread_join(warmth.thread, NULL);
	process_stop(process, true);
	callers_free(callers);
	callers_free(later);
}

/* Nothing waits for a bus without room: the frame is kept, and what was answered is in the log afterwards. */
static void a_full_bus_holds_up_nobody(void **state)
{
	struct stage *stage = *state;
	struct process *process = &stage->processes[0];
	struct callers *callers = callers_new(1);
	stage->scene->checks = &callers->checks;
	process_start(process, stage->scene, false, 0);
	assert_int_equal(insist(callers, 0, "ann").outcome, CHECK_PASSED);
	faults.full = true;
	uint32_t passed = 1;
	struct check_answer answer;
	for (;;) {
		answer = answer_of(callers, call(callers, 0, "ann", false, false));
		if (answer.outcome == CHECK_UNAVAILABLE)
			break;
		passed += answer.outcome == CHECK_PASSED;
	}
	assert_true(answer.why == CHECK_WHY_FULL || answer.why == CHECK_WHY_UNACKNOWLEDGED);
	faults.full = false;
	for (answer = insist(callers, 0, "ann"); answer.outcome == CHECK_PASSED; answer = insist(callers, 0, "ann"))
		passed++;
	assert_int_equal(passed, LIMIT);
	process_stop(process, true);
	compare_with_replay(stage);
	callers_free(callers);
}

/* ---- partitions that move ---- */

/* A producer that breaks, or an owner that changes: durable answers are in the log, so none passes beyond the limit. */
static void no_more_pass_while_partitions_move(void **state)
{
	enum { ROUNDS = 12, KEYS = 24 };
	struct stage *stage = *state;
	struct process *one = &stage->processes[0], *other = &stage->processes[1];
	struct callers *callers[2] = {callers_new(1), callers_new(1)};
	uint32_t passed[KEYS] = {0}, blocked[KEYS] = {0};
	for (int i = 0; i < 2; i++) {
		stage->scene->checks = &callers[i]->checks;
		process_start(&stage->processes[i], stage->scene, true, 0);
	}
	uint32_t seed = 7;
	for (int round = 0; round < ROUNDS; round++) {
		seed = seed * 1103515245 + 12345;
		unsigned mask = seed >> 20 & 15;
		process_give(one, mask);
		process_give(other, 15 & ~mask);
		if (round % 4 == 3)
			faults.failed_deliveries = 1;
		for (int repeat = 0; repeat < 30; repeat++) {
			uint64_t numbers[2][KEYS];
			char key[16];
			for (uint32_t i = 0; i < KEYS; i++) {
				snprintf(key, sizeof key, "key%u", i);
				for (int at = 0; at < 2; at++)
					numbers[at][i] = call(callers[at], 0, key, false, true);
			}
			for (uint32_t i = 0; i < KEYS; i++)
				for (int at = 0; at < 2; at++) {
					enum check_outcome outcome = answer_of(callers[at], numbers[at][i]).outcome;
					passed[i] += outcome == CHECK_PASSED;
					blocked[i] += outcome == CHECK_BLOCKED;
				}
		}
		AWAIT(all_done(stage->processes, 2));
	}
	faults.failed_deliveries = 0;
	for (uint32_t i = 0; i < KEYS; i++) {
		assert_true(passed[i] <= LIMIT);
		assert_true(blocked[i] > 0); /* it was asked often enough to tell */
	}
	process_stop(one, true); /* markers of one that stood still may have come after the rest */
	process_stop(other, true);
	compare_with_replay(stage);
	callers_free(callers[0]);
	callers_free(callers[1]);
}

int main(int argc, char **argv)
{
	scene_end_at_failure();
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(as_many_pass_as_the_limit_says, set_up, stage_tear_down),
		cmocka_unit_test_setup_teardown(a_durable_answer_waits_for_the_log, set_up, stage_tear_down),
		cmocka_unit_test_setup_teardown(epochs_of_a_lost_store_are_passed, set_up, stage_tear_down),
		cmocka_unit_test_setup_teardown(each_ask_has_its_own_time, set_up, stage_tear_down),
		cmocka_unit_test_setup_teardown(a_durable_answer_waits_for_the_acknowledgement, set_up, stage_tear_down),
		cmocka_unit_test_setup_teardown(only_durable_asks_wait_for_the_log, set_up, stage_tear_down),
		cmocka_unit_test_setup_teardown(all_or_none_count_at_the_edge_of_a_stall, set_up, stage_tear_down),
		cmocka_unit_test_setup_teardown(a_key_is_loaded_while_checkpoints_follow_one_another, set_up, stage_tear_down),
		cmocka_unit_test_setup_teardown(nothing_is_read_again_for_nobody, set_up, stage_tear_down),
		cmocka_unit_test_setup_teardown(a_full_bus_holds_up_nobody, set_up, stage_tear_down),
		cmocka_unit_test_setup_teardown(no_more_pass_while_partitions_move, set_up, stage_tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
