/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks are cut by partition, so that each lane judges its own together. Those of
 * other threads' partitions travel there, durable ones apart from the others: a
 * packet comes back when all of it is answered. Nobody waits for an answer here.
 */
#include "limiter/worker/checking.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/wake.h"
#include "common/bytes/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

enum {
	SERVE_MS = 500,
	ELSEWHERE_SOON = 8,   /* packets at another process: while fewer are, one is sent however few asks it has */
	STANDSTILL_MS = 1000, /* less than any session of the consumer group's, after which others take partitions */
};

void checking_init(struct checking *checking, struct worker_core *core, struct publisher *publisher,
                   struct answering *answering, struct partition *partitions, uint32_t partition_count,
                   const bool *given)
{
	*checking = (struct checking){
		.core = core,
		.publisher = publisher,
		.answering = answering,
		.partitions = partitions,
		.partition_count = partition_count,
		.given = given,
		.epoll = -1,
	};
}

void checking_deinit(struct checking *checking)
{
	if (checking->epoll >= 0)
		close(checking->epoll);
	for (uint32_t way = 0; checking->outgoing != NULL && way < checking->ways; way++)
		if (checking->outgoing[way] != NULL)
			answering_put_back(checking->answering, checking->outgoing[way]);
	free(checking->outgoing);
	bundles_deinit(&checking->bundles);
}

/* ---- a group of asks ---- */

/* Why a partition of this worker answers nothing. */
static enum check_why refusal(const struct checking *checking, uint32_t number)
{
	if (!checking->given[number])
		return CHECK_WHY_NOT_OWNER;
	switch (checking->partitions[number].state) {
	case PARTITION_LIVE:
	case PARTITION_LOADING:
	case PARTITION_HELD:
		return partition_checks_are_over(&checking->partitions[number].checks) ? CHECK_WHY_NOT_OWNER : CHECK_WHY_NONE;
	case PARTITION_EMPTY:
	case PARTITION_TAKING: return CHECK_WHY_LOADING;
	case PARTITION_PARKED: return CHECK_WHY_NOT_OWNER;
	default: return CHECK_WHY_MOVING;
	}
}

static void refuse(const struct check_ask *asks, const uint32_t *places, uint32_t count, enum check_why why,
                   struct check_answer *answers)
{
	for (uint32_t i = 0; i < count; i++)
		answers[places[i]] = answer_unavailable(asks[places[i]].ticket, why);
}

/* Where asks go: to a thread or a place, durable or not. In order: threads, the same for durable asks, and places' inboxes. */

static uint32_t way_to_thread(const struct checking *checking, uint32_t thread, bool durable)
{
	return durable ? checking->core->options.checks->threads + thread : thread;
}

static uint32_t way_to_place(const struct checking *checking, uint32_t place, bool durable)
{
	return 2 * checking->core->options.checks->threads + owners_inbox(place, durable);
}

static bool is_elsewhere(const struct checking *checking, uint32_t way)
{
	return way >= 2 * checking->core->options.checks->threads;
}

/* Of a way to another process: which of the places' inboxes it leads to. */
static uint32_t inbox_elsewhere(const struct checking *checking, uint32_t way)
{
	return way - 2 * checking->core->options.checks->threads;
}

static void send_packet(struct checking *checking, uint32_t way)
{
	uint32_t threads = checking->core->options.checks->threads;
	if (checking->outgoing[way] == NULL)
		return;
	if (is_elsewhere(checking, way)) {
		uint32_t inbox = inbox_elsewhere(checking, way);
		answering_send_elsewhere(checking->answering, threads + inbox, inbox, checking->outgoing[way]);
	} else {
		answering_send(checking->answering, way % threads, checking->outgoing[way]);
	}
	checking->outgoing[way] = NULL;
}

static bool may_send(const struct checking *checking, uint32_t way)
{
	return !is_elsewhere(checking, way) ||
	       answering_may_send_elsewhere(checking->answering, inbox_elsewhere(checking, way));
}

/*
 * Whether a packet that is not full waits for one to come back from there, and gathers asks meanwhile: small ones that are sent
 * at once would soon be as many as may be on their way.
 */
static bool gathers(const struct checking *checking, uint32_t way)
{
	return is_elsewhere(checking, way) &&
	       (!may_send(checking, way) || checking->answering->by_way[inbox_elsewhere(checking, way)] >= ELSEWHERE_SOON);
}

