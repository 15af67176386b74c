/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What answering adds to a lane: a source of its own, whose events are in the open frame until that is sent, and the
 * epochs that other owners' frames tell of.
 *
 * The log itself says who may answer. Whoever has taken the partition appends a marker, and answers when it comes back:
 * then all is judged that was in the log before it. Whoever reads a higher epoch than its own stops at once.
 */
#include "limiter/lane/lane_checks.h"

#include "common/base/alloc.h"
#include "common/frame/frame.h"
#include "limiter/lane/check_clock.h"
#include "limiter/lane/internal.h"
#include "limiter/shard/shard_check.h"

#include <assert.h>
#include <stdlib.h>

struct lane_checks {
	enum lane_checks_state state;
	uint64_t epoch;
	uint8_t source[WEIR_SOURCE_ID_BYTES];
	uint64_t position;            /* of the newest event */
	uint64_t highest, highest_at; /* epoch of a frame that was read, and its offset */
	uint64_t closed, returned;    /* own messages, and those that came back */
	uint64_t ready_at;            /* how many must have come back: up to the newest marker */
	struct check_clock clock;
	struct weir_frame_writer *writer;
	uint32_t gathered;
	uint64_t policy_version; /* that the open frame names */
	uint8_t answers[WEIR_FRAME_EVENTS_MAX / 2];
	struct weir_frame_reservation *reservations; /* that the open frame's events open or settle */
	uint32_t reservation_count, reservation_room;
};

static struct lane_checks *lane_checks_new(void)
{
	struct lane_checks *checks = weir_alloc(1, sizeof *checks);
	checks->writer = weir_frame_writer_new();
	return checks;
}

void lane_checks_free(struct lane_checks *checks)
{
	if (checks == NULL)
		return;
	weir_frame_writer_free(checks->writer);
	free(checks->reservations);
	free(checks);
}

void lane_checks_see(struct lane *lane, const struct weir_frame *frame)
{
	struct lane_checks *checks = *lane_checks_of(lane);
	if (checks == NULL)
		return;
	bool is_own = memcmp(frame->source, checks->source, WEIR_SOURCE_ID_BYTES) == 0;
	if (!is_own && frame->event_count > 0)
		check_clock_see(&checks->clock, frame->events[frame->event_count - 1].time_ms);
	if (frame->epoch > checks->highest) {
		checks->highest = frame->epoch;
		checks->highest_at = lane_next_offset(lane);
	}
	if (checks->state != LANE_CHECKS_OPENING && checks->state != LANE_CHECKS_READY)
		return;
	if (frame->epoch > checks->epoch) {
		checks->state = LANE_CHECKS_OVER;
		shard_checks_end(lane_shard(lane));
	} else if (is_own) {
		checks->returned++;
		if (checks->returned < checks->ready_at)
			return;
		checks->state = LANE_CHECKS_READY;
		check_clock_see(&checks->clock,
		                shard_clock_ms(lane_shard(lane))); /* what was judged must not be in the future */
	}
}

static void begin_frame(struct lane *lane, struct lane_checks *checks, int64_t now_ms)
{
	checks->policy_version = lane_policy_version(lane);
	checks->gathered = checks->reservation_count = 0;
	weir_frame_begin(checks->writer, checks->source, checks->policy_version, now_ms, checks->position + 1);
}

struct weir_span lane_checks_open(struct lane *lane, const uint8_t source[WEIR_SOURCE_ID_BYTES], uint64_t epoch,
                                  int64_t now_ms)
{
	struct lane_checks **own = lane_checks_of(lane);
	if (*own == NULL)
		*own = lane_checks_new();
	struct lane_checks *checks = *own;
	assert(checks->state == LANE_CHECKS_OFF || checks->state == LANE_CHECKS_OVER);
	memcpy(checks->source, source, WEIR_SOURCE_ID_BYTES);
	checks->epoch = epoch;
	checks->position = checks->returned = checks->gathered = 0;
	checks->closed = checks->ready_at = 1;
	checks->state = LANE_CHECKS_OPENING;
	shard_checks_begin(lane_shard(lane), source);
	begin_frame(lane, checks, now_ms);
	return weir_frame_finish_checks(checks->writer, now_ms, epoch, NULL, NULL, 0);
}

struct weir_span lane_checks_again(struct lane *lane, int64_t now_ms)
{
	struct lane_checks *checks = *lane_checks_of(lane);
	assert(checks->state == LANE_CHECKS_OPENING || checks->state == LANE_CHECKS_READY);
	assert(checks->gathered == 0);
	checks->state = LANE_CHECKS_OPENING;
	checks->ready_at = ++checks->closed;
	begin_frame(lane, checks, now_ms);
	return weir_frame_finish_checks(checks->writer, now_ms, checks->epoch, NULL, NULL, 0);
}

