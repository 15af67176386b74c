/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of a check through its partition: asked, judged by the lane, gathered in a
 * frame, sent, acknowledged. Nothing here waits.
 */
#include "limiter/worker/partition_checks.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/random.h>

enum { HELD_ROOM_FIRST = 256 };

void partition_checks_init(struct partition_checks *checks, uint32_t number, struct publisher *publisher,
                           struct answering *answering)
{
	*checks = (struct partition_checks){.publisher = publisher, .answering = answering, .number = number};
}

void partition_checks_deinit(struct partition_checks *checks)
{
	partition_checks_close(checks);
	weir_text_deinit(&checks->unsent);
	free(checks->held);
	free(checks->parked);
	checks->held = NULL;
	checks->parked = NULL;
	checks->held_room = 0;
}

/* ---- frames ---- */

static struct sent_checks *sent_at(struct partition_checks *checks, uint32_t index)
{
	return &checks->sent[(checks->sent_first + index) % PARTITION_CHECKS_FRAMES];
}

/* What was sent waits for nothing, if an answer waits for it. */
static void hurry(struct partition_checks *checks)
{
	if (checks->held_first != checks->held_next)
		publisher_hurry(checks->publisher, WEIR_TOPIC_EVENTS);
}

/* Tries to send a frame. @return false: the bus has no room now */
static bool try_send(struct partition_checks *checks, struct weir_span message, uint32_t events)
{
	if (publisher_try_send(checks->publisher, checks->number, WEIR_TOPIC_EVENTS, message) == WEIR_FULL)
		return false;
	hurry(checks);
	/* A producer that breaks here has its partitions dropped by the worker: what is noted now goes with the rest. */
	*sent_at(checks, checks->sent_count++) = (struct sent_checks){
		.number = publisher_sent(checks->publisher, checks->number, WEIR_TOPIC_EVENTS),
		.events = events,
		.sent_ms = weir_monotonic_ms(),
	};
	return true;
}

static void send_or_keep(struct partition_checks *checks, struct weir_span message, uint32_t events)
{
	checks->closed++;
	if (try_send(checks, message, events))
		return;
	weir_text_append(&checks->unsent, message.at, message.length);
	checks->unsent_events = events;
	checks->unsent_ms = weir_monotonic_ms();
}

static void flush(struct partition_checks *checks)
{
	/* A held answer that is in no frame yet waits until these are acknowledged. */
	if (checks->sent_count >= PARTITION_CHECKS_FRAMES_SOON)
		hurry(checks);
	if (checks->sent_count == PARTITION_CHECKS_FRAMES)
		return;
	if (checks->unsent.length > 0) {
		if (!try_send(checks, weir_text_span(&checks->unsent), checks->unsent_events))
			return;
		weir_text_clear(&checks->unsent);
	}
	uint32_t events = lane_checks_gathered(checks->lane);
	bool is_time = checks->sent_count < PARTITION_CHECKS_FRAMES_SOON || lane_checks_due(checks->lane);
	if (events > 0 && is_time && checks->sent_count < PARTITION_CHECKS_FRAMES)
		send_or_keep(checks, lane_checks_frame(checks->lane, weir_wall_ms()), events);
}

/* ---- answers that are held ---- */

static struct held_answer *held_at(const struct partition_checks *checks, uint64_t number)
{
	assert(checks->held_room > 0);
	return &checks->held[number % checks->held_room];
}

static void hold(struct partition_checks *checks, const struct answer_place *place, const struct check_answer *answer)
{
	uint64_t count = checks->held_next - checks->held_first;
	if (count == checks->held_room) {
		uint32_t room = checks->held_room > 0 ? 2 * checks->held_room : HELD_ROOM_FIRST;
		struct held_answer *grown = weir_alloc(room, sizeof *grown);
		for (uint64_t number = checks->held_first; number < checks->held_next; number++)
			grown[number % room] = *held_at(checks, number);
		free(checks->held);
		checks->held = grown;
		checks->held_room = room;
	}
	*held_at(checks, checks->held_next++) =
		(struct held_answer){.frame = checks->closed + 1, .place = *place, .answer = *answer};
}

