/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drawn four times a second, so that a slow terminal does not slow the work; five times beneath other lines.
 *
 * A line is drawn, and taken off, in one write, so that it does not mix with the log's. It is cut at the screen's edge:
 * what a terminal has broken into two rows can no longer be taken off.
 */
#include "deploy/weir/terminal/progress.h"

#include "common/base/clock.h"
#include "common/base/text.h"
#include "common/files/durable_file.h"
#include "deploy/weir/terminal/readable.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { PERIOD_MS = 250, LEAST_MS = 200 };

void progress_init(struct progress *progress, bool quiet)
{
	int64_t now_ms = weir_monotonic_ms();
	*progress = (struct progress){.shown = !quiet && isatty(STDERR_FILENO),
	                              .lock = PTHREAD_MUTEX_INITIALIZER,
	                              .started_ms = now_ms,
	                              .next_ms = now_ms + PERIOD_MS,
	                              .samples = {{now_ms, 0}},
	                              .sample_count = 1};
}

/* Whether the screen is ours and takes something just now: one that is held up, or another's by now, gets nothing. */
static bool can_write(void)
{
	struct pollfd screen = {.fd = STDERR_FILENO, .events = POLLOUT};
	pid_t foreground = tcgetpgrp(STDERR_FILENO); /* negative: it controls no processes */
	return (foreground < 0 || foreground == getpgrp()) && poll(&screen, 1, 0) == 1;
}

static void write_out(const char *bytes, size_t length)
{
	size_t written;
	if (can_write())
		(void)weir_write_all(STDERR_FILENO, bytes, length, &written); /* it says nothing that would be missed */
}

bool progress_due(struct progress *progress)
{
	if (!progress->shown)
		return false;
	pthread_mutex_lock(&progress->lock);
	bool due = !progress->away && weir_monotonic_ms() >= progress->next_ms;
	pthread_mutex_unlock(&progress->lock);
	return due;
}

static void take_off(struct progress *progress)
{
	static const char erase[] = "\r\033[K";
	if (!progress->drawn)
		return;
	write_out(erase, sizeof erase - 1);
	progress->drawn = false;
	progress->next_ms = progress->drawn_ms + LEAST_MS; /* it comes back below what took its place */
}

static void put(struct progress *progress, const struct weir_text *words)
{
	struct winsize screen = {0};
	struct weir_text line = {0};
	size_t length = words->length;
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &screen) == 0 && screen.ws_col > 0 && length >= screen.ws_col)
		length = screen.ws_col - 1U;
	weir_text_puts(&line, "\r\033[K");
	weir_text_append(&line, words->at, length);
	pthread_mutex_lock(&progress->lock);
	if (!progress->away) {
		progress->drawn = true;
		write_out(line.at, line.length);
		progress->drawn_ms = weir_monotonic_ms();
		progress->next_ms = progress->drawn_ms + PERIOD_MS;
	}
	pthread_mutex_unlock(&progress->lock);
	weir_text_deinit(&line);
}

static void put_lines(struct weir_text *text, uint64_t lines, uint64_t more, int64_t in_ms)
{
	words_amount(text, lines, "line");
	weir_text_puts(text, ", ");
	words_count(text, in_ms > 0 ? (uint64_t)(1000.0 * (double)more / (double)in_ms) : 0);
	weir_text_puts(text, " a second");
}

void progress_draw(struct progress *progress, uint64_t lines, uint64_t done_bytes, uint64_t all_bytes)
{
	int64_t spent_ms = weir_monotonic_ms() - progress->started_ms;
	struct weir_text text = {0};
	put_lines(&text, lines, lines, spent_ms);
	if (all_bytes > 0 && done_bytes > 0) {
		double share = (double)done_bytes / (double)all_bytes, seconds = (double)spent_ms / 1000.0;
		if (share > 1)
			share = 1;
		weir_text_printf(&text, ", %.0f%%, about %.0f s left", 100 * share, seconds / share - seconds);
	}
	put(progress, &text);
	weir_text_deinit(&text);
}

void progress_draw_endless(struct progress *progress, const struct progress_numbers *numbers)
{
	int64_t now_ms = weir_monotonic_ms();
	struct progress_sample *samples = progress->samples;
	if (now_ms - samples[(progress->sample_count - 1) % PROGRESS_SAMPLES].at_ms >= PERIOD_MS)
		samples[progress->sample_count++ % PROGRESS_SAMPLES] = (struct progress_sample){now_ms, numbers->lines};
	const struct progress_sample *oldest =
		&samples[progress->sample_count > PROGRESS_SAMPLES ? progress->sample_count % PROGRESS_SAMPLES : 0];

	struct weir_text text = {0};
	put_lines(&text, numbers->lines, numbers->lines - oldest->lines, now_ms - oldest->at_ms);
	weir_text_puts(&text, ", ");
	words_amount(&text, numbers->events, "event");
	weir_text_puts(&text, ", ");
	words_amount(&text, numbers->decisions, "decision");
	if (numbers->lag_bytes > 0) {
		weir_text_puts(&text, ", ");
		weir_text_size(&text, numbers->lag_bytes);
		weir_text_puts(&text, " behind");
	}
	put(progress, &text);
	weir_text_deinit(&text);
}

void progress_clear(struct progress *progress)
{
	pthread_mutex_lock(&progress->lock);
	take_off(progress);
	pthread_mutex_unlock(&progress->lock);
}

void progress_leave(struct progress *progress)
{
	pthread_mutex_lock(&progress->lock);
	take_off(progress);
	progress->away = true;
	pthread_mutex_unlock(&progress->lock);
}

void progress_return(struct progress *progress)
{
	pthread_mutex_lock(&progress->lock);
	progress->away = false;
	pthread_mutex_unlock(&progress->lock);
}