static bool waits_for_log(const struct check_ask *ask)
{
	return ask->durable && !check_is_peek(ask);
}

/* Until when an ask waits for an answer from there. */
static int64_t until_ms(const struct checking *checking, uint32_t way, const struct check_ask *ask, int64_t now_us)
{
	bool soon = is_elsewhere(checking, way) && !waits_for_log(ask);
	return now_us / 1000 + (soon ? ANSWER_ELSEWHERE_MS : ANSWER_AWAY_MS);
}

/* Puts an ask into the packet that goes a way. @return false: too many are on their way */
static bool post(struct checking *checking, uint32_t way, const struct check_ask *ask, int64_t now_us)
{
	struct mail_packet **packet = &checking->outgoing[way];
	for (int attempt = 0; attempt < 2; attempt++) {
		if (*packet == NULL)
			*packet = answering_packet(checking->answering, now_us);
		if (*packet == NULL)
			return false;
		if (answering_add(*packet, ask, until_ms(checking, way, ask, now_us)))
			return true;
		if (!may_send(checking, way))
			return false;
		send_packet(checking, way); /* it is full */
	}
	return false;
}

/* @param ways  of asks that are not durable, and of those that are */
static void post_all(struct checking *checking, const uint32_t ways[2], const struct check_ask *asks,
                     const uint32_t *places, uint32_t count, int64_t now_us, struct check_answer *answers)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct check_ask *ask = &asks[places[i]];
		if (post(checking, ways[waits_for_log(ask)], ask, now_us))
			answers[places[i]] = (struct check_answer){.outcome = CHECK_LATER, .ticket = ask->ticket};
		else
			refuse(asks, &places[i], 1, CHECK_WHY_FULL, answers);
	}
}

/*
 * Asks for keys of a partition that this process does not have: what its own callers ask goes to the limiter that has it,
 * what another limiter forwarded does not go further.
 */
static void ask_elsewhere(struct checking *checking, uint32_t number, const struct check_ask *asks,
                          const uint32_t *places, uint32_t count, int64_t now_us, struct check_answer *answers)
{
	const struct worker_checks *checks = checking->core->options.checks;
	uint32_t own[CHECK_GROUP_MAX], owned = 0;
	uint32_t place = checks->owners != NULL ? owners_of(checks->owners, number) : OWNERS_NONE;
	for (uint32_t i = 0; i < count; i++)
		if (place != OWNERS_NONE && !asks[places[i]].forwarded)
			own[owned++] = places[i];
		else
			refuse(asks, &places[i], 1, CHECK_WHY_NOT_OWNER, answers);
	const uint32_t ways[2] = {way_to_place(checking, place, false), way_to_place(checking, place, true)};
	if (owned > 0)
		post_all(checking, ways, asks, own, owned, now_us, answers);
	if (checks->owners != NULL && owned < count)
		owners_doubt(checks->owners);
}

/* Asks for keys of one partition. @param packet  that they came in; NULL: from the surface */
static void ask_partition(struct checking *checking, uint32_t number, const struct check_ask *asks,
                          const uint32_t *places, uint32_t count, struct mail_packet *packet, struct check_time now,
                          struct check_answer *answers)
{
	uint32_t holder = placement_holder(checking->core->options.placement, number);
	enum check_why why = refusal(checking, number);
	bool here = holder == checking->core->options.number;
	const struct owners *owners = checking->core->options.checks->owners;
	bool lost =
		owners != NULL && owners_of(owners, number) != OWNERS_NONE; /* under a higher epoch than this process had */
	if (packet == NULL && ((why == CHECK_WHY_NOT_OWNER && here) || !checking->given[number] || (lost && !here))) {
		ask_elsewhere(checking, number, asks, places, count, now.steady_us, answers);
		return;
	}
	if (here || !checking->given[number]) {
		if (why == CHECK_WHY_NONE)
			partition_checks_ask(&checking->partitions[number].checks, asks, places, count, packet, now, answers);
		else
			refuse(asks, places, count, why, answers);
		return;
	}
	if (packet != NULL) { /* it has moved on meanwhile */
		refuse(asks, places, count, CHECK_WHY_MOVING, answers);
		return;
	}
	const uint32_t ways[2] = {way_to_thread(checking, holder, false), way_to_thread(checking, holder, true)};
	post_all(checking, ways, asks, places, count, now.steady_us, answers);
}

