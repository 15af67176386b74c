/* SPDX-License-Identifier: Apache-2.0 */
/* One thread that wakes each second; a fault is logged once, and the list is retried. */
#include "deploy/gateways/subscriber/ager.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/deadline.h"

#include <pthread.h>
#include <stdlib.h>

enum { EACH_MS = 1000 };

struct ager {
	struct target *target;
	const struct weir_log *log;
	struct weir_fault fault;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stopping;
};

static void age(struct ager *ager)
{
	struct weir_error error;
	const char *kind = ager->target->ops->kind;
	if (ager->target->ops->age(ager->target, weir_wall_ms(), &error) == WEIR_OK)
		weir_fault_clear(&ager->fault, ager->log, kind);
	else
		weir_fault_raise(&ager->fault, ager->log, kind, "cannot remove expired blocks: %s", error.text);
}

static void *run(void *context)
{
	struct ager *ager = context;
	pthread_mutex_lock(&ager->lock);
	while (!ager->stopping) {
		pthread_mutex_unlock(&ager->lock);
		age(ager);
		pthread_mutex_lock(&ager->lock);
		struct weir_deadline deadline = weir_deadline_in_ms(EACH_MS);
		while (!ager->stopping && weir_condition_wait(&ager->wake, &ager->lock, &deadline))
			continue;
	}
	pthread_mutex_unlock(&ager->lock);
	return NULL;
}

static void free_all(struct ager *ager)
{
	pthread_cond_destroy(&ager->wake);
	pthread_mutex_destroy(&ager->lock);
	free(ager);
}

struct ager *ager_start(struct target *target, const struct weir_log *log)
{
	if (target->ops->age == NULL)
		return NULL;
	struct ager *ager = weir_alloc(1, sizeof *ager);
	ager->target = target;
	ager->log = log;
	pthread_mutex_init(&ager->lock, NULL);
	weir_condition_init(&ager->wake);
	if (pthread_create(&ager->thread, NULL, run, ager) == 0)
		return ager;
	weir_log(log, WEIR_LOG_WARNING, target->ops->kind,
	         "cannot start a thread: expired blocks stay on the list until the topic is read");
	free_all(ager);
	return NULL;
}

void ager_stop(struct ager *ager)
{
	if (ager == NULL)
		return;
	pthread_mutex_lock(&ager->lock);
	ager->stopping = true;
	pthread_cond_signal(&ager->wake);
	pthread_mutex_unlock(&ager->lock);
	pthread_join(ager->thread, NULL);
	free_all(ager);
}
