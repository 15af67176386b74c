/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of C11 by those of POSIX, for builds with ThreadSanitizer.
 *
 * librdkafka makes its threads and locks by the C library's thrd_create() and
 * mtx_lock(), which ThreadSanitizer does not know: it would crash in the first
 * such thread, and see no order in what they hand over. A program that defines
 * these functions itself is preferred by the loader; here they call what
 * ThreadSanitizer intercepts. The types are the C library's own, which are those
 * of POSIX under another name.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <threads.h>

_Static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t), "mtx_t is a pthread_mutex_t");
_Static_assert(sizeof(cnd_t) == sizeof(pthread_cond_t), "cnd_t is a pthread_cond_t");

static int result_of(int failed)
{
	switch (failed) {
	case 0: return thrd_success;
	case ENOMEM: return thrd_nomem;
	case EBUSY: return thrd_busy;
	case ETIMEDOUT: return thrd_timedout;
	default: return thrd_error;
	}
}

static pthread_mutex_t *mutex_of(mtx_t *mutex)
{
	return (pthread_mutex_t *)(void *)mutex;
}

static pthread_cond_t *condition_of(cnd_t *condition)
{
	return (pthread_cond_t *)(void *)condition;
}

/* ---- threads ---- */

struct start {
	thrd_start_t function;
	void *argument;
};

static void *run(void *context)
{
	struct start start = *(struct start *)context;
	free(context);
	return (void *)(long)start.function(start.argument);
}

int thrd_create(thrd_t *thread, thrd_start_t function, void *argument)
{
	struct start *start = malloc(sizeof *start);
	if (start == NULL)
		return thrd_nomem;
	*start = (struct start){function, argument};
	int failed = pthread_create(thread, NULL, run, start);
	if (failed != 0)
		free(start);
	return result_of(failed);
}

int thrd_join(thrd_t thread, int *result)
{
	void *value = NULL;
	int failed = pthread_join(thread, &value);
	if (result != NULL)
		*result = (int)(long)value;
	return result_of(failed);
}

int thrd_detach(thrd_t thread)
{
	return result_of(pthread_detach(thread));
}

/* ---- mutexes ---- */

int mtx_init(mtx_t *mutex, int type)
{
	pthread_mutexattr_t attributes;
	pthread_mutexattr_init(&attributes);
	if ((type & mtx_recursive) != 0)
		pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
	int failed = pthread_mutex_init(mutex_of(mutex), &attributes);
	pthread_mutexattr_destroy(&attributes);
	return result_of(failed);
}

int mtx_lock(mtx_t *mutex)
{
	return result_of(pthread_mutex_lock(mutex_of(mutex)));
}

int mtx_trylock(mtx_t *mutex)
{
	return result_of(pthread_mutex_trylock(mutex_of(mutex)));
}

int mtx_timedlock(mtx_t *mutex, const struct timespec *until)
{
	return result_of(pthread_mutex_timedlock(mutex_of(mutex), until));
}

int mtx_unlock(mtx_t *mutex)
{
	return result_of(pthread_mutex_unlock(mutex_of(mutex)));
}

void mtx_destroy(mtx_t *mutex)
{
	pthread_mutex_destroy(mutex_of(mutex));
}

/* ---- conditions ---- */

int cnd_init(cnd_t *condition)
{
	return result_of(pthread_cond_init(condition_of(condition), NULL));
}

int cnd_signal(cnd_t *condition)
{
	return result_of(pthread_cond_signal(condition_of(condition)));
}

int cnd_broadcast(cnd_t *condition)
{
	return result_of(pthread_cond_broadcast(condition_of(condition)));
}

int cnd_wait(cnd_t *condition, mtx_t *mutex)
{
	return result_of(pthread_cond_wait(condition_of(condition), mutex_of(mutex)));
}

int cnd_timedwait(cnd_t *condition, mtx_t *mutex, const struct timespec *until)
{
	return result_of(pthread_cond_timedwait(condition_of(condition), mutex_of(mutex), until));
}

void cnd_destroy(cnd_t *condition)
{
	pthread_cond_destroy(condition_of(condition));
}
