/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source http: lines a second that senders get answered, while another thread reads and acknowledges them as a
 * collector does; beside a bare sink in the same run, which does no more than read a request, append its body to a file
 * and answer when that is on disk. Both share an fsync among the senders that wait.
 *
 * One JSON line a measurement. WEIR_BENCH=smoke runs a small size.
 */
#include "collector/source/kinds/source_kinds.h"
#include "collector/source/source_memory.h"
#include "common/base/alloc.h"
#include "common/json/json.h"
#include "tests/bench/measure.h"
#include "tests/bench/scratch.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

enum { SENDERS = 16, RUNS = 5, HEAD_BYTES = 8192, LINE_BYTES = 230 };

struct load {
	uint16_t port;
	size_t batches, lines; /* of each sender; of a batch */
	char *request;
	size_t request_bytes;
};

/* ---- senders ---- */

static void fail(const char *words)
{
	fprintf(stderr, "%s\n", words);
	exit(1);
}

static void write_whole(int fd, const char *bytes, size_t length)
{
	for (ssize_t sent; length > 0; bytes += sent, length -= (size_t)sent)
		if ((sent = send(fd, bytes, length, MSG_NOSIGNAL)) <= 0)
			fail("the server has closed a connection");
}

/* Reads an answer, whose body has no more than its head's packet. */
static void read_answer(int fd)
{
	char answer[HEAD_BYTES];
	size_t length = 0;
	char *end = NULL;
	while (end == NULL || end[4] == '\0') {
		ssize_t got = recv(fd, answer + length, sizeof answer - 1 - length, 0);
		if (got <= 0)
			fail("the server has closed a connection");
		length += (size_t)got;
		answer[length] = '\0';
		end = strstr(answer, "\r\n\r\n");
	}
	if (strncmp(answer, "HTTP/1.1 200", 12) != 0)
		fail(answer);
}

