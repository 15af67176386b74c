/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workers of an HTTP server: threads on which callbacks run, and a queue of
 * those who wait for one.
 *
 * A request that waits has its connection suspended, so it costs no thread. A
 * reply in parts comes back for each part, at the end of the queue: a reader,
 * fast or slow, holds a worker for as long as one part takes to make.
 *
 * A body that hardly comes makes room likewise, however often its sender was admitted.
 *
 * An idle connection is ended by libmicrohttpd; one that sends or takes a byte
 * now and then is not idle, and is cut here when its turn is over. Before all
 * connections are taken, the oldest of those that have not asked yet makes room for
 * each new one: who opens many and says nothing keeps nobody out.
 */
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/deadline.h"
#include "common/http/internal.h"
#include "common/log/log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>

enum {
	SWEEP_MS = 1000,
	SLOW_BYTES = 1024, /* of a body, between two sweeps */
	SLOW_SWEEPS = 3,
	TELL_MS = 10000,
};

struct worker {
	struct weir_http_pool *pool;
	unsigned number;
	pthread_t thread;
};

struct weir_http_pool {
	struct weir_http *http;
	struct worker *workers;
	unsigned worker_count, waiting_max;
	int64_t turn_ms;
	pthread_mutex_t mutex; /* of all that follows */
	pthread_cond_t changed;
	struct weir_http_exchange *first, *last;
	unsigned waiting, streams; /* of those in the queue, the requests; replies in parts */
	size_t held_bytes;
	size_t reply_bytes; /* of these, what replies hold until they are read */
	bool stopping;
	struct weir_http_client *clients, *oldest; /* the newest first */
	unsigned client_count, client_most;        /* beyond, whoever asks nothing makes room */
	int64_t sweep_at_ms;
	uint64_t slow_cut, slow_untold; /* of those that were cut as their bodies hardly came */
	int64_t tell_ms;
};

/* ---- connections ---- */

/* The mutex keeps the descriptors open. */
static void make_room(struct weir_http_pool *pool)
{
	if (pool->client_count <= pool->client_most)
		return;
	for (struct weir_http_client *client = pool->oldest; client != NULL; client = client->previous)
		if (!client->heard && !client->cut && client != pool->clients) { /* never who has just come */
			client->cut = true;
			shutdown(client->fd, SHUT_RDWR);
			return;
		}
}

struct weir_http_client *weir_http_pool_join(struct weir_http_pool *pool, int fd)
{
	struct weir_http_client *client = weir_alloc(1, sizeof *client);
	client->fd = fd;
	client->turn_ms = pool->turn_ms;
	weir_http_client_extend(client);
	pthread_mutex_lock(&pool->mutex);
	client->next = pool->clients;
	if (client->next != NULL)
		client->next->previous = client;
	else
		pool->oldest = client;
	pool->clients = client;
	pool->client_count++;
	make_room(pool);
	pthread_mutex_unlock(&pool->mutex);
	return client;
}

void weir_http_pool_leave(struct weir_http_pool *pool, struct weir_http_client *client)
{
	pthread_mutex_lock(&pool->mutex);
	if (client->previous != NULL)
		client->previous->next = client->next;
	else
		pool->clients = client->next;
	if (client->next != NULL)
		client->next->previous = client->previous;
	else
		pool->oldest = client->previous;
	pool->client_count--;
	pthread_mutex_unlock(&pool->mutex);
	free(client);
}

void weir_http_client_extend(struct weir_http_client *client)
{
	if (client != NULL)
		client->deadline_ms = weir_monotonic_ms() + client->turn_ms;
}

void weir_http_client_reward(struct weir_http_client *client, size_t bytes)
{
	if (client != NULL)
		client->deadline_ms += (int64_t)(bytes / WEIR_HTTP_BODY_LEAST_RATE);
	if (client != NULL && client->heard) { /* else it was not admitted, and makes room anyway */
		client->brought += bytes;
		client->brings = true;
	}
}