/* Answers a group, cut by partition. @param counted  among the answers that were given */
static void ask_all(struct checking *checking, const struct check_ask *asks, uint32_t count, struct mail_packet *packet,
                    struct check_time now, bool counted, struct check_answer *answers)
{
	uint32_t numbers[CHECK_GROUP_MAX], places[CHECK_GROUP_MAX];
	for (uint32_t i = 0; i < count; i++)
		numbers[i] = weir_partition(weir_slot(asks[i].key), checking->partition_count);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t number = numbers[i], alike = 0;
		if (number == UINT32_MAX) /* answered with one before it */
			continue;
		for (uint32_t j = i; j < count; j++)
			if (numbers[j] == number) {
				numbers[j] = UINT32_MAX;
				places[alike++] = j;
			}
		ask_partition(checking, number, asks, places, alike, packet, now, answers);
	}
	int64_t took_us = answering_now_us() - now.steady_us;
	for (uint32_t i = 0; i < count && counted; i++)
		if (answers[i].outcome != CHECK_LATER)
			answering_count(checking->answering, &answers[i], took_us);
}

static void send_outgoing(struct checking *checking)
{
	for (uint32_t way = 0; way < checking->ways; way++)
		if (checking->outgoing[way] != NULL && !gathers(checking, way))
			send_packet(checking, way);
}

/* Answers what has waited too long to be sent. */
static void expire_outgoing(struct checking *checking, int64_t now_ms)
{
	for (uint32_t way = 0; way < checking->ways; way++) {
		struct mail_packet *packet = checking->outgoing[way];
		if (packet == NULL || !answering_give_up(checking->answering, packet, now_ms))
			continue;
		checking->outgoing[way] = NULL;
		answering_put_back(checking->answering, packet);
	}
}

/* How many asks from the first on are of its bundle, or of none. */
static uint32_t run_of(const struct check_ask *asks, uint32_t count)
{
	uint32_t run = 1;
	while (run < count && asks[run].bundle == asks[0].bundle)
		run++;
	return run;
}

static void ask(void *context, const struct check_ask *asks, uint32_t count, struct check_answer *answers)
{
	struct checking *checking = context;
	for (uint32_t i = 0, run; i < count; i += run) {
		struct check_time now = answering_now();
		run = run_of(&asks[i], count - i);
		if (asks[i].bundle == 0)
			ask_all(checking, &asks[i], run, NULL, now, true, &answers[i]);
		else
			bundles_ask(&checking->bundles, &asks[i], run, now, &answers[i]);
	}
	send_outgoing(checking);
}

/* ---- bundles ---- */

static void ask_for_bundle(void *context, const struct check_ask *asks, uint32_t count, struct check_time now,
                           bool counted, struct check_answer *answers)
{
	ask_all(context, asks, count, NULL, now, counted, answers);
}

static bool is_here(void *context, const struct check_ask *ask)
{
	const struct checking *checking = context;
	uint32_t number = weir_partition(weir_slot(ask->key), checking->partition_count);
	return checking->given[number] &&
	       placement_holder(checking->core->options.placement, number) == checking->core->options.number;
}

static void answered(void *context, const struct check_answer *answer)
{
	struct checking *checking = context;
	answering_to_surface(checking->answering, answer);
}

static const struct weir_policy *policy(void *context)
{
	const struct checking *checking = context;
	struct policy_registry *registry = checking->core->options.registry;
	return policy_registry_policy(registry, policy_registry_newest(registry));
}

/* ---- other threads ---- */

static void take_packet(struct checking *checking, struct mail_packet *packet)
{
	struct check_time now = answering_now();
	if (now.steady_us / 1000 >= packet->deadline_ms) { /* its sender has answered for us */
		for (uint32_t i = 0; i < packet->count; i++)
			packet->answers[i] = answer_unavailable(packet->asks[i].ticket, CHECK_WHY_LATE);
	} else {
		ask_all(checking, packet->asks, packet->count, packet, now, true, packet->answers);
	}
	packet->open = 0;
	for (uint32_t i = 0; i < packet->count; i++)
		packet->open += packet->answers[i].outcome == CHECK_LATER;
	if (packet->open > 0)
		return;
	packet->back = true;
	mail_send(checking->answering->mail, packet->from, packet);
}

static void take_mail(struct checking *checking)
{
	struct mail_packet *packet = mail_take(checking->answering->mail, checking->core->options.number);
	while (packet != NULL) {
		struct mail_packet *next = packet->next;
		if (packet->back)
			answering_take_back(checking->answering, packet);
		else
			take_packet(checking, packet);
		packet = next;
	}
}

