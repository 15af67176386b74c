/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `weir watch`: runs a command whenever a file has been replaced.
 *
 * For a gateway that reads its list at a reload alone, where whoever writes the list may not reload it. What counts is
 * whether the file is another one than before the last run; inotify only says when to look, and a timer where it cannot.
 */
#include "common/base/clock.h"
#include "common/base/stop.h"
#include "common/config/arguments.h"
#include "common/daemon/notify.h"
#include "common/files/durable_file.h"
#include "common/log/log.h"
#include "deploy/gateways/target/exec/program.h"
#include "deploy/weir/command.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

enum option { TIMEOUT, OPTION_COUNT };

enum {
	WORDS_MAX = 64,
	LOOK_MS = 1000,
	RETRY_LEAST_MS = 1000,
	RETRY_MOST_MS = 60000,
	TIMEOUT_DEFAULT_MS = 30000,
	TIMEOUT_MOST_MS = 3600000,
};

static const struct weir_argument_option options[] = {
	[TIMEOUT] = {.name = "timeout",
                 .value = "DURATION",
                 .type = WEIR_ARGUMENT_DURATION,
                 .least = 1,
                 .most = TIMEOUT_MOST_MS,
                 .help = "kill a COMMAND that runs longer, with all that it started; it then counts as failed "
                         "(default 30s)"},
	[OPTION_COUNT] = {.name = NULL},
};

static const struct weir_argument_section sections[] = {
	{"When it runs",
     "At the start, if FILE is there, and each time that FILE has been replaced or written to. What changes while COMMAND "
     "runs makes it run once more; so does SIGHUP. If COMMAND fails, that is logged, and it is tried again after one second, then two, at "
     "most a minute."},
	{NULL, NULL},
};

static const struct weir_argument_exit exits[] = {
	{WEIR_EXIT_DONE, "it was ended by SIGTERM or SIGINT"},
	{WEIR_EXIT_USAGE, "the command line is wrong"},
	{WEIR_EXIT_DONE, NULL},
};

static const struct weir_command_line line = {
	.name = "weir watch",
	.summary = "run a command whenever a file has been replaced",
	.usage = "weir watch [--timeout DURATION] FILE -- COMMAND [ARG...]",
	.about = "Runs COMMAND whenever FILE has been replaced. So root can reload a gateway whose list an unprivileged "
			 "weir writes.",
	.operand = {.word = "FILE",
                .help = "the file, which may come later, and behind -- the command, without a shell",
                .most = WORDS_MAX},
	.options = options,
	.sections = sections,
	.examples = "weir watch /var/lib/weir/gateways/nginx.map -- systemctl reload nginx",
	.exits = exits,
};

/* What a file was when it was looked at; zero: it was not there. */
struct look {
	dev_t device;
	ino_t inode;
	off_t size;
	struct timespec written;
};

struct watch {
	const char *path;
	char directory[WEIR_PATH_BYTES];
	const char *words[WORDS_MAX + 1]; /* the command's, ended by NULL */
	size_t count;
	int64_t timeout_ms;
	struct weir_log log;
	struct weir_fault fault;
	struct look taken; /* before the last run that did not fail */
	int64_t retry_at_ms, retry_wait_ms;
	struct look failed; /* before the last run, if that failed */
	int notify, id;     /* of inotify; -1: it does not watch just now */
};

static enum weir_exit take(void *context, int option, const struct weir_argument *value)
{
	struct watch *watch = context;
	if (option == TIMEOUT)
		watch->timeout_ms = (int64_t)value->number;
	else if (watch->path == NULL)
		watch->path = value->text;
	else
		watch->words[watch->count++] = value->text;
	return WEIR_EXIT_NOT_YET;
}

static struct look look_at(const char *path)
{
	struct stat found;
	if (stat(path, &found) != 0)
		return (struct look){0};
	return (struct look){
		.device = found.st_dev, .inode = found.st_ino, .size = found.st_size, .written = found.st_mtim};
}

