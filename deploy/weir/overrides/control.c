/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A path may be longer than a socket's address takes, so the directory is opened
 * and the socket named through its descriptor.
 */
#include "deploy/weir/overrides/control.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/json/json_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 16, STOP_POLL_MS = 100, CHUNK_BYTES = 4096 };

struct control {
	int directory, listener;
	control_answer *answer;
	void *context;
	const struct weir_log *log;
	pthread_t thread;
	_Atomic bool stop;
};

static struct sockaddr_un address_in(int directory)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/control", directory);
	return address;
}

/* ---- lines, within a time ---- */

/* Whether the socket is ready before the end. */
static bool wait_for(int fd, short events, int64_t end_ms)
{
	struct pollfd ready = {.fd = fd, .events = events};
	for (;;) {
		int64_t left_ms = end_ms - weir_monotonic_ms();
		if (left_ms <= 0)
			return false;
		int got = poll(&ready, 1, (int)left_ms);
		if (got > 0)
			return true;
		if (got < 0 && errno != EINTR)
			return false;
	}
}

/* Reads up to a newline. @return false: it did not come in time, or there is more than `most` before it */
static bool read_line(int fd, size_t most, int64_t wait_ms, struct weir_text *line)
{
	int64_t end_ms = weir_monotonic_ms() + wait_ms;
	while (wait_for(fd, POLLIN, end_ms)) {
		char *at = weir_text_reserve(line, CHUNK_BYTES);
		ssize_t got = recv(fd, at, CHUNK_BYTES, MSG_DONTWAIT);
		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (got <= 0)
			return false;
		const char *newline = memchr(at, '\n', (size_t)got);
		line->length += newline != NULL ? (size_t)(newline - at) : (size_t)got;
		if (line->length > most)
			return false;
		if (newline != NULL)
			return true;
	}
	return false;
}

static bool write_line(int fd, struct weir_text *line, int64_t wait_ms)
{
	int64_t end_ms = weir_monotonic_ms() + wait_ms;
	size_t done = 0;
	weir_text_puts(line, "\n");
	while (done < line->length) {
		if (!wait_for(fd, POLLOUT, end_ms))
			return false;
		ssize_t put = send(fd, line->at + done, line->length - done, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (put < 0 && errno != EINTR && errno != EAGAIN)
			return false;
		done += put > 0 ? (size_t)put : 0;
	}
	return true;
}

/* ---- the one that answers ---- */

static void serve(struct control *control, int fd)
{
	struct weir_text request = {0}, answer = {0};
	if (read_line(fd, CONTROL_REQUEST_MAX_BYTES, CONTROL_READ_MS, &request)) {
		control->answer(control->context, (struct weir_span){request.at, (uint32_t)request.length}, &answer);
	} else {
		char words[96];
		snprintf(words, sizeof words, "a request is one line of at most %d bytes, within %d s",
		         CONTROL_REQUEST_MAX_BYTES, CONTROL_READ_MS / 1000);
		struct weir_json_writer json = weir_json_writer(&answer);
		weir_json_write_object(&json, NULL);
		weir_json_write_words(&json, "error", words);
		weir_json_write_bool(&json, "invalid", true);
		weir_json_write_end(&json);
	}
	if (!write_line(fd, &answer, CONTROL_READ_MS))
		weir_log(control->log, WEIR_LOG_WARNING, "control",
		         "the client closed the connection before it read the answer");
	weir_text_deinit(&request);
	weir_text_deinit(&answer);
}

static void *work(void *context)
{
	struct control *control = context;
	while (!atomic_load(&control->stop)) {
		struct pollfd ready = {.fd = control->listener, .events = POLLIN};
		if (poll(&ready, 1, STOP_POLL_MS) <= 0)
			continue;
		int fd = accept4(control->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
				poll(NULL, 0, STOP_POLL_MS); /* else it is asked again at once: it stays readable */
			continue;
		}
		serve(control, fd);
		close(fd);
	}
	return NULL;
}

static void control_free(struct control *control)
{
	if (control->listener >= 0)
		close(control->listener);
	if (control->directory >= 0)
		close(control->directory);
	free(control);
}

static int listen_in(struct control *control, const char *directory)
{
	control->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (control->directory < 0 || (unlinkat(control->directory, "control", 0) != 0 && errno != ENOENT))
		return -1;
	control->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un address = address_in(control->directory);
	/* Its mode before it has a name: nobody else can use it at any time. */
	if (control->listener < 0 || fchmod(control->listener, 0600) != 0)
		return -1;
	if (bind(control->listener, (struct sockaddr *)&address, sizeof address) != 0)
		return -1;
	return listen(control->listener, BACKLOG);
}

enum weir_status control_start(const char *directory, control_answer *answer, void *context, const struct weir_log *log,
                               struct control **out, struct weir_error *error)
{
	struct control *control = weir_alloc(1, sizeof *control);
	*control = (struct control){.directory = -1, .listener = -1, .answer = answer, .context = context, .log = log};
	int failed = listen_in(control, directory) == 0 ? 0 : errno;
	if (failed == 0)
		failed = pthread_create(&control->thread, NULL, work, control);
	if (failed != 0) {
		control_free(control);
		return weir_fail(error, WEIR_IO, "cannot listen at %s/control: %s", directory, weir_errno_words(failed));
	}
	*out = control;
	return WEIR_OK;
}

void control_stop(struct control *control)
{
	if (control == NULL)
		return;
	atomic_store(&control->stop, true);
	pthread_join(control->thread, NULL);
	unlinkat(control->directory, "control", 0);
	control_free(control);
}

/* ---- the one that asks ---- */

static int connect_in(const char *path)
{
	/* Where nobody takes connections any more and the backlog is full, connect() waits as long as a send may. */
	static const struct timeval most = {.tv_sec = CONTROL_READ_MS / 1000, .tv_usec = CONTROL_READ_MS % 1000 * 1000};
	int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un address = address_in(directory);
	if (directory < 0 || fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most) != 0 ||
	    connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
		int reason = errno;
		if (fd >= 0)
			close(fd);
		fd = -1;
		errno = reason;
	}
	int reason = errno;
	if (directory >= 0)
		close(directory);
	errno = reason;
	return fd;
}

enum weir_status control_ask(const char *directory, struct weir_span request, struct weir_text *answer,
                             struct weir_error *error)
{
	int fd = connect_in(directory);
	if (fd < 0)
		return weir_fail(error, WEIR_IO,
		                 "%s is in use by a process that accepts no commands at %s/control: %s (it may be starting or "
		                 "stopping)",
		                 directory, directory, weir_errno_words(errno));
	struct weir_text line = {0};
	weir_text_append(&line, request.at, request.length);
	bool good = write_line(fd, &line, CONTROL_READ_MS) &&
	            read_line(fd, CONTROL_ANSWER_MAX_BYTES, CONTROL_ANSWER_MS + CONTROL_READ_MS, answer);
	weir_text_deinit(&line);
	close(fd);
	return good ? WEIR_OK
	            : weir_fail(error, WEIR_IO, "no answer at %s/control: the command may or may not be in the log",
	                        directory);
}
