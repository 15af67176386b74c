/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `weir generate`: a synthetic log, as fast as it goes or at a pace.
 *
 * Traffic (who asks for what, and when) becomes lines (of one format) becomes
 * output. Only the pace and the times of a live log look at a clock.
 */
#include "common/base/clock.h"
#include "common/base/stop.h"
#include "deploy/weir/command.h"
#include "deploy/weir/generate/generate_options.h"
#include "deploy/weir/generate/lines.h"
#include "deploy/weir/generate/output.h"
#include "deploy/weir/terminal/progress.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
	PACE_TICK_MS = 10, /* live lines are written so often at most */
	PROGRESS_EVERY = 4096,
};

struct generator {
	const struct generate_options *options;
	struct generate_site *site;
	struct generate_traffic *traffic;
	struct generate_lines *lines;
	struct generate_output output;
	struct progress progress;
	uint64_t written; /* lines */
};

/* One event, once or twice. WEIR_END: a limit is reached. */
static enum weir_status write_event(struct generator *generator, int64_t now_ms, struct weir_error *error)
{
	const struct generate_options *options = generator->options;
	struct generate_output *output = &generator->output;
	struct generate_event event;
	if (generator->written == options->lines)
		return WEIR_END;
	char *at = generate_output_room(output, 2 * GENERATE_LINE_MAX_BYTES, error);
	if (at == NULL)
		return WEIR_IO;
	generate_traffic_next(generator->traffic, now_ms, &event);
	char *end = generate_lines_put(generator->lines, &event, at);
	uint64_t length = (uint64_t)(end - at);
	if (output->bytes + length > options->bytes)
		return WEIR_END;
	generate_output_take(output, end);
	generator->written++;
	if (!event.duplicate)
		return WEIR_OK;
	if (generator->written == options->lines || output->bytes + length > options->bytes)
		return WEIR_END;
	memcpy(end, at, length);
	generate_output_take(output, end + length);
	generator->written++;
	return WEIR_OK;
}

static void show_progress(struct generator *generator)
{
	const struct generate_options *options = generator->options;
	if (!progress_due(&generator->progress))
		return;
	if (options->bytes != UINT64_MAX)
		progress_draw(&generator->progress, generator->written, generator->output.bytes, options->bytes);
	else
		progress_draw(&generator->progress, generator->written, generator->written,
		              options->lines != UINT64_MAX ? options->lines : 0);
}

static enum weir_status write_all(struct generator *generator, struct weir_error *error)
{
	for (;;) {
		for (int i = 0; i < PROGRESS_EVERY; i++) {
			enum weir_status status = write_event(generator, -1, error);
			if (status != WEIR_OK)
				return status;
		}
		show_progress(generator);
	}
}

/* Sleeps until the next line is due, a tick at least; a signal ends it early.
 */
static void wait_for_line(const struct generator *generator, int64_t since_ms)
{
	uint64_t due_ms = (generator->written + 1) * 1000000 / generator->options->live_milli;
	int64_t wait_ms = since_ms + (int64_t)due_ms - weir_monotonic_ms();
	if (wait_ms < PACE_TICK_MS)
		wait_ms = PACE_TICK_MS;
	if (wait_ms > 1000)
		wait_ms = 1000;
	struct timespec span = {.tv_sec = wait_ms / 1000, .tv_nsec = (wait_ms % 1000) * 1000000};
	nanosleep(&span, NULL);
}

/* At the pace asked for, until a limit is reached or a signal comes; each
 * tick's lines are written at its end. */
static enum weir_status write_live(struct generator *generator, struct weir_error *error)
{
	const struct generate_options *options = generator->options;
	int64_t since_ms = weir_monotonic_ms();
	enum weir_status status = WEIR_OK;
	while (status == WEIR_OK && !*weir_stop_flag()) {
		int64_t elapsed_ms = weir_monotonic_ms() - since_ms;
		if (options->live_for_ms >= 0 && elapsed_ms >= options->live_for_ms)
			return WEIR_END;
		uint64_t due = (uint64_t)(((unsigned __int128)elapsed_ms * options->live_milli) / 1000000);
		int64_t now_ms = options->live_times ? weir_wall_ms() : -1;
		while (status == WEIR_OK && generator->written < due && !*weir_stop_flag())
			status = write_event(generator, now_ms, error);
		if (status != WEIR_IO && generate_output_flush(&generator->output, error) != WEIR_OK)
			status = WEIR_IO;
		if (status == WEIR_OK && weir_stop_take_reload())
			status = generate_output_reopen(&generator->output, error);
		show_progress(generator);
		if (status == WEIR_OK && generator->written >= due)
			wait_for_line(generator, since_ms);
	}
	return status;
}

static enum weir_exit command_main(int argc, char **argv)
{
	struct generate_options options;
	struct weir_error error = {0};
	enum weir_exit code = generate_options_parse(argc, argv, &options);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	struct generator generator = {.options = &options};
	generator.site = generate_site_new();
	generator.traffic = generate_traffic_new(&options.traffic, generator.site);
	generator.lines = generate_lines_new(options.format, generator.site, options.traffic.seed, options.ipv6);
	bool live = options.live_milli > 0;
	enum weir_status status =
		generate_output_open(&generator.output, options.path, generate_lines_header(generator.lines), live, &error);
	if (status == WEIR_OK) {
		progress_init(&generator.progress, options.quiet);
		if (live)
			weir_stop_install();
		status = live ? write_live(&generator, &error) : write_all(&generator, &error);
		if (status == WEIR_END)
			status = WEIR_OK;
		enum weir_status closed = generate_output_close(&generator.output, status == WEIR_OK ? &error : NULL);
		if (status == WEIR_OK)
			status = closed;
		progress_clear(&generator.progress);
	}
	generate_lines_free(generator.lines);
	generate_traffic_free(generator.traffic);
	generate_site_free(generator.site);
	/* Whoever read the pipe has had enough: the work is done. */
	if (status == WEIR_OK || generator.output.reader_gone)
		return WEIR_EXIT_DONE;
	fprintf(stderr, "weir generate: %s\n", error.text);
	return WEIR_EXIT_FAILED;
}

const struct command command_generate = {&generate_line, command_main};
