/* Drawn four times a second, so that a slow terminal does not slow the work; more often only beneath other lines. */
#include "deploy/standalone/progress.h"

#include "common/clock.h"
#include "deploy/standalone/words.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { PERIOD_MS = 250 };

void progress_init(struct progress *progress, bool quiet)
{
	int64_t now_ms = weir_monotonic_ms();
	*progress = (struct progress){
		.shown = !quiet && isatty(STDERR_FILENO), .started_ms = now_ms, .next_ms = now_ms + PERIOD_MS};
}

bool progress_due(struct progress *progress)
{
	return progress->shown && weir_monotonic_ms() >= progress->next_ms;
}

void progress_draw(struct progress *progress, uint64_t lines, uint64_t done_bytes, uint64_t all_bytes)
{
	int64_t now_ms = weir_monotonic_ms();
	double seconds = (double)(now_ms - progress->started_ms) / 1000.0;
	struct weir_text text = {0};
	weir_text_puts(&text, "\r\033[K");
	words_count(&text, lines);
	weir_text_puts(&text, " lines, ");
	words_count(&text, seconds > 0 ? (uint64_t)((double)lines / seconds) : 0);
	weir_text_puts(&text, " a second");
	if (all_bytes > 0 && done_bytes > 0) {
		double share = (double)done_bytes / (double)all_bytes;
		if (share > 1)
			share = 1;
		weir_text_printf(&text, ", %.0f%%, about %.0f s left", 100 * share, seconds / share - seconds);
	}
	fwrite(text.at, 1, text.length, stderr);
	fflush(stderr);
	weir_text_deinit(&text);
	progress->drawn = true;
	progress->next_ms = now_ms + PERIOD_MS;
}

void progress_clear(struct progress *progress)
{
	if (!progress->drawn)
		return;
	fputs("\r\033[K", stderr);
	progress->drawn = false;
	progress->next_ms = 0; /* it comes back below what took its place */
}
