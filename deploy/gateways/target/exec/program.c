/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program says goes to a file in memory, and what it reads comes from
 * one: neither side can wait for the other, and nothing needs to be pumped.
 */
#include "deploy/gateways/target/exec/program.h"

#include "common/base/clock.h"
#include "common/files/durable_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NAP_MS = 2, TERM_MS = 2000, NO_PROGRAM = 127 };

/* Between fork and exec: only calls that a signal handler may make, as other threads hold locks. */
static _Noreturn void become(const char *const *arguments, int input, int output)
{
	setpgid(0, 0);
	if (dup2(input, STDIN_FILENO) < 0 ||
	    (output >= 0 && (dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0)))
		_exit(NO_PROGRAM);
	close_range(STDERR_FILENO + 1, ~0U, 0);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	execvp(arguments[0], (char *const *)(uintptr_t)arguments);
	_exit(NO_PROGRAM);
}

static pid_t start(const char *const *arguments, int input, int output)
{
	pid_t pid = fork();
	if (pid == 0)
		become(arguments, input, output);
	if (pid > 0)
		setpgid(pid, pid); /* from here too: whoever comes first */
	return pid;
}

/* Whether a line has what programs put before the reason why they fail. */
static bool is_reason(struct weir_span line)
{
	static const char *const marks[] = {"Error:", "error:", "fatal:", "[emerg]", "[ALERT]"};
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
		if (memmem(line.at, line.length, marks[i], strlen(marks[i])) != NULL)
			return true;
	return false;
}

static bool has_letters(struct weir_span line)
{
	for (uint32_t i = 0; i < line.length; i++)
		if (isalpha((unsigned char)line.at[i]) || (unsigned char)line.at[i] >= 0x80)
			return true;
	return false;
}

/*
 * The line for the words of a failure: the first that is a reason, as what was asked and a row of ^ stand behind that of
 * nft, and "test failed" behind nginx's; else the last one with a letter in it.
 */
static struct weir_span telling_line(const char *said, size_t length)
{
	struct weir_span last = {.at = said};
	for (const char *at = said, *end = said + length; at < end;) {
		const char *line_end = memchr(at, '\n', (size_t)(end - at));
		line_end = line_end != NULL ? line_end : end;
		struct weir_span line = {.at = at, .length = (uint32_t)(line_end - at)};
		if (is_reason(line))
			return line;
		if (has_letters(line))
			last = line;
		at = line_end + (line_end < end);
	}
	return last;
}

static enum weir_status judge(const char *name, int result, struct weir_error *error)
{
	if (WIFSIGNALED(result))
		return weir_fail(error, WEIR_IO, "%s was killed by signal %d", name, WTERMSIG(result));
	if (WEXITSTATUS(result) == NO_PROGRAM)
		return weir_fail(error, WEIR_IO, "%s exited with status 127: is the program in PATH?", name);
	if (WEXITSTATUS(result) != 0)
		return weir_fail(error, WEIR_IO, "%s exited with status %d", name, WEXITSTATUS(result));
	return WEIR_OK;
}

/* @param left_with  set once it has ended, where it left by itself */
static enum weir_status ended(pid_t pid, const char *name, int *left_with, struct weir_error *error)
{
	int result;
	pid_t found;
	while ((found = waitpid(pid, &result, WNOHANG)) < 0 && errno == EINTR)
		continue;
	if (found == 0)
		return WEIR_AGAIN;
	if (found < 0)
		return weir_fail(error, WEIR_IO, "cannot wait for %s: %s", name, weir_errno_words(errno));
	*left_with = WIFEXITED(result) ? WEXITSTATUS(result) : -1;
	return judge(name, result, error);
}

enum weir_status program_ended(pid_t pid, const char *name, struct weir_error *error)
{
	int left_with;
	return ended(pid, name, &left_with, error);
}

