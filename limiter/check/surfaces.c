/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells the surfaces of one thread apart by their tickets, and waits for all of them by one descriptor. Whatever surface a
 * check comes by, it is durable if its zone is, and answered here if its key is exempt.
 */
#include "limiter/check/surfaces.h"

#include "common/algorithm/limit_state.h"
#include "common/base/alloc.h"
#include "common/policy/policy.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

struct member {
	struct surfaces *all;
	uint64_t tickets; /* stands above its own */
	struct check_judge judge;
	struct check_surface surface;
};

struct surfaces {
	struct check_judge judge;
	const struct weir_policy *policy; /* that was looked through, with its version, for zones that are durable */
	uint64_t policy_version;
	bool has_durable;
	int epoll, failed; /* failed: errno of its making; 0: it is there */
	uint32_t count;
	struct member members[SURFACES_MAX];
};

/* @return the policy in force, if some zone of it is durable; NULL: none is */
static const struct weir_policy *durable_policy(struct surfaces *surfaces)
{
	const struct weir_policy *policy = surfaces->judge.policy(surfaces->judge.context);
	if (policy == NULL)
		return NULL;
	if (policy != surfaces->policy || policy->version != surfaces->policy_version) {
		surfaces->policy = policy;
		surfaces->policy_version = policy->version;
		surfaces->has_durable = false;
		for (uint32_t i = 0; i < policy->zone_count; i++)
			surfaces->has_durable |= policy->zones[i].durable;
	}
	return surfaces->has_durable ? policy : NULL;
}

static void mark_durable(struct surfaces *surfaces, struct check_ask *asks, uint32_t count)
{
	const struct weir_policy *policy = durable_policy(surfaces);
	const struct weir_zone *zone = NULL;
	for (uint32_t i = 0; policy != NULL && i < count; i++) {
		if (i == 0 || !weir_span_equal(asks[i].zone, asks[i - 1].zone))
			zone = weir_policy_zone_named(policy, asks[i].zone);
		asks[i].durable |= zone != NULL && zone->durable;
	}
}

/* What a key is told that is not counted: the numbers of an empty bucket's tightest limit. */
static struct check_answer exempt_answer(struct surfaces *surfaces, const struct check_ask *ask)
{
	const struct weir_policy *policy = surfaces->judge.policy(surfaces->judge.context);
	const struct weir_zone *zone = policy != NULL ? weir_policy_zone_named(policy, ask->zone) : NULL;
	struct check_answer answer = {.outcome = CHECK_NO_ZONE, .retry_after_ms = -1, .ticket = ask->ticket};
	for (uint32_t i = 0; zone != NULL && i < zone->limit_count; i++) {
		struct weir_limit_shape shape = weir_limit_shape_of(&zone->limits[i], zone->count_all);
		if (i > 0 && shape.capacity >= answer.limit)
			continue;
		answer.outcome = ask->kind == CHECK_SETTLES ? CHECK_SETTLED : CHECK_PASSED;
		answer.limit = answer.remaining = shape.capacity;
		answer.window_ms = weir_limit_capacity_ms(&shape);
	}
	answer.reserved = ask->kind == CHECK_RESERVES;
	memcpy(answer.reservation, CHECK_RESERVATION_OF_EXEMPT, sizeof answer.reservation);
	return answer;
}

static void ask(void *context, const struct check_ask *asks, uint32_t count, struct check_answer *answers)
{
	const struct member *member = context;
	struct check_ask marked[CHECK_GROUP_MAX];
	struct check_answer told[CHECK_GROUP_MAX];
	uint32_t places[CHECK_GROUP_MAX], judged = 0;
	assert(count <= CHECK_GROUP_MAX);
	for (uint32_t i = 0; i < count; i++) {
		assert(asks[i].ticket < CHECK_TICKET_END);
		if (asks[i].exempt) {
			answers[i] = exempt_answer(member->all, &asks[i]);
			continue;
		}
		marked[judged] = asks[i];
		marked[judged].ticket |= member->tickets;
		places[judged++] = i;
	}
	if (judged == 0)
		return;
	mark_durable(member->all, marked, judged);
	struct check_answer *into = judged == count ? answers : told;
	member->all->judge.ask(member->all->judge.context, marked, judged, into);
	for (uint32_t i = 0; i < judged; i++) {
		into[i].ticket &= CHECK_TICKET_END - 1;
		if (into == told)
			answers[places[i]] = told[i];
	}
}