/* Gives the answers that are held, up to a number. @param why  they are not acknowledged, and this is why */
static void release(struct partition_checks *checks, uint64_t to, enum check_why why)
{
	for (; checks->held_first < to; checks->held_first++) {
		const struct held_answer *held = held_at(checks, checks->held_first);
		struct check_answer unavailable = answer_unavailable(held->answer.ticket, why);
		answering_give(checks->answering, &held->place, why == CHECK_WHY_NONE ? &held->answer : &unavailable);
	}
}

static void take_acknowledgements(struct partition_checks *checks)
{
	uint64_t acknowledged = publisher_acknowledged(checks->publisher, checks->number, WEIR_TOPIC_EVENTS);
	while (checks->sent_count > 0 && sent_at(checks, 0)->number <= acknowledged) {
		const struct sent_checks *frame = sent_at(checks, 0);
		checks->unacknowledged -= frame->events;
		checks->acknowledged++;
		checks->sent_first = (checks->sent_first + 1) % PARTITION_CHECKS_FRAMES;
		checks->sent_count--;
	}
}

/* Gives the answers that are certain. */
static void release_certain(struct partition_checks *checks)
{
	if (checks->held_first == checks->held_next)
		return;
	if (partition_checks_are_over(checks)) {
		release(checks, checks->held_next, CHECK_WHY_MOVING);
		return;
	}
	bool alone = checks->answering->core->options.standalone;
	uint64_t returned = alone ? UINT64_MAX : lane_checks_returned(checks->lane), to = checks->held_first;
	uint64_t frames = checks->acknowledged < returned ? checks->acknowledged : returned;
	while (to < checks->held_next && held_at(checks, to)->frame <= frames)
		to++;
	release(checks, to, CHECK_WHY_NONE);
}

static void give_up_held(struct partition_checks *checks, int64_t now_ms)
{
	uint64_t to = checks->held_first;
	while (to < checks->held_next && now_ms - held_at(checks, to)->place.asked_us / 1000 > ANSWER_DURABLE_MS)
		to++;
	release(checks, to, CHECK_WHY_UNACKNOWLEDGED);
}

/* ---- asking ---- */

/* The time of an ask. A clock that was set back is told: checks go on at half its speed meanwhile. */
static struct check_now now_of(struct partition_checks *checks, struct check_time time)
{
	struct worker_core *core = checks->publisher->core;
	struct check_now now = {.wall_ms = time.wall_ms, .steady_ms = time.steady_us / 1000};
	int64_t ahead_ms = lane_checks_ahead_ms(checks->lane, now.wall_ms);
	char ahead[WEIR_AGE_BYTES];
	if (ahead_ms >= PARTITION_CHECKS_AHEAD_MS &&
	    (checks->ahead_told_ms == 0 || now.steady_ms >= checks->ahead_told_ms + PARTITION_CHECKS_TELL_MS)) {
		checks->ahead_told_ms = now.steady_ms;
		weir_notice_log(
			&core->behind, core->options.log, WEIR_LOG_WARNING, "limiter",
			"this machine's clock is %s behind what is in the log of partition %u, as if it had been set back. Of keys that were "
			"asked at later times, windows go on at half the speed until it has come up, so fewer checks pass (runbook: clock)",
			weir_age(ahead_ms, ahead), checks->number);
	}
	return now;
}

static bool is_overdue(struct partition_checks *checks, int64_t now_ms)
{
	int64_t oldest_ms = checks->sent_count > 0 ? sent_at(checks, 0)->sent_ms : checks->unsent_ms;
	return (checks->sent_count > 0 || checks->unsent.length > 0) &&
	       now_ms - oldest_ms > PARTITION_CHECKS_ACKNOWLEDGED_MS;
}

