/* SPDX-License-Identifier: Apache-2.0 */
/* By the few sequences that every terminal of today knows: another screen, the cursor's place, erasing. */
#include "deploy/weir/top/top_screen.h"

#include "common/files/durable_file.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { ROWS_DEFAULT = 24, COLUMNS_DEFAULT = 80 };

/* What cannot be written to a terminal would not be read there. */
static void put(const void *bytes, size_t length)
{
	size_t written;
	(void)weir_write_all(STDOUT_FILENO, bytes, length, &written);
}

static void put_string(const char *string)
{
	put(string, strlen(string));
}

bool top_screen_there(void)
{
	const char *kind = getenv("TERM");
	return isatty(STDOUT_FILENO) && kind != NULL && kind[0] != '\0' && strcmp(kind, "dumb") != 0;
}

void top_screen_enter(struct top_screen *screen)
{
	*screen = (struct top_screen){.keys = false};
	screen->keys = tcgetattr(STDIN_FILENO, &screen->before) == 0;
	if (screen->keys) {
		struct termios raw = screen->before;
		raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		raw.c_cc[VMIN] = 0;
		raw.c_cc[VTIME] = 0;
		raw.c_cc[VSUSP] = _POSIX_VDISABLE; /* who is stopped cannot give the screen back */
		tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	}
	put_string("\033[?1049h\033[?25l\033[2J");
	top_screen_resized(screen);
}

void top_screen_leave(struct top_screen *screen)
{
	put_string("\033[?25h\033[?1049l");
	if (screen->keys)
		tcsetattr(STDIN_FILENO, TCSAFLUSH, &screen->before);
}

bool top_screen_resized(struct top_screen *screen)
{
	struct winsize size = {0};
	bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
	unsigned rows = known && size.ws_row > 0 ? size.ws_row : ROWS_DEFAULT;
	unsigned columns = known && size.ws_col > 0 ? size.ws_col : COLUMNS_DEFAULT;
	bool changed = rows != screen->rows || columns != screen->columns;
	screen->rows = rows;
	screen->columns = columns;
	return changed;
}

void top_screen_show(const struct top_screen *screen, const struct weir_text *lines)
{
	struct weir_text out = {0};
	size_t end = 0;
	unsigned rows = 0;
	/* Behind the last row there is no line end, which would move all of it up. */
	for (size_t i = 0; i + 1 < lines->length && rows < screen->rows; i++)
		if (lines->at[i] == '\r' && lines->at[i + 1] == '\n') {
			end = i;
			rows++;
		}
	weir_text_puts(&out, "\033[H");
	weir_text_append(&out, lines->at, end);
	weir_text_puts(&out, "\033[J");
	put(out.at, out.length);
	weir_text_deinit(&out);
}

char top_screen_key(const struct top_screen *screen, int wait_ms)
{
	struct pollfd input = {.fd = screen->keys ? STDIN_FILENO : -1, .events = POLLIN};
	char key = 0;
	if (poll(&input, 1, wait_ms) == 1 && read(STDIN_FILENO, &key, 1) != 1)
		return 'q'; /* the terminal is gone */
	return key;
}