static int connect_to(uint16_t port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
	if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
		fail("cannot connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	return fd;
}

static void *send_all(void *context)
{
	const struct load *load = context;
	int fd = connect_to(load->port);
	for (size_t i = 0; i < load->batches; i++) {
		write_whole(fd, load->request, load->request_bytes);
		read_answer(fd);
	}
	close(fd);
	return NULL;
}

static double rate_of(const struct load *load)
{
	pthread_t threads[SENDERS];
	double start = wall_seconds();
	for (int i = 0; i < SENDERS; i++)
		pthread_create(&threads[i], NULL, send_all, (void *)load);
	for (int i = 0; i < SENDERS; i++)
		pthread_join(threads[i], NULL);
	return (double)(SENDERS * load->batches * load->lines) / (wall_seconds() - start);
}

static void make_request(struct load *load)
{
	struct weir_text body = {0}, request = {0};
	char line[LINE_BYTES + 1];
	memset(line, 'x', LINE_BYTES);
	line[LINE_BYTES - 1] = '\n';
	for (size_t i = 0; i < load->lines; i++)
		weir_text_append(&body, line, LINE_BYTES);
	weir_text_printf(&request, "POST /ingest HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n", body.length);
	weir_text_append(&request, body.at, body.length);
	weir_text_deinit(&body);
	load->request = request.at;
	load->request_bytes = request.length;
}

/* ---- the bare sink ---- */

struct sink {
	int listener, fd;
	pthread_mutex_t mutex;
	pthread_cond_t synced;
	uint64_t written, durable;
	bool syncing;
};

/* Appends, and waits until that is on disk: whoever finds nobody at it syncs for all. */
static void append(struct sink *sink, const char *bytes, size_t length)
{
	pthread_mutex_lock(&sink->mutex);
	if (write(sink->fd, bytes, length) != (ssize_t)length)
		fail("cannot write");
	uint64_t end = sink->written += length;
	while (sink->durable < end) {
		if (sink->syncing) {
			pthread_cond_wait(&sink->synced, &sink->mutex);
			continue;
		}
		uint64_t through = sink->written;
		sink->syncing = true;
		pthread_mutex_unlock(&sink->mutex);
		if (fdatasync(sink->fd) != 0)
			fail("cannot sync");
		pthread_mutex_lock(&sink->mutex);
		sink->syncing = false;
		sink->durable = through;
		pthread_cond_broadcast(&sink->synced);
	}
	pthread_mutex_unlock(&sink->mutex);
}

struct connection {
	struct sink *sink;
	int fd;
};

static void *serve(void *context)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{\"lines\": 999}";
	struct connection *connection = context;
	size_t room = 1 << 24, length = 0;
	char *bytes = weir_alloc(room, 1);
	for (;;) {
		ssize_t got = recv(connection->fd, bytes + length, room - 1 - length, 0);
		if (got <= 0)
			break;
		length += (size_t)got;
		bytes[length < HEAD_BYTES ? length : HEAD_BYTES] = '\0';
		char *end = memmem(bytes, length < HEAD_BYTES ? length : HEAD_BYTES, "\r\n\r\n", 4);
		char *said = end != NULL ? memmem(bytes, (size_t)(end - bytes), "Content-Length: ", 16) : NULL;
		if (said == NULL || length < (size_t)(end + 4 - bytes) + strtoul(said + 16, NULL, 10))
			continue;
		append(connection->sink, end + 4, length - (size_t)(end + 4 - bytes));
		write_whole(connection->fd, answer, sizeof answer - 1);
		length = 0;
	}
	close(connection->fd);
	free(bytes);
	free(connection);
	return NULL;
}

static void *accept_all(void *context)
{
	struct sink *sink = context;
	for (int fd; (fd = accept(sink->listener, NULL, NULL)) >= 0;) {
		struct connection *connection = weir_alloc(1, sizeof *connection);
		pthread_t thread;
		*connection = (struct connection){sink, fd};
		pthread_create(&thread, NULL, serve, connection);
		pthread_detach(thread);
	}
	return NULL;
}

static double sink_rate(struct load load)
{
	char *directory = bench_scratch("sink"), path[4096];
	struct sink sink = {.mutex = PTHREAD_MUTEX_INITIALIZER, .synced = PTHREAD_COND_INITIALIZER};
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t length = sizeof address;
	pthread_t thread;
	snprintf(path, sizeof path, "%s/file", directory);
	sink.fd = open(path, O_CREAT | O_WRONLY | O_APPEND, 0600);
	sink.listener = socket(AF_INET, SOCK_STREAM, 0);
	inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
	if (bind(sink.listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(sink.listener, 128) != 0)
		fail("cannot listen");
	getsockname(sink.listener, (struct sockaddr *)&address, &length);
	load.port = ntohs(address.sin_port);
	pthread_create(&thread, NULL, accept_all, &sink);
	double rate = rate_of(&load);
	shutdown(sink.listener, SHUT_RDWR);
	pthread_join(thread, NULL);
	close(sink.listener);
	close(sink.fd);
	bench_scratch_remove(directory);
	return rate;
}

/* ---- the source ---- */

struct reader {
	struct source *source;
	_Atomic bool ended;
	uint64_t lines;
};

/* Reads and acknowledges, as a collector does. */
static void *read_all(void *context)
{
	struct reader *reader = context;
	const struct source_ops *ops = reader->source->ops;
	struct source_chunk chunk;
	struct weir_error error;
	for (;;) {
		bool ended = reader->ended;
		enum weir_status status = ops->collect(reader->source, NULL, &chunk, &error);
		if (status == WEIR_OK) {
			uint64_t lines = 0;
			for (const char *at = chunk.data; at < chunk.data + chunk.length; lines++)
				at = (const char *)memchr(at, '\n', (size_t)(chunk.data + chunk.length - at)) + 1;
			reader->lines += lines;
			ops->acknowledge(reader->source, chunk.stream, chunk.positions[lines - 1]);
		} else if (ended) {
			return NULL;
		} else {
			struct pollfd waiting = {.fd = ops->fd(reader->source), .events = POLLIN};
			poll(&waiting, 1, 100);
		}
	}
}

static uint16_t free_port(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t length = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
	if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0)
		fail("there is no free port");
	getsockname(fd, (struct sockaddr *)&address, &length);
	close(fd);
	return ntohs(address.sin_port);
}

static double source_rate(struct load load)
{
	char *directory = bench_scratch("push"), config[256];
	struct source_memory *memory;
	struct weir_json_document *document;
	struct reader reader = {0};
	struct weir_error error;
	pthread_t thread;
	load.port = free_port();
	snprintf(config, sizeof config,
	         "{\"type\":\"http\",\"name\":\"bench\",\"listen\":\"127.0.0.1:%u\",\"format\":\"json\"}", load.port);
	check(weir_json_parse("config", config, strlen(config), &document, &error), &error);
	check(source_memory_open(directory, &memory, &error), &error);
	struct weir_json root = weir_json_root(document);
	struct source_context context = {.memory = memory, .line_max_bytes = 65536};
	check(source_new(&root, &context, &reader.source, &error), &error);
	pthread_create(&thread, NULL, read_all, &reader);
	double rate = rate_of(&load);
	reader.ended = true;
	pthread_join(thread, NULL);
	if (reader.lines != SENDERS * load.batches * load.lines)
		fail("not every line was read");
	reader.source->ops->free(reader.source);
	source_memory_free(memory);
	weir_json_document_free(document);
	bench_scratch_remove(directory);
	return rate;
}

static void measure(size_t lines, size_t batches, int runs)
{
	double rates[RUNS], ceilings[RUNS];
	struct load load = {.batches = batches, .lines = lines};
	make_request(&load);
	for (int i = 0; i < runs; i++) {
		ceilings[i] = sink_rate(load);
		rates[i] = source_rate(load);
	}
	double rate = part_of(rates, (size_t)runs, 0.5), ceiling = part_of(ceilings, (size_t)runs, 0.5);
	printf("{\"bench\":\"push_%zu\",\"unit\":\"lines/s, %d senders of %zu lines\",\"rate\":%.0f,\"ceiling\":%.0f,"
	       "\"ratio\":%.2f,\"goal\":0.7}\n",
	       lines, SENDERS, lines, rate, ceiling, rate / ceiling);
	fflush(stdout);
	free(load.request);
}

int main(void)
{
	int runs = is_smoke() ? 1 : RUNS;
	measure(1000, is_smoke() ? 5 : 50, runs);
	measure(10, is_smoke() ? 20 : 500, runs);
	return 0;
}