/* Why nothing can be answered now. */
static enum check_why refusal(struct partition_checks *checks, int64_t now_ms)
{
	if (checks->lane == NULL || checks->doubted)
		return CHECK_WHY_LOADING;
	if (is_overdue(checks, now_ms))
		return CHECK_WHY_UNACKNOWLEDGED;
	if (checks->unsent.length == 0 && lane_checks_due(checks->lane))
		flush(checks);
	return checks->unsent.length > 0 || lane_checks_due(checks->lane) ? CHECK_WHY_FULL : CHECK_WHY_NONE;
}

/* Keeps an ask for later, in a packet. @param why  what it waits for @return false: there are too many */
static bool park(struct partition_checks *checks, const struct answer_place *place, enum check_why why)
{
	if (checks->parked_count == PARTITION_CHECKS_PARKED_MAX)
		return false;
	if (checks->parked == NULL)
		checks->parked = weir_alloc(PARTITION_CHECKS_PARKED_MAX, sizeof *checks->parked);
	checks->parked[checks->parked_count++] = (struct parked_ask){.place = *place, .why = why};
	checks->parked_full += why == CHECK_WHY_FULL;
	if (why == CHECK_WHY_LOADING)
		checks->wanted_ms = weir_monotonic_ms();
	return true;
}

/* One of the surface's own asks has to wait: it is copied. @param own  the packet for it; made at the first */
static bool park_own(struct partition_checks *checks, const struct check_ask *ask, struct mail_packet **own,
                     int64_t now_us, enum check_why why)
{
	if (*own == NULL)
		*own = answering_packet(checks->answering, now_us);
	if (*own == NULL || checks->parked_count == PARTITION_CHECKS_PARKED_MAX || !mail_packet_add(*own, ask))
		return false;
	(*own)->open++;
	return park(checks, &(struct answer_place){.packet = *own, .index = (*own)->count - 1, .asked_us = now_us}, why);
}

/* What an ask waits for, as it was answered. @return CHECK_WHY_NONE: it does not wait, as whoever looks before several count */
static enum check_why wait_of(const struct check_ask *ask, const struct check_answer *answer)
{
	if (ask->beside > 0)
		return CHECK_WHY_NONE;
	if (answer->outcome == CHECK_LATER)
		return CHECK_WHY_LOADING;
	return answer->outcome == CHECK_UNAVAILABLE && answer->why == CHECK_WHY_FULL ? CHECK_WHY_FULL : CHECK_WHY_NONE;
}

/* What the lane has answered: whether it has to wait. @param place  where its answer goes */
static void settle(struct partition_checks *checks, const struct check_ask *ask, const struct answer_place *place,
                   struct check_answer *answer)
{
	bool judged =
		answer->outcome == CHECK_PASSED || answer->outcome == CHECK_BLOCKED || answer->outcome == CHECK_SETTLED;
	if (!judged || check_is_peek(ask) || (ask->tries && answer->outcome == CHECK_BLOCKED))
		return;
	checks->unacknowledged++;
	if (!ask->durable)
		return;
	hold(checks, place, answer);
	answer->outcome = CHECK_LATER;
}

void partition_checks_ask(struct partition_checks *checks, const struct check_ask *asks, const uint32_t *places,
                          uint32_t count, struct mail_packet *packet, struct check_time now,
                          struct check_answer *answers)
{
	struct mail_packet *own = NULL;
	enum check_why why = refusal(checks, now.steady_us / 1000);
	if (why == CHECK_WHY_NONE)
		lane_check(checks->lane, asks, places, count, now_of(checks, now), answers);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = places[i];
		struct answer_place place = {.packet = packet, .index = at, .asked_us = now.steady_us};
		if (why != CHECK_WHY_NONE)
			answers[at] = answer_unavailable(asks[at].ticket, why);
		enum check_why wait = wait_of(&asks[at], &answers[at]);
		if (wait == CHECK_WHY_NONE)
			settle(checks, &asks[at], &place, &answers[at]);
		else if (packet != NULL ? park(checks, &place, wait) : park_own(checks, &asks[at], &own, now.steady_us, wait))
			answers[at] = (struct check_answer){.outcome = CHECK_LATER, .ticket = asks[at].ticket};
		else
			answers[at] = answer_unavailable(asks[at].ticket, CHECK_WHY_FULL);
	}
	if (own != NULL && own->open == 0) /* none could be kept */
		answering_put_back(checks->answering, own);
}

