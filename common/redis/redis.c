/* SPDX-License-Identifier: Apache-2.0 */
/* hiredis is met here alone; an answer is its reply under another name. */
#include "common/redis/redis.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/redis/redis_tls.h"
#include "common/redis/resolve.h"

#include <assert.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { WORDS_MAX = 16 };

struct weir_redis {
	redisContext *context;
	struct weir_redis_tls *tls; /* NULL: in clear */
	char name[128];             /* for words */
};

static const redisReply *reply_of(const struct weir_redis_answer *answer)
{
	return (const redisReply *)(const void *)answer;
}

static void let_go(struct weir_redis *link)
{
	if (link->context != NULL)
		redisFree(link->context); /* with the clear end, by which TLS ends */
	weir_redis_tls_free(link->tls);
	link->context = NULL;
	link->tls = NULL;
}

void weir_redis_close(struct weir_redis *link)
{
	if (link == NULL)
		return;
	let_go(link);
	free(link);
}

int weir_redis_fd(const struct weir_redis *link)
{
	return link->context->fd;
}

void weir_redis_send(struct weir_redis *link, const struct weir_span *words, size_t count)
{
	const char *at[WORDS_MAX];
	size_t lengths[WORDS_MAX];
	assert(count <= WORDS_MAX);
	for (size_t i = 0; i < count; i++) {
		at[i] = words[i].length > 0 ? words[i].at : "";
		lengths[i] = words[i].length;
	}
	/* It fails where memory is gone, and then so does the answer. */
	redisAppendCommandArgv(link->context, (int)count, at, lengths);
}

/* What hiredis says. */
static enum weir_status fail_as_told(const struct weir_redis *link, struct weir_error *error)
{
	const char *words = link->context->errstr;
	return weir_fail(error, WEIR_IO, "%s%s", words, weir_errno_advice(words));
}

enum weir_status weir_redis_receive(struct weir_redis *link, struct weir_redis_answer **answer,
                                    struct weir_error *error)
{
	void *taken = NULL;
	if (answer != NULL)
		*answer = NULL;
	if (redisGetReply(link->context, &taken) != REDIS_OK || taken == NULL) {
		/* errno tells of a timeout what hiredis calls a resource that is temporarily unavailable. */
		int code = link->context->err;
		const char *words = code == REDIS_ERR_IO && errno == EAGAIN ? "no answer in time"
		                    : code == REDIS_ERR_PROTOCOL            ? "what answers does not speak Redis' protocol"
		                                                            : link->context->errstr;
		return weir_fail(error, WEIR_IO, "%s: %s%s", link->name, words, weir_errno_advice(words));
	}
	redisReply *reply = taken;
	if (reply->type == REDIS_REPLY_ERROR) {
		weir_fail(error, WEIR_INVALID, "%s: %.*s", link->name, (int)(reply->len < 200 ? reply->len : 200), reply->str);
		freeReplyObject(reply);
		return WEIR_INVALID;
	}
	if (answer != NULL)
		*answer = (struct weir_redis_answer *)(void *)reply;
	else
		freeReplyObject(reply);
	return WEIR_OK;
}

/* Commands that only have to go well. */
static enum weir_status greet(struct weir_redis *link, const struct weir_redis_url *url, struct weir_error *error)
{
	char database[16];
	struct weir_span login[3] = {weir_span_of("AUTH")};
	size_t count = 1;
	if (url->user != NULL)
		login[count++] = weir_span_of(url->user);
	if (url->password != NULL) {
		login[count++] = weir_span_of(url->password);
		weir_redis_send(link, login, count);
	}
	snprintf(database, sizeof database, "%u", url->database);
	weir_redis_send(link, (struct weir_span[]){weir_span_of("SELECT"), weir_span_of(database)}, 2);
	enum weir_status status = url->password != NULL ? weir_redis_receive(link, NULL, error) : WEIR_OK;
	return status == WEIR_OK ? weir_redis_receive(link, NULL, error) : status;
}