/* ---- each turn ---- */

/* Who stood still, as a process that is stopped or a machine that is suspended does, may have been taken for dead. */
static void notice_standstill(struct checking *checking, int64_t now_ms)
{
	bool stood = checking->step_ms != 0 && now_ms - checking->step_ms > STANDSTILL_MS;
	checking->step_ms = now_ms;
	for (uint32_t i = 0; stood && !checking->core->options.standalone && i < checking->partition_count; i++)
		partition_checks_doubt(&checking->partitions[i].checks);
}

void checking_serve(struct checking *checking)
{
	struct answering *answering = checking->answering;
	if (!checking_is_on(checking))
		return;
	int64_t began_us = answering_now_us();
	notice_standstill(checking, began_us / 1000);
	answering->told = false;
	checking->serve_ms = began_us / 1000 + SERVE_MS;
	answering->surface.serve(answering->surface.context);
	weir_counter_add(&checking->core->stats.busy_us, (uint64_t)(answering_now_us() - began_us));
}

void checking_wait(struct checking *checking, int timeout_ms)
{
	struct epoll_event events[2];
	int count = epoll_wait(checking->epoll, events, 2, checking->bundles.whole > 0 ? 0 : timeout_ms);
	for (int i = 0; i < count; i++) {
		int wake = mail_wake(checking->answering->mail, checking->core->options.number);
		if (events[i].data.fd == wake)
			weir_wake_clear(wake);
		else
			checking_serve(checking);
	}
}

static void step_partitions(struct checking *checking, int64_t now_ms)
{
	for (uint32_t i = 0; i < checking->partition_count; i++)
		if (partition_checks_are_busy(&checking->partitions[i].checks))
			partition_checks_step(&checking->partitions[i].checks, now_ms);
}

void checking_step(struct checking *checking)
{
	if (!checking_is_on(checking))
		return;
	int64_t now_ms = weir_monotonic_ms();
	notice_standstill(checking, now_ms);
	take_mail(checking);
	answering_expire(checking->answering, now_ms);
	expire_outgoing(checking, now_ms);
	step_partitions(checking, now_ms);
	if (checking->bundles.whole > 0)
		bundles_step(&checking->bundles, answering_now());
	send_outgoing(checking);
	if (!checking->answering->told && now_ms < checking->serve_ms)
		return;
	checking_serve(checking); /* writes what was answered just now, ends what is slow, and may ask more */
	step_partitions(checking, now_ms);
}

/* ---- the beginning and the end ---- */

static bool watch(struct checking *checking, int descriptor)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = descriptor};
	return epoll_ctl(checking->epoll, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

enum weir_status checking_open(struct checking *checking, struct weir_error *error)
{
	const struct worker_options *options = &checking->core->options;
	const struct worker_checks *checks = options->checks;
	struct check_surface *surface = &checking->answering->surface;
	const struct check_judge judge = {.context = checking, .ask = ask, .policy = policy};
	if (checks == NULL)
		return WEIR_OK;
	checking->bundles =
		(struct bundles){.context = checking, .ask = ask_for_bundle, .is_here = is_here, .answered = answered};
	checking->answering->bundles = &checking->bundles;
	checking->ways = 2 * checks->threads + (checks->owners != NULL ? OWNERS_INBOXES : 0);
	checking->outgoing = weir_alloc(checking->ways, sizeof(struct mail_packet *));
	enum weir_status status = checks->open(checks->context, options->number, &judge, surface, error);
	if (status != WEIR_OK)
		return status;
	checking->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (checking->epoll < 0 || !watch(checking, mail_wake(checks->mail, options->number)) ||
	    !watch(checking, surface->descriptor))
		return weir_fail(error, WEIR_IO, "cannot wait for checks: %s", weir_errno_words(errno));
	checks->opened(checks->context, options->number);
	return WEIR_OK;
}

void checking_stop(struct checking *checking)
{
	if (!checking_is_on(checking) || checking->stopped)
		return;
	checking->stopped = true;
	checking->answering->surface.stop(checking->answering->surface.context);
}

void checking_end(struct checking *checking)
{
	if (!checking_is_on(checking))
		return;
	checking_step(checking);
	checking_serve(checking);
	checking->answering->surface.end(checking->answering->surface.context);
}
