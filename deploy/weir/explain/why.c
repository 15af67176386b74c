/* SPDX-License-Identifier: Apache-2.0 */
/* It reads the state from beside the run that it is part of, as the command does: nothing that judges is touched. */
#include "deploy/weir/explain/why.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "deploy/weir/explain/answer.h"
#include "deploy/weir/explain/explain_work.h"

#include <pthread.h>
#include <stdlib.h>

enum { PATIENCE_MS = 10000 };

struct why {
	const char *state_path;
	uint32_t partitions;
	pthread_mutex_t one; /* explaining takes a processor and memory: never for two at once */
};

struct why *why_new(const char *state_path, uint32_t partitions)
{
	struct why *why = weir_alloc(1, sizeof *why);
	why->state_path = state_path;
	why->partitions = partitions;
	pthread_mutex_init(&why->one, NULL);
	return why;
}

void why_free(struct why *why)
{
	if (why == NULL)
		return;
	pthread_mutex_destroy(&why->one);
	free(why);
}

enum weir_status why_answer(void *context, const char *id, struct weir_text *json, struct weir_error *error)
{
	struct why *why = context;
	struct patience patience = {.until_ms = weir_monotonic_ms() + PATIENCE_MS};
	struct explain_asked asked = {
		.words = &id, .count = 1, .state_path = why->state_path, .stays = true, .patience = &patience};
	struct question parsed = {0};
	const struct question **questions;
	struct explain *explain;
	if (!question_parse_id(id, &parsed))
		return weir_fail(error, WEIR_INVALID, "expected a decision's id, such as 3-1841-0");
	if (parsed.partition >= why->partitions)
		return weir_fail(error, WEIR_INVALID, "there are %u partitions, from 0 on", why->partitions);
	if (pthread_mutex_trylock(&why->one) != 0)
		return weir_fail(error, WEIR_IO, "another decision is being explained: ask again");
	enum weir_status status = explain_work(&asked, &explain, error);
	if (status == WEIR_OK && explain_answers(explain, &questions) == 1)
		answer_json(json, questions[0]);
	explain_free(explain);
	pthread_mutex_unlock(&why->one);
	return status == WEIR_INVALID ? WEIR_IO : status; /* the id was right: the state is what is wrong */
}