/* ---- asks that wait ---- */

/* Asks one of them again. @return what it waits for; CHECK_WHY_NONE: it is answered */
static enum check_why ask_again(struct partition_checks *checks, const struct answer_place *place)
{
	const struct check_ask *ask = &place->packet->asks[place->index];
	struct check_time now = answering_now();
	enum check_why why = refusal(checks, now.steady_us / 1000);
	struct check_answer answer = answer_unavailable(ask->ticket, why);
	if (why == CHECK_WHY_NONE)
		lane_check(checks->lane, ask, NULL, 1, now_of(checks, now), &answer);
	enum check_why wait = wait_of(ask, &answer);
	if (wait != CHECK_WHY_NONE)
		return wait;
	settle(checks, ask, place, &answer);
	if (answer.outcome != CHECK_LATER)
		answering_give(checks->answering, place, &answer);
	return CHECK_WHY_NONE;
}

/* Asks those again that wait for something, oldest first; of those that wait for room, up to the first that has none. */
static void ask_parked(struct partition_checks *checks, enum check_why why)
{
	uint32_t kept = 0, count = checks->parked_count;
	bool full = false;
	checks->parked_full = 0;
	for (uint32_t i = 0; i < count; i++) {
		struct parked_ask parked = checks->parked[i];
		if (parked.why == why && !(full && why == CHECK_WHY_FULL))
			parked.why = ask_again(checks, &parked.place);
		full |= parked.why == CHECK_WHY_FULL;
		if (parked.why == CHECK_WHY_NONE)
			continue;
		checks->parked_full += parked.why == CHECK_WHY_FULL;
		checks->parked[kept++] = parked;
	}
	checks->parked_count = kept;
	if (kept == 0 && checks->lane != NULL)
		lane_checks_give_up(checks->lane);
}

void partition_checks_loaded(struct partition_checks *checks)
{
	checks->loading = checks->outdated = false;
	ask_parked(checks, CHECK_WHY_LOADING);
	ask_parked(checks, CHECK_WHY_FULL); /* for which there was no place among those that wait for a load */
}

/* Ends waits. @param why  all of them, and this is why; CHECK_WHY_NONE: only those whose time is up */
static void give_up_parked(struct partition_checks *checks, int64_t now_ms, enum check_why why)
{
	uint32_t kept = 0;
	if (checks->parked_count == 0)
		return;
	checks->parked_full = 0;
	for (uint32_t i = 0; i < checks->parked_count; i++) {
		struct parked_ask parked = checks->parked[i];
		const struct answer_place *place = &parked.place;
		if (why == CHECK_WHY_NONE && now_ms - place->asked_us / 1000 < ANSWER_LOAD_MS) {
			checks->parked_full += parked.why == CHECK_WHY_FULL;
			checks->parked[kept++] = parked;
			continue;
		}
		struct check_answer answer =
			answer_unavailable(place->packet->asks[place->index].ticket, why != CHECK_WHY_NONE ? why : parked.why);
		answering_give(checks->answering, place, &answer);
	}
	checks->parked_count = kept;
	if (kept == 0)
		lane_checks_give_up(checks->lane);
}

uint32_t partition_checks_missing(const struct partition_checks *checks, uint32_t *segments)
{
	if (checks->parked_count == 0 || checks->loading)
		return 0;
	return lane_checks_missing(checks->lane, segments);
}

/* ---- from taking to leaving ---- */

/* NULL: no other process answers checks. */
static struct owners *owners_here(const struct partition_checks *checks)
{
	return checks->answering->core->options.checks->owners;
}