/* Looks at what a body brought since the last sweep. */
static void weigh(struct weir_http_client *client)
{
	uint64_t brought = client->brought;
	client->slow = client->brings && brought - client->swept < SLOW_BYTES ? client->slow + 1 : 0;
	client->swept = brought;
}

/* Says that bodies were cut, of many at once one. The caller holds the mutex. */
static void tell_slow(struct weir_http_pool *pool, uint64_t cut, int64_t now_ms)
{
	pool->slow_cut += cut;
	pool->slow_untold += cut;
	if (pool->slow_untold == 0 || now_ms < pool->tell_ms || pool->http->log == NULL)
		return;
	weir_log(pool->http->log, WEIR_LOG_WARNING, "http",
	         "port %u: %llu requests whose bodies came more slowly than %d bytes a second were cut, as others wait for "
	         "their connections",
	         pool->http->port, (unsigned long long)pool->slow_untold, SLOW_BYTES);
	pool->slow_untold = 0;
	pool->tell_ms = now_ms + TELL_MS;
}

/* Cuts those whose bodies hardly come, the oldest first, where connections run out. The caller holds the mutex. */
static void cut_slow(struct weir_http_pool *pool, int64_t now_ms)
{
	unsigned excess = pool->client_count > pool->client_most ? pool->client_count - pool->client_most : 0;
	uint64_t cut = 0;
	for (struct weir_http_client *client = pool->oldest; client != NULL; client = client->previous) {
		weigh(client);
		if (cut >= excess || client->slow < SLOW_SWEEPS || client->cut)
			continue;
		client->cut = true;
		shutdown(client->fd, SHUT_RDWR);
		cut++;
	}
	tell_slow(pool, cut, now_ms);
}

uint64_t weir_http_pool_slow_cut(struct weir_http_pool *pool)
{
	pthread_mutex_lock(&pool->mutex);
	uint64_t cut = pool->slow_cut;
	pthread_mutex_unlock(&pool->mutex);
	return cut;
}

/*
 * Cuts those whose time is over: the server's thread then finds them closed. The mutex keeps the descriptors open.
 *
 * @return false: it was done just before
 */
static bool sweep(struct weir_http_pool *pool, int64_t now_ms)
{
	if (now_ms < pool->sweep_at_ms)
		return false;
	pool->sweep_at_ms = now_ms + SWEEP_MS;
	for (struct weir_http_client *client = pool->clients; client != NULL; client = client->next)
		if (client->deadline_ms < now_ms)
			shutdown(client->fd, SHUT_RDWR);
	cut_slow(pool, now_ms);
	return true;
}

/* ---- the queue ---- */

/* The connection is suspended before a worker can see it. */
static void push(struct weir_http_pool *pool, struct weir_http_exchange *exchange)
{
	MHD_suspend_connection(exchange->connection);
	exchange->next = NULL;
	if (pool->last != NULL)
		pool->last->next = exchange;
	else
		pool->first = exchange;
	pool->last = exchange;
	pool->waiting += !exchange->answered;
	pthread_cond_signal(&pool->changed);
}

static struct weir_http_exchange *pop(struct weir_http_pool *pool)
{
	struct weir_http_exchange *exchange = pool->first;
	if (exchange == NULL)
		return NULL;
	pool->first = exchange->next;
	if (pool->first == NULL)
		pool->last = NULL;
	pool->waiting -= !exchange->answered;
	return exchange;
}

bool weir_http_pool_hold(struct weir_http_exchange *exchange, size_t bytes)
{
	struct weir_http_pool *pool = exchange->http->pool;
	pthread_mutex_lock(&pool->mutex);
	bool room = pool->held_bytes + bytes <= WEIR_HTTP_HELD_MAX_BYTES;
	if (room) {
		pool->held_bytes += bytes;
		exchange->body_held += bytes;
	}
	pthread_mutex_unlock(&pool->mutex);
	return room;
}

