/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec: a command of one's own, which gets a line of JSON on its standard
 * input for each block that begins, changes or ends. One that has just been
 * started knows nothing: it gets all live blocks first. So a copy is a start.
 */
#include "deploy/gateways/target/exec/target_exec.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "deploy/gateways/target/exec/program.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

enum { CHECK_MS = 200, FLOW_BYTES = 64 * 1024, POLL_MS = 50, END_MS = 5000 };

struct exec_target {
	struct target target;
	char *command;
	const _Atomic bool *stop;
	pid_t pid; /* 0: it does not run */
	int input;
	struct weir_text lines; /* not written yet */
};

/* Ends it, if it runs: it is told by the end of its input. */
static enum weir_status end(struct exec_target *exec, int64_t wait_ms, struct weir_error *error)
{
	if (exec->pid == 0)
		return WEIR_OK;
	close(exec->input);
	enum weir_status status = program_end(exec->pid, "the command", wait_ms, error);
	exec->pid = 0;
	weir_text_clear(&exec->lines);
	return status;
}

/* Its end, where a write has shown it: how it left says more than that nobody reads. */
static enum weir_status broken(struct exec_target *exec, struct weir_error *error)
{
	struct weir_error words;
	if (end(exec, END_MS, &words) == WEIR_OK)
		return weir_fail(error, WEIR_IO, "the command exited with status 0");
	return weir_fail(error, WEIR_IO, "%s", words.text);
}

/* Writes the lines; a command that takes none for a while is ended. */
static enum weir_status write_lines(struct exec_target *exec, struct weir_error *error)
{
	size_t done = 0;
	int64_t end_ms = weir_monotonic_ms() + TARGET_TIMEOUT_MS;
	while (done < exec->lines.length) {
		ssize_t count = write(exec->input, exec->lines.at + done, exec->lines.length - done);
		if (count > 0) {
			done += (size_t)count;
			end_ms = weir_monotonic_ms() + TARGET_TIMEOUT_MS;
			continue;
		}
		if (count < 0 && errno != EAGAIN && errno != EINTR)
			return broken(exec, error);
		struct pollfd poller = {.fd = exec->input, .events = POLLOUT};
		poll(&poller, 1, POLL_MS);
		if ((exec->stop == NULL || !*exec->stop) && weir_monotonic_ms() < end_ms)
			continue;
		end(exec, 0, error);
		return weir_fail(error, WEIR_IO, "the command does not read its input");
	}
	weir_text_clear(&exec->lines);
	return WEIR_OK;
}

static void put_block(struct exec_target *exec, const struct block_entry *entry)
{
	weir_text_append(&exec->lines, entry->json, entry->json_length);
	weir_text_puts(&exec->lines, "\n");
}

static void put_end(struct exec_target *exec, const struct block_entry *entry)
{
	const char *action = "end";
	int64_t at_ms = entry->until_ms;
	if (entry->state != BLOCK_ENDED) {
		action = entry->state == BLOCK_LIFTED ? "lift" : "drop";
		at_ms = entry->at_ms;
	}
	decision_record_end_json(&exec->lines, block_entry_json(entry), entry->partition, entry->version, action, at_ms);
	weir_text_puts(&exec->lines, "\n");
}

static enum weir_status copy(struct target *target, const struct block_table *table, int64_t now_ms,
                             struct weir_error *error)
{
	(void)now_ms;
	struct exec_target *exec = (struct exec_target *)target;
	struct weir_error ignored;
	end(exec, END_MS, &ignored);
	enum weir_status status = program_start(exec->command, &exec->pid, &exec->input, error);
	if (status != WEIR_OK) {
		exec->pid = 0;
		return status;
	}
	struct block_walk walk = {0};
	const struct block_entry *entry;
	while (status == WEIR_OK && (entry = block_table_next(table, &walk)) != NULL) {
		put_block(exec, entry);
		if (exec->lines.length >= FLOW_BYTES)
			status = write_lines(exec, error);
	}
	return status == WEIR_OK ? write_lines(exec, error) : status;
}

static enum weir_status apply(struct target *target, const struct block_table *table, int64_t now_ms,
                              struct weir_error *error)
{
	(void)now_ms;
	struct exec_target *exec = (struct exec_target *)target;
	uint32_t count;
	struct block_entry *const *changes = block_table_changes(table, &count);
	enum weir_status status = WEIR_OK;
	if (exec->pid == 0)
		return weir_fail(error, WEIR_IO, "the command is not running");
	for (uint32_t i = 0; i < count && status == WEIR_OK; i++) {
		if (changes[i]->state == BLOCK_LIVE)
			put_block(exec, changes[i]);
		else if (changes[i]->json != NULL)
			put_end(exec, changes[i]);
		if (exec->lines.length >= FLOW_BYTES)
			status = write_lines(exec, error);
	}
	return status == WEIR_OK ? write_lines(exec, error) : status;
}

static enum weir_status check(struct target *target, const struct block_table *table, int64_t now_ms,
                              struct weir_error *error)
{
	(void)table;
	(void)now_ms;
	struct exec_target *exec = (struct exec_target *)target;
	if (exec->pid == 0)
		return weir_fail(error, WEIR_IO, "the command is not running");
	enum weir_status status = program_ended(exec->pid, "the command", error);
	if (status == WEIR_AGAIN)
		return WEIR_OK;
	close(exec->input);
	exec->pid = 0;
	return status == WEIR_OK ? weir_fail(error, WEIR_IO, "the command exited with status 0") : status;
}

static enum weir_status close_target(struct target *target, struct weir_error *error)
{
	struct exec_target *exec = (struct exec_target *)target;
	bool stopped = exec->stop != NULL && *exec->stop;
	enum weir_status status = end(exec, stopped ? END_MS : TARGET_TIMEOUT_MS, error);
	weir_text_deinit(&exec->lines);
	free(exec->command);
	free(exec);
	return status;
}

static const struct target_ops ops = {
	.kind = "exec",
	.keeps_json = true,
	.wants_each = true,
	.check_after_ms = CHECK_MS,
	.copy = copy,
	.apply = apply,
	.check = check,
	.close = close_target,
};

enum weir_status target_exec_make(const char *rest, const struct target_options *options, struct target **target,
                                  struct weir_error *error)
{
	(void)error;
	struct exec_target *made = weir_alloc(1, sizeof *made);
	made->target.ops = &ops;
	made->command = weir_copy(rest, strlen(rest));
	made->stop = options->stop;
	*target = &made->target;
	return WEIR_OK;
}