/* @param log_epoch  of the messages */
static void open_lane(struct partition_checks *checks, struct lane *lane, uint64_t log_epoch)
{
	uint8_t source[WEIR_SOURCE_ID_BYTES];
	if (getrandom(source, sizeof source, 0) != (ssize_t)sizeof source)
		return;
	assert(checks->lane == NULL && checks->sent_count == 0);
	checks->lane = lane;
	checks->proved = checks->doubted = checks->leaving = false;
	send_or_keep(checks, lane_checks_open(lane, source, log_epoch, weir_wall_ms()), 0);
	if (owners_here(checks) != NULL)
		owners_took(owners_here(checks), checks->number, checks->epoch);
}

void partition_checks_open(struct partition_checks *checks, struct lane *lane, uint64_t epoch)
{
	if (checks->answering == NULL)
		return;
	checks->epoch = epoch;
	open_lane(checks, lane, epoch);
}

void partition_checks_leave(struct partition_checks *checks)
{
	checks->leaving = true;
}

void partition_checks_close(struct partition_checks *checks)
{
	if (checks->lane == NULL)
		return;
	if (owners_here(checks) != NULL)
		owners_left(owners_here(checks), checks->number);
	give_up_parked(checks, 0, CHECK_WHY_MOVING);
	release(checks, checks->held_next, CHECK_WHY_MOVING);
	lane_checks_close(checks->lane);
	weir_text_clear(&checks->unsent);
	checks->sent_first = checks->sent_count = checks->unacknowledged = 0;
	checks->closed = checks->acknowledged = 0;
	checks->loading = checks->outdated = false;
	checks->lane = NULL;
}

void partition_checks_doubt(struct partition_checks *checks)
{
	checks->doubted = checks->lane != NULL && !partition_checks_are_over(checks);
}

/* Sends a new marker, behind all that was answered. */
static void ask_the_log(struct partition_checks *checks)
{
	if (!checks->doubted || checks->leaving || checks->unsent.length > 0 || lane_checks_gathered(checks->lane) > 0 ||
	    checks->sent_count == PARTITION_CHECKS_FRAMES)
		return;
	checks->doubted = false;
	if (!partition_checks_are_over(checks))
		send_or_keep(checks, lane_checks_again(checks->lane, weir_wall_ms()), 0);
}

/* Above what the log says, where that is of nobody any more. */
static void begin_anew(struct partition_checks *checks)
{
	struct lane *lane = checks->lane;
	if (!checks->proved || checks->leaving || !partition_checks_are_safe(checks))
		return;
	partition_checks_close(checks);
	open_lane(checks, lane, lane_checks_highest(lane) + 1);
}

void partition_checks_stored(struct partition_checks *checks, uint64_t next_offset)
{
	if (!partition_checks_are_over(checks) || next_offset <= lane_checks_highest_at(checks->lane))
		return;
	checks->proved = true;
	begin_anew(checks);
}

void partition_checks_step(struct partition_checks *checks, int64_t now_ms)
{
	if (checks->lane == NULL)
		return;
	take_acknowledgements(checks);
	flush(checks);
	ask_the_log(checks);
	release_certain(checks);
	give_up_held(checks, now_ms);
	if (checks->parked_full > 0)
		ask_parked(checks, CHECK_WHY_FULL);
	give_up_parked(checks, now_ms, CHECK_WHY_NONE);
	begin_anew(checks);
}

bool partition_checks_are_busy(const struct partition_checks *checks)
{
	return checks->lane != NULL &&
	       (checks->sent_count > 0 || checks->unsent.length > 0 || checks->parked_count > 0 ||
	        checks->held_first < checks->held_next || checks->doubted || lane_checks_gathered(checks->lane) > 0);
}

bool partition_checks_are_over(const struct partition_checks *checks)
{
	return checks->lane != NULL && lane_checks_state(checks->lane) == LANE_CHECKS_OVER;
}

bool partition_checks_are_lost(const struct partition_checks *checks)
{
	return checks->lane != NULL && owners_here(checks) != NULL && owners_lost(owners_here(checks), checks->number);
}

bool partition_checks_are_safe(const struct partition_checks *checks)
{
	return checks->lane == NULL ||
	       (checks->sent_count == 0 && checks->unsent.length == 0 && lane_checks_gathered(checks->lane) == 0);
}