bool weir_http_pool_take(struct weir_http_exchange *exchange)
{
	struct weir_http_pool *pool = exchange->http->pool;
	pthread_mutex_lock(&pool->mutex);
	bool room = !pool->stopping && pool->waiting < pool->waiting_max && pool->held_bytes < WEIR_HTTP_HELD_MAX_BYTES;
	if (room) {
		if (exchange->client != NULL)
			exchange->client->heard = true;
		if (exchange->client != NULL)
			exchange->client->brings = false; /* it waits for us */
		exchange->away = true;
		push(pool, exchange);
	}
	pthread_mutex_unlock(&pool->mutex);
	return room;
}

bool weir_http_pool_again(struct weir_http_exchange *exchange)
{
	struct weir_http_pool *pool = exchange->http->pool;
	pthread_mutex_lock(&pool->mutex);
	bool running = !pool->stopping;
	if (running)
		push(pool, exchange); /* not among those that `waiting` bounds: there are few of these */
	pthread_mutex_unlock(&pool->mutex);
	return running;
}

void weir_http_pool_forget(struct weir_http_exchange *exchange)
{
	struct weir_http_pool *pool = exchange->http->pool;
	pthread_mutex_lock(&pool->mutex);
	pool->held_bytes -= exchange->held + exchange->body_held;
	pool->reply_bytes -= exchange->held;
	exchange->held = exchange->body_held = 0;
	pool->streams -= exchange->counted;
	pthread_mutex_unlock(&pool->mutex);
}

/* ---- the workers ---- */

/* Drops what was taken of a body; all of it, where no more is wanted. */
static void drop_body(struct weir_http_exchange *exchange)
{
	struct weir_http_pool *pool = exchange->http->pool;
	size_t left = exchange->answered ? 0 : exchange->body.length - exchange->taken;
	if (left > 0)
		memmove(exchange->body.at, exchange->body.at + exchange->taken, left);
	else
		weir_text_deinit(&exchange->body);
	if (left == 0)
		exchange->body = (struct weir_text){0};
	exchange->body.length = left;
	pthread_mutex_lock(&pool->mutex);
	if (exchange->body_held > left) {
		pool->held_bytes -= exchange->body_held - left;
		exchange->body_held = left;
	}
	pthread_mutex_unlock(&pool->mutex);
}

/* Takes what a reply holds into account. @return false: it is one more in parts than there may be */
static bool count(struct weir_http_pool *pool, struct weir_http_exchange *exchange)
{
	bool counted = exchange->reply.more != NULL;
	pthread_mutex_lock(&pool->mutex);
	pool->held_bytes += exchange->reply.body.capacity - exchange->held;
	pool->reply_bytes += exchange->reply.body.capacity - exchange->held;
	exchange->held = exchange->reply.body.capacity;
	bool room = exchange->counted || !counted || pool->streams < WEIR_HTTP_STREAMS_MAX;
	if (room && counted && !exchange->counted) {
		exchange->counted = true;
		pool->streams++;
	}
	pthread_mutex_unlock(&pool->mutex);
	return room;
}

/* Whether so many replies wait to be read that no more may be made: requests that came together were all let in before. */
static bool has_many_replies(struct weir_http_pool *pool)
{
	pthread_mutex_lock(&pool->mutex);
	bool many = pool->reply_bytes > WEIR_HTTP_HELD_MAX_BYTES / 2;
	pthread_mutex_unlock(&pool->mutex);
	return many;
}

