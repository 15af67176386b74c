/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers go where their asks came from. A packet of another thread goes back when
 * its last ask is answered; one of this worker, whose asks waited here, gives each
 * answer to the surface at once.
 */
#include "limiter/worker/answering.h"
#include "limiter/worker/bundles.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

void answering_init(struct answering *answering, struct worker_core *core, struct mail *mail)
{
	*answering = (struct answering){.core = core, .mail = mail};
	answering->away_end = &answering->away;
}

void answering_deinit(struct answering *answering)
{
	if (answering->surface.free != NULL)
		answering->surface.free(answering->surface.context);
	for (struct mail_packet *packet = answering->idle, *next; packet != NULL; packet = next) {
		next = packet->next;
		free(packet);
	}
	*answering = (struct answering){0};
}

int64_t answering_now_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

struct check_time answering_now(void)
{
	return (struct check_time){.wall_ms = weir_wall_ms(), .steady_us = answering_now_us()};
}

/* ---- packets ---- */

void answering_put_back(struct answering *answering, struct mail_packet *packet)
{
	packet->next = answering->idle;
	answering->idle = packet;
}

struct mail_packet *answering_packet(struct answering *answering, int64_t now_us)
{
	struct mail_packet *packet = answering->idle;
	if (packet != NULL) {
		answering->idle = packet->next;
	} else if (answering->packets < MAIL_PACKETS_MAX) {
		packet = weir_alloc(1, sizeof *packet);
		answering->packets++;
	} else {
		return NULL;
	}
	packet->next = packet->later = NULL;
	packet->from = answering->core->options.number;
	packet->count = packet->open = packet->used = 0;
	packet->back = packet->elsewhere = false;
	packet->unanswered = packet->expired = 0;
	packet->asked_us = now_us;
	packet->deadline_ms = 0;
	packet->expires_ms = INT64_MAX;
	return packet;
}

bool answering_add(struct mail_packet *packet, const struct check_ask *ask, int64_t until_ms)
{
	if (!mail_packet_add(packet, ask))
		return false;
	packet->until_ms[packet->count - 1] = until_ms;
	if (until_ms > packet->deadline_ms)
		packet->deadline_ms = until_ms;
	if (until_ms < packet->expires_ms)
		packet->expires_ms = until_ms;
	return true;
}

void answering_send(struct answering *answering, uint32_t to, struct mail_packet *packet)
{
	packet->open = packet->count;
	*answering->away_end = packet;
	answering->away_end = &packet->later;
	mail_send(answering->mail, to, packet);
}

static bool is_durable(uint32_t way)
{
	return way >= OWNERS_PLACES_MAX;
}

bool answering_may_send_elsewhere(const struct answering *answering, uint32_t way)
{
	uint32_t most = is_durable(way) ? ANSWER_DURABLE_PACKETS : ANSWER_ELSEWHERE_PACKETS;
	return answering->elsewhere[is_durable(way)] + answering->by_way[way] < most;
}

void answering_send_elsewhere(struct answering *answering, uint32_t to, uint32_t way, struct mail_packet *packet)
{
	packet->elsewhere = true;
	packet->way = way;
	answering->elsewhere[is_durable(way)]++;
	answering->by_way[way]++;
	weir_counter_add(&answering->core->stats.checks_forwarded, packet->count);
	answering_send(answering, to, packet);
}

void answering_to_surface(struct answering *answering, const struct check_answer *answer)
{
	if (answer->ticket & CHECK_TICKET_OF_BUNDLE) {
		bundles_take(answering->bundles, answer);
		return;
	}
	answering->surface.answered(answering->surface.context, answer);
	answering->told = true;
}

void answering_take_back(struct answering *answering, struct mail_packet *packet)
{
	struct mail_packet **at = &answering->away;
	while (*at != packet)
		at = &(*at)->later;
	*at = packet->later;
	if (packet->later == NULL)
		answering->away_end = at;
	int64_t took_us = packet->unanswered != 0 ? answering_now_us() - packet->asked_us : 0;
	if (packet->elsewhere) {
		answering->elsewhere[is_durable(packet->way)]--;
		answering->by_way[packet->way]--;
	}
	for (uint32_t i = 0; i < packet->count; i++) {
		if ((packet->expired >> i & 1) != 0)
			continue;
		if ((packet->unanswered >> i & 1) != 0) /* other answers are counted where they were made */
			answering_count(answering, &packet->answers[i], took_us);
		answering_to_surface(answering, &packet->answers[i]);
	}
	answering_put_back(answering, packet);
}

bool answering_give_up(struct answering *answering, struct mail_packet *packet, int64_t now_ms)
{
	if (now_ms < packet->expires_ms)
		return packet->expires_ms == INT64_MAX;
	packet->expires_ms = INT64_MAX;
	for (uint32_t i = 0; i < packet->count; i++) {
		if ((packet->expired >> i & 1) != 0)
			continue;
		if (now_ms < packet->until_ms[i]) {
			if (packet->until_ms[i] < packet->expires_ms)
				packet->expires_ms = packet->until_ms[i];
			continue;
		}
		packet->expired |= UINT64_C(1) << i;
		struct check_answer answer = answer_unavailable(packet->asks[i].ticket, CHECK_WHY_LATE);
		answering_count(answering, &answer, now_ms * 1000 - packet->asked_us);
		answering_to_surface(answering, &answer);
	}
	return packet->expires_ms == INT64_MAX;
}

void answering_expire(struct answering *answering, int64_t now_ms)
{
	/* the other thread may be at it still: answers to what has expired are dropped when it is back */
	for (struct mail_packet *packet = answering->away; packet != NULL; packet = packet->later)
		(void)answering_give_up(answering, packet, now_ms);
}

/* ---- answers ---- */

void answering_count(struct answering *answering, const struct check_answer *answer, int64_t took_us)
{
	struct worker_stats *stats = &answering->core->stats;
	bool judged = answer->outcome == CHECK_PASSED || answer->outcome == CHECK_BLOCKED;
	if (judged && (answer->ticket & CHECK_TICKET_LOOKS) != 0)
		return;
	switch (answer->outcome) {
	case CHECK_PASSED: weir_counter_add(&stats->checks_passed, 1); break;
	case CHECK_BLOCKED: weir_counter_add(&stats->checks_blocked, 1); break;
	case CHECK_NO_ZONE: weir_counter_add(&stats->checks_no_zone, 1); break;
	case CHECK_SETTLED: weir_counter_add(&stats->checks_settled, 1); break;
	case CHECK_NO_RESERVATION: weir_counter_add(&stats->checks_no_reservation, 1); break;
	default: weir_counter_add(&stats->checks_unavailable[answer->why], 1); break;
	}
	weir_histogram_observe(&stats->check, &weir_latency_scale, (double)took_us / 1e6);
}

void answering_give(struct answering *answering, const struct answer_place *place, const struct check_answer *answer)
{
	struct mail_packet *packet = place->packet;
	answering_count(answering, answer, answering_now_us() - place->asked_us);
	if (packet == NULL) {
		answering_to_surface(answering, answer);
		return;
	}
	bool own = packet->from == answering->core->options.number;
	packet->answers[place->index] = *answer;
	packet->open--;
	if (own)
		answering_to_surface(answering, answer);
	if (packet->open > 0)
		return;
	if (own) {
		answering_put_back(answering, packet);
	} else {
		packet->back = true;
		mail_send(answering->mail, packet->from, packet);
	}
}