static bool is_same(const struct look *a, const struct look *b)
{
	return a->device == b->device && a->inode == b->inode && a->size == b->size &&
	       a->written.tv_sec == b->written.tv_sec && a->written.tv_nsec == b->written.tv_nsec;
}

/* Watches the directory, as the file is replaced; it may itself come later, or go. */
static void listen_again(struct watch *watch)
{
	if (watch->notify >= 0 && watch->id < 0)
		watch->id = inotify_add_watch(watch->notify, watch->directory,
		                              IN_MOVED_TO | IN_CLOSE_WRITE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR);
}

/* What has happened is of no interest, only that something has: the file is looked at anyway. */
static void wait_for_news(struct watch *watch, int64_t wait_ms)
{
	char buffer[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	struct pollfd news = {.fd = watch->notify, .events = POLLIN};
	if (poll(&news, 1, (int)wait_ms) <= 0)
		return;
	ssize_t length = read(watch->notify, buffer, sizeof buffer);
	for (const char *at = buffer; at < buffer + length;) {
		const struct inotify_event *event = (const struct inotify_event *)(const void *)at;
		if (event->mask & IN_MOVE_SELF)
			inotify_rm_watch(watch->notify, watch->id);
		if (event->mask & (IN_MOVE_SELF | IN_IGNORED))
			watch->id = -1;
		at += sizeof *event + event->len;
	}
}

static void run(struct watch *watch, struct look now)
{
	const struct program_run command = {.arguments = watch->words, .timeout_ms = watch->timeout_ms};
	struct weir_error error;
	if (program_run(&command, &error) == WEIR_OK) {
		weir_fault_clear(&watch->fault, &watch->log, "watch");
		watch->taken = now;
		watch->failed = (struct look){0};
		watch->retry_wait_ms = RETRY_LEAST_MS;
		return;
	}
	weir_fault_raise(&watch->fault, &watch->log, "watch", "%s; it is tried again until it succeeds", error.text);
	watch->failed = now;
	watch->retry_at_ms = weir_monotonic_ms() + watch->retry_wait_ms;
	watch->retry_wait_ms = watch->retry_wait_ms * 2 < RETRY_MOST_MS ? watch->retry_wait_ms * 2 : RETRY_MOST_MS;
}

/* One look, and one run if it is due. @return how long to wait for the next look */
static int64_t turn(struct watch *watch)
{
	listen_again(watch);
	if (weir_stop_take_reload())
		watch->taken = watch->failed = (struct look){0};
	struct look now = look_at(watch->path);
	if (now.inode == 0 || is_same(&now, &watch->taken))
		return LOOK_MS;
	int64_t left_ms = is_same(&now, &watch->failed) ? watch->retry_at_ms - weir_monotonic_ms() : 0;
	if (left_ms <= 0) {
		run(watch, now);
		return 0;
	}
	return left_ms < LOOK_MS ? left_ms : LOOK_MS;
}

static enum weir_exit command_main(int argc, char **argv)
{
	struct watch watch = {.timeout_ms = TIMEOUT_DEFAULT_MS,
	                      .retry_wait_ms = RETRY_LEAST_MS,
	                      .log = {.fd = STDERR_FILENO, .level = WEIR_LOG_INFO},
	                      .id = -1};
	struct weir_error error;
	enum weir_exit code = weir_arguments_read(&line, argc, argv, take, &watch);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	if (watch.count == 0)
		return weir_arguments_refuse(&line, watch.path == NULL ? "FILE is missing" : "COMMAND is missing behind FILE");
	if (weir_directory_of(watch.path, watch.directory, &error) != WEIR_OK)
		return weir_arguments_refuse(&line, "%s", error.text);
	weir_stop_install();
	watch.notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	weir_log(&watch.log, WEIR_LOG_INFO, "watch", "%s: runs %s when it has been replaced", watch.path, watch.words[0]);
	weir_notify("READY=1");
	while (!*weir_stop_flag())
		wait_for_news(&watch, turn(&watch));
	if (watch.notify >= 0)
		close(watch.notify);
	return WEIR_EXIT_DONE;
}

const struct command command_watch = {&line, command_main};
