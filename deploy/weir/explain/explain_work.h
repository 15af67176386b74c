/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From what is asked to answers: finds the decisions as they were published, judges the log again up to them, and finds
 * the lines that their events came from. It writes nothing, and holds nothing that a running weir needs.
 */
#ifndef DEPLOY_WEIR_EXPLAIN_WORK_H
#define DEPLOY_WEIR_EXPLAIN_WORK_H

#include "deploy/weir/explain/patience.h"
#include "deploy/weir/explain/question.h"

enum { EXPLAIN_ASKED_MAX = 10000 };

struct explain_asked {
	const char *const *words;        /* ids of decisions, and keys: each stands for its newest decision in every zone */
	size_t count;                    /* 0: the only bucket of `zone`, whose key is empty */
	const char *zone;                /* of keys, only this one; NULL: any */
	const char *config_path;         /* NULL: none */
	bool config_given;               /* its sources count, instead of those that the state's run had */
	const char *state_path;          /* NULL: as backend_open() takes it */
	const char *decisions;           /* a file of published ones; NULL: none beside those that are known */
	const char *collector;           /* the state directory of a cluster's collector; NULL: none */
	bool stays;                      /* the paths of the run's sources start from where this process is */
	const struct patience *patience; /* NULL: as long as it takes */
};

struct explain;

/**
 * Does all that. What is missing is no error: the questions say it.
 *
 * @param asked    borrowed for as long as the result
 * @param explain  returned, also upon failure: explain_free()
 * @return WEIR_OK; WEIR_INVALID: what is asked makes no sense, or there is no such state; WEIR_IO, also where
 *         patience ended
 */
WEIR_MUST_USE enum weir_status explain_work(const struct explain_asked *asked, struct explain **explain,
                                            struct weir_error *error);
void explain_free(struct explain *explain);

/** The answers: by what was asked, and of a key by the policy's zones. A zone in which a key has none is left out. */
size_t explain_answers(struct explain *explain, const struct question ***questions);

#endif
