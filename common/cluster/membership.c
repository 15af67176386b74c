/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The group's protocol requires frequent polling, whatever the workers wait for,
 * so it has a thread of its own. Assignments are passed on as they come. If one
 * comes late, that only costs work which the store refuses, as epochs decide about
 * ownership. So losing membership, as in an outage, does not take partitions away
 * by itself: usually the group assigns the same ones again a moment later.
 */
#include "common/cluster/membership.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/deadline.h"
#include "common/bus/kafka/bus_kafka.h"
#include "common/log/stall.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
	POLL_MS = 50,
	NAP_MS = 100,
	SILENT_MS = 15000, /* longer than a rebalance takes, even if a member has died */
	LEAVE_LIMIT_MS = 10000,
};

struct weir_membership {
	struct weir_bus *bus;
	const char *role;
	struct weir_assignment *assignment;
	const struct weir_log *log;
	pthread_t thread;
	_Atomic bool stop, failed;
	pthread_mutex_t mutex; /* for: */
	pthread_cond_t left;
	bool has_left;
	struct weir_fault fault;
	bool given[];
};

/* Logs a failure, unless the bus as a whole has a problem, which it logs itself. @return whether to try again */
static bool told(struct weir_membership *membership, enum weir_status status, const struct weir_error *error)
{
	char problem[WEIR_ERROR_TEXT_BYTES];
	if (status == WEIR_IO) {
		if (!membership->bus->ops->problem(membership->bus, problem, sizeof problem))
			weir_fault_raise(&membership->fault, membership->log, "group",
			                 "%s. Partitions that this process has go on; it gets no others. Retrying "
			                 "(runbook: broker-away)",
			                 error->text);
		return true;
	}
	weir_log(membership->log, WEIR_LOG_ERROR, "group", "%s", error->text);
	atomic_store(&membership->failed, true);
	return false;
}

static void *serve(void *context)
{
	struct weir_membership *membership = context;
	struct weir_group *group = NULL;
	struct weir_error error;
	uint64_t generation = 0;
	int64_t heard_ms = weir_monotonic_ms();
	struct weir_stall stall = {0};
	while (!atomic_load(&membership->stop)) {
		enum weir_status status = group == NULL
		                              ? weir_group_join(membership->bus, membership->role, &group, &error)
		                              : weir_group_poll(group, POLL_MS, membership->given, &generation, &error);
		if (generation > 0)
			weir_assignment_set(membership->assignment, membership->given, generation);
		else
			weir_assignment_lose(membership->assignment);
		if (status != WEIR_OK && !told(membership, status, &error))
			break;
		if (group == NULL) /* otherwise weir_group_poll() has waited */
			nanosleep(&(struct timespec){.tv_nsec = NAP_MS * 1000000L}, NULL);
		/* librdkafka reports no error while the coordinator is down. It keeps asking, and the group assigns nothing. */
		int64_t now_ms = weir_monotonic_ms();
		bool stood = weir_stall_turn(&stall, weir_clock_ms(CLOCK_BOOTTIME), NAP_MS) > 0; /* who did not listen */
		if (generation > 0 || status != WEIR_OK || stood)
			heard_ms = now_ms;
		if (status == WEIR_OK && generation > 0)
			weir_fault_over(&membership->fault, membership->log, "group", "the consumer group has assigned partitions");
		else if (status == WEIR_OK && now_ms - heard_ms >= SILENT_MS)
			weir_fault_raise(
				&membership->fault, membership->log, "group",
				"the %ss' consumer group has assigned nothing for %d s: the broker that coordinates it is down, or it "
				"waits for a member that hangs. This process gets no partitions until then; other members go on. "
				"Waiting. Look for a %s that hangs, and at the brokers' logs (runbook: broker-away)",
				membership->role, SILENT_MS / 1000, membership->role);
	}
	if (group != NULL)
		weir_group_leave(group);
	pthread_mutex_lock(&membership->mutex);
	membership->has_left = true;
	pthread_cond_signal(&membership->left);
	pthread_mutex_unlock(&membership->mutex);
	return NULL;
}

static void membership_free(struct weir_membership *membership)
{
	pthread_cond_destroy(&membership->left);
	pthread_mutex_destroy(&membership->mutex);
	free(membership);
}

enum weir_status weir_membership_start(struct weir_bus *bus, const char *role, struct weir_assignment *assignment,
                                       const struct weir_log *log, struct weir_membership **out,
                                       struct weir_error *error)
{
	struct weir_membership *membership =
		weir_alloc(1, sizeof *membership + bus->partitions * sizeof membership->given[0]);
	membership->bus = bus;
	membership->role = role;
	membership->assignment = assignment;
	membership->log = log;
	pthread_mutex_init(&membership->mutex, NULL);
	weir_condition_init(&membership->left);
	int failed = pthread_create(&membership->thread, NULL, serve, membership);
	if (failed != 0) {
		membership_free(membership);
		return weir_fail(error, WEIR_IO, "cannot start the consumer group's thread: %s", weir_errno_words(failed));
	}
	*out = membership;
	return WEIR_OK;
}

bool weir_membership_failed(const struct weir_membership *membership)
{
	return atomic_load(&membership->failed);
}

bool weir_membership_leave(struct weir_membership *membership)
{
	if (membership == NULL)
		return true;
	atomic_store(&membership->stop, true);
	struct weir_deadline deadline = weir_deadline_in_ms(LEAVE_LIMIT_MS);
	pthread_mutex_lock(&membership->mutex);
	while (!membership->has_left && weir_condition_wait(&membership->left, &membership->mutex, &deadline))
		continue;
	bool has_left = membership->has_left;
	pthread_mutex_unlock(&membership->mutex);
	if (!has_left)
		return false;
	pthread_join(membership->thread, NULL);
	membership_free(membership);
	return true;
}
