/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is wrong with partitions, told as one line for each cause, however many
 * partitions share it.
 *
 * Its owner looks at all partitions at intervals (a second or so), says of each
 * what it finds, and then lets it tell. A line waits until the set of a cause has
 * come to rest, as partitions that have the same trouble meet it one after another;
 * so one line tells that it began, and one that it is over. It is told again when
 * partitions join or leave it, and every ten minutes.
 */
#ifndef WEIR_COMMON_PARTITION_FAULTS_H
#define WEIR_COMMON_PARTITION_FAULTS_H

#include "common/base/text.h"
#include "common/log/log.h"

enum { WEIR_PARTITION_CAUSES_MAX = 8 }; /* at once; what comes after them is counted with the last one */

/* A cause and the partitions that have it. */
struct weir_partition_cause {
	bool on, told;
	enum weir_log_level level;
	const char *state; /* "stopped"; borrowed, of static storage */
	char text[1024];   /* of the lowest partition that has it */
	uint32_t lowest;
	int64_t since_ms, changed_ms, told_ms; /* by the log's clock */
};

/* Owned by the thread that looks. */
struct weir_partition_faults {
	const struct weir_log *log; /* borrowed */
	const char *part;           /* borrowed */
	uint32_t partitions;
	uint8_t *now, *told; /* by partition: 1 + its cause; 0: none. As found, and as the log says it */
	struct weir_partition_cause causes[WEIR_PARTITION_CAUSES_MAX];
};

void weir_partition_faults_init(struct weir_partition_faults *faults, uint32_t partitions, const struct weir_log *log,
                                const char *part);
void weir_partition_faults_deinit(struct weir_partition_faults *faults);

/**
 * It has a trouble. Words that differ in figures alone are one cause.
 *
 * @param state  what it is: "stopped", "paused"; of static storage
 */
void weir_partition_faults_raise(struct weir_partition_faults *faults, uint32_t partition, enum weir_log_level level,
                                 const char *state, const char *cause);
/** It has none, and works. One about which nothing is said keeps what it has. */
void weir_partition_faults_clear(struct weir_partition_faults *faults, uint32_t partition);
/** It is not this process's: nothing more is told of it. */
void weir_partition_faults_forget(struct weir_partition_faults *faults, uint32_t partition);

/** Logs what is to be told. */
void weir_partition_faults_tell(struct weir_partition_faults *faults);

/** Appends "partition 3", or "partitions 0-2, 7": those whose mark is `mark`. @return how many */
uint32_t weir_partitions_text(struct weir_text *text, const uint8_t *marks, uint32_t partitions, uint8_t mark);

#endif
