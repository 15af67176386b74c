/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client's number selects a few slots, one of which holds it. If all are taken,
 * the client whose debt expires first is replaced. Usually it has expired already,
 * so nothing is lost. Under a flood of clients one may get a fresh start, which is
 * better than unbounded memory.
 */
#include "archiver/api/api_rate.h"

#include "common/base/alloc.h"

#include <pthread.h>
#include <stdlib.h>

enum { SETS = 1024, PLACES = 8, SECOND_US = 1000 * 1000 };

struct client {
	uint64_t number;
	int64_t due_us; /* the theoretical arrival time; one that is past is as good as none */
};

struct api_rate {
	int64_t interval_us, burst_us; /* 0: all pass */
	pthread_mutex_t mutex;
	struct client clients[SETS][PLACES];
};

struct api_rate *api_rate_new(int64_t rate)
{
	struct api_rate *made = weir_alloc(1, sizeof *made);
	made->interval_us = rate > 0 ? SECOND_US / rate : 0;
	made->burst_us = (int64_t)API_RATE_BURST_S * SECOND_US;
	pthread_mutex_init(&made->mutex, NULL);
	return made;
}

void api_rate_free(struct api_rate *rate)
{
	if (rate == NULL)
		return;
	pthread_mutex_destroy(&rate->mutex);
	free(rate);
}

static struct client *find(struct client *set, uint64_t number)
{
	struct client *first = set;
	for (int i = 0; i < PLACES; i++) {
		if (set[i].number == number)
			return &set[i];
		if (set[i].due_us < first->due_us)
			first = &set[i];
	}
	*first = (struct client){.number = number};
	return first;
}

bool api_rate_take(struct api_rate *rate, uint64_t client, int64_t now_us, unsigned *wait_s)
{
	if (rate->interval_us == 0)
		return true;
	pthread_mutex_lock(&rate->mutex);
	struct client *found = find(rate->clients[client % SETS], client);
	int64_t due_us = (found->due_us > now_us ? found->due_us : now_us) + rate->interval_us;
	int64_t over_us = due_us - now_us - rate->burst_us;
	if (over_us <= 0)
		found->due_us = due_us;
	pthread_mutex_unlock(&rate->mutex);
	if (over_us > 0)
		*wait_s = (unsigned)((over_us + SECOND_US - 1) / SECOND_US);
	return over_us <= 0;
}