void lane_checks_close(struct lane *lane)
{
	struct lane_checks *checks = *lane_checks_of(lane);
	if (checks == NULL)
		return;
	shard_checks_end(lane_shard(lane));
	checks->state = LANE_CHECKS_OFF;
	checks->gathered = 0;
}

enum lane_checks_state lane_checks_state(const struct lane *lane)
{
	const struct lane_checks *checks = *lane_checks_of((struct lane *)lane);
	return checks == NULL ? LANE_CHECKS_OFF : checks->state;
}

/* ---- asking ---- */

/* A check, and whose answer it is. */
struct asked {
	struct shard_check checks[CHECK_GROUP_MAX];
	uint64_t hashes[CHECK_GROUP_MAX]; /* of its key */
	uint32_t places[CHECK_GROUP_MAX];
	uint32_t count;
};

static enum check_why why_not(enum lane_checks_state state)
{
	return state == LANE_CHECKS_OPENING ? CHECK_WHY_LOADING
	       : state == LANE_CHECKS_OVER  ? CHECK_WHY_MOVING
	                                    : CHECK_WHY_NOT_OWNER;
}

static void take_ask(struct lane *lane, struct asked *asked, const struct check_ask *ask, uint32_t place,
                     struct check_answer *answer)
{
	enum lane_checks_state state = lane_checks_state(lane);
	*answer = (struct check_answer){.outcome = CHECK_UNAVAILABLE, .ticket = ask->ticket};
	if (state != LANE_CHECKS_READY) {
		answer->why = why_not(state);
		return;
	}
	const struct compiled_zone *zone = compiled_policy_zone_named(lane_compiled_policy(lane), ask->zone);
	if (zone == NULL) {
		answer->outcome = CHECK_NO_ZONE;
		return;
	}
	asked->places[asked->count] = place;
	asked->hashes[asked->count] = weir_hash64(ask->key.at, ask->key.length);
	if (!check_is_peek(ask))
		weir_frame_prefetch((*lane_checks_of(lane))->writer, asked->hashes[asked->count]);
	asked->checks[asked->count++] = (struct shard_check){
		.zone = zone,
		.key = ask->key,
		.cost = ask->cost,
		.peek = check_is_peek(ask),
		.tries = ask->tries && zone->zone->mode != WEIR_SHADOW, /* in shadow mode nothing is blocked */
		.beside = ask->beside,
		.reserves = ask->kind == CHECK_RESERVES,
		.settles = ask->kind == CHECK_SETTLES ? ask->reservation : NULL,
	};
}

/* A zone in shadow mode refuses nobody: its verdict is in the log, as of every event. */
static void give_answer(const struct shard_check *check, struct check_answer *answer)
{
	bool shadow = check->zone->zone->mode == WEIR_SHADOW;
	if (check->state == SHARD_CHECK_MISSING)
		answer->outcome = CHECK_LATER;
	else if (check->state == SHARD_CHECK_FULL)
		answer->why = CHECK_WHY_FULL;
	else if (check->state == SHARD_CHECK_NO_RESERVATION)
		answer->outcome = CHECK_NO_RESERVATION;
	else if (check->settles != NULL)
		answer->outcome = CHECK_SETTLED;
	else
		answer->outcome = check->blocked && !shadow ? CHECK_BLOCKED : CHECK_PASSED;
	answer->limit = check->quota.limit;
	answer->window_ms = check->quota.window_ms;
	answer->remaining = check->quota.remaining;
	answer->retry_after_ms = answer->outcome == CHECK_BLOCKED ? check->quota.retry_after_ms : -1;
	answer->reset_after_ms = check->quota.reset_after_ms;
}

/* Has the open frame say that the newest event opens or settles a reservation. */
static struct weir_frame_reservation *add_reservation(struct lane_checks *checks)
{
	if (checks->reservation_count == checks->reservation_room) {
		checks->reservation_room = checks->reservation_room > 0 ? 2 * checks->reservation_room : CHECK_GROUP_MAX;
		checks->reservations =
			weir_realloc(checks->reservations, checks->reservation_room, sizeof *checks->reservations);
	}
	struct weir_frame_reservation *added = &checks->reservations[checks->reservation_count++];
	*added = (struct weir_frame_reservation){.event = checks->gathered - 1};
	return added;
}

/* The newest event is a check that passed: it may be settled from now on. */
static void open_reservation(struct lane *lane, struct lane_checks *checks, const struct shard_check *check,
                             int64_t ttl_ms, struct check_answer *answer)
{
	add_reservation(checks)->ttl_ms = ttl_ms;
	answer->reserved = true;
	weir_reservation_id(checks->source, checks->position, answer->reservation);
	shard_reserve(lane_shard(lane), check, ttl_ms, answer->reservation);
}

