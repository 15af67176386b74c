/* SPDX-License-Identifier: Apache-2.0 */
/* A question belongs to who wants to know and to the thread that asks: the last of both frees it. */
#include "common/redis/resolve.h"

#include "common/base/alloc.h"
#include "common/base/deadline.h"

#include <netdb.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct question_state {
	pthread_mutex_t lock;
	pthread_cond_t answered;
	bool given_up; /* nobody wants to know any more */
	bool done;
	int why; /* of getaddrinfo; 0: found */
	char host[WEIR_RESOLVE_HOST_BYTES];
	struct weir_resolved found;
};

struct weir_question {
	struct question_state *asked; /* NULL: nothing is */
};

/* @return 0, or what getaddrinfo said */
static int look_up(const char *host, int flags, struct weir_resolved *found)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags}, *list;
	int why = getaddrinfo(host, NULL, &hints, &list);
	found->count = 0;
	if (why != 0)
		return why;
	for (const struct addrinfo *at = list; at != NULL && found->count < WEIR_RESOLVE_ADDRESSES_MAX; at = at->ai_next)
		if (getnameinfo(at->ai_addr, at->ai_addrlen, found->addresses[found->count], WEIR_RESOLVE_ADDRESS_BYTES, NULL,
		                0, NI_NUMERICHOST) == 0)
			found->count++;
	freeaddrinfo(list);
	return found->count > 0 ? 0 : EAI_NONAME;
}

static void free_state(struct question_state *state)
{
	pthread_cond_destroy(&state->answered);
	pthread_mutex_destroy(&state->lock);
	free(state);
}

static void *ask(void *context)
{
	struct question_state *state = context;
	struct weir_resolved found;
	int why = look_up(state->host, 0, &found);
	pthread_mutex_lock(&state->lock);
	bool last = state->given_up;
	state->why = why;
	state->found = found;
	state->done = true;
	pthread_cond_signal(&state->answered);
	pthread_mutex_unlock(&state->lock);
	if (last)
		free_state(state);
	return NULL;
}

/* @return NULL: no thread can be had */
static struct question_state *begin(const char *host)
{
	pthread_t thread;
	struct question_state *state = weir_alloc(1, sizeof *state);
	pthread_mutex_init(&state->lock, NULL);
	weir_condition_init(&state->answered);
	snprintf(state->host, sizeof state->host, "%s", host);
	if (pthread_create(&thread, NULL, ask, state) != 0) {
		free_state(state);
		return NULL;
	}
	pthread_detach(thread);
	return state;
}

static void give_up(struct weir_question *question)
{
	struct question_state *state = question->asked;
	if (state == NULL)
		return;
	question->asked = NULL;
	pthread_mutex_lock(&state->lock);
	bool last = state->done;
	state->given_up = true;
	pthread_mutex_unlock(&state->lock);
	if (last)
		free_state(state);
}

struct weir_question *weir_question_new(void)
{
	return weir_alloc(1, sizeof(struct weir_question));
}

void weir_question_free(struct weir_question *question)
{
	if (question == NULL)
		return;
	give_up(question);
	free(question);
}

/* @return whether it was answered in time */
static bool wait_for(struct question_state *state, int timeout_ms)
{
	struct weir_deadline deadline = weir_deadline_in_ms(timeout_ms);
	pthread_mutex_lock(&state->lock);
	while (!state->done && weir_condition_wait(&state->answered, &state->lock, &deadline))
		;
	bool done = state->done;
	pthread_mutex_unlock(&state->lock);
	return done;
}

enum weir_status weir_resolve(struct weir_question *question, const char *host, int timeout_ms,
                              struct weir_resolved *found, struct weir_error *error)
{
	if (look_up(host, AI_NUMERICHOST, found) == 0)
		return WEIR_OK;
	if (strlen(host) >= WEIR_RESOLVE_HOST_BYTES)
		return weir_fail(error, WEIR_IO, "%s", gai_strerror(EAI_NONAME));
	if (question->asked != NULL && strcmp(question->asked->host, host) != 0)
		give_up(question);
	if (question->asked == NULL && (question->asked = begin(host)) == NULL)
		return weir_fail(error, WEIR_IO, "cannot start a thread that asks for its address");
	if (!wait_for(question->asked, timeout_ms))
		return weir_fail(error, WEIR_IO, "the name servers do not answer in time");
	*found = question->asked->found;
	int why = question->asked->why;
	give_up(question);
	return why == 0 ? WEIR_OK : weir_fail(error, WEIR_IO, "%s", gai_strerror(why));
}
