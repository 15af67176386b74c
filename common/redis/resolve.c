/* SPDX-License-Identifier: Apache-2.0 */
/* Questions stand in a table of the process, as the threads that ask them may outlive whoever wanted to know. */
#include "common/redis/resolve.h"

#include "common/base/clock.h"
#include "common/base/deadline.h"

#include <netdb.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

struct question {
	char host[WEIR_RESOLVE_HOST_BYTES]; /* "": unused */
	bool asked;                         /* a thread waits for its answer */
	int why;                            /* of getaddrinfo; 0: found */
	int64_t answered_ms;                /* monotonic; 0: it was not */
	struct weir_resolved found;
};

static pthread_once_t prepared = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t answered; /* some question */
static struct question questions[WEIR_RESOLVE_NAMES_MAX];

static void prepare(void)
{
	weir_condition_init(&answered);
}

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

static void *ask(void *context)
{
	struct question *question = context;
	char host[WEIR_RESOLVE_HOST_BYTES];
	struct weir_resolved found;
	pthread_mutex_lock(&lock);
	memcpy(host, question->host, sizeof host);
	pthread_mutex_unlock(&lock);
	int why = look_up(host, 0, &found);
	pthread_mutex_lock(&lock);
	question->why = why;
	question->found = found;
	question->answered_ms = weir_monotonic_ms();
	question->asked = false;
	pthread_cond_broadcast(&answered);
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* The question of a host, or the place for it: of those that are answered, the oldest. @return NULL: there is none */
static struct question *place_of(const char *host)
{
	struct question *oldest = NULL;
	for (size_t i = 0; i < WEIR_RESOLVE_NAMES_MAX; i++) {
		struct question *question = &questions[i];
		if (strcmp(question->host, host) == 0)
			return question;
		if (!question->asked && (oldest == NULL || question->answered_ms < oldest->answered_ms))
			oldest = question;
	}
	return oldest;
}

/* @return whether a thread asks now */
static bool begin(struct question *question, const char *host)
{
	pthread_t thread;
	snprintf(question->host, sizeof question->host, "%s", host);
	question->answered_ms = 0;
	question->asked = pthread_create(&thread, NULL, ask, question) == 0;
	if (question->asked)
		pthread_detach(thread);
	return question->asked;
}

static enum weir_status wait_for(const char *host, int timeout_ms, struct weir_resolved *found,
                                 struct weir_error *error)
{
	struct weir_deadline deadline = weir_deadline_in_ms(timeout_ms);
	struct question *question = place_of(host);
	bool known = question != NULL && strcmp(question->host, host) == 0;
	bool fresh =
		known && question->answered_ms > 0 && weir_monotonic_ms() - question->answered_ms < WEIR_RESOLVE_KEPT_MS;
	if (question == NULL || (!(known && question->asked) && !fresh && !begin(question, host)))
		return weir_fail(error, WEIR_IO, "cannot ask for its address now");
	while (question->asked && weir_condition_wait(&answered, &lock, &deadline))
		;
	/* While nobody looked, another name may have been given the place. */
	if (question->asked || strcmp(question->host, host) != 0)
		return weir_fail(error, WEIR_IO, "the name servers do not answer in time");
	*found = question->found;
	return question->why == 0 ? WEIR_OK : weir_fail(error, WEIR_IO, "%s", gai_strerror(question->why));
}

enum weir_status weir_resolve(const char *host, int timeout_ms, struct weir_resolved *found, struct weir_error *error)
{
	if (look_up(host, AI_NUMERICHOST, found) == 0)
		return WEIR_OK;
	if (strlen(host) >= WEIR_RESOLVE_HOST_BYTES)
		return weir_fail(error, WEIR_IO, "%s", gai_strerror(EAI_NONAME));
	pthread_once(&prepared, prepare);
	pthread_mutex_lock(&lock);
	enum weir_status status = wait_for(host, timeout_ms, found, error);
	pthread_mutex_unlock(&lock);
	return status;
}
