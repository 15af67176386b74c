/* SPDX-License-Identifier: Apache-2.0 */
/* Callers of checks at a scene's workers: calls are handed in at a desk, which is a worker's surface. */
#ifndef TESTS_UNIT_WORKER_CALLERS_H
#define TESTS_UNIT_WORKER_CALLERS_H

#include "common/base/wake.h"
#include "limiter/owners/owners.h"
#include "worker_scene.h"

enum { CALLS_MAX = 65536, LIMIT = 5 /* of scene_config */ };

/* One call, and what became of it. */
struct call {
	struct check_ask ask;
	char key[16];
	struct check_answer answer;
	_Atomic bool answered;
};

/* A surface whose clients are the test's threads. */
struct desk {
	struct callers *callers;
	struct check_judge judge;
	pthread_mutex_t lock;
	uint64_t waiting[CALLS_MAX]; /* numbers of calls */
	size_t first, count;
	int wake;
	bool in_ask, opened, stopped;
	void (*_Atomic act)(struct desk *desk); /* what is done once, in the worker's thread; NULL: nothing */
};

struct callers {
	struct worker_checks checks;
	struct desk desks[SCENE_THREADS_MAX];
	struct call *calls;
	_Atomic uint64_t called;
};

static inline void be_answered(struct callers *callers, const struct check_answer *answer)
{
	struct call *call = &callers->calls[answer->ticket];
	assert_false(call->answered); /* each once */
	call->answer = *answer;
	call->answered = true;
}

static inline uint32_t take_calls(struct desk *desk, struct check_ask *asks)
{
	uint32_t count = 0;
	pthread_mutex_lock(&desk->lock);
	for (; count < CHECK_GROUP_MAX && desk->first < desk->count; count++)
		asks[count] = desk->callers->calls[desk->waiting[desk->first++]].ask;
	if (desk->first == desk->count)
		desk->first = desk->count = 0;
	pthread_mutex_unlock(&desk->lock);
	return count;
}

static inline void serve(void *context)
{
	struct desk *desk = context;
	struct check_ask asks[CHECK_GROUP_MAX];
	struct check_answer answers[CHECK_GROUP_MAX];
	uint32_t count;
	weir_wake_clear(desk->wake);
	if (desk->act != NULL) {
		desk->act(desk);
		desk->act = NULL;
	}
	while (!desk->stopped && (count = take_calls(desk, asks)) > 0) {
		desk->in_ask = true;
		desk->judge.ask(desk->judge.context, asks, count, answers);
		desk->in_ask = false;
		for (uint32_t i = 0; i < count; i++) {
			assert_int_equal(answers[i].ticket, asks[i].ticket);
			if (answers[i].outcome != CHECK_LATER)
				be_answered(desk->callers, &answers[i]);
		}
	}
}

static inline void be_answered_late(void *context, const struct check_answer *answer)
{
	struct desk *desk = context;
	assert_false(desk->in_ask);
	be_answered(desk->callers, answer);
}

static inline void stop_serving(void *context)
{
	((struct desk *)context)->stopped = true;
}

static inline void leave_desk(void *context)
{
	close(((struct desk *)context)->wake);
}

static inline enum weir_status open_desk(void *context, uint32_t worker, const struct check_judge *judge,
                                         struct check_surface *surface, struct weir_error *error)
{
	struct callers *callers = context;
	struct desk *desk = &callers->desks[worker];
	(void)error;
	desk->callers = callers;
	desk->judge = *judge;
	pthread_mutex_init(&desk->lock, NULL);
	desk->wake = weir_wake_new();
	*surface = (struct check_surface){.context = desk,
	                                  .descriptor = desk->wake,
	                                  .serve = serve,
	                                  .answered = be_answered_late,
	                                  .stop = stop_serving,
	                                  .end = stop_serving,
	                                  .free = leave_desk};
	return WEIR_OK;
}

static inline void be_opened(void *context, uint32_t worker)
{
	((struct callers *)context)->desks[worker].opened = true;
}

static inline struct callers *callers_new(uint32_t threads)
{
	struct callers *callers = calloc(1, sizeof *callers);
	callers->calls = calloc(CALLS_MAX, sizeof *callers->calls);
	callers->checks = (struct worker_checks){.mail = mail_new(threads + OWNERS_INBOXES),
	                                         .threads = threads,
	                                         .open = open_desk,
	                                         .opened = be_opened,
	                                         .context = callers};
	return callers;
}

static inline void callers_free(struct callers *callers)
{
	mail_free(callers->checks.mail);
	free(callers->calls);
	free(callers);
}

/* Writes a call down, and gives its number. */
static inline uint64_t write_call(struct callers *callers, const char *key, bool peek, bool durable)
{
	uint64_t number = callers->called++;
	assert_true(number < CALLS_MAX);
	struct call *call = &callers->calls[number];
	snprintf(call->key, sizeof call->key, "%s", key);
	call->ask = (struct check_ask){.zone = weir_span_of("site"),
	                               .key = weir_span_of(call->key),
	                               .cost = 1,
	                               .peek = peek,
	                               .durable = durable,
	                               .ticket = number};
	return number;
}

/* Hands calls in, from one on: a desk takes them together. */
static inline void hand_in(struct callers *callers, uint32_t desk_number, uint64_t first, uint32_t count)
{
	struct desk *desk = &callers->desks[desk_number];
	assert_true(desk->opened);
	pthread_mutex_lock(&desk->lock);
	if (desk->count + count > CALLS_MAX) {
		memmove(desk->waiting, desk->waiting + desk->first, (desk->count - desk->first) * sizeof desk->waiting[0]);
		desk->count -= desk->first;
		desk->first = 0;
	}
	for (uint32_t i = 0; i < count; i++)
		desk->waiting[desk->count++] = first + i;
	pthread_mutex_unlock(&desk->lock);
	weir_wake_up(desk->wake);
}

/* Calls, and gives the call's number. */
static inline uint64_t call(struct callers *callers, uint32_t desk_number, const char *key, bool peek, bool durable)
{
	uint64_t number = write_call(callers, key, peek, durable);
	hand_in(callers, desk_number, number, 1);
	return number;
}

static inline struct check_answer answer_of(struct callers *callers, uint64_t number)
{
	AWAIT(callers->calls[number].answered);
	return callers->calls[number].answer;
}

/* Calls, or looks, until it is passed or blocked. */
static inline struct check_answer repeat_until_judged(struct callers *callers, uint32_t desk, const char *key,
                                                      bool peek)
{
	struct check_answer answer;
	do
		answer = answer_of(callers, call(callers, desk, key, peek, false));
	while (answer.outcome == CHECK_UNAVAILABLE);
	return answer;
}

static inline struct check_answer insist(struct callers *callers, uint32_t desk, const char *key)
{
	return repeat_until_judged(callers, desk, key, false);
}

#endif