static enum weir_status reach_one(struct weir_redis *link, const struct weir_redis_url *url, const char *address,
                                  int timeout_ms, struct weir_error *error)
{
	struct timeval timeout = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};
	int fd = -1;
	if (url->tls) {
		const struct weir_redis_tls_files files = {.ca = url->ca, .certificate = url->certificate, .key = url->key};
		enum weir_status status =
			weir_redis_tls_connect(url->host, address, url->port, &files, timeout_ms, &link->tls, &fd, error);
		if (status != WEIR_OK)
			return status;
	}
	link->context = url->tls ? redisConnectFd(fd) : redisConnectWithTimeout(address, url->port, timeout);
	if (link->context == NULL && fd >= 0)
		close(fd);
	if (link->context == NULL)
		return weir_fail(error, WEIR_IO, "out of memory");
	return link->context->err == 0 ? WEIR_OK : fail_as_told(link, error);
}

/* The first of the host's addresses that answers. Each has its share of the time that is left, so that none uses it up. */
static enum weir_status reach(struct weir_redis *link, const struct weir_redis_url *url, struct weir_question *question,
                              int timeout_ms, struct weir_error *error)
{
	int64_t end_ms = weir_monotonic_ms() + timeout_ms;
	struct timeval timeout = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};
	struct weir_resolved found = {0};
	enum weir_status status = weir_resolve(question, url->host, timeout_ms, &found, error);
	for (uint32_t i = 0; i < found.count && (i == 0 || status != WEIR_OK); i++) {
		int64_t share_ms = (end_ms - weir_monotonic_ms()) / (found.count - i);
		let_go(link);
		status = reach_one(link, url, found.addresses[i], share_ms > 1 ? (int)share_ms : 1, error);
	}
	if (status == WEIR_OK && redisSetTimeout(link->context, timeout) != REDIS_OK)
		status = fail_as_told(link, error);
	if (status != WEIR_OK)
		weir_error_prefix(error, "%s", link->name);
	return status;
}

enum weir_status weir_redis_open(const struct weir_redis_url *url, struct weir_question *question, int timeout_ms,
                                 struct weir_redis **link, struct weir_error *error)
{
	struct weir_redis *made = weir_alloc(1, sizeof *made);
	struct weir_question *once = question == NULL ? weir_question_new() : NULL;
	snprintf(made->name, sizeof made->name, "Redis at %.100s:%u", url->host, url->port);
	enum weir_status status = reach(made, url, question != NULL ? question : once, timeout_ms, error);
	weir_question_free(once);
	if (status == WEIR_OK)
		status = greet(made, url, error);
	if (status != WEIR_OK) {
		weir_redis_close(made);
		return WEIR_IO;
	}
	*link = made;
	return WEIR_OK;
}

void weir_redis_answer_free(struct weir_redis_answer *answer)
{
	if (answer != NULL)
		freeReplyObject((void *)answer);
}

bool weir_redis_answer_is_nil(const struct weir_redis_answer *answer)
{
	return reply_of(answer)->type == REDIS_REPLY_NIL;
}

struct weir_span weir_redis_answer_text(const struct weir_redis_answer *answer)
{
	const redisReply *reply = reply_of(answer);
	if (reply->type != REDIS_REPLY_STRING && reply->type != REDIS_REPLY_STATUS)
		return (struct weir_span){0};
	return (struct weir_span){.at = reply->str, .length = (uint32_t)reply->len};
}

bool weir_redis_answer_number(const struct weir_redis_answer *answer, int64_t *number)
{
	const redisReply *reply = reply_of(answer);
	*number = reply->integer;
	return reply->type == REDIS_REPLY_INTEGER;
}

size_t weir_redis_answer_count(const struct weir_redis_answer *answer)
{
	return reply_of(answer)->type == REDIS_REPLY_ARRAY ? reply_of(answer)->elements : 0;
}

const struct weir_redis_answer *weir_redis_answer_element(const struct weir_redis_answer *answer, size_t index)
{
	return (const struct weir_redis_answer *)(const void *)reply_of(answer)->element[index];
}