static void add_event(struct lane_checks *checks, const struct shard_check *check, uint64_t hash, int64_t t)
{
	const struct weir_frame_zone zone = {.id = check->zone->zone->id, .done = check->settles != NULL};
	uint32_t pair = checks->gathered++;
	enum weir_status status =
		weir_frame_add(checks->writer, check->key, hash, t, ++checks->position, check->cost, &zone, 1);
	assert(status == WEIR_OK); /* it was not due */
	(void)status;
	if (pair % 2 == 0)
		checks->answers[pair / 2] = 0;
	checks->answers[pair / 2] |= (uint8_t)((check->blocked ? WEIR_VERDICT_BLOCK : 0) << (pair % 2 * 4));
}

void lane_check(struct lane *lane, const struct check_ask *asks, const uint32_t *places, uint32_t count,
                struct check_now now, struct check_answer *answers)
{
	struct lane_checks *checks = *lane_checks_of(lane);
	struct asked asked;
	asked.count = 0;
	assert(count <= CHECK_GROUP_MAX && !lane_checks_due(lane));
	for (uint32_t i = 0; i < count; i++) {
		uint32_t place = places != NULL ? places[i] : i;
		take_ask(lane, &asked, &asks[place], place, &answers[place]);
	}
	if (asked.count == 0)
		return;
	struct check_times times = {.now_ms = now.wall_ms, .going_ms = check_clock_read(&checks->clock, now)};
	shard_check_judge(lane_shard(lane), asked.checks, asked.count, times);
	for (uint32_t i = 0; i < asked.count; i++) {
		const struct shard_check *check = &asked.checks[i];
		give_answer(check, &answers[asked.places[i]]);
		if (check->peek || check->state != SHARD_CHECK_JUDGED)
			continue;
		if (checks->gathered == 0)
			begin_frame(lane, checks, now.wall_ms);
		add_event(checks, check, asked.hashes[i], check->t);
		struct check_answer *answer = &answers[asked.places[i]];
		if (check->settles != NULL)
			memcpy(add_reservation(checks)->id, check->settles, WEIR_RESERVATION_ID_BYTES);
		else if (check->reserves && answer->outcome == CHECK_PASSED)
			open_reservation(lane, checks, check, asks[asked.places[i]].ttl_ms, answer);
	}
}

uint32_t lane_checks_missing(struct lane *lane, uint32_t *segments)
{
	return shard_check_missing(lane_shard(lane), segments, SHARD_MISSING_MOST);
}

void lane_checks_give_up(struct lane *lane)
{
	shard_check_give_up(lane_shard(lane));
}

/* ---- frames ---- */

uint32_t lane_checks_gathered(const struct lane *lane)
{
	const struct lane_checks *checks = *lane_checks_of((struct lane *)lane);
	return checks == NULL ? 0 : checks->gathered;
}

bool lane_checks_due(const struct lane *lane)
{
	const struct lane_checks *checks = *lane_checks_of((struct lane *)lane);
	return checks != NULL && checks->gathered > 0 &&
	       (weir_frame_due(checks->writer) || checks->gathered > WEIR_FRAME_EVENTS_MAX - CHECK_GROUP_MAX ||
	        checks->policy_version != lane_policy_version(lane));
}

struct weir_span lane_checks_frame(struct lane *lane, int64_t now_ms)
{
	struct lane_checks *checks = *lane_checks_of(lane);
	assert(checks != NULL && checks->gathered > 0);
	checks->gathered = 0;
	checks->closed++;
	return weir_frame_finish_checks(checks->writer, now_ms, checks->epoch, checks->answers, checks->reservations,
	                                checks->reservation_count);
}

uint64_t lane_checks_highest(const struct lane *lane)
{
	const struct lane_checks *checks = *lane_checks_of((struct lane *)lane);
	return checks == NULL ? 0 : checks->highest;
}

uint64_t lane_checks_highest_at(const struct lane *lane)
{
	const struct lane_checks *checks = *lane_checks_of((struct lane *)lane);
	return checks == NULL ? 0 : checks->highest_at;
}

uint64_t lane_checks_returned(const struct lane *lane)
{
	const struct lane_checks *checks = *lane_checks_of((struct lane *)lane);
	return checks == NULL ? 0 : checks->returned;
}

int64_t lane_checks_ahead_ms(const struct lane *lane, int64_t wall_ms)
{
	const struct lane_checks *checks = *lane_checks_of((struct lane *)lane);
	return checks == NULL ? 0 : check_clock_ahead_ms(&checks->clock, wall_ms);
}

uint32_t lane_checks_pending(struct lane *lane)
{
	return shard_checks_pending(lane_shard(lane));
}