static void serve(struct worker *worker, struct weir_http_exchange *exchange)
{
	struct weir_http_reply *reply = &exchange->reply;
	if (exchange->answered) {
		weir_http_next_part(exchange, worker->number);
	} else if (exchange->before == 0 && has_many_replies(worker->pool)) {
		weir_http_refuse(exchange, MHD_HTTP_SERVICE_UNAVAILABLE, "too many answers wait to be read");
		weir_http_finish(exchange);
		drop_body(exchange);
	} else {
		struct weir_http_request request = {.exchange = exchange, .worker = worker->number};
		exchange->taken = exchange->body.length;
		exchange->path->handle(exchange->path->context, &request, reply);
		if (exchange->ended || reply->status >= MHD_HTTP_BAD_REQUEST)
			weir_http_finish(exchange);
		else
			exchange->before += exchange->taken;
		drop_body(exchange);
	}
	if (!count(worker->pool, exchange)) {
		reply->end(reply->stream);
		weir_gzip_free(exchange->gzip);
		exchange->gzip = NULL;
		weir_http_refuse(exchange, MHD_HTTP_SERVICE_UNAVAILABLE, "too many long responses are being sent");
	}
	weir_http_client_extend(exchange->client);
	exchange->away = false;
	MHD_resume_connection(exchange->connection);
}

static void *work(void *context)
{
	struct worker *worker = context;
	struct weir_http_pool *pool = worker->pool;
	pthread_mutex_lock(&pool->mutex);
	while (!pool->stopping) {
		int64_t now_ms = weir_monotonic_ms();
		if (sweep(pool, now_ms) && pool->http->tls != NULL) {
			pthread_mutex_unlock(&pool->mutex);
			weir_http_tls_look(pool->http->tls);
			pthread_mutex_lock(&pool->mutex);
			continue;
		}
		struct weir_http_exchange *exchange = pop(pool);
		if (exchange != NULL) {
			pthread_mutex_unlock(&pool->mutex);
			serve(worker, exchange);
			pthread_mutex_lock(&pool->mutex);
			continue;
		}
		struct weir_deadline deadline = weir_deadline_at_ms(now_ms + SWEEP_MS);
		(void)weir_condition_wait(&pool->changed, &pool->mutex, &deadline);
	}
	pthread_mutex_unlock(&pool->mutex);
	return NULL;
}

/* ---- starting and stopping ---- */

struct weir_http_pool *weir_http_pool_start(struct weir_http *http, const struct weir_http_options *options,
                                            int *failed)
{
	struct weir_http_pool *pool = weir_alloc(1, sizeof *pool);
	weir_condition_init(&pool->changed);
	pthread_mutex_init(&pool->mutex, NULL);
	pool->http = http;
	pool->waiting_max = options->waiting;
	pool->client_most = options->connections - (options->connections + 3) / 4;
	pool->turn_ms = options->turn_s * INT64_C(1000);
	pool->workers = weir_alloc(options->workers, sizeof *pool->workers);
	*failed = 0;
	for (unsigned i = 0; i < options->workers && *failed == 0; i++) {
		struct worker *worker = &pool->workers[i];
		*worker = (struct worker){.pool = pool, .number = i};
		*failed = pthread_create(&worker->thread, NULL, work, worker);
		pool->worker_count += *failed == 0;
	}
	return pool;
}

void weir_http_pool_quiet(struct weir_http_pool *pool)
{
	pthread_mutex_lock(&pool->mutex);
	pool->stopping = true;
	pthread_cond_broadcast(&pool->changed);
	pthread_mutex_unlock(&pool->mutex);
	for (unsigned i = 0; i < pool->worker_count; i++)
		pthread_join(pool->workers[i].thread, NULL);
	/* libmicrohttpd cannot end while connections are suspended. Nobody else touches the queue any more. */
	struct weir_http_exchange *exchange;
	while ((exchange = pop(pool)) != NULL) {
		if (exchange->answered)
			exchange->broken = true;
		else
			weir_http_refuse(exchange, MHD_HTTP_SERVICE_UNAVAILABLE, "the server is shutting down");
		exchange->away = false;
		MHD_resume_connection(exchange->connection);
	}
}

void weir_http_pool_free(struct weir_http_pool *pool)
{
	pthread_cond_destroy(&pool->changed);
	pthread_mutex_destroy(&pool->mutex);
	free(pool->workers);
	free(pool);
}
