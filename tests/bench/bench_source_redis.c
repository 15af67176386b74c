/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source `redis` against a bare loop of XREAD through hiredis, on the same stream in the same run: lines of 229 bytes a
 * second, from a server of its own that keeps nothing on disk. The loop looks at each entry's field; the source also makes
 * lines of them, with positions.
 *
 * One JSON line. WEIR_BENCH=smoke runs a small size.
 */
#include "collector/source/kinds/source_kinds.h"
#include "tests/bench/measure.h"

#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SKIPPED = 77, LINE_BYTES = 229, RUNS = 5, AT_ONCE = 1000, TRIES = 1000 };

static void fail(const char *words)
{
	fprintf(stderr, "bench_source_redis: %s\n", words);
	exit(1);
}

static int free_port(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t bytes = sizeof at;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, bytes) != 0 || getsockname(fd, (struct sockaddr *)&at, &bytes) != 0)
		fail("no port");
	close(fd);
	return ntohs(at.sin_port);
}

static pid_t start(int port)
{
	char number[16];
	snprintf(number, sizeof number, "%d", port);
	pid_t server = fork();
	if (server == 0) {
		if (freopen("/dev/null", "w", stdout) != NULL)
			execlp("redis-server", "redis-server", "--port", number, "--bind", "127.0.0.1", "--save", "",
			       "--appendonly", "no", NULL);
		_exit(SKIPPED);
	}
	return server;
}

/* NULL: there is no redis-server. */
static redisContext *connect_to(int port, pid_t server)
{
	for (int i = 0; i < TRIES; i++) {
		redisContext *context = redisConnect("127.0.0.1", port);
		if (context != NULL && context->err == 0)
			return context;
		redisFree(context);
		if (waitpid(server, NULL, WNOHANG) == server)
			return NULL;
		usleep(10000);
	}
	return NULL;
}

static void fill(redisContext *context, size_t count)
{
	char line[LINE_BYTES + 1];
	memset(line, 'x', LINE_BYTES);
	line[LINE_BYTES] = '\0';
	for (size_t done = 0; done < count; done += AT_ONCE) {
		size_t some = count - done < AT_ONCE ? count - done : AT_ONCE;
		for (size_t i = 0; i < some; i++)
			redisAppendCommand(context, "XADD logs * line %s", line);
		for (size_t i = 0; i < some; i++) {
			void *reply = NULL;
			if (redisGetReply(context, &reply) != REDIS_OK)
				fail(context->errstr);
			freeReplyObject(reply);
		}
	}
}

/* Entries a second, bare. */
static double bare(redisContext *context, size_t count)
{
	char after[64] = "0-0";
	size_t seen = 0, bytes = 0;
	double begin = wall_seconds();
	while (seen < count) {
		redisReply *reply = redisCommand(context, "XREAD COUNT %d STREAMS logs %s", AT_ONCE, after);
		if (reply == NULL || reply->type != REDIS_REPLY_ARRAY)
			fail("XREAD");
		const redisReply *entries = reply->element[0]->element[1];
		for (size_t i = 0; i < entries->elements; i++)
			bytes += entries->element[i]->element[1]->element[1]->len;
		seen += entries->elements;
		snprintf(after, sizeof after, "%s", entries->element[entries->elements - 1]->element[0]->str);
		freeReplyObject(reply);
	}
	if (bytes != count * LINE_BYTES)
		fail("other lines than were added");
	return (double)count / (wall_seconds() - begin);
}

static double through_source(int port, size_t count)
{
	char text[256];
	struct weir_json_document *document;
	struct weir_error error;
	struct source *source;
	struct source_context context = {.once = true};
	snprintf(text, sizeof text,
	         "{\"type\":\"redis\",\"url\":\"redis://127.0.0.1:%d\",\"streams\":[\"logs\"],\"field\":\"line\"}", port);
	if (weir_json_parse("bench", text, strlen(text), &document, &error) != WEIR_OK)
		fail(error.text);
	struct weir_json config = weir_json_root(document);
	double begin = wall_seconds();
	if (source_new(&config, &context, &source, &error) != WEIR_OK)
		fail(error.text);
	struct source_chunk chunk;
	enum weir_status status;
	size_t bytes = 0;
	while ((status = source->ops->collect(source, NULL, &chunk, &error)) != WEIR_END) {
		if (status == WEIR_IO)
			fail(error.text);
		bytes += status == WEIR_OK ? chunk.length : 0;
	}
	double rate = (double)count / (wall_seconds() - begin);
	source->ops->free(source);
	weir_json_document_free(document);
	if (bytes != count * (LINE_BYTES + 1))
		fail("other lines than were added");
	return rate;
}

int main(void)
{
	size_t count = is_smoke() ? 20000 : 1000000, runs = is_smoke() ? 1 : RUNS;
	double rates[RUNS], ceilings[RUNS];
	int port = free_port();
	pid_t server = start(port);
	redisContext *context = connect_to(port, server);
	if (context == NULL) {
		printf("{\"bench\":\"source_redis\",\"skipped\":\"there is no redis-server\"}\n");
		return SKIPPED;
	}
	fill(context, count);
	for (size_t i = 0; i < runs; i++) {
		ceilings[i] = bare(context, count);
		rates[i] = through_source(port, count);
	}
	redisFree(context);
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	double rate = median(rates, runs), ceiling = median(ceilings, runs);
	printf(
		"{\"bench\":\"source_redis\",\"unit\":\"lines/s of %d bytes\",\"rate\":%.0f,\"ceiling\":%.0f,\"ratio\":%.2f}\n",
		LINE_BYTES, rate, ceiling, rate / ceiling);
	return 0;
}