static const struct weir_policy *policy(void *context)
{
	const struct member *member = context;
	return member->all->judge.policy(member->all->judge.context);
}

struct surfaces *surfaces_new(const struct check_judge *judge)
{
	struct surfaces *surfaces = weir_alloc(1, sizeof *surfaces);
	surfaces->judge = *judge;
	surfaces->epoll = epoll_create1(EPOLL_CLOEXEC);
	surfaces->failed = surfaces->epoll < 0 ? errno : 0;
	for (uint32_t i = 0; i < SURFACES_MAX; i++)
		surfaces->members[i] =
			(struct member){.all = surfaces,
		                    .tickets = i * CHECK_TICKET_END,
		                    .judge = {.context = &surfaces->members[i], .ask = ask, .policy = policy}};
	return surfaces;
}

void surfaces_free(struct surfaces *surfaces)
{
	if (surfaces == NULL)
		return;
	for (uint32_t i = 0; i < surfaces->count; i++)
		surfaces->members[i].surface.free(surfaces->members[i].surface.context);
	if (surfaces->epoll >= 0)
		close(surfaces->epoll);
	free(surfaces);
}

const struct check_judge *surfaces_judge(struct surfaces *surfaces)
{
	assert(surfaces->count < SURFACES_MAX);
	return &surfaces->members[surfaces->count].judge;
}

enum weir_status surfaces_add(struct surfaces *surfaces, const struct check_surface *surface, struct weir_error *error)
{
	struct member *member = &surfaces->members[surfaces->count++];
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = member};
	member->surface = *surface;
	if (surfaces->epoll < 0 || epoll_ctl(surfaces->epoll, EPOLL_CTL_ADD, surface->descriptor, &event) != 0)
		return weir_fail(error, WEIR_IO, "cannot wait for checks: %s",
		                 weir_errno_words(surfaces->failed != 0 ? surfaces->failed : errno));
	return WEIR_OK;
}

/* Each is served: one that has nothing to do finds out by one call of the system. */
static void serve(void *context)
{
	struct surfaces *surfaces = context;
	for (uint32_t i = 0; i < surfaces->count; i++)
		surfaces->members[i].surface.serve(surfaces->members[i].surface.context);
}

static void answered(void *context, const struct check_answer *answer)
{
	struct surfaces *surfaces = context;
	struct check_answer own = *answer;
	struct member *member = &surfaces->members[answer->ticket / CHECK_TICKET_END];
	own.ticket &= CHECK_TICKET_END - 1;
	member->surface.answered(member->surface.context, &own);
}

static void stop(void *context)
{
	struct surfaces *surfaces = context;
	for (uint32_t i = 0; i < surfaces->count; i++)
		surfaces->members[i].surface.stop(surfaces->members[i].surface.context);
}

static void end(void *context)
{
	struct surfaces *surfaces = context;
	for (uint32_t i = 0; i < surfaces->count; i++)
		surfaces->members[i].surface.end(surfaces->members[i].surface.context);
}

static void free_all(void *context)
{
	surfaces_free(context);
}

struct check_surface surfaces_all(struct surfaces *surfaces)
{
	return (struct check_surface){.context = surfaces,
	                              .descriptor = surfaces->epoll,
	                              .serve = serve,
	                              .answered = answered,
	                              .stop = stop,
	                              .end = end,
	                              .free = free_all};
}
