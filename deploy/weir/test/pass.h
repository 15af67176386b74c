/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One case, judged from an empty state: its lines through the collector's reader and matcher, and the limiter's lanes,
 * in the order in which they are given. What came of them is noted; whether it is right is asked elsewhere
 * (expectations.h).
 */
#ifndef DEPLOY_WEIR_TEST_PASS_H
#define DEPLOY_WEIR_TEST_PASS_H

#include "deploy/weir/explain/question.h"
#include "deploy/weir/test/subject.h"
#include "limiter/shard/shard.h"

enum { PASS_DECISIONS_MAX = 100000, PASS_LINES_KEPT_MAX_BYTES = 64 << 20 };

/* A decision that was made. */
struct pass_decision {
	uint32_t line; /* the newest one then; 0: a command before the first */
	uint32_t partition, index;
	uint64_t offset; /* with partition and index its id */
	bool by_limit;   /* else an operator's command made it */
	const struct weir_zone *zone;
	struct weir_text key; /* joined */
	bool block;
	int64_t at_ms, until_ms, count;
	struct weir_text text; /* as it is published */
};

/* The newest event that an expected decision could have come from. */
struct pass_event {
	uint32_t line; /* 0: there was none */
	const struct weir_zone *zone;
	unsigned verdict; /* enum weir_verdict_bits */
	bool done;
	uint32_t held_count;
	struct shard_held held[WEIR_ZONE_LIMITS_MAX]; /* by its limits, after it */
};

struct pass_counts {
	int64_t passed, blocked, decisions;
};

/* A line of a case, so that explanations can show it. */
struct pass_line {
	size_t begin, length; /* in the texts */
	const char *file;     /* borrowed; NULL: it stands in the case */
	uint64_t number;      /* in the file */
};

struct pass {
	const struct subject *subject; /* borrowed, as are the next two */
	const struct test_case *of;
	const char *folder; /* that paths are relative to */
	/* what the case names, in its order */
	struct subject_key *decision_keys, *count_keys;
	/* what came of it */
	struct pass_decision *decisions;
	size_t decision_count, decision_room;
	struct pass_event *events;  /* by expected decision */
	struct pass_counts *counts; /* by expected count */
	struct pass_line *lines;
	size_t line_count, line_room;
	struct weir_text texts;
	int64_t malformed, skipped;
	uint32_t malformed_line; /* the first of them */
	const struct test_given *malformed_given;
	uint32_t skipped_line; /* the first of them */
	const struct test_given *skipped_given;
	char malformed_words[WEIR_ERROR_TEXT_BYTES]; /* why, and what would help */
};

/**
 * Runs a case.
 *
 * @param questions  about decisions of an earlier pass, by their ids and keys: answered; NULL: none
 * @param pass       filled in; pass_deinit() in any case
 * @return WEIR_OK; WEIR_INVALID: the case cannot be run, as it names what is not there; WEIR_IO: of a file
 */
WEIR_MUST_USE enum weir_status pass_run(const struct subject *subject, const struct test_case *of, const char *folder,
                                        struct question *questions, size_t count, struct pass *pass,
                                        struct weir_error *error);
void pass_deinit(struct pass *pass);

/** The text of a line, from 1 on; at NULL: it was not kept. */
struct weir_span pass_line_text(const struct pass *pass, uint64_t line);

#endif