/* WEIR_AGAIN: it runs still. */
static enum weir_status await(pid_t pid, const char *name, int64_t wait_ms, int *left_with, struct weir_error *error)
{
	int64_t end_ms = weir_monotonic_ms() + wait_ms;
	enum weir_status status;
	while ((status = ended(pid, name, left_with, error)) == WEIR_AGAIN && weir_monotonic_ms() < end_ms)
		nanosleep(&(struct timespec){.tv_nsec = NAP_MS * 1000000L}, NULL);
	return status;
}

static enum weir_status end(pid_t pid, const char *name, int64_t wait_ms, int *left_with, struct weir_error *error)
{
	enum weir_status status = await(pid, name, wait_ms, left_with, error);
	if (status != WEIR_AGAIN)
		return status;
	kill(-pid, SIGTERM);
	if (await(pid, name, TERM_MS, left_with, error) == WEIR_AGAIN) {
		kill(-pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	*left_with = -1;
	return weir_fail(error, WEIR_IO, "%s did not exit within %lld ms and was killed", name, (long long)wait_ms);
}

enum weir_status program_end(pid_t pid, const char *name, int64_t wait_ms, struct weir_error *error)
{
	int left_with;
	return end(pid, name, wait_ms, &left_with, error);
}

static int memory_file(const char *bytes, size_t length)
{
	size_t written;
	int fd = memfd_create("weir", MFD_CLOEXEC);
	if (fd >= 0 && (weir_write_all(fd, bytes, length, &written) != 0 || lseek(fd, 0, SEEK_SET) != 0)) {
		close(fd);
		return -1;
	}
	return fd;
}

enum weir_status program_run(const struct program_run *run, struct weir_error *error)
{
	const char *name = run->arguments[0];
	int input = memory_file(run->input, run->input_bytes);
	int output = memfd_create("weir", MFD_CLOEXEC);
	pid_t pid = input >= 0 && output >= 0 ? start(run->arguments, input, output) : -1;
	int left_with = -1;
	enum weir_status status = pid > 0 ? end(pid, name, run->timeout_ms, &left_with, error)
	                                  : weir_fail(error, WEIR_IO, "cannot start %s: %s", name, weir_errno_words(errno));
	if (run->left_with != NULL)
		*run->left_with = left_with;
	if (pid > 0 && (run->said != NULL || status != WEIR_OK)) {
		struct weir_text text = {0};
		off_t length = lseek(output, 0, SEEK_END);
		off_t most = run->said_most > 0 ? (off_t)run->said_most : PROGRAM_OUTPUT_MAX_BYTES;
		off_t from = length > most ? length - most : 0;
		size_t kept = (size_t)(length - from);
		ssize_t got = pread(output, weir_text_reserve(&text, kept + 1), kept, from);
		text.length = got > 0 ? (size_t)got : 0;
		struct weir_span line = status != WEIR_OK ? telling_line(text.at, text.length) : (struct weir_span){0};
		if (line.length > 0)
			weir_error_append(error, ": %.*s", (int)line.length, line.at);
		if (run->said != NULL)
			weir_text_append(run->said, text.at, text.length);
		weir_text_deinit(&text);
	}
	if (input >= 0)
		close(input);
	if (output >= 0)
		close(output);
	return status;
}

enum weir_status program_start(const char *command, pid_t *pid, int *input, struct weir_error *error)
{
	const char *arguments[] = {"/bin/sh", "-c", command, NULL};
	int pipes[2];
	if (pipe2(pipes, O_CLOEXEC) != 0)
		return weir_fail(error, WEIR_IO, "cannot create a pipe: %s", weir_errno_words(errno));
	*pid = start(arguments, pipes[0], -1);
	int reason = errno;
	close(pipes[0]);
	if (*pid < 0) {
		close(pipes[1]);
		return weir_fail(error, WEIR_IO, "cannot start %s: %s", command, weir_errno_words(reason));
	}
	fcntl(pipes[1], F_SETFL, O_NONBLOCK);
	*input = pipes[1];
	return WEIR_OK;
}
