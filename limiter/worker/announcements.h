/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the log says of a process's partitions: that they are stopped, or paused, or
 * another limiter's, and why; as one line however many they are, and one when they
 * are judged again.
 */
#ifndef LIMITER_ANNOUNCEMENTS_H
#define LIMITER_ANNOUNCEMENTS_H

#include "common/log/partition_faults.h"
#include "limiter/worker/worker.h"

/* Of one thread, which looks at all partitions about once a second. Zero-initialised. */
struct announcements {
	struct weir_partition_faults faults;
	bool paused;    /* some partition was, at the last look */
	char why[1024]; /* since then: why */
};

void announcements_init(struct announcements *announcements, uint32_t partitions, const struct weir_log *log);
void announcements_deinit(struct announcements *announcements);

/**
 * What was found of a partition.
 *
 * @param given  the process should have it
 * @param why    appends why no checkpoint is stored, what that means and what helps; called when partitions become
 *               paused; NULL: none ever is
 */
void announcements_look(struct announcements *announcements, uint32_t partition, const struct worker_partition *look,
                        bool given, void (*why)(void *context, struct weir_text *text), void *context);

/** After the partitions: logs what is news. */
void announcements_tell(struct announcements *announcements);

#endif
