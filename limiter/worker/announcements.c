/* SPDX-License-Identifier: Apache-2.0 */
/* The words of partitions' troubles. How many lines they are is decided by common/log/partition_faults.h. */
#include "limiter/worker/announcements.h"

#include <stdio.h>
#include <string.h>

enum { FENCED_MANY = 3 }; /* once or twice is ordinary where limiters restart */

void announcements_init(struct announcements *announcements, uint32_t partitions, const struct weir_log *log)
{
	*announcements = (struct announcements){0};
	weir_partition_faults_init(&announcements->faults, partitions, log, "limiter");
}

void announcements_deinit(struct announcements *announcements)
{
	weir_partition_faults_deinit(&announcements->faults);
}

/* The reason stays while it lasts: the words of a store that is away change from one attempt to the next. */
static void raise_paused(struct announcements *announcements, uint32_t partition,
                         void (*why)(void *context, struct weir_text *text), void *context)
{
	if (!announcements->paused && why != NULL) {
		struct weir_text text = {0};
		why(context, &text);
		snprintf(announcements->why, sizeof announcements->why, "%.*s", (int)text.length, text.at);
		weir_text_deinit(&text);
	}
	announcements->paused = true;
	weir_partition_faults_raise(&announcements->faults, partition, WEIR_LOG_ERROR, "paused", announcements->why);
}

static void raise_fenced(struct announcements *announcements, uint32_t partition, uint32_t times)
{
	if (times < FENCED_MANY)
		weir_partition_faults_raise(
			&announcements->faults, partition, WEIR_LOG_INFO, "held by another limiter",
			"it took them meanwhile, as is usual after a restart. Taking them back if they stay "
			"assigned to this one; nothing is lost");
	else
		weir_partition_faults_raise(
			&announcements->faults, partition, WEIR_LOG_WARNING, "held by another limiter",
			"it takes them again and again, though the consumer group assigns them to this one. Verdicts stay right, but "
			"come late. Look for a limiter that hangs, or one of another bus.prefix with the same store "
			"(runbook: limiter-lag)");
}

void announcements_look(struct announcements *announcements, uint32_t partition, const struct worker_partition *look,
                        bool given, void (*why)(void *context, struct weir_text *text), void *context)
{
	if (!given && look->state == WORKER_EMPTY)
		weir_partition_faults_forget(&announcements->faults, partition);
	else if (look->error[0] != '\0')
		weir_partition_faults_raise(&announcements->faults, partition, WEIR_LOG_ERROR, "stopped", look->error);
	else if (look->state == WORKER_PARKED)
		raise_fenced(announcements, partition, look->fenced);
	else if (look->paused && (look->state == WORKER_LIVE || look->state == WORKER_PAUSED))
		raise_paused(announcements, partition, why, context);
	else if (look->state == WORKER_LIVE)
		weir_partition_faults_clear(&announcements->faults, partition);
}

void announcements_tell(struct announcements *announcements)
{
	bool paused = false;
	weir_partition_faults_tell(&announcements->faults);
	for (int i = 0; i < WEIR_PARTITION_CAUSES_MAX && !paused; i++)
		paused = announcements->faults.causes[i].on && strcmp(announcements->faults.causes[i].state, "paused") == 0;
	announcements->paused = paused;
}
